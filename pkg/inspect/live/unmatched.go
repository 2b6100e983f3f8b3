package live

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Unmatched names rules of policies in the change that match no running image where the policy applies, one line for
// each policy, with similar running images. It omits a rule of a policy that the cluster already has with the same
// images: the change does not affect it. Uses are the examined images.
func (c Change) Unmatched(uses []Use, before, after State) (lines []string) {
	known := map[string]bool{} // "POLICY images"
	for _, object := range before.Objects.Resources {
		for _, rule := range rulesOf(object) {
			known[ruleKey(object, rule)] = true
		}
	}
	tenants := tenantsOf(after.Objects)
	reaches := func(own string, namespace verify.Namespace) bool {
		holder := tenants.Holder(string(namespace))
		return own == "" || own == string(namespace) || holder != nil && holder.Spec.HomeNamespace == own
	}
	for _, object := range c.Objects.Resources {
		rules := rulesOf(object)
		if len(rules) == 0 {
			continue
		}
		var running []image.Reference
		seen := map[string]bool{}
		for _, use := range uses {
			ref, err := image.Parse(use.Image)
			if err == nil && !seen[ref.Name()] && use.Pods+len(use.Owners) > 0 && reaches(object.GetNamespace(), use.Namespace) {
				seen[ref.Name()], running = true, append(running, ref)
			}
		}
		var numbers, near []string
		for i, rule := range rules {
			if len(running) == 0 || known[ruleKey(object, rule)] || matchesSome(rule.Images, running) {
				continue
			}
			numbers = append(numbers, fmt.Sprint(i+1))
			for _, pattern := range rule.Images {
				if names := nearest(pattern, running); len(names) > 0 && len(near) < maxNear {
					near = append(near, fmt.Sprintf("%s is nearly %s", pattern, strings.Join(names, " and ")))
				}
			}
		}
		if len(numbers) > 0 {
			lines = append(lines, unmatched(object, numbers, near, running))
		}
	}
	return lines
}

// unmatched words one line.
func unmatched(policy v1beta1.Object, numbers, near []string, running []image.Reference) string {
	rules, match := "rule "+numbers[0], "matches"
	if len(numbers) > 1 {
		rules, match = "rules "+strings.Join(numbers[:min(len(numbers), maxNamed)], ", "), "match"
		if more := len(numbers) - maxNamed; more > 0 {
			rules += fmt.Sprintf(" and %d more", more)
		}
	}
	text := fmt.Sprintf("%s of %s %s none of the images that run there", rules, resource.RefOf(policy), match)
	if len(near) > 0 {
		runs := ", which runs"
		if len(near) > 1 {
			runs = ", which run"
		}
		return text + "; is the name right? " + strings.Join(near, ", ") + runs
	}
	// For the same registry, the reader can see which image is meant.
	for _, rule := range rulesOf(policy) {
		for _, pattern := range rule.Images {
			host, _, _ := strings.Cut(pattern, "/")
			var names []string
			for _, ref := range running {
				if ref.Host == host && !matchesSome([]string{pattern}, []image.Reference{ref}) {
					names = append(names, ref.Name())
				}
			}
			if len(names) > 0 {
				return text + "; of " + host + " run " + strings.Join(names[:min(len(names), maxLostImages)], ", ")
			}
		}
	}
	return text
}

func rulesOf(object v1beta1.Object) []v1beta1.PolicyRule {
	switch p := object.(type) {
	case *v1beta1.VerificationPolicy:
		return p.Spec.Rules
	case *v1beta1.ClusterVerificationPolicy:
		return p.Spec.Rules
	}
	return nil
}

func ruleKey(policy v1beta1.Object, rule v1beta1.PolicyRule) string {
	return resource.RefOf(policy).String() + " " + strings.Join(rule.Images, " ")
}

// matchesSome reports whether a pattern matches an image, or is invalid, which other findings report.
func matchesSome(patterns []string, running []image.Reference) bool {
	return slices.ContainsFunc(patterns, func(text string) bool {
		pattern, err := image.ParsePattern(text)
		return err != nil || slices.ContainsFunc(running, pattern.Match)
	})
}

// nearest returns the first images that a pattern would match if one or two letters of its host or one segment were
// different.
func nearest(pattern string, running []image.Reference) (names []string) {
	steps := strings.Split(pattern, "/")
	for _, ref := range running {
		if len(names) == maxLostImages {
			break
		}
		if slices.ContainsFunc(strings.Split(ref.Name(), "/"), func(theirs string) bool { return matchesRespelt(steps, theirs, ref) }) {
			names = append(names, ref.Name())
		}
	}
	return names
}

// matchesRespelt reports whether a pattern matches ref after one of its parts is replaced by the
// image's.
func matchesRespelt(steps []string, theirs string, ref image.Reference) bool {
	for i, step := range steps {
		if strings.Contains(step, "*") || step == theirs || len(step)-len(theirs) > maxEdits || len(theirs)-len(step) > maxEdits ||
			min(len(step), len(theirs)) <= maxEdits || levenshtein.ComputeDistance(step, theirs) > maxEdits {
			continue
		}
		respelt := slices.Clone(steps)
		respelt[i] = theirs
		if pattern, err := image.ParsePattern(strings.Join(respelt, "/")); err == nil && pattern.Match(ref) {
			return true
		}
	}
	return false
}
