//go:build nightly

package gitops

import (
	"maps"
	"path"
	"testing"

	"github.com/landwaiter/landwaiter/test/kit/flux"
	"github.com/landwaiter/landwaiter/test/kit/page"
)

// Tenants of their own app and of a shared one, with charts in a registry and in Git, and one
// with a repository of its own; then the cluster joins a group. Played are `flux bootstrap`, which
// stands for Azure's assignment, and the nodes.
func TestTheLayoutArcIsAppliedToTheEnd(t *testing.T) {
	ofPlatforms.enter(t)
	p := platforms(t).follow(t, "arc", func(b page.Block) bool { return layout(b, "arc") })
	p.publishApp(t, "app1", "1.0.0")
	inGit := map[string]string{}
	for file, text := range maps.All(chart("app2")) {
		inGit[path.Join("charts/app2", file)] = text
	}
	p.app(t, "app2", inGit)
	own := p.team(t, "tenant4", "tenant4")

	commit := p.bootstrap(t, "clusters/cluster1/platform")
	p.steps(t, commit, "flux-system", "crds", "gatekeeper", "landwaiter", "templates", "policies", "guardrails", "tenants")
	p.applied(t, flux.HelmRelease(), "tenant1", "app1", "")
	p.requireReplicas(t, "tenant1", "tenant1-app1", "app1", 3)
	for _, tenant := range []string{"tenant2", "tenant3"} {
		p.applied(t, flux.HelmRelease(), tenant, "app2", "")
		p.requireReplicas(t, tenant, tenant+"-app2", "app2", 3)
	}
	p.applied(t, flux.Kustomization(), "tenant4", "tenant4", own)
	p.requireReplicas(t, "tenant4", "app4", "", 2)

	// The folder of a group has its own tenants.
	commit = p.bootstrap(t, "clusters/stores/platform")
	p.steps(t, commit, "flux-system", "tenants")
	p.applied(t, flux.HelmRelease(), "tenant5", "app1", "")
	p.requireReplicas(t, "tenant5", "tenant5-app1", "app1", 3)
}
