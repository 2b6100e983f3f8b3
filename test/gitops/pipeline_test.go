//go:build e2e

package gitops

import (
	"cmp"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// runner is a machine that runs the steps of library/samples/release-app.yaml with a real registry and
// real Git repositories. Played are GitHub's checkout, its pull request and the download of the program.
type runner struct {
	dir       string
	platform  string // the repository PLATFORM, bare
	pages     string // the application's repository with the branch gh-pages, bare
	env       []string
	registry  string
	charts    string // CHARTS; the registry if it is empty
	image     string // IMAGE
	chartless bool   // the application has no chart
}

// git runs git in a folder, and returns what it prints.
func (r *runner) git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	return suite.Program{Path: "git", Dir: dir, Env: r.env}.Must(t, args...)
}

// newRunner has a platform in the layout arc, in which two clusters have an application of their own, and
// one tenant a shared one. Further flags of platform scaffold add tenants.
func newRunner(t *testing.T, more ...[]string) *runner {
	t.Helper()
	registry, err := fixture.StartRegistry(fixture.RegistryOptions{TLS: true})
	require.NoError(t, err)
	t.Cleanup(func() { _ = registry.Close() }) // the test ends
	r := &runner{dir: t.TempDir(), registry: registry.Host()}
	trusted, programs := filepath.Join(r.dir, "registry.crt"), filepath.Join(r.dir, "programs")
	require.NoError(t, os.WriteFile(trusted, registry.CertificatePEM(), 0o600))
	require.NoError(t, os.Mkdir(programs, 0o750))
	require.NoError(t, os.Symlink(suite.MustTool(t, suite.Landwaiter), filepath.Join(programs, "landwaiter")))
	require.NoError(t, os.WriteFile(filepath.Join(programs, "gh"), []byte("#!/bin/sh\necho \"$@\" >> \"$RUNNER_TEMP/gh.log\"\n"), 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(r.dir, "temp"), 0o750))
	r.env = []string{"HOME=" + r.dir, "RUNNER_TEMP=" + filepath.Join(r.dir, "temp"), "SSL_CERT_FILE=" + trusted, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=/dev/null",
		"PATH=" + programs + ":" + suite.MustTool(t, suite.ChartTools) + ":" + os.Getenv("PATH")}

	tree := filepath.Join(r.dir, "tree")
	landwaiter := suite.Program{Path: suite.MustTool(t, suite.Landwaiter), Dir: r.dir}
	landwaiter.Must(t, "platform", "init", "tree", "--layout", "arc", "--set", "clusters=cluster1", "--set", "clusters=stores", "--set", "constraints=images")
	own := "oci://" + r.registry + "/charts/app1@1.0.0"
	landwaiter.Must(t, "platform", "scaffold", "tree", "tenant1", "--app", "app1", "--app-chart", own)
	landwaiter.Must(t, "platform", "scaffold", "tree", "tenant2", "--place", "cluster1", "--app", "app2", "--shared", "--app-chart",
		"oci://"+r.registry+"/charts/app2@1.0.0")
	for _, flags := range more {
		landwaiter.Must(t, append([]string{"platform", "scaffold", "tree"}, flags...)...)
	}
	r.platform = r.publish(t, tree, "main")
	return r
}

// publish makes a folder the branch of a new bare repository, and returns its path.
func (r *runner) publish(t *testing.T, dir, branch string) (bare string) {
	t.Helper()
	for _, step := range [][]string{{"init", "--quiet", "--initial-branch=" + branch}, {"add", "--all"},
		{"-c", "user.name=platform", "-c", "user.email=platform@example.com", "commit", "--quiet", "--allow-empty", "--message=begin"}} {
		r.git(t, dir, step...)
	}
	bare = dir + ".git"
	r.git(t, r.dir, "clone", "--quiet", "--bare", dir, bare)
	return bare
}

