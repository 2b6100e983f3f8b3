package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
)

const root = "../.."

// newMaker returns a maker that has built everything already.
func newMaker(t *testing.T) *maker {
	t.Helper()
	m := &maker{origin: origin{version: "v0.1.0", revision: commit, created: noon}, roots: []byte("roots"),
		builder:     builder{root: root, progress: io.Discard, built: map[string]binary{}},
		rootsModule: &debug.Module{Path: rootsModule, Version: "v1.0.0", Sum: "h1:" + strings.Repeat("A", 43) + "="}}
	for _, p := range binaryPlatforms() {
		for _, v := range variants() {
			for _, program := range []string{server, people} {
				key := program + " " + p.String() + " " + v.tags + " " + m.version
				m.built[key] = binary{program: program, content: []byte(key),
					info: &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Path: "example.com/program"}}}
			}
		}
	}
	return m
}

func newImage(t *testing.T, m *maker) *layout {
	t.Helper()
	l := newLayout()
	require.NoError(t, m.addVariant(t.Context(), l, variants()["default"], imagePlatforms(), "dev"))
	return l
}

func decode[T any](t *testing.T, text []byte) T {
	t.Helper()
	var value T
	require.NoError(t, json.Unmarshal(text, &value))
	return value
}

// fetch returns the content of a descriptor; content.FetchAll checks its digest and size.
func fetch[T any](t *testing.T, from content.Fetcher, d ocispec.Descriptor) T {
	t.Helper()
	text, err := content.FetchAll(t.Context(), from, d)
	require.NoError(t, err)
	return decode[T](t, text)
}

// checkImage checks an image with everything that belongs to it.
func checkImage(t *testing.T, from oras.ReadOnlyGraphTarget, tag string) {
	t.Helper()
	d, err := from.Resolve(t.Context(), tag)
	require.NoError(t, err)
	index := fetch[ocispec.Index](t, from, d)
	require.Equal(t, "v0.1.0", index.Annotations[ocispec.AnnotationVersion])
	require.Equal(t, commit, index.Annotations[ocispec.AnnotationRevision])
	require.Equal(t, "2026-03-01T12:00:00Z", index.Annotations[ocispec.AnnotationCreated])
	require.Len(t, index.Manifests, 2)
	for i, p := range imagePlatforms() {
		part := index.Manifests[i]
		require.Equal(t, p.oci(), *part.Platform)
		manifest := fetch[ocispec.Manifest](t, from, part)
		config := fetch[ocispec.Image](t, from, manifest.Config)
		require.Equal(t, p.arch, config.Architecture)
		require.Equal(t, "65532:65532", config.Config.User)
		require.Equal(t, []string{"/landwaiter-server"}, config.Config.Entrypoint)
		require.Len(t, manifest.Layers, 2)
		for n, layer := range manifest.Layers {
			packed, err := content.FetchAll(t.Context(), from, layer)
			require.NoError(t, err)
			reader, err := gzip.NewReader(bytes.NewReader(packed))
			require.NoError(t, err)
			archive, err := io.ReadAll(reader)
			require.NoError(t, err)
			require.Equal(t, config.RootFS.DiffIDs[n], digest.FromBytes(archive))
			headers := readHeaders(t, archive)
			require.Equal(t, []string{"etc/ssl/certs/ca-certificates.crt", "landwaiter-server"}[n], headers[len(headers)-1].Name)
		}
		referrers, err := from.Predecessors(t.Context(), part)
		require.NoError(t, err)
		var sboms int
		for _, referrer := range referrers {
			if manifest := fetch[ocispec.Manifest](t, from, referrer); manifest.Subject != nil {
				require.Equal(t, part.Digest, manifest.Subject.Digest)
				require.Equal(t, sbomType, manifest.ArtifactType)
				_, err := content.FetchAll(t.Context(), from, manifest.Layers[0])
				require.NoError(t, err)
				sboms++
			}
		}
		require.Equal(t, 1, sboms)
	}
}

