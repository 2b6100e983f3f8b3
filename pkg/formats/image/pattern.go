package image

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Pattern selects images by host and repository. It matches the two separately, so that
// no wildcard crosses the first slash. The zero value matches nothing.
//
//   - The pattern "**" matches every image.
//   - In the host, a leading "*." matches exactly one DNS label.
//   - In the repository, "*" matches within one path segment, and a segment
//     "**" matches one or more whole segments.
type Pattern struct {
	everything bool
	host       string
	segments   []string
}

// anySegments is the segment that stands for one or more segments.
const anySegments = "**"

var (
	patternHost    = regexp.MustCompile(`^(\*\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$`)
	patternSegment = regexp.MustCompile(`^[a-z0-9*]([a-z0-9._*-]*[a-z0-9*])?$`)
)

// ParsePattern parses a pattern such as "registry.example.com/team-a/**". It refuses
// patterns that can never match a normalised image. The error says how to fix them.
func ParsePattern(s string) (Pattern, error) {
	if s == "**" {
		return Pattern{everything: true}, nil
	}
	if s == "" {
		return Pattern{}, errors.New(`the image pattern is empty; use "**" for every image`)
	}
	if len(s) > MaxLength {
		return Pattern{}, fmt.Errorf("the image pattern is %d bytes long, the limit is %d", len(s), MaxLength)
	}
	host, repository, found := strings.Cut(s, "/")
	if !found {
		return Pattern{}, fmt.Errorf("image pattern %q needs a host and a repository%s", s, withHost(s))
	}
	canonical, err := canonicalPattern(host)
	if err != nil {
		return Pattern{}, fmt.Errorf("image pattern %q: host %q: %w%s", s, host, err, wildcardHint(host))
	}
	host = canonical
	if !patternHost.MatchString(host) || strings.Contains(host, "..") {
		return Pattern{}, fmt.Errorf("image pattern %q: host %q is not a registry host%s", s, host, wildcardHint(host))
	}
	if !isHost(host) {
		return Pattern{}, fmt.Errorf(`image pattern %q: %q is not a registry host (no dot, no port); for Docker Hub write "docker.io/%s"`, s, host, s)
	}
	p := Pattern{host: host, segments: strings.Split(repository, "/")}
	if host == dockerHub && len(p.segments) == 1 && p.segments[0] != anySegments {
		p.segments = []string{"library", p.segments[0]}
	}
	return p, p.checkSegments(s)
}

// ParseSelection parses what an exception names: a pattern, or host/repository@sha256:… for one
// digest. The other of the two results is zero.
func ParseSelection(s string) (pattern Pattern, pinned Reference, err error) {
	if strings.Contains(s, "@") {
		pinned, err = Parse(s)
		if err == nil && (pinned.Tag != "" || pinned.Digest == "") {
			err = fmt.Errorf("image %.80q must be host/repository@sha256:… without a tag", s)
		}
		return Pattern{}, pinned, err
	}
	pattern, err = ParsePattern(s)
	if err != nil && strings.Contains(s[strings.LastIndex(s, "/")+1:], ":") {
		err = fmt.Errorf("image %.80q has a tag; remove it, or name one digest as host/repository@sha256:…", s)
	}
	return pattern, Reference{}, err
}

// withHost says how to write a pattern that has no slash. Only what can be a host is taken for one.
func withHost(s string) string {
	name, _, _ := strings.Cut(strings.ReplaceAll(s, "@", ":"), ":")
	switch {
	case strings.Trim(s, "*") == "":
		return `; use "**" for every image`
	case isHost(s) && patternHost.MatchString(s):
		return fmt.Sprintf(`, such as "%s/**"`, s)
	case patternSegment.MatchString(name):
		return fmt.Sprintf(`, such as "docker.io/library/%s"`, name)
	}
	return `, such as "docker.io/library/nginx"`
}

// wildcardHint says where a host may have a wildcard, if it has one.
func wildcardHint(host string) string {
	if !strings.Contains(host, "*") {
		return ""
	}
	return `; a wildcard may only stand for the first label, as in "*.example.com"`
}

func (p Pattern) checkSegments(s string) error {
	if len(p.segments) > maxPatternSegments {
		return fmt.Errorf("image pattern %q has more than %d path segments", s, maxPatternSegments)
	}
	for _, segment := range p.segments {
		if !patternSegment.MatchString(segment) || (strings.Contains(segment, "**") && segment != anySegments) {
			return fmt.Errorf("image pattern %q: %q is not a path segment: %s", s, segment, wrongSegment(segment))
		}
	}
	return nil
}

