//go:build e2e

package install

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

var rulesFile = chart + "/files/rules.yaml"

// promtool runs Debian's promtool, which must succeed.
func promtool(t *testing.T, stdin string, args ...string) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	require.NoError(t, err, "promtool is missing; run make e2e, or test/tools/packages.sh prometheus (Debian: apt-get install prometheus)")
	r := suite.Program{Path: path}.Run(t, stdin, args...)
	require.Zero(t, r.Code, "%s%s", r.Stdout, r.Stderr)
}

// rule is one alert of the file.
type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func rules(t *testing.T) map[string]rule {
	t.Helper()
	text, err := os.ReadFile(rulesFile)
	require.NoError(t, err)
	var file struct {
		Groups []struct {
			Rules []rule `json:"rules"`
		} `json:"groups"`
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	all := map[string]rule{}
	for _, group := range file.Groups {
		for _, r := range group.Rules {
			require.NotContains(t, all, r.Alert)
			all[r.Alert] = r
		}
	}
	require.Greater(t, len(all), 10)
	return all
}

// scenario is one unit test of an alert. Series are in promtool's notation, a value a
// minute: "0+6x40" rises by 6, forty times.
type scenario struct {
	name   string
	series map[string]string
	at     string
	fires  map[string]string // labels besides severity; nil: it does not fire
	says   string            // the summary; each is another way of one that fires
}

func outcomes(metric string, values map[string]string) map[string]string {
	series := map[string]string{}
	for outcome, value := range values {
		series[metric+`{endpoint="verify",outcome="`+outcome+`"}`] = value
	}
	return series
}

// audits returns the outcomes of audits beside admissions that are all answered.
func audits(values map[string]string) map[string]string {
	series := outcomes("landwaiter_provider_requests_total", map[string]string{"answered": "0+600x40", "undecided": "0x40"})
	for outcome, value := range values {
		series[`landwaiter_provider_requests_total{endpoint="audit_verify",outcome="`+outcome+`"}`] = value
	}
	return series
}

// latency returns the buckets of requests to an endpoint that all took as long.
func latency(endpoint, below, above string) map[string]string {
	bucket := func(le string) string {
		return `landwaiter_provider_request_duration_seconds_bucket{endpoint="` + endpoint + `",le="` + le + `"}`
	}
	return map[string]string{bucket(below): "0x60", bucket(above): "0+60x60", bucket("+Inf"): "0+60x60"}
}

func answers(values map[string]string) map[string]string {
	series := map[string]string{}
	for outcome, value := range values {
		series[`landwaiter_registry_requests_total{registry="r.example.com",stage="list",outcome="`+outcome+`"}`] = value
	}
	return series
}

// differing returns the hashes of two replicas.
func differing(a, b string) map[string]string {
	return map[string]string{`landwaiter_configuration_hash{scope="cluster",instance="a"}`: a, `landwaiter_configuration_hash{scope="cluster",instance="b"}`: b,
		`landwaiter_configuration_hash{scope="namespaces",instance="a"}`: "1+1x60", `landwaiter_configuration_hash{scope="namespaces",instance="b"}`: "1+1x60"}
}

// scenarios has at least one that fires and one that does not for each alert.
func scenarios() map[string][]scenario {
	requests, none := "landwaiter_provider_requests_total", map[string]string{}
	overloaded := func(namespace string) string {
		return `landwaiter_provider_images_overloaded_total{namespace="` + namespace + `"}`
	}
	notReady := func(kind, namespace string) string {
		return `landwaiter_resources_not_ready{kind="` + kind + `",namespace="` + namespace + `"}`
	}
	trustEnds := func(kind, namespace string) string {
		return `landwaiter_trust_expires_timestamp_seconds{kind="` + kind + `",namespace="` + namespace + `"}`
	}
	expiry, reload := "landwaiter_provider_certificate_expiry_timestamp_seconds", `landwaiter_tls_reload_errors_total{part="certificate"}`
	redis := "landwaiter_redis_commands_total"
	return map[string][]scenario{
		"LandwaiterReplicasDiffer": {
			{"one missed a change", differing("7x10 8x20", "7x30"), "12m", map[string]string{"scope": "cluster"}, "Replicas of Landwaiter serve different rules"},
			{"one misses all of many changes", differing("7+1x30", "7x30"), "12m", map[string]string{"scope": "cluster"},
				"Replicas of Landwaiter serve different rules"},
			{"one since its start", differing("8x30", "_x5 7x30"), "12m", map[string]string{"scope": "cluster"}, "Replicas of Landwaiter serve different rules"},
			{"all have the same", differing("7x10 8x20", "7x10 8x20"), "12m", nil, ""},
			{"one was scraped before a change", differing("7x10 8x20", "7x11 8x20"), "13m", nil, ""},
			{"many changes between scrapes", differing("7+1x30", "8+1x30"), "12m", nil, ""},
			{"one starts during many changes", differing("7+1x30", "_x9 15+1x30"), "11m", nil, ""},
			{"one is gone", differing("7x10 8x20", "7x10"), "20m", nil, ""},
			{"one replica", map[string]string{"landwaiter_configuration_hash": "7x10 8x20"}, "12m", nil, ""},
		},
		"LandwaiterTrustExpiring": {
			{"three weeks are left", map[string]string{trustEnds("ClusterTrustStore", "-"): "1814400x120"}, "90m", map[string]string{"kind": "ClusterTrustStore"},
				"The trust material of a ClusterTrustStore expires within 30 days, or has expired"},
			{"it has ended", map[string]string{trustEnds("ClusterStore", "-"): "60x120"}, "90m", map[string]string{"kind": "ClusterStore"},
				"The trust material of a ClusterStore expires within 30 days, or has expired"},
			{"forty days are left", map[string]string{trustEnds("ClusterTrustStore", "-"): "3456000x120"}, "90m", nil, ""},
			{"a team's", map[string]string{trustEnds("TrustStore", "team-a"): "60x120"}, "90m", nil, ""},
		},
		"LandwaiterRunningImagesDenied": {
			{"two of a team's",
				map[string]string{`landwaiter_running_images{namespace="team-a",outcome="fail"}`: "2x40",
					`landwaiter_running_images{namespace="team-b",outcome="pass"}`: "9x40"}, "20m",
				map[string]string{"namespace": "team-a"}, "2 running images in team-a would be denied now"},
			{"all pass",
				map[string]string{`landwaiter_running_images{namespace="team-a",outcome="pass"}`: "2x40",
					`landwaiter_running_images{namespace="team-a",outcome="fail"}`: "0x40"}, "20m", nil, ""},
			{"until a rollout ends", map[string]string{`landwaiter_running_images{namespace="team-a",outcome="fail"}`: "2x10 0x30"}, "20m", nil, ""},
		},
		"LandwaiterDown": {
			{"nothing is scraped", map[string]string{"up": "1x30"}, "6m", none, "Prometheus scrapes no replica of Landwaiter"},
			{"one of two replicas is left", map[string]string{`landwaiter_build_info{instance="a"}`: "1 _x30", `landwaiter_build_info{instance="b"}`: "1x30"},
				"20m", nil, ""},
			{"a restart", map[string]string{"landwaiter_build_info": "1x5 _x3 1x20"}, "12m", nil, ""},
		},
		"LandwaiterUndecided": {
			{"one in ten", outcomes(requests, map[string]string{"answered": "0+540x40", "undecided": "0+60x40"}), "25m", none, "10% of requests are undecided"},
			{"one in a hundred", outcomes(requests, map[string]string{"answered": "0+594x40", "undecided": "0+6x40"}), "25m", nil, ""},
			{"the only request of an hour", outcomes(requests, map[string]string{"answered": "0x60", "undecided": "0x10 1x50"}), "20m", nil, ""},
			{"nobody asks", outcomes(requests, map[string]string{"answered": "7x40", "undecided": "7x40"}), "25m", nil, ""},
		},
		"LandwaiterAuditsUndecided": {
			{"a registry is down", audits(map[string]string{"answered": "0+60x40", "undecided": "0+180x40", "overloaded": "0x40"}), "25m", none,
				"75% of the audit's requests are undecided, and Gatekeeper reports their images as violations"},
			{"no client certificate is trusted", audits(map[string]string{"answered": "5x40", "forbidden": "0+60x40"}), "25m", none,
				"100% of the audit's requests are undecided, and Gatekeeper reports their images as violations"},
			{"images are denied, and pods with too many images", audits(map[string]string{"answered": "0+540x40", "malformed": "0+60x40"}), "25m", nil, ""},
			{"a team has one image at a registry that is gone", audits(map[string]string{"answered": "0+594x40", "undecided": "0+6x40"}), "25m", nil, ""},
			{"only admissions are undecided", outcomes(requests, map[string]string{"answered": "0+60x40", "undecided": "0+600x40"}), "25m", nil, ""},
		},
		"LandwaiterSlow": {
			{"verify", latency("verify", "1", "2.5"), "25m", map[string]string{"endpoint": "verify"}, "One in a hundred requests to verify takes longer than 2.485s"},
			{"verdict", latency("verdict", "1", "2.5"), "25m", map[string]string{"endpoint": "verdict"},
				"One in a hundred requests to verdict takes longer than 2.485s"},
			{"mutate", latency("mutate", "0.5", "1"), "25m", map[string]string{"endpoint": "mutate"}, "One in a hundred requests to mutate takes longer than 995ms"},
			{"a second is slow, but in time", latency("verify", "0.5", "1"), "25m", nil, ""},
			{"known images", latency("mutate", "0.0005", "0.001"), "25m", nil, ""},
		},
		"LandwaiterOverloaded": {
			{"one of two namespaces", map[string]string{overloaded("team-a"): "0+6x60", overloaded("team-b"): "0x60"}, "30m", map[string]string{"namespace": "team-a"},
				"Namespace team-a asks for more images than its share"},
			{"a burst that is over", map[string]string{overloaded("team-a"): "0 100x60"}, "30m", nil, ""},
		},
		"LandwaiterRequestsRefused": {
			{"all the time", map[string]string{"landwaiter_provider_requests_overloaded_total": "0+6x60"}, "30m", none,
				"Landwaiter refuses requests because too many are in flight"},
			{"a burst that is over", map[string]string{"landwaiter_provider_requests_overloaded_total": "0 100x60"}, "30m", nil, ""},
		},
		"LandwaiterCertificateExpiring": {
			{"in ten days", map[string]string{expiry: "864000x200"}, "2h", none, "The serving certificate expires in 9d 22h 0m 0s"},
			{"on one of two replicas", map[string]string{expiry + `{instance="a"}`: "864000x200", expiry + `{instance="b"}`: "8640000x200"}, "2h", none,
				"The serving certificate expires in 9d 22h 0m 0s"},
			{"in a month", map[string]string{expiry: "2592000x200"}, "2h", nil, ""},
			{"there is none yet", map[string]string{expiry: "0x200"}, "2h", nil, ""},
		},
		"LandwaiterTLSReload": {
			{"the first error", map[string]string{reload: "0x10 1x30"}, "12m", map[string]string{"part": "certificate"}, "A changed certificate cannot be used"},
			{"a healthy start", map[string]string{reload: "0x60"}, "12m", nil, ""},
			{"errors of long ago", map[string]string{reload: "3x60"}, "30m", nil, ""},
		},
		"LandwaiterClientsRefused": {
			{"again and again", outcomes(requests, map[string]string{"forbidden": "0+6x60"}), "20m", none, "Clients without a trusted certificate send requests"},
			{"once", outcomes(requests, map[string]string{"forbidden": "0x10 1x50"}), "20m", nil, ""},
			{"other outcomes", outcomes(requests, map[string]string{"forbidden": "0x60", "answered": "0+600x60", "malformed": "0+6x60"}), "20m", nil, ""},
		},
		"LandwaiterPanics": {
			{"the first one", map[string]string{"landwaiter_provider_panics_total": "0x10 1x60"}, "12m", none, "Landwaiter panicked"},
			{"none for two hours", map[string]string{"landwaiter_provider_panics_total": "1x200"}, "2h", nil, ""},
		},
		"LandwaiterClusterResourcesNotReady": {
			{"of a kind", map[string]string{notReady("ClusterStore", "-"): "2x60", notReady("ClusterVerifier", "-"): "0x60"}, "20m",
				map[string]string{"kind": "ClusterStore"}, "2 ClusterStore objects are not ready"},
			{"those of a team are the team's", map[string]string{notReady("ClusterStore", "-"): "0x60", notReady("Store", "team-a"): "5x60"}, "20m", nil, ""},
			{"for a moment", map[string]string{notReady("ClusterStore", "-"): "0x5 1x5 0x60"}, "20m", nil, ""},
		},
		"LandwaiterRegistryErrors": {
			{"one in five", answers(map[string]string{"ok": "0+400x40", "not_found": "0+80x40", "server_error": "0+60x40", "timeout": "0+60x40"}), "25m",
				map[string]string{"registry": "r.example.com"}, "20% of requests to registry r.example.com fail"},
			{"images without signatures, and tokens",
				answers(map[string]string{"ok": "0+100x40", "not_found": "0+300x40", "unauthorized": "0+300x40", "canceled": "0+50x40"}), "25m", nil, ""},
			{"the only request of an hour", answers(map[string]string{"timeout": "0x10 1x50"}), "20m", nil, ""},
		},
		"LandwaiterRedisDown": {
			{"it does not answer", outcomes(redis, map[string]string{"failure": "0+6x60", "skipped": "0+60x60", "hit": "0x60"}), "30m", none,
				"Most commands to Redis fail"},
			{"some fail", outcomes(redis, map[string]string{"failure": "0+6x60", "skipped": "0x60", "hit": "0+600x60"}), "30m", nil, ""},
		},
		"LandwaiterRedisForged": {
			{"the first value", outcomes(redis, map[string]string{"unopened": "0x10 1x60", "hit": "0+600x60"}), "12m", none,
				"Redis contains values that Landwaiter did not write"},
			{"hits and misses", outcomes(redis, map[string]string{"unopened": "0x60", "hit": "0+600x60", "miss": "0+600x60"}), "12m", nil, ""},
		},
	}
}

// unit is a scenario as promtool reads it.
func (s scenario) unit(r rule) map[string]any {
	var series []map[string]string
	for _, name := range slices.Sorted(maps.Keys(s.series)) {
		series = append(series, map[string]string{"series": name, "values": s.series[name]})
	}
	expected := []any{}
	if s.fires != nil {
		labels, annotations := maps.Clone(r.Labels), maps.Clone(r.Annotations)
		maps.Copy(labels, s.fires)
		annotations["summary"] = s.says
		expected = append(expected, map[string]any{"exp_labels": labels, "exp_annotations": annotations})
	}
	return map[string]any{"interval": "1m", "name": r.Alert + ": " + s.name, "input_series": series,
		"alert_rule_test": []any{map[string]any{"eval_time": s.at, "alertname": r.Alert, "exp_alerts": expected}}}
}

// write writes a test file for promtool, and returns its path.
func write(t *testing.T, units ...any) string {
	t.Helper()
	absolute, err := filepath.Abs(rulesFile)
	require.NoError(t, err)
	text, err := yaml.Marshal(map[string]any{"rule_files": []string{absolute}, "evaluation_interval": "1m", "tests": units})
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "test.yaml")
	require.NoError(t, os.WriteFile(name, text, 0o600))
	return name
}

