//go:build e2e

package teams

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/pkg/inspect/isolation"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// tryIsolation runs all cases of iris-green against iris-red, and the other way round.
func (w *arena) tryIsolation(ctx context.Context, options isolation.Options) ([]isolation.Result, error) {
	options.Landwaiter = types.NamespacedName{Namespace: suite.System, Name: "landwaiter"}
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
func (w *arena) settled(t *testing.T, options isolation.Options, want ...string) []isolation.Result {
	t.Helper()
	var results []isolation.Result
	suite.Eventually(t, func(ctx context.Context) (err error) {
		if results, err = w.tryIsolation(ctx, options); err != nil {
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
	w := attacked(t)
	w.allRefuse(t)
	suite.Eventually(t, func(ctx context.Context) error { // other tests leave namespaces that end
		list := &corev1.NamespaceList{}
		if err := w.Client.List(ctx, list); err != nil {
			return err
		}
		for _, namespace := range list.Items {
			if namespace.DeletionTimestamp != nil {
				return fmt.Errorf("namespace %s is ending", namespace.Name)
			}
		}
		return nil
	})
	before := w.everything(t)
	results := w.settled(t, isolation.Options{})
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
	require.Equal(t, before, w.everything(t), "something was written")
}

// everything is the names and versions of all objects that a case could have changed.
func (w *arena) everything(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, kind := range []string{"Namespace", "ConfigMap", "ResourceQuota", "ServiceAccount", "Secret", "Pod", "RoleBinding", "NetworkPolicy", "Kustomization",
		"Verifier", "Tenant"} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(apiVersions()[kind])
		list.SetKind(kind + "List")
		require.NoError(t, w.Client.List(suite.Within(t), list))
		for _, object := range list.Items {
			all[kind+" "+object.GetNamespace()+"/"+object.GetName()] = fmt.Sprint(object.GetLabels(), object.GetAnnotations(), object.GetDeletionTimestamp())
		}
	}
	return all
}

// deniesNothing has the binding of a guardrail only warn, for the length of a test.
func (w *arena) deniesNothing(t *testing.T, rule string) {
	t.Helper()
	lax := w.bindingOf("landwaiter-" + rule)
	lax.Object["spec"].(map[string]any)["validationActions"] = []any{"Audit"}
	require.NoError(t, w.Apply(suite.Within(t), lax))
	w.putBack(t, w.bindingOf("landwaiter-"+rule))
}

// putBack applies an object after a test.
func (w *arena) putBack(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	t.Cleanup(func() { require.NoError(t, w.Apply(suite.Within(t), object)) })
}

// planted puts objects into the cluster for the length of a test.
func (w *arena) planted(t *testing.T, objects ...*unstructured.Unstructured) {
	t.Helper()
	require.NoError(t, w.Apply(suite.Within(t), objects...))
	t.Cleanup(func() {
		for _, object := range objects {
			require.NoError(t, client.IgnoreNotFound(w.Client.Delete(suite.Within(t), object)))
		}
	})
}

// hole is something planted that somebody gets through.
type hole struct {
	plant func(*testing.T)
	who   string   // of the results, those of this person
	want  []string // cases that must not hold, among others
	why   string
}

// missed says what of a hole results do not show.
func (h hole) missed(results []isolation.Result) error {
	theirs := slices.DeleteFunc(slices.Clone(results), func(r isolation.Result) bool { return !strings.Contains(r.Who, h.who) })
	found := holes(theirs)
	for _, want := range h.want {
		if !slices.Contains(found, want) {
			return fmt.Errorf("%s held for %s; found are %v", want, h.who, found)
		}
	}
	if !slices.ContainsFunc(theirs, func(r isolation.Result) bool {
		return r.Outcome == isolation.NotHeld && strings.Contains(r.Why, h.why) && r.Fix != ""
	}) {
		return fmt.Errorf("nothing names %s", h.why)
	}
	return nil
}

// Holes that do not hide each other are planted together.
func TestIsolationFindsPlantedHoles(t *testing.T) {
	w := attacked(t)
	const role = "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: iris-green-web, name: one}, rules: [{apiGroups: [''], resources: " +
		"[secrets], resourceNames: [keys], verbs: [get]}]}"
	const bound = "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: iris-green-web, name: one}, roleRef: {apiGroup: " +
		"rbac.authorization.k8s.io, kind: Role, name: one}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: red-admins}]}"
	const reader = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: oops}, rules: [{apiGroups: [landwaiter.dev], resources: " +
		"[tenants], verbs: [list]}]}"
	for name, together := range map[string]map[string]hole{
		"guardrails": {
			"one only warns": {func(t *testing.T) { w.deniesNothing(t, "tenant-labels") }, "",
				[]string{"controller-tenant-labels", "guardrail-tenant-labels", "own-labels"}, "instead of Deny"},
			"one has no binding": {func(t *testing.T) {
				binding := w.bindingOf("landwaiter-platform-objects")
				require.NoError(t, w.Client.Delete(suite.Within(t), binding.DeepCopy()))
				w.putBack(t, binding)
			}, "", []string{"controller-platform-objects", "guardrail-platform-objects", "own-platform-objects"},
				"no ValidatingAdmissionPolicyBinding references the guardrail"},
			"a piece gives every account too much": {func(t *testing.T) {
				w.deniesNothing(t, "reconciler-pieces")
				wide := suite.Object(piece, "rules: [{apiGroups: [''], resources: [limitranges], verbs: [update]}]")
				suite.Eventually(t, func(ctx context.Context) error { return w.Apply(ctx, wide) }) // until the guardrail lets it pass
				w.planted(t, wide)
			}, "", []string{"controller-reconciler-pieces", "guardrail-reconciler-pieces", "reconciler-pieces"},
				"ClusterRole piece has core, and every Git account gets it"},
			"controllers may write what decides the team's trust": {func(t *testing.T) { w.deniesNothing(t, "secrets-of-truststores") }, "iris-green/iris-green",
				[]string{"own-trusted-secrets"}, "may create an ExternalSecret in namespace iris-green that writes Secret keys"},
			"a team reads Tenants": {func(t *testing.T) {
				w.planted(t, suite.Object(reader), binding("", "oops", "oops", group("red-admins")))
			}, "red-admins", []string{"cluster-tenants"}, `ClusterRole "oops"`},
		},
		"rights": {
			"a developer is admin of another team": {func(t *testing.T) { w.planted(t, binding("iris-red-web", "oops", "admin", group("green-devs"))) }, "green-devs",
				[]string{"other-accounts", "other-limits", "other-permissions", "other-reads", "other-rules", "other-secrets", "other-workloads"},
				`RoleBinding "oops/iris-red-web"`},
			"a developer is in the home namespace": {func(t *testing.T) { w.planted(t, binding("iris-green", "oops", "edit", group("green-devs"))) }, "green-devs",
				[]string{"home-developers"}, `RoleBinding "oops/iris-green"`},
			"an admin may read one Secret of another team": {func(t *testing.T) { w.planted(t, suite.Object(role), suite.Object(bound)) }, "red-admins",
				[]string{"other-secrets"}, `may get secrets in namespace iris-green-web, keys; RBAC: allowed by RoleBinding "one/iris-green-web"`},
			"a viewer has the permissions of a cluster admin": {func(t *testing.T) { w.planted(t, binding("", "oops", "cluster-admin", group("green-viewers"))) },
				"green-viewers",
				[]string{"cluster-guardrails", "cluster-landwaiter", "cluster-permissions", "cluster-rules", "cluster-tenants", "namespace-viewers"},
				`ClusterRoleBinding "oops"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, h := range together {
				h.plant(t)
			}
			suite.Eventually(t, func(ctx context.Context) error {
				results, err := w.tryIsolation(ctx, isolation.Options{})
				for name, h := range together {
					if missed := h.missed(results); missed != nil {
						err = errors.Join(err, fmt.Errorf("%s: %w", name, missed))
					}
				}
				if found, _ := isolation.Findings(results); err == nil && len(found) == 0 {
					err = errors.New("a hole is no finding")
				}
				return err
			})
		})
	}
}

// All guardrails are gone: each is found missing, and each that keeps anybody from
// anything is found by what it no longer refuses.
func TestIsolationFindsEveryGuardrailThatIsGone(t *testing.T) {
	w := attacked(t)
	want := []string{"account-names", "controller-reconciler-pieces", "own-trusted-secrets", "controller-break-glass", "controller-home-accounts",
		"controller-home-workloads", "controller-namespace-deletion", "controller-platform-objects",
		"controller-tenant-labels", "home-flux", "home-pods", "operator-account", "own-break-glass", "own-labels", "own-namespace", "own-platform-objects"}
	for _, policy := range w.ofKind("ValidatingAdmissionPolicy") {
		want = append(want, "guardrail-"+strings.TrimPrefix(policy.GetName(), "landwaiter-"))
		require.NoError(t, w.Client.Delete(suite.Within(t), policy.DeepCopy()))
		w.putBack(t, policy)
	}
	suite.Eventually(t, func(ctx context.Context) error {
		results, err := w.tryIsolation(ctx, isolation.Options{})
		found := holes(results)
		for _, id := range want {
			if err == nil && !slices.Contains(found, id) {
				err = fmt.Errorf("%s held; found are %v", id, found)
			}
		}
		return err
	})
}

// Who may not impersonate has nothing tried, and is told which permission is missing.
func TestIsolationNamesTheRightThatIsMissing(t *testing.T) {
	w := attacked(t)
	reader := suite.Object("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: isolation-reader}, rules: [{apiGroups: ['*'], " +
		"resources: ['*'], verbs: [get, list]}]}")
	w.planted(t, reader)
	w.planted(t, binding("", "isolation-reader", "isolation-reader", serviceAccount("iris-green-web", "isolation-reader")))
	w.planted(t, suite.Object("{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: iris-green-web, name: isolation-reader}}"))
	config := w.token(t, "iris-green-web", "isolation-reader")
	suite.Eventually(t, func(ctx context.Context) error {
		results, err := isolation.Run(ctx, config, isolation.Options{Landwaiter: types.NamespacedName{Namespace: suite.System, Name: "landwaiter"}})
		if err != nil {
			return err
		}
		found, unchecked := isolation.Findings(results)
		require.Empty(t, found)
		require.NotEmpty(t, unchecked)
		for _, r := range results {
			if strings.HasPrefix(r.Case, "guardrail-") || r.Case == "reconciler-pieces" {
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