// release runs the workflow for an application and a tag. It returns how the first step that fails does.
func (r *runner) release(t *testing.T, app, tag string) (string, error) {
	t.Helper()
	var workflow struct {
		Env  map[string]string
		Jobs struct {
			Release struct {
				Steps []struct {
					Name, Uses, Run  string
					If               string
					WorkingDirectory string `json:"working-directory"`
					With             struct{ Path, Ref string }
				}
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(suite.Root, "library/samples/release-app.yaml"))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &workflow))
	work := filepath.Join(r.dir, app+tag)
	require.NoError(t, os.MkdirAll(work, 0o750))
	for name, content := range map[string]string{"Chart.yaml": "apiVersion: v2\nname: " + app + "\nversion: 0.0.0\n", "values.yaml": "replicaCount: 1\n"} {
		if r.chartless {
			break
		}
		file := filepath.Join(work, "charts", app, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o750))
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	}
	workflow.Env["APP"] = app
	workflow.Env["CHARTS"] = cmp.Or(r.charts, strings.ReplaceAll(workflow.Env["CHARTS"], "registry.example.com", r.registry))
	workflow.Env["IMAGE"] = cmp.Or(r.image, workflow.Env["IMAGE"])
	env := append([]string{"GITHUB_REF_NAME=" + tag}, r.env...)
	for name, value := range workflow.Env {
		env = append(env, name+"="+value)
	}
	ran := 0
	for _, step := range workflow.Jobs.Release.Steps {
		switch {
		case step.Name == "Fetch Landwaiter":
		case step.If != "":
			require.Equal(t, "startsWith(env.CHARTS, 'https://') && hashFiles('charts/**') != ''", step.If)
			if strings.HasPrefix(workflow.Env["CHARTS"], "https://") && !r.chartless {
				r.git(t, work, "clone", "--quiet", "--branch", step.With.Ref, r.pages, step.With.Path)
			}
		case step.Uses != "" && step.With.Path != "":
			r.git(t, work, "clone", "--quiet", r.platform, step.With.Path)
		case step.Run != "":
			command := exec.CommandContext(suite.Within(t), "bash", "-e", "-o", "pipefail", "-c", step.Run) // as GitHub does
			command.Dir, command.Env = filepath.Join(work, step.WorkingDirectory), env
			output, err := command.CombinedOutput()
			t.Logf("%s\n%s", step.Name, output)
			if err != nil {
				return string(output), err
			}
			ran++
		}
	}
	require.Equal(t, 3, ran)
	return "", nil
}

// at returns what a file of the platform's repository has on a branch, and which files differ from main.
func (r *runner) at(t *testing.T, branch, file string) (text string, changed []string) {
	t.Helper()
	return r.git(t, r.platform, "show", branch+":"+file), strings.Fields(r.git(t, r.platform, "diff", "--name-only", "main", branch))
}

func TestAReleaseOfAChartIsProposedToThePlatform(t *testing.T) {
	r := newRunner(t, []string{"tenant5", "--place", "cluster1", "--app", "app5", "--app-chart", "https://charts.example.com@1.0.0"},
		[]string{"tenant5", "--place", "stores", "--app", "app6", "--app-chart", "https://charts.example.com@1.0.0"})
	_, err := r.release(t, "app1", "v1.2.0")
	require.NoError(t, err)
	text, changed := r.at(t, "app1-1.2.0", "clusters/cluster1/app1/tenant1/app1.yaml")
	require.Contains(t, text, "    tag: 1.2.0\n  url: oci://"+r.registry+"/charts/app1\n")
	require.Equal(t, []string{"clusters/cluster1/app1/tenant1/app1.yaml", "clusters/stores/app1/tenant1/app1.yaml"}, changed)

	_, err = r.release(t, "app2", "v1.3.0-rc.1")
	require.NoError(t, err)
	text, changed = r.at(t, "app2-1.3.0-rc.1", "base-deployments/app2/app2-base-release.yaml")
	require.Contains(t, text, "    tag: 1.3.0-rc.1\n")
	require.Equal(t, []string{"base-deployments/app2/app2-base-release.yaml"}, changed)

	// A tenant with another application in another cluster keeps that.
	_, err = r.release(t, "app5", "v1.2.0")
	require.NoError(t, err)
	_, changed = r.at(t, "app5-1.2.0", "clusters/cluster1/app5/tenant5/app5.yaml")
	require.Equal(t, []string{"clusters/cluster1/app5/tenant5/app5.yaml"}, changed)

	opened, err := os.ReadFile(filepath.Join(r.dir, "temp/gh.log"))
	require.NoError(t, err)
	require.Contains(t, string(opened), "pr create --repo example/arc --head app1-1.2.0 ")
	require.Equal(t, "main\n", r.git(t, r.platform, "rev-parse", "--abbrev-ref", "HEAD"))

	said, err := r.release(t, "app1", "v1/../../x")
	require.Error(t, err)
	require.Contains(t, said, "is not v and a version")
}

