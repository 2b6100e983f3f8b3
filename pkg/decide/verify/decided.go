package verify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// decided returns the verdict if no task needs evidence for it: if some task denies, else if one
// cannot be known, or if all allow. Tasks that would deny only for lack of evidence are not known
// at that point.
func decided(tasks []task) (policy.Verdict, bool) {
	for _, outcome := range []policy.Outcome{policy.Denied, policy.Undecided} {
		var such policy.Combined
		some := false
		for _, t := range tasks {
			if t.known && !t.warns && t.verdict.Outcome() == outcome {
				such.Add(t.asking(t.verdict), false)
				some = true
			}
		}
		if some {
			return beforeEvidence(such.Verdict(), tasks), true
		}
	}
	if i := slices.IndexFunc(tasks, func(t task) bool { return !t.known }); i >= 0 {
		return policy.Verdict{}, false
	}
	return combine(tasks, func(i int) policy.Verdict { return tasks[i].verdict }), true
}

// beforeEvidence returns a verdict that needed no evidence. A denial says if some policy requires evidence that
// nobody has looked for: the next attempt may be denied for that.
func beforeEvidence(verdict policy.Verdict, tasks []task) policy.Verdict {
	if verdict.Outcome() == policy.Denied && slices.ContainsFunc(tasks, func(t task) bool { return t.requires && !t.warns }) {
		verdict.Reason += moreLater
	}
	return verdict
}

// moreLater is the end of the reason of a denial before any signature was checked.
const moreLater = "; signatures were not checked yet, so more can follow"

// failed returns the verdict on an image whose verification ended with err. If only policies that warn needed
// evidence, it is a warning, in addition to the warnings that need none. No policy caused it, so the contacts are the
// team's admins, or the cluster's if only a cluster admin can help.
func failed(tasks []task, err error) policy.Verdict {
	verdict := failure(err)
	if i := slices.IndexFunc(tasks, func(t task) bool { return t.tier != nil }); i >= 0 {
		contact := tasks[i].tier.Contact
		if strings.HasPrefix(verdict.Remediation, policy.AskClusterAdmin) {
			contact = clusterContact(tasks)
		}
		verdict = verdict.Asking(func(policy.ObjectRef) string { return contact })
	}
	asked := slices.DeleteFunc(slices.Clone(tasks), func(t task) bool { return t.known })
	if len(asked) == 0 || slices.ContainsFunc(asked, func(t task) bool { return !t.warns }) {
		return verdict
	}
	verdict.Policy = asked[0].rules.Source
	said := append(slices.DeleteFunc(slices.Clone(tasks), func(t task) bool { return !t.known }), known(asked[0].tier, verdict))
	warned := combine(said, func(i int) policy.Verdict { return said[i].verdict })
	warned.Policy, warned.Reason = verdict.Policy, fmt.Sprintf("%s only warns: %s", verdict.Policy, verdict.Reason)
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

// onlyWarns reports whether only tiers that warn need evidence.
func onlyWarns(tasks []task) bool {
	return !slices.ContainsFunc(tasks, func(t task) bool { return !t.known && !t.warns })
}

// registryOf returns the registry of the first task that needs one: the namespace's
// own, unless its policy needs no evidence.
func registryOf(tasks []task) Registry {
	for _, t := range tasks {
		if !t.known {
			return t.tier.Registry
		}
	}
	return nil
}

// add looks name up and records it as a verifier to run or as missing. Seen has the verifiers
