package compile

import (
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// hide records that resources of a kind at a level, or a Namespace, are hidden. Hidden
// Secrets and the like are found where they are used.
func hide(at func(namespace string) *objects, h resource.Hidden) {
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
	return policy.ObjectRef{Kind: kindOf(owner, kind), Namespace: string(owner), Name: resource.HiddenName}
}

// hide makes l say that kinds are hidden, in place of what is known of them: a policy that
// nobody can judge by, as a mandatory policy too, and a store for every host.
func (l *level) hide() {
	owner := l.objects.namespace
	if err := l.objects.hidden[v1beta1.KindVerificationPolicy]; err != nil {
		source := hiddenSource(owner, v1beta1.KindVerificationPolicy)
		p := compiledPolicy{source: source, fallback: v1beta1.DefaultActionDeny, broken: err, fingerprint: fingerprint(source, "", nil, err)}
		l.policies = append(l.policies, p)
		if owner == verify.Cluster && !l.objects.known.Mandatory {
			p.mandatory = true
			l.mandatory = append(l.mandatory, p)
		}
	}
	if err := l.objects.hidden[v1beta1.KindStore]; err != nil {
		source := hiddenSource(owner, v1beta1.KindStore)
		hidden := store{Store: registry.Store{Source: source, Broken: err}, fingerprint: fingerprint(source, "", nil, err)}
		if len(l.objects.known.Hosts) == 0 {
			l.stores = []store{hidden}
			return
		}
		hidden.Except = l.objects.known.Hosts
		l.stores = append(l.stores, hidden)
	}
}

// hiddenStore returns the store that stands for hidden ones of which something is known, nil
// if there is none. It is the last of l.
func (l *level) hiddenStore() *store {
	if n := len(l.stores); n > 0 && len(l.stores[n-1].Except) > 0 {
		return &l.stores[n-1]
	}
	return nil
}

// hiddenVerifiers returns why the Verifiers of l are unknown, "" if they are not.
func (l *level) hiddenVerifiers() string {
	if err := l.objects.hidden[v1beta1.KindVerifier]; err != nil {
		return err.Error()
	}
	return ""
}
