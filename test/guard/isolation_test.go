//go:build e2e

package guard

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/pkg/isolation"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
)

// tryIsolation runs all cases of iris-green against iris-red, and the other way round.
func tryIsolation(ctx context.Context, options isolation.Options) ([]isolation.Result, error) {
	options.Landwaiter = types.NamespacedName{Namespace: system, Name: "landwaiter"}
	return isolation.Run(ctx, w.Config, options)
}

// holes are the cases that did not hold.
func holes(results []isolation.Result) []string {
	var found []string
	for _, r := range results {
		if r.Outcome == isolation.NotHeld && !slices.Contains(found, r.Case) {
			found = append(found, r.Case)
		}
	}
	slices.Sort(found)
	return found
}

// settled tries until exactly the wanted cases do not hold.
func settled(t *testing.T, options isolation.Options, want ...string) []isolation.Result {
	t.Helper()
	var results []isolation.Result
	patiently(t, "the cases show "+strings.Join(want, ", "), func(ctx context.Context) (err error) {
		if results, err = tryIsolation(ctx, options); err != nil {
			return err
		}
		if found := holes(results); !slices.Equal(found, want) {
			var text []string
			for _, r := range results {
				if r.Outcome == isolation.NotHeld {
					text = append(text, fmt.Sprintf("%s as %s of %s: %s", r.Case, r.Who, r.Tenant, r.Why))
				}
			}
			return fmt.Errorf("not held: %s", strings.Join(text, "\n"))
		}
		return nil
	})
	return results
}

func TestEveryIsolationCaseHoldsInAnInstallationAsTheDocsDescribeIt(t *testing.T) {
	allRefuse(t)
	before := everything(t)
	results := settled(t, isolation.Options{})
	tried, by := map[string]int{}, map[string]int{}
	for _, r := range results {
		if r.Outcome == isolation.NotTried {
			t.Errorf("%s as %s of %s was not tried: %s", r.Case, r.Who, r.Tenant, r.Why)
		}
		tried[r.Case]++
		for _, who := range r.By {
			by[who]++
		}
	}
	t.Logf("%d results of %d cases; refused by %v", len(results), len(tried), by)
	require.Equal(t, before, everything(t), "something was written")
}

// everything is the names and versions of all objects that a case could have changed.
func everything(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, kind := range []string{"Namespace", "ConfigMap", "ResourceQuota", "ServiceAccount", "Secret", "Pod", "RoleBinding", "NetworkPolicy", "Kustomization", "Verifier", "Tenant"} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(versions()[kind])
		list.SetKind(kind + "List")
		require.NoError(t, w.Client.List(within(t), list))
		for _, object := range list.Items {
			all[kind+" "+object.GetNamespace()+"/"+object.GetName()] = fmt.Sprint(object.GetLabels(), object.GetAnnotations(), object.GetDeletionTimestamp())
		}
	}
	return all
}

// deniesNothing has the binding of a guardrail only warn, for the length of a test.
func deniesNothing(t *testing.T, rule string) {
	t.Helper()
	lax := bindingOf("landwaiter-" + rule)
	lax.Object["spec"].(map[string]any)["validationActions"] = []any{"Audit"}
	require.NoError(t, w.Apply(within(t), lax))
	t.Cleanup(func() { putBack(t, bindingOf("landwaiter-"+rule)) })
}

// putBack applies an object after a test.
func putBack(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), settle)
	defer cancel()
	require.NoError(t, w.Apply(ctx, object))
}

// planted puts an object into the cluster for the length of a test.
func planted(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	require.NoError(t, w.Apply(within(t), object))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), settle)
		defer cancel()
		require.NoError(t, client.IgnoreNotFound(w.Client.Delete(ctx, object)))
	})
}

