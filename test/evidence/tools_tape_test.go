//go:build !e2e

package evidence

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"
)

// tape has what the commands of a test function did: the manifests that they pushed, and
// the public files that they wrote. `make test` repeats it, so that everything but the
// commands is as in `make nightly`, which runs them; with LANDWAITER_RECORD=1 it records.
type tape struct {
	Tools    []string                 `json:"tools"`    // with their versions
	Commands map[string][]deed        `json:"commands"` // by the full name of the test
	Blobs    map[digest.Digest]string `json:"blobs"`    // that manifests reference
}

// deed is what one command did.
type deed struct {
	Command   string            `json:"command"`
	Files     map[string]string `json:"files,omitempty"`
	Manifests []manifest        `json:"manifests,omitempty"`
}

type manifest struct {
	Host       string `json:"host"`
	Repository string `json:"repository"`
	Reference  string `json:"reference"`
	Type       string `json:"type"`
	Text       string `json:"text"`
}

// blobs returns what must be pushed before the manifest.
func (m manifest) blobs(t *testing.T) []ocispec.Descriptor {
	t.Helper()
	var parsed ocispec.Manifest // of an index, it has no blobs
	require.NoError(t, json.Unmarshal([]byte(m.Text), &parsed))
	if parsed.Config.Digest == "" {
		return nil
	}
	return append(parsed.Layers, parsed.Config)
}

// pinned returns the tools that test/tools builds, with their versions.
func pinned(t *testing.T) (tools []string) {
	t.Helper()
	for module, names := range map[string]string{"": `github\.com/sigstore/cosign/v[23]`, "oras": `oras\.land/oras`,
		"sigstore": `github\.com/sigstore/(?:fulcio|rekor-tiles/v2|timestamp-authority/v2)`} {
		text, err := os.ReadFile(filepath.Join("..", "tools", module, "go.mod"))
		require.NoError(t, err)
		found := regexp.MustCompile(`(?m)^\s*(`+names+` v\S+)`).FindAllStringSubmatch(string(text), -1)
		require.NotEmpty(t, found, module)
		for _, match := range found {
			tools = append(tools, match[1])
		}
	}
	slices.Sort(tools)
	return tools
}

// tapeOf returns the file of a test function, of which t may be a subtest.
func tapeOf(t *testing.T) string {
	t.Helper()
	function, _, _ := strings.Cut(t.Name(), "/")
	return filepath.Join("testdata", "interop", function+".json")
}

var (
	temporary = regexp.MustCompile(regexp.QuoteMeta(filepath.Clean(os.TempDir())) + `/\S*?/\d{3}/[^,=\s]*`)
	port      = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	jwt       = regexp.MustCompile(`eyJ[\w-]+\.[\w-]+\.[\w-]+`)
)

// spoken is a command line without what differs from run to run. A recording is only good
// for the command line that it was made with, and the variables before it.
func (c tool) spoken(variables, args []string) string {
	line := temporary.ReplaceAllString(strings.Join(slices.Concat(variables, []string{c.name}, args), " "), "~")
	return jwt.ReplaceAllString(port.ReplaceAllString(line, "127.0.0.1"), "TOKEN")
}
