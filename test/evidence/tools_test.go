//go:build !e2e

package evidence

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// tool is a command that people sign with, with a home of its own. Where the commands are
// not built, what they did is repeated from recordings; see [tape].
type tool struct{ name, home string }

// keyPair is a key as cosign keeps it, and its public half.
type keyPair struct {
	file   string
	public []byte // PEM
}

func cosignV2(t *testing.T) tool { return tool{"cosign-v2", t.TempDir()} }
func cosignV3(t *testing.T) tool { return tool{"cosign-v3", t.TempDir()} }
func orasCLI(t *testing.T) tool  { return tool{"oras", t.TempDir()} }

// generate makes a key pair as users do.
func (c tool) generate(t *testing.T) keyPair {
	t.Helper()
	c.run(t, nil, "generate-key-pair", "--output-key-prefix", "generated")
	return c.pair(t, "generated")
}

// importKey makes a key pair of a private key that came from elsewhere.
func (c tool) importKey(t *testing.T, algorithm fixture.Algorithm) keyPair {
	t.Helper()
	file := filepath.Join(c.home, "private.pem")
	if live {
		key, err := fixture.NewCosignKey(algorithm)
		require.NoError(t, err)
		der, err := x509.MarshalPKCS8PrivateKey(key.Private)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(c.home, "private.pub"), key.PEM, 0o600))
	}
	c.run(t, nil, "import-key-pair", "--yes", "--key", file, "--output-key-prefix", "imported")
	pair := c.pair(t, "imported")
	require.Equal(t, string(c.pair(t, "private").public), string(pair.public))
	return pair
}

func (c tool) pair(t *testing.T, prefix string) keyPair {
	t.Helper()
	public, err := os.ReadFile(filepath.Join(c.home, prefix+".pub"))
	require.NoError(t, err)
	return keyPair{file: filepath.Join(c.home, prefix+".key"), public: public}
}

// noServices writes a signing configuration without transparency log, timestamp
// authority and CA: signing then needs nothing but the key.
func (c tool) noServices(t *testing.T) string {
	t.Helper()
	file := filepath.Join(c.home, "signing-config.json")
	c.run(t, nil, "signing-config", "create", "--out", file)
	return file
}

// format is one way to have cosign sign.
type format struct {
	command func(*testing.T) tool
	args    func(*testing.T, tool) []string
	env     []string
}

func fixed(args ...string) func(*testing.T, tool) []string {
	return func(*testing.T, tool) []string { return args }
}

func withSigningConfig(args ...string) func(*testing.T, tool) []string {
	return func(t *testing.T, c tool) []string {
		return append([]string{"--signing-config", c.noServices(t)}, args...)
	}
}

func v2Tag() format {
	return format{command: cosignV2, args: fixed("--tlog-upload=false")}
}

func v2Referrer() format {
	return format{command: cosignV2, args: fixed("--tlog-upload=false", "--registry-referrers-mode=oci-1-1"), env: []string{"COSIGN_EXPERIMENTAL=1"}}
}

func v2Bundle() format {
	return format{command: cosignV2, args: fixed("--tlog-upload=false", "--new-bundle-format")}
}

func v3Bundle() format {
	return format{command: cosignV3, args: withSigningConfig()}
}

func v3Tag() format {
	return format{command: cosignV3, args: fixed("--new-bundle-format=false", "--use-signing-config=false", "--tlog-upload=false")}
}

// into returns f with signatures and attestations in another repository.
func (f format) into(repository string) format {
	f.env = append(slices.Clone(f.env), "COSIGN_REPOSITORY="+repository)
	return f
}

// attest attests img by its digest with key.
func (f format) attest(t *testing.T, c tool, key keyPair, img fixture.Image) {
	t.Helper()
	p := predicates["own type"]
	file := filepath.Join(c.home, "predicate.json")
	require.NoError(t, os.WriteFile(file, []byte(p.predicate), 0o600))
	args := append([]string{"attest", "--key", key.file, "--allow-http-registry", "--yes", "--type", p.kind, "--predicate", file}, f.args(t, c)...)
	c.run(t, f.env, append(args, img.Reference.Name()+"@"+img.Descriptor.Digest.String())...)
}

// sign signs img by its digest with key.
func (f format) sign(t *testing.T, c tool, key keyPair, img fixture.Image, more ...string) {
	t.Helper()
	args := append([]string{"sign", "--key", key.file, "--allow-http-registry", "--yes"}, f.args(t, c)...)
	args = append(append(args, more...), img.Reference.Name()+"@"+img.Descriptor.Digest.String())
	c.run(t, f.env, args...)
}
