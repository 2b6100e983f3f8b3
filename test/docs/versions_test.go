package docs

import (
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
		for _, line := range regexp.MustCompile(`(?m)^  ([a-z]+)\)`).FindAllStringSubmatch(cases, -1) {
			known = append(known, line[1])
		}
		require.ElementsMatch(t, known, named, variable)
	}
	minor := func(module string) int {
		return number(t, "test/tools/"+module+"/go.mod", `k8s\.io/kubernetes v1\.(\d+)\.`)
	}
	require.Less(t, minor("oldest"), minor("middle"))
	require.Less(t, minor("middle"), minor("cluster"))
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
	require.Equal(t, values.ValidatingWebhookMatchConditions, values.MutatingWebhookMatchConditions)
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
