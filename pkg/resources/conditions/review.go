package conditions

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/evidence/breadth"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Review returns what a resource allows although its author may not know it, in the order of its fields: identities
// that strangers also have or that nobody has, policies and exceptions for every image, keys of our documentation.
// The reasons are those of the condition NeedsReview. It ignores unusable fields.
func Review(o v1beta1.Object) []resource.Problem { return problems(resource.RefOf(o), concernsOf(o)) }

func concernsOf(o v1beta1.Object) []concern {
	switch spec := resource.SpecOf(o).(type) {
	case *v1beta1.VerifierSpec:
		return verifierConcerns(*spec)
	case *v1beta1.StoreSpec:
		return exampleHosts("spec.registries", spec.Registries)
	case *v1beta1.TrustStoreSpec:
		var fingerprints []string
		if has, ok := o.(interface{ Trusts() *[]string }); ok {
			fingerprints = *has.Trusts()
		}
		return keyConcerns("spec.source.inline", spec.Source.Inline, fingerprints)
	case *v1beta1.VerificationPolicySpec:
		if o.GetNamespace() == "" {
			return policyConcerns(*spec, "in every namespace without its own policy")
		}
		return policyConcerns(*spec, "where the policy applies, unless a mandatory policy denies them")
	case *v1beta1.ExceptionSpec:
		return exceptionConcerns(*spec)
	}
	return nil
}

// problems are concerns about a resource in the form of findings.
func problems(source policy.ObjectRef, found []concern) []resource.Problem {
	return compile.MapSlice(found, func(c concern) resource.Problem {
		return resource.Problem{Source: source, Reason: c.reason, Message: fmt.Sprintf("%s: %s; %s", c.field, c.message, c.fix)}
	})
}

// ReviewStored returns all concerns of the condition NeedsReview about resources of a cluster, by resource: the
// condition itself has space for one reason. It needs all resources of the cluster, because rules of other policies
// may precede a rule.
func ReviewStored(all, of []v1beta1.Object) map[policy.ObjectRef][]resource.Finding {
	snapshot, _ := resolve.Empty(resolve.Nowhere()).Next(resolve.Group(resource.Objects{Resources: all}), nil)
	found, unreached := map[policy.ObjectRef][]resource.Finding{}, map[verify.Namespace]map[policy.ObjectRef][]concern{}
	for _, o := range of {
		source, at := resource.RefOf(o), verify.Namespace(o.GetNamespace())
		if _, known := unreached[at]; !known {
			unreached[at] = nil
			if l := snapshot.Level(at); l != nil {
				unreached[at] = neverReached(l)
			}
		}
		for _, c := range slices.Concat(concernsOf(o), unreached[at][source]) {
			found[source] = append(found[source],
				resource.Finding{ID: string(c.reason), Severity: resource.ReviewSeverity(source, c.reason), Object: source, Field: c.field,
					Message: c.message, Fix: c.fix})
		}
	}
	return found
}

// concern explains why a field needs a review, and what to do.
type concern struct {
	reason              policy.Reason
	field, message, fix string
}

func verifierConcerns(spec v1beta1.VerifierSpec) []concern {
	return append(signerConcerns(spec), exampleHosts("spec.images", spec.Images)...)
}

func signerConcerns(spec v1beta1.VerifierSpec) (found []concern) {
	signers := compile.SignersOf(spec)
	if signers == nil {
		return nil
	}
	field := "spec." + strings.ToLower(string(spec.Type))
	if signers.Keys != nil {
		return keyConcerns(field+".keys.inline", signers.Keys.Inline, nil)
	}
	if signers.Keyless == nil {
		return nil
	}
	steps := breadth.MaxSteps
	for i, identity := range signers.Keyless.Identities {
		at := fmt.Sprintf("%s.keyless.identities[%d]", field, i)
		judged := breadth.Judge(compile.SignerIdentity(identity), signers.Keyless.Expression, &steps)
		if judged.Nobody != "" {
			found = append(found, concern{policy.ReasonIdentityMatchesNobody, at, "no signer has this identity: " + judged.Nobody, judged.Instead()})
		}
		switch judged.Reach() {
		case breadth.Anyone:
			found = append(found, concern{policy.ReasonIdentityForAnyone, at, "it also accepts " + judged.Named(), judged.Instead()})
		case breadth.Insiders:
			found = append(found, concern{policy.ReasonIdentityTooBroad, at, "it also accepts " + judged.Named(), judged.Instead()})
		case breadth.Nobody, breadth.Colleagues: // the author may mean everyone of a domain
		}
		if name := breadth.Placeholder(compile.SignerIdentity(identity), signers.Keyless.Expression); name != "" {
			found = append(found, placeholder(at, name))
		}
		if steps <= 0 {
			return append(found,
				concern{policy.ReasonIdentityTooBroad, at, "the regular expressions are too large to find out who else has this identity",
					"write shorter ones, or exact subjects"})
		}
	}
	return found
}

// everyImage is the pattern of all images.
const everyImage = "**"

// policyConcerns finds that a policy allows every image in the namespaces where it decides.
func policyConcerns(spec v1beta1.VerificationPolicySpec, where string) []concern {
	found := allowing(spec, where)
	for i, rule := range spec.Rules {
		if named := exampleHosts(fmt.Sprintf("spec.rules[%d].images", i), rule.Images); len(named) > 0 {
			return append(found, named...)
		}
	}
	return found
}

