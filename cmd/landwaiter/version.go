package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set when a release is built: -ldflags "-X main.version=v1.2.3".
var version = ""

// printedVersion is what version prints.
type printedVersion struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func thisVersion() printedVersion {
	return printedVersion{Version: versionText(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
}

// String returns the line that version and --version print.
func (v printedVersion) String() string {
	return fmt.Sprintf("landwaiter %s (%s, %s)", v.Version, v.Go, v.Platform)
}

func (v printedVersion) show(s *screen) { s.line("%s", v) }

func newVersion() *cobra.Command {
	var output format
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program and of Go",
		Long: `Version prints the version of this program and of Go, as landwaiter --version does.

Exit codes: 0, or 64 if the command line is wrong.`,
		Example: "  landwaiter version",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return output.print(cmd, thisVersion())
		},
	}
	output.register(cmd)
	return cmd
}

// versionText returns the released version, or the one that the Go toolchain recorded.
func versionText() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
