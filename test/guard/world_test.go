//go:build e2e

// Package guard attacks Tenants on a real control plane on which Gatekeeper does not run:
// who may do what, and which rule refuses the rest.
package guard

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
)

const (
	root = "../.."
	// system is the namespace of Landwaiter.
	system = "landwaiter-system"
	// settle bounds what is waited for.
	settle = 60 * time.Second
)

var w *world

type world struct {
	*cluster.Cluster
	rendered []*unstructured.Unstructured // of the chart, without what runs
	clients  map[string]client.Client     // of those who ask, by their names
}

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "landwaiter-guard-")
	if err == nil {
		err = start(dir)
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, "guard:", err)
	} else {
		code = m.Run()
	}
	if w != nil && w.Cluster != nil {
		w.Stop()
	}
	if code != 0 {
		fmt.Fprintln(os.Stderr, "guard: logs are kept in", filepath.Join(dir, "logs"))
		return code
	}
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, "guard:", err)
	}
	return code
}

func start(dir string) (err error) {
	tools := map[string]string{}
	for _, name := range []string{"LANDWAITER_CLUSTER_TOOLS", "LANDWAITER_CHART_TOOLS"} {
		if tools[name] = os.Getenv(name); tools[name] == "" {
			return fmt.Errorf("%s is not set; run make e2e", name)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	w = &world{clients: map[string]client.Client{}}
	w.Cluster, err = cluster.Start(ctx, cluster.Options{Tools: tools["LANDWAITER_CLUSTER_TOOLS"], Dir: dir, Progress: os.Stderr, WithoutGatekeeper: true,
		// As in a real cluster: with the administrator's rights, controllers would pass every rule.
		ManagerArgs: []string{"--use-service-account-credentials=true", "--controllers=validatingadmissionpolicy-status-controller"}})
	if err != nil {
		return err
	}
	return w.furnish(ctx, tools)
}

// furnish installs definitions, the chart's roles and guardrails, and two Tenants with
// what they stand for.
func (w *world) furnish(ctx context.Context, tools map[string]string) error {
	own, err := definitions()
	if err != nil {
		return err
	}
	of, err := gatekeepers(tools["LANDWAITER_CLUSTER_TOOLS"])
	if err != nil {
		return err
	}
	flux, err := cluster.DecodeFile("testdata/flux.yaml")
	if err != nil {
		return err
	}
	if w.rendered, err = rendered(ctx, tools["LANDWAITER_CHART_TOOLS"]); err != nil {
		return err
	}
	tenants, err := cluster.DecodeFile("testdata/tenants.yaml")
	if err != nil {
		return err
	}
	namespace, err := cluster.Decode([]byte("{apiVersion: v1, kind: Namespace, metadata: {name: " + system + "}}"))
	if err != nil {
		return err
	}
	for _, objects := range [][]*unstructured.Unstructured{own, of, flux, namespace, w.rendered, tenants, standFor(), people()} {
		if err := w.Apply(ctx, objects...); err != nil {
			return err
		}
	}
	return nil
}

func definitions() (all []*unstructured.Unstructured, err error) {
	files, err := filepath.Glob(filepath.Join(root, "config/crd/landwaiter.dev_*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("find definitions: %w", err)
	}
	for _, file := range files {
		objects, err := cluster.DecodeFile(file)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

// gatekeepers returns Gatekeeper's definitions, of which nothing runs.
func gatekeepers(tools string) ([]*unstructured.Unstructured, error) {
	all, err := cluster.DecodeFile(filepath.Join(tools, "gatekeeper.yaml"))
	return slices.DeleteFunc(all, func(o *unstructured.Unstructured) bool {
		return o.GetKind() != "CustomResourceDefinition" ||
			!slices.Contains([]string{"providers.externaldata.gatekeeper.sh", "assign.mutations.gatekeeper.sh"}, o.GetName())
	}), err
}

// rendered returns the chart's roles and guardrails.
func rendered(ctx context.Context, tools string, args ...string) ([]*unstructured.Unstructured, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(tools, "helm"), append([]string{"template", "landwaiter", root + "/charts/landwaiter", "--namespace", system,
		"--set", "crds.install=false,guardrails.enabled=true,operator.enabled=true,mutation.enabled=true,operator.mutation=true"}, args...)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("render the chart: %w: %s", err, stderr.Bytes())
	}
	all, err := cluster.Decode(stdout.Bytes())
	keep := []string{"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
	return slices.DeleteFunc(all, func(o *unstructured.Unstructured) bool {
		return !slices.Contains(keep, o.GetKind()) || (o.GetNamespace() != "" && o.GetNamespace() != system)
	}), err
}

// of makes an object from YAML.
func of(format string, args ...any) *unstructured.Unstructured {
	objects, err := cluster.Decode(fmt.Appendf(nil, format, args...))
	if err != nil || len(objects) != 1 {
		panic(fmt.Sprintf("%d objects, %v: %s", len(objects), err, fmt.Sprintf(format, args...)))
	}
	return objects[0]
}

// binding gives a role in a namespace, or in the cluster without one.
func binding(namespace, name, role string, subjects ...rbacv1.Subject) *unstructured.Unstructured {
	list := make([]any, len(subjects))
	for i, s := range subjects {
		list[i] = map[string]any{"kind": s.Kind, "name": s.Name}
		if s.Kind == "ServiceAccount" {
			list[i] = map[string]any{"kind": s.Kind, "name": s.Name, "namespace": s.Namespace}
		}
	}
	kind := "RoleBinding"
	if namespace == "" {
		kind = "ClusterRoleBinding"
	}
	object := of("{apiVersion: rbac.authorization.k8s.io/v1, kind: %s, metadata: {name: %q}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %s}}", kind, name, role)
	object.SetNamespace(namespace)
	object.Object["subjects"] = list
	return object
}

func group(name string) rbacv1.Subject { return rbacv1.Subject{Kind: "Group", Name: name} }

func user(name string) rbacv1.Subject { return rbacv1.Subject{Kind: "User", Name: name} }

func serviceAccount(namespace, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: "ServiceAccount", Namespace: namespace, Name: name}
}

// standFor is what the two Tenants stand for.
func standFor() (all []*unstructured.Unstructured) {
	add := func(tenant string, objects ...*unstructured.Unstructured) {
		for _, o := range objects {
			labels := map[string]string{"landwaiter.dev/tenant": tenant, "landwaiter.dev/owner": "platform"}
			maps.Copy(labels, o.GetLabels())
			o.SetLabels(labels)
			all = append(all, o)
		}
	}
	for tenant, role := range map[string]string{"iris-green": "landwaiter-reconciler", "iris-red": "cluster-admin"} {
		color := tenant[len("iris-"):]
		add(tenant, of("{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: %s, name: %s}}", tenant, tenant),
			of("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: %s, name: landwaiter-tenant}, data: {tenant: %s}}", tenant, tenant),
			of("{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: %s, name: %s}, spec: {serviceAccountName: %s, path: ./, prune: true}}", tenant, tenant, tenant))
		for _, namespace := range []string{tenant, tenant + "-web"} {
			add(tenant, of("{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {namespace: %s, name: default-deny}, spec: {podSelector: {}, policyTypes: [Ingress, Egress]}}", namespace),
				of("{apiVersion: v1, kind: ResourceQuota, metadata: {namespace: %s, name: tenant}, spec: {hard: {pods: 50}}}", namespace),
				binding(namespace, tenant+"-admins", "admin", group(color+"-admins")),
				binding(namespace, tenant+"-reconciler", role, serviceAccount(tenant, tenant)))
		}
		add(tenant, binding(tenant+"-web", tenant+"-developers", "edit", group(color+"-devs")), binding(tenant+"-web", tenant+"-viewers", "view", group(color+"-viewers")))
	}
	// Trust, where teams keep it.
	for _, namespace := range []string{"iris-green", "iris-green-web", "iris-red", "iris-red-web"} {
		all = append(all, of("{apiVersion: landwaiter.dev/v1alpha1, kind: Verifier, metadata: {namespace: %s, name: release}, spec: {type: Cosign, cosign: {keys: {trustStoreRefs: [{name: keys}]}}}}", namespace),
			of("{apiVersion: v1, kind: Secret, metadata: {namespace: %s, name: keys}, stringData: {cosign.pub: x}}", namespace))
	}
	return all
}

// people are those who have rights outside of Tenants, and what binds accounts in the
// cluster.
func people() []*unstructured.Unstructured {
	return []*unstructured.Unstructured{
		binding("", "platform", "landwaiter-cluster-admin", group("platform")),
		binding("", "platform-all", "cluster-admin", group("platform-all")),
		of("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: self-service}, rules: [{apiGroups: [''], resources: [namespaces], verbs: [get, create, update, patch, delete]}]}"),
		binding("", "self-service", "self-service", user("spawner")),
		// As Landwaiter's leader lists them.
		of("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: landwaiter-operated-tenants}, rules: [{apiGroups: [landwaiter.dev], resources: [tenants], resourceNames: [iris-blue, iris-green, iris-red], verbs: [operate]}]}"),
		binding("", "iris-green-namespace-maker", "landwaiter-namespace-maker", serviceAccount("iris-green", "iris-green")),
		// Landwaiter logs in as an account of one team; that of the other team gave too much.
		of("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: token-iris-green}, rules: [{apiGroups: [''], resources: [serviceaccounts/token], resourceNames: [iris-green], verbs: [create]}]}"),
		of("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: token-of-all}, rules: [{apiGroups: [''], resources: [serviceaccounts/token], verbs: [create]}]}"),
		binding("iris-green", "landwaiter-token", "token-iris-green", serviceAccount(system, "landwaiter")),
		binding("iris-red", "landwaiter-token", "token-of-all", serviceAccount(system, "landwaiter")),
		// Nobody should have this: what a Tenant's account has that may also change namespaces.
		binding("", "red-namespace-maker", "landwaiter-namespace-maker", user("maker")),
	}
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), settle)
	t.Cleanup(cancel)
	return ctx
}

// as returns a client that really asks as somebody else.
func as(t *testing.T, who persona) client.Client {
	t.Helper()
	if w.clients[who.user] == nil {
		c, err := w.NewClient(w.As(who.user, who.groups...))
		require.NoError(t, err)
		w.clients[who.user] = c
	}
	return w.clients[who.user]
}

// persona is somebody who asks.
type persona struct {
	user   string
	groups []string
}

func accountOf(namespace, name string) persona {
	return persona{"system:serviceaccount:" + namespace + ":" + name, []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace}}
}

func platform() persona   { return persona{"root", []string{"platform-all"}} }
func greenAdmin() persona { return persona{"ada", []string{"green-admins"}} }
func redAdmin() persona   { return persona{"rita", []string{"red-admins"}} }
func greenDev() persona   { return persona{"dan", []string{"green-devs"}} }
func green() persona      { return accountOf("iris-green", "iris-green") }
func red() persona        { return accountOf("iris-red", "iris-red") }
func spawner() persona    { return persona{"spawner", nil} }
func operator() persona   { return accountOf(system, "landwaiter-operator") }
