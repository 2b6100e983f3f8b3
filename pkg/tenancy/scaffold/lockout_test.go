package scaffold

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// asked checks a small tree with a constraint of the given spec, where nothing may be allowed
// but what is listed.
func asked(t *testing.T, spec string, allowed ...needed) []resource.Finding {
	t.Helper()
	dir := small(t)
	put1(t, dir, "clusters/staging/constraint.yaml", "apiVersion: constraints.gatekeeper.sh/v1beta1\nkind: VerifiedImages\nmetadata: {name: "+
		"ours}\nspec: "+spec+"\n")
	put1(t, dir, "clusters/staging/app.yaml", `apiVersion: apps/v1
kind: Deployment
metadata: {name: agent, namespace: monitoring}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: agent, image: "registry.example.com/agent:v1"}], initContainers: [{name: init, image: "registry.example.com/init:v1"}]}
`)
	report, err := Check(t.Context(), dir, CheckOptions{MayAllow: func(context.Context, string) (func(namespace, image string) bool, error) {
		return func(namespace, image string) bool {
			for _, n := range allowed {
				if n.namespace == namespace && n.image == image {
					return true
				}
			}
			return false
		}, nil
	}})
	require.NoError(t, err)
	return report.Findings
}

func TestKnowsWhatAConstraintDenies(t *testing.T) {
	some := needed{} // some image may be allowed in some namespace
	agent, container := needed{namespace: "monitoring", image: "registry.example.com/agent:v1"},
		needed{namespace: "monitoring", image: "registry.example.com/init:v1"}
	flux := needed{namespace: "flux-system", image: fluxImage}
	const rest = "excludedNamespaces: [gatekeeper-system, landwaiter-system]"
	for name, c := range map[string]struct {
		spec    string
		allowed []needed
		denied  []string
	}{
		"everything":             {"{match: {" + rest + "}}", nil, []string{"denies every image, because"}},
		"nothing that is needed": {"{match: {" + rest + "}}", []needed{some, agent, container, flux}, nil},
		"Flux": {"{match: {" + rest + "}}", []needed{some, agent, container},
			[]string{"image ghcr.io/fluxcd/kustomize-controller of Flux"}},
		"a container": {"{match: {" + rest + "}}", []needed{some, container, flux},
			[]string{"image registry.example.com/agent:v1 of Deployment monitoring/agent"}},
		"what a chart installs": {"{match: {excludedNamespaces: [gatekeeper-system]}}", []needed{some, agent, container, flux},
			[]string{"every image of HelmRelease flux-system/landwaiter"}},
		"nothing for a rehearsal":        {"{enforcementAction: dryrun, match: {" + rest + "}}", nil, nil},
		"nothing by audits alone":        {"{enforcementAction: scoped, scopedEnforcementActions: [{action: warn}]}", nil, nil},
		"by a scoped action":             {"{enforcementAction: scoped, scopedEnforcementActions: [{action: deny}]}", nil, []string{"denies every image, because"}},
		"nothing of namespaces left out": {"{match: {excludedNamespaces: ['*-system', 'moni*', '*it*']}}", []needed{some}, nil},
		"nothing of images left out": {"{match: {" + rest + "}, parameters: {exemptImages: ['registry.example.com/*', ghcr.io/fluxcd/kustomize-controller]}}",
			[]needed{some}, nil},
		"one namespace":                    {"{match: {namespaces: [flux-system]}}", nil, []string{"image ghcr.io/fluxcd/kustomize-controller of Flux"}},
		"nothing of what labels may leave": {"{match: {namespaceSelector: {matchLabels: {a: b}}}}", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			found := withoutNotes(asked(t, c.spec, c.allowed...)) // nothing creates the namespace of the agent
			require.Len(t, found, len(c.denied), "%v", found)
			for i, text := range c.denied {
				require.Equal(t, "clusters/staging/constraint.yaml", found[i].File)
				require.Contains(t, found[i].Message, "VerifiedImages ours")
				require.Contains(t, found[i].Message, text)
			}
		})
	}
}

// Pods of Flux must start while Landwaiter is down, unless the platform wants it otherwise.
func TestTheConstraintForFluxDeniesOnlyWhereItsNamespaceIsNotExempt(t *testing.T) {
	system, both, alone := []string{"flux-system"}, []string{imagesSet, fluxImagesSet}, []string{fluxImagesSet}
	for about, c := range map[string]struct {
		sets, exempt []string
		enforcement  string
		want         string // the action in Flux's namespace; empty if the constraint for all asks
	}{
		"dryrun at first":      {both, system, "", "dryrun"},
		"warn":                 {both, system, "warn", "warn"},
		"deny only warns":      {both, system, "deny", "warn"},
		"not exempt":           {both, []string{"kube-system"}, "deny", ""},
		"not exempt, by alone": {alone, []string{"kube-system"}, "deny", "deny"},
	} {
		t.Run(about, func(t *testing.T) {
			dir := light(t, example{platform: &Platform{Constraints: c.sets, ExemptNamespaces: c.exempt, Enforcement: c.enforcement}}.write(t))
			got := ""
			for _, o := range loaded(t, dir).build("infrastructure/policies").objects {
				if o.GetName() == "verified-images-flux" {
					got = o.Object["spec"].(map[string]any)["enforcementAction"].(string)
				}
			}
			require.Equal(t, c.want, got)
		})
	}
}
