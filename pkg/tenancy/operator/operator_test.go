package operator

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

func fakeClient(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) client.Client {
	t.Helper()
	scheme, err := NewScheme()
	require.NoError(t, err)
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
}

func team(name string, namespaces ...string) *v1beta1.Tenant {
	return &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(1, 0))},
		Spec: v1beta1.TenantSpec{HomeNamespace: name, Namespaces: namespaces}}
}

func namespaceOf(tenant, name string) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if tenant != "" {
		n.Labels = map[string]string{v1beta1.LabelTenant: tenant}
	}
	return n
}

func TestMembersAreThoseThatMayBeEquipped(t *testing.T) {
	ending := namespaceOf("green", "ending")
	ending.DeletionTimestamp, ending.Finalizers = &metav1.Time{Time: time.Now()}, []string{"kubernetes"}
	older := team("older", "contested")
	older.CreationTimestamp = metav1.NewTime(time.Unix(0, 0))
	for about, c := range map[string]struct {
		tenant  *v1beta1.Tenant
		options Options
		want    []string
		reasons []policy.Reason
	}{
		"those that are labelled, and those to be made": {team("green", "web", "new"), Options{}, []string{"green", "new", "web"}, nil},
		"not one that is nobody's":                      {team("green", "payments"), Options{}, []string{"green"}, []policy.Reason{policy.ReasonNotOwned}},
		"not one with another's label":                  {team("green", "blue"), Options{}, []string{"green"}, []policy.Reason{policy.ReasonNotOwned}},
		"not one that an older Tenant has":              {team("green", "contested"), Options{}, []string{"green"}, []policy.Reason{policy.ReasonNotOwned}},
		"not one that is ending":                        {team("green", "ending"), Options{}, []string{"green"}, []policy.Reason{policy.ReasonNotOwned}},
		"not one of the system": {team("green", "landwaiter-system"), Options{}, []string{"green"},
			[]policy.Reason{policy.ReasonReserved}},
		"not one that is reserved": {team("green", "monitoring"), Options{Reserved: []string{"monitoring"}}, []string{"green"},
			[]policy.Reason{policy.ReasonReserved}},
		"nothing without the home namespace":             {team("payments", "web"), Options{}, nil, []policy.Reason{policy.ReasonNotOwned}},
		"one that is nobody's, with the admin's consent": {adopting(team("green", "payments")), Options{Adopt: true}, []string{"green", "payments"}, nil},
		"not by the operator, whatever spec.adopt says": {adopting(team("green", "payments")), Options{}, []string{"green"},
			[]policy.Reason{policy.ReasonNotOwned}},
		"not by an admin who was not asked to take it over": {team("green", "payments"), Options{Adopt: true}, []string{"green"},
			[]policy.Reason{policy.ReasonNotOwned}},
	} {
		t.Run(about, func(t *testing.T) {
			c.options.Onboard = onboard.Options{}
			e := New(fakeClient(t, interceptor.Funcs{}, older, namespaceOf("green", "green"), namespaceOf("green", "web"), namespaceOf("blue", "blue"),
				namespaceOf("", "payments"), ending), c.options)
			w, tenant, err := e.look(t.Context(), c.tenant)
			require.NoError(t, err)
			report := &Report{}
			members, err := e.members(t.Context(), w, tenant, report)
			require.NoError(t, err)
			var names []string
			for _, m := range members {
				names = append(names, m.name)
			}
			require.Equal(t, c.want, names)
			var reasons []policy.Reason
			for _, problem := range report.Problems {
				reasons = append(reasons, problem.Reason)
				require.NotEmpty(t, problem.Message)
			}
			require.Equal(t, c.reasons, reasons)
		})
	}
}

func adopting(tenant *v1beta1.Tenant) *v1beta1.Tenant {
	tenant.Spec.Adopt = true
	return tenant
}

// The reader may lag behind the API server.
func TestANamespaceThatHasJustAppearedIsNotTakenOver(t *testing.T) {
	stale := fakeClient(t, interceptor.Funcs{}, namespaceOf("green", "green"))
	e := New(fakeClient(t, interceptor.Funcs{}, namespaceOf("green", "green"), namespaceOf("", "new")), Options{Reader: stale})
	problems, err := e.Refusals(t.Context(), team("green", "new"))
	require.NoError(t, err)
	require.Len(t, problems, 1)
	require.Equal(t, policy.ReasonNotOwned, problems[0].Reason)
}

