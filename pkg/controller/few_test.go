//go:build e2e && !nightly

package controller_test

import (
	"testing"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
)

const teams, tenants = 100, 50

// crowded returns the shared API server.
func crowded(t *testing.T) *cluster.Cluster {
	t.Helper()
	return running(t)
}
