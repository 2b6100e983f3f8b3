// Package image parses image references and patterns. No other package turns a string
// into an image. It normalises like container runtimes, so that two spellings of one
// image become one value, and refuses anything that it does not fully understand. It
// does no I/O.
package image

import (
	_ "crypto/sha256" // registers the digest algorithm
	_ "crypto/sha512"
	"errors"
	"fmt"
	"strings"

	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
)

// Reference is a normalised image reference. It is comparable, and its zero value names no
// image. Only Parse makes one from a string; parsing its String gives the same Reference.
type Reference struct {
	Host       string        // the only spelling of its server: lower case, without the default port 443
	Repository string        // path below the host
	Tag        string        // empty when only a digest was given
	Digest     digest.Digest // empty, or sha256
}

// Parse normalises s like container runtimes: a missing host is Docker Hub, a one-word Docker
// Hub name is in library/, a missing tag is latest. The names of Docker Hub's registry are
// one host. It never guesses: it returns an error for malformed references, odd spellings of
// a host or port, image IDs, and digests other than sha256, which no supported signature
// format covers.
func Parse(s string) (Reference, error) {
	switch {
	case strings.TrimSpace(s) == "": // OpenShift's image triggers start from " "
		return Reference{},
			errors.New("the image reference is empty: a Deployment or an operator's template may leave it to a webhook that fills it in for pods, " +
				"but it cannot be verified before")
	case len(s) > MaxLength:
		return Reference{}, fmt.Errorf("the image reference is %d bytes long, the limit is %d", len(s), MaxLength)
	case strings.HasPrefix(s, "["):
		// An IPv6 host begins with a bracket too. Telling it from a namespace tag would
		// be a guess, so both are refused.
		return Reference{},
			fmt.Errorf("image reference %.80q begins with %q, which is reserved for the namespace tag; an IPv6 address cannot be a registry host, "+
				"use a DNS name", s, "[")
	}
	if isID(s) {
		return Reference{},
			fmt.Errorf("image reference %.80q is an image ID, which names no registry: a node runs whatever it has under that ID; use "+
				"host/repository:tag or host/repository@sha256:…", s)
	}
	canonical, err := withCanonicalHost(s)
	if err != nil {
		return Reference{}, invalid(s, err)
	}
	named, err := reference.ParseNormalizedNamed(canonical)
	if err != nil {
		return Reference{}, invalid(s, err)
	}
	r := Reference{Host: reference.Domain(named), Repository: reference.Path(named)}
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

// isID reports whether runtimes look for an image on the node whose ID is s or begins with s: containerd does
// so before it reads "sha256:a" as the tag a of docker.io/library/sha256. This applies to every algorithm and
// length. To name a registry that has such a repository, include its host.
func isID(s string) bool {
	algorithm, rest, found := strings.Cut(s, ":")
	if !found || strings.Contains(s, "/") || rest == "" {
		return false
	}
	switch digest.Algorithm(strings.ToLower(algorithm)) {
	case digest.SHA256, digest.SHA384, digest.SHA512, "blake3":
		return true
	}
	return false
}

// invalid returns the error for s.
func invalid(s string, err error) error {
	if err == reference.ErrReferenceInvalidFormat { //nolint:errorlint // wrapped, it says more
		return fmt.Errorf("image reference %.80q is not valid: it must have the form host/repository:tag or host/repository@sha256:…", s)
	}
	if why, more := strings.CutPrefix(err.Error(), reference.ErrReferenceInvalidFormat.Error()+": "); more {
		return fmt.Errorf("image reference %.80q is not valid: %s", s, why)
	}
	return fmt.Errorf("image reference %.80q is not valid: %w", s, err)
}

// withCanonicalHost returns s with the canonical spelling of its host, if it has one. It runs
// before the parser, which only adds library/ below docker.io.
func withCanonicalHost(s string) (string, error) {
	host, rest, found := strings.Cut(s, "/")
	if !found || (!isHost(host) && strings.ToLower(host) == host) {
		return s, nil // the start of a Docker Hub path
	}
	canonical, err := canonicalHost(host)
	if err != nil {
		return "", fmt.Errorf("host %.80q: %w", host, err)
	}
	if !isHost(canonical) {
		// Runtimes take a first path segment with capital letters for a host.
		return "", fmt.Errorf("%.80q is not a registry host, it has neither dot nor port; paths are in lower case", host)
	}
	return canonical + "/" + rest, nil
}

// Name returns host/repository, without tag and digest.
func (r Reference) Name() string { return r.Host + "/" + r.Repository }

// String returns the full normalised reference.
func (r Reference) String() string {
	tag, digest := "", "" // added at the front, for a single allocation
	if r.Tag != "" {
		tag = ":"
	}
	if r.Digest != "" {
		digest = "@"
	}
	return r.Host + "/" + r.Repository + tag + r.Tag + digest + r.Digest.String()
}

// WithDigest returns r pinned to d. It keeps the tag.
func (r Reference) WithDigest(d digest.Digest) Reference {
	r.Digest = d
	return r
}

// WithTag returns the reference of tag in the repository of r, without a digest.
func (r Reference) WithTag(tag string) Reference {
	r.Tag, r.Digest = tag, ""
	return r
}

// NormaliseHost checks the registry host of a resource (host or host:port, no scheme, no
// path) and returns the spelling that references of its images have.
func NormaliseHost(host string) (string, error) {
	canonical, err := canonicalHost(host)
	if err != nil {
		return "", fmt.Errorf("registry %.80q is not a host or host:port (no scheme, no path): %w", host, err)
	}
	if !isHost(canonical) {
		// A name without dot or port, such as "team", would be read as the
		// first part of a Docker Hub path.
		return "", fmt.Errorf("registry %.80q is not a registry host: it needs a dot or a port", host)
	}
	return canonical, nil
}

// Template makes the name of a repository at a fixed host from an image's name. The zero
// value makes none.
type Template struct{ host, path string }

// The placeholders of a [Template].
const (
	placeRepository = "{repository}"
	placeRegistry   = "{registry}"
)

// ParseTemplate checks a host and the path of a repository below it. In the path,
// {repository} is the image's repository and {registry} its host. The host has no
// placeholders, so an image's name never chooses the server.
func ParseTemplate(host, path string) (Template, error) {
	normalised, err := NormaliseHost(host)
	switch {
	case strings.ContainsAny(host, "{}"):
		return Template{}, fmt.Errorf("host %.80q has a placeholder; {repository} and {registry} can only be in the path", host)
	case err != nil:
		return Template{}, err
	case path == "":
		return Template{}, fmt.Errorf("the repository at %s is missing", normalised)
	}
	rest := strings.NewReplacer(placeRepository, "", placeRegistry, "").Replace(path)
	if strings.ContainsAny(rest, "{}") {
		return Template{}, fmt.Errorf("%.80q has a placeholder other than {repository} and {registry}", path)
	}
	t := Template{host: normalised, path: path}
	if _, err := t.For(Reference{Host: "registry.example.com:5000", Repository: "team/app"}); err != nil {
		return Template{}, err
	}
	return t, nil
}

// Host returns the host of every repository that t makes.
func (t Template) Host() string { return t.host }

// For returns the repository for an image, without tag and digest. A repository cannot have a
// colon, so the colon of a host's port becomes "_", which no host contains.
func (t Template) For(r Reference) (Reference, error) {
	if t == (Template{}) {
		return Reference{}, errors.New("there is no template of a repository")
	}
	path := strings.NewReplacer(placeRepository, r.Repository, placeRegistry, strings.ReplaceAll(r.Host, ":", "_")).Replace(t.path)
	made, err := Parse(t.host + "/" + path)
	if err != nil || made.Digest != "" || made.Name() != t.host+"/"+path && made.Name() != dockerHub+"/library/"+path {
		return Reference{},
			fmt.Errorf("%.80q does not make a repository at %s for %.80q: it has to be lower-case segments with / between them", t.path,
				t.host, r.Name())
	}
	return Reference{Host: made.Host, Repository: made.Repository}, nil
}
