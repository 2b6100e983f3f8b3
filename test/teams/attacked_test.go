//go:build e2e || nightly

package teams

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// arena is a cluster with two Tenants, what they stand for, and those who attack them.
type arena struct {
	*cluster.Cluster
	rendered []*unstructured.Unstructured // of the chart, without what runs
	clients  map[string]client.Client     // of those who ask, by their names
}

var attacked = suite.Once(parts, func(ctx context.Context, e *suite.Env) (*arena, error) {
	w := &arena{clients: map[string]client.Client{}}
	var err error
	if w.Cluster, err = e.Cluster(ctx, cluster.Options{WithoutGatekeeper: true,
		// As in a real cluster: with the administrator's permissions, controllers would pass every rule.
		ManagerArgs: []string{"--use-service-account-credentials=true", "--controllers=validatingadmissionpolicy-status-controller"}}); err != nil {
		return nil, err
	}
	own, err := suite.Definitions()
	if err != nil {
		return nil, err
	}
	foreign, err := foreignKinds()
	if err != nil {
		return nil, err
	}
	registries, err := cluster.DecodeFile("testdata/registries.yaml")
	if err != nil {
		return nil, err
	}
	all, err := suite.Chart(ctx, "landwaiter", "--set",
		"crds.install=false,guardrails.enabled=true,operator.enabled=true,mutation.enabled=true,operator.mutation=true")
	if err != nil {
		return nil, err
	}
	w.rendered = suite.Only(all, suite.Rights()...)
	tenants, err := cluster.DecodeFile("testdata/tenants.yaml")
	if err != nil {
		return nil, err
	}
	for _, objects := range [][]*unstructured.Unstructured{own, foreign, stubs(), registries, w.rendered, tenants, standFor(), people()} {
		if err := w.Apply(ctx, objects...); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"iris-late", "iris-past"} {
		finalizer := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["landwaiter.dev/operator"]}}`))
		if err := w.Client.Patch(ctx, named("Tenant", "", name), finalizer, managerOf("Tenant")); err != nil {
			return nil, err
		}
		if err := w.Client.Delete(ctx, named("Tenant", "", name)); err != nil {
			return nil, err
		}
	}
	return w, cluster.Until(ctx, quotasCounted(w.Cluster))
})

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
	object := suite.Object("{apiVersion: rbac.authorization.k8s.io/v1, kind: %s, metadata: {name: %q}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: "+
		"ClusterRole, name: %s}}", kind, name, role)
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
		add(tenant, suite.Object("{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: %s, name: %s}}", tenant, tenant),
			suite.Object("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: %s, name: landwaiter-tenant}, data: {tenant: %s}}", tenant, tenant),
			suite.Object("{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: %s, name: %s, finalizers: [finalizers.fluxcd.io]}, "+
				"spec: {serviceAccountName: %s, path: ./, prune: true}}", tenant, tenant, tenant))
		for _, namespace := range []string{tenant, tenant + "-web"} {
			add(tenant,
				suite.Object("{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {namespace: %s, name: default-deny}, spec: {podSelector: {}, "+
					"policyTypes: [Ingress, Egress]}}", namespace),
				suite.Object("{apiVersion: v1, kind: ResourceQuota, metadata: {namespace: %s, name: tenant}, spec: {hard: {pods: 50}}}", namespace),
				binding(namespace, tenant+"-admins", "admin", group(color+"-admins")),
				binding(namespace, tenant+"-reconciler", role, serviceAccount(tenant, tenant)))
		}
		add(tenant, binding(tenant+"-web", tenant+"-developers", "edit", group(color+"-devs")),
			binding(tenant+"-web", tenant+"-viewers", "view", group(color+"-viewers")))
	}
	all = append(all, suite.Object(external, "iris-green", "older", ", target: {name: keys}"))
	// Trust, where teams keep it.
	for _, namespace := range []string{"iris-green", "iris-green-web", "iris-red", "iris-red-web"} {
		all = append(all,
			suite.Object("{apiVersion: landwaiter.dev/v1beta1, kind: Verifier, metadata: {namespace: %s, name: release}, spec: {type: Cosign, cosign: {keys: "+
				"{trustStoreRefs: [{name: keys}], insecureIgnoreTransparencyLog: true}}}}", namespace),
			suite.Object("{apiVersion: landwaiter.dev/v1beta1, kind: TrustStore, metadata: {namespace: %s, name: keys}, spec: {type: PublicKeys, source: "+
				"{secretKeyRef: {name: keys, key: cosign.pub}}}}", namespace),
			suite.Object("{apiVersion: landwaiter.dev/v1beta1, kind: Store, metadata: {namespace: %s, name: registry}, spec: {registries: [registry.example.com], "+
				"imagePullSecrets: [{name: login}]}}", namespace),
			suite.Object("{apiVersion: v1, kind: Secret, metadata: {namespace: %s, name: keys}, stringData: {cosign.pub: x}}", namespace),
			suite.Object("{apiVersion: v1, kind: Secret, metadata: {namespace: %s, name: login}, stringData: {x: x}}", namespace),
			suite.Object("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: %s, name: keys}, data: {cosign.pub: x}}", namespace))
	}
	return all
}

// people are those who have permissions outside of Tenants, and what binds accounts in the
// cluster.
func people() []*unstructured.Unstructured {
	return []*unstructured.Unstructured{
		binding("", "platform", "landwaiter-cluster-admin", group("platform")),
		binding("", "platform-all", "cluster-admin", group("platform-all")),
		binding("iris-green-web", "readers", "landwaiter-reader", user("rea")),
		binding("", "cluster-readers", "landwaiter-cluster-reader", user("carl")),
		binding("", "tenant-readers", "landwaiter-tenant-reader", user("tina")),
		binding("", "examiners", "landwaiter-checker", user("dora")),
		suite.Object("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: self-service}, rules: [{apiGroups: [''], resources: " +
			"[namespaces], verbs: [get, create, update, patch, delete]}]}"),
		binding("", "self-service", "self-service", user("spawner")),
		// As Landwaiter's leader lists them.
		suite.Object("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: landwaiter-operated-tenants}, rules: [{apiGroups: " +
			"[landwaiter.dev], resources: [tenants], resourceNames: [iris-blue, iris-green, iris-late, iris-red], verbs: [operate]}, " +
			"{apiGroups: [landwaiter.dev], resources: [tenants], resourceNames: [iris-past, past], verbs: [end]}]}"),
		binding("", "iris-green-namespace-maker", "landwaiter-namespace-maker", serviceAccount("iris-green", "iris-green")),
		// Landwaiter logs in as an account of one team; that of the other team gave too much.
		suite.Object("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: token-iris-green}, rules: [{apiGroups: [''], resources: " +
			"[serviceaccounts/token], resourceNames: [iris-green], verbs: [create]}]}"),
		suite.Object("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: token-of-all}, rules: [{apiGroups: [''], resources: " +
			"[serviceaccounts/token], verbs: [create]}]}"),
		binding("iris-green", "landwaiter-token", "token-iris-green", serviceAccount(suite.System, "landwaiter")),
		binding("iris-red", "landwaiter-token", "token-of-all", serviceAccount(suite.System, "landwaiter")),
		suite.Object("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: namespace-status}, rules: [{apiGroups: [''], resources: " +
			"[namespaces/status, namespaces/finalize], verbs: [update, patch]}]}"),
		binding("", "namespace-status", "namespace-status", user("maker")),
		binding("payments", "developers", "edit", user("peter")), // no Tenant is there
		// Controllers that write Secrets by the order of others, of which the platform trusts one in one namespace.
		suite.Object("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: secret-writer}, rules: [{apiGroups: [''], resources: " +
			"[secrets], verbs: [get, create, update, patch]}]}"),
		binding("", "secret-writers", "secret-writer", serviceAccount("external-secrets", "external-secrets"), serviceAccount("cert-manager", "cert-manager")),
		binding("iris-red", "external-secrets", "landwaiter-rules-writer", serviceAccount("external-secrets", "external-secrets")),
		// Nobody should have this: what a Tenant's account has that may also change namespaces.
		binding("", "red-namespace-maker", "landwaiter-namespace-maker", user("maker")),
	}
}

// as returns a client that really asks as somebody else.
func (w *arena) as(t *testing.T, who persona) client.Client {
	t.Helper()
	if w.clients[who.user] == nil {
		config := w.As(who.user, who.groups...)
		config.QPS = -1 // an attack is a request or two, and there are hundreds
		c, err := w.NewClient(config)
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

// stray has permission to make namespaces, and is no Tenant's account: the binding of one that
// lost its reconciler stays.
func stray() persona { return persona{"maker", nil} }

func operator() persona { return accountOf(suite.System, "landwaiter-operator") }

// attack is a request that RBAC lets pass and that a guardrail refuses. It is a dry run,
// so that it changes nothing where it succeeds.
type attack struct {
	name string
	who  persona
	rule string // of the policies the one that refuses, without the release's name
	also string // another one that refuses, too
	says string // part of the message
	try  func(context.Context, client.Client) error
}

// Objects to ask for.
const (
	namespace   = "{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {%s}}}"
	roleBinding = "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: %s, name: x}, " +
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %s}, subjects: [%s]}"
)

type request = func(context.Context, client.Client) error

// create asks to create an object.
func create(format string, args ...any) request {
	return func(ctx context.Context, c client.Client) error {
		return c.Create(ctx, suite.Object(format, args...), client.DryRunAll)
	}
}

// remove asks to delete an object.
func remove(kind, namespace, name string) request {
	return func(ctx context.Context, c client.Client) error {
		return c.Delete(ctx, named(kind, namespace, name), client.DryRunAll)
	}
}

// managerOf is the name by which the operator owns fields of a kind. Anybody may use it.
func managerOf(kind string) client.FieldOwner {
	if kind == "Tenant" {
		return "landwaiter-operator"
	}
	return "landwaiter-tenant"
}

// change asks to merge a patch into an object.
func change(kind, namespace, name, patch string) request {
	return func(ctx context.Context, c client.Client) error {
		return c.Patch(ctx, named(kind, namespace, name), client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll, managerOf(kind))
	}
}

// changeBelow is change by a subresource.
func changeBelow(subresource, kind, namespace, name, patch string) request {
	return func(ctx context.Context, c client.Client) error {
		return c.SubResource(subresource).Patch(ctx, named(kind, namespace, name), client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll,
			managerOf(kind))
	}
}

// finalize asks to change labels or annotations of a namespace by the subresource with which
// the namespace controller ends it.
func finalize(name, field, key string) request {
	return func(ctx context.Context, c client.Client) error {
		namespace := named("Namespace", "", name)
		if err := c.Get(ctx, client.ObjectKeyFromObject(namespace), namespace); err != nil {
			return err
		}
		if err := unstructured.SetNestedField(namespace.Object, "iris-green", "metadata", field, key); err != nil {
			return err
		}
		return c.SubResource("finalize").Update(ctx, namespace, client.DryRunAll)
	}
}

// note is a patch with an annotation of break-glass.
func note(key string) string {
	return fmt.Sprintf(`{"metadata":{"annotations":{"landwaiter.dev/break-glass-%s":"x"}}}`, key)
}

// apiVersions are those of the kinds that named knows.
func apiVersions() map[string]string {
	const v1, rbac = "v1", "rbac.authorization.k8s.io/v1"
	return map[string]string{
		"Namespace": v1, "ConfigMap": v1, "ResourceQuota": v1, "ServiceAccount": v1, "Secret": v1, "Pod": v1, "RoleBinding": rbac,
		"ClusterRole": rbac, "ExternalSecret": "external-secrets.io/v1", "NetworkPolicy": "networking.k8s.io/v1", "GitRepository": "source.toolkit.fluxcd.io/v1",
		"OCIRepository": "source.toolkit.fluxcd.io/v1", "Kustomization": "kustomize.toolkit.fluxcd.io/v1", "Verifier": "landwaiter.dev/v1beta1",
		"TenantAllowedRegistries": "constraints.gatekeeper.sh/v1beta1", "Tenant": "landwaiter.dev/v1beta1", "Provider": "externaldata.gatekeeper.sh/v1beta1",
		"Assign": "mutations.gatekeeper.sh/v1",
	}
}

func named(kind, namespace, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(apiVersions()[kind])
	object.SetKind(kind)
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// refusedBy says whether a policy refused a request.
func refusedBy(err error, rule string) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'landwaiter-"+rule+"'")
}

func label(key, value string) string {
	return fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, key, value)
}

func pod(namespace string) string {
	return "{apiVersion: v1, kind: Pod, metadata: {namespace: " + namespace + ", name: x}, spec: {securityContext: {runAsNonRoot: true, seccompProfile: {type: " +
		"RuntimeDefault}}, " +
		"containers: [{name: x, image: x, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]}}"
}

func (w *arena) refused(t *testing.T, a attack) {
	t.Helper()
	c := w.as(t, a.who)
	suite.Eventually(t, func(ctx context.Context) error {
		err := a.try(ctx, c)
		if refusedBy(err, a.rule) || (a.also != "" && refusedBy(err, a.also)) {
			if refusedBy(err, a.rule) {
				require.ErrorContains(t, err, a.says, a.name)
			}
			require.NotContains(t, err.Error(), "expression", "%s: it is refused by accident", a.name)
			return nil
		}
		return fmt.Errorf("%s: not refused by %s: %w", a.name, a.rule, err)
	})
}

func (w *arena) ofKind(kind string) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(w.rendered), func(o *unstructured.Unstructured) bool { return o.GetKind() != kind })
}

func (w *arena) bindingOf(policy string) *unstructured.Unstructured {
	return w.find("ValidatingAdmissionPolicyBinding", policy).DeepCopy()
}

// find returns an object of the chart.
func (w *arena) find(kind, name string) *unstructured.Unstructured {
	return w.rendered[slices.IndexFunc(w.rendered, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind && o.GetName() == name })]
}
