package live

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
)

// Notes returns notes about s: what is missing, and what is not shown.
func (s Status) Notes() []string {
	notes := []string{}
	notes = append(notes, s.stopped()...)
	if s.NoReports {
		notes = append(notes, "the cluster has no reports, so running and denied images are unknown: a cluster admin enables reports with "+
			"reports.enabled=true")
	}
	if s.SomeExempt {
		notes = append(notes, "exempt namespaces may be missing here, because you cannot list verifiedimages.constraints.gatekeeper.sh, which "+
			"can exempt them too: ClusterRole landwaiter-checker, for those who look after the installation, shows them")
	}
	if len(s.OtherTeams) > 0 {
		notes = append(notes, "not shown, because these name other teams: "+strings.Join(s.OtherTeams, ", "))
	}
	for _, missing := range s.Missing {
		notes = append(notes, fmt.Sprintf("namespace %s does not exist", missing))
	}
	var without []string
	for _, n := range s.Namespaces {
		switch {
		case n.Ignored > 0:
			notes = append(notes, fmt.Sprintf("namespace %s: reports that someone else wrote or changed are not shown: %d", n.Namespace, n.Ignored))
		case !n.Reported && !n.Unread && !s.NoReports:
			without = append(without, string(n.Namespace))
		}
		if n.Cut {
			notes = append(notes,
				fmt.Sprintf("namespace %s: not all of its reports were read: there are more with the label %s than Landwaiter writes", n.Namespace,
					v1beta1.LabelReport))
		}
		if n.LeftOut > 0 {
			notes = append(notes, fmt.Sprintf("namespace %s: results that did not fit into its reports: %d", n.Namespace, n.LeftOut))
		}
	}
	switch {
	case len(without) == 1:
		notes = append(notes, fmt.Sprintf("namespace %s has no report yet", without[0]))
	case len(without) > maxNamed:
		notes = append(notes,
			fmt.Sprintf("namespaces that have no report yet: %s and %d more", strings.Join(without[:maxNamed], ", "), len(without)-maxNamed))
	case len(without) > 1:
		notes = append(notes, "namespaces that have no report yet: "+strings.Join(without, ", "))
	}
	return notes
}

// Unreadable lists, once and before any answer, what a person lacks to decide in the namespaces of s by a snapshot
// of its objects, and which roles would help.
func (s State) Unreadable(snapshot *resolve.Snapshot) []string {
	var rights []Right
	var others, namespaces []string
	for _, namespace := range s.Namespaces {
		unreadable := snapshot.Unreadable(namespace)
		if len(unreadable) > 0 {
			namespaces = append(namespaces, namespace.Describe())
		}
		for _, u := range unreadable {
			if i := slices.IndexFunc(s.Rights, func(r Right) bool { return r.String() == u.Why }); i < 0 {
				others = append(others, u.Why)
			} else if !slices.Contains(rights, s.Rights[i]) {
				rights = append(rights, s.Rights[i])
			}
		}
	}
	slices.SortStableFunc(rights, func(a, b Right) int { // permissions that a team can get come first
		return cmp.Compare(map[bool]int{true: 1}[a.namesTeams()], map[bool]int{true: 1}[b.namesTeams()])
	})
	var lines []string
	if len(namespaces) > maxNamed {
		namespaces = append(namespaces[:maxNamed], fmt.Sprintf("%d more", len(namespaces)-maxNamed))
	}
	if len(namespaces) > 0 {
		lines = append(lines, "you cannot read everything that decides in "+strings.Join(namespaces, ", ")+", so the images there are undecided:")
	}
	// The rules of an unreadable namespace may leave nothing to the cluster's.
	rest := slices.DeleteFunc(slices.Clone(rights), func(r Right) bool { return r.within() == "" && r.Resource.Resource != tenantsPlural })
	first := slices.ContainsFunc(rest, func(r Right) bool { return r.within() != "" }) && len(rest) < len(rights)
	if first {
		rights = rest
	}
	for _, line := range slices.Concat(Grouped(rights), slices.Compact(slices.Sorted(slices.Values(others)))) {
		lines = append(lines, "- "+line)
	}
	if first {
		lines = append(lines, "with these, the rules of the cluster may not matter; if they do, the command then names the roles for them")
	}
	return append(lines, slices.Compact(slices.Sorted(maps.Values(s.unsure)))...)
}

// Grouped returns sentences about missing permissions, one for those that differ only in the kind.
func Grouped(rights []Right) []string {
	var lines []string
	for i, r := range rights {
		alike := func(other Right) bool {
			return other.Name == "" && r.Name == "" && other.Verb == r.Verb && other.Namespace == r.Namespace &&
				other.Resource.Group == r.Resource.Group && other.Remedy() == r.Remedy()
		}
		if r.Name != "" {
			lines = append(lines, r.String())
			continue
		}
		if slices.ContainsFunc(rights[:i], alike) {
			continue
		}
		var kinds []string
		for _, other := range rights[i:] {
			if alike(other) {
				kinds = append(kinds, other.Resource.Resource)
			}
		}
		if len(kinds) == 1 {
			kinds[0] = r.Resource.String()
		}
		lines = append(lines, strings.Replace(r.String(), r.Resource.String(), strings.Join(kinds, ", "), 1))
	}
	return lines
}

// stopped says that Landwaiter may not answer, and the age of the latest report if it is older than [staleReport].
func (s Status) stopped() []string {
	if s.Stopped.IsZero() && s.Unwatched == "" {
		return nil
	}
	var written time.Time
	for _, n := range s.Namespaces {
		if n.Written.After(written) {
			written = n.Written
		}
	}
	old := ""
	if age := s.At.Sub(written); !written.IsZero() && age > staleReport {
		old = fmt.Sprintf(", and the latest report here is of %s, %s ago", written.UTC().Format(time.RFC3339), age.Round(time.Minute))
	}
	if s.Stopped.IsZero() {
		return []string{fmt.Sprintf("%s, so nobody can tell from here whether Landwaiter still answers and this is up to date%s; a cluster "+
			"admin can, with landwaiter check", s.Unwatched, old)}
	}
	return []string{fmt.Sprintf("Landwaiter may not answer, so this may be out of date: it last renewed its Lease at %s%s; run "+
		"landwaiter check", s.Stopped.UTC().Format(time.RFC3339), old)}
}
