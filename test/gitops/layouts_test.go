//go:build nightly

package gitops

import (
	"testing"

	"github.com/landwaiter/landwaiter/pkg/tenancy/scaffold"
)

func TestTreesOfEveryLayoutAreAccepted(t *testing.T) {
	ofTeams.alone(t)
	controllers(t).accepts(t, written(t, trees(), scaffold.LayoutFlux, scaffold.LayoutGroups, scaffold.LayoutArc, scaffold.LayoutDemo))
}
