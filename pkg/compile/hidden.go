package compile

import (
	"strings"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/registry"
	"github.com/landwaiter/landwaiter/pkg/resource"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// hide records that resources of a kind at a level, or a Namespace, are hidden. Hidden
// Secrets and the like are found where they are used.
func hide(at func(namespace string) *objects, h resource.Hidden) {
	err := resource.HiddenError(h.Why)
	switch _, ours := v1alpha1.KindNamed(h.Source.Kind); {
	case h.Source.Kind == kindNamespace:
		at(h.Source.Name).unread = err
	case ours:
		l := at(h.Source.Namespace)
		if l.hidden == nil {
			l.hidden = map[string]error{}
		}
		l.hidden[strings.TrimPrefix(h.Source.Kind, "Cluster")] = err
	}
}

// hiddenSource names the hidden resources of a kind at a level.
func hiddenSource(owner verify.Namespace, kind string) policy.ObjectRef {
	return policy.ObjectRef{Kind: kindOf(owner, kind), Namespace: string(owner), Name: resource.HiddenName}
}

// hide makes l say that kinds are hidden, in place of what is known of them: a policy that
// nobody can judge by, as a floor too, and a store for every host.
func (l *level) hide() {
	owner := l.objects.namespace
	if err := l.objects.hidden[v1alpha1.KindVerificationPolicy]; err != nil {
		source := hiddenSource(owner, v1alpha1.KindVerificationPolicy)
		p := compiledPolicy{source: source, fallback: v1alpha1.DefaultActionDeny, broken: err.Error(), hidden: true, fingerprint: fingerprint(source, "", nil, err)}
		l.policies = append(l.policies, p)
		if owner == verify.Cluster {
			p.floor = true
			l.floors = append(l.floors, p)
		}
	}
	if err := l.objects.hidden[v1alpha1.KindStore]; err != nil {
		source := hiddenSource(owner, v1alpha1.KindStore)
		l.stores = []store{{Store: registry.Store{Source: source, Broken: err.Error(), Hidden: true}, fingerprint: fingerprint(source, "", nil, err)}}
	}
}

// hiddenVerifiers returns why the Verifiers of l are unknown, "" if they are not.
func (l *level) hiddenVerifiers() string {
	if err := l.objects.hidden[v1alpha1.KindVerifier]; err != nil {
		return err.Error()
	}
	return ""
}
