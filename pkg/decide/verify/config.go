package verify

import (
	"cmp"
	"errors"
	"slices"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// Config is the compiled configuration of one namespace: verifiers, registry access
// and requirements. It is immutable. The zero value denies every image.
type Config struct {
	Namespace Namespace
	// Account is the account that pays for the work. Namespaces with the same account share its
	// limits; empty means the namespace's own account.
	Account Account
	// UID is the UID of the Kubernetes namespace, so that a recreated namespace does not inherit
	// cached results.
	UID string
	// Generation is a hash of every specification and trust material that can
	// change a verdict.
	Generation string
	// Limits are the limits of the account.
	Limits Limits
	// MandatoryGeneration is a hash of everything that can change the verdict of the mandatory
	// Tiers alone.
	MandatoryGeneration string
	// Tiers must all allow: the namespace's own policy, each mandatory policy, and then the
	// policies that only warn, which can only add a warning.
	Tiers []Tier
	// Exceptions allow single images that Tiers deny, and BreakGlass, unless it is nil, every
	// image that Tiers do not allow. They are not part of Generation.
	Exceptions []Exception
	BreakGlass *Exception
}

// hasMandatory reports whether some tier is mandatory.
func (c *Config) hasMandatory() bool {
	return slices.ContainsFunc(c.Tiers, func(l Tier) bool { return l.Mandatory })
}

// Limits bound the resources of an account; zero means the default. They affect
// scheduling, never verdicts.
type Limits struct {
	InFlight          int // images
	RegistryPerSecond int // registry requests
	CachePercent      int // of the verdict cache
}

// Tier is one policy with the verifiers and the registry that it uses.
// The zero value denies every image.
type Tier struct {
	Source   policy.ObjectRef
	Registry Registry
	// Verifiers lists the applicable verifiers, sorted by name: one that is out of order may seem
	// to be missing, which denies. Tiers that share a verifier share the pointer and its findings.
	Verifiers []*Verifier
	// Home is the home namespace of the namespace's Tenant if it has Verifiers, else "". Lenient is the policy of a nearer
	// level that would decide if it were enforced.
	Home    string
	Lenient policy.ObjectRef
	Judge   Judge
	// Contacts are the contacts of the policies, and Contact is used for policies without one:
	// developers ask the admins of their own team first, regardless of who wrote the policy.
	Contacts []Contact
	Contact  string
	// Next judges the images that a Judge with [DefaultInherit] leaves to the next levels. Without
	// it, they are denied.
	Next *Tier
	// Warns says that the tier adds a warning instead of denying, and Mandatory that only exceptions with
	// overrideMandatory apply.
	Warns, Mandatory bool
}

// Contact is the contact of a policy, in one line.
type Contact struct {
	Policy policy.ObjectRef
	Text   string
}

// contact returns the contact of a policy of l, "" if it has none.
func (l *Tier) contact(of policy.ObjectRef) string {
	for _, c := range l.Contacts {
		if c.Policy == of {
			return c.Text
		}
	}
	return l.Contact
}

// ContactsOf returns the contacts of policies by their names, in the given order. If no policy is the cause, which
// has the name "" or that of the zero ObjectRef, the contacts are the admins of the team.
func (c *Config) ContactsOf(names []string) (found []string) {
	texts := map[string]string{}
	for _, of := range c.Contacts() {
		texts[of.Policy.String()] = of.Text
	}
	if len(c.Tiers) > 0 {
		texts[""], texts[policy.ObjectRef{}.String()] = c.Tiers[0].Contact, c.Tiers[0].Contact
	}
	for _, name := range names {
		if text := texts[name]; text != "" {
			found = append(found, text)
		}
	}
	return found
}

// Contacts returns the contacts of the policies that can deny an image, each policy once.
func (c *Config) Contacts() []Contact {
	var found []Contact
	seen := map[policy.ObjectRef]bool{}
	for i := range c.Tiers {
		for l := &c.Tiers[i]; l != nil; l = l.Next {
			for _, source := range append([]policy.ObjectRef{l.Source}, sources(l.Judge.rules)...) {
				if text := l.contact(source); !seen[source] && text != "" {
					found = append(found, Contact{source, text})
				}
				seen[source] = true
			}
		}
	}
	return found
}

func sources(rules []Rule) []policy.ObjectRef {
	made := make([]policy.ObjectRef, len(rules))
	for i, r := range rules {
		made[i] = r.Source
	}
	return made
}

// Judge defines how a tier judges images. Only its constructors make one that does not deny every
// image, as the zero value does.
type Judge struct {
	kind    judgeKind
	rules   []Rule
	rest    Default
	refuses error // why it denies every image
}

type judgeKind uint8

const (
	byRules judgeKind = iota
	byVerifiers
	onlyWarnings
)

// Default is what happens to images that no rule matches. The zero value denies them.
type Default uint8

// The defaults, the strictest first.
const (
	// DefaultDeny denies them.
	DefaultDeny Default = iota
	// DefaultInherit leaves them to the next tier.
	DefaultInherit
	// DefaultAllow allows them.
	DefaultAllow
)

// ByRules returns the Judge of policies: the first rule that matches an image decides.
func ByRules(rules []Rule, rest Default) Judge { return Judge{rules: rules, rest: rest} }

// ByVerifiers returns the Judge that applies without a policy: every verifier that matches the
// image must pass, and at least one must match.
func ByVerifiers() Judge { return Judge{kind: byVerifiers} }

// OnlyWarnings returns the Judge that applies if all policies only warn: every image is
// allowed, with the warnings of other tiers.
func OnlyWarnings() Judge { return Judge{kind: onlyWarnings} }

// Refusing returns j as the Judge of an unusable resource: it denies every image for the reason why.
func (j Judge) Refusing(why error) Judge {
	if j.refuses = why; why == nil {
		j.refuses = errors.New("it cannot be used")
	}
	return j
}

// Rules returns the rules of policies.
func (j Judge) Rules() []Rule { return j.rules }

// Default returns what happens to images that no rule matches.
func (j Judge) Default() Default { return j.rest }

// Why returns why j denies every image, "" if it does not.
func (j Judge) Why() string {
	if j.refuses == nil {
		return ""
	}
	return j.refuses.Error()
}

// Usable reports whether j judges images individually, rather than denying all of them.
func (j Judge) Usable() bool { return j.refuses == nil }

// Required returns the verifiers that l, and the tiers that it leaves images to, require for some
// image.
func (l *Tier) Required() []*Verifier {
	var required []*Verifier
	for ; l != nil; l = l.Next {
		for _, v := range l.Verifiers {
			if l.Judge.kind == byVerifiers || slices.ContainsFunc(l.Judge.rules, func(r Rule) bool {
				return slices.ContainsFunc(r.Require, func(r Requirement) bool { return r.Selects(v) })
			}) {
				required = append(required, v)
			}
		}
	}
	return required
}

// Selects reports whether r requires v for some of its images.
func (r Requirement) Selects(v *Verifier) bool {
	return r.Condition != nil || slices.Contains(r.Types, v.Type) || slices.Contains(r.AnyOf, v.Source.Name) ||
		slices.Contains(r.AllOf, v.Source.Name)
}

// Rule defines what a policy requires of the images that it matches.
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
	Condition    policy.Condition // on the proofs of every verifier that matches the image
	AtLeast      int              // distinct signers, 1 or more
}

