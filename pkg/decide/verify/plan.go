package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// Config is the compiled configuration of one namespace: verifiers, registry access
// and requirements. It is immutable. The zero value denies every image.
type Config struct {
	Namespace Namespace
	// Account is the account that work counts against. Namespaces with the same
	// account share its limits; empty means an account of the namespace's own.
	Account Account
	// UID is that of the Kubernetes namespace, so that a recreated namespace does not
	// inherit cached results.
	UID string
	// Generation is a hash of every specification and trust material that can
	// change a verdict.
	Generation string
	// Limits are those of the account.
	Limits Limits
	// Layers must all allow: the namespace's own policy, each mandatory policy, and then the
	// policies that only warn, which can only add a warning.
	Layers []Layer
	// Exceptions allow single images that Layers deny, and BreakGlass, unless it is nil,
	// every image that Layers do not allow. They are no part of Generation.
	Exceptions []Exception
	BreakGlass *Exception
	// Mandatory has those of Layers that most exceptions do not lift, with a generation of
	// their own; nil if there are none.
	Mandatory *Config
}

// Limits bound the resources of an account; zero means the default. They affect
// scheduling, never verdicts.
type Limits struct {
	InFlight          int // images
	RegistryPerSecond int // registry requests
	CachePercent      int // of the verdict cache
}

// Layer is one policy with the verifiers and the registry that it uses.
// The zero value denies every image.
type Layer struct {
	Source   policy.ObjectRef
	Registry Registry
	// Verifiers lists those that apply, by name. Layers that share a verifier share
	// the pointer and its findings.
	Verifiers []*Verifier
	// Home is the home namespace of the namespace's Tenant if it has Verifiers, else "". Lenient is the policy of a nearer level that would decide if it did not only warn.
	Home    string
	Lenient policy.ObjectRef
	Rules   []Rule // the first one that matches the image decides
	// Default is for images that no rule matches; only Allowed allows them.
	Default policy.Outcome
	// Inherits replaces Default: Next judges images that no rule matches. Without a Next,
	// they are denied.
	Inherits bool
	Next     *Layer
	// Warns says that the layer only adds a warning where it would deny.
	Warns bool
	// OnlyWarnings replaces Rules if all policies that apply only warn: every image is
	// allowed, with the warnings of other layers.
	OnlyWarnings bool
	// RequireMatching replaces Rules if no policy applies: every
	// verifier that matches the image must pass, and at least one must match.
	RequireMatching bool
	// Broken, if set, says which resource is unusable; the layer then denies all.
	Broken string
	// Hidden says that Broken is about what whoever asks may not read: the layer is then
	// Undecided. NoVerifiers, if set, says so of the verifiers: rules that need some are
	// Undecided.
	Hidden      bool
	NoVerifiers string
}

// Rule states what a policy requires of the images that it matches.
type Rule struct {
	Source  policy.ObjectRef
	Images  []image.Pattern
	Action  Action
	Require []Requirement // for the action Require
	// IndexManifests allows an index that fails itself if all of its manifests pass.
	IndexManifests bool
}

// Action is what a rule does with the images that it matches. The zero value is
// Require, which without requirements denies.
type Action uint8

const (
	// Require allows an image for which every requirement holds.
	Require Action = iota
	// Allow allows an image without verifying anything.
	Allow
	// Deny denies an image.
	Deny
)

// Requirement is one entry of a rule. Exactly one of AnyOf, AllOf, Types and Condition
// is set.
type Requirement struct {
	AnyOf, AllOf []string         // names of verifiers
	Types        []string         // any verifier of these types that matches the image
	Condition    policy.Condition // on what every verifier that matches the image has proven
	AtLeast      int              // distinct signers, 1 or more
}

