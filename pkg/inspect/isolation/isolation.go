// Package isolation tries, against a running cluster, what one team must not be able to do to
// another team, to the cluster and to the platform's objects in its own namespaces. It acts
// as the people and accounts of the team by impersonation, and every request is a dry run:
// nothing is ever written, and no Secret is ever read.
package isolation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Outcome is the outcome of a case.
type Outcome string

// The outcomes.
const (
	// Held: permissions or a guardrail refused every request of the case.
	Held Outcome = "held"
	// NotHeld: a request would have succeeded, or was only refused for an unrelated reason.
	NotHeld Outcome = "notHeld"
	// NotTried: the cluster's answers prove nothing.
	NotTried Outcome = "notTried"
)

// Result is the result of one case for one person or account.
type Result struct {
	// Case is the ID of the case, and Tries describes it.
	Case  string `json:"case"`
	Tries string `json:"tries"`
	// Tenant is the team that tries, and Other the team that it tries to reach, if any.
	Tenant string `json:"tenant,omitempty"`
	Other  string `json:"other,omitempty"`
	// Who tries, such as "developer Group iris-green-devs".
	Who     string  `json:"who"`
	Outcome Outcome `json:"outcome"`
	// By names what refused the requests, for Held.
	By []string `json:"by"`
	// Why says which request succeeded and why, or why nothing was tried.
	Why string `json:"why,omitempty"`
	// Fix says what to do, unless the case held.
	Fix string `json:"fix,omitempty"`

	faults []resource.Finding // of a guardrail that is not in force
}

// Options select the cases.
type Options struct {
	// Tenant and Other name the team that tries and the team that it tries to reach. Empty ones
	// mean all Tenants that are not being deleted, each against the next.
	Tenant, Other string
	// As is a further person of Tenant who also tries.
	As     string
	Groups []string
	// Landwaiter is Landwaiter's ServiceAccount.
	Landwaiter types.NamespacedName
	// ClusterResources is the namespace that cluster resources reference; empty is Landwaiter's.
	ClusterResources string
}

// NoSuchTenant is the error for an Options field that names no Tenant.
type NoSuchTenant struct{ Name string }

// Error implements error.
func (e *NoSuchTenant) Error() string { return fmt.Sprintf("there is no Tenant %s", e.Name) }

// Run tries all cases and returns their results: per team, in the order of the cases. The
// error is about its prerequisites.
func Run(ctx context.Context, config *rest.Config, options Options) ([]Result, error) {
	api, err := connect(config)
	if err != nil {
		return nil, err
	}
	s, err := survey(ctx, api, options)
	if err != nil {
		return nil, err
	}
	results := slices.Concat(s.guardrails(ctx), s.accounts(ctx))
	if s.skipped > 0 {
		results = append(results, Result{Case: caseLeftOut, Tries: "impersonate someone of every Tenant", Outcome: NotTried,
			Why: fmt.Sprintf("%d more Tenants were not tried", s.skipped), Fix: "name them one by one with --tenant"})
	}
	for _, p := range s.pairs {
		results = append(results, s.pair(ctx, p)...)
		if ctx.Err() != nil {
			return results, fmt.Errorf("try the cases of Tenant %s: %w", p.team.tenant.Name, ctx.Err())
		}
	}
	return results, nil
}

// pair tries what one team can do to another one and elsewhere.
func (s *scene) pair(ctx context.Context, p pair) []Result {
	var results []Result
	var left, reach int
	p.own, left = s.differing(ctx, p.team.people, p.team, p.team.member())
	if p.other != nil {
		p.reach, reach = s.differing(ctx, p.team.people, p.other, probeName)
	}
	results = append(results, p.leftOut(left+reach)...)
	for _, c := range cases() {
		if c.needsOther && p.other == nil {
			results = append(results, Result{Case: c.id, Tries: c.tries, Tenant: p.team.tenant.Name, Outcome: NotTried,
				Why: "there is no other Tenant to reach", Fix: "add a second Tenant, or name one with --other"})
			continue
		}
		requests := c.requests(s, p)
		for _, who := range p.team.people {
			if !slices.Contains(c.who, who.role) || len(requests) == 0 {
				continue
			}
			result := s.try(ctx, who, requests)
			result.Case, result.Tries, result.Tenant = c.id, c.tries, p.team.tenant.Name
			if c.needsOther {
				result.Other = p.other.tenant.Name
			}
			results = append(results, result)
		}
	}
	if len(p.team.people) == 0 {
		results = append(results,
			Result{Case: caseNobody, Tries: "impersonate someone of the team", Tenant: p.team.tenant.Name, Outcome: NotTried,
				Why: "the Tenant names no people and no ServiceAccount for Git",
				Fix: "name a user with --person and --group, or list people in spec.access"})
	}
	return results
}

