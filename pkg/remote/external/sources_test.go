package external

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/stretchr/testify/require"
	"github.com/theupdateframework/go-tuf/v2/metadata"

	"github.com/landwaiter/landwaiter/pkg/formats/trust"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// served starts a TLS server and returns its address and the CA to trust.
func served(t *testing.T, handler http.HandlerFunc) (address, authority string) {
	t.Helper()
	ca, err := fixture.NewAuthority("ca")
	require.NoError(t, err)
	certificate, err := ca.IssueServer("127.0.0.1")
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate.TLS}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL, string(ca.CertificatePEM)
}

// vault answers as HashiCorp Vault does for a transit key, and a PKI mount.
func vault(t *testing.T, answers map[string]any) Source {
	t.Helper()
	t.Setenv("VAULT_HEADERS", `{"X-Admin":"of the process"}`)
	t.Setenv("VAULT_NAMESPACE", "of-the-process")
	t.Setenv("VAULT_TOKEN", "of-the-process")
	t.Setenv("VAULT_ADDR", "https://127.0.0.1:1")
	address, authority := served(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Admin") != "" || r.Header.Get("X-Vault-Namespace") != "" {
			t.Errorf("the environment of the process is sent: %v", r.Header)
		}
		switch answer, ok := answers[strings.TrimPrefix(r.URL.Path, "/v1/")]; {
		case r.Header.Get("X-Vault-Token") != "hunter2":
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"errors":["permission denied, says a stranger"]}`)
		case !ok:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"errors":[]}`)
		case answer == "redirect":
			http.Redirect(w, r, "https://127.0.0.1:1/", http.StatusTemporaryRedirect)
		case answer == "endless":
			for range 3 * maxReply / 1024 {
				fmt.Fprint(w, strings.Repeat(" ", 1024))
			}
		default:
			_ = json.NewEncoder(w).Encode(map[string]any{"data": answer})
		}
	})
	return Source{Kind: VaultKeys, Address: address, Authority: authority, As: given(`{"token":"hunter2"}`)}
}

func TestVaultGivesEveryVersionThatMayStillVerify(t *testing.T) {
	var texts []string
	for range 3 {
		key, err := fixture.NewCosignKey(fixture.ECDSAP256)
		require.NoError(t, err)
		texts = append(texts, string(key.PEM))
	}
	edwards, _, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	version := func(text string) map[string]any { return map[string]any{"name": "P-256", "public_key": text} }
	source := vault(t, map[string]any{
		"transit/keys/three": map[string]any{"keys": map[string]any{"1": version(texts[0]), "2": version(texts[1]), "10": version(texts[2])}, "latest_version": 10},
		"transit/keys/young": map[string]any{"keys": map[string]any{"1": version(texts[0]), "2": version(texts[1])}, "latest_version": 2,
			"min_decryption_version": 2},
		"transit/keys/ed": map[string]any{"keys": map[string]any{"1": map[string]any{"name": "ed25519", "public_key": base64.StdEncoding.EncodeToString(edwards)}},
			"latest_version": 1},
		"transit/keys/aes":   map[string]any{"keys": map[string]any{"1": 1700000000}, "latest_version": 1},
		"transit/keys/none":  map[string]any{"keys": map[string]any{}},
		"transit/keys/odd":   map[string]any{"keys": map[string]any{"x": version(texts[0])}},
		"transit/keys/short": map[string]any{"keys": map[string]any{"1": map[string]any{"name": "ed25519", "public_key": "AAAA"}}},
		"transit/keys/empty": map[string]any{"keys": map[string]any{"1": map[string]any{"name": "P-256"}}},
		"kv/data/x":          map[string]any{"data": "x"},
		"redirected":         "redirect", "large": "endless",
	})
	read := func(path string) ([]trust.PublicKey, error) {
		source.Path = path
		text, err := network{}.fetchVault(t.Context(), source)
		if err != nil {
			return nil, err
		}
		return trust.ParsePublicKeys(text)
	}
	three, err := read("transit/keys/three")
	require.NoError(t, err)
	require.Len(t, three, 3)
	newest, err := trust.ParsePublicKeys([]byte(texts[2]))
	require.NoError(t, err)
	require.Equal(t, newest[0], three[0], "10 is newer than 2")
	young, err := read("transit/keys/young")
	require.NoError(t, err)
	require.Len(t, young, 1)
	ed, err := read("transit/keys/ed")
	require.NoError(t, err)
	require.Equal(t, edwards, ed[0].Key)
	for path, says := range map[string]string{
		"transit/keys/aes": "symmetric", "transit/keys/none": "not a key of the transit engine", "transit/keys/odd": "not a number",
		"transit/keys/short": "malformed",
		"transit/keys/empty": "no public part", "kv/data/x": "not a key of the transit engine", "transit/keys/gone": "there is nothing",
		"redirected": "redirects, which is not followed", "large": "larger than 1048576 bytes", "a/../b": "one of dots", "/": "an empty part",
	} {
		_, err := read(path)
		require.ErrorContains(t, err, says, path)
	}
	source.As = given(`{"token":"wrong"}`)
	_, err = read("transit/keys/three")
	require.ErrorContains(t, err, "refuses the token")
	require.NotContains(t, err.Error(), "stranger")
	source.As = given(`{"x":"y"}`)
	_, err = read("transit/keys/three")
	require.ErrorContains(t, err, "have no token")
	source.As, source.Authority = given(`{"token":"hunter2"}`), ""
	_, err = read("transit/keys/three")
	require.ErrorContains(t, err, "certificate", "its CA is not trusted")
}