func TestIsolationFindsPlantedHoles(t *testing.T) {
	for name, c := range map[string]struct {
		tenant, other string
		plant         func(*testing.T)
		want          []string // cases that must not hold, among others
		why           string
	}{
		"a guardrail that only warns": {"iris-green", "iris-red", func(t *testing.T) { deniesNothing(t, "tenant-labels") },
			[]string{"controller-tenant-labels", "guardrail-tenant-labels", "own-labels"}, "does not say Deny"},
		"a guardrail without its binding": {"iris-green", "iris-red", func(t *testing.T) {
			binding := bindingOf("landwaiter-platform-objects")
			require.NoError(t, w.Client.Delete(within(t), binding.DeepCopy()))
			t.Cleanup(func() { putBack(t, binding) })
		}, []string{"controller-platform-objects", "guardrail-platform-objects", "own-platform-objects"}, "Binding landwaiter-platform-objects is missing"},
		"a developer who is admin of another team": {"iris-green", "iris-red", func(t *testing.T) { planted(t, binding("iris-red-web", "oops", "admin", group("green-devs"))) },
			[]string{"other-accounts", "other-limits", "other-reads", "other-rights", "other-rules", "other-secrets", "other-workloads"}, `RoleBinding "oops/iris-red-web"`},
		"a developer in home": {"iris-green", "iris-red", func(t *testing.T) { planted(t, binding("iris-green", "oops", "edit", group("green-devs"))) },
			[]string{"home-developers"}, `RoleBinding "oops/iris-green"`},
		"a developer who may read one Secret of another team": {"iris-green", "iris-red", func(t *testing.T) {
			planted(t, of("{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: iris-red-web, name: one}, rules: [{apiGroups: [''], resources: [secrets], resourceNames: [keys], verbs: [get]}]}"))
			planted(t, of("{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: iris-red-web, name: one}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: one}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: green-devs}]}"))
		}, []string{"other-secrets"}, `may get secrets in namespace iris-red-web, keys; RBAC: allowed by RoleBinding "one/iris-red-web"`},
		"a viewer with the rights of a cluster admin": {"iris-green", "iris-red", func(t *testing.T) { planted(t, binding("", "oops", "cluster-admin", group("green-viewers"))) },
			[]string{"cluster-guardrails", "cluster-landwaiter", "cluster-rights", "cluster-rules", "cluster-tenants", "member-viewers"}, `ClusterRoleBinding "oops"`},
		"a team that reads Tenants": {"iris-red", "iris-green", func(t *testing.T) {
			planted(t, of("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: oops}, rules: [{apiGroups: [landwaiter.dev], resources: [tenants], verbs: [list]}]}"))
			planted(t, binding("", "oops", "oops", group("red-admins")))
		}, []string{"cluster-tenants"}, `ClusterRole "oops"`},
	} {
		t.Run(name, func(t *testing.T) {
			c.plant(t)
			patiently(t, name, func(ctx context.Context) error {
				results, err := tryIsolation(ctx, isolation.Options{Tenant: c.tenant, Other: c.other})
				if err != nil {
					return err
				}
				found := holes(results)
				for _, want := range c.want {
					if !slices.Contains(found, want) {
						return fmt.Errorf("%s held; found are %v", want, found)
					}
				}
				if isolation.Worst(results) != isolation.NotHeld || !slices.ContainsFunc(results, func(r isolation.Result) bool { return strings.Contains(r.Why, c.why) && r.Fix != "" }) {
					return fmt.Errorf("nothing names %s", c.why)
				}
				return nil
			})
		})
	}
}

// All guardrails are gone: each is found missing, and each that keeps anybody from
// anything is found by what it no longer refuses.
func TestIsolationFindsEveryGuardrailThatIsGone(t *testing.T) {
	want := []string{"account-names", "controller-break-glass", "controller-home-accounts", "controller-home-workloads", "controller-namespace-deletion", "controller-platform-objects",
		"controller-tenant-labels", "home-flux", "home-pods", "operator-account", "own-break-glass", "own-labels", "own-namespace", "own-platform-objects"}
	for _, policy := range ofKind("ValidatingAdmissionPolicy") {
		want = append(want, "guardrail-"+strings.TrimPrefix(policy.GetName(), "landwaiter-"))
		require.NoError(t, w.Client.Delete(within(t), policy.DeepCopy()))
		t.Cleanup(func() { putBack(t, policy) })
	}
	patiently(t, "all are found", func(ctx context.Context) error {
		results, err := tryIsolation(ctx, isolation.Options{})
		found := holes(results)
		for _, id := range want {
			if err == nil && !slices.Contains(found, id) {
				err = fmt.Errorf("%s held; found are %v", id, found)
			}
		}
		return err
	})
}

// Who may not impersonate has nothing tried, and is told which right is missing.
func TestIsolationNamesTheRightThatIsMissing(t *testing.T) {
	reader := of("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: isolation-reader}, rules: [{apiGroups: ['*'], resources: ['*'], verbs: [get, list]}]}")
	planted(t, reader)
	planted(t, binding("", "isolation-reader", "isolation-reader", serviceAccount("iris-green-web", "isolation-reader")))
	planted(t, of("{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: iris-green-web, name: isolation-reader}}"))
	config := token(t, "iris-green-web", "isolation-reader")
	eventually(t, "the reader may read", func(ctx context.Context) error {
		results, err := isolation.Run(ctx, config, isolation.Options{Landwaiter: types.NamespacedName{Namespace: system, Name: "landwaiter"}})
		if err != nil {
			return err
		}
		require.Equal(t, isolation.NotTried, isolation.Worst(results))
		for _, r := range results {
			if strings.HasPrefix(r.Case, "guardrail-") {
				require.Equal(t, isolation.Held, r.Outcome, r.Case) // only looked at
				continue
			}
			require.Equal(t, isolation.NotTried, r.Outcome, r.Case)
			require.Contains(t, r.Why, "cannot impersonate", r.Case)
			require.Contains(t, r.Fix, "impersonate", r.Case)
		}
		return nil
	})
}

// patiently is eventually for runs that take seconds themselves.
func patiently(t *testing.T, name string, try func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), settle)
	defer cancel()
	var last error
	require.NoError(t, cluster.Until(ctx, func(ctx context.Context) error {
		err := try(ctx)
		if err != nil && ctx.Err() == nil {
			last = err
		}
		return err
	}), "%s: %v", name, last)
}
