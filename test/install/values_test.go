//go:build e2e

package install

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// monitoringKinds stand in for the CRDs of the Prometheus operator: the API server checks the metadata of such objects.
const monitoringKinds = `
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: servicemonitors.monitoring.coreos.com}, spec: {
  group: monitoring.coreos.com, scope: Namespaced, names: {kind: ServiceMonitor, listKind: ServiceMonitorList, plural: servicemonitors, singular: servicemonitor},
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: prometheusrules.monitoring.coreos.com}, spec: {
  group: monitoring.coreos.com, scope: Namespaced, names: {kind: PrometheusRule, listKind: PrometheusRuleList, plural: prometheusrules, singular: prometheusrule},
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`

// templated renders values as a release in [suite.System].
func templated(t *testing.T, release string, values map[string]any) suite.Result {
	t.Helper()
	text, err := yaml.Marshal(values)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	return helm(t).Run(t, "", "template", release, chart, "--namespace", suite.System, "--values", file)
}

// sets is how many sets of values are tried.
const sets = 100

// requireAccepted asks an API server about objects; it has asked before about those in seen.
func requireAccepted(t *testing.T, c *cluster.Cluster, objects []*unstructured.Unstructured, seen map[string]bool, about string) {
	t.Helper()
	for _, object := range objects {
		text, err := json.Marshal(object)
		require.NoError(t, err)
		if seen[string(text)] {
			continue
		}
		seen[string(text)] = true
		err = c.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("helm"), client.DryRunAll)
		require.NoError(t, err, "%s %s of %s", object.GetKind(), object.GetName(), about)
	}
}

func TestTheAPIServerAcceptsWhatTheChartMakesOfManySetsOfValues(t *testing.T) {
	e := suite.ForTest(t)
	c, err := e.Cluster(t.Context(), cluster.Options{WithoutGatekeeper: true, WithoutWebhooks: true})
	require.NoError(t, err)
	gatekeeper, err := cluster.DecodeFile(suite.MustTool(t, suite.ClusterTools, "gatekeeper.yaml"))
	require.NoError(t, err)
	require.NoError(t, c.Apply(suite.Within(t), suite.Only(gatekeeper, "CustomResourceDefinition")...))
	require.NoError(t, c.Apply(suite.Within(t), decoded(t, monitoringKinds)...))
	for _, name := range []string{suite.System, "gatekeeper-system", "team-a", "team-b"} {
		require.NoError(t, c.Apply(suite.Within(t), suite.Namespace(name)), name)
	}

	text, err := os.ReadFile("testdata/values/valid.yaml")
	require.NoError(t, err)
	var lists map[string][]map[string]any
	require.NoError(t, yaml.UnmarshalStrict(text, &lists))
	releases := []string{"landwaiter", "my.release", "1", "true", strings.Repeat("a", 53)}
	random := rand.New(rand.NewPCG(1, 2))
	used, seen, first := map[string]int{}, map[string]bool{}, map[string]int{}
	for name, list := range lists {
		require.Less(t, len(list), sets)
		first[name] = random.IntN(len(list))
	}
	for i := range sets {
		values := map[string]any{"crds": map[string]any{"install": false}, "personas": map[string]any{"create": false}} // unless an entry creates them
		for _, name := range slices.Sorted(maps.Keys(lists)) {
			if one := (first[name] + i) % (len(lists[name]) + 1); one < len(lists[name]) { // each set leaves out some
				values = overlaid(values, lists[name][one])
				used[fmt.Sprintf("%s %d", name, one)]++
			}
		}
		release := releases[i%len(releases)]
		text, err := yaml.Marshal(values)
		require.NoError(t, err)
		about := fmt.Sprintf("set %d of release %s:\n%s", i, release, text)
		result := templated(t, release, values)
		require.Zero(t, result.Code, "%s\n%s", about, result.Stderr)
		objects := decoded(t, result.Stdout)
		requireValidNames(t, objects)
		requireAccepted(t, c, objects, seen, about)
	}
	for name, list := range lists {
		for i := range list {
			require.NotZero(t, used[fmt.Sprintf("%s %d", name, i)], "no set has entry %d of %s", i, name)
		}
	}
}