func TestVaultGivesCertificates(t *testing.T) {
	ca, err := fixture.NewAuthority("pki")
	require.NoError(t, err)
	text := string(ca.CertificatePEM)
	source := vault(t, map[string]any{
		"pki/cert/ca": map[string]any{"certificate": text}, "pki/cert/ca_chain": map[string]any{"ca_chain": text, "certificate": "x"},
		"pki/issuer/default": map[string]any{"ca_chain": []any{text, text}}, "pki/odd": map[string]any{"ca_chain": []any{1}}, "pki/none": map[string]any{"x": "y"},
	})
	source.Kind = VaultCertificates
	for path, want := range map[string]int{"pki/cert/ca": 1, "pki/cert/ca_chain": 1, "pki/issuer/default": 2} {
		source.Path = path
		found, err := network{}.fetchVault(t.Context(), source)
		require.NoError(t, err, path)
		parsed, err := trust.ParseCertificates(found)
		require.NoError(t, err, path)
		require.Len(t, parsed, want, path)
	}
	for _, path := range []string{"pki/odd", "pki/none"} {
		source.Path = path
		_, err := network{}.fetchVault(t.Context(), source)
		require.Error(t, err, path)
	}
}

// repository is a TUF repository with one target, signed with one key.
func repository(t *testing.T, expires time.Time, target string) (files map[string][]byte, root []byte) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	key, err := metadata.KeyFromPublicKey(private.Public())
	require.NoError(t, err)
	signer, err := signature.LoadED25519Signer(private)
	require.NoError(t, err)
	rootMeta := metadata.Root(expires)
	for _, role := range []string{"root", "timestamp", "snapshot", "targets"} {
		require.NoError(t, rootMeta.Signed.AddKey(key, role))
	}
	targets := metadata.Targets(expires)
	file, err := metadata.TargetFile().FromBytes(trustedRootTarget, []byte(target), "sha256")
	require.NoError(t, err)
	targets.Signed.Targets[trustedRootTarget] = file
	files = map[string][]byte{"/targets/" + file.Hashes["sha256"].String() + "." + trustedRootTarget: []byte(target)}
	snapshot, timestamp := metadata.Snapshot(expires), metadata.Timestamp(expires)
	for name, sign := range map[string]func() ([]byte, error){
		"/1.root.json":     func() ([]byte, error) { _, err := rootMeta.Sign(signer); return must(rootMeta.ToBytes(false)), err },
		"/1.targets.json":  func() ([]byte, error) { _, err := targets.Sign(signer); return must(targets.ToBytes(false)), err },
		"/1.snapshot.json": func() ([]byte, error) { _, err := snapshot.Sign(signer); return must(snapshot.ToBytes(false)), err },
		"/timestamp.json":  func() ([]byte, error) { _, err := timestamp.Sign(signer); return must(timestamp.ToBytes(false)), err },
	} {
		text, err := sign()
		require.NoError(t, err)
		files[name] = text
	}
	return files, files["/1.root.json"]
}

func must(text []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return text
}