// Verifier checks one kind of evidence for the images that it matches.
type Verifier struct {
	Source  policy.ObjectRef
	Type    string // "Cosign", "Notation"
	Images  []image.Pattern
	Checker Checker
	// Command is the command that makes such evidence, as users type it, without the image
	// at its end. It may be empty.
	Command string
	// Broken, if set, says why the verifier is unusable: all evidence is then invalid,
	// and Checker is not called.
	Broken string
	// Hidden says that Broken is about what whoever asks may not read: all evidence is then
	// unknown.
	Hidden bool
}

// account returns the account that work counts against. It is never empty.
func (c *Config) account() Account { return cmp.Or(c.Account, c.Namespace.Account()) }

// matches reports whether v applies to ref. A broken verifier without patterns matches
// every image: it must deny, not vanish.
func (v *Verifier) matches(ref image.Reference) bool {
	return matchesAny(v.Images, ref) || (v.Broken != "" && len(v.Images) == 0)
}

func matchesAny(patterns []image.Pattern, ref image.Reference) bool {
	return slices.ContainsFunc(patterns, func(p image.Pattern) bool { return p.Match(ref) })
}

// task is the work of one layer for one image: a verdict that needs no evidence, or
// rules that do.
type task struct {
	layer   *Layer
	verdict policy.Verdict // when known
	known   bool
	nothing bool // neither a policy nor a verifier applies
	warns   bool // a denial becomes a warning
	// indexManifests says that the manifests of an index may prove it.
	indexManifests bool
	rules          policy.Requirements
	verifiers      []*Verifier // those that the rules use and that match the image
	// missing holds findings that need no evidence: for broken verifiers, and for
	// those that a rule names although they do not match this image.
	missing []policy.Finding
}

// plan returns the task of each layer for ref. It is pure. Without layers, the image is
// denied.
func (c *Config) plan(ref image.Reference) []task {
	if !slices.ContainsFunc(c.Layers, func(l Layer) bool { return !l.Warns }) {
		return []task{known(nil, policy.Verdict{Reason: "no policy is loaded for " + c.Namespace.Describe(), Remediation: "try again; if it stays, ask a cluster admin to look at Landwaiter's log"})}
	}
	tasks := make([]task, len(c.Layers))
	for i := range c.Layers {
		if tasks[i] = c.Layers[i].plan(ref); tasks[i].nothing && c.Namespace == Cluster {
			tasks[i].verdict.Reason, tasks[i].verdict.Remediation = withoutNamespace(ref)
		}
	}
	return tasks
}

func known(l *Layer, verdict policy.Verdict) task {
	return task{layer: l, known: true, verdict: verdict, warns: l != nil && l.Warns}
}

// unverified returns the verdict on an image that l allows without verification.
func (l *Layer) unverified(source policy.ObjectRef, why string) task {
	return known(l, policy.Unverified(source, why))
}

func (l *Layer) plan(ref image.Reference) task {
	switch {
	case l.Broken != "" && l.Hidden:
		return l.unknowable(l.Source, l.Broken)
	case l.Broken != "":
		return known(l, policy.Verdict{Policy: l.Source, Reason: l.Broken, Remediation: repair(l.Source)})
	case l.OnlyWarnings:
		return l.unverified(l.Source, fmt.Sprintf("%s and every other policy that applies only warn", l.Source))
	case l.RequireMatching:
		return l.planMatching(ref)
	}
	for _, rule := range l.Rules {
		if matchesAny(rule.Images, ref) {
			return l.planRule(rule, ref)
		}
	}
	switch {
	case l.Inherits && l.Next != nil && !l.Next.empty(ref):
		return l.Next.plan(ref)
	case l.Inherits:
		return known(l, policy.Verdict{Policy: l.Source,
			Reason:      fmt.Sprintf("no rule of %s matches %s, and its defaultAction is Inherit, but no further level has a policy, or a Verifier for it", l.Source, ref.Name()),
			Remediation: l.Source.Owner("add a rule for this image to the policy") + ", or ask a cluster admin for a ClusterVerificationPolicy"})
	case l.Default == policy.Allowed:
		return l.unverified(l.Source, fmt.Sprintf("no rule of %s matches %s, and its defaultAction is Allow", l.Source, ref.Name()))
	}
	return known(l, policy.Verdict{Policy: l.Source,
		Reason:      fmt.Sprintf("no rule of %s matches %s, and its defaultAction is Deny", l.Source, ref.Name()),
		Remediation: l.Source.Owner("add a rule for this image to the policy")})
}

