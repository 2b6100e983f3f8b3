//go:build e2e

package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/example"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
	"github.com/landwaiter/landwaiter/test/kit/stack"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

var dashboardFile = chart + "/files/dashboard.json"

// dashboard is what we read of Grafana's format.
type dashboard struct {
	UID        string `json:"uid"`
	Templating struct {
		List []struct {
			Name       string `json:"name"`
			Type       string `json:"type"`
			Definition string `json:"definition"`
		} `json:"list"`
	} `json:"templating"`
	Panels []struct {
		ID          int            `json:"id"`
		Type        string         `json:"type"`
		Title       string         `json:"title"`
		Description string         `json:"description"`
		Datasource  map[string]any `json:"datasource"`
		GridPos     struct{ X, Y, W, H int }
		Targets     []struct {
			Datasource map[string]any `json:"datasource"`
			Expr       string         `json:"expr"`
			RefID      string         `json:"refId"`
		} `json:"targets"`
	} `json:"panels"`
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	require.NoError(t, err)
	var d dashboard
	require.NoError(t, json.Unmarshal(text, &d))
	return d
}

// queries returns the dashboard's queries as Grafana sends them.
func queries(t *testing.T) map[string]string {
	t.Helper()
	variables := strings.NewReplacer("$__rate_interval", "10s", "$namespace", ".*")
	all := map[string]string{}
	for _, panel := range readDashboard(t).Panels {
		for _, target := range panel.Targets {
			expr := variables.Replace(target.Expr)
			require.NotContains(t, expr, "$", "a variable that this test does not know")
			all[panel.Title+" "+target.RefID] = expr
		}
	}
	require.Greater(t, len(all), 20)
	return all
}

// emptyWhenHealthy are the queries that have no result on the server of this test, with
// the series that they need.
func emptyWhenHealthy() map[string]map[string]string {
	return map[string]map[string]string{
		// No image is undecided as long as registries answer.
		"Undecided, by namespace A": {`landwaiter_provider_images_total{outcome="undecided",namespace="team-a",source="admission"}`: "0+60x10"},
		// The warm-up watches workloads in a cluster.
		"Images that run, by result A":       {`landwaiter_running_images{namespace="team-a",outcome="pass"}`: "5x10"},
		"Images verified before admission A": {`landwaiter_warm_images_total{outcome="allowed"}`: "0+60x10"},
		// Constraints are in a cluster.
		"Teams by mode A":      {`landwaiter_namespace_mode{mode="warn",namespace="team-a",tenant="a"}`: "1x10"},
		"Namespaces by mode A": {`landwaiter_namespace_mode{mode="warn",namespace="team-a",tenant="a"}`: "1x10"},
	}
}

func TestTheDashboardCanBeImportedAnywhere(t *testing.T) {
	d := readDashboard(t)
	require.Equal(t, "landwaiter", d.UID)
	names := map[string]string{}
	for _, v := range d.Templating.List {
		names[v.Name] = v.Type
	}
	require.Equal(t, map[string]string{"datasource": "datasource", "namespace": "query"}, names)
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, panel := range d.Panels {
		require.False(t, ids[panel.ID], "%s has the ID of another panel", panel.Title)
		ids[panel.ID] = true
		for x := panel.GridPos.X; x < panel.GridPos.X+panel.GridPos.W; x++ {
			for y := panel.GridPos.Y; y < panel.GridPos.Y+panel.GridPos.H; y++ {
				require.Empty(t, taken[[2]int{x, y}], "%s lies over another panel", panel.Title)
				require.Less(t, x, 24, panel.Title)
				taken[[2]int{x, y}] = panel.Title
			}
		}
		if panel.Type == "row" {
			continue
		}
		require.NotEmpty(t, panel.Description, panel.Title)
		require.NotEmpty(t, panel.Targets, panel.Title)
		require.Equal(t, "${datasource}", panel.Datasource["uid"], panel.Title)
		for _, target := range panel.Targets {
			require.Equal(t, "${datasource}", target.Datasource["uid"], panel.Title)
		}
	}
}

// observed is a server with the example's resources and a broken one.
type observed struct {
	*suite.Server
	*example.Example
}

