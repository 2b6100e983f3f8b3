package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// platform is an operating system and an architecture, as Go names them.
type platform struct{ os, arch string }

func parsePlatform(text string) (platform, error) {
	system, arch, ok := strings.Cut(text, "/")
	if !ok || system == "" || arch == "" || strings.Contains(arch, "/") {
		return platform{}, fmt.Errorf("platform %q must be like linux/amd64", text)
	}
	return platform{os: system, arch: arch}, nil
}

func (p platform) String() string { return p.os + "/" + p.arch }

func (p platform) oci() ocispec.Platform { return ocispec.Platform{OS: p.os, Architecture: p.arch} }

// variant is one set of build tags, with the suffix of the image's tag.
type variant struct{ suffix, tags string }

// variants are the images that there are, by name.
func variants() map[string]variant {
	return map[string]variant{
		"default": {},
		// With the clouds' key management services and registry logins.
		"full": {suffix: "-full", tags: "aws,azure,gcp"},
	}
}

// unused are the tags that take out what nobody here uses and what makes the linker keep every
// method of every type, half of the binary: kustomize's loader of Go plugins, and gRPC's traces,
// which have pages of text/template.
const unused = "kustomize_disable_go_plugin_support,grpcnotrace"

// stamped is the package that knows its version.
const stamped = "github.com/landwaiter/landwaiter/cmd/internal/program"

// buildArguments are those of `go`, for a program below cmd. Those of the server are the ones in
// the Dockerfile. -trimpath and an empty build ID keep the place of the checkout out of
// the binary. -s drops DWARF, so the compiler need not write it: then packages are those of make build.
func buildArguments(program string, v variant, version, revision, out string) []string {
	return []string{"build", "-buildvcs=false", "-trimpath", "-gcflags=all=-dwarf=false", "-tags", unused + "," + v.tags,
		"-ldflags", "-s -w -buildid= -X " + stamped + ".version=" + version + " -X " + stamped + ".revision=" + revision, "-o", out,
		"./cmd/" + program}
}

// buildEnvironment is what decides about the binary in the environment of `go`: nothing
// of the machine's own may. GOTOOLCHAIN is not part of it, so that a maintainer can choose.
func buildEnvironment(p platform) []string {
	return []string{"CGO_ENABLED=0", "GOOS=" + p.os, "GOARCH=" + p.arch, "GOAMD64=v1", "GOARM64=v8.0",
		"GOFLAGS=-mod=readonly", "GOWORK=off", "GOFIPS140=off"}
}

// withoutExperiments drops GOEXPERIMENT, which has no value that means the default.
func withoutExperiments(environment []string) []string {
	return slices.DeleteFunc(slices.Clone(environment), func(v string) bool { return strings.HasPrefix(v, "GOEXPERIMENT=") })
}

// binary is a built program, with what the Go linker recorded in it.
type binary struct {
	program string
	content []byte
	info    *debug.BuildInfo
}

func readBinary(program string, content []byte) (binary, error) {
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return binary{}, fmt.Errorf("read the modules of %s: %w", program, err)
	}
	return binary{program: program, content: content, info: info}, nil
}

// builder runs the Go toolchain.
type builder struct {
	root     string // of the checkout
	progress io.Writer
	built    map[string]binary
}

// build builds a program, each once.
func (b *builder) build(ctx context.Context, program string, p platform, v variant, o origin) (binary, error) {
	key := program + " " + p.String() + " " + v.tags + " " + o.version
	if done, ok := b.built[key]; ok {
		return done, nil
	}
	fmt.Fprintf(b.progress, "release: building %s%s for %s (minutes the first time)\n", program, v.suffix, p)
	scratch, err := os.MkdirTemp("", "landwaiter-build-")
	if err != nil {
		return binary{}, fmt.Errorf("build for %s: %w", p, err)
	}
	defer func() { _ = os.RemoveAll(scratch) }() // it is only scratch
	out := filepath.Join(scratch, program)
	command := exec.CommandContext(ctx, "go", buildArguments(program, v, o.version, o.revision, out)...) //nolint:gosec // the arguments of a maintainer's own command line
	command.Dir = b.root
	command.Env = slices.Concat(withoutExperiments(os.Environ()), buildEnvironment(p)) //nolint:forbidigo // go needs HOME, its caches and its proxy
	command.Stdout, command.Stderr = b.progress, b.progress
	if err := command.Run(); err != nil {
		return binary{}, fmt.Errorf("build for %s: %w", p, err)
	}
	content, err := os.ReadFile(out) //nolint:gosec // the file was just built
	if err != nil {
		return binary{}, fmt.Errorf("build for %s: %w", p, err)
	}
	done, err := readBinary(program, content)
	if err != nil {
		return binary{}, err
	}
	b.built[key] = done
	return done, nil
}

// dockerfileGo matches the version of Go in the Dockerfile.
var dockerfileGo = regexp.MustCompile(`(?m)^FROM .*\bgolang:(\S+) AS build$`)

// checkToolchain returns an error unless `go` has the version that the Dockerfile names:
// another compiler makes other bytes, and then nobody can rebuild a release.
func (b *builder) checkToolchain(ctx context.Context) error {
	text, err := os.ReadFile(filepath.Join(b.root, "Dockerfile"))
	if err != nil {
		return fmt.Errorf("look for the version of Go: %w", err)
	}
	match := dockerfileGo.FindSubmatch(text)
	if match == nil {
		return errors.New("the Dockerfile names no version of Go")
	}
	command := exec.CommandContext(ctx, "go", "env", "GOVERSION")
	command.Dir = b.root
	found, err := command.Output()
	if err != nil {
		return fmt.Errorf("go env GOVERSION: %w", err)
	}
	if want := "go" + string(match[1]); strings.TrimSpace(string(found)) != want {
		return fmt.Errorf("a release is made with %s, as the Dockerfile says, and this is %s: set GOTOOLCHAIN=%s", want,
			strings.TrimSpace(string(found)), want)
	}
	return nil
}

// checkCommitted returns an error unless everything that a release is made from is
// committed. `git describe --dirty` does not look at files that were never added, which
// the compiler reads and the chart packs all the same.
func (b *builder) checkCommitted(ctx context.Context) error {
	command := exec.CommandContext(ctx, "git", "status", "--porcelain", "--ignored", "--", "api", "charts/landwaiter", "cmd", "config",
		"library", "pkg", "go.mod", "go.sum", "LICENSE", "NOTICE")
	command.Dir = b.root
	found, err := command.Output()
	if err != nil {
		return fmt.Errorf("a release is made from a checkout: git status: %w", err)
	}
	if first, _, _ := strings.Cut(string(found), "\n"); first != "" {
		return fmt.Errorf("the checkout is not what is committed: git status says %q first; commit or remove it, or use UNSIGNED=1 "+
			"for a trial", first)
	}
	return nil
}
