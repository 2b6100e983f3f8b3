//go:build nightly

package gitops

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/flux"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// nested is a Kustomization in a namespace of red that applies ./inner of red's repository.
// It lacks what the platform adds to red's own: the forced labels and the path.
func nested(namespace, rest string) string {
	return fmt.Sprintf("apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {namespace: %s, name: inner}\n"+
		"spec: {interval: 10m, retryInterval: 1s, prune: true, path: ./inner, %s}\n", namespace, rest)
}

const own = "serviceAccountName: iris-red, sourceRef: {kind: GitRepository, name: iris-red}"

// attempt is what red commits to reach green, and what refuses it.
type attempt struct {
	// file is the manifest in red's repository; inner is the one that a Kustomization
	// among red's own objects applies.
	file, inner string
	// base is what ./inner takes from another server instead.
	base string
	// by is the layer that refuses, and says is its message.
	by, says string
	// in is where Flux reports it if not in red's own Kustomization.
	in string
}

const (
	byRBAC = "RBAC of the account"
	byFlux = "lockdown of Flux"
)

func guardrail(name string) string { return "ValidatingAdmissionPolicy 'landwaiter-" + name + "'" }

// attempts by what red would gain. The names iris-red and iris-green stand for those of the run.
func attempts() map[string]attempt {
	const rbac = "apiVersion: rbac.authorization.k8s.io/v1\nkind: "
	const account = "subjects: [{kind: ServiceAccount, name: iris-red, namespace: iris-red}]\n"
	admin := func(role string) string {
		return "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: " + role + "}\n" + account
	}
	forbidden := func(resource, namespace string) string {
		if namespace == "" {
			return `cannot patch resource "` + resource + `"`
		}
		return fmt.Sprintf(`User "system:serviceaccount:iris-red:iris-red" cannot patch resource %q in API group`, resource)
	}
	return map[string]attempt{
		"an object in green's namespace": {file: configMap("iris-green-web", "x"), by: byRBAC, says: forbidden("configmaps", "iris-green-web")},
		"another trust store for green": {file: "apiVersion: landwaiter.dev/v1beta1\nkind: TrustStore\nmetadata: {namespace: iris-green, name: " +
			"keys}\nspec: {type: PublicKeys, source: {inline: x}}\n", by: byRBAC, says: forbidden("truststores", "iris-green")},
		"another policy for green": {file: "apiVersion: landwaiter.dev/v1beta1\nkind: VerificationPolicy\nmetadata: {namespace: iris-green, name: " +
			"p}\nspec: {defaultAction: Allow}\n", by: byRBAC, says: forbidden("verificationpolicies", "iris-green")},
		"a rule for every team": {file: "apiVersion: landwaiter.dev/v1beta1\nkind: ClusterVerificationPolicy\nmetadata: {name: p}\nspec: " +
			"{defaultAction: Allow}\n", by: byRBAC, says: forbidden("clusterverificationpolicies", "")},
		"a Tenant that has green's": {file: "apiVersion: landwaiter.dev/v1beta1\nkind: Tenant\nmetadata: {name: other}\nspec: {homeNamespace: other, " +
			"namespaces: [iris-green-web]}\n", by: byRBAC, says: forbidden("tenants", "")},
		"a permission in green's namespace": {file: rbac + "RoleBinding\nmetadata: {namespace: iris-green-web, name: x}\n" + admin("edit"), by: byRBAC,
			says: forbidden("rolebindings", "iris-green-web")},
		"cluster-admin in its own": {file: rbac + "RoleBinding\nmetadata: {namespace: iris-red-web, name: x}\n" + admin("cluster-admin"), by: byRBAC,
			says: "attempting to grant RBAC permissions not currently held"},
		"cluster-admin everywhere": {file: rbac + "ClusterRoleBinding\nmetadata: {name: x}\n" + admin("cluster-admin"), by: byRBAC,
			says: forbidden("clusterrolebindings", "")},
		"to act as accounts": {file: rbac + "Role\nmetadata: {namespace: iris-red-web, name: x}\nrules: [{apiGroups: [\"\"], resources: " +
			"[serviceaccounts], verbs: [impersonate]}]\n", by: byRBAC, says: "attempting to grant RBAC permissions not currently held"},
		"a token of green's account": {file: "apiVersion: v1\nkind: Secret\ntype: kubernetes.io/service-account-token\nmetadata: {namespace: " +
			"iris-green, name: x, annotations: {kubernetes.io/service-account.name: iris-green}}\n", by: byRBAC, says: forbidden("secrets", "iris-green")},
		"an end of the guardrails": {file: "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {name: " +
			"landwaiter-namespace-names}\nspec: {policyName: landwaiter-namespace-names, validationActions: [Audit]}\n", by: byRBAC,
			says: forbidden("validatingadmissionpolicybindings", "")},
		"a namespace in green's range": {file: namespace("iris-green-new", ""), by: guardrail("namespace-names"),
			says: "Namespace/iris-green-new dry-run failed (Forbidden)"},
		"other labels on green's": {file: nested("iris-red", own), inner: namespace("iris-green-web", "x: y"), by: guardrail("namespace-names"),
			says: "the account of Tenant iris-red may make and change only namespaces of the Tenant", in: "iris-red"},
		"a namespace outside of its range": {file: namespace("anything", ""), by: guardrail("namespace-names"),
			says: "Namespace/anything dry-run failed (Forbidden)"},
		"its namespace to be green's": {file: nested("iris-red", own), inner: namespace("iris-red-web", "landwaiter.dev/tenant: iris-green"),
			by: guardrail("tenant-labels"), says: "only the platform may set or change landwaiter.dev/tenant", in: "iris-red"},
		"no Gatekeeper in its namespace": {file: namespace("iris-red-web", "admission.gatekeeper.sh/ignore: x"), by: guardrail("tenant-labels"),
			says: "only the platform may set or change admission.gatekeeper.sh/ignore"},
		"privileged pods": {file: namespace("iris-red-web", "pod-security.kubernetes.io/enforce: privileged"), by: guardrail("tenant-labels"),
			says: "pod-security.kubernetes.io/enforce"},
		"no default deny": {file: "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {namespace: iris-red-web, name: " +
			"default-deny}\nspec: {podSelector: {matchLabels: {no: body}}, policyTypes: [Ingress]}\n", by: guardrail("platform-objects"),
			says: "NetworkPolicy default-deny in namespace iris-red-web belongs to the platform"},
		"a larger quota": {file: "apiVersion: v1\nkind: ResourceQuota\nmetadata: {namespace: iris-red-web, name: tenant}\nspec: {hard: " +
			"{pods: 500}}\n", by: byRBAC, says: forbidden("resourcequotas", "iris-red-web")},
		"a pod next to its keys": {file: "apiVersion: v1\nkind: Pod\nmetadata: {namespace: iris-red, name: x}\nspec: {containers: [{name: c, " +
			"image: registry.example.com/x, securityContext: {allowPrivilegeEscalation: false, runAsNonRoot: true, capabilities: {drop: [ALL]}, seccompProfile: " +
			"{type: RuntimeDefault}}}]}\n", by: guardrail("home-workloads"), says: "keeps no workloads"},
		"its own permissions with green's name": {file: nested("iris-red", "serviceAccountName: iris-green, sourceRef: {kind: GitRepository, name: iris-red}"),
			by: guardrail("home-accounts"), says: "set spec.serviceAccountName to iris-red"},
		"the permissions of Flux": {file: nested("iris-red", "sourceRef: {kind: GitRepository, name: iris-red}"), by: guardrail("home-accounts"),
			says: "set spec.serviceAccountName to iris-red"},
		"another cluster's permissions": {file: nested("iris-red", own+", kubeConfig: {secretRef: {name: x}}"), by: guardrail("home-accounts"),
			says: "leave out spec.kubeConfig"},
		"the permissions of " +
			"Flux's Helm": {file: "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {namespace: iris-red, name: x}\nspec: {interval: 1h, " +
			"targetNamespace: iris-green, chart: {spec: {chart: x, sourceRef: {kind: HelmRepository, name: x}}}}\n", by: guardrail("home-accounts"),
			says: "set spec.serviceAccountName to iris-red"},
		"objects in green by target": {file: nested("iris-red", own+", targetNamespace: iris-green-web"), inner: configMap("iris-red-web", "x"),
			by: byRBAC, says: forbidden("configmaps", "iris-green-web"), in: "iris-red"},
		"green's repository": {
			file: nested("iris-red", "serviceAccountName: iris-red, sourceRef: {kind: GitRepository, name: iris-green, namespace: iris-green}"), by: byFlux,
			says: "cross-namespace references have been blocked", in: "iris-red"},
		"green's account from a " +
			"tenant namespace": {file: sourceOfRed("iris-red-web") + "---\n" +
			nested("iris-red-web", "serviceAccountName: iris-green, sourceRef: {kind: GitRepository, name: iris-red}"), inner: configMap("iris-green-web", "x"),
			by: byRBAC, says: `"system:serviceaccount:iris-red-web:iris-green" cannot patch`, in: "iris-red-web"},
		"a base from another Git server": {file: nested("iris-red", own), base: "ELSEWHERE.git?ref=main", by: byFlux, says: "is not in or below",
			in: "iris-red"},
		// The lockdown does not keep kustomize from fetching a single file. What it says is applied as red's account all the same.
		"a manifest from another server": {file: nested("iris-red", own), base: "ELSEWHERE/manifest.yaml", by: byRBAC,
			says: forbidden("configmaps", "iris-green-web"), in: "iris-red"},
		"green's variables": {
			file: nested("iris-red", own+", postBuild: {substituteFrom: [{kind: ConfigMap, name: tenant-vars, namespace: iris-green}]}"), by: "schema of Flux",
			says: "spec.postBuild.substituteFrom[0].namespace: field not declared in schema"},
	}
}

