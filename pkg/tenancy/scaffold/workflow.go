package scaffold

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
)

const (
	// landwaiterSource has the program's source, at the path of its module.
	landwaiterSource = "https://github.com/landwaiter/landwaiter"
	releasedProgram  = landwaiterSource + "/releases/download/v" + LandwaiterVersion + "/landwaiter_" + LandwaiterVersion + "_linux_amd64"
)

// checkScript gets the program and runs `platform check`. It only runs a program whose checksum
// the platform's admins recorded, or one that it builds from a commit that they chose.
const checkScript = `program="$RUNNER_TEMP/landwaiter"
if [ -n "$SHA256" ]; then
  curl --fail --silent --show-error --location --output "$program" "$PROGRAM"
  echo "$SHA256  $program" | sha256sum --check
  chmod +x "$program"
elif [ -n "$COMMIT" ]; then
  git init --quiet "$RUNNER_TEMP/source"
  cd "$RUNNER_TEMP/source"
  git fetch --quiet --depth=1 "$SOURCE" "$COMMIT"
  git checkout --quiet FETCH_HEAD
  test "$(git rev-parse HEAD)" = "$COMMIT"
  go build -tags kustomize_disable_go_plugin_support -o "$program" ./cmd/landwaiter
  cd "$GITHUB_WORKSPACE"
else
  echo "set the repository variable LANDWAITER_COMMIT to a commit of $SOURCE, or LANDWAITER_SHA256 to the checksum of a release" >&2
  exit 1
fi
"$program" platform check .
`

// checkWorkflow checks the tree on each change.
func (p Platform) checkWorkflow() string {
	commit := ""
	if regexp.MustCompile(`^[0-9a-f]{40}$`).MatchString(p.Revision) {
		commit = " || '" + p.Revision + "'"
	}
	return document("", object{
		"name": "check", "on": []string{"pull_request", "push"},
		"permissions": object{"contents": "read"},
		"jobs": object{"check": object{
			"runs-on": "ubuntu-latest",
			"steps": []object{
				{"uses": "actions/checkout@v4", "with": object{"persist-credentials": false}},
				{"name": "landwaiter platform check", "shell": "bash", "run": checkScript, "env": object{
					"SHA256": cmp.Or(p.CheckSHA256, "${{ vars.LANDWAITER_SHA256 }}"), "PROGRAM": "${{ vars.LANDWAITER_URL || '" + releasedProgram + "' }}",
					"COMMIT": "${{ vars.LANDWAITER_COMMIT" + commit + " }}", "SOURCE": "${{ vars.LANDWAITER_SOURCE || '" + landwaiterSource + "' }}"}},
			},
		}},
	})
}

// clusterScript has Flux apply one environment of the pushed commit to an empty cluster. It locks
// Flux down as bootstrap does.
const clusterScript = `flux install --export > %[1]s/flux-system/gotk-components.yaml
echo "# The source is made below." > %[1]s/flux-system/gotk-sync.yaml
kubectl apply --server-side --kustomize %[1]s/flux-system
kubectl --namespace flux-system wait deployment --all --for=condition=Available --timeout=5m
flux create source git flux-system --interval=1m --url="$REPOSITORY" --branch="$BRANCH" --ignore-paths="clusters/**/flux-system/" --username=git --password="$TOKEN"
flux create kustomization flux-system --interval=1m --source=GitRepository/flux-system --path=%[1]s --service-account=kustomize-controller --prune
`

// e2eWorkflow applies the first environment to a separate cluster.
func (p Platform) e2eWorkflow() string {
	wait := ""
	for _, s := range p.steps() {
		wait += "kubectl --namespace flux-system wait kustomization/" + s.name + " --for=condition=Ready --timeout=10m\n"
	}
	if p.sops() == (sopsKey{}) {
		wait += "kubectl --namespace flux-system wait kustomization/tenants --for=condition=Ready --timeout=10m\n"
	} else {
		wait += "echo 'Not tried: tenants. No workflow has the key of the encrypted Secrets.'\n"
	}
	run := func(name, script string, env object) object {
		step := object{"name": name, "shell": "bash", "run": script}
		if env != nil {
			step["env"] = env
		}
		return step
	}
	show := run("What Flux says", "flux get all --all-namespaces\nkubectl --namespace flux-system logs deployment/kustomize-controller "+
		"--tail=200\n", nil)
	show["if"] = "always()"
	folder := path.Join("clusters", p.Environments[0])
	return document("Has Flux apply "+folder+" to an empty cluster. Start it by hand; add push to its triggers once the\ncharts and images "+
		"are where a runner finds them.", object{
		"name": "e2e", "on": []string{"workflow_dispatch"},
		"permissions": object{"contents": "read"},
		"jobs": object{"e2e": object{
			"runs-on": "ubuntu-latest",
			"steps": []object{
				{"uses": "actions/checkout@v4", "with": object{"persist-credentials": false}},
				{"uses": "fluxcd/flux2/action@main"},
				{"uses": "helm/kind-action@v1"},
				run("Install Flux and apply "+folder, fmt.Sprintf(clusterScript, folder), object{ //nolint:gosec // it names a token
					"REPOSITORY": "${{ github.server_url }}/${{ github.repository }}", "BRANCH": "${{ github.ref_name }}",
					"TOKEN": "${{ github.token }}"}),
				run("Wait for each step", wait, nil),
				show,
			},
		}},
	})
}
