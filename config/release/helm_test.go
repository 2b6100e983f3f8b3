//go:build e2e

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHelmReadsThePackedChartAsTheFolder(t *testing.T) {
	tools := os.Getenv("LANDWAITER_CHART_TOOLS")
	require.NotEmpty(t, tools, "LANDWAITER_CHART_TOOLS is not set; run make e2e")
	folder := filepath.Join(root, "charts", "landwaiter")
	text, err := packChart(os.DirFS(folder), "landwaiter", origin{created: noon})
	require.NoError(t, err)
	packed := filepath.Join(t.TempDir(), "landwaiter-0.1.0.tgz")
	require.NoError(t, os.WriteFile(packed, text, 0o600))
	helm := func(args ...string) string {
		output, err := exec.CommandContext(t.Context(), filepath.Join(tools, "helm"), args...).CombinedOutput()
		require.NoError(t, err, "%v: %s", args, output)
		return string(output)
	}
	helm("lint", "--strict", packed)
	for _, args := range [][]string{{"template", "landwaiter"}, {"show", "chart"}, {"show", "values"}, {"show", "readme"}} {
		require.Equal(t, helm(append(args, folder)...), helm(append(args, packed)...), "%v", args)
	}
}