// namespace is a manifest with labels.
func namespace(name, labels string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {%s}}\n", name, labels)
}

// sourceOfRed is red's repository in another of red's namespaces.
func sourceOfRed(namespace string) string {
	return fmt.Sprintf("apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {namespace: %s, name: iris-red}\n"+
		"spec: {interval: 10m, url: \"REPOSITORY\", ref: {branch: %s}, secretRef: {name: git}}\n", namespace, flux.Branch)
}

func TestRedCannotTouchGreen(t *testing.T) {
	ofTeams.enter(t)
	r := controllers(t)
	quota := []string{"--set", "reconciler.createNamespaces=true", "--set", "isolation.quota.pods=5"}
	names := strings.NewReplacer("iris-green", fresh("iris-green"), "iris-red", fresh("iris-red"))
	greenHome, greenWeb, redHome, redWeb := names.Replace("iris-green"), names.Replace("iris-green-web"), names.Replace("iris-red"), names.Replace("iris-red-web")
	green := r.team(t, greenHome,
		append(quota, "--set", "namespaces="+greenWeb, "--set", "namespacePrefix="+greenHome+"-", "--set", "reconciler.variables.COLOR=green")...)
	green.push(t, metav1.ConditionTrue, map[string]string{"app.yaml": configMap(greenWeb, "app")})
	red := r.team(t, redHome, append(quota, "--set", "namespaces="+redWeb, "--set", "namespacePrefix="+redHome+"-")...)
	r.apply(t, red.repository.Secret(redWeb, "git"))
	before := r.everything(t, greenHome, greenWeb)
	require.Greater(t, len(before), 12)

	elsewhere := r.foreign(t, greenWeb)
	all := attempts()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) { all[name].make(t, red, names, elsewhere) })
	}
	red.push(t, metav1.ConditionTrue, nil)
	require.Equal(t, before, r.everything(t, greenHome, greenWeb), "green is as it was")
	require.Nil(t, r.get(t, "v1", "Namespace", "", greenHome+"-new"))
	require.Nil(t, r.get(t, "landwaiter.dev/v1beta1", "Tenant", "", "other"))
}

