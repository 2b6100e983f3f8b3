package docs

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// number returns the minor version that a pattern finds in a file.
func number(t *testing.T, file, pattern string) int {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(read(t, file))
	require.NotNil(t, found, "%s has no %s", file, pattern)
	minor, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	return minor
}

// pinned returns the version of a module that a go.mod file requires, without the v.
func pinned(t *testing.T, file, module string) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^(?:\t|require )` + regexp.QuoteMeta(module) + ` v(\S+)`).FindStringSubmatch(read(t, file))
	require.NotNil(t, found, "%s does not require %s", file, module)
	return found[1]
}

func TestOldestVersionsAreThoseThatAreTested(t *testing.T) {
	const chart = "charts/landwaiter/Chart.yaml"
	kubernetes := number(t, chart, `kubeVersion: ">=1\.(\d+)\.0-0"`)
	require.Equal(t, kubernetes, number(t, "test/tools/oldest/go.mod", `k8s\.io/kubernetes v1\.(\d+)\.`))
	require.Equal(t, kubernetes, number(t, "docs/howto/install.md", `Kubernetes 1\.(\d+)`))
	gatekeeper := number(t, chart, `gatekeeper-version: ">=3\.(\d+)\.0"`)
	require.GreaterOrEqual(t, gatekeeper, number(t, "test/tools/oldest/gatekeeper/go.mod", `gatekeeper/v3 v3\.(\d+)\.`), "tested with one that is as old")
	require.LessOrEqual(t, gatekeeper, number(t, "test/tools/cluster/go.mod", `gatekeeper/v3 v3\.(\d+)\.`))
	require.Equal(t, gatekeeper, number(t, "docs/howto/install.md", `Gatekeeper 3\.(\d+)`))
}

// The forge runs what make nightly PART=versions can build: each Kubernetes with each Gatekeeper.
func TestTheForgeTestsEveryPairOfVersions(t *testing.T) {
	var workflow struct {
		Jobs map[string]struct {
			Strategy struct {
				Matrix struct{ Kubernetes, Gatekeeper []string }
			}
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, ".github/workflows/ci.yaml")), &workflow))
	matrix := workflow.Jobs["versions"].Strategy.Matrix
	for variable, named := range map[string][]string{"KUBERNETES": matrix.Kubernetes, "GATEKEEPER": matrix.Gatekeeper} {
		_, cases, found := strings.Cut(read(t, "test/tools/nightly.sh"), "case ${"+variable+":-} in\n")
		require.True(t, found, variable)
		cases, _, _ = strings.Cut(cases, "  *)")
		var known []string
		for _, line := range regexp.MustCompile(`(?m)^  ([a-z |]+)\)`).FindAllStringSubmatch(cases, -1) {
			known = append(known, strings.Split(line[1], " | ")...)
		}
		require.ElementsMatch(t, known, named, variable)
	}
	minor := func(module, of string) int { return number(t, "test/tools/"+module+"/go.mod", of+` v\d\.(\d+)\.`) }
	const kubernetes, gatekeeper = `k8s\.io/kubernetes`, `gatekeeper/v3`
	require.Less(t, minor("oldest", kubernetes), minor("middle", kubernetes))
	require.Less(t, minor("middle", kubernetes), minor("cluster", kubernetes))
	require.Less(t, minor("oldest/gatekeeper", gatekeeper), minor("middle/gatekeeper", gatekeeper))
	require.Less(t, minor("middle/gatekeeper", gatekeeper), minor("cluster", gatekeeper))
}

// The commands that free a cluster exempt what Gatekeeper's values exempt.
func TestStuckClusterIsFreedWithTheExemptionsOfTheValues(t *testing.T) {
	type match struct{ Name, Expression string }
	var values struct {
		ValidatingWebhookExemptNamespacesLabels, MutatingWebhookExemptNamespacesLabels map[string][]string
		ValidatingWebhookMatchConditions, MutatingWebhookMatchConditions               []match
		ValidatingWebhookFailurePolicy, MutatingWebhookFailurePolicy                   string
		ControllerManager                                                              struct{ ExemptNamespaces []string }
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "config/gatekeeper/values.yaml")), &values))
	const label = "kubernetes.io/metadata.name"
	namespaces := values.ValidatingWebhookExemptNamespacesLabels[label]
	require.Contains(t, namespaces, "kube-system")
	require.Equal(t, values.ValidatingWebhookExemptNamespacesLabels, values.MutatingWebhookExemptNamespacesLabels)
	require.Equal(t, values.ValidatingWebhookMatchConditions, values.MutatingWebhookMatchConditions[:1])
	require.Equal(t, namespaces, values.ControllerManager.ExemptNamespaces)
	require.Equal(t, "Fail", values.ValidatingWebhookFailurePolicy)
	require.Equal(t, "Fail", values.MutatingWebhookFailurePolicy)
	require.Len(t, values.ValidatingWebhookMatchConditions, 1)

	page := read(t, "docs/operate/cold-start.md")
	require.Contains(t, page, `"values": ["`+strings.Join(namespaces, `", "`)+`"]`)
	condition := values.ValidatingWebhookMatchConditions[0]
	require.Contains(t, page, `"name": "`+condition.Name+`"`)
	require.Contains(t, page, strconv.Quote(condition.Expression))
}

// The page names the versions that the modules of the tests pin, and no others.
func TestTheCompatibilityPageHasTheVersionsThatAreBuilt(t *testing.T) {
	const cluster, oldest, gatekeeper = "test/tools/cluster/go.mod", "test/tools/oldest/go.mod", "test/tools/oldest/gatekeeper/go.mod"
	const module = "github.com/open-policy-agent/gatekeeper/v3"
	page := read(t, "docs/reference/compatibility.md")
	for row, modules := range map[string][][2]string{
		"Kubernetes":                {{oldest, "k8s.io/kubernetes"}, {cluster, "k8s.io/kubernetes"}},
		"Gatekeeper":                {{gatekeeper, module}, {cluster, module}},
		"Helm":                      {{"test/tools/charts/go.mod", "helm.sh/helm/v3"}, {"test/tools/charts/go.mod", "helm.sh/helm/v4"}},
		"kustomize":                 {{"test/tools/charts/go.mod", "sigs.k8s.io/kustomize/kustomize/v5"}},
		"cosign":                    {{"test/tools/go.mod", "github.com/sigstore/cosign/v2"}, {"test/tools/go.mod", "github.com/sigstore/cosign/v3"}},
		"oras":                      {{"test/tools/oras/go.mod", "oras.land/oras"}},
		"Fulcio":                    {{"test/tools/sigstore/go.mod", "github.com/sigstore/fulcio"}},
		"Rekor (tiles)":             {{"test/tools/sigstore/go.mod", "github.com/sigstore/rekor-tiles/v2"}},
		"Timestamp authority":       {{"test/tools/sigstore/go.mod", "github.com/sigstore/timestamp-authority/v2"}},
		"Flux source-controller":    {{"test/tools/flux/go.mod", "github.com/fluxcd/source-controller"}},
		"Flux kustomize-controller": {{"test/tools/flux/go.mod", "github.com/fluxcd/kustomize-controller"}},
		"Flux helm-controller":      {{"test/tools/flux/go.mod", "github.com/fluxcd/helm-controller"}},
	} {
		found := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(row) + ` \| (.+) \|$`).FindStringSubmatch(page)
		require.NotNil(t, found, row)
		var versions []string
		for _, module := range modules {
			versions = append(versions, pinned(t, module[0], module[1]))
		}
		require.Equal(t, versions, regexp.MustCompile(`\d+\.\d+\.\d+`).FindAllString(found[1], -1), row)
	}
	require.Contains(t, page, fmt.Sprintf("each of Kubernetes %s, %s and %s with each of Gatekeeper %s, %s and %s.",
		pinned(t, oldest, "k8s.io/kubernetes"), pinned(t, "test/tools/middle/go.mod", "k8s.io/kubernetes"), pinned(t, cluster, "k8s.io/kubernetes"),
		pinned(t, gatekeeper, module), pinned(t, "test/tools/middle/gatekeeper/go.mod", module), pinned(t, cluster, module)))
	require.Contains(t, page, "notation-go "+pinned(t, "go.mod", "github.com/notaryproject/notation-go"))
}
