//go:build e2e || nightly

// Package install installs, upgrades, watches and uninstalls Landwaiter as a cluster admin
// does. It follows the pages block by block against a real API server with a real
// Gatekeeper, renders the charts, and has Prometheus evaluate their alerts and dashboard.
// Nightly it runs the image in a container, and cuts the power of a whole cluster.
package install

import (
	"os"
	"testing"

	"github.com/landwaiter/landwaiter/test/kit/cosign"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

var root = suite.Root

var parts = suite.New("install")

func TestMain(m *testing.M) {
	cosign.Main()
	os.Exit(parts.Run(m))
}
