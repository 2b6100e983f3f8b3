//go:build e2e || nightly

package teams

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

const (
	read  = "get list"
	write = "get list create update patch delete deletecollection"
)

// places are namespaces in which the matrix asks, from the view of iris-green. Anything
// that is not in a namespace is in the cluster.
func places() map[string]string {
	return map[string]string{"own": "iris-green-web", "home": "iris-green", "other": "iris-red-web", "other-home": "iris-red", "cluster": ""}
}

// target is a kind, and an object of it in every place.
type target struct {
	class string // what rows of the matrix name
	schema.GroupVersionResource
	kind, name, body string
}

func in(group, version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
}

const (
	ours = "landwaiter.dev"
	mine = "mine"
	// guard is the label of what the platform owns.
	guard = "landwaiter.dev/owner: platform"
)

func targets() (namespaced, clusterWide []target) {
	signed := "spec: {type: Cosign, cosign: {keys: {trustStoreRefs: [{name: keys}], insecureIgnoreTransparencyLog: true}}}"
	deny := "spec: {rules: [{images: ['**'], action: Deny}]}"
	roleRef := "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "
	container := "{name: x, image: x, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}"
	namespaced = []target{
		{"rules", in(ours, "v1beta1", "verifiers"), "Verifier", mine, signed},
		{"rules", in(ours, "v1beta1", "truststores"), "TrustStore", mine, "spec: {type: PublicKeys, source: {inline: x}}"},
		{"wishes", in(ours, "v1beta1", "stores"), "Store", mine, "spec: {registries: [example.com]}"},
		{"wishes", in(ours, "v1beta1", "verificationpolicies"), "VerificationPolicy", mine, deny},
		{"rules", in(ours, "v1beta1", "exceptions"), "Exception", mine, "spec: {until: '2030-01-01T00:00:00Z', reason: r, images: [example.com/a]}"},
		{"secrets", in("", "v1", "secrets"), "Secret", mine, "stringData: {a: b}"},
		{"team", in("", "v1", "configmaps"), "ConfigMap", mine, "data: {a: b}"},
		{"team", in("", "v1", "serviceaccounts"), "ServiceAccount", mine, ""},
		{"network", in("networking.k8s.io", "v1", "networkpolicies"), "NetworkPolicy", mine, "spec: {podSelector: {}}"},
		{"binding", in(rbacv1.GroupName, "v1", "rolebindings"), "RoleBinding", mine, roleRef + "landwaiter-reader}"},
		{"flux", in("kustomize.toolkit.fluxcd.io", "v1", "kustomizations"), "Kustomization", mine, "spec: {serviceAccountName: TENANT}"},
		{"pods", in("", "v1", "pods"), "Pod", mine, "spec: {securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}, containers: [" +
			container + "]}"},
		{"guarded-policy", in("networking.k8s.io", "v1", "networkpolicies"), "NetworkPolicy", "default-deny", "spec: {podSelector: {}}"},
		{"guarded-quota", in("", "v1", "resourcequotas"), "ResourceQuota", "tenant", "spec: {hard: {pods: 9}}"},
		{"guarded-binding", in(rbacv1.GroupName, "v1", "rolebindings"), "RoleBinding", "TENANT-admins", roleRef + "admin}"},
	}
	clusterWide = []target{
		{"cluster", in(ours, "v1beta1", "clusterverifiers"), "ClusterVerifier", mine, signed},
		{"cluster", in(ours, "v1beta1", "clustertruststores"), "ClusterTrustStore", mine, "spec: {type: PublicKeys, source: {inline: x}}"},
		{"cluster", in(ours, "v1beta1", "clusterstores"), "ClusterStore", mine, "spec: {registries: [example.com]}"},
		{"cluster-teams", in(ours, "v1beta1", "clusterquotas"), "ClusterQuota", mine, "spec: {namespaces: [x], maxInFlight: 64}"},
		{"cluster-teams", in(ours, "v1beta1", "clusterexceptions"), "ClusterException", mine,
			"spec: {until: '2030-01-01T00:00:00Z', reason: r, images: [example.com/a], namespaces: [x]}"},
		{"cluster-policy", in(ours, "v1beta1", "clusterverificationpolicies"), "ClusterVerificationPolicy", mine, deny},
		{"tenants", in(ours, "v1beta1", "tenants"), "Tenant", "iris-green", "spec: {homeNamespace: fresh}"},
		{"guardrail", in("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies"), "ValidatingAdmissionPolicy", "landwaiter-operator-guardrail",
			"spec: {matchConstraints: {resourceRules: [{apiGroups: [x], apiVersions: [v1], operations: [CREATE], resources: [x]}]}, validations: " +
				"[{expression: 'true'}]}"},
		{"system", in(rbacv1.GroupName, "v1", "clusterrolebindings"), "ClusterRoleBinding", "platform", roleRef + "view}"},
		{"namespace", in("", "v1", "namespaces"), "Namespace", "payments", ""},
	}
	return namespaced, clusterWide
}

