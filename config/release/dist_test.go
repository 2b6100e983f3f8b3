package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReleaseIsTheSameBytesTwice(t *testing.T) {
	first, err := newMaker(t).release(t.Context())
	require.NoError(t, err)
	second, err := newMaker(t).release(t.Context())
	require.NoError(t, err)
	require.Equal(t, first, second)
	require.Equal(t, []string{"LICENSE", "NOTICE", "SHA256SUMS", "images.txt", "landwaiter-0.1.0.tgz",
		"landwaiter_0.1.0_darwin_amd64", "landwaiter_0.1.0_darwin_amd64.cdx.json", "landwaiter_0.1.0_darwin_arm64", "landwaiter_0.1.0_darwin_arm64.cdx.json",
		"landwaiter_0.1.0_image-full.oci.tar", "landwaiter_0.1.0_image.oci.tar",
		"landwaiter_0.1.0_linux_amd64", "landwaiter_0.1.0_linux_amd64.cdx.json", "landwaiter_0.1.0_linux_arm64", "landwaiter_0.1.0_linux_arm64.cdx.json",
		"provenance.json",
	}, slices.Sorted(maps.Keys(first)))
	require.Equal(t, len(first)-1, strings.Count(string(first[sumsFile].content), "\n"), "a sum for each of the others")

	folder := t.TempDir()
	require.NoError(t, first.write(folder))
	info, err := os.Stat(filepath.Join(folder, "landwaiter_0.1.0_linux_amd64"))
	require.NoError(t, err)
	require.EqualValues(t, 0o755, info.Mode().Perm())
	image, err := openLayout(t.Context(), filepath.Join(folder, "landwaiter_0.1.0_image.oci.tar"))
	require.NoError(t, err)
	checkImage(t, image, "0.1.0")
	d, err := image.Resolve(t.Context(), "0.1.0")
	require.NoError(t, err)
	require.Contains(t, string(first[imagesFile].content), d.Digest.String()+"  0.1.0\n")
}

func TestSumsAreThoseOfSha256sum(t *testing.T) {
	require.Equal(t, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a\n"+
		"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881  b\n", string(sums(files{"b": {content: []byte("x")}, "a": {}})))
}

func TestRefusesAReleaseThatIsNotWhatItSeems(t *testing.T) {
	full := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(full, "landwaiter_0.0.9_linux_amd64"), nil, 0o600))
	for name, c := range map[string]struct {
		args []string
		why  string
	}{
		"neither signed nor unsigned":  {[]string{"-out", t.TempDir()}, "COSIGN_KEY"},
		"signed and unsigned":          {[]string{"-out", t.TempDir(), "-unsigned", "-key", "k"}, "COSIGN_KEY"},
		"signed with uncommitted work": {[]string{"-out", t.TempDir(), "-key", "k", "-version", "v0.1.0-dirty"}, "is not what is committed"},
		"beside files of another":      {[]string{"-out", full, "-unsigned"}, "is not empty"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			require.ErrorContains(t, run(t.Context(), append([]string{"dist", "-root", root}, c.args...), &out, &out), c.why)
		})
	}
}

func TestSignsNothingThatIsNotCommitted(t *testing.T) {
	folder := t.TempDir()
	b := &builder{root: folder}
	git := func(args ...string) {
		command := exec.CommandContext(t.Context(), "git",
			append([]string{"-C", folder, "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"}, args...)...)
		output, err := command.CombinedOutput()
		require.NoError(t, err, "%v: %s", args, output)
	}
	write := func(name string) {
		require.NoError(t, writeFile(filepath.Join(folder, name), []byte("*.swp\n"), 0o600))
	}
	require.ErrorContains(t, b.checkCommitted(t.Context()), "from a checkout")
	git("init", "--quiet")
	for _, name := range []string{".gitignore", "charts/landwaiter/values.yaml", "cmd/main.go"} {
		write(name)
	}
	git("add", ".")
	git("commit", "--quiet", "--message", "all")
	write("cosign.key") // no part of a release
	require.NoError(t, b.checkCommitted(t.Context()))
	for _, name := range []string{"charts/landwaiter/values.mine.yaml", "charts/landwaiter/values.yaml.swp", "cmd/extra.go", "NOTICE"} {
		write(name)
		require.ErrorContains(t, b.checkCommitted(t.Context()), name)
		require.NoError(t, os.Remove(filepath.Join(folder, name)))
	}
}

func TestRefusesCommandsThatItDoesNotKnow(t *testing.T) {
	for _, args := range [][]string{nil, {"publish"}, {"image"}, {"image", "-image", "landwaiter"}, {"image", "-image", "landwaiter:dev", "-push"},
		{"image", "-image", "a.b/c:d", "-platforms", "linux"}, {"image", "-image", "a.b/c:d", "-variants", "small"}, {"push"}, {"certificates", "x"}} {
		var out strings.Builder
		require.Error(t, run(t.Context(), args, &out, &out), "%v", args)
	}
}

func TestBuildsWithNothingOfTheMachine(t *testing.T) {
	arguments := strings.Join(buildArguments(server, variants()["full"], "v1", "abc", "out"), " ")
	for _, part := range []string{"-trimpath", "-buildvcs=false", "-buildid=", "-tags kustomize_disable_go_plugin_support,grpcnotrace,aws,azure,gcp",
		"program.version=v1", "program.revision=abc", "./cmd/landwaiter-server"} {
		require.Contains(t, arguments, part)
	}
	environment := buildEnvironment(platform{"linux", "arm64"})
	for _, setting := range []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=arm64", "GOWORK=off", "GOFLAGS=-mod=readonly"} {
		require.Contains(t, environment, setting)
	}
	require.Equal(t, []string{"HOME=/root"}, withoutExperiments([]string{"GOEXPERIMENT=x", "HOME=/root"}))
}

func TestReleasesWithTheCompilerOfTheDockerfile(t *testing.T) {
	folder := t.TempDir()
	b := &builder{root: folder}
	require.Error(t, b.checkToolchain(t.Context()), "no Dockerfile")
	for text, why := range map[string]string{"FROM scratch\n": "names no version", "FROM --platform=x golang:1.0.1 AS build\n": "is made with go1.0.1"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, "Dockerfile"), []byte(text), 0o600))
		require.ErrorContains(t, b.checkToolchain(t.Context()), why)
	}
	text, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	require.NoError(t, err)
	require.Regexp(t, dockerfileGo, string(text))
}
