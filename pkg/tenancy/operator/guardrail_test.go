package operator

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// Nothing but its own refusal proves a guardrail: every other answer is as good as none.
func TestOnlyTheRefusalByItsPolicyProvesTheGuardrail(t *testing.T) {
	const name = "landwaiter-operator-guardrail"
	bindings := schema.GroupResource{Group: rbacv1.GroupName, Resource: "rolebindings"}
	refusal := func(policy string) error {
		return apierrors.NewForbidden(bindings, name, errors.New("whatever the API server says: no (guardrail "+policy+")"))
	}
	for about, c := range map[string]struct {
		answer          error
		ok, noGuardrail bool
	}{
		"refused by the operator guardrail": {refusal(name), true, false},
		"allowed":                           {nil, false, true},
		"refused by another policy":         {refusal("somebody-elses"), false, false},
		"refused by one of a longer name":   {refusal(name + "-2"), false, false},
		"only named by " +
			"the API server": {
			apierrors.NewForbidden(bindings, name, errors.New("ValidatingAdmissionPolicy '"+name+"' with binding 'x' denied request: failed to configure binding")),
			false, false},
		"refused by a webhook": {apierrors.NewForbidden(bindings, name, errors.New("admission webhook \"x.example.com\" denied the request: no")),
			false, false},
		"refused for want of permissions":    {apierrors.NewForbidden(bindings, name, errors.New("cannot create")), false, false},
		"a namespace that is not there":      {apierrors.NewNotFound(bindings, name), false, false},
		"invalid":                            {apierrors.NewBadRequest("no"), false, false},
		"too many requests":                  {apierrors.NewTooManyRequests("later", 1), false, false},
		"an API server that has just begun":  {apierrors.NewForbidden(bindings, name, errors.New("not yet ready to handle request")), false, false},
		"an API server that is starting":     {apierrors.NewServiceUnavailable("later"), false, false},
		"an API server that does not answer": {context.DeadlineExceeded, false, false},
	} {
		t.Run(about, func(t *testing.T) {
			var asked *rbacv1.RoleBinding
			f := proof{Guardrail: Guardrail{Tenants: "unasked", Policy: name},
				client: fakeClient(t, interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, object client.Object, options ...client.CreateOption) error {
					asked, _ = object.(*rbacv1.RoleBinding)
					require.Contains(t, options, client.DryRunAll, "the question must not make what it asks about")
					return c.answer
				}})}
			err := f.all(t.Context())
			require.Equal(t, c.ok, err == nil, "%v", err)
			require.Equal(t, c.noGuardrail, errors.Is(err, ErrNoGuardrail), "%v", err)
			require.Equal(t, "kube-system/admin", asked.Namespace+"/"+asked.RoleRef.Name)
		})
	}
}

// The first guardrail without the one about Tenants would let the operator bind whom it likes.
func TestBothOperatorGuardrailsAreProvenWhereThereAreTenants(t *testing.T) {
	const guardrail, tenants = "landwaiter-operator-guardrail", "landwaiter-operator-tenants"
	refusal := func(policy string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "x", errors.New("whatever the API server says: no (guardrail "+policy+")"))
	}
	covering := team("green")
	covering.Spec.NamespacePrefix = "a-"
	for about, c := range map[string]struct {
		tenant *v1beta1.Tenant
		answer error // to the request about the Tenant
		asked  string
		ok     bool
	}{
		"there are no Tenants": {nil, nil, "", true},
		"the policy refuses":   {team("green"), refusal(tenants), "a-landwaiter-operator-guardrail", true},
		"it is not there":      {team("green"), nil, "a-landwaiter-operator-guardrail", false},
		"Landwaiter has not listed the Tenant": {team("green"), errors.New("landwaiter-operated-tenants does not list Tenant green"),
			"a-landwaiter-operator-guardrail", true},
		"another one refuses":                   {team("green"), refusal(guardrail), "a-landwaiter-operator-guardrail", false},
		"the Tenant has the prefix of the name": {covering, refusal(tenants), "ba-landwaiter-operator-guardrail", true},
		"the Tenant lists the name":             {team("green", "a-landwaiter-operator-guardrail"), refusal(tenants), "a-landwaiter-operator-guardrailx", true},
		"it is the name of the home namespace":  {team("a-landwaiter-operator-guardrail"), refusal(tenants), "a-landwaiter-operator-guardrailx", true},
	} {
		t.Run(about, func(t *testing.T) {
			var objects []client.Object
			if c.tenant != nil {
				objects = append(objects, c.tenant)
			}
			asked := ""
			f := proof{Guardrail: Guardrail{Policy: guardrail, Tenants: tenants},
				client: fakeClient(t, interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, object client.Object, options ...client.CreateOption) error {
					require.Contains(t, options, client.DryRunAll)
					namespace, ok := object.(*corev1.Namespace)
					if !ok {
						return refusal(guardrail)
					}
					asked = namespace.Name
					require.Equal(t, c.tenant.Name, namespace.Labels[v1beta1.LabelTenant])
					require.Equal(t, c.tenant.Name, namespace.Annotations[v1beta1.AnnotationCreated], "the other policy would refuse it, which proves nothing")
					return c.answer
				}}, objects...)}
			err := f.all(t.Context())
			require.Equal(t, c.ok, err == nil, "%v", err)
			require.Equal(t, c.answer == nil && c.tenant != nil, errors.Is(err, ErrNoGuardrail), "%v", err)
			require.Equal(t, c.asked, asked)
			require.Equal(t, about == "the policy refuses" || c.ok && strings.HasPrefix(about, "the Tenant") || strings.HasPrefix(about, "it is the name"),
				f.both.Load(), "whether the second is proven")
		})
	}
}

