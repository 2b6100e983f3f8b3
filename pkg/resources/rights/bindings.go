package rights

import (
	"fmt"
	"slices"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// Reach names how somebody gets further in a team's namespaces than the team's rules say.
type Reach string

// The kinds of reach.
const (
	// TrustWithinReach: who may not change resources decides what they trust.
	TrustWithinReach Reach = "TrustWithinReach"
	// NamespaceReach: a role in a namespace may change or delete the namespace itself.
	NamespaceReach Reach = "NamespaceReach"
	// DefaultAccount: the account that tools fall back to has permissions.
	DefaultAccount Reach = "DefaultAccount"
)

// Rule is what a role allows.
type Rule struct {
	Verbs, Groups, Resources []string
}

// Account is a ServiceAccount that a binding names.
type Account struct{ Namespace, Name string }

// Binding is a RoleBinding with what its role allows. Rules of a role that cannot be read
// are empty, and find nothing.
type Binding struct {
	Ref      policy.ObjectRef
	Role     string
	Rules    []Rule
	Accounts []Account
}

// Found is one finding about a binding or a resource, with what to do about it.
type Found struct {
	Reach Reach
	Where policy.ObjectRef
	Fix   string
}

// defaultAccount is what pods, and Flux without a serviceAccountName, run as.
const defaultAccount = "default"

// OfBinding returns what a binding lets happen in its namespace.
func OfBinding(b Binding) []Found {
	var found []Found
	for _, rule := range b.Rules {
		if allows(rule.Groups, "") && allows(rule.Resources, "namespaces") && (allows(rule.Verbs, "update") || allows(rule.Verbs, "patch") || allows(rule.Verbs, "delete")) {
			found = append(found, Found{Reach: NamespaceReach, Where: b.Ref, Fix: b.Role + " may relabel and delete its namespace: use landwaiter-reconciler"})
			break
		}
	}
	if slices.Contains(b.Accounts, Account{Namespace: b.Ref.Namespace, Name: defaultAccount}) {
		found = append(found, Found{Reach: DefaultAccount, Where: policy.ObjectRef{Kind: "ServiceAccount", Namespace: b.Ref.Namespace, Name: defaultAccount},
			Fix: fmt.Sprintf("has permissions by RoleBinding %s: Flux falls back to it; bind another account", b.Ref.Name)})
	}
	return found
}

// allows reports whether a list of a rule covers a value.
func allows(list []string, value string) bool {
	return slices.Contains(list, value) || slices.Contains(list, "*")
}

// Where returns a finding about a field as one about its resource, in a namespace whose
// developers have the role edit. What the home namespace has is out of their reach.
func (f Finding) Where() Found {
	return Found{Reach: TrustWithinReach, Where: f.Resource,
		Fix: fmt.Sprintf("its %s can be written by developers (edit): move it to the home namespace; or %s", f.Object.Kind, f.Fix)}
}
