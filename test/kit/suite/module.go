package suite

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
)

// Module returns the folder of a Go module in the version that the go.mod below
// test/tools/<tools> pins. It is downloaded if it is not there.
func Module(ctx context.Context, tools, path string) (string, error) {
	return download(ctx, filepath.Join(Root, "test/tools", tools), path)
}

// Download returns the folder of a Go module that no program here is built from, given as path@version.
func Download(ctx context.Context, path string) (string, error) {
	return download(ctx, Root, path)
}

func download(ctx context.Context, dir, path string) (string, error) {
	download := exec.CommandContext(ctx, "go", "mod", "download", "-json", path)
	download.Dir = dir
	output, err := download.Output()
	if err != nil {
		return "", fmt.Errorf("download %s: %w: %s", path, err, output)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(output, &module); err != nil {
		return "", fmt.Errorf("download %s: %w", path, err)
	}
	return module.Dir, nil
}

// GatekeeperChart returns the folder of Gatekeeper's own chart, which is part of its
// module, in the version that the cluster runs.
func GatekeeperChart(ctx context.Context) (string, error) {
	module, err := Module(ctx, "cluster", "github.com/open-policy-agent/gatekeeper/v3")
	return filepath.Join(module, "charts", "gatekeeper"), err
}
