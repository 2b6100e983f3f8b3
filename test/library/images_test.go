package library

import (
	"os"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/stretchr/testify/require"

	references "github.com/landwaiter/landwaiter/pkg/formats/image"
)

// The library and the program read references in the same way, so that an image which a prefix
// allows is the one whose signatures are checked.
func TestTheLibraryReadsImagesAsTheProgramDoes(t *testing.T) {
	text, err := os.ReadFile(root + "/lib/image.rego")
	require.NoError(t, err)
	query, err := rego.New(rego.Module("image.rego", string(text)), rego.Query("data.lib.image.canonical(input)")).PrepareForEval(t.Context())
	require.NoError(t, err)
	digest := "sha256:" + strings.Repeat("0a", 32)
	hosts := []string{"", "docker.io/", "index.docker.io/", "registry-1.docker.io:443/", "registry.hub.docker.com/", "quay.io/", "QUAY.io:443/", "quay.io:8443/",
		"localhost/", "localhost:5000/",
		"registry:5000/", "10.0.0.1:5000/", "a-b.example.com/", "a/", "library/", "docker.io.evil.org/", "xn--bcher-kva.example/"}
	paths := []string{"nginx", "sha256/app", "library/nginx", "team/app", "team/app/web", "a.b/c_d", "a__b/c--d"}
	ends := []string{"", ":v1", ":V_1.2-x", "@" + digest, ":v1@" + digest}
	for _, host := range hosts {
		for _, path := range paths {
			for _, end := range ends {
				written := host + path + end
				want, err := references.Parse(written)
				require.NoError(t, err, written)
				results, err := query.Eval(t.Context(), rego.EvalInput(written))
				require.NoError(t, err)
				require.Len(t, results, 1, "%s cannot be read", written)
				read, ok := results[0].Expressions[0].Value.(string)
				require.True(t, ok)
				again, err := references.Parse(read)
				require.NoError(t, err)
				require.Equal(t, want, again, written)
				require.True(t, strings.HasPrefix(read, want.Name()), "%s is read as %s", written, read)
			}
		}
	}
	for _, odd := range []any{nil, 7, "", "/", "nginx:", "nginx@", "nginx@sha256:abc", "Nginx", "a/Nginx", "a//b", "a/./b", "a/../b", "a/b/", "/a", ".a/b",
		"-a.b/c", "a..b/c", "a.b:/c", "a.b:0/c", "a.b:05/c", "user@a.b/c",
		"http://a.b/c", "a.b%2fc", "a.b\\c/d", "[ns]a.b/c", " a.b/c", "a.b/c ", "a.b/c\n", "[::1]/a", "[::1]:5000/a", "a_b.c/d", "é.example/a",
		"\u212Aubernetes.io/a", "Foo/bar",
		"sha256:a", "SHA256:a", "sha256:" + strings.Repeat("0a", 32), "sha384:latest", "sha512:1", "blake3:a", "sha256:a@" + digest} {
		results, err := query.Eval(t.Context(), rego.EvalInput(odd))
		require.NoError(t, err)
		require.Empty(t, results, "%q", odd)
	}
}
