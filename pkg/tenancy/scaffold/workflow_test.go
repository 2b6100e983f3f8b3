package scaffold

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// runner plays GitHub's: it runs the shell steps of a workflow in a written tree. Programs that
// would download something are stand-ins, which write their arguments to the file calls.
type runner struct {
	dir, temp string
	vars      map[string]string // variables of the repository
}

func newRunner(t *testing.T, dir string, programs map[string]string) *runner {
	t.Helper()
	r := &runner{dir: dir, temp: folder(t), vars: map[string]string{}}
	require.NoError(t, os.Mkdir(filepath.Join(r.temp, "bin"), 0o750))
	for name, script := range programs {
		text := "#!/bin/bash\necho " + name + " \"$@\" >>" + r.temp + "/calls\n" + strings.ReplaceAll(script, "TEMP", r.temp)
		require.NoError(t, os.WriteFile(filepath.Join(r.temp, "bin", name), []byte(text), 0o700))
	}
	return r
}

var expression = regexp.MustCompile(`\$\{\{ (?:vars\.([A-Z0-9_]+)|[a-z_.]+)(?: \|\| '([^']*)')? \}\}`)

// run runs the steps of a workflow until one fails.
func (r *runner) run(t *testing.T, workflow string) (output string, err error) {
	t.Helper()
	var parsed struct {
		Jobs map[string]struct {
			Steps []struct {
				Run string            `json:"run"`
				Env map[string]string `json:"env"`
			} `json:"steps"`
		} `json:"jobs"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(content(t, r.dir, ".github/workflows/"+workflow)), &parsed))
	for _, job := range parsed.Jobs {
		for _, step := range job.Steps {
			if step.Run == "" {
				continue
			}
			command := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step.Run)
			command.Dir = r.dir
			command.Env = []string{"PATH=" + filepath.Join(r.temp, "bin") + ":/usr/bin:/bin", "RUNNER_TEMP=" + r.temp, "GITHUB_WORKSPACE=" + r.dir}
			for name, value := range step.Env {
				command.Env = append(command.Env, name+"="+expression.ReplaceAllStringFunc(value, func(match string) string {
					found := expression.FindStringSubmatch(match)
					if set := r.vars[found[1]]; set != "" {
						return set
					}
					return found[2]
				}))
			}
			text, err := command.CombinedOutput()
			output += string(text)
			if err != nil {
				return output, err
			}
		}
	}
	return output, nil
}

func (r *runner) calls(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.temp, "calls"))
	if os.IsNotExist(err) {
		return ""
	}
	require.NoError(t, err)
	return string(text)
}

const commit = "0123456789abcdef0123456789abcdef01234567"

// program is what is downloaded, or built: it says that it was run.
const program = "#!/bin/bash\necho landwaiter \"$@\" >>TEMP/calls\n"

func TestTheWorkflowRunsTheProgramThatWasChosenAndNoOther(t *testing.T) {
	sum := func(text string) string {
		digest := sha256.Sum256([]byte(text))
		return hex.EncodeToString(digest[:])
	}
	const ran = "landwaiter platform check .\n"
	for about, c := range map[string]struct {
		revision, setting string
		vars              map[string]string
		head              string // what the source answers with
		runs              bool
		says              string
	}{
		"the commit that wrote the tree": {revision: commit, head: commit, runs: true,
			says: "fetch --quiet --depth=1 https://github.com/landwaiter/landwaiter " + commit},
		"a commit of a mirror": {vars: map[string]string{"LANDWAITER_COMMIT": commit, "LANDWAITER_SOURCE": "https://git.example.com/landwaiter"},
			head: commit, runs: true, says: "https://git.example.com/landwaiter " + commit},
		"another commit than the chosen": {revision: commit, head: strings.Repeat("f", 40)},
		"a revision that is no commit":   {revision: "unknown", says: "set the repository variable LANDWAITER_COMMIT"},
		"nothing":                        {says: "set the repository variable LANDWAITER_COMMIT"},
		"a program by its checksum":      {vars: map[string]string{"LANDWAITER_SHA256": "SUM"}, runs: true, says: "/releases/download/"},
		"a program of one's own": {vars: map[string]string{"LANDWAITER_SHA256": "SUM", "LANDWAITER_URL": "https://files.example.com/landwaiter"},
			runs: true, says: "https://files.example.com/landwaiter"},
		"the checksum of the settings":     {setting: "SUM", runs: true, says: "/releases/download/"},
		"another program than the checked": {vars: map[string]string{"LANDWAITER_SHA256": strings.Repeat("0", 64)}, says: "FAILED"},
		"the checksum wins over a commit":  {revision: commit, vars: map[string]string{"LANDWAITER_SHA256": strings.Repeat("0", 64)}, head: commit, says: "FAILED"},
	} {
		t.Run(about, func(t *testing.T) {
			r := newRunner(t, folder(t), map[string]string{
				"curl": "while [ \"$1\" != --output ]; do shift; done\ncp TEMP/program \"$2\"\n",
				"git":  "case $1 in init) mkdir -p \"$3\" ;; rev-parse) echo " + c.head + " ;; esac\n",
				"go":   "test \"$(basename \"$PWD\")\" = source\nwhile [ \"$1\" != -o ]; do shift; done\ncp TEMP/program \"$2\"\nchmod +x \"$2\"\n",
			})
			text := strings.ReplaceAll(program, "TEMP", r.temp)
			require.NoError(t, os.WriteFile(filepath.Join(r.temp, "program"), []byte(text), 0o600))
			for name, value := range c.vars {
				r.vars[name] = strings.ReplaceAll(value, "SUM", sum(text))
			}
			platform := Platform{Revision: c.revision, CheckSHA256: strings.ReplaceAll(c.setting, "SUM", sum(text))}
			put1(t, r.dir, ".github/workflows/check.yaml", platform.checkWorkflow())
			output, err := r.run(t, "check.yaml")
			if c.runs {
				require.NoError(t, err, output)
				require.True(t, strings.HasSuffix(r.calls(t), ran), r.calls(t))
			} else {
				require.Error(t, err)
				require.NotContains(t, r.calls(t), ran)
			}
			require.Contains(t, output+r.calls(t), c.says)
		})
	}
}

// What Flux and kubectl are asked for fits the tree: folders and Kustomizations that it has.
func TestTheWorkflowWithAClusterAppliesTheTree(t *testing.T) {
	for about, sealed := range map[string]bool{"plain": false, "with encrypted Secrets": true} {
		t.Run(about, func(t *testing.T) {
			platform := Platform{Environments: []string{"prod", "staging"}, Constraints: []string{imagesSet}}
			if sealed {
				platform.SOPSAge = recipient
			}
			dir := light(t, example{platform: &platform}.write(t))
			r := newRunner(t, dir, map[string]string{"kubectl": "", "flux": "if [ \"$1\" = install ]; then cat <<'END'\n" + trialFlux() + "END\nfi\n"})
			output, err := r.run(t, "e2e.yaml")
			require.NoError(t, err, output)
			calls := r.calls(t)
			require.Contains(t, calls, "kubectl apply --server-side --kustomize clusters/prod/flux-system\n")
			require.Contains(t, calls, "--path=clusters/prod --service-account=kustomize-controller")

			// The Flux that it installs is locked down, and each Kustomization that it waits for is there.
			c := loaded(t, dir)
			require.Empty(t, (Platform{}).unlocked(c.build("clusters/prod/flux-system").objects))
			var expected, waited []string
			for _, file := range []string{"infrastructure.yaml", "tenants.yaml"} {
				objects, err := decode(content(t, dir, "clusters/prod/"+file))
				require.NoError(t, err)
				for _, o := range objects {
					if o.GetName() != "tenants" || !sealed {
						expected = append(expected, o.GetName())
					}
				}
			}
			for _, found := range regexp.MustCompile(`wait kustomization/(\S+) --for=condition=Ready`).FindAllStringSubmatch(calls, -1) {
				waited = append(waited, found[1])
			}
			require.Equal(t, expected, waited)
		})
	}
}
