package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/image"
	"github.com/landwaiter/landwaiter/pkg/policy"
)

// Config is what the resources of one namespace come to: who verifies, with
// whose credentials, and what is demanded. It is immutable. The zero value
// denies every image.
type Config struct {
	Namespace Namespace
	// Account pays for the work. Namespaces with the same account share its limits;
	// empty means that the namespace pays for itself.
	Account Account
	// UID of the Kubernetes namespace, so that one that is deleted and made again
	// inherits nothing.
	UID string
	// Generation is a hash of every specification and trust material that can
	// change a verdict.
	Generation string
	// Limits are what the account may take.
	Limits Limits
	// Layers must all allow: the namespace's own policy, then each floor.
	Layers []Layer
}

// Limits are what an account may take; zero is the default of every account.
// They change no verdict.
type Limits struct {
	InFlight          int // images at a time
	RegistryPerSecond int // requests
	CachePercent      int // of the memory for verdicts
}

// Layer is one policy with the verifiers and the registry that it works with.
// The zero value denies every image.
type Layer struct {
	Source   policy.ObjectRef
	Registry Registry
	// Verifiers are those that apply, by name. Layers that share a verifier share
	// the pointer, and what it found.
	Verifiers []*Verifier
	Rules     []Rule // the first one that matches the image decides
	// Default is for images that no rule matches; only Allowed allows them.
	Default policy.Outcome
	// DefaultWarns says that the policy which states Default only warns.
	DefaultWarns bool
	// RequireMatching replaces Rules where there is no policy at all: every
	// verifier that matches the image must pass, and at least one must match.
	RequireMatching bool
	// Broken, if set, says which resource is unusable; the layer then denies all.
	Broken string
}

// Rule is what a policy demands of the images it matches.
type Rule struct {
	Source  policy.ObjectRef
	Images  []image.Pattern
	Require []Requirement
	// Warns says that what the rule does not allow is allowed with a warning.
	Warns bool
	// IndexManifests allows an index that is not allowed itself if each of its
	// manifests is.
	IndexManifests bool
}

// Requirement is one entry of a rule. Exactly one of AnyOf, AllOf, Types and Condition
// is set.
type Requirement struct {
	AnyOf, AllOf []string         // names of verifiers
	Types        []string         // any verifier of these types that matches the image
	Condition    policy.Condition // on what every verifier that matches the image has proven
	AtLeast      int              // distinct signers, 1 or more
}

// Verifier is one way to check evidence, for the images it matches.
type Verifier struct {
	Source  policy.ObjectRef
	Type    string // "Cosign", "Notation"
	Images  []image.Pattern
	Checker Checker
	// Broken, if set, says why the verifier is unusable: it then finds everything
	// invalid, and Checker is not called.
	Broken string
}

// account returns who pays, which is never empty.
func (c *Config) account() Account { return cmp.Or(c.Account, c.Namespace.Account()) }

// matches reports whether v is about ref. A broken verifier whose patterns are
// unknown has none, and is about everything: it must deny, not vanish.
func (v *Verifier) matches(ref image.Reference) bool {
	return matchesAny(v.Images, ref) || (v.Broken != "" && len(v.Images) == 0)
}

func matchesAny(patterns []image.Pattern, ref image.Reference) bool {
	return slices.ContainsFunc(patterns, func(p image.Pattern) bool { return p.Match(ref) })
}

// task is what one layer asks for one image: a verdict known beforehand, or
// rules that need evidence.
type task struct {
	layer   *Layer
	verdict policy.Verdict // when known
	known   bool
	warns   bool // what is not allowed is, with a warning
	// indexManifests says that an index may be allowed by its manifests.
	indexManifests bool
	rules          policy.Requirements
	verifiers      []*Verifier // that the rules look at and that match the image
	// missing holds findings known without evidence: broken verifiers, and those
	// that a rule names although they are not for this image.
	missing []policy.Finding
}

