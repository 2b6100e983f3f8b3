package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// applies answers a dry run.
func applies(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return nil
}

// checkerRole returns the ClusterRole that the guides bind for check.
func checkerRole(t *testing.T) (role rbacv1.ClusterRole) {
	t.Helper()
	text, err := os.ReadFile("../../../config/default/landwaiter.yaml")
	require.NoError(t, err)
	for _, document := range strings.Split(string(text), "\n---\n") {
		if strings.Contains(document, "\n  name: landwaiter-checker\n") {
			require.NoError(t, yaml.Unmarshal([]byte(document), &role))
		}
	}
	require.NotEmpty(t, role.Rules)
	return role
}

// With the role as the API server knows it, nothing that Check reads is forbidden, whoever adds a kind to a Tenant.
func TestTheRoleForCheckReadsEveryKindOfATenant(t *testing.T) {
	role := checkerRole(t)
	pluralOf := func(kind schema.GroupVersionKind) schema.GroupResource {
		kind.Kind = strings.TrimSuffix(kind.Kind, "List")
		if kind.Kind == "Assign" || kind.Kind == "TenantAllowedRegistries" { // their plurals are their names
			return schema.GroupResource{Group: kind.Group, Resource: strings.ToLower(kind.Kind)}
		}
		plural, _ := meta.UnsafeGuessKindToResource(kind)
		return plural.GroupResource()
	}
	may := func(verb string, what schema.GroupResource) bool {
		return slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
			return len(r.ResourceNames) == 0 && slices.Contains(r.Verbs, verb) && slices.Contains(r.APIGroups, what.Group) && slices.Contains(r.Resources, what.Resource)
		})
	}
	for _, k := range kinds() {
		for _, verb := range []string{"get", "list"} {
			require.True(t, may(verb, pluralOf(k.GroupVersionKind)), "%s %s", verb, pluralOf(k.GroupVersionKind))
		}
	}
	seen := 0
	reads := interceptor.Funcs{Apply: applies, List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		seen++
		kind, err := c.GroupVersionKindFor(list)
		if err == nil && !may("list", pluralOf(kind)) {
			t.Errorf("the role does not grant list %s", pluralOf(kind))
		}
		return c.List(ctx, list, options...)
	}}
	_, _, err := New(fakeClient(t, reads, team("green", "web"), namespaceOf("green", "green"), namespaceOf("green", "web")), Options{}).Check(t.Context(), "")
	require.NoError(t, err)
	require.Greater(t, seen, len(kinds()))
}

func TestWhatCheckMayNotReadIsUncheckedAndTheRestIsChecked(t *testing.T) {
	secret := map[string]string{"ResourceQuotaList": "resourcequotas", "PodList": "pods", "ClusterRoleBindingList": "clusterrolebindings"}
	reads := interceptor.Funcs{Apply: applies, List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		kind, err := c.GroupVersionKindFor(list)
		if err != nil {
			return err
		}
		if plural, forbidden := secret[kind.Kind]; forbidden {
			return apierrors.NewForbidden(schema.GroupResource{Group: kind.Group, Resource: plural}, "",
				fmt.Errorf("User %q cannot list resource %q in API group %q at the cluster scope", "ann", plural, kind.Group))
		}
		return c.List(ctx, list, options...)
	}}
	objects := []client.Object{team("green", "web"), namespaceOf("green", "green"), namespaceOf("green", "web")}
	findings, unchecked, err := New(fakeClient(t, reads, objects...), Options{}).Check(t.Context(), "green")
	require.NoError(t, err)
	require.NotEmpty(t, findings, "the objects of the Tenant are missing")
	missing := map[string][]string{}
	for _, u := range unchecked {
		missing[u.Missing] = u.IDs
	}
	require.Equal(t, []string{findingLeftoverBinding}, missing["list clusterrolebindings.rbac.authorization.k8s.io"])
	require.Equal(t, []string{findingHomeNamespaceHasPods}, missing["list pods"])
	require.Equal(t, []string{findingDrift}, missing["list resourcequotas"])

	// What writes for a Tenant has to know all of it.
	_, err = New(fakeClient(t, reads, objects...), Options{DryRun: true}).Apply(t.Context(), objects[0].(*v1beta1.Tenant)) //nolint:forcetypeassert // as above
	require.True(t, apierrors.IsForbidden(err), "%v", errors.Unwrap(err))
}
