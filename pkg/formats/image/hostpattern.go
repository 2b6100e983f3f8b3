package image

import (
	"errors"
	"fmt"
	"strings"
)

// HostPattern selects registry hosts by name, such as "*.dkr.ecr.*.amazonaws.com". Each
// "*" stands for at least one character within one label, and the last two labels are
// literal. A host without "*" is a pattern for itself. The zero value matches nothing.
type HostPattern struct {
	text   string // canonical
	labels []string
	port   string
}

// literalLabels is how many labels at the end of a pattern have no wildcard, so that no
// pattern covers a whole top-level domain.
const literalLabels = 2

// IsHostPattern reports whether a host in a resource is meant as a pattern.
func IsHostPattern(host string) bool { return strings.Contains(host, "*") }

// ParseHostPattern parses a host or a pattern of hosts. The error says how to fix it.
func ParseHostPattern(text string) (HostPattern, error) {
	if !IsHostPattern(text) {
		host, err := NormaliseHost(text)
		if err != nil {
			return HostPattern{}, err
		}
		name, port, _ := strings.Cut(host, ":")
		return HostPattern{text: host, labels: strings.Split(name, "."), port: port}, nil
	}
	wrong := func(err error) (HostPattern, error) {
		return HostPattern{}, fmt.Errorf("host pattern %.80q: %w", text, err)
	}
	if strings.Contains(text, "**") {
		return wrong(errors.New(`"*" stands for characters within one label; write "*.*" for two labels`))
	}
	if strings.Contains(text, "/") {
		return wrong(errors.New("leave out the scheme and the path; a pattern is a host or host:port"))
	}
	// With a letter for each wildcard it must be a host, in the one spelling that hosts have.
	name, port, err := splitHost(strings.ReplaceAll(text, "*", "x"))
	if err != nil {
		return wrong(err)
	}
	if isAddress(name) {
		return wrong(errors.New("it is an address; patterns are for DNS names"))
	}
	text, _, _ = strings.Cut(strings.ToLower(text), ":")
	labels := strings.Split(text, ".")
	if len(labels) <= literalLabels || IsHostPattern(strings.Join(labels[len(labels)-literalLabels:], ".")) {
		return wrong(errors.New(`the last two labels must be without "*", as in "*.example.com"`))
	}
	if port == defaultPort {
		port = ""
	}
	return HostPattern{text: joinHost(text, port), labels: labels, port: port}, nil
}

// String returns the pattern in its canonical spelling.
func (p HostPattern) String() string { return p.text }

// Match reports whether p selects a host that [NormaliseHost] returned.
func (p HostPattern) Match(host string) bool {
	name, port, _ := strings.Cut(host, ":")
	if p.text == "" || port != p.port {
		return false
	}
	if !IsHostPattern(p.text) {
		return host == p.text
	}
	labels := strings.Split(name, ".")
	if len(labels) != len(p.labels) {
		return false
	}
	for i, label := range p.labels {
		if !matchLabel(label, labels[i]) {
			return false
		}
	}
	return true
}

// matchLabel matches one label. A wildcard takes at least one character: each part behind
// one is searched for from the second character on.
func matchLabel(pattern, label string) bool {
	part, pattern, wildcard := strings.Cut(pattern, "*")
	label, found := strings.CutPrefix(label, part)
	if !wildcard {
		return found && label == ""
	}
	for found && label != "" {
		if part, pattern, wildcard = strings.Cut(pattern, "*"); !wildcard {
			return strings.HasSuffix(label[1:], part)
		}
		_, label, found = strings.Cut(label[1:], part)
	}
	return false
}
