package resolve

import (
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// hide records that resources of a kind at a level, or a Namespace, are hidden. Hidden
// Secrets and the like are found where they are used.
func hide(at func(namespace string) *Objects, h resource.Hidden) {
	err := policy.HiddenError(h.Why)
	switch _, ours := v1beta1.KindNamed(h.Source.Kind); {
	case h.Source.Kind == resource.KindNamespace:
		at(h.Source.Name).unread = err
	case ours:
		l := at(h.Source.Namespace)
		if l.hidden == nil {
			l.hidden = map[string]error{}
		}
		kind := strings.TrimPrefix(h.Source.Kind, "Cluster")
		if _, more := l.hidden[kind]; more {
			l.known = resource.Known{} // nothing is known for sure of what is hidden twice
		} else {
			l.known.Hosts, l.known.Mandatory = slices.Concat(l.known.Hosts, h.Known.Hosts), l.known.Mandatory || h.Known.Mandatory
		}
		l.hidden[kind] = err
	}
}

// hiddenSource names the hidden resources of a kind at a level.
func hiddenSource(owner verify.Namespace, kind string) policy.ObjectRef {
	return policy.ObjectRef{Kind: compile.KindOf(owner, kind), Namespace: string(owner), Name: resource.HiddenName}
}

// hide makes l say that kinds are hidden, in place of what is known of them: a policy that
// nobody can judge by, as a mandatory policy too, and a store for every host.
func (l *Level) hide() {
	owner := l.Objects.Namespace
	if err := l.Objects.hidden[v1beta1.KindVerificationPolicy]; err != nil {
		source := hiddenSource(owner, v1beta1.KindVerificationPolicy)
		p := compile.Policy{Source: source, Fallback: v1beta1.DefaultActionDeny, Broken: err, Fingerprint: compile.Fingerprint(source, "", nil, err)}
		l.Policies = append(l.Policies, p)
		if owner == verify.Cluster && !l.Objects.known.Mandatory {
			p.Mandatory = true
			l.Mandatory = append(l.Mandatory, p)
		}
	}
	if err := l.Objects.hidden[v1beta1.KindStore]; err != nil {
		source := hiddenSource(owner, v1beta1.KindStore)
		hidden := compile.Store{Store: registry.Store{Source: source, Broken: err}, Fingerprint: compile.Fingerprint(source, "", nil, err)}
		if len(l.Objects.known.Hosts) == 0 {
			l.stores = []compile.Store{hidden}
			return
		}
		hidden.Except = l.Objects.known.Hosts
		l.stores = append(l.stores, hidden)
	}
}

// hiddenStore returns the store that stands for hidden ones of which something is known, nil
// if there is none. It is the last of l.
func (l *Level) hiddenStore() *compile.Store {
	if n := len(l.stores); n > 0 && len(l.stores[n-1].Except) > 0 {
		return &l.stores[n-1]
	}
	return nil
}

// hiddenVerifiers returns why the Verifiers of l are unknown, "" if they are not.
func (l *Level) hiddenVerifiers() string {
	if err := l.Objects.hidden[v1beta1.KindVerifier]; err != nil {
		return err.Error()
	}
	return ""
}