// make commits the attempt and sees it refused, by the layer that should.
func (a attempt) make(t *testing.T, red *team, names *strings.Replacer, elsewhere string) {
	t.Helper()
	files := map[string]string{"file.yaml": a.file}
	if a.inner != "" {
		files["inner/inner.yaml"] = a.inner
	}
	if a.base != "" {
		files["inner/kustomization.yaml"] = "resources: [\"" + a.base + "\"]\n"
	}
	for name, text := range files {
		files[name] = strings.NewReplacer("REPOSITORY", red.repository.URL(), "ELSEWHERE", elsewhere).Replace(names.Replace(text))
	}
	says := names.Replace(a.says)
	var said string
	if a.in == "" {
		said = red.push(t, metav1.ConditionFalse, files)
	} else {
		red.push(t, metav1.ConditionTrue, files)
		said = red.refused(t, flux.Kustomization(), names.Replace(a.in), "inner", says)
	}
	require.Contains(t, said, says)
	if a.by != byRBAC && a.by != byFlux && a.by != "schema of Flux" {
		require.Contains(t, said, a.by)
	} else {
		require.NotContains(t, said, "denied request")
	}
	t.Logf("%s: %s", a.by, said)
	if a.in == "" {
		return // nothing was applied, and the next attempt replaces these files
	}
	red.push(t, metav1.ConditionTrue, nil)
	for _, namespace := range []string{"iris-red", "iris-red-web"} {
		red.gone(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", names.Replace(namespace), "inner")
	}
}

// foreign starts a server that red's repository refers to: with a manifest for green's
// namespace, and a Git repository that has the same.
func (r *running) foreign(t *testing.T, green string) string {
	t.Helper()
	manifest := configMap(green, "x")
	foreign := fresh("foreign")
	r.repository(t, foreign, map[string]string{"kustomization.yaml": "resources: [manifest.yaml]\n", "manifest.yaml": manifest})
	mux := http.NewServeMux()
	mux.Handle("/"+foreign+".git/", r.git.Unguarded())
	mux.HandleFunc("/"+foreign+"/manifest.yaml", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, manifest) }) // whoever asks sees the rest
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL + "/" + foreign
}