// Verifier checks one kind of evidence for the images that it matches.
type Verifier struct {
	Source  policy.ObjectRef
	Type    string // "Cosign", "Notation"
	Images  []image.Pattern
	Checker Checker
	// Command creates the evidence, as users type it, without the image at its end. It is empty if nobody creates it by
	// hand. SignAs is the step before it, such as logging in as the signer, in a clause; it may be empty.
	Command, SignAs string
	// Signers lists everyone whose evidence can count, by the names in proofs; nil means that their number
	// is unbounded.
	Signers []string
	// Broken, if set, is why the verifier is unusable: all evidence is then invalid, and Checker is
	// not called.
	Broken error
}

// Trusted returns an upper bound on the distinct signers that verifiers trust together, and false if it is unknown. A
// broken verifier trusts nobody.
func Trusted(verifiers []*Verifier) (int, bool) {
	distinct := map[string]bool{}
	for _, v := range verifiers {
		switch {
		case v.Broken != nil:
			continue
		case v.Signers == nil:
			return 0, false
		}
		for _, signer := range v.Signers {
			distinct[signer] = true
		}
	}
	return len(distinct), true
}

// account returns the account that pays for the work. It is never empty.
func (c *Config) account() Account { return cmp.Or(c.Account, c.Namespace.Account()) }

// matches reports whether v applies to ref. A broken verifier without patterns matches
// every image: it must deny, not vanish.
func (v *Verifier) matches(ref image.Reference) bool {
	return matchesAny(v.Images, ref) || (v.Broken != nil && len(v.Images) == 0)
}

func matchesAny(patterns []image.Pattern, ref image.Reference) bool {
	return slices.ContainsFunc(patterns, func(p image.Pattern) bool { return p.Match(ref) })
}

// part is a [Config], or only its mandatory tiers. Their verdicts are cached separately, because they
// only change with the mandatory policies.
type part struct {
	*Config
	alone bool // the mandatory tiers
}

func (c *Config) all() part { return part{Config: c} }

func (c *Config) mandatory() part { return part{Config: c, alone: true} }

func (p part) generation() string {
	switch {
	case !p.alone:
		return p.Generation
	case p.MandatoryGeneration == "":
		return p.Generation + " mandatory policies"
	}
	return p.MandatoryGeneration
}

// verdictKey returns the cache key of the verdict on a reference with a digest.
func (p part) verdictKey(ref image.Reference) Key {
	return Key{Namespace: p.Namespace, Kind: KindVerdict, UID: p.UID, Generation: p.generation(),
		Image: ref.Host + "/" + ref.Repository + "@" + ref.Digest.String()}
}

// tagKey returns the cache key of the digest on which every tier agrees for a tag.
func (p part) tagKey(ref image.Reference) Key {
	return Key{Namespace: p.Namespace, Kind: KindTag, UID: p.UID, Generation: p.generation(), Image: ref.String()}
}