// plan says what each layer asks for ref. It is pure. Without layers there is
// nothing that could allow.
func (c *Config) plan(ref image.Reference) []task {
	if len(c.Layers) == 0 {
		return []task{known(nil, policy.Verdict{Reason: "no policy is loaded for " + c.Namespace.Describe()})}
	}
	tasks := make([]task, len(c.Layers))
	for i := range c.Layers {
		tasks[i] = c.Layers[i].plan(ref)
	}
	return tasks
}

func known(l *Layer, verdict policy.Verdict) task {
	return task{layer: l, known: true, verdict: verdict}
}

func (l *Layer) plan(ref image.Reference) task {
	if l.Broken != "" {
		return known(l, policy.Verdict{Policy: l.Source, Reason: l.Broken})
	}
	if l.RequireMatching {
		return l.planMatching(ref)
	}
	for _, rule := range l.Rules {
		if matchesAny(rule.Images, ref) {
			return l.planRule(rule, ref)
		}
	}
	if l.Default == policy.Allowed {
		return known(l, policy.Verdict{Outcome: policy.Allowed, Policy: l.Source,
			Reason: fmt.Sprintf("no rule of %s matches %s, and its default is Allow", l.Source, ref.Name())})
	}
	t := known(l, policy.Verdict{Policy: l.Source,
		Reason: fmt.Sprintf("no rule of %s matches %s, and its default is Deny", l.Source, ref.Name())})
	t.warns = l.DefaultWarns
	return t
}

// planMatching is for levels without any policy: all that match must pass.
func (l *Layer) planMatching(ref image.Reference) task {
	var names []string
	for _, v := range l.Verifiers {
		if v.matches(ref) {
			names = append(names, v.Source.Name)
		}
	}
	if len(names) == 0 {
		return known(l, policy.Verdict{Reason: fmt.Sprintf("there is no policy, and no verifier applies to %s; "+
			"an image needs at least one Verifier whose images match it", ref.Name())})
	}
	rule := Rule{Source: l.Source, Require: []Requirement{{AllOf: names, AtLeast: 1}}}
	return l.planRule(rule, ref)
}

func (l *Layer) planRule(rule Rule, ref image.Reference) task {
	t := task{layer: l, rules: policy.Requirements{Source: rule.Source}, warns: rule.Warns, indexManifests: rule.IndexManifests}
	deny := func(verdict policy.Verdict) task {
		t.known, t.verdict = true, verdict
		return t
	}
	for _, demand := range rule.Require {
		requirement, err := l.requirement(rule.Source, demand, ref)
		if err != nil {
			return deny(policy.Verdict{Policy: rule.Source, Reason: fmt.Sprintf("%s: %v", rule.Source, err)})
		}
		t.rules.Require = append(t.rules.Require, requirement)
		for _, name := range requirement.Verifiers() {
			t.add(l, name, ref)
		}
	}
	// Nothing that is still to be found could change a requirement that only
	// looks at verifiers that are missing: deny before any network call.
	if verdict := policy.Decide(t.rules, append(t.pending(), t.missing...)); verdict.Outcome == policy.Denied {
		return deny(verdict)
	}
	return t
}

// requirement turns a demand into a policy requirement over names.
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
		// A broken verifier of unknown type may be one of these: its name belongs
		// into the reason.
		if (slices.Contains(demand.Types, v.Type) || v.Type == "") && v.matches(ref) {
			names = append(names, v.Source.Name)
		}
	}
	if len(names) == 0 {
		return policy.Requirement{}, fmt.Errorf("no Verifier of type %s applies to %s", strings.Join(demand.Types, " or "), ref.Name())
	}
	return policy.AnyOf(source, demand.AtLeast, names...)
}

// matching is a requirement over every verifier that matches. A broken one must
// not look like one that has found nothing.
func (l *Layer) matching(source policy.ObjectRef, demand Requirement, ref image.Reference) (policy.Requirement, error) {
	var names []string
	for _, v := range l.Verifiers {
		switch {
		case !v.matches(ref):
		case v.Broken != "":
			return policy.Requirement{}, fmt.Errorf("its expression needs every Verifier: %s", v.Broken)
		default:
			names = append(names, v.Source.Name)
		}
	}
	if len(names) == 0 {
		return policy.Requirement{}, fmt.Errorf("no Verifier applies to %s", ref.Name())
	}
	return policy.Matching(source, demand.AtLeast, demand.Condition, names...)
}