// everything returns the versions of all objects of namespaces, and of the namespaces
// themselves. Flux writes the status of its own kinds all the time, so of those it is the
// generation, which counts changes of the spec.
func (w *world) everything(t *testing.T, namespaces ...string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, kind := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "ServiceAccount"}, {Version: "v1", Kind: "ResourceQuota"},
		{Version: "v1", Kind: "Pod"},
		{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
		flux.GitRepository(), flux.Kustomization(), flux.HelmRelease(),
		v1beta1.GroupVersion.WithKind("Verifier"), v1beta1.GroupVersion.WithKind("TrustStore"), v1beta1.GroupVersion.WithKind("Store"),
		v1beta1.GroupVersion.WithKind("VerificationPolicy"),
	} {
		for _, namespace := range namespaces {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind)
			require.NoError(t, w.Client.List(suite.Within(t), list, client.InNamespace(namespace)))
			for i := range list.Items {
				object := &list.Items[i]
				version := object.GetResourceVersion()
				if object.GetGeneration() > 0 {
					version = fmt.Sprint("generation ", object.GetGeneration())
				} else if kind.Kind == "ResourceQuota" { // the API server counts again now and then
					version = fmt.Sprint(object.Object["spec"])
				}
				found[kind.Kind+" "+namespace+"/"+object.GetName()] = version
			}
		}
	}
	for _, namespace := range namespaces {
		found["Namespace "+namespace] = w.get(t, "v1", "Namespace", "", namespace).GetResourceVersion()
	}
	return found
}
