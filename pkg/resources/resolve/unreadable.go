package resolve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/external"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// unreadable records what a person cannot read. It records a kind at its level, and a Secret or the
// like with the resources that reference it.
func (levels Levels) unreadable(o resource.Objects, at func(namespace string) *Objects) {
	content := map[policy.ObjectRef]string{}
	record := func(l *Objects, kind string, u resource.Unreadable) {
		if l.unreadable == nil {
			l.unreadable = map[string]resource.Unreadable{}
		}
		l.unreadable[kind] = u
	}
	for _, u := range o.Unreadable {
		switch _, ours := v1beta1.KindNamed(u.Source.Kind); {
		case u.Source.Kind == resource.KindNamespace:
			record(at(u.Source.Name), resource.KindNamespace, u)
		case ours:
			record(at(u.Source.Namespace), strings.TrimPrefix(u.Source.Kind, "Cluster"), u)
		default:
			content[u.Source] = u.Why
		}
	}
	pulls := o.PullSecrets()
	for _, object := range o.Resources {
		for _, f := range resource.FieldsOf(object) {
			for _, named := range f.Named(o.ReferenceNamespace(object.GetNamespace()), pulls) {
				if why := content[named]; why != "" {
					l := at(object.GetNamespace())
					if l.obscured == nil {
						l.obscured = map[policy.ObjectRef]string{}
					}
					l.obscured[resource.RefOf(object)] = why
				}
			}
		}
	}
	for _, l := range levels {
		l.person = o.Person
	}
}

// obscure returns err or, for a usable resource, why a person cannot know its effect: it references
// content that the person cannot read, or cannot fetch from one of sources.
func (l *Level) obscure(source policy.ObjectRef, err error, sources ...external.Source) error {
	why := l.Objects.obscured[source]
	for _, s := range sources {
		if why == "" && l.Objects.person && l.Objects.referenced.Fetched[s].Content == nil {
			why = compile.TextOf(err) + "; the cluster may have it: check that your own machine can reach the server"
		}
	}
	if why == "" {
		return err
	}
	if l.obscured == nil {
		l.obscured = map[policy.ObjectRef]error{}
	}
	l.obscured[source] = resource.Reasoned(policy.ReasonUnreadable, errors.New(compile.Cut(why)))
	return l.obscured[source]
}

// trustStore compiles a trust store.
func (l *Level) trustStore(e compile.Entry[v1beta1.TrustStoreSpec]) (*compile.TrustStore, error) {
	m := l.Objects.referenced
	t := compile.NewTrustStore(e, m)
	if e.Err() != nil {
		return t, t.Err
	}
	var sources []external.Source
	if source, err := compile.ExternalSource(l.Objects.Namespace, e.Spec, m); err == nil && source != nil {
		sources = append(sources, *source)
	}
	return t, l.obscure(e.Source, t.Err, sources...)
}

// store compiles a Store. If a person cannot read its references, images of its registries are
// Undecided.
func (l *Level) store(e compile.Entry[v1beta1.StoreSpec]) (compile.Store, error) {
	m := l.Objects.referenced
	s, err := compile.NewStore(l.Objects.Namespace, e, m)
	if e.Err() != nil {
		return s, err
	}
	sources, _ := compile.LoginSources(l.Objects.Namespace, e.Spec, m) // compiling reports errors
	err = l.obscure(e.Source, err, sources...)
	if why := l.obscured[e.Source]; why != nil {
		s.Broken = unread(e.Source, why)
		if s.Proxy != nil && s.Proxy.Broken != nil {
			s.Proxy = &registry.Proxy{Broken: s.Broken}
		}
		s.Fingerprint = compile.DigestOf([]string{s.Fingerprint, why.Error()})
	}
	return s, err
}

// unread is the error of a resource that a person cannot read completely.
func unread(source policy.ObjectRef, why error) error {
	return verify.Inconclusive(policy.ReasonUnreadable, fmt.Sprintf("%s: %v", source, why))
}

// verifier compiles a Verifier. If a person cannot read its trust material, its findings are
// unknown.
func (l *Level) verifier(e compile.Entry[v1beta1.VerifierSpec], cluster *Level, reach compile.TrustStores, revokers compile.Revokers) (compile.Verifier, error) {
	v, err := compile.NewVerifier(e, reach, revokers)
	if e.Err() != nil {
		return v, err
	}
	addSigner(v.Verifier, e.Spec)
	if compile.UsesPublicGood(e.Spec) {
		_ = l.obscure(e.Source, reach.PublicGood.Err, compile.PublicGood(l.Objects.Namespace))
	}
	why := l.obscured[e.Source]
	for _, source := range compile.TrustStoresOf(l.Objects.Namespace, e.Spec) {
		at := l
		if source.Namespace == "" && cluster != nil {
			at = cluster
		}
		if found := at.obscured[source]; why == nil && found != nil {
			why = fmt.Errorf("%s: %w", source, found)
		}
	}
	if why == nil {
		return v, err
	}
	made := *v.Verifier
	made.Checker, made.Signers, made.Broken = unreadTrust{unread(e.Source, why)}, nil, nil
	v.Verifier, v.Fingerprint = &made, compile.DigestOf([]string{v.Fingerprint, why.Error()})
	return v, why
}

// unreadTrust is the [verify.Checker] of a verifier whose trust material a person cannot read: it is
// unknown whether it accepts a signature.
type unreadTrust struct{ err error }

// Accepts reports true.
func (unreadTrust) Accepts(verify.Signature) bool { return true }

// Check returns why the result is unknown.
func (c unreadTrust) Check(context.Context, verify.Subject, verify.Signature, verify.Fetch, time.Time) (policy.Proof, error) {
	return policy.Proof{}, c.err
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
		if c, ok := v.Checker.(unreadTrust); ok {
			found = append(found, resource.Unreadable{Source: v.Source, Why: c.err.Error()})
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