func TestTUFGivesTheTrustedRootAndNothingThatIsNotSigned(t *testing.T) {
	files, root := repository(t, time.Now().Add(time.Hour), `{"trusted":"root"}`)
	expired, expiredRoot := repository(t, time.Now().Add(-time.Hour), `{"trusted":"root"}`)
	_, strange := repository(t, time.Now().Add(time.Hour), `{"trusted":"root"}`)
	serve := func(files map[string][]byte) Source {
		address, authority := served(t, func(w http.ResponseWriter, r *http.Request) {
			text, ok := files[r.URL.Path]
			if !ok {
				http.NotFound(w, r)
				return
			}
			_, _ = w.Write(text)
		})
		return Source{Kind: TUF, Address: address, Authority: authority}
	}
	good := serve(files)
	good.Root = string(root)
	got, err := network{}.fetchTUF(t.Context(), good)
	require.NoError(t, err)
	require.JSONEq(t, `{"trusted":"root"}`, string(got.Bytes))

	changed := map[string][]byte{}
	for name, text := range files {
		changed[name] = text
		if strings.HasPrefix(name, "/targets/") {
			changed[name] = []byte(`{"trusted":"evil"}`)
		}
	}
	for name, source := range map[string]Source{
		"another root": {Kind: TUF, Address: good.Address, Authority: good.Authority, Root: string(strange)},
		"Sigstore's":   {Kind: TUF, Address: good.Address, Authority: good.Authority},
		"no root":      {Kind: TUF, Address: good.Address, Authority: good.Authority, Root: "{}"},
		"unknown CA":   {Kind: TUF, Address: good.Address, Root: string(root)},
		"expired":      func() Source { s := serve(expired); s.Root = string(expiredRoot); return s }(),
		"changed":      func() Source { s := serve(changed); s.Root = string(root); return s }(),
		"nothing":      func() Source { s := serve(nil); s.Root = string(root); return s }(),
	} {
		_, err := network{}.fetchTUF(t.Context(), source)
		require.Error(t, err, name)
	}
}

func TestARegionIsALabelOfTheRightForm(t *testing.T) {
	for region, want := range map[string]bool{
		"eu-central-1": true, "us-gov-west-1": true, "cn-north-1": true, "ap-southeast-12": true,
		"": false, "evil.example": false, "eu-central-1.evil.example": false, "evil.example/": false, "eu-central-1@evil": false, "x#": false,
		"eu-central-1\n": false, "EU-CENTRAL-1": false,
		"eu--1": false, "eu-central-": false, "127.0.0.1": false, "eu-central-1:8443": false, "localhost": false, "a-b-c-d-1": false,
	} {
		require.Equal(t, want, isRegion(region), "%q", region)
	}
}

func TestATUFMirrorThatLeadsElsewhereIsNotFollowed(t *testing.T) {
	files, root := repository(t, time.Now().Add(time.Hour), `{"trusted":"root"}`)
	var strayed atomic.Int32
	whole := func(w http.ResponseWriter, r *http.Request) {
		if text, ok := files[r.URL.Path]; ok {
			_, _ = w.Write(text)
			return
		}
		http.NotFound(w, r)
	}
	elsewhere, trusted := served(t, func(w http.ResponseWriter, r *http.Request) { strayed.Add(1); whole(w, r) })
	for file := range files {
		address, authority := served(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == file {
				http.Redirect(w, r, elsewhere+file+"?canary", http.StatusFound)
				return
			}
			whole(w, r)
		})
		got, err := network{}.fetchTUF(t.Context(), Source{Kind: TUF, Address: address, Authority: authority + trusted, Root: string(root)})
		if file == "/1.root.json" {
			require.NoError(t, err, "the first root is given")
			continue
		}
		require.Nil(t, got.Bytes)
		require.ErrorContains(t, err, "redirects, which is not followed", file)
		require.NotContains(t, err.Error(), "canary")
	}
	require.Zero(t, strayed.Load())
}