func TestEachAlertFiresWhenItShouldAndOnlyThen(t *testing.T) {
	promtool(t, "", "check", "rules", rulesFile)
	all, cases := rules(t), scenarios()
	require.ElementsMatch(t, slices.Collect(maps.Keys(all)), slices.Collect(maps.Keys(cases)))
	for name, r := range all {
		t.Run(name, func(t *testing.T) {
			fires, units := 0, []any{}
			for _, s := range cases[name] {
				if s.fires != nil {
					fires++
				}
				units = append(units, s.unit(r))
			}
			require.Positive(t, fires, "no case fires")
			require.Less(t, fires, len(units), "no case is quiet")
			promtool(t, "", "test", "rules", write(t, units...))
		})
	}
}

// An outage makes Gatekeeper's own count of violations jump. The expression of the page does not see
// it, and no team hides its denied images by images that are undecided.
func TestTheExpressionForViolationsCountsWhatIsDeniedAndNothingThatIsUndecided(t *testing.T) {
	page, err := os.ReadFile(root + "/docs/operate/alerts.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n## Alert on violations\n")
	require.True(t, found)
	shown := regexp.MustCompile("(?s)```text\n(.*?)\n```").FindStringSubmatch(section)
	require.NotNil(t, shown)
	key := func(namespace, outcome, source string) string {
		return `landwaiter_provider_images_total{namespace="` + namespace + `",outcome="` + outcome + `",source="` + source + `"}`
	}
	outage := key("team-a", "undecided", "audit")
	for name, c := range map[string]struct {
		series map[string]string
		counts string // the namespace that it reports
	}{
		"an outage":                     {map[string]string{outage: "0+500x40", key("team-a", "allowed", "audit"): "9x40"}, ""},
		"Landwaiter is down":            {map[string]string{key("team-a", "denied", "audit"): "0+1x5 _x35"}, ""},
		"all is well":                   {map[string]string{key("team-a", "allowed", "audit"): "0+9x40", key("team-a", "denied", "audit"): "7x40"}, ""},
		"only admissions are denied":    {map[string]string{key("team-a", "denied", "admission"): "0+9x40"}, ""},
		"an audit finds what is denied": {map[string]string{key("team-a", "denied", "audit"): "0+1x40", outage: "0x40"}, "team-a"},
		"it asks every three minutes": {map[string]string{key("team-a", "denied", "audit"): "0 0 1 1 1 2 2 2 3 3 3 4 4 4 5 5 5 6 6 6 7 7 7 8 8 8 9 9 9 10 10"},
			"team-a"},
		"a team hides behind its own images": {map[string]string{key("team-b", "denied", "audit"): "0+1x40", outage: "0+500x40"}, "team-b"},
		"what is no image":                   {map[string]string{key("team-a", "invalid", "audit"): "0+1x40"}, "team-a"},
	} {
		t.Run(name, func(t *testing.T) {
			var series []map[string]string
			for _, metric := range slices.Sorted(maps.Keys(c.series)) {
				series = append(series, map[string]string{"series": metric, "values": c.series[metric]})
			}
			samples := []any{}
			if c.counts != "" {
				samples = append(samples, map[string]any{"labels": `{namespace="` + c.counts + `"}`, "value": 1})
			}
			promtool(t, "", "test", "rules", write(t, map[string]any{"interval": "1m", "name": name, "input_series": series,
				"promql_expr_test": []any{map[string]any{"expr": "count by (namespace) (" + shown[1] + ")", "eval_time": "30m", "exp_samples": samples}}}))
		})
	}
}