func (t target) object(namespace, name string) *unstructured.Unstructured {
	labels := ""
	if strings.HasPrefix(t.class, "guarded") {
		labels = guard
	}
	tenant, _ := strings.CutSuffix(namespace, "-web")
	object := suite.Object("{apiVersion: %s, kind: %s, metadata: {name: %s, labels: {%s}}, %s}", t.GroupVersion(), t.kind, name, labels,
		strings.ReplaceAll(t.body, "TENANT", tenant))
	object.SetNamespace(namespace)
	return object
}

// everybody are those who ask.
func everybody() map[string]persona {
	return map[string]persona{
		"cluster-admin": platform(), "landwaiter-admin": {"clara", []string{"platform"}}, "team-admin": greenAdmin(), "developer": greenDev(),
		"viewer": {"vera", []string{"green-viewers"}}, "account": green(), "other-admin": redAdmin(), "other-account": red(), "operator": operator(),
		"nobody": {"nobody", nil},
		"reader": {"rea", nil}, "cluster-reader": {"carl", nil}, "tenant-reader": {"tina", nil}, "checker": {"dora", nil},
	}
}

// granted are the permissions, as "who | where | classes | verbs". All else is refused.
func granted() []string {
	const all, notCreate = "rules wishes secrets team network binding flux", "get list update patch delete deletecollection"
	const guarded = "guarded-policy guarded-quota guarded-binding"
	// Dry runs of "namespace" stand for the namespace of the place; in the cluster it is one of nobody.
	return []string{
		"cluster-admin | own home other other-home | " + all + " pods " + guarded + " namespace | " + write,
		"cluster-admin | cluster | cluster cluster-policy cluster-teams tenants system guardrail namespace | " + write,
		"landwaiter-admin | own home other other-home | rules wishes | " + write,
		"landwaiter-admin | cluster | cluster cluster-policy cluster-teams tenants | " + write,

		"reader | own | rules wishes team pods | " + read,
		"reader | own | namespace | get",
		"cluster-reader | cluster | cluster cluster-policy | " + read,
		"tenant-reader | cluster | cluster-teams tenants | " + read,
		"checker | own home other other-home | rules wishes team network binding flux pods " + guarded + " | " + read,
		"checker | own home other other-home | namespace | get",
		"checker | cluster | cluster cluster-policy cluster-teams tenants guardrail system namespace | " + read,

		"team-admin | own home | " + all + " | " + write,
		"team-admin | own | pods | " + write,
		"team-admin | home | pods | " + notCreate,
		"team-admin | own home | " + guarded + " | " + read,
		"team-admin | own home | namespace | get",
		"developer | own | secrets team network flux pods | " + write,
		"developer | own | guarded-policy guarded-quota | " + read,
		"developer | own | namespace | get",
		"viewer | own | team network pods guarded-policy guarded-quota | " + read,
		"viewer | own | namespace | get",

		"account | own home | " + all + " | " + write,
		"account | own | pods | " + write,
		"account | home | pods | " + notCreate,
		"account | own home | " + guarded + " | " + read,
		// It may make namespaces, so it may read all of them.
		"account | own home other other-home cluster | namespace | get",
		"account | own home | namespace | patch",
		"account | own | namespace | delete",
		"account | cluster | namespace | list",

		"other-admin | other other-home | " + all + " | " + write,
		"other-admin | other | pods | " + write,
		"other-admin | other-home | pods | " + notCreate,
		"other-admin | other other-home | " + guarded + " | " + read,
		"other-admin | other other-home | namespace | get",
		// cluster-admin in its namespaces, as Flux's tool gives it: guardrails alone keep what is left out here.
		"other-account | other other-home | " + all + " | " + write,
		"other-account | other | pods | " + write,
		"other-account | other-home | pods | " + notCreate,
		"other-account | other other-home | " + guarded + " | " + read,
		"other-account | other other-home | namespace | get update patch",

		"operator | cluster | system | get", // to see whether an admin has bound what it may not
		// Its guardrails compare what it writes with the Tenant, which has none of these objects and says nothing of
		// annotations. It takes away bindings.
		"operator | own home other other-home | wishes team network binding flux guarded-policy guarded-quota | " + read,
		"operator | own home other other-home | guarded-binding | get list delete",
		"operator | cluster | cluster-policy tenants | " + read,
		"operator | cluster | guardrail | get",
		"operator | own home other other-home | namespace | get",
		"operator | cluster | namespace | get list",
	}
}

type question struct{ who, where, class, verb string }

