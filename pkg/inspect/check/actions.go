package check

import "github.com/landwaiter/landwaiter/pkg/resources/constraint"

// What Gatekeeper does about a pod that violates a constraint, the weakest first.
const (
	ActionNone   = "not asked"
	ActionDryRun = string(constraint.Dryrun)
	ActionWarn   = string(constraint.Warn)
	ActionDeny   = string(constraint.Deny)
)

// Actions returns the strictest action of any constraint for pods of each namespace. A constraint that
// only matches some pods of a namespace does not count. It returns nil if constraints or namespaces
// could not be read.
func (i *Inventory) Actions() map[string]string {
	for _, source := range []Source{SourceConstraints, SourceNamespaces} {
		if _, unread := i.Unread[source]; unread {
			return nil
		}
	}
	found := map[string]string{}
	for n := range i.Namespaces {
		name, has := i.Namespaces[n].Name, i.Namespaces[n].Labels
		mode := constraint.ModeIn(i.Constraints, name, withName(has, name))
		found[name] = string(mode)
		if mode == constraint.None {
			found[name] = ActionNone
		}
	}
	return found
}
