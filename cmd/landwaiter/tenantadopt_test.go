package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/tenancy/operator"
)

func TestTheConsentOfAFlagIsForOneRunOnly(t *testing.T) {
	scheme, err := operator.NewScheme()
	require.NoError(t, err)
	namespace := func(name string, labels map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	asked := func(adopt bool, namespaces ...string) *v1beta1.Tenant {
		return &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "paym"}, Spec: v1beta1.TenantSpec{HomeNamespace: "paym", Namespaces: namespaces, Adopt: adopt}}
	}
	accepts := interceptor.Funcs{Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
		return nil
	}}
	pay := namespace("pay", nil)
	c := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(accepts).WithObjects(asked(false),
		namespace("paym", map[string]string{v1beta1.LabelTenant: "paym"}), pay, namespace("pay2", nil)).Build()
	engine := operator.New(c, operator.Options{Adopt: true})
	stored := func() v1beta1.TenantSpec {
		var tenant v1beta1.Tenant
		require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: "paym"}, &tenant))
		return tenant.Spec
	}

	added, report, err := addTenant(t.Context(), engine, askedTenant{Tenant: asked(true, "pay")})
	require.NoError(t, err)
	require.Empty(t, report.Problems)
	require.Equal(t, []string{"paym", "pay"}, added.Namespaces)
	require.Equal(t, []string{"pay"}, stored().Namespaces)
	require.False(t, stored().Adopt, "the consent is not kept")

	pay.Labels = map[string]string{v1beta1.LabelTenant: "paym"} // as applying would
	require.NoError(t, c.Update(t.Context(), pay))
	_, report, err = addTenant(t.Context(), engine, askedTenant{Tenant: asked(false, "pay2")})
	require.NoError(t, err)
	require.Len(t, report.Problems, 1)
	require.Contains(t, report.Problems[0].Message, "Namespace pay2 exists and belongs to no Tenant")
	require.Equal(t, []string{"pay"}, stored().Namespaces, "nothing was written")

	// A file says what the Tenant is, with its consent.
	_, report, err = addTenant(t.Context(), engine, askedTenant{Tenant: asked(true, "pay", "pay2"), whole: true, adopts: true})
	require.NoError(t, err)
	require.Empty(t, report.Problems)
	require.True(t, stored().Adopt)
	_, _, err = addTenant(t.Context(), engine, askedTenant{Tenant: asked(false)})
	require.NoError(t, err)
	require.True(t, stored().Adopt, "settings leave alone what a file said")

	// A setting besides a file is for one run, too.
	_, _, err = addTenant(t.Context(), engine, askedTenant{Tenant: asked(true, "pay", "pay2"), whole: true})
	require.NoError(t, err)
	require.False(t, stored().Adopt)
}
