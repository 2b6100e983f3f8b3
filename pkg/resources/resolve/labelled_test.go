package resolve_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

// labelled writes a Namespace with the label of a Tenant.
func labelled(name, tenant string) string {
	return fmt.Sprintf("kind: Namespace\nmetadata: {name: %s, uid: %q, labels: {landwaiter.dev/tenant: %q}}", name, name, tenant)
}

// created writes a Tenant of a year.
func created(year int, name, spec string) string {
	return fmt.Sprintf("kind: Tenant\nmetadata: {name: %s, creationTimestamp: \"%d-01-01T00:00:00Z\"}\nspec: {%s}", name, year, spec)
}

// A restore creates Tenants in any order, and gives all the same second.
func TestTheTenantThatTheLabelNamesKeepsItsNamespaceWhicheverIsOlder(t *testing.T) {
	for name, c := range map[string]struct {
		a, b      string
		namespace string
		label     string
		want      string
	}{
		"both list it, and the label names the younger": {"homeNamespace: a, namespaces: [shop]", "homeNamespace: b, namespaces: [shop]",
			"shop", "b", "b"},
		"both list it, and there is no label": {"homeNamespace: a, namespaces: [shop]", "homeNamespace: b, namespaces: [shop]",
			"shop", "", "a"},
		"both list it, and the label names neither": {"homeNamespace: a, namespaces: [shop]", "homeNamespace: b, namespaces: [shop]",
			"shop", "c", "a"},
		"both list it, and the label names none that exists": {"homeNamespace: a, namespaces: [shop]", "homeNamespace: b, namespaces: [shop]",
			"shop", "d", "a"},
		"it is the home namespace of both": {"homeNamespace: shop", "homeNamespace: shop", "shop", "b", "b"},
		"it is the home namespace of one":  {"homeNamespace: shop", "homeNamespace: b, namespaces: [shop]", "shop", "b", "b"},
		"prefixes overlap, and the label names the longer": {"homeNamespace: a, namespacePrefix: iris-", "homeNamespace: b, namespacePrefix: iris-green-",
			"iris-green-x", "b", "b"},
		"prefixes overlap, and the label names the shorter": {"homeNamespace: a, namespacePrefix: iris-green-", "homeNamespace: b, namespacePrefix: iris-",
			"iris-green-x", "b", "b"},
		"prefixes are equal": {"homeNamespace: a, namespacePrefix: iris-", "homeNamespace: b, namespacePrefix: iris-",
			"iris-x", "b", "b"},
		"a list beats a prefix, as it always does": {"homeNamespace: a, namespaces: [iris-x]", "homeNamespace: b, namespacePrefix: iris-",
			"iris-x", "b", "a"},
		"the label names one that does not claim it":                   {"homeNamespace: a", "homeNamespace: b, namespaces: [shop]", "shop", "a", "b"},
		"the label names one that does not claim what no Tenant lists": {"homeNamespace: a", "homeNamespace: b", "shop", "b", ""},
	} {
		t.Run(name, func(t *testing.T) {
			documents := []string{created(2001, "a", c.a), created(2002, "b", c.b), created(2000, "c", "homeNamespace: c")}
			whole, _ := written.Compiled(written.Objects(t, append(documents, labelled(c.namespace, c.label))...))
			require.Equal(t, c.want, whole.Tenant(verify.Namespace(c.namespace)))

			before, _ := written.Compiled(written.Objects(t, append(documents, written.Namespace(c.namespace, c.namespace))...))
			after, _ := before.Next(resolve.Group(written.Objects(t, labelled(c.namespace, c.label))).Only(verify.Namespace(c.namespace)), nil)
			require.Equal(t, c.want, after.Tenant(verify.Namespace(c.namespace)), "the label came later")
			same(t, whole, after)
			gone, _ := after.Next(resolve.Group(written.Objects(t)).Only(verify.Namespace(c.namespace)), nil)
			again, _ := gone.Next(resolve.Group(written.Objects(t, written.Namespace(c.namespace, c.namespace))).Only(verify.Namespace(c.namespace)), nil)
			same(t, before, again)

			renewed, _ := before.Next(
				resolve.Group(written.Objects(t, append(documents, written.Object("ClusterVerificationPolicy", "", "p", "defaultAction: Allow"))...)).Only(verify.Cluster),
				nil)
			require.Equal(t, before.Tenant(verify.Namespace(c.namespace)), renewed.Tenant(verify.Namespace(c.namespace)))
			relabelled, _ := after.Next(resolve.Group(written.Objects(t, documents...)).Only(verify.Cluster), nil)
			same(t, whole, relabelled)
		})
	}
}

func TestTheRulesOfTheTenantThatTheLabelNamesStayInForce(t *testing.T) {
	documents := []string{created(2001, "a", "homeNamespace: a, namespaces: [shop]"), created(2002, "b", "homeNamespace: b, namespaces: [shop]"),
		written.Namespace("a", "1"), written.Namespace("b", "2"),
		written.Object("VerificationPolicy", "a", "p", allowing("a.example.com")), written.Object("VerificationPolicy", "b", "p", allowing("b.example.com"))}
	snapshot, problems := written.Compiled(written.Objects(t, append(documents, labelled("shop", "b"))...))
	require.Equal(t, policy.Allowed, written.Verdict(t, snapshot, "shop", "b.example.com/app").Outcome())
	require.Equal(t, policy.Denied, written.Verdict(t, snapshot, "shop", "a.example.com/app").Outcome())
	require.Len(t, problems, 1)
	require.Equal(t, policy.ObjectRef{Kind: "Tenant", Name: "a"}, problems[0].Source)
	require.Equal(t, "namespace shop belongs to Tenant b, which its label landwaiter.dev/tenant names", problems[0].Message)
	require.Contains(t, conditions.Reports(snapshot, verify.Cluster)[policy.ObjectRef{Kind: "Tenant", Name: "a"}].Ready.Message, "belongs to Tenant b")
	require.Equal(t, []v1beta1.TenantNamespace{{Name: "a", State: "Home"}, {Name: "shop", State: "Conflict"}}, snapshot.TenantNamespaces("a"))
	require.Equal(t, []v1beta1.TenantNamespace{{Name: "b", State: "Home"}, {Name: "shop", State: "Active"}}, snapshot.TenantNamespaces("b"))
}