func TestImageIsWholeInAFolderAndInAFile(t *testing.T) {
	l := newImage(t, newMaker(t))
	folder := filepath.Join(t.TempDir(), "image")
	require.NoError(t, l.writeFolder(folder))
	require.NoError(t, l.writeFolder(folder), "a layout may be replaced")
	packed, err := pack(l.files(), true, noon)
	require.NoError(t, err)
	archive := filepath.Join(t.TempDir(), "image.tar")
	require.NoError(t, os.WriteFile(archive, packed, 0o600))
	for _, path := range []string{folder, archive} {
		from, err := openLayout(t.Context(), path)
		require.NoError(t, err)
		checkImage(t, from, "dev")
	}
}

func TestImageIsTheSameBytesTwice(t *testing.T) {
	require.Equal(t, newImage(t, newMaker(t)).files(), newImage(t, newMaker(t)).files())
}

func TestReplacesOnlyAnImageLayout(t *testing.T) {
	folder := t.TempDir()
	precious := filepath.Join(folder, "precious")
	require.NoError(t, os.WriteFile(precious, nil, 0o600))
	require.ErrorContains(t, newLayout().writeFolder(folder), "is no image layout")
	require.FileExists(t, precious)
}

// instruction matches an instruction of the Dockerfile's last stage.
func instruction(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	require.NoError(t, err)
	_, last, found := strings.Cut(string(text), "\nFROM scratch\n")
	require.True(t, found, "the Dockerfile's last stage is not empty at first")
	match := regexp.MustCompile(`(?m)^`+name+` ((?:.*\\\n)*.*)$`).FindAllStringSubmatch(last, -1)
	require.Len(t, match, 1, "%s in the Dockerfile", name)
	return strings.ReplaceAll(match[0][1], "\\\n", "")
}

func TestDockerfileAgreesWithTheImage(t *testing.T) {
	config := newImageConfig(t)
	require.Equal(t, config.User, instruction(t, "USER"))
	require.Equal(t, config.Entrypoint, decode[[]string](t, []byte(instruction(t, "ENTRYPOINT"))))
	labels := map[string]string{}
	for _, label := range strings.Fields(instruction(t, "LABEL")) {
		key, value, _ := strings.Cut(label, "=")
		labels[key] = strings.ReplaceAll(value, "$VERSION", "v0.1.0")
	}
	require.Equal(t, config.Labels, labels)
	text, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(text), "\nCOPY --from=build "), "the image has two files")
	require.Contains(t, string(text), "COPY --from=build /out/landwaiter-server /landwaiter-server\n")
	require.Contains(t, string(text), "config/release certificates > /out/"+rootsPath+"\n")
	require.Contains(t, string(text), "COPY --from=build /out/"+rootsPath+" /"+rootsPath+"\n")
	flags := buildArguments(server, variant{tags: "$TAGS"}, "$VERSION", "$REVISION", "/out/landwaiter-server")
	command := "go " + strings.Join(flags, " ")
	stamps := "-s -w -buildid= -X " + stamped + ".version=$VERSION -X " + stamped + ".revision=$REVISION"
	command = strings.NewReplacer("-tags "+unused+",$TAGS", `-tags "`+unused+`,$TAGS"`, stamps, `"`+stamps+`"`).Replace(command)
	require.Contains(t, strings.ReplaceAll(string(text), "\\\n    ", ""), "CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH "+command+"\n")
}

func newImageConfig(t *testing.T) ocispec.ImageConfig {
	t.Helper()
	l := newImage(t, newMaker(t))
	index := decode[ocispec.Index](t, l.blobs[l.entries[0].Digest])
	manifest := decode[ocispec.Manifest](t, l.blobs[index.Manifests[0].Digest])
	return decode[ocispec.Image](t, l.blobs[manifest.Config.Digest]).Config
}

func TestDockerIsSentWhatItBuildsFrom(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, ".dockerignore"))
	require.NoError(t, err)
	for _, kept := range []string{"!go.mod\n", "!go.sum\n", "!api\n", "!cmd\n", "!pkg\n", "!config/release\n"} {
		require.Contains(t, string(text), kept)
	}
}