func answers(t *testing.T) map[question]bool {
	t.Helper()
	may := map[question]bool{}
	for _, line := range granted() {
		parts := strings.Split(line, "|")
		require.Len(t, parts, 4, line)
		for _, where := range strings.Fields(parts[1]) {
			for _, class := range strings.Fields(parts[2]) {
				for _, verb := range strings.Fields(parts[3]) {
					may[question{strings.TrimSpace(parts[0]), where, class, verb}] = true
				}
			}
		}
	}
	return may
}

// ask asks the API server for real, without an effect.
func (w *arena) ask(ctx context.Context, c dynamic.Interface, t target, namespace, verb, name string) error {
	resource := dynamic.ResourceInterface(c.Resource(t.GroupVersionResource))
	if namespace != "" {
		resource = c.Resource(t.GroupVersionResource).Namespace(namespace)
	}
	dry := []string{metav1.DryRunAll}
	selector := metav1.ListOptions{FieldSelector: "metadata.name=" + name}
	var err error
	switch verb {
	case "get":
		_, err = resource.Get(ctx, name, metav1.GetOptions{})
	case "list":
		_, err = resource.List(ctx, metav1.ListOptions{})
	case "create":
		_, err = resource.Create(ctx, t.object(namespace, "fresh"), metav1.CreateOptions{DryRun: dry})
	case "update":
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(t.GroupVersion().WithKind(t.kind))
		if err = w.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); err == nil {
			notes := object.GetAnnotations()
			if notes == nil {
				notes = map[string]string{}
			}
			notes["example.com/x"] = "y"
			object.SetAnnotations(notes)
			_, err = resource.Update(ctx, object, metav1.UpdateOptions{DryRun: dry})
		}
	case "patch":
		_, err = resource.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.com/x":"y"}}}`), metav1.PatchOptions{DryRun: dry})
	case "delete":
		err = resource.Delete(ctx, name, metav1.DeleteOptions{DryRun: dry})
	case "deletecollection":
		err = resource.DeleteCollection(ctx, metav1.DeleteOptions{DryRun: dry}, selector)
	}
	return err
}

// asks goes through the matrix, and asks the API server what it may not leave out.
func (w *arena) asks(t *testing.T, leaveOut func(question, persona, authorizationv1.ResourceAttributes) bool) {
	t.Helper()
	namespaced, clusterWide := targets()
	w.prepare(t, namespaced, clusterWide)
	may, used, asked := answers(t), map[question]bool{}, 0
	for who, p := range everybody() {
		config := w.As(p.user, p.groups...)
		config.QPS, config.Burst = 2000, 4000
		c, err := dynamic.NewForConfig(config)
		require.NoError(t, err)
		for where, namespace := range places() {
			list := clusterWide
			if namespace != "" {
				list = append(slices.Clone(namespaced), target{"namespace", in("", "v1", "namespaces"), "Namespace", namespace, ""})
			}
			for _, of := range list {
				for _, verb := range strings.Fields(write) {
					if of.kind == "Namespace" && (verb == "deletecollection" || (namespace != "" && (verb == "list" || verb == "create"))) {
						continue // there is no such request, or it is the same in all places
					}
					tenant, _ := strings.CutSuffix(namespace, "-web")
					inside, name := namespace, strings.ReplaceAll(of.name, "TENANT", tenant)
					if of.kind == "Namespace" {
						inside = ""
					}
					q := question{who, where, of.class, verb}
					used[q] = true
					attributes := authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: of.Group, Version: of.Version, Resource: of.Resource}
					if slices.Contains([]string{"get", "update", "patch", "delete"}, verb) {
						attributes.Name = name
					}
					if leaveOut(q, p, attributes) {
						assert.False(t, may[q], "%+v %s", q, of.kind)
						continue
					}
					asked++
					err := w.ask(suite.Within(t), c, of, inside, verb, name)
					if may[q] {
						assert.NoError(t, err, "%+v %s", q, of.kind)
					} else {
						assert.True(t, apierrors.IsForbidden(err), "%+v %s: %v", q, of.kind, err)
					}
				}
			}
		}
	}
	for q := range may {
		require.True(t, used[q] || (q.class == "namespace" && slices.Contains([]string{"list", "create", "deletecollection"}, q.verb)), "nobody asked %+v", q)
	}
	t.Logf("%d requests", asked)
}

// prepare makes an object of every kind in every place.
func (w *arena) prepare(t *testing.T, namespaced, clusterWide []target) {
	t.Helper()
	add := func(of target, namespace string) {
		if of.name != mine {
			return
		}
		err := w.Client.Create(suite.Within(t), of.object(namespace, mine))
		require.NoError(t, client.IgnoreAlreadyExists(err), "%s in %s", of.kind, namespace)
	}
	for _, namespace := range places() {
		for _, of := range namespaced {
			if namespace == "" {
				continue
			}
			add(of, namespace)
		}
	}
	for _, of := range clusterWide {
		add(of, "")
	}
}
