package external

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/remote/egress"
)

// fetchVault reads the certificates of a PKI mount, or the public keys of a transit key: all
// versions that may still verify, newest first. It only uses Vault's HTTP API, so that its
// requests do not depend on the environment.
func (n network) fetchVault(ctx context.Context, source Source) ([]byte, error) {
	server, err := url.Parse(source.Address)
	if err != nil {
		return nil, problem("the address is malformed")
	}
	address, err := vaultPath(server, source.Path)
	if err != nil {
		return nil, err
	}
	client, err := n.to(ctx, source.Authority, server.Host)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	header, leave, err := n.vaultLogin(ctx, client, server, source.As)
	if err != nil {
		return nil, err
	}
	defer leave()
	status, body, err := client.Get(ctx, address, header)
	switch {
	case err != nil:
		return nil, fmt.Errorf("ask Vault: %w", err)
	case status == http.StatusForbidden:
		return nil, problem("Vault refuses the token (403): it needs the capability read on the path")
	case status == http.StatusNotFound:
		return nil, problem("there is nothing at that path (404)")
	case status != http.StatusOK:
		return nil, answered("Vault", status)
	}
	var answer struct {
		Data map[string]any `json:"data"`
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&answer); err != nil {
		return nil, problem("the answer of Vault is malformed")
	}
	if len(answer.Data) == 0 {
		return nil, problemf("there is nothing at %s", source.Path)
	}
	if source.Kind == VaultCertificates {
		return vaultCertificates(answer.Data)
	}
	return vaultKeys(answer.Data)
}

// vaultPath returns the address of a path below /v1/.
func vaultPath(server *url.URL, path string) (string, error) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for _, part := range parts {
		if part == "" || part == "." || part == ".." {
			return "", problem("the path has an empty part, or one of dots")
		}
	}
	whole := strings.TrimSuffix(server.Path, "/") + "/v1/" + strings.Join(parts, "/")
	return (&url.URL{Scheme: server.Scheme, Host: server.Host, Path: whole}).String(), nil
}

// vaultKeys reads an answer of the transit engine ("Read key"), which holds the
// public key of each version if the key is asymmetric.
func vaultKeys(data map[string]any) ([]byte, error) {
	versions, ok := data["keys"].(map[string]any)
	if !ok || len(versions) == 0 {
		return nil, problem("it is not a key of the transit engine")
	}
	oldest := 0
	if least, ok := data["min_decryption_version"].(json.Number); ok {
		oldest, _ = strconv.Atoi(least.String()) // 0 if there is none: all count
	}
	numbers := map[int]string{}
	for name := range versions {
		number, err := strconv.Atoi(name)
		if err != nil {
			return nil, problem("a version of the key is not a number")
		}
		numbers[number] = name
	}
	var all strings.Builder
	for _, number := range slices.Backward(slices.Sorted(maps.Keys(numbers))) {
		if number < oldest {
			break
		}
		version, ok := versions[numbers[number]].(map[string]any)
		if !ok {
			return nil, problem("the key is symmetric: it has no public part")
		}
		text, err := vaultKey(version)
		if err != nil {
			return nil, err
		}
		all.WriteString(text)
	}
	return []byte(all.String()), nil
}

// vaultKey returns one version as PEM. Vault sends Ed25519 keys as base64 of the raw
// key.
func vaultKey(version map[string]any) (string, error) {
	text, ok := version["public_key"].(string)
	if !ok || text == "" {
		return "", problem("the key has no public part")
	}
	if version["name"] != "ed25519" {
		return strings.TrimSpace(text) + "\n", nil
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) != ed25519.PublicKeySize {
		return "", problem("the Ed25519 key is malformed")
	}
	return pemOf(ed25519.PublicKey(raw))
}

func pemOf(key any) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", problem("the key is of an unknown kind")
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), nil
}

// vaultCertificates reads an answer of the PKI engine ("Read certificate").
func vaultCertificates(data map[string]any) ([]byte, error) {
	for _, name := range []string{"ca_chain", "certificate"} {
		switch found := data[name].(type) {
		case string:
			if found != "" {
				return []byte(found), nil
			}
		case []any:
			var all strings.Builder
			for _, one := range found {
				text, ok := one.(string)
				if !ok {
					return nil, problem("the chain is not a list of certificates")
				}
				all.WriteString(strings.TrimSpace(text) + "\n")
			}
			if all.Len() > 0 {
				return []byte(all.String()), nil
			}
		}
	}
	return nil, problem("it is not a certificate of the PKI engine")
}

// defaultVaultMount is the default path of Vault's login for Kubernetes.
const defaultVaultMount = "kubernetes"

// vaultLogin returns the header of requests to Vault: with the given token, or with one that
// Vault issues to a ServiceAccount. leave revokes the issued one.
func (n network) vaultLogin(ctx context.Context, client *egress.Client, server *url.URL,
	by Identity) (header http.Header, leave func(), err error) {
	header, leave = http.Header{"X-Vault-Request": {"true"}}, func() {}
	if as, is := by.(account); is {
		if as.federation.VaultNamespace != "" {
			header.Set("X-Vault-Namespace", as.federation.VaultNamespace)
		}
		token, err := n.vaultToken(ctx, client, server, as, header)
		if err != nil {
			return nil, nil, err
		}
		header.Set("X-Vault-Token", token)
		return header, func() { vaultRevoke(ctx, client, server, header) }, nil
	}
	values, ambient, err := held(by, "token")
	if err != nil {
		return nil, nil, err
	}
	if ambient {
		return nil, nil, problem("Vault needs a token")
	}
	header.Set("X-Vault-Token", values["token"])
	if values["namespace"] != "" {
		header.Set("X-Vault-Namespace", values["namespace"])
	}
	return header, leave, nil
}

// vaultAudience returns the audience of tokens for the Vault at an address. It contains the
// host, so that no other server can use them there.
func vaultAudience(server *url.URL) string {
	return audienceVault + strings.ToLower(strings.TrimSuffix(server.Host, ":443"))
}

// vaultToken logs in with Vault's auth method kubernetes.
func (n network) vaultToken(ctx context.Context, client *egress.Client, server *url.URL, as account, header http.Header) (string, error) {
	address, err := vaultPath(server, "auth/"+cmp.Or(as.federation.VaultMount, defaultVaultMount)+"/login")
	if err != nil {
		return "", problem("the mount has an empty part, or one of dots")
	}
	if as.federation.VaultRole == "" {
		return "", problem("a login at Vault as a ServiceAccount needs a role")
	}
	token, err := n.token(ctx, as, vaultAudience(server))
	if err != nil {
		return "", err
	}
	var answer struct {
		Auth struct {
			Token string `json:"client_token"`
		} `json:"auth"`
	}
	asked := map[string]string{"role": as.federation.VaultRole, "jwt": token}
	if err := postJSON(ctx, client, "Vault's "+tokens, address, "", header, asked, &answer); err != nil {
		return "", err
	}
	if answer.Auth.Token == "" || strings.ContainsAny(answer.Auth.Token, "\r\n") {
		return "", problem("Vault gave no token")
	}
	return answer.Auth.Token, nil
}

// vaultRevoke revokes a token, so that Vault does not store one for each fetch. A remaining
// token expires by itself, so failures do not count.
func vaultRevoke(ctx context.Context, client *egress.Client, server *url.URL, header http.Header) {
	address, err := vaultPath(server, "auth/token/revoke-self")
	if err != nil {
		return
	}
	_ = postJSON(ctx, client, "Vault", address, "", header, struct{}{}, &struct{}{})
}