// A Helm repository that GitHub Pages serves from a branch has the new chart, and the release of every tenant
// gets its version: that of a shared application in its base, and nothing else of it that looks like one.
func TestAReleaseOfAChartInAHelmRepositoryIsProposedToThePlatform(t *testing.T) {
	site := filepath.Join(t.TempDir(), "site")
	server := httptest.NewTLSServer(http.FileServer(http.Dir(site)))
	t.Cleanup(server.Close)
	r := newRunner(t, []string{"tenant3", "--place", "cluster1", "--app", "app3", "--shared", "--app-chart", server.URL + "@1.0.0"},
		[]string{"tenant4", "--place", "stores", "--app", "app4", "--app-chart", server.URL + "@1.0.0"})
	r.charts = server.URL
	pages := filepath.Join(r.dir, "pages")
	require.NoError(t, os.Mkdir(pages, 0o750))
	r.pages = r.publish(t, pages, "gh-pages")
	const base = "base-deployments/app3/app3-base-release.yaml"
	tree := filepath.Join(r.dir, "tree")
	r.git(t, tree, "remote", "add", "origin", r.platform)
	file := filepath.Join(tree, base)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t,
		os.WriteFile(file, []byte(strings.Replace(string(text), "  values: {}\n", "  values:\n    tag: own\n    image:\n      version: own\n", 1)), 0o600))
	r.git(t, tree, "-c", "user.name=platform", "-c", "user.email=platform@example.com", "commit", "--quiet", "--all", "--message=values")
	r.git(t, tree, "push", "--quiet", "origin", "main")

	for app, want := range map[string]string{"app3": base, "app4": "clusters/stores/app4/tenant4/app4.yaml"} {
		_, err := r.release(t, app, "v1.2.0")
		require.NoError(t, err)
		text, changed := r.at(t, app+"-1.2.0", want)
		require.Contains(t, text, "\n      version: 1.2.0\n")
		require.Equal(t, []string{want}, changed)
		if app == "app3" {
			require.Contains(t, text, "    tag: own\n    image:\n      version: own\n", "values of the application")
		}
	}
	r.git(t, r.dir, "clone", "--quiet", "--branch=gh-pages", r.pages, site)
	certificate := filepath.Join(r.dir, "pages.crt")
	require.NoError(t, os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	helm := suite.Program{Path: suite.MustTool(t, suite.ChartTools, "helm"), Env: r.env}
	for _, app := range []string{"app3", "app4"} {
		require.Contains(t, helm.Must(t, "show", "chart", app, "--repo", server.URL, "--version", "1.2.0", "--ca-file", certificate), "version: 1.2.0")
	}
}

// Without a chart, the team's own repository gets the tag of the image.
func TestAReleaseWithoutAChartIsProposedToTheTeamsRepository(t *testing.T) {
	r := newRunner(t, []string{"tenant4", "--place", "cluster1", "--without-helm", "--set", "reconciler.source.url=https://github.com/example/tenant4"})
	own := filepath.Join(r.dir, "own")
	landwaiter := suite.Program{Path: suite.MustTool(t, suite.Landwaiter), Dir: r.dir}
	landwaiter.Must(t, "platform", "scaffold", "own", "--own", "-f", "tree/clusters/cluster1/tenant4/tenant.yaml", "--app", "app4")
	r.platform, r.chartless, r.image = r.publish(t, own, "main"), true, "registry.example.com/tenant4/app4"
	_, err := r.release(t, "app4", "v1.2.0")
	require.NoError(t, err)
	const manifest = "deployments/app4/base-deployment.yaml"
	text, changed := r.at(t, "app4-1.2.0", manifest)
	require.Contains(t, text, "image: registry.example.com/tenant4/app4:v1.2.0\n")
	require.Equal(t, []string{manifest}, changed)
}