// empty reports whether l has nothing to judge ref by: neither a policy nor a verifier.
func (l *Layer) empty(ref image.Reference) bool {
	return l.RequireMatching && l.Broken == "" && l.NoVerifiers == "" && !slices.ContainsFunc(l.Verifiers, func(v *Verifier) bool { return v.matches(ref) })
}

// unknowable returns the task of a layer whose answer depends on what whoever asks may not
// read.
func (l *Layer) unknowable(source policy.ObjectRef, why string) task {
	return known(l, policy.NotDecided(source, why))
}

// repair says what to do about a resource that cannot be used.
func repair(source policy.ObjectRef) string {
	return source.Owner("correct the resource; its condition Ready, or landwaiter lint for files, says what is wrong")
}

// planMatching plans a layer without policies: all verifiers that match must pass.
func (l *Layer) planMatching(ref image.Reference) task {
	if l.NoVerifiers != "" {
		return l.unknowable(l.Source, l.NoVerifiers)
	}
	var names []string
	for _, v := range l.Verifiers {
		if v.matches(ref) {
			names = append(names, v.Source.Name)
		}
	}
	if len(names) == 0 {
		return l.nothing(ref)
	}
	rule := Rule{Source: l.Source, Require: []Requirement{{AllOf: names, AtLeast: 1}}}
	return l.planRule(rule, ref)
}

func (l *Layer) planRule(rule Rule, ref image.Reference) task {
	switch rule.Action {
	case Require:
	case Allow:
		return l.unverified(rule.Source, fmt.Sprintf("a rule of %s allows %s", rule.Source, ref.Name()))
	case Deny:
		return known(l, policy.Verdict{Policy: rule.Source, Reason: fmt.Sprintf("a rule of %s denies %s", rule.Source, ref.Name()),
			Remediation: "use another image, or " + rule.Source.Owner("change that rule")})
	default:
		return known(l, policy.Verdict{Policy: rule.Source, Reason: "internal error: unknown action"})
	}
	if l.NoVerifiers != "" {
		return l.unknowable(rule.Source, l.NoVerifiers)
	}
	t := task{layer: l, rules: policy.Requirements{Source: rule.Source}, warns: l.Warns, indexManifests: rule.IndexManifests}
	deny := func(verdict policy.Verdict) task {
		t.known, t.verdict = true, verdict
		return t
	}
	for _, demand := range rule.Require {
		requirement, err := l.requirement(rule.Source, demand, ref)
		if err != nil {
			return deny(policy.Verdict{Policy: rule.Source, Reason: fmt.Sprintf("%s: %v", rule.Source, err), Remediation: failure(err).Remediation})
		}
		t.rules.Require = append(t.rules.Require, requirement)
		for _, name := range requirement.Verifiers() {
			t.add(l, name, ref)
		}
	}
	// No evidence can satisfy a requirement whose verifiers are all missing: deny
	// before any network call.
	if verdict := policy.Decide(t.rules, append(t.pending(), t.missing...)); verdict.Outcome() == policy.Denied {
		return deny(verdict)
	}
	return t
}

