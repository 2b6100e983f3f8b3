package verify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// task is the work of one tier for one image: a verdict that needs no evidence, or rules that
// need some.
type task struct {
	tier    *Tier
	verdict policy.Verdict // when known
	known   bool
	// mandatory marks the task of a mandatory tier, which may leave the image to another.
	mandatory bool
	nothing   bool // neither a policy nor a verifier applies
	warns     bool // a denial becomes a warning
	// indexManifests says that the manifests of an index may prove it.
	indexManifests bool
	// requires says that a rule requires evidence. If the task is known, nobody has looked for it.
	requires  bool
	rules     policy.Requirements
	verifiers []*Verifier // verifiers that the rules use and that match the image
	// missing holds findings that need no evidence: for broken verifiers, and for verifiers that
	// a rule names although they do not match this image.
	missing []policy.Finding
}

// plan returns the task of each tier for ref. It is pure. Without enforced tiers, the image is
// denied.
func (p part) plan(ref image.Reference) []task {
	tasks, enforced := make([]task, 0, len(p.Tiers)), false
	for i := range p.Tiers {
		l := &p.Tiers[i]
		if p.alone && !l.Mandatory {
			continue
		}
		t := l.plan(ref)
		if t.mandatory = l.Mandatory; t.nothing && p.Namespace == Cluster {
			t.verdict.Reason, t.verdict.Remediation = withoutNamespace(ref)
		}
		tasks, enforced = append(tasks, t), enforced || !l.Warns
	}
	if !enforced {
		return []task{
			known(nil,
				policy.Verdict{Reason: "no policy is loaded for " + p.Namespace.Describe(),
					Remediation: "try again; if it stays, ask a cluster admin to look at Landwaiter's log"})}
	}
	return tasks
}

// mandatoryOf returns the tasks of mandatory tiers, nil if there are none.
func mandatoryOf(tasks []task) (mandatory []task) {
	for _, t := range tasks {
		if t.mandatory {
			mandatory = append(mandatory, t)
		}
	}
	return mandatory
}

func known(l *Tier, verdict policy.Verdict) task {
	return task{tier: l, known: true, verdict: verdict, warns: l != nil && l.Warns}
}

// unverified returns the verdict on an image that l allows without verification.
func (l *Tier) unverified(source policy.ObjectRef, why string) task {
	return known(l, policy.Unverified(source, why))
}

func (l *Tier) plan(ref image.Reference) task {
	switch {
	case !l.Judge.Usable():
		return known(l, policy.Verdict{Policy: l.Source, Reason: l.Judge.Why(), Remediation: l.repair()})
	case l.Judge.kind == onlyWarnings:
		return l.unverified(l.Source, fmt.Sprintf("%s and every other policy that applies only warn", l.Source))
	case l.Judge.kind == byVerifiers:
		return l.planMatching(ref)
	}
	return l.planRules(ref)
}

func (l *Tier) planRules(ref image.Reference) task {
	for _, rule := range l.Judge.rules {
		if matchesAny(rule.Images, ref) {
			return l.planRule(rule, ref)
		}
	}
	if l.Judge.rest == DefaultInherit && l.Next != nil && !l.Next.empty(ref) {
		return l.Next.plan(ref)
	}
	unmatched := fmt.Sprintf("no rule of %s matches %s, and its defaultAction is ", l.Source, ref.Name())
	fix := l.Source.Owner("add a rule for this image to the policy")
	switch l.Judge.rest {
	case DefaultAllow:
		return l.unverified(l.Source, unmatched+"Allow")
	case DefaultInherit:
		return known(l, policy.Verdict{Policy: l.Source, Reason: unmatched + "Inherit, but no further level has a policy, or a Verifier for it",
			Remediation: fix + ", or ask a cluster admin for a ClusterVerificationPolicy"})
	case DefaultDeny:
	}
	return known(l, policy.Verdict{Policy: l.Source, Reason: unmatched + "Deny", Remediation: fix})
}

// empty reports whether l has neither a policy nor a verifier for ref.
func (l *Tier) empty(ref image.Reference) bool {
	return l.Judge.kind == byVerifiers && l.Judge.Usable() &&
		!slices.ContainsFunc(l.Verifiers, func(v *Verifier) bool { return v.matches(ref) })
}