// wrongSegment says why a segment is refused.
func wrongSegment(segment string) string {
	switch {
	case segment == "":
		return "it is empty; remove the slash"
	case strings.ContainsAny(segment, ":@"):
		return "patterns match no tags and digests; remove it"
	case strings.ToLower(segment) != segment:
		return "repositories are lower case"
	case strings.Contains(segment, anySegments):
		return `"**" must stand alone between slashes`
	}
	return `a segment has letters, digits and ".", "_", "-" between them, and "*" matches within it`
}

// Match reports whether p selects r. It ignores tag and digest.
func (p Pattern) Match(r Reference) bool {
	matched, _ := p.match(r)
	return matched
}

// Cost bounds the steps of one [Pattern.Match], whatever reference Parse made. A step
// compares a segment with one that has no wildcard, or with one part of one that has.
func (p Pattern) Cost() int {
	cost := 1
	if p.everything {
		return cost
	}
	head := p.head()
	for _, segment := range p.segments[:head] {
		cost += 1 + wildcards(segment)
	}
	// Behind the first "**" a segment may be compared at each place. Each part that is
	// found takes a byte, so that many wildcards find an end.
	for _, segment := range p.segments[min(head+1, len(p.segments)):] {
		cost += maxSegments + min(maxSegments*wildcards(segment), maxSegments+maxRepository)
	}
	return cost
}

// head returns how many segments come before the first "**": each has one place.
func (p Pattern) head() int {
	if i := slices.Index(p.segments, anySegments); i >= 0 {
		return i
	}
	return len(p.segments)
}

// wildcards returns how many parts of a segment are searched for.
func wildcards(segment string) int {
	if segment == anySegments {
		return 0
	}
	return strings.Count(segment, "*")
}

// match also returns the number of steps.
func (p Pattern) match(r Reference) (matched bool, steps int) {
	switch {
	case r.Host == "" || r.Repository == "":
		return false, 1
	case p.everything:
		return true, 1
	case !matchHost(p.host, r.Host):
		return false, 1
	}
	steps = 1
	head, rest, more := p.head(), r.Repository, true
	for _, segment := range p.segments[:head] {
		if !more {
			return false, steps
		}
		var part string
		part, rest, more = strings.Cut(rest, "/")
		same, n := matchSegment(segment, part)
		if steps += n; !same {
			return false, steps
		}
	}
	switch tail := p.segments[head:]; len(tail) {
	case 0:
		return !more, steps
	case 1: // "**" takes whatever is left, if anything is
		return more, steps
	default:
		if !more {
			return false, steps
		}
		matched, n := matchTail(tail[1:], strings.Split(rest, "/"))
		return matched, steps + n
	}
}

func matchHost(pattern, host string) bool {
	suffix, wildcard := strings.CutPrefix(pattern, "*")
	if !wildcard {
		return pattern != "" && pattern == host
	}
	label, found := strings.CutSuffix(host, suffix)
	return found && label != "" && !strings.ContainsAny(label, ".:")
}

// matchTail matches what follows the first "**" of a pattern with the segments that are
// left.
func matchTail(pattern, segments []string) (matched bool, steps int) {
	// reach[i] says whether the pattern so far can match the first i segments. That
	// takes linear memory and no backtracking, whatever pattern a tenant writes.
	reach := make([]bool, len(segments)+1)
	for i := range segments {
		reach[i+1] = true
	}
	next := make([]bool, len(segments)+1)
	for _, p := range pattern {
		next[0] = false
		for i, s := range segments {
			n := 1
			switch {
			case p == anySegments:
				next[i+1] = reach[i] || next[i]
			case reach[i]:
				next[i+1], n = matchSegment(p, s)
			default:
				next[i+1] = false
			}
			steps += n
		}
		reach, next = next, reach
	}
	return reach[len(segments)], steps
}

// matchSegment matches one segment. Each part between two wildcards is searched behind
// the one before, so that the segment is read once.
func matchSegment(pattern, segment string) (matched bool, steps int) {
	part, pattern, wildcard := strings.Cut(pattern, "*")
	segment, found := strings.CutPrefix(segment, part)
	if !wildcard {
		return found && segment == "", 1
	}
	for steps = 1; found; steps++ {
		if part, pattern, wildcard = strings.Cut(pattern, "*"); !wildcard {
			return strings.HasSuffix(segment, part), steps + 1
		}
		_, segment, found = strings.Cut(segment, part)
	}
	return false, steps
}
