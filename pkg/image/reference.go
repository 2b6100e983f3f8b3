// Package image turns strings into image references and patterns, and is the
// only place where that happens. It normalises as container runtimes do, so
// that two spellings of one image are one value, and refuses whatever it does
// not fully understand. It does no I/O.
package image

import (
	"errors"
	"fmt"
	"strings"

	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
)

// dockerHub is the host that images without a host belong to.
const dockerHub = "docker.io"

// Reference is a normalised image reference. Its fields are comparable and
// its zero value names no image. Only Parse makes one from a string.
type Reference struct {
	Host       string        // lower case, without the default port 443
	Repository string        // path below the host
	Tag        string        // empty when only a digest was given
	Digest     digest.Digest // empty, or sha256
}

// Parse normalises s as container runtimes do: a missing host is Docker Hub, a
// one-word Docker Hub name is in library/, a missing tag is latest. It returns
// an error, never a guess, for anything else than one well-formed reference,
// and for digests other than sha256, which no signature format here covers.
func Parse(s string) (Reference, error) {
	switch {
	case s == "":
		return Reference{}, errors.New("the image reference is empty")
	case len(s) > MaxLength:
		return Reference{}, fmt.Errorf("the image reference is %d bytes long, the limit is %d", len(s), MaxLength)
	case strings.HasPrefix(s, "["):
		// IPv6 registry hosts would begin so too: telling them from a namespace
		// tag would mean guessing, so neither is an image.
		return Reference{}, fmt.Errorf("image reference %.80q begins with %q, which is reserved for the namespace tag", s, "[")
	}
	named, err := reference.ParseNormalizedNamed(s)
	if err != nil {
		return Reference{}, fmt.Errorf("parse image reference %.80q: %w", s, err)
	}
	r := Reference{Host: normaliseHost(reference.Domain(named)), Repository: reference.Path(named)}
	if !isHost(r.Host) {
		// Capitals alone made the parser take a path for a host.
		return Reference{}, fmt.Errorf("image reference %.80q: %q is not a registry host, it has neither dot nor port", s, r.Host)
	}
	if digested, ok := named.(reference.Digested); ok {
		r.Digest = digested.Digest()
		if r.Digest.Algorithm() != digest.SHA256 {
			return Reference{}, fmt.Errorf("image reference %.80q has a %s digest, only sha256 is supported", s, r.Digest.Algorithm())
		}
	}
	if tagged, ok := named.(reference.Tagged); ok {
		r.Tag = tagged.Tag()
	}
	if r.Tag == "" && r.Digest == "" {
		r.Tag = "latest"
	}
	return r, nil
}

// normaliseHost folds the spellings of one registry into one: DNS names
// ignore case, and 443 is the port that HTTPS has anyway.
func normaliseHost(host string) string {
	host = strings.ToLower(host)
	if name := strings.TrimSuffix(host, ":443"); isHost(name) {
		host = name
	}
	if host == "index."+dockerHub {
		return dockerHub
	}
	return host
}

// isHost reports whether the first part of a reference is a host and not the
// first part of a Docker Hub path: then it has a dot or a port, or is localhost.
func isHost(name string) bool {
	return strings.ContainsAny(name, ".:") || name == "localhost"
}

// Name returns host/repository, without tag and digest.
func (r Reference) Name() string { return r.Host + "/" + r.Repository }

// String returns the full normalised reference.
func (r Reference) String() string {
	s := r.Name()
	if r.Tag != "" {
		s += ":" + r.Tag
	}
	if r.Digest != "" {
		s += "@" + r.Digest.String()
	}
	return s
}

// WithDigest returns r pinned to d, its tag kept.
func (r Reference) WithDigest(d digest.Digest) Reference {
	r.Digest = d
	return r
}

// WithTag returns the reference of another tag in the same repository,
// without a digest.
func (r Reference) WithTag(tag string) Reference {
	r.Tag, r.Digest = tag, ""
	return r
}

// NormaliseHost checks a registry host as resources name it (host or
// host:port, no scheme, no path) and returns its normalised form.
func NormaliseHost(host string) (string, error) {
	ref, err := Parse(host + "/x/x")
	if err != nil || strings.ContainsAny(host, "/@") {
		return "", fmt.Errorf("registry %.80q is not a host or host:port (no scheme, no path)", host)
	}
	if ref.Host != normaliseHost(host) {
		// A name without dot or port, such as "team", would be read as the
		// first part of a Docker Hub path.
		return "", fmt.Errorf("registry %.80q is not a registry host: it needs a dot or a port", host)
	}
	return ref.Host, nil
}
