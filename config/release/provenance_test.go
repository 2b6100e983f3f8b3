package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// commit is a commit as Git prints it.
var commit = strings.Repeat("ab", 20)

// readProvenance returns the subjects of a statement by name, and its predicate.
func readProvenance(t *testing.T, text []byte) (sums map[string]string, predicate map[string]any) {
	t.Helper()
	statement := decode[struct {
		Type          string `json:"_type"`
		PredicateType string `json:"predicateType"`
		Subject       []struct {
			Name   string
			Digest map[string]string
		}
		Predicate map[string]any
	}](t, text)
	require.Equal(t, "https://in-toto.io/Statement/v1", statement.Type)
	require.Equal(t, "https://slsa.dev/provenance/v1", statement.PredicateType)
	sums = map[string]string{}
	for _, subject := range statement.Subject {
		require.NotContains(t, sums, subject.Name)
		sums[subject.Name] = subject.Digest["sha256"]
	}
	return sums, statement.Predicate
}

func TestProvenanceNamesEveryFileAndImageOfARelease(t *testing.T) {
	made, err := newMaker(t).release(t.Context())
	require.NoError(t, err)
	sums, predicate := readProvenance(t, made[provenanceFile].content)
	for name, f := range made {
		if name != sumsFile && name != provenanceFile {
			require.Equal(t, f.sum(), sums[name], name)
			delete(sums, name)
		}
	}
	require.Len(t, sums, 6, "two indexes with two images each: %v", sums)
	for _, line := range strings.Split(strings.TrimSpace(string(made[imagesFile].content)), "\n") {
		sum, tag, _ := strings.Cut(line, "  ")
		require.Equal(t, sum, "sha256:"+sums["landwaiter:"+tag])
		require.NotEmpty(t, sums["landwaiter:"+tag+" linux/arm64"])
	}
	require.Equal(t, map[string]any{
		"buildDefinition": map[string]any{
			"buildType":          "https://github.com/landwaiter/landwaiter/blob/main/docs/contribute/release.md#provenance",
			"externalParameters": map[string]any{"source": "git+https://github.com/landwaiter/landwaiter", "version": "v0.1.0"},
			"internalParameters": map[string]any{"go": "go1.26.8"},
			"resolvedDependencies": []any{map[string]any{"uri": "git+https://github.com/landwaiter/landwaiter",
				"digest": map[string]any{"gitCommit": commit}}},
		},
		"runDetails": map[string]any{"builder": map[string]any{"id": "https://github.com/landwaiter/landwaiter/blob/main/docs/contribute/release.md#make-a-release"}},
	}, predicate)
}

func TestTheProvenancesLinksLeadToSectionsOfThePage(t *testing.T) {
	for _, link := range []string{buildType, builderID} {
		page, section, found := strings.Cut(strings.TrimPrefix(link, homepage+"/blob/main/"), "#")
		require.True(t, found)
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
		require.NoError(t, err)
		require.Contains(t, strings.ToLower(string(text)), "\n## "+strings.ReplaceAll(section, "-", " ")+"\n")
	}
}

func TestProvenanceOfATrialNeedsNoCommit(t *testing.T) {
	m := newMaker(t)
	m.revision = ""
	made, err := m.release(t.Context())
	require.NoError(t, err)
	require.NotContains(t, string(made[provenanceFile].content), "gitCommit")
	m.revision = "not hex"
	_, err = m.release(t.Context())
	require.ErrorContains(t, err, "describe the build")
}

func TestAttachesTheProvenanceToTheIndexAndItsImages(t *testing.T) {
	for name, options := range map[string]fixture.RegistryOptions{"referrers API": {}, "no referrers API": {NoReferrers: true}} {
		t.Run(name, func(t *testing.T) {
			r := startRegistry(t, options)
			t.Setenv("DOCKER_CONFIG", t.TempDir())
			bundle := filepath.Join(t.TempDir(), attestationFile)
			require.NoError(t, os.WriteFile(bundle, []byte(`{"mediaType":"x"}`), 0o600))
			var out strings.Builder
			args := []string{"push", "-layout", writeImage(t), "-tag", "dev", "-attestation", bundle, r.Host() + "/team/app:v1"}
			for range 2 { // it may be pushed again
				require.NoError(t, run(t.Context(), args, &out, &out), &out)
			}
			repository, err := r.Repository(t.Context(), "team/app")
			require.NoError(t, err)
			index, err := repository.Resolve(t.Context(), "v1")
			require.NoError(t, err)
			for _, subject := range append(fetch[ocispec.Index](t, repository, index).Manifests, index) {
				var found []ocispec.Descriptor
				require.NoError(t, repository.Referrers(t.Context(), subject, bundleType, func(page []ocispec.Descriptor) error {
					found = append(found, page...)
					return nil
				}))
				require.Len(t, found, 1)
				manifest := fetch[ocispec.Manifest](t, repository, found[0])
				require.Equal(t, digest.FromString(`{"mediaType":"x"}`), manifest.Layers[0].Digest)
				require.Equal(t, map[string]string{"dev.sigstore.bundle.content": "dsse-envelope", "dev.sigstore.bundle.predicateType": provenanceType,
					ocispec.AnnotationCreated: "2026-03-01T12:00:00Z"}, manifest.Annotations)
			}
		})
	}
	var out strings.Builder
	require.ErrorContains(t,
		run(t.Context(), []string{"push", "-layout", writeImage(t), "-tag", "dev", "-attestation", "missing", "127.0.0.1:9/app:v1"}, &out, &out),
		"read the provenance")
}