// An operator that started without Tenants has seen nothing of the second policy.
func TestTheFirstTenantWaitsForProofOfBothGuardrails(t *testing.T) {
	log, _ := test.NewNullLogger()
	for about, c := range map[string]struct {
		answer error
		says   string // in the Tenant's condition; "" if it is worked on
	}{
		"the policy refuses":  {errors.New("Tenant green has no namespace x (guardrail landwaiter-operator-tenants)"), ""},
		"it is not there":     {nil, "the operator guardrails are not in force"},
		"another one refuses": {errors.New("no (guardrail somebody-elses)"), "was not seen to refuse what it must"},
		"Landwaiter has not listed the Tenant": {errors.New("landwaiter-operated-tenants does not list Tenant green"),
			"waits until Landwaiter has listed the Tenant"},
	} {
		t.Run(about, func(t *testing.T) {
			o := newOperated(t)
			o.log = log
			o.guardrails = &proof{Guardrail: Guardrail{Policy: "landwaiter-operator-guardrail", Tenants: "landwaiter-operator-tenants"}, log: log,
				client: fakeClient(t, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
					if c.answer == nil {
						return nil
					}
					return apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "x", c.answer)
				}})}
			_, err := o.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "green"}})
			require.Equal(t, c.says == "", err == nil, "%v", err)
			require.Equal(t, c.says == "", len(o.applied) > 0, "%v", o.applied)
			if c.says != "" {
				require.Contains(t, o.said.Message, c.says)
				require.Equal(t, "False/Unfinished", string(o.said.Status)+"/"+o.said.Reason)
			}
		})
	}
}

// Landwaiter lists a Tenant that ends as one, so the first guardrail may answer in place of the second: that must not
// keep the Tenant for ever.
func TestATenantThatEndsWaitsForNoProofThatItCannotGive(t *testing.T) {
	for about, c := range map[string]struct {
		answer error
		ends   bool
	}{
		"Landwaiter has not listed it as one that is": {errors.New("landwaiter-operated-tenants does not list Tenant green"), true},
		"the second guardrail refuses":                {errors.New("Tenant green has no namespace x (guardrail landwaiter-operator-tenants)"), true},
		"nobody refuses":                              {nil, false},
	} {
		t.Run(about, func(t *testing.T) {
			o := newOperated(t)
			tenant := &v1beta1.Tenant{}
			require.NoError(t, o.client.Get(t.Context(), client.ObjectKey{Name: "green"}, tenant))
			require.NoError(t, o.client.Delete(t.Context(), tenant))
			o.guardrails = &proof{Guardrail: Guardrail{Policy: "landwaiter-operator-guardrail", Tenants: "landwaiter-operator-tenants"}, log: o.log,
				client: fakeClient(t, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
					if c.answer == nil {
						return nil
					}
					return apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "x", c.answer)
				}})}
			_, err := o.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "green"}})
			require.Equal(t, c.ends, err == nil, "%v", err)
			require.Equal(t, c.ends, slices.Contains(o.applied, "Tenant green"), "its finalizer is removed: %v", o.applied)
		})
	}
}

func TestTheOperatorEndsWhenItsGuardrailsAreNotProven(t *testing.T) {
	log, _ := test.NewNullLogger()
	for about, answer := range map[string]error{"it is gone": nil, "nobody answers": context.DeadlineExceeded} {
		t.Run(about, func(t *testing.T) {
			f := proof{Guardrail: Guardrail{Policy: "f", Interval: time.Millisecond}, log: log,
				client: fakeClient(t, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return answer }})}
			require.Error(t, f.Start(t.Context()))
			require.False(t, f.NeedLeaderElection())
		})
	}
}