func TestInvalidValuesAreRefusedByTheirNames(t *testing.T) {
	text, err := os.ReadFile("testdata/values/invalid.yaml")
	require.NoError(t, err)
	var cases [][2]any
	require.NoError(t, yaml.UnmarshalStrict(text, &cases))
	require.GreaterOrEqual(t, len(cases), 100)
	for _, group := range apart(cases) {
		values := map[string]any{}
		for _, c := range group {
			maps.Copy(values, c[0].(map[string]any))
		}
		result := templated(t, "landwaiter", values)
		require.NotZero(t, result.Code, "%v", values)
		for _, c := range group {
			require.Contains(t, result.Stderr, c[1].(string), "%v", c[0])
		}
	}
}

// apart groups cases that the schema refuses so that no group has a value of the chart twice: Helm names them all at once.
func apart(cases [][2]any) (groups [][][2]any) {
	var taken []map[string]any
	for _, c := range cases {
		values := c[0].(map[string]any)
		at := slices.IndexFunc(taken, func(others map[string]any) bool {
			return others != nil && strings.HasPrefix(c[1].(string), "/") &&
				!slices.ContainsFunc(slices.Collect(maps.Keys(values)), func(key string) bool { _, ok := others[key]; return ok })
		})
		if at < 0 {
			at = len(groups)
			groups, taken = append(groups, nil), append(taken, map[string]any{})
			if !strings.HasPrefix(c[1].(string), "/") {
				taken[at] = nil // what a template refuses is named alone
			}
		}
		groups[at] = append(groups[at], c)
		if taken[at] != nil {
			maps.Copy(taken[at], values)
		}
	}
	return groups
}

// wrong returns a value of a wrong type for each value of a schema, below the defaults, and their paths.
func wrong(schema map[string]any, path string, paths *[]string) any {
	properties, _ := schema["properties"].(map[string]any)
	if len(properties) == 0 {
		*paths = append(*paths, path)
		if schema["type"] == "boolean" {
			return "true"
		}
		return true
	}
	values := map[string]any{"typo": 1}
	*paths = append(*paths, path+"': additional properties 'typo' not allowed")
	for name, property := range properties {
		if name != "global" && name != "enabled" {
			values[name] = wrong(property.(map[string]any), path+"/"+name, paths)
		}
	}
	return values
}

func TestAWrongTypeOfEachValueAndAWordThatIsNoneAreRefusedByName(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(chart, "values.schema.json"))
	require.NoError(t, err)
	var schema map[string]any
	require.NoError(t, json.Unmarshal(text, &schema))
	var paths []string
	result := templated(t, "landwaiter", wrong(schema, "", &paths).(map[string]any))
	require.Greater(t, len(paths), 100)
	for _, path := range paths {
		require.Contains(t, result.Stderr, "at '"+path)
	}
}

// emptied returns the values of a schema that are true or false, numbers or lists of names, each without a value, and the lines that
// name them.
func emptied(schema map[string]any, path string, lines map[string][]string) map[string]any {
	values := map[string]any{}
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		property := property.(map[string]any) //nolint:forcetypeassert // a panic fails the test too
		switch {
		case name == "global" || path == "" && name == "enabled":
		case property["type"] == "boolean" || path == "/clientCA" && name == "names" || path == "/provider" && strings.HasSuffix(name, "Seconds"):
			values[name] = nil
			lines[path] = append(lines[path], name)
		case property["properties"] != nil:
			if below := emptied(property, path+"/"+name, lines); len(below) > 0 {
				values[name] = below
			}
		}
	}
	return values
}

// A key with nothing behind its colon is null, and Helm drops the default of such a key: a value that is true by default would be
// false without a word.
func TestAValueThatIsLeftEmptyIsNotTakenForFalse(t *testing.T) {
	for _, c := range []struct {
		folder string
		least  int
	}{{chart, 30}, {tenantChart, 2}} {
		text, err := os.ReadFile(filepath.Join(c.folder, "values.schema.json"))
		require.NoError(t, err)
		var schema map[string]any
		require.NoError(t, json.Unmarshal(text, &schema))
		lines, count := map[string][]string{}, 0
		values, err := yaml.Marshal(emptied(schema, "", lines))
		require.NoError(t, err)
		refused := helm(t).Run(t, string(values), "template", "landwaiter", c.folder, "--values", "-")
		require.NotZero(t, refused.Code)
		for path, names := range lines {
			for _, name := range names {
				require.Regexp(t, `at '`+path+`': missing propert\w+ [^\n]*'`+name+`'`, refused.Stderr)
				count++
			}
		}
		require.Greater(t, count, c.least-1)
	}
	refused := helm(t).Run(t, "tenants:\n", "template", "landwaiter", tenantChart, "--values", "-")
	require.Contains(t, refused.Stderr, "missing property 'tenants'", "Helm would delete every namespace")
}