func TestANamespaceKeepsAStricterPodSecurityOfOthers(t *testing.T) {
	fields := func(manager, label string) []metav1.ManagedFieldsEntry {
		return []metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationApply,
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:` + label + `":{}}}}`)}}
	}
	const enforce = onboard.LabelPodSecurity + "enforce"
	for about, c := range map[string]struct {
		there, manager, asked string
		applied               bool
	}{
		"stricter, of others":                    {"restricted", "kubectl", "baseline", false},
		"as strict, of others":                   {"baseline", "kubectl", "baseline", true},
		"less strict, of others":                 {"privileged", "kubectl", "baseline", true},
		"stricter, of the Tenant as it was":      {"restricted", FieldManager, "baseline", true},
		"unknown, which restricts nothing known": {"other", "kubectl", "baseline", true},
	} {
		t.Run(about, func(t *testing.T) {
			existing := namespaceOf("green", "web")
			existing.Labels[enforce], existing.ManagedFields = c.there, fields(c.manager, enforce)
			rendered := namespaceOf("green", "web")
			rendered.Labels[enforce] = c.asked
			(&member{name: "web", existing: existing}).mark(rendered, "green")
			require.Equal(t, c.applied, rendered.Labels[enforce] == c.asked)
		})
	}
}

func TestANamespaceSaysHowItCameToItsTenant(t *testing.T) {
	old := namespaceOf("green", "web")
	old.Annotations = map[string]string{v1beta1.AnnotationCreated: "green"}
	mine := old.DeepCopy()
	mine.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: FieldManager, Operation: metav1.ManagedFieldsOperationApply,
		FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:landwaiter.dev/created":{}}}}`)}}
	for about, c := range map[string]struct {
		member member
		want   map[string]string
	}{
		"made":                         {member{}, map[string]string{v1beta1.AnnotationCreated: "green"}},
		"adopted":                      {member{existing: namespaceOf("", "web"), adopt: true}, map[string]string{v1beta1.AnnotationAdopted: "green"}},
		"made before":                  {member{existing: mine}, map[string]string{v1beta1.AnnotationCreated: "green"}},
		"somebody else says it was so": {member{existing: old}, map[string]string{}},
	} {
		t.Run(about, func(t *testing.T) {
			rendered := namespaceOf("green", "web")
			c.member.mark(rendered, "green")
			require.Equal(t, c.want, rendered.Annotations)
		})
	}
}

func TestWhatIsRefusedForGoodIsAProblemAndWhatIsNotIsAnError(t *testing.T) {
	binding := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
		"metadata": map[string]any{"namespace": "web", "name": "green-reconciler"},
		"roleRef":  map[string]any{"kind": "ClusterRole", "name": "cluster-admin"},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "namespace": "green", "name": "green"}}}}
	resource := schema.GroupResource{Group: rbacv1.GroupName, Resource: "rolebindings"}
	for about, c := range map[string]struct {
		err    error
		reason policy.Reason
		says   string
	}{
		"an unknown kind": {&meta.NoKindMatchError{}, policy.ReasonNotInstalled, "the cluster does not know RoleBinding"},
		"a role it may not bind": {apierrors.NewForbidden(resource, "x", errors.New("no")), policy.ReasonAccessDenied,
			"kubectl create rolebinding green-reconciler --clusterrole=cluster-admin --namespace=web --serviceaccount=green:green"},
		"an object of others":      {apierrors.NewConflict(resource, "x", errors.New("conflict with kubectl")), policy.ReasonNotOwned, "--set adopt=true"},
		"a value that is no value": {apierrors.NewInvalid(schema.GroupKind{Kind: "RoleBinding"}, "x", nil), policy.ReasonInvalid, "cannot be applied"},
		"a server that fails":      {apierrors.NewInternalError(errors.New("etcd")), "", ""},
		"a broken connection":      {errors.New("connection reset"), "", ""},
	} {
		t.Run(about, func(t *testing.T) {
			report := &Report{}
			err := (&Engine{}).refused(c.err, binding, report)
			if c.reason == "" {
				require.ErrorIs(t, err, c.err)
				require.Empty(t, report.Problems)
				return
			}
			require.NoError(t, err)
			require.Len(t, report.Problems, 1)
			require.Equal(t, c.reason, report.Problems[0].Reason)
			require.Contains(t, report.Problems[0].Message, c.says)
		})
	}
}

