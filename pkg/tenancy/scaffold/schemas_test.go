package scaffold

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What flux bootstrap writes has the CRDs of Flux; this one is as short as it can be.
const sourceCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: helmreleases.helm.toolkit.fluxcd.io}
spec:
  group: helm.toolkit.fluxcd.io
  names: {kind: HelmRelease, plural: helmreleases}
  scope: Namespaced
  versions:
  - name: v2
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [interval]
            properties:
              interval: {type: string}
              releaseName: {type: string, pattern: '^[a-z]+$'}
              maxHistory: {type: integer}
              suspend: {type: boolean}
              serviceAccountName: {type: string}
              timeout: {x-kubernetes-int-or-string: true}
              driftDetection: {type: object, properties: {mode: {type: string, enum: [enabled, warn, disabled]}}}
              dependsOn: {type: array, items: {type: object, required: [name], properties: {name: {type: string}, namespace: {type: string}}}}
              values: {x-kubernetes-preserve-unknown-fields: true}
              commonMetadata: {type: object, properties: {labels: {type: object, additionalProperties: {type: string}}}}
`

func TestObjectsMustFitTheCRDsThatTheTreeHas(t *testing.T) {
	for about, c := range map[string]struct{ spec, says string }{
		"sound": {"interval: 1m, maxHistory: 3, suspend: false, timeout: 5, values: {any: [thing, 1]}, driftDetection: {mode: warn}, " +
			"dependsOn: [{name: agent, namespace: monitoring}], commonMetadata: {labels: {any: x}}", ""},
		"an unknown field further in": {"interval: 1m, driftDetection: {mod: warn}", "there is no field spec.driftDetection.mod"},
		"a value that is not listed": {"interval: 1m, driftDetection: {mode: always}",
			`spec.driftDetection.mode is "always", and must be one of [enabled warn disabled]`},
		"a number for a text":           {"interval: 10", `spec.interval is "10", and must be of type string`},
		"a text for a number":           {"interval: 1m, maxHistory: three", `spec.maxHistory is "three", and must be of type integer`},
		"a text for a switch":           {"interval: 1m, suspend: 'yes'", "write true or false, without quotes"},
		"a text that does not match":    {"interval: 1m, releaseName: Agent", `spec.releaseName is "Agent", and must match ^[a-z]+$`},
		"a missing field of an entry":   {"interval: 1m, dependsOn: [{namespace: monitoring}]", "spec.dependsOn[0].name is missing"},
		"a list for an object":          {"interval: 1m, driftDetection: [warn]", "must be of type object"},
		"an object for a list":          {"interval: 1m, dependsOn: {name: agent}", "must be of type array"},
		"a label that is no text":       {"interval: 1m, commonMetadata: {labels: {any: 1}}", "spec.commonMetadata.labels.any"},
		"a variable that Flux replaces": {"interval: 1m, maxHistory: '${history}'", ""},
	} {
		t.Run(about, func(t *testing.T) {
			dir := small(t)
			put1(t, dir, "clusters/staging/flux-system/gotk-components.yaml", sourceCRD)
			put1(t, dir, "clusters/staging/agent.yaml", "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: agent, namespace: "+
				"monitoring}\nspec: {serviceAccountName: agent, "+c.spec+"}\n")
			report, err := Check(t.Context(), dir, CheckOptions{})
			require.NoError(t, err)
			var found []string
			for _, f := range report.Findings {
				if f.File == "clusters/staging/agent.yaml" && f.ID == "ObjectInvalid" {
					found = append(found, f.Message)
				}
			}
			if c.says == "" {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			require.Contains(t, found[0], "HelmRelease monitoring/agent: ")
			require.Contains(t, found[0], c.says)
		})
	}
}

// The files of flux bootstrap, which have the CRDs, are not there yet.
func TestValuesOfFluxAndOfConstraintsAreCheckedWithoutCRDs(t *testing.T) {
	const tenants = "clusters/staging/tenants.yaml"
	for name, c := range map[string]struct{ file, old, replacement, says string }{
		"a duration": {tenants, "interval: 10m", "interval: 10x", `spec.interval is "10x", which is no duration`},
		"a switch":   {tenants, "prune: true", "prune: 'yes'", `spec.prune is the text "yes"`},
		"a version": {"infrastructure/gatekeeper/release.yaml", "version: " + gatekeeperVersion, "version: 3.23.O",
			`spec.chart.spec.version is "3.23.O", which is neither a version nor a range`},
		"the mode of all": {"infrastructure/policies/kustomization.yaml", "value: dryrun", "value: dryrn",
			`spec.enforcementAction is "dryrn", for which Gatekeeper does nothing`},
		"a kind of values": {tenants, "  prune: true", "  postBuild: {substituteFrom: [{kind: Secrt, name: x}]}\n  prune: true",
			`spec.postBuild.substituteFrom[0].kind is "Secrt", and must be ConfigMap or Secret`},
		"a duration by variable": {tenants, "interval: 10m", "interval: ${interval}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := small(t)
			rewrite(t, dir, c.file, c.old, c.replacement)
			var says []string
			for _, f := range found(t, dir) {
				says = append(says, f.Message)
			}
			require.Equal(t, c.says != "", len(says) > 0, "%v", says)
			require.Contains(t, strings.Join(says, "\n"), c.says)
		})
	}
}

// The templates of the library are in the tree, so what its own constraints say fits them.
func TestConstraintsMustFitTheirTemplates(t *testing.T) {
	dir := folder(t)
	tree, err := NewPlatform(Platform{Environments: []string{"staging"}, GitHubOrg: "example"})
	require.NoError(t, err)
	_, err = Write(dir, tree, WriteOptions{})
	require.NoError(t, err)
	for _, folder := range []string{"crds", "guardrails"} { // they take long
		require.NoError(t, os.RemoveAll(filepath.Join(dir, "infrastructure", folder)))
		put1(t, dir, "infrastructure/"+folder+"/kustomization.yaml", kustomization("", nil, nil))
	}
	report, err := Check(t.Context(), dir, CheckOptions{})
	require.NoError(t, err)
	require.Empty(t, report.Findings)
	rewrite(t, dir, "infrastructure/policies/images/verified-images.yaml", "provider: landwaiter-verdict", "provder: landwaiter-verdict")
	report, err = Check(t.Context(), dir, CheckOptions{})
	require.NoError(t, err)
	require.Len(t, report.Findings, 1, "%v", report.Findings)
	require.Equal(t, "infrastructure/policies/images/verified-images.yaml", report.Findings[0].File)
	require.Contains(t, report.Findings[0].Message, "spec.parameters.prov")
}

// Flux has new fields with each version, before this program knows them.
func TestFieldsOfANewerFluxAreNoErrors(t *testing.T) {
	near := func(name string, _ []string) (string, bool) { return "interval", name == "intervall" }
	newer := strings.Replace(sourceCRD, "releaseName: {type: string, pattern: '^[a-z]+$'}", "postRenderStrategy: {type: string, enum: [nohooks, combined]}", 1)
	for name, c := range map[string]struct{ fields, definition, says string }{
		"unknown": {"postRenderStrategy: combined", "", "note FieldUnknown HelmRelease flux-system/more: spec.postRenderStrategy is no field of " +
			"HelmRelease in the versions of Flux that this program knows: make sure that your version has it"},
		"misspelt": {"intervall: 1m", "", "error ObjectInvalid HelmRelease flux-system/more: there is no field spec.intervall: remove it, or " +
			"correct its name"},
		"of the tree's own CRD": {"postRenderStrategy: combined", newer, ""},
		"not as its own CRD has it": {"postRenderStrategy: combine", newer, `error ObjectInvalid HelmRelease flux-system/more: spec.postRenderStrategy is ` +
			`"combine", and must be one of [nohooks combined]: correct it`},
		"not of the tree's own CRD": {"postRenderStrategy: combined", sourceCRD,
			"error ObjectInvalid HelmRelease flux-system/more: there is no field spec.postRenderStrategy: remove it, or correct its name"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := small(t)
			const file = "clusters/staging/more.yaml"
			put1(t, dir, file, "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: more, namespace: flux-system}\nspec: {interval: 1m, "+
				"serviceAccountName: more, "+c.fields+"}\n")
			put1(t, dir, "clusters/staging/flux-system/gotk-components.yaml", c.definition)
			report, err := Check(t.Context(), dir, CheckOptions{Near: near})
			require.NoError(t, err)
			var found []string
			for _, f := range report.Findings {
				if f.File == file {
					found = append(found, string(f.Severity)+" "+f.ID+" "+f.Message)
				}
			}
			require.Equal(t, c.says, strings.Join(found, "\n"))
		})
	}
}
