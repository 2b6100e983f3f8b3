package scaffold

import (
	"crypto/rsa"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

const knownHosts = "github.com ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl\n"

func stringData(t *testing.T, secret []byte) map[string]string {
	t.Helper()
	var parsed struct {
		Kind       string            `json:"kind"`
		StringData map[string]string `json:"stringData"`
	}
	require.NoError(t, yaml.Unmarshal(secret, &parsed))
	require.Equal(t, "Secret", parsed.Kind)
	return parsed.StringData
}

func TestAnSSHLoginHasAKeyOfItsOwn(t *testing.T) {
	login := Login{Namespace: "iris-red", Name: "git-auth", KnownHosts: []byte(knownHosts)}
	secret, key, err := NewLogin(login)
	require.NoError(t, err)
	data := stringData(t, secret)
	require.Equal(t, knownHosts, data["known_hosts"])
	signer, err := ssh.ParsePrivateKey([]byte(data["identity"]))
	require.NoError(t, err)
	public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(key))
	require.NoError(t, err)
	require.Equal(t, signer.PublicKey().Marshal(), public.Marshal())
	require.Equal(t, "ssh-ed25519", public.Type())
	_, other, err := NewLogin(login)
	require.NoError(t, err)
	require.NotEqual(t, key, other)
}

func TestATokenLoginHasTheTokenAlone(t *testing.T) {
	secret, key, err := NewLogin(Login{Namespace: "a", Name: "git-auth", Token: []byte("t0ken\n")})
	require.NoError(t, err)
	require.Empty(t, key)
	require.Equal(t, map[string]string{"username": "git", "password": "t0ken"}, stringData(t, secret))
}

func TestAzureDevOpsAndCodeCommitGetAKeyThatTheyTake(t *testing.T) {
	for host, want := range map[string]string{
		"ssh.dev.azure.com": ssh.KeyAlgoRSA, "git-codecommit.eu-west-1.amazonaws.com": ssh.KeyAlgoRSA, "github.com": ssh.KeyAlgoED25519,
		"ssh.dev.azure.com.example.com": ssh.KeyAlgoED25519,
	} {
		secret, key, err := NewLogin(Login{Namespace: "a", Name: "git-auth", Host: host, KnownHosts: []byte(knownHosts)})
		require.NoError(t, err)
		public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(key))
		require.NoError(t, err)
		require.Equal(t, want, public.Type(), host)
		signer, err := ssh.ParsePrivateKey([]byte(stringData(t, secret)["identity"]))
		require.NoError(t, err)
		require.Equal(t, signer.PublicKey().Marshal(), public.Marshal())
		if want == ssh.KeyAlgoRSA {
			key, ok := public.(ssh.CryptoPublicKey).CryptoPublicKey().(*rsa.PublicKey)
			require.True(t, ok)
			require.Equal(t, 4096, key.N.BitLen())
		}
	}
	for _, host := range []string{"vs-ssh.visualstudio.com", "org.vs-ssh.visualstudio.com", "git-codecommit-fips.us-east-1.amazonaws.com",
		"git-codecommit.cn-north-1.amazonaws.com.cn"} {
		require.Regexp(t, onlyRSA, host)
	}
	source := &v1beta1.TenantSource{URL: "ssh://git@SSH.dev.azure.com:22/v3/org/project/repo"}
	login, err := LoginOptions{Kind: "ssh",
		File: knownHostsFile(t)}.read(&Team{Tenant: &v1beta1.Tenant{Spec: v1beta1.TenantSpec{Reconciler: &v1beta1.TenantReconciler{Source: source}}}}, "git-auth")
	require.ErrorContains(t, err, "has no key of SSH.dev.azure.com")
	require.Equal(t, "SSH.dev.azure.com", login.Host)
}

func knownHostsFile(t *testing.T) string {
	t.Helper()
	dir := folder(t)
	put1(t, dir, "known_hosts", knownHosts)
	return filepath.Join(dir, "known_hosts")
}

func TestATokenMayNameItsUser(t *testing.T) {
	for token, want := range map[string][2]string{
		"gitlab+deploy-token-12:gldt-x\n": {"gitlab+deploy-token-12", "gldt-x"}, "x-token-auth:a:b=": {"x-token-auth", "a:b="}, "ghp_x": {"git", "ghp_x"},
	} {
		secret, _, err := NewLogin(Login{Namespace: "a", Name: "git-auth", Token: []byte(token)})
		require.NoError(t, err)
		require.Equal(t, map[string]string{"username": want[0], "password": want[1]}, stringData(t, secret))
	}
}

func TestRefusesLoginsThatAnybodyCouldAnswer(t *testing.T) {
	for name, login := range map[string]Login{"no known hosts": {}, "words": {KnownHosts: []byte("github.com\n")}, "two words as token": {Token: []byte("a b")},
		"empty token": {Token: []byte("\n")}, "user without token": {Token: []byte("me:")}, "token without user": {Token: []byte(":x")}} {
		t.Run(name, func(t *testing.T) {
			_, _, err := NewLogin(login)
			require.Error(t, err)
		})
	}
}