func TestFlagsAddToWhatATenantHas(t *testing.T) {
	live := team("green", "a")
	live.Spec.Isolation.PodSecurity = v1beta1.PodSecurityBaseline
	live.Spec.Access.Admins = []v1beta1.TenantSubject{{Kind: v1beta1.SubjectGroup, Name: "x"}}
	live.Spec.Reconciler = &v1beta1.TenantReconciler{ClusterRole: "edit", Variables: map[string]v1beta1.Variable{"A": "1", "B": "2"}}
	e := New(fakeClient(t, interceptor.Funcs{}, live), Options{})
	asked := team("green", "b", "a")
	asked.Spec.Access.Admins = []v1beta1.TenantSubject{{Kind: v1beta1.SubjectGroup, Name: "y"}}
	asked.Spec.Reconciler = &v1beta1.TenantReconciler{Variables: map[string]v1beta1.Variable{"B": "3"}}
	merged, before, err := e.Merge(t.Context(), asked)
	require.NoError(t, err)
	require.Equal(t, "green", before.Name)
	require.Equal(t, []string{"a", "b"}, merged.Spec.Namespaces)
	require.Equal(t, v1beta1.PodSecurityBaseline, merged.Spec.Isolation.PodSecurity)
	require.Len(t, merged.Spec.Access.Admins, 2)
	require.Equal(t, &v1beta1.TenantReconciler{ClusterRole: "edit", Variables: map[string]v1beta1.Variable{"A": "1", "B": "3"}}, merged.Spec.Reconciler)

	asked.Spec.HomeNamespace = "elsewhere"
	_, _, err = e.Merge(t.Context(), asked)
	require.ErrorContains(t, err, "the home namespace of Tenant green is green, and cannot be changed to elsewhere")
}

func TestFlagsAddWhatATenantHasNoneOfYet(t *testing.T) {
	e := New(fakeClient(t, interceptor.Funcs{}, team("green")), Options{})
	asked := team("green")
	asked.Spec.Isolation.Quota = map[corev1.ResourceName]resource.Quantity{corev1.ResourcePods: resource.MustParse("5")}
	asked.Spec.Reconciler = &v1beta1.TenantReconciler{Variables: map[string]v1beta1.Variable{"A": "1"}, Source: &v1beta1.TenantSource{URL: "https://x/y"}}
	merged, _, err := e.Merge(t.Context(), asked)
	require.NoError(t, err)
	require.Equal(t, asked.Spec.Isolation.Quota[corev1.ResourcePods], merged.Spec.Isolation.Quota[corev1.ResourcePods])
	require.Equal(t, asked.Spec.Reconciler, merged.Spec.Reconciler)
}

func TestWhatAFileNoLongerSaysIsTakenOffTheTenant(t *testing.T) {
	live := team("green", "a", "b")
	live.Spec.Isolation.Network = v1beta1.NetworkIsolationDeny
	live.Spec.Reconciler = &v1beta1.TenantReconciler{ClusterRole: "edit"}
	live.Labels = map[string]string{"stage": "prod"}
	e := New(fakeClient(t, interceptor.Funcs{}, live), Options{})
	_, before, err := e.Merge(t.Context(), team("green"))
	require.NoError(t, err)
	saved, result, err := e.Save(t.Context(), team("green", "a"), before)
	require.NoError(t, err)
	require.Equal(t, Changed, result)
	require.Equal(t, []string{"a"}, saved.Spec.Namespaces)
	require.Nil(t, saved.Spec.Reconciler)
	require.Equal(t, live.Labels, saved.Labels)

	saved.Spec.Verification.PolicyLevel = v1beta1.PolicyLevelNamespace
	_, result, err = e.Save(t.Context(), team("green", "a"), saved)
	require.NoError(t, err)
	require.Equal(t, Unchanged, result, "what the API server filled in is no difference")
}