func TestEachAlertIsExplainedAndNamesItsPage(t *testing.T) {
	text, err := os.ReadFile(root + "/docs/operate/alerts.md")
	require.NoError(t, err)
	var explained []string
	for _, found := range regexp.MustCompile(`(?m)^## (Landwaiter\w+)$`).FindAllStringSubmatch(string(text), -1) {
		explained = append(explained, found[1])
	}
	all := rules(t)
	require.ElementsMatch(t, slices.Collect(maps.Keys(all)), explained)
	for name, r := range all {
		require.True(t, strings.HasSuffix(r.Annotations["runbook_url"], "/docs/operate/alerts.md#"+strings.ToLower(name)), name)
		require.NotEmpty(t, r.Annotations["description"], name)
		require.Contains(t, []string{"critical", "warning", "info"}, r.Labels["severity"], name)
	}
}

// Alerts and the dashboard only ask for metrics that there are.
func TestAlertsAndTheDashboardNameMetricsThatExist(t *testing.T) {
	page, err := os.ReadFile(root + "/docs/reference/metrics.md")
	require.NoError(t, err)
	named := regexp.MustCompile(`\blandwaiter_\w+`)
	for _, file := range []string{rulesFile, dashboardFile} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		found := named.FindAllString(string(text), -1)
		require.NotEmpty(t, found)
		for _, metric := range found {
			metric = regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(metric, "") // of a histogram or summary
			require.Contains(t, string(page), fmt.Sprintf("`%s`", metric), file)
		}
	}
}