// fakeSOPS puts a command sops first into PATH, which writes its arguments and input to files.
func fakeSOPS(t *testing.T, script string) string {
	t.Helper()
	dir := folder(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sops"), []byte("#!/bin/sh\n"+strings.ReplaceAll(script, "DIR", dir)), 0o700))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return dir
}

func TestSOPSGetsThePlainTextOnStandardInput(t *testing.T) {
	dir := fakeSOPS(t, "echo \"$@\" >DIR/args\ncat >DIR/stdin\ncat <<EOF\n"+sealedSecret(sealedValue, sealedValue)+"EOF\n")
	command, err := FindSOPS()
	require.NoError(t, err)
	text, err := Platform{SOPSAge: recipient}.Encrypt(t.Context(), command, []byte(plainSecret))
	require.NoError(t, err)
	require.Equal(t, sealedSecret(sealedValue, sealedValue), text)
	require.Equal(t, plainSecret, content(t, dir, "stdin"))
	arguments := content(t, dir, "args")
	require.Contains(t, arguments, "--age "+recipient)
	require.NotContains(t, arguments, "hunter2")
}

func TestBelievesSOPSOnlyIfEverythingIsEncrypted(t *testing.T) {
	for name, c := range map[string]struct{ script, says string }{
		"plain text":     {"cat\n", "plain text"},
		"one value":      {"cat <<EOF\n" + sealedSecret(sealedValue+"\n  user: me", sealedValue) + "EOF\n", "plain text"},
		"without sum":    {"cat <<EOF\n" + sealedSecret(sealedValue, "x") + "EOF\n", "without the sum"},
		"nothing":        {"true\n", "not the encrypted Secret"},
		"another object": {"echo 'kind: ConfigMap'\n", "not the encrypted Secret"},
		"not YAML":       {"echo '['\n", "not YAML"},
		"it fails":       {"echo 'no such recipient' >&2\nexit 3\n", "no such recipient"},
	} {
		t.Run(name, func(t *testing.T) {
			fakeSOPS(t, c.script)
			command, err := FindSOPS()
			require.NoError(t, err)
			_, err = Platform{SOPSAge: recipient}.Encrypt(t.Context(), command, []byte(plainSecret))
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), "hunter2")
		})
	}
}

func TestSaysWhatToInstallWithoutSOPS(t *testing.T) {
	t.Setenv("PATH", folder(t))
	_, err := FindSOPS()
	require.ErrorContains(t, err, "https://github.com/getsops/sops/releases")
	require.ErrorContains(t, err, "nothing was written")
}

func TestTheEncryptedLoginIsWrittenOnce(t *testing.T) {
	e := example{platform: &Platform{Constraints: []string{imagesSet}, SOPSAge: recipient},
		teams: []Team{{Tenant: team("iris-red", nil), Auth: sealedSecret(sealedValue, sealedValue)}}}
	dir := light(t, e.write(t))
	require.Equal(t, sealedSecret(sealedValue, sealedValue), content(t, dir, "tenants/base/iris-red/auth.yaml"))
	report, err := Check(t.Context(), dir, CheckOptions{})
	require.NoError(t, err)
	require.Empty(t, report.Findings)
	e.teams[0].Auth = "another\n"
	outcomes, err := Write(dir, e.trees(t)[1], WriteOptions{Force: true})
	require.NoError(t, err)
	require.Equal(t, Unchanged, result(outcomes, "tenants/base/iris-red/auth.yaml"))
	require.Contains(t, content(t, dir, "clusters/staging/tenants.yaml"), "provider: sops")
	require.Contains(t, content(t, dir, ".sops.yaml"), recipient)
}

func TestALoginOfTheTreeIsReadOnlyIfItIsEncrypted(t *testing.T) {
	dir, elsewhere := folder(t), folder(t)
	put1(t, dir, "sealed.yaml", sealedSecret(sealedValue, sealedValue))
	put1(t, dir, "plain.yaml", plainSecret)
	put1(t, elsewhere, "sealed.yaml", sealedSecret(sealedValue, sealedValue))
	require.NoError(t, os.Symlink(filepath.Join(elsewhere, "sealed.yaml"), filepath.Join(dir, "link.yaml")))
	text, err := ReadEncrypted(dir, "sealed.yaml")
	require.NoError(t, err)
	require.Equal(t, sealedSecret(sealedValue, sealedValue), text)
	for name, says := range map[string]string{"plain.yaml": "plain text", "link.yaml": "not a regular file",
		"../" + filepath.Base(elsewhere) + "/sealed.yaml": "escapes"} {
		_, err := ReadEncrypted(dir, name)
		require.ErrorContains(t, err, says)
	}
	_, err = ReadEncrypted(dir, "gone.yaml")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestRefusesRepositoriesThatMeanNothing(t *testing.T) {
	for name, c := range map[string]struct {
		repository Repository
		message    string
	}{
		"no Tenant":            {Repository{}, "no Tenant is described"},
		"unknown layout":       {Repository{Layout: "big", Tenant: alone("a")}, "--layout"},
		"place that is a path": {Repository{Tenant: alone("a"), Places: []string{"../x"}}, "is not a name"},
		"app that is a path":   {Repository{Tenant: alone("a"), App: App{Name: "../x"}}, "is not a name"},
		"app without chart":    {Repository{Tenant: alone("a"), App: App{Name: "x"}}, "--app-chart"},
		"key without images":   {Repository{Tenant: alone("a"), PublicKey: "x"}, "belong together"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewRepository(c.repository)
			require.ErrorContains(t, err, c.message)
		})
	}
}
