package main

import (
	"cmp"
	"slices"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// maxUnverified bounds the unverified images in a table: in some clusters, most images are.
const maxUnverified = 50

// unverifiedRow is a container in a namespace whose image a rule allows without evidence.
type unverifiedRow struct {
	namespace string
	running   printedRunning
}

// showUnverified shows images that run without evidence, and which policy allows them.
func showUnverified(s *screen, rows []unverifiedRow, all bool) {
	if len(rows) == 0 {
		return
	}
	s.section("RUNS WITHOUT VERIFICATION")
	if all {
		s.row("NAMESPACE", "WORKLOAD", "IMAGE", "WHY")
	} else {
		s.row("WORKLOAD", "IMAGE", "WHY")
	}
	for _, r := range rows[:min(len(rows), maxUnverified)] {
		workload, why := cmp.Or(r.running.Workload, "-"), cmp.Or(r.running.Reason, "-")
		if all {
			s.row(r.namespace, workload, r.running.Image, why)
			continue
		}
		s.row(workload, r.running.Image, why)
	}
	if more := len(rows) - maxUnverified; more > 0 {
		s.line("and %d more: -o json has all", more)
	}
}

// unusedIn says that no policy asks for a resource that applies, "" otherwise.
func unusedIn(n printedNamespace, ref printedRef) string {
	if slices.ContainsFunc(n.Resources, func(a printedAttention) bool {
		return a.Source == ref && a.Condition == v1beta1.ConditionEffective && a.Reason == string(policy.ReasonUnused)
	}) {
		return " (no policy asks for it)"
	}
	return ""
}
