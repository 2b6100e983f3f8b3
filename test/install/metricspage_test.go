//go:build e2e

package install

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// blocks returns the code of docs/operate/metrics.md in a language, "" for commands.
func blocks(t *testing.T, language string) []string {
	t.Helper()
	text, err := os.ReadFile(root + "/docs/operate/metrics.md")
	require.NoError(t, err)
	var found []string
	for _, block := range regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		if block[1] == language {
			found = append(found, strings.ReplaceAll(block[2], "\\\n", " "))
		}
	}
	require.NotEmpty(t, found)
	return found
}

// TestTheCommandsOfThePageWork runs what docs/operate/metrics.md says to run: "helm upgrade" as
// "helm template" with the same values, and curl against a server on another port.
func TestTheCommandsOfThePageWork(t *testing.T) {
	tools, o := suite.MustTool(t, suite.ChartTools), observedServer(t)
	bash := suite.Program{Path: "bash", Dir: root, Env: []string{"PATH=" + tools + ":" + os.Getenv("PATH")}}
	for _, block := range blocks(t, "") {
		for _, command := range strings.Split(strings.TrimSpace(block), "\n") {
			var expected string
			switch program, _, _ := strings.Cut(command, " "); program {
			case "helm":
				command = strings.Replace(strings.Replace(command, "helm upgrade", "helm template", 1), "--reset-then-reuse-values", "", 1)
				expected = "kind: ServiceMonitor"
			case "curl":
				require.Contains(t, command, "http://127.0.0.1:8082/metrics")
				command = strings.Replace(command, "http://127.0.0.1:8082/metrics", o.MetricsURL+"/metrics", 1)
				expected = "landwaiter_build_info"
			case "promtool":
				expected = "SUCCESS"
			default:
				t.Fatalf("this test does not know how to run %q", command)
			}
			r := bash.Run(t, "", "-euo", "pipefail", "-c", command)
			require.Zero(t, r.Code, "%s\n%s", command, r.Stderr)
			require.Contains(t, r.Stdout+r.Stderr, expected, command)
		}
	}
}

func TestTheScrapeConfigOfThePageIsPrometheus(t *testing.T) {
	for _, block := range blocks(t, "yaml") {
		var config struct {
			Jobs []struct {
				HonorLabels bool `json:"honor_labels"`
			} `json:"scrape_configs"`
		}
		require.NoError(t, yaml.Unmarshal([]byte(block), &config))
		require.Len(t, config.Jobs, 1)
		require.True(t, config.Jobs[0].HonorLabels)
		// Debian's Prometheus is built without the discovery of Kubernetes.
		discovery := regexp.MustCompile(`(?m)^  kubernetes_sd_configs: .*$`)
		require.Regexp(t, discovery, block)
		block = discovery.ReplaceAllString(block, `  static_configs: [{targets: ["127.0.0.1:8082"]}]`)
		name := filepath.Join(t.TempDir(), "prometheus.yml")
		require.NoError(t, os.WriteFile(name, []byte(block), 0o600))
		promtool(t, "", "check", "config", "--syntax-only", name)
	}
}
