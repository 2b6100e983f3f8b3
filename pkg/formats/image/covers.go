package image

import "slices"

// Covers reports whether p matches every image that q matches. True is exact; Covers may miss that a pattern with
// several wildcards covers another one, or that several patterns cover one together. Each comparison decrements steps;
// at zero, p covers nothing.
func (p Pattern) Covers(q Pattern, steps *int) bool {
	*steps--
	switch {
	case *steps < 0, p.zero(), q.zero():
		return false
	case p.everything || q.everything:
		return p.everything
	case !p.host.covers(q.host):
		return false
	}
	return coversSegments(ordered(p.segments), ordered(q.segments), steps)
}

// ordered returns the canonical order of segments: "**/*" and "**/**" become "*/**", at least two segments.
func ordered(segments []string) []string {
	segments = slices.Clone(segments)
	for i := range len(segments) - 1 {
		if segments[i] == anySegments && (segments[i+1] == "*" || segments[i+1] == anySegments) {
			segments[i], segments[i+1] = "*", anySegments
		}
	}
	return segments
}

// Apart reports whether no image matches both p and q. True is exact; Apart may miss it if both segments have wildcards,
// and after "**".
func (p Pattern) Apart(q Pattern) bool {
	if p.everything || q.everything || p.zero() || q.zero() {
		return false
	}
	// Hosts of two different domains have no host in common: a wildcard is their whole first label.
	if !p.host.covers(q.host) && !q.host.covers(p.host) {
		return true
	}
	head, other := p.head(), q.head()
	if head == len(p.segments) && other == len(q.segments) && head != other {
		return true
	}
	for i, segment := range p.segments[:min(head, other)] {
		wild, too := wildcards(segment) > 0, wildcards(q.segments[i]) > 0
		if wild && too {
			continue
		}
		one, _ := matchSegment(segment, q.segments[i])
		back, _ := matchSegment(q.segments[i], segment)
		if !one && !back {
			return true
		}
	}
	return false
}

func (p Pattern) zero() bool { return !p.everything && p.host.text == "" }

// coversSegments compares the segments from last to first. covered[j] says whether the segments of p so far cover the
// segments of q from j on.
func coversSegments(p, q []string, steps *int) bool {
	covered := make([]bool, len(q)+1)
	covered[len(q)] = true
	for _, segment := range slices.Backward(p) {
		next := make([]bool, len(q)+1)
		for j, other := range slices.Backward(q) {
			if *steps--; *steps < 0 {
				return false
			}
			switch {
			case segment == anySegments: // it matches this segment of q, and perhaps the following ones
				next[j] = covered[j+1] || next[j+1]
			case other == anySegments: // exactly one segment, or one and "**" again
				next[j] = segment == "*" && covered[j+1] && covered[j]
			default:
				// A "*" of q is a letter here that only a "*" of p matches, which then matches everything that it does.
				matched, n := matchSegment(segment, other)
				*steps -= n
				next[j] = matched && covered[j+1]
			}
		}
		covered = next
	}
	return covered[0]
}
