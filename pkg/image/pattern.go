package image

import (
	"errors"
	"fmt"
	"path"
	"regexp"
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
		return Pattern{}, fmt.Errorf(`image pattern %q needs a host and a repository, such as "%s/**" or "docker.io/library/%s"`, s, host, host)
	}
	host, err := canonicalPattern(host)
	if err != nil {
		return Pattern{}, fmt.Errorf(`image pattern %q: its first part is not a registry host; a wildcard may only stand for its first label, as in "*.example.com": %w`, s, err)
	}
	if !patternHost.MatchString(host) || strings.Contains(host, "..") {
		return Pattern{}, fmt.Errorf(`image pattern %q: host %q is not a registry host; a wildcard may only stand for its first label, as in "*.example.com"`, s, host)
	}
	if !isHost(host) {
		return Pattern{}, fmt.Errorf(`image pattern %q: %q is not a registry host (no dot, no port); for Docker Hub write "docker.io/%s"`, s, host, s)
	}
	p := Pattern{host: host, segments: strings.Split(repository, "/")}
	if host == dockerHub && len(p.segments) == 1 && p.segments[0] != "**" {
		p.segments = []string{"library", p.segments[0]}
	}
	return p, p.checkSegments(s)
}

func (p Pattern) checkSegments(s string) error {
	if len(p.segments) > maxPatternSegments {
		return fmt.Errorf("image pattern %q has more than %d path segments", s, maxPatternSegments)
	}
	for _, segment := range p.segments {
		if !patternSegment.MatchString(segment) || (strings.Contains(segment, "**") && segment != "**") {
			return fmt.Errorf(`image pattern %q: %q is not a path segment; a segment is lower case, "*" matches within it, "**" must stand alone, and tags and digests are not matched`, s, segment)
		}
	}
	return nil
}

// Match reports whether p selects r. It ignores tag and digest.
func (p Pattern) Match(r Reference) bool {
	if r.Host == "" || r.Repository == "" {
		return false
	}
	if p.everything {
		return true
	}
	return matchHost(p.host, r.Host) && matchSegments(p.segments, strings.Split(r.Repository, "/"))
}

func matchHost(pattern, host string) bool {
	suffix, wildcard := strings.CutPrefix(pattern, "*")
	if !wildcard {
		return pattern != "" && pattern == host
	}
	label, found := strings.CutSuffix(host, suffix)
	return found && label != "" && !strings.ContainsAny(label, ".:")
}

func matchSegments(pattern, segments []string) bool {
	// reach[i] says whether the pattern so far can match the first i segments. That
	// takes linear memory and no backtracking, whatever pattern a tenant writes.
	reach := make([]bool, len(segments)+1)
	reach[0] = true
	for _, p := range pattern {
		next := make([]bool, len(segments)+1)
		for i := range segments {
			switch {
			case p == "**":
				next[i+1] = reach[i] || next[i]
			case reach[i]:
				matched, err := path.Match(p, segments[i])
				next[i+1] = err == nil && matched
			}
		}
		reach = next
	}
	return reach[len(segments)]
}
