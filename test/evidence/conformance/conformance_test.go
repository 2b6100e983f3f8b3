package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The defaults of the suite's cases.
const (
	defaultIdentity = "https://github.com/sigstore-conformance/extremely-dangerous-public-oidc-beacon/.github/workflows/extremely-dangerous-oidc-beacon.yml@refs/heads/main"
	defaultIssuer   = "https://token.actions.githubusercontent.com"
)

// Public vectors of the sigstore-conformance suite. They are no part of this
// repository: LANDWAITER_SIGSTORE_VECTORS says where they are.
func TestVectorsOfTheConformanceSuite(t *testing.T) {
	vectors := os.Getenv("LANDWAITER_SIGSTORE_VECTORS")
	if vectors == "" {
		t.Skip("LANDWAITER_SIGSTORE_VECTORS is not set: the vectors of sigstore-conformance are not checked")
	}
	vectors = filepath.Join(vectors, "sigstore-conformance")
	cases, err := filepath.Glob(filepath.Join(vectors, "*", "bundle.sigstore.json"))
	require.NoError(t, err)
	require.NotEmpty(t, cases, vectors)
	for _, path := range cases {
		folder := filepath.Dir(path)
		name := filepath.Base(folder)
		t.Run(name, func(t *testing.T) {
			in := func(file, otherwise string) string {
				if _, err := os.Stat(filepath.Join(folder, file)); err != nil {
					return otherwise
				}
				return filepath.Join(folder, file)
			}
			text := func(file, otherwise string) string {
				content, err := os.ReadFile(filepath.Join(folder, file))
				if err != nil {
					return otherwise
				}
				return strings.TrimSpace(string(content))
			}
			args := []string{"verify-bundle", "--bundle", path}
			if trusted := in("trusted_root.json", ""); trusted != "" {
				args = append(args, "--trusted-root", trusted)
			}
			if key := in("key.pub", ""); key != "" {
				args = append(args, "--key", key)
			} else {
				args = append(args, "--certificate-identity", text("identity", defaultIdentity), "--certificate-oidc-issuer", text("issuer", defaultIssuer))
			}
			c := command()
			c.SetArgs(append(args, in("artifact", filepath.Join(vectors, "a.txt"))))
			err := c.ExecuteContext(t.Context())
			if strings.HasSuffix(name, "_fail") {
				require.Error(t, err)
				require.NotContains(t, err.Error(), "%!", "a message with a gap in it")
				t.Log(err)
				return
			}
			require.NoError(t, err)
		})
	}
	t.Logf("%d cases", len(cases))
}