func TestNothingThatAServerSaysIsInAnError(t *testing.T) {
	_, root := repository(t, time.Now().Add(time.Hour), `{}`)
	const canary = "canary-7f3a"
	for name, handler := range map[string]http.HandlerFunc{
		"an error": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, canary, http.StatusInternalServerError) },
		"a refusal": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"errors":["`+canary+`"]}`, http.StatusForbidden)
		},
		"a warning": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"data":null,"warnings":["`+canary+`"]}`) },
		"no JSON":   func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, canary) },
		"a strange field": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"`+canary+`":"`+canary+`","signed":{"_type":"`+canary+`"}}`)
		},
		"a strange key": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"data":{"keys":{"`+canary+`":"`+canary+`"},"name":"`+canary+`"}}`)
		},
		"a redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "https://"+canary, http.StatusFound) },
		"a login": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", canary)
			w.WriteHeader(http.StatusUnauthorized)
		},
	} {
		address, authority := served(t, handler)
		for _, source := range []Source{
			{Kind: VaultKeys, Address: address, Authority: authority, Path: "transit/keys/x", As: given(`{"token":"hunter2"}`)},
			{Kind: VaultCertificates, Address: address, Authority: authority, Path: "pki/cert/ca", As: given(`{"token":"hunter2"}`)},
			{Kind: TUF, Address: address, Authority: authority, Root: string(root)},
		} {
			f := New(Options{}, time.Now)
			_, err := f.fetch(t.Context(), source)
			require.Error(t, err, name)
			for _, secret := range []string{canary, "hunter2"} {
				require.NotContains(t, fmt.Sprintf("%v %+v", err, err), secret, name)
			}
		}
	}
}

func TestCredentialsOfCloudsGoToTheirOwnHostsOnly(t *testing.T) {
	for host, identity := range map[string]string{
		"123456789012.dkr.ecr.eu-central-1.amazonaws.com": "ECR", "123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn": "ECR",
		"team.azurecr.io": "ACR", "europe-docker.pkg.dev": "GAR", "eu.gcr.io": "GAR", "gcr.io": "GAR", "ghcr.io": "GHCR",
	} {
		for _, each := range []string{"ECR", "ACR", "GAR", "GHCR"} {
			require.Equal(t, each == identity, Serves(each, host), "%s %s", each, host)
		}
	}
	for _, wrong := range []Source{
		{Kind: Registry, Path: "ECR", Address: "registry.example.com"}, {Kind: Registry, Path: "ACR", Address: "azurecr.io.evil.example"},
		{Kind: Registry, Path: "ECR", Address: "s3.amazonaws.com"}, {Kind: Registry, Path: "GAR", Address: "evilpkg.dev"},
		{Kind: Registry, Path: "Other", Address: "x"},
		{Kind: Registry, Path: "GAR", Address: "evilgcr.io"}, {Kind: Registry, Path: "GAR", Address: "-docker.pkg.dev"},
		{Kind: Registry, Path: "GAR", Address: "a.b-docker.pkg.dev"},
		{Kind: Registry, Path: "GAR", Address: "a.b.gcr.io"}, {Kind: Registry, Path: "GAR", Address: "eu.gcr.io:444"},
		{Kind: Registry, Path: "ACR", Address: "a.b.azurecr.io"},
		{Kind: Registry, Path: "GHCR", Address: "evil.ghcr.io"}, {Kind: Registry, Path: "GHCR", Address: "ghcr.io:444"},
		{Kind: Registry, Path: "GHCR", Address: "ghcr.io.evil.example"},
		{Kind: Registry, Path: "ACR", Address: ".azurecr.io"}, {Kind: Registry, Path: "ACR", Address: "x@team.azurecr.io"},
		{Kind: Registry, Path: "ACR", Address: "evil.example/.azurecr.io"},
		{Kind: Registry, Path: "ECR", Address: "1.dkr.ecr.eu-central-1.amazonaws.com"},
		{Kind: Registry, Path: "ECR", Address: "123456789012.dkr.ecr.evil.example/.amazonaws.com"},
		{Kind: Registry, Path: "ECR", Address: "123456789012.dkr.ecr.evil.example.amazonaws.com"},
		{Kind: Registry, Path: "ECR", Address: "123456789012.dkr.ecr.eu-central-1.amazonaws.com.cn"},
		{Kind: Registry, Path: "ECR", Address: "123456789012.dkr.ecr.eu-central-1.evil.amazonaws.com"},
		{Kind: Registry, Path: "ECR", Address: "x.123456789012.dkr.ecr.eu-central-1.amazonaws.com"},
	} {
		_, err := network{}.fetchRegistry(t.Context(), wrong)
		says := "is not a host of " + wrong.Path
		if wrong.Path == "Other" {
			says = "must be ECR, ACR, GAR or GHCR"
		}
		require.ErrorContains(t, err, says, wrong.Address)
	}
	_, err := network{}.fetchKMS(t.Context(), Source{Kind: KMS, Address: "hsm://x"})
	require.ErrorContains(t, err, "must begin with")
}