// repair says what to do about a resource that cannot be used, and why it cannot. If the cause is external, as its
// error says, the resource needs no correction.
func repair(source policy.ObjectRef, why error) string {
	if remedy := policy.OutsideOf(why); remedy != "" {
		return remedy
	}
	return source.Owner("correct " + source.String() + seeReady)
}

// seeReady says where to read the error. Resources from files have no conditions.
const seeReady = "; its condition Ready, or landwaiter check for files, says what is wrong"

// repair says what to do about a tier that judges no image, because its policy or something else cannot be used.
func (l *Tier) repair() string {
	if strings.HasPrefix(l.Judge.Why(), l.Source.String()+" ") {
		return repair(l.Source, l.Judge.refuses)
	}
	return l.Source.Owner("correct the resource" + seeReady)
}

// planMatching plans a tier without policies: all matching verifiers must pass.
func (l *Tier) planMatching(ref image.Reference) task {
	names := l.applying(ref, func(*Verifier) bool { return true })
	if len(names) == 0 {
		return l.nothing(ref)
	}
	rule := Rule{Source: l.Source, Require: []Requirement{{AllOf: names, AtLeast: 1}}}
	return l.planRule(rule, ref)
}

func (l *Tier) planRule(rule Rule, ref image.Reference) task {
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
	t := task{tier: l, requires: true, rules: policy.Requirements{Source: rule.Source}, warns: l.Warns, indexManifests: rule.IndexManifests}
	deny := func(verdict policy.Verdict) task {
		t.known, t.verdict = true, verdict
		return t
	}
	seen, beyond := make([]bool, len(l.Verifiers)), false
	for _, demand := range rule.Require {
		requirement, err := l.requirement(rule.Source, demand, ref)
		if err != nil {
			return deny(policy.Verdict{Policy: rule.Source, Reason: fmt.Sprintf("%s: %v", rule.Source, err), Remediation: failure(err).Remediation})
		}
		requirement, short := l.bounded(requirement, ref)
		beyond = beyond || short
		t.rules.Require = append(t.rules.Require, requirement)
		for _, name := range requirement.Verifiers() {
			t.add(l, name, ref, seen)
		}
	}
	// No evidence can satisfy a requirement whose verifiers are all missing, or trust too few signers: deny
	// before any network call. With none missing, evidence decides. No expression is evaluated
	// while findings are pending.
	if beyond || len(t.missing) > 0 || len(t.verifiers) == 0 {
		if verdict := policy.Decide(nil, t.rules, append(t.pending(), t.missing...)); verdict.Outcome() == policy.Denied {
			return deny(verdict)
		}
	}
	return t
}

// bounded returns requirement with the number of signers that its verifiers trust for ref, and reports whether that
// is too small.
func (l *Tier) bounded(requirement policy.Requirement, ref image.Reference) (policy.Requirement, bool) {
	if requirement.AtLeast() == 1 {
		return requirement, false // one signer is enough, which is the usual case
	}
	var matching []*Verifier
	for _, name := range requirement.Verifiers() {
		if v := l.named(name); v != nil && v.matches(ref) {
			matching = append(matching, v)
		}
	}
	n, known := Trusted(matching)
	if !known || n == 0 { // without any signer, the missing verifiers say why
		return requirement, false
	}
	return requirement.Trusting(n)
}

// named returns the verifier of l with that name, nil if there is none.
func (l *Tier) named(name string) *Verifier {
	i, found := slices.BinarySearchFunc(l.Verifiers, name, func(v *Verifier, name string) int { return strings.Compare(v.Source.Name, name) })
	if !found {
		return nil
	}
	return l.Verifiers[i]
}

// requirement converts a Requirement to a policy requirement over names.
func (l *Tier) requirement(source policy.ObjectRef, demand Requirement, ref image.Reference) (policy.Requirement, error) {
	switch {
	case len(demand.AllOf) > 0:
		return policy.AllOf(source, demand.AtLeast, demand.AllOf...)
	case len(demand.AnyOf) > 0:
		return policy.AnyOf(source, demand.AtLeast, demand.AnyOf...)
	case demand.Condition != nil:
		return l.matching(source, demand, ref)
	}
	// A broken verifier of unknown type may be of a required type: name it in the reason.
	names := l.applying(ref, func(v *Verifier) bool { return slices.Contains(demand.Types, v.Type) || v.Type == "" })
	if len(names) == 0 {
		return policy.Requirement{}, PermanentWith(policy.ReasonNoSuchVerifier,
			fmt.Errorf("it requires a Verifier of type %s, and none applies to %s", strings.Join(demand.Types, " or "), ref.Name()),
			l.extend(source))
	}
	return policy.AnyOf(source, demand.AtLeast, names...)
}

