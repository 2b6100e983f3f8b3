package resolve

import (
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// unreadable records the kinds that a person cannot read at each level, and the Namespaces.
func (levels Levels) unreadable(list []resource.Unreadable, at func(namespace string) *Objects) {
	record := func(l *Objects, kind string, u resource.Unreadable) {
		if l.unreadable == nil {
			l.unreadable = map[string]resource.Unreadable{}
		}
		l.unreadable[kind] = u
	}
	for _, u := range list {
		if u.Source.Kind == resource.KindNamespace {
			record(at(u.Source.Name), resource.KindNamespace, u)
		} else if _, ours := v1beta1.KindNamed(u.Source.Kind); ours {
			record(at(u.Source.Namespace), strings.TrimPrefix(u.Source.Kind, "Cluster"), u)
		}
	}
}

// unreadableIn returns objects that a person cannot read although they may affect v. It is nil in the
// cluster and for files.
func (s *Snapshot) unreadableIn(v *View, chain []NamedLevel) []resource.Unreadable {
	var found []resource.Unreadable
	look := func(l *Level, kinds ...string) {
		for _, kind := range kinds {
			if u, ok := l.Objects.unreadable[kind]; ok {
				found = append(found, u)
			}
		}
	}
	if namespace := v.Own.Objects.Namespace; namespace != verify.Cluster && !s.tenancy.Certain(string(namespace)) {
		look(s.cluster, v1beta1.KindTenant)
	}
	for _, l := range chain {
		look(l.Level, v1beta1.KindVerificationPolicy, v1beta1.KindVerifier, v1beta1.KindTrustStore, v1beta1.KindStore)
		if l.Label == LevelTenant {
			look(l.Level, resource.KindNamespace)
		}
	}
	for i := range v.config.Tiers {
		for l := &v.config.Tiers[i]; l != nil; l = l.Next {
			found = append(found, unreadByExpression(l)...)
		}
	}
	return found
}

// unreadByExpression returns the verifiers of l that a person cannot read, if l has an expression. An
// expression may allow an image because a verifier found nothing, but deny it if the verifier turns
// out to be broken.
func unreadByExpression(l *verify.Tier) (found []resource.Unreadable) {
	if !slices.ContainsFunc(l.Judge.Rules(), func(r verify.Rule) bool {
		return slices.ContainsFunc(r.Require, func(r verify.Requirement) bool { return r.Condition != nil })
	}) {
		return nil
	}
	for _, v := range l.Verifiers {
		if c, ok := v.Checker.(compile.UnreadTrust); ok {
			found = append(found, resource.Unreadable{Source: v.Source, Why: c.Err.Error()})
		}
	}
	return found
}

// Unreadable returns objects that a person cannot read although they may affect decisions in a
// namespace. If there is one, every image of the namespace is Undecided.
func (s *Snapshot) Unreadable(namespace verify.Namespace) []resource.Unreadable {
	return s.view(namespace).unreadable
}

// Config is [Snapshot.For] for callers that decide about images. It returns an error for a namespace
// whose rules a person cannot read.
func (s *Snapshot) Config(namespace verify.Namespace) (*verify.Config, error) {
	if v := s.view(namespace); len(v.unreadable) == 0 {
		return v.config, nil
	}
	return nil, verify.Inconclusive(policy.ReasonUnreadable, "you cannot read everything that decides in "+namespace.Describe())
}
