package scaffold

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// demo adds the repository of flux-multitenant-demo: what every tenant gets, and the
// manifest that tries to leave its namespace.
func (p Platform) demo(t *Tree) {
	t.add("bootstrap/kustomization.yaml", kustomization("", []string{"source.yaml"}, nil))
	t.add("bootstrap/source.yaml", document("The source that tenants share.", sharedSource("https://github.com/example/flux-multitenant-demo", "main")))
	demoManifests(t)
}

// demoManifests are what the demo applies for each tenant. Flux replaces the variables.
func demoManifests(t *Tree) {
	t.add("kustomizations/per-tenant/kustomization.yaml", kustomization("", []string{"dummy_deployment.yaml"}, nil))
	t.add("kustomizations/per-tenant/dummy_deployment.yaml", demoDeployment)
	t.add("kustomizations/wrong-namespace/kustomization.yaml", kustomization("Tries to leave the tenant's namespace, and is refused.", []string{"configmap.yaml"}, nil))
	t.add("kustomizations/wrong-namespace/configmap.yaml", document("", object{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": named("default", "wrong-namespace"), "data": object{"tenant": "${SUBST_LITERAL}"}}))
}

// sharedSource is the GitRepository default, which Kustomizations of tenants name.
func sharedSource(url, branch string) object {
	return object{"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": named(fluxNamespace, "default"),
		"spec": object{"interval": "1m", "url": url, "ref": object{"branch": branch}}}
}

const demoDeployment = `# The namespace here does not matter: Flux puts the object into the tenant's.
apiVersion: apps/v1
kind: Deployment
metadata:
  name: dummy
  namespace: baz
  labels: {app.kubernetes.io/name: dummy}
spec:
  replicas: 1
  selector: {matchLabels: {app.kubernetes.io/name: dummy}}
  template:
    metadata:
      labels: {app.kubernetes.io/name: dummy}
    spec:
      automountServiceAccountToken: false
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        seccompProfile: {type: RuntimeDefault}
      containers:
      - name: dummy
        image: docker.io/library/busybox:1.37
        command: [/bin/sh, -c]
        args:
        - |
          echo '${PER_TENANT_SUBST}'
          exec sleep 2147483647
        env:
        - {name: SUBST_LITERAL, value: "${SUBST_LITERAL}"}
        securityContext:
          allowPrivilegeEscalation: false
          readOnlyRootFilesystem: true
          capabilities: {drop: [ALL]}
`

// Bootstrap returns what the demo's bootstrap applies besides Flux itself, and the command
// that installs Flux with the same lockdown as a tree has.
func Bootstrap(url, branch string, shared bool) (text, command string, err error) {
	if url == "" {
		return "", "", errors.New("--git-url is required: the repository that tenants share, such as https://github.com/example/flux-multitenant-demo")
	}
	if !regexp.MustCompile(`^(https|ssh)://[^@ ]+$|^ssh://git@[^@ ]+$`).MatchString(url) {
		return "", "", fmt.Errorf("--git-url is %q: begin the URL with https:// or ssh://, and leave out credentials", url)
	}
	if branch == "" || strings.ContainsAny(branch, " \n") {
		return "", "", fmt.Errorf("--git-branch is %q: give the name of a branch", branch)
	}
	lockdown := Platform{SharedSource: shared}.lockdown()
	command = "# Install Flux: save this as lockdown/kustomization.yaml\n" + lockdown +
		"# and run\n#   flux install --watch-all-namespaces --export > gotk-components.yaml\n" +
		"#   kubectl apply --server-side -k .\n# in a folder with this kustomization.yaml:\n" +
		kustomization("", []string{"gotk-components.yaml"}, object{"components": []string{"lockdown"}})
	return document("", sharedSource(url, branch)), strings.TrimSuffix(command, "\n"), nil
}
