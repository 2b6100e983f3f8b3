//go:build e2e || nightly

// Package install installs, upgrades, watches and uninstalls Landwaiter as a cluster admin
// does. It follows the pages block by block against a real API server with a real
// Gatekeeper, renders the charts, and has Prometheus evaluate their alerts and dashboard.
// Nightly it runs the image in a container, and cuts the power of a whole cluster.
package install

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/landwaiter/landwaiter/test/kit/cosign"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

const root = suite.Root

var parts = suite.New("install")

func TestMain(m *testing.M) {
	cosign.Main()
	os.Exit(parts.Run(m))
}

// gatekeeperChart returns the folder of Gatekeeper's own chart, which is part of its Go
// module, in the version that the cluster runs.
func gatekeeperChart(ctx context.Context) (string, error) {
	list := exec.CommandContext(ctx, "go", "mod", "download", "-json", "github.com/open-policy-agent/gatekeeper/v3")
	list.Dir = root + "/test/tools/cluster"
	output, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("find Gatekeeper's chart: %w", err)
	}
	var module struct{ Dir string }
	err = json.Unmarshal(output, &module)
	return filepath.Join(module.Dir, "charts", "gatekeeper"), err
}