// requirement converts a Requirement to a policy requirement over names.
func (l *Layer) requirement(source policy.ObjectRef, demand Requirement, ref image.Reference) (policy.Requirement, error) {
	switch {
	case len(demand.AllOf) > 0:
		return policy.AllOf(source, demand.AtLeast, demand.AllOf...)
	case len(demand.AnyOf) > 0:
		return policy.AnyOf(source, demand.AtLeast, demand.AnyOf...)
	case demand.Condition != nil:
		return l.matching(source, demand, ref)
	}
	var names []string
	for _, v := range l.Verifiers {
		// A broken verifier of unknown type may be one of these: name it in the
		// reason.
		if (slices.Contains(demand.Types, v.Type) || v.Type == "") && v.matches(ref) {
			names = append(names, v.Source.Name)
		}
	}
	if len(names) == 0 {
		return policy.Requirement{}, PermanentWith(policy.ReasonNoSuchVerifier,
			fmt.Errorf("it requires a Verifier of type %s, and none applies to %s", strings.Join(demand.Types, " or "), ref.Name()), l.extend())
	}
	return policy.AnyOf(source, demand.AtLeast, names...)
}

// matching returns a requirement over every verifier that matches. A broken verifier
// must not look like one without findings.
func (l *Layer) matching(source policy.ObjectRef, demand Requirement, ref image.Reference) (policy.Requirement, error) {
	var names []string
	for _, v := range l.Verifiers {
		switch {
		case !v.matches(ref):
		case v.Broken != "" && !v.Hidden:
			return policy.Requirement{}, PermanentWith(policy.ReasonBrokenResource, fmt.Errorf("its expression needs every Verifier: %s", v.Broken), repair(v.Source))
		default:
			names = append(names, v.Source.Name)
		}
	}
	if len(names) == 0 {
		return policy.Requirement{}, PermanentWith(policy.ReasonNoSuchVerifier, fmt.Errorf("it has an expression, and no Verifier applies to %s", ref.Name()), l.extend())
	}
	return policy.Matching(source, demand.AtLeast, demand.Condition, names...)
}

// decided returns the verdict if no task needs evidence for it:
// one denies, else one cannot be known, or all allow.
func decided(tasks []task) (policy.Verdict, bool) {
	for _, outcome := range []policy.Outcome{policy.Denied, policy.Undecided} {
		for _, t := range tasks {
			if t.known && !t.warns && t.verdict.Outcome() == outcome {
				return t.verdict, true
			}
		}
	}
	if i := slices.IndexFunc(tasks, func(t task) bool { return !t.known }); i >= 0 {
		return policy.Verdict{}, false
	}
	return combine(tasks, func(i int) policy.Verdict { return tasks[i].verdict }), true
}

// failed returns the verdict on an image whose verification ended with err. It is a
// warning if only policies that warn needed evidence.
func failed(tasks []task, err error) policy.Verdict {
	verdict := failure(err)
	asked := slices.DeleteFunc(slices.Clone(tasks), func(t task) bool { return t.known })
	if len(asked) == 0 || slices.ContainsFunc(asked, func(t task) bool { return !t.warns }) {
		return verdict
	}
	verdict.Policy = asked[0].rules.Source
	warned := combine(tasks, func(i int) policy.Verdict {
		if tasks[i].known {
			return tasks[i].verdict
		}
		return verdict
	})
	warned.Policy, warned.Reason, warned.Warning = verdict.Policy, fmt.Sprintf("%s only warns: %s", verdict.Policy, verdict.Reason), verdict.Text()
	return warned
}

// missing returns the findings that need no evidence.
func missing(tasks []task) []policy.Finding {
	var findings []policy.Finding
	for _, t := range tasks {
		findings = append(findings, t.missing...)
	}
	return findings
}

// onlyWarns reports whether only layers that warn need evidence.
func onlyWarns(tasks []task) bool {
	return !slices.ContainsFunc(tasks, func(t task) bool { return !t.known && !t.warns })
}

// registryOf returns the registry of the first task that needs one: the namespace's
// own, unless its policy needs no evidence.
func registryOf(tasks []task) Registry {
	for _, t := range tasks {
		if !t.known {
			return t.layer.Registry
		}
	}
	return nil
}