// matching returns a requirement over every verifier that matches. A broken verifier
// must not look like one without findings.
func (l *Tier) matching(source policy.ObjectRef, demand Requirement, ref image.Reference) (policy.Requirement, error) {
	for _, v := range l.Verifiers {
		if v.Broken != nil && v.matches(ref) {
			return policy.Requirement{},
				PermanentWith(policy.ReasonBrokenResource, fmt.Errorf("its expression needs every Verifier: %w", v.Broken), repair(v.Source, v.Broken))
		}
	}
	names := l.applying(ref, func(*Verifier) bool { return true })
	if len(names) == 0 {
		return policy.Requirement{},
			PermanentWith(policy.ReasonNoSuchVerifier, fmt.Errorf("it has an expression, and no Verifier applies to %s", ref.Name()),
				l.extend(source))
	}
	return policy.Matching(source, demand.AtLeast, demand.Condition, names...)
}

// applying returns the names of the wanted verifiers that match ref.
func (l *Tier) applying(ref image.Reference, wanted func(*Verifier) bool) (names []string) {
	for _, v := range l.Verifiers {
		if wanted(v) && v.matches(ref) {
			names = append(names, v.Source.Name)
		}
	}
	return names
}

// of l that are recorded: a policy can name hundreds, each many times.
func (t *task) add(l *Tier, name string, ref image.Reference, seen []bool) {
	i, found := slices.BinarySearchFunc(l.Verifiers, name, func(v *Verifier, name string) int { return strings.Compare(v.Source.Name, name) })
	if !found {
		t.missing = append(t.missing, l.unknown(t.rules.Source, name))
		return
	}
	v := l.Verifiers[i]
	switch {
	case seen[i]:
	case v.Broken != nil:
		t.missing = append(t.missing,
			v.finding(policy.Finding{Reason: policy.ReasonBrokenResource, Message: v.Broken.Error(), Remediation: repair(v.Source, v.Broken)}))
	case !v.matches(ref):
		t.missing = append(t.missing, v.elsewhere(t.rules.Source, ref))
	default:
		t.verifiers = append(t.verifiers, v)
	}
	seen[i] = true
}

// elsewhere returns the finding of a verifier that a policy requires and that does not match
// ref.
func (v *Verifier) elsewhere(requires policy.ObjectRef, ref image.Reference) policy.Finding {
	f := policy.Finding{Reason: policy.ReasonNotForThisImage,
		Message:     fmt.Sprintf("%s is not for %s: its images do not match", v.Source, ref.Name()),
		Remediation: v.Source.Owner("add the image to spec.images of the Verifier") + ", or require another Verifier"}
	if requires.Namespace == "" && v.Source.Namespace == "" { // a cluster admin's choice, too
		f.Remediation = requires.Owner("add the image to spec.images of the ClusterVerifier, or to require another ClusterVerifier")
	}
	return v.finding(f)
}

// pending returns an Unknown finding for each verifier that has yet to run.
func (t *task) pending() []policy.Finding {
	findings := make([]policy.Finding, len(t.verifiers))
	for i, v := range t.verifiers {
		findings[i] = v.finding(policy.Finding{Unknown: true})
	}
	return findings
}

// finding adds the verifier to f.
func (v *Verifier) finding(f policy.Finding) policy.Finding {
	f.Verifier, f.Source, f.Type = v.Source.Name, v.Source, v.Type
	return f
}

// clusterContact returns the contact of a policy of the cluster, "" if it has none.
func clusterContact(tasks []task) string {
	for _, t := range tasks {
		for l := t.tier; l != nil; l = l.Next {
			for _, c := range l.Contacts {
				if c.Policy.Namespace == "" && c.Policy.Name != "" {
					return c.Text
				}
			}
		}
	}
	return ""
}
