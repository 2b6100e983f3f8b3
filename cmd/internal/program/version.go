package program

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Version and commit of a release: -ldflags "-X github.com/landwaiter/landwaiter/cmd/internal/program.version=v1.2.3 -X ….revision=…".
var (
	version  = ""
	revision = "" //nolint:gochecknoglobals // the linker sets it
)

// Version returns the released version, or the one that the Go toolchain recorded.
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// Revision returns the released commit, or the one that the Go toolchain recorded.
func Revision() string {
	if revision != "" {
		return revision
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				return setting.Value
			}
		}
	}
	return "unknown"
}

// Build describes the build of a program.
type Build struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`

	name string
}

// VersionOf returns the build of the named program.
func VersionOf(name string) Build {
	return Build{Version: Version(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, name: name}
}

// String returns the line that --version prints.
func (b Build) String() string {
	return fmt.Sprintf("%s %s (%s, %s)", b.name, b.Version, b.Go, b.Platform)
}