var observedServer = suite.Once(parts, func(ctx context.Context, e *suite.Env) (*observed, error) {
	resources, key := e.Path("resources"), e.Path("key")
	if err := os.Mkdir(resources, 0o750); err != nil {
		return nil, err
	}
	made, err := example.Start(ctx, resources)
	if err != nil {
		return nil, err
	}
	e.OnStop(func() { _ = made.Registry.Close() }) // it ends with the process at the latest
	redis, err := cluster.StartRedis(ctx, e.LogDir())
	if err != nil {
		return nil, err
	}
	e.OnStop(redis.Kill)
	err = errors.Join(os.WriteFile(key, fixture.NewSealKey(), 0o600),
		os.WriteFile(filepath.Join(resources, "broken.yaml"), []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: team-broken}\n---\n"+
			"apiVersion: landwaiter.dev/v1beta1\nkind: TrustStore\nmetadata: {name: keys, namespace: team-broken}\nspec: {type: PublicKeys, source: {inline: "+
			"rubbish}}\n"), 0o600),
		os.WriteFile(filepath.Join(resources, "team.yaml"),
			[]byte("apiVersion: landwaiter.dev/v1beta1\nkind: Tenant\nmetadata: {name: a}\nspec: {homeNamespace: team-a}\n---\n"+
				"apiVersion: landwaiter.dev/v1beta1\nkind: ClusterQuota\nmetadata: {name: gold}\nspec: {tenants: [a], maxInFlight: 64}\n"), 0o600))
	if err != nil {
		return nil, err
	}
	server, err := e.Server(ctx,
		suite.ServerOptions{Binary: suite.LandwaiterServer, Args: []string{"--config-dir", resources, "--client-name", gatekeeper.ClientName,
			"--redis-url", redis.URL, "--redis-key-file", key, "--ttl", "tag=200ms"}})
	return &observed{server, made}, err
})

// traffic asks the example's questions until the test ends, and one about an image on an
// address that no ClusterStore opens.
func (o *observed) traffic(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	t.Cleanup(func() { cancel(); <-ended })
	go func() {
		defer close(ended)
		for n := 0; ctx.Err() == nil; n++ {
			for _, question := range o.Questions {
				_, _ = o.Client.Ask(ctx, gatekeeper.VerifyPath, question.Key) // verdicts are other tests' business
			}
			_, _ = o.Client.Ask(ctx, gatekeeper.VerifyPath, fmt.Sprintf("[team-c]127.0.0.1:1/nothing:%d", n))
			_, _ = o.Client.Ask(ctx, "/v1/mutate", o.Registry.Host()+"/shared/base:v1")
		}
	}()
}

// prometheus is the URL of one.
type prometheus string

