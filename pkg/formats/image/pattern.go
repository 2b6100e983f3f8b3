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
//   - The host is a [HostPattern] whose only wildcard, if it has one, is the whole first
//     label.
//   - In the repository, "*" matches within one path segment, and a segment
//     "**" matches one or more whole segments.
type Pattern struct {
	everything bool
	host       HostPattern
	segments   []string
}

// anySegments is the segment that matches one or more segments.
const anySegments = "**"

var patternSegment = regexp.MustCompile(`^[a-z0-9*]([a-z0-9._*-]*[a-z0-9*])?$`)

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
	of, err := hostOfPattern(host)
	if err != nil {
		return Pattern{}, fmt.Errorf("image pattern %q: host %q: %w", s, host, err)
	}
	if !isHost(of.text) {
		return Pattern{},
			fmt.Errorf(`image pattern %q: %q is not a registry host (no dot, no port); for Docker Hub write "docker.io/%s"`, s, of.text, s)
	}
	p := Pattern{host: of, segments: strings.Split(repository, "/")}
	if of.text == dockerHub && len(p.segments) == 1 && p.segments[0] != anySegments {
		p.segments = []string{"library", p.segments[0]}
	}
	return p, p.checkSegments(s)
}

// hostOfPattern parses the host of an image pattern. A wildcard must be its whole first label.
func hostOfPattern(host string) (HostPattern, error) {
	if !IsHostPattern(host) {
		canonical, err := canonicalHost(host)
		return HostPattern{text: canonical}, err
	}
	if suffix, found := strings.CutPrefix(host, "*."); !found || IsHostPattern(suffix) {
		return HostPattern{}, errors.New(`a wildcard may only be the whole first label, as in "*.example.com"`)
	}
	return parseWildcards(host)
}

// ParseSelection parses an image of an exception: a pattern, or host/repository@sha256:… for one
// digest. It returns one of the two; the other is zero.
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

// withHost says how to write a pattern that has no slash.
func withHost(s string) string {
	name, _, _ := strings.Cut(strings.ReplaceAll(s, "@", ":"), ":")
	_, err := hostOfPattern(s)
	switch {
	case strings.Trim(s, "*") == "":
		return `; use "**" for every image`
	case isHost(s) && err == nil:
		return fmt.Sprintf(`, such as "%s/**"`, s)
	case patternSegment.MatchString(name):
		return fmt.Sprintf(`, such as "docker.io/library/%s"`, name)
	}
	return `, such as "docker.io/library/nginx"`
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

// wrongSegment explains why a segment is invalid.
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

// Cost bounds the steps of one [Pattern.Match] for every parsed reference. A step
// compares a segment with a segment without wildcards, or with one part of a segment that has some.
func (p Pattern) Cost() int {
	cost := 1
	if p.everything {
		return cost
	}
	head := p.head()
	for _, segment := range p.segments[:head] {
		cost += 1 + wildcards(segment)
	}
	// After the first "**" a segment may be compared at each position. Each part that is
	// found consumes a byte, which bounds the steps of many wildcards.
	for _, segment := range p.segments[min(head+1, len(p.segments)):] {
		cost += maxSegments + min(maxSegments*wildcards(segment), maxSegments+maxRepository)
	}
	return cost
}

// head returns the number of segments before the first "**". Each has one position.
func (p Pattern) head() int {
	if i := slices.Index(p.segments, anySegments); i >= 0 {
		return i
	}
	return len(p.segments)
}

// wildcards returns the number of parts of a segment to search for.
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
	case !p.host.Match(r.Host):
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
	case 1: // "**" matches all remaining segments, of which there must be one
		return more, steps
	default:
		if !more {
			return false, steps
		}
		matched, n := matchTail(tail[1:], strings.Split(rest, "/"))
		return matched, steps + n
	}
}

// matchTail matches the segments of a pattern after its first "**" with the remaining
// segments.
func matchTail(pattern, segments []string) (matched bool, steps int) {
	// reach[i] says whether the pattern so far can match the first i segments. This takes
	// linear memory and no backtracking for every pattern.
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

// matchSegment matches one segment. It searches each part between two wildcards after the
// previous part, so it reads the segment once.
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