func TestAChangeConcernsThoseThatClaimTheSameNamespaces(t *testing.T) {
	prefixed := func(name, prefix string) *v1beta1.Tenant {
		tenant := team(name)
		tenant.Spec.NamespacePrefix = prefix
		return tenant
	}
	for about, c := range map[string]struct {
		a, b *v1beta1.Tenant
		want bool
	}{
		"nothing in common":                     {team("a", "x"), team("b", "y"), false},
		"one namespace":                         {team("a", "x"), team("b", "x", "y"), true},
		"another's home":                        {team("a", "b"), team("b"), true},
		"one that a prefix covers":              {team("a", "b-x"), prefixed("b", "b-"), true},
		"prefixes that overlap":                 {prefixed("a", "iris-"), prefixed("b", "iris-green-"), true},
		"prefixes that do not":                  {prefixed("a", "iris-"), prefixed("b", "lily-"), false},
		"a prefix that covers a home namespace": {team("a-home"), prefixed("a", "a-"), true},
	} {
		t.Run(about, func(t *testing.T) {
			require.Equal(t, c.want, rivals(c.a, c.b))
			require.Equal(t, c.want, rivals(c.b, c.a))
		})
	}
}

func TestListsNamespacesWithTheNameThatTheirTenantHasThere(t *testing.T) {
	demo := namespaceOf("sometenant", "foo")
	demo.Labels[onboard.LabelDemo] = "some tenant"
	demo.Status.Phase = corev1.NamespaceActive
	made := namespaceOf("", "bar")
	made.Labels = map[string]string{onboard.LabelDemo: "other"}
	rows, err := New(fakeClient(t, interceptor.Funcs{}, demo, made, namespaceOf("green", "green"), namespaceOf("", "default")), Options{}).Namespaces(t.Context())
	require.NoError(t, err)
	require.Equal(t, []NamespaceRow{{Namespace: "bar", Name: "other"}, {Namespace: "foo", Name: "some tenant", Tenant: "sometenant", Status: "Active"},
		{Namespace: "green", Name: "green", Tenant: "green"}}, rows)
}

func TestObjectsOfFluxGoFirstAndNamespacesThatWereAdoptedNever(t *testing.T) {
	made := namespaceOf("green", "made")
	made.Annotations = map[string]string{v1beta1.AnnotationCreated: "green"}
	forOther := namespaceOf("green", "for-other")
	forOther.Annotations = map[string]string{v1beta1.AnnotationCreated: "other"}
	adopted := namespaceOf("green", "adopted")
	tenant := team("green")
	tenant.Spec.NamespaceReclaimPolicy = v1beta1.NamespaceReclaimPolicyDeleteCreated
	c := fakeClient(t, interceptor.Funcs{}, made, forOther, adopted)
	deletion, err := New(c, Options{}).Delete(t.Context(), tenant)
	require.NoError(t, err)
	require.Equal(t, []string{"made"}, deletion.Deleted)
	require.Equal(t, []string{"adopted"}, deletion.Adopted)
	require.Equal(t, []string{"for-other"}, deletion.Kept)
	var left corev1.NamespaceList
	require.NoError(t, c.List(t.Context(), &left))
	require.Len(t, left.Items, 2)
	for _, namespace := range left.Items {
		require.Empty(t, namespace.Labels)
	}
	require.True(t, kinds()[0].flux())
	for i, kind := range kinds() {
		require.Equal(t, i < 3, kind.flux(), kind.Kind)
	}
}

func TestAReconcileOfATenantThatIsGoneDoesNothing(t *testing.T) {
	c := fakeClient(t, interceptor.Funcs{})
	log, _ := test.NewNullLogger()
	r := &reconciler{engine: New(c, Options{}), client: c, reader: c, log: log}
	result, err := r.Reconcile(t.Context(), request("gone"))
	require.NoError(t, err)
	require.Zero(t, result)
	require.Equal(t, types.NamespacedName{Name: "gone"}, request("gone").NamespacedName)
}

func TestAClusterWithoutTheDefinitionsSaysSo(t *testing.T) {
	missing := interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return &meta.NoKindMatchError{}
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return &meta.NoKindMatchError{}
		},
	}
	e := New(fakeClient(t, missing), Options{})
	_, err := e.List(t.Context())
	require.ErrorContains(t, err, "install Landwaiter's CRDs (charts/landwaiter)")
	_, _, err = e.Merge(t.Context(), team("green"))
	require.ErrorContains(t, err, "install Landwaiter's CRDs (charts/landwaiter)")
}
