package image

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// dockerHub is the host of images without a host.
const dockerHub = "docker.io"

// defaultPort is the port of HTTPS, which a canonical host leaves out.
const defaultPort = "443"

// hostName matches a host without port, in ASCII: lower-casing must not turn another
// letter, such as the Kelvin sign, into an ASCII one. It has no trailing dot, brackets or
// underscore.
var hostName = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)*$`)

// number matches the last part of an IPv4 address in every spelling that a resolver may
// take: decimal, octal or hexadecimal, and from one to four parts.
var number = regexp.MustCompile(`^([0-9]+|0x[0-9a-f]*)$`)

// canonicalHost returns the one spelling of a registry's host, or says how to write it.
// Patterns, Stores and the dialer compare hosts as strings, so a second spelling of a
// server would bypass its rules.
func canonicalHost(host string) (string, error) {
	for _, scheme := range []string{"https:", "http:", "docker:", "oci:"} {
		if host == scheme || strings.HasPrefix(host, scheme+"//") {
			return "", fmt.Errorf("it has a scheme; leave out %s//", scheme)
		}
	}
	name, port, err := splitHost(host)
	if err != nil {
		return "", err
	}
	if port == defaultPort && isHost(name) {
		// A host of one word keeps its port: without it, it would be the start of a
		// Docker Hub path.
		port = ""
	}
	if port == "" && isDockerHub(name) {
		return dockerHub, nil
	}
	return joinHost(name, port), nil
}

// isDockerHub reports whether a host is a name of Docker Hub's registry. containerd and CRI-O
// read index.docker.io as docker.io, and pull both from registry-1.docker.io. They use that
// name and registry.hub.docker.com as written, and reach the same server. They put a one-word
// repository into library/ only for the first two names, without a port. For the other names
// they request the word alone, which nobody can own at Docker Hub: they pull the image that
// is verified here, in library/, or nothing.
func isDockerHub(name string) bool {
	return slices.Contains([]string{dockerHub, "index.docker.io", "registry-1.docker.io", "registry.hub.docker.com"}, name)
}

const localhost = "localhost"

// isHost reports whether the first part of a reference is a host, and not the start of a
// Docker Hub path: a host has a dot or a port, or is localhost.
func isHost(name string) bool {
	return strings.ContainsAny(name, ".:") || name == localhost
}

// splitHost returns the name, in lower case, and the port of a host, or an error if
// another spelling of the same server exists and this is not the one to use.
func splitHost(host string) (name, port string, err error) {
	name, port, found := strings.Cut(host, ":")
	switch {
	case strings.HasPrefix(host, "["), strings.Count(host, "::") > 0:
		return "", "", errors.New("an IPv6 address cannot be a registry host, use a DNS name")
	case !hostName.MatchString(name):
		return "", "", errors.New("it is not a DNS name or an IPv4 address")
	case len(name) > maxHostLength:
		return "", "", fmt.Errorf("the host is longer than %d bytes", maxHostLength)
	}
	if found {
		if err := checkPort(port); err != nil {
			return "", "", err
		}
	}
	name = strings.ToLower(name)
	return name, port, checkName(name)
}

func joinHost(name, port string) string {
	if port == "" {
		return name
	}
	return name + ":" + port
}

// checkPort only accepts the decimal spelling of a port. Runtimes dial 0443 as 443.
func checkPort(port string) error {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
		return fmt.Errorf("%.20q is not a port: write a number from 1 to 65535 without leading zeros", port)
	}
	return nil
}

// checkName refuses names that are other spellings of an address or of localhost. A name
// whose last label is a number can only be an address: which one depends on the resolver,
// for 127.1, 010.0.0.1, 0x7f.0.0.1 and 2130706433 alike. localhost itself is a name like
// others, which may be ::1, and is not the same host as 127.0.0.1.
func checkName(name string) error {
	if isAddress(name) {
		addr, err := netip.ParseAddr(name)
		switch {
		case err != nil:
			return fmt.Errorf("%.40q is not an IPv4 address: write four decimal numbers without leading zeros", name)
		case addr.IsUnspecified(), addr.IsLoopback() && name != "127.0.0.1":
			return fmt.Errorf("%s is another name for the local host: write 127.0.0.1", name)
		}
		return nil
	}
	// RFC 6761, section 6.3, and the names in /etc/hosts of common distributions.
	others := []string{"localhost.localdomain", "localhost4", "localhost4.localdomain4", "localhost6", "localhost6.localdomain6",
		"ip6-localhost", "ip6-loopback"}
	if strings.HasSuffix(name, "."+localhost) || slices.Contains(others, name) {
		return fmt.Errorf("%.80q is another name for the local host: write localhost", name)
	}
	return nil
}

// isAddress reports whether a resolver may take a name for an IPv4 address.
func isAddress(name string) bool {
	return number.MatchString(name[strings.LastIndexByte(name, '.')+1:])
}

// HostPattern selects registry hosts by name, such as "*.dkr.ecr.*.amazonaws.com". Each
// "*" matches one or more characters within one label; the last two labels and the port have
// none. A host without "*" matches itself. The zero value matches nothing.
type HostPattern struct {
	text   string   // canonical
	labels []string // nil without "*"
	port   string   // of a pattern with "*"
}

// literalLabels is the number of labels at the end of a pattern that have no wildcard, so that
// no pattern matches a whole top-level domain.
const literalLabels = 2

// IsHostPattern reports whether a host in a resource has wildcards.
func IsHostPattern(host string) bool { return strings.Contains(host, "*") }

// ParseHostPattern parses a host or a pattern of hosts. The error says how to fix it.
func ParseHostPattern(text string) (HostPattern, error) {
	if !IsHostPattern(text) {
		host, err := NormaliseHost(text)
		return HostPattern{text: host}, err
	}
	p, err := parseWildcards(text)
	if err != nil {
		return HostPattern{}, fmt.Errorf("host pattern %.80q: %w", text, err)
	}
	return p, nil
}

// parseWildcards parses a host with "*". Every host of a resource with wildcards is read here.
func parseWildcards(text string) (HostPattern, error) {
	if strings.Contains(text, "**") {
		return HostPattern{}, errors.New(`"*" matches characters within one label; write "*.*" for two labels`)
	}
	if strings.Contains(text, "/") {
		return HostPattern{}, errors.New("leave out the scheme and the path; a pattern is a host or host:port")
	}
	// With a letter for each wildcard, it must be a host in canonical spelling.
	name, port, err := splitHost(strings.ReplaceAll(text, "*", "x"))
	if err != nil {
		return HostPattern{}, err
	}
	if isAddress(name) {
		return HostPattern{}, errors.New("it is an address; patterns are for DNS names")
	}
	text, _, _ = strings.Cut(strings.ToLower(text), ":")
	labels := strings.Split(text, ".")
	domain := strings.Join(labels[max(0, len(labels)-literalLabels):], ".")
	if len(labels) <= literalLabels || IsHostPattern(domain) {
		return HostPattern{}, errors.New(`the last two labels must be without "*", as in "*.example.com"`)
	}
	if err := checkName(domain); err != nil {
		return HostPattern{}, err
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
	if len(p.labels) == 0 {
		return p.text != "" && host == p.text
	}
	name, port, _ := strings.Cut(host, ":")
	if port != p.port {
		return false
	}
	more := true
	for _, pattern := range p.labels {
		if !more {
			return false
		}
		var label string
		if label, name, more = strings.Cut(name, "."); !matchLabel(pattern, label) {
			return false
		}
	}
	return !more
}

// covers reports whether p matches every host that q matches. It may miss this if both have
// wildcards.
func (p HostPattern) covers(q HostPattern) bool {
	return p.text == q.text || !IsHostPattern(q.text) && p.Match(q.text)
}

// matchLabel matches one label. A wildcard consumes at least one character, so each part after
// a wildcard is searched from the second character on.
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