// add looks name up and notes it as a verifier to run or as one that is missing.
func (t *task) add(l *Layer, name string, ref image.Reference) {
	i := slices.IndexFunc(l.Verifiers, func(v *Verifier) bool { return v.Source.Name == name })
	if i < 0 {
		t.missing = append(t.missing, policy.Finding{Verifier: name, Reason: policy.ReasonNoSuchVerifier,
			Message:     fmt.Sprintf("verifier %s does not exist where the policy looks for it", name),
			Remediation: "create the Verifier, or correct the name in the policy"})
		return
	}
	v := l.Verifiers[i]
	switch {
	case slices.Contains(t.verifiers, v):
	case v.Broken != "":
		t.missing = append(t.missing, v.finding(policy.Finding{Reason: policy.ReasonBrokenResource, Message: v.Broken,
			Remediation: "correct the named resource; its status says what is wrong"}))
	case !v.matches(ref):
		t.missing = append(t.missing, v.finding(policy.Finding{Reason: policy.ReasonNotForThisImage,
			Message: fmt.Sprintf("%s is not for %s: its images do not match", v.Source, ref.Name())}))
	default:
		t.verifiers = append(t.verifiers, v)
	}
}

// pending returns an Unknown finding for each verifier that has yet to run.
func (t *task) pending() []policy.Finding {
	findings := make([]policy.Finding, len(t.verifiers))
	for i, v := range t.verifiers {
		findings[i] = v.finding(policy.Finding{Result: policy.Unknown})
	}
	return findings
}

// finding completes f with who found it.
func (v *Verifier) finding(f policy.Finding) policy.Finding {
	f.Verifier, f.Source, f.Type = v.Source.Name, v.Source, v.Type
	return f
}

// decided returns the verdict if the tasks can be answered without evidence:
// one denies, or all allow.
func decided(tasks []task) (policy.Verdict, bool) {
	for _, t := range tasks {
		if t.known && t.softened(t.verdict).Outcome != policy.Allowed {
			return t.verdict, true
		}
	}
	if i := slices.IndexFunc(tasks, func(t task) bool { return !t.known }); i >= 0 {
		return policy.Verdict{}, false
	}
	return combine(tasks, func(i int) policy.Verdict { return tasks[i].verdict }), true
}

// softened is what a verdict on t comes to if t only warns.
func (t task) softened(verdict policy.Verdict) policy.Verdict {
	if t.warns {
		return verdict.Warn()
	}
	return verdict
}

// failed is the verdict on an image whose verification ended with err. It is a
// warning if nothing but policies that warn asked for evidence.
func failed(tasks []task, err error) policy.Verdict {
	verdict := failure(err)
	asked := slices.DeleteFunc(slices.Clone(tasks), func(t task) bool { return t.known })
	if len(asked) == 0 || slices.ContainsFunc(asked, func(t task) bool { return !t.warns }) {
		return verdict
	}
	verdict.Policy = asked[0].rules.Source
	return verdict.Warn()
}

// missing are the findings that were known without evidence.
func missing(tasks []task) []policy.Finding {
	var findings []policy.Finding
	for _, t := range tasks {
		findings = append(findings, t.missing...)
	}
	return findings
}

// registryOf returns the registry of the first task that needs one: the
// namespace's own, unless its policy asks for no evidence.
func registryOf(tasks []task) Registry {
	for _, t := range tasks {
		if !t.known {
			return t.layer.Registry
		}
	}
	return nil
}

// verdictKey is the key of the verdict on a reference that has a digest.
func (c *Config) verdictKey(ref image.Reference) Key {
	return Key{Namespace: c.Namespace, Kind: KindVerdict, UID: c.UID, Generation: c.Generation, Image: ref.Name() + "@" + ref.Digest.String()}
}

// tagKey is the key of what the tag of a reference names.
func (c *Config) tagKey(ref image.Reference) Key {
	return Key{Namespace: c.Namespace, Kind: KindTag, UID: c.UID, Generation: c.Generation, Image: ref.String()}
}