// scrape starts a Prometheus that scrapes as the operator has it do: with a namespace of
// its own for the target, and honorLabels.
func (o *observed) scrape(t *testing.T) prometheus {
	t.Helper()
	path, err := exec.LookPath("prometheus")
	require.NoError(t, err, "prometheus is missing; run make e2e, or test/tools/packages.sh prometheus (Debian: apt-get install prometheus)")
	rules, err := filepath.Abs(rulesFile)
	require.NoError(t, err)
	e := suite.ForTest(t)
	config := e.Path("prometheus.yml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
- job_name: landwaiter-metrics
  honor_labels: true
  static_configs:
  - targets: [%q]
    labels: {namespace: landwaiter-system, pod: landwaiter-0, service: landwaiter-metrics}
`, rules, strings.TrimPrefix(o.MetricsURL, "http://")), 0o600))
	ports, err := cluster.FreePorts(1)
	require.NoError(t, err)
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	process, err := cluster.StartProcess(e.LogDir(), cluster.Command{Name: "prometheus", Path: path, Args: []string{"--config.file=" + config,
		"--storage.tsdb.path=" + e.Path("tsdb"), "--web.listen-address=" + address}})
	require.NoError(t, err)
	e.OnStop(process.Kill)
	p := prometheus("http://" + address)
	require.NoError(t, process.Await(suite.Within(t), func(ctx context.Context) error { _, err := stack.Get(ctx, string(p)+"/-/ready"); return err }))
	return p
}

// get asks Prometheus' API.
func (p prometheus) get(ctx context.Context, path string, values url.Values, into any) error {
	text, err := stack.Get(ctx, string(p)+path+"?"+values.Encode())
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), &struct {
		Data any `json:"data"`
	}{into})
}

// samples returns how many numbers a query has as its result.
func (p prometheus) samples(ctx context.Context, query string) (int, error) {
	var data struct {
		Result []struct {
			Value [2]any `json:"value"`
		} `json:"result"`
	}
	if err := p.get(ctx, "/api/v1/query", url.Values{"query": {query}}, &data); err != nil {
		return 0, err
	}
	n := 0
	for _, result := range data.Result {
		text, _ := result.Value[1].(string)
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", query, err)
		}
		if !math.IsNaN(value) {
			n++
		}
	}
	return n, nil
}

func TestTheDashboardShowsARealServer(t *testing.T) {
	o := observedServer(t)
	o.traffic(t)
	p := o.scrape(t)
	empty := emptyWhenHealthy()
	wanted := queries(t)
	for name := range empty {
		require.Contains(t, wanted, name)
		delete(wanted, name)
	}
	suite.Eventually(t, func(ctx context.Context) error {
		var missing error
		for _, name := range slices.Sorted(maps.Keys(wanted)) {
			n, err := p.samples(ctx, wanted[name])
			if err == nil && n > 0 {
				delete(wanted, name)
				continue
			}
			missing = errors.Join(missing, err, fmt.Errorf("no result for %s: %s", name, wanted[name]))
		}
		return missing
	})
	ctx := suite.Within(t)

	t.Run("the namespaces to choose from are those of images", func(t *testing.T) {
		var namespaces []string
		require.NoError(t, p.get(ctx, "/api/v1/label/namespace/values", url.Values{"match[]": {"landwaiter_provider_images_total"}}, &namespaces))
		require.Contains(t, namespaces, "team-a")
		require.NotContains(t, namespaces, "landwaiter-system", "that of the scraped pod")
		for _, v := range readDashboard(t).Templating.List {
			if v.Name == "namespace" {
				require.Equal(t, "label_values(landwaiter_provider_images_total, namespace)", v.Definition)
			}
		}
	})
	t.Run("every question of the page has an answer", func(t *testing.T) {
		text, err := os.ReadFile(root + "/docs/operate/metrics.md")
		require.NoError(t, err)
		_, section, _ := strings.Cut(string(text), "\n## By namespace\n")
		section, _, _ = strings.Cut(section, "\n## ")
		asked := regexp.MustCompile("(?m)^\\| .*\\? \\| `(.+)` \\|$").FindAllStringSubmatch(section, -1)
		require.Len(t, asked, 6)
		for _, query := range asked {
			query := strings.ReplaceAll(query[1], "[5m]", "[10s]")
			suite.Eventually(t, func(ctx context.Context) error {
				n, err := p.samples(ctx, query)
				if err == nil && n == 0 {
					err = fmt.Errorf("no result for %s", query)
				}
				return err
			})
		}
		n, err := p.samples(ctx, `landwaiter_provider_quota_image_duration_seconds_count{quota="gold"} > 0`)
		require.NoError(t, err)
		require.Equal(t, 1, n, "team-a has the ClusterQuota of its Tenant")
	})
	t.Run("every alert can be evaluated, and none is pending that a slow machine cannot cause", func(t *testing.T) {
		var data struct {
			Groups []struct {
				Rules []struct{ Name, Health, State, LastError string }
			}
		}
		require.NoError(t, p.get(ctx, "/api/v1/rules", nil, &data))
		require.Len(t, data.Groups, 1)
		require.Len(t, data.Groups[0].Rules, len(rules(t)))
		for _, r := range data.Groups[0].Rules {
			require.Equal(t, "ok", r.Health, "%s: %s", r.Name, r.LastError)
			switch r.Name {
			case "LandwaiterSlow", "LandwaiterUndecided", "LandwaiterRegistryErrors", "LandwaiterOverloaded", "LandwaiterRequestsRefused", "LandwaiterRedisDown":
			case "LandwaiterCertificateExpiring", "LandwaiterTrustExpiring": // those of the test end soon
			default:
				require.Equal(t, "inactive", r.State, r.Name)
			}
		}
	})
	t.Run("the scrape follows the conventions", func(t *testing.T) {
		text, err := stack.Get(ctx, o.MetricsURL+"/metrics")
		require.NoError(t, err)
		promtool(t, text, "check", "metrics")
		require.Contains(t, text, `landwaiter_tls_reload_errors_total{part="certificate"} 0`)
		require.Contains(t, text, `landwaiter_tls_reload_errors_total{part="client_ca"} 0`)
	})
}

func TestTheQueriesThatAHealthyServerHasNoResultForHaveOneOtherwise(t *testing.T) {
	wanted := queries(t)
	for name, series := range emptyWhenHealthy() {
		require.Contains(t, wanted, name)
		var input []map[string]string
		for _, metric := range slices.Sorted(maps.Keys(series)) {
			input = append(input, map[string]string{"series": metric, "values": series[metric]})
		}
		query := strings.ReplaceAll(wanted[name], "10s", "5m")
		promtool(t, "", "test", "rules", write(t, map[string]any{"interval": "1m", "input_series": input, "promql_expr_test": []any{
			map[string]any{"expr": "count(" + query + ")", "eval_time": "10m", "exp_samples": []any{map[string]any{"labels": "{}", "value": 1}}}}}))
	}
}