// leftOut lists the attempts that limits leave out.
func (p pair) leftOut(namespaces int) []Result {
	var results []Result
	for _, of := range []struct {
		n         int
		what, fix string
	}{{p.team.left.people, "people", "name them one by one with --person and --group"},
		{namespaces, "namespaces in which somebody has other permissions", "take bindings away that are not needed"},
		{p.team.left.objects, "objects of the platform", "none: objects of one kind are guarded alike"}} {
		if of.n > 0 {
			results = append(results,
				Result{Case: caseLeftOut, Tries: "try everything that was found", Tenant: p.team.tenant.Name, Outcome: NotTried,
					Why: fmt.Sprintf("%d more %s were not tried", of.n, of.what), Fix: of.fix})
		}
	}
	return results
}

// try makes the requests of one case as one person, and stops at the first that is not
// refused as it must be.
func (s *scene) try(ctx context.Context, who person, requests []request) Result {
	result := Result{Who: who.String(), Outcome: Held}
	for _, r := range requests {
		a := s.ours(s.api.ask(ctx, who, r), r)
		switch {
		case a.kind == unanswered:
			// A hole that a later request may find matters more.
			if result.Outcome == Held {
				result.Outcome, result.Why, result.Fix = NotTried, "to "+r.does+": "+a.text, a.fix
			}
			continue
		case a.refusedRightly(r):
			if !slices.Contains(result.By, a.by) {
				result.By = append(result.By, a.by)
			}
			continue
		}
		if a.named != "" {
			r.name, r.does = a.named, r.does+", "+shown(a.named)
		}
		allowed := s.api.whyAllowed(ctx, who, r)
		result.Outcome, result.By = NotHeld, nil
		result.Why, result.Fix = s.hole(r, a, allowed)
		return result
	}
	return result
}

// ours decides whether a policy's refusal counts: only guardrails do, and only where
// permissions are not enough. A company's own policy may refuse for another reason.
func (s *scene) ours(a answer, r request) answer {
	name, isPolicy := strings.CutPrefix(a.by, byGuardrail)
	if a.kind == refused && isPolicy && (r.guardrail == "" || !slices.Contains(s.guarding, name)) {
		a.kind, a.by = refusedOtherwise, "policy "+name
	}
	return a
}

// hole describes the request that succeeded, and what to do about it.
func (s *scene) hole(r request, a answer, allowed string) (why, fix string) {
	why = "may " + r.does
	if a.kind == refusedOtherwise {
		why += " as far as permissions and guardrails go (only " + a.by + " refused it: " + a.text + ")"
	}
	if allowed != "" {
		why += "; " + allowed
	}
	if r.guardrail != "" {
		return why, "guardrail " + r.guardrail + " did not refuse it: " + s.guard.Install()
	}
	return why, "take away the binding or the rule of its role that allows it"
}

// Findings returns the cases that did not hold, and those that could not be tried.
func Findings(results []Result) (found []resource.Finding, unchecked []resource.Unchecked) {
	for _, r := range results {
		said := r.Why
		if r.Who != "" {
			said = r.Who + ": " + said
		}
		switch {
		case r.Outcome == Held:
		case r.Outcome == NotTried:
			unchecked = append(unchecked, resource.Unchecked{IDs: []string{r.Case}, Why: said + "; " + r.Fix})
		case len(r.faults) > 0:
			found = append(found, r.faults...)
		default:
			found = append(found, resource.Finding{ID: r.Case, Severity: resource.Error, Tenant: r.Tenant, Message: said, Fix: r.Fix})
		}
	}
	if len(results) == 0 {
		unchecked = []resource.Unchecked{{IDs: []string{}, Why: "nothing was tried"}}
	}
	return found, unchecked
}

// ownKinds returns the rows of the table of kinds with a scope.
func ownKinds(namespaced bool) []v1beta1.Kind {
	return slices.DeleteFunc(v1beta1.Kinds(), func(k v1beta1.Kind) bool { return k.Namespaced != namespaced })
}