// allowing finds that a policy denies nothing.
func allowing(spec v1beta1.VerificationPolicySpec, where string) []concern {
	if spec.EnforcementAction == v1beta1.EnforcementActionWarn {
		return nil
	}
	if spec.Scope == v1beta1.PolicyScopeMandatory {
		if requires(spec) {
			return nil
		}
		return []concern{{policy.ReasonRuleTooBroad, "spec", "the policy is mandatory and requires nothing, so it denies no image",
			"add a rule with require, or remove the policy"}}
	}
	unverified := ", so images run unverified " + where
	for i, rule := range spec.Rules {
		switch {
		case !slices.Contains(rule.Images, everyImage):
			continue
		case rule.Action == v1beta1.RuleActionAllow:
			return []concern{{policy.ReasonRuleTooBroad, fmt.Sprintf("spec.rules[%d]", i), "it allows every image without verification" + unverified,
				"set images to those that may run unverified"}}
		case requiresNothing(rule):
			return []concern{{policy.ReasonRuleTooBroad, fmt.Sprintf("spec.rules[%d].require", i), "every image meets this requirement" + unverified,
				"add verifiers that must be satisfied"}}
		}
		return nil // the first matching rule decides
	}
	if spec.DefaultAction == v1beta1.DefaultActionAllow {
		return []concern{{policy.ReasonRuleTooBroad, "spec.defaultAction", "it allows every image that no rule matches" + unverified,
			"set defaultAction to Deny"}}
	}
	return nil
}

// requires reports whether a policy can deny an image.
func requires(spec v1beta1.VerificationPolicySpec) bool {
	for _, r := range spec.Rules {
		nothing := r.Action == v1beta1.RuleActionAllow || requiresNothing(r)
		if !nothing {
			return true
		}
		if slices.Contains(r.Images, everyImage) {
			return false // no later rule decides
		}
	}
	return cmp.Or(spec.DefaultAction, v1beta1.DefaultActionDeny) == v1beta1.DefaultActionDeny
}

// requiresNothing reports whether every image meets a rule.
func requiresNothing(r v1beta1.PolicyRule) bool {
	return len(r.Require) > 0 &&
		!slices.ContainsFunc(r.Require, func(q v1beta1.Requirement) bool { return strings.TrimSpace(q.Expression) != "true" })
}

func exceptionConcerns(spec v1beta1.ExceptionSpec) []concern {
	if spec.Delegate != nil || !slices.Contains(spec.Images, everyImage) {
		return exampleHosts("spec.images", spec.Images)
	}
	message := "the exception is for every image, so none is verified until it expires"
	if spec.OverrideMandatory {
		message += ", not even for mandatory policies"
	}
	return []concern{{policy.ReasonRuleTooBroad, "spec.images", message, "write the repositories of images that cannot be signed yet"}}
}

// exampleHosts returns the first registry of a list that only our pages use.
func exampleHosts(field string, list []string) []concern {
	for i, text := range list {
		host, _, _ := strings.Cut(text, "/")
		if host == exampleHost || strings.HasSuffix(host, "."+exampleHost) {
			return []concern{placeholder(fmt.Sprintf("%s[%d]", field, i), host)}
		}
	}
	return nil
}

// exampleHost is reserved for documentation.
const exampleHost = "example.com"

func placeholder(field, name string) concern {
	return concern{policy.ReasonPlaceholder, field, name + " is an example of Landwaiter's documentation", "write your own name in its place"}
}

// keyConcerns finds published example keys in text or, if there is no text, among
// fingerprints.
func keyConcerns(field, text string, fingerprints []string) []concern {
	if text != "" {
		fingerprints = compile.FingerprintsOf(text)
	} else {
		field = "spec.source"
	}
	for _, fingerprint := range fingerprints {
		if published()[fingerprint] {
			return []concern{
				{policy.ReasonPublishedKey, field,
					fmt.Sprintf("the key %s is an example of Landwaiter's documentation, which nobody of yours signs with", fingerprint),
					"write the public key of your own signer, as cosign generate-key-pair makes it"}}
		}
	}
	return nil
}

// Reviewed returns the condition NeedsReview of a resource, with the worst reason. It is False for a resource
// that needs no review.
func Reviewed(o v1beta1.Object, report Report) Condition {
	found := slices.Concat(concernsOf(o), report.unreached)
	if len(found) == 0 {
		return Condition{}
	}
	worst := slices.MinFunc(found, func(a, b concern) int {
		return cmp.Compare(resource.ReviewSeverity(resource.RefOf(o), a.reason).Rank(),
			resource.ReviewSeverity(resource.RefOf(o), b.reason).Rank())
	})
	fixes := compile.MapSlice(found, func(c concern) string { return c.field + ": " + c.fix })
	reasons := compile.MapSlice(found, func(c concern) string { return c.field + ": " + c.message })
	if len(found) == 1 {
		reasons = []string{found[0].message}
	}
	return Condition{True: true, Reason: worst.reason,
		Message: compile.Cut(resource.ReviewMessage(strings.Join(fixes, "; "), strings.Join(reasons, "; ")))}
}
