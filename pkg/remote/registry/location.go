package registry

import (
	"errors"
	"fmt"
	"slices"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// Location is a Store's location of images or evidence.
type Location struct {
	// Template derives the repository from an image's name.
	Template image.Template
	// Via is the store through which the host is reached. It never uses credentials for the host
	// of the image name, unless that is the same host. Nil means anonymous.
	Via *Store
	// Named says that a cluster admin named the host for this purpose: it may have a private
	// address.
	Named bool
}

// Mirror is a [Location] that is read instead of the registries of a store.
type Mirror struct {
	Location
	// Origin also reads the registry that the image names.
	Origin bool
}

// ViaItself returns the settings of s for an unlisted host: its pull secrets, which name their
// hosts, and its CA, but not the settings for its registries.
func (s Store) ViaItself(host string) *Store {
	logins := s.Logins
	if forProvider := func(l Login) bool { return l.Serves != nil }; slices.ContainsFunc(logins, forProvider) {
		logins = slices.DeleteFunc(slices.Clone(logins), forProvider)
	}
	return &Store{Source: s.Source, Registries: []string{host}, RootCAs: s.RootCAs, Broken: s.Broken, Logins: logins}
}

// location is one repository that one tenant reaches. It implements [verify.Repository].
type location struct {
	*session
	at    image.Reference // host and repository
	role  verify.Role
	store Store
	named bool // by a cluster admin, as [Location.Named]
	// credential is the login that requests use. [tryLogins] sets it.
	credential Credential
}

// Locations implements [verify.Registry].
func (s *session) Locations(ref image.Reference) verify.Locations {
	store := s.access.StoreFor(ref.Host)
	listing := ""
	if s.access.Attestations {
		listing = "with attestation tags"
	}
	own := &location{session: s, at: image.Reference{Host: ref.Host, Repository: ref.Repository}, role: verify.RoleOrigin, store: store}
	if store.Broken != nil || len(store.Mirrors)+len(store.Evidence) == 0 {
		only := add(nil, own)
		return verify.Locations{Content: only, Evidence: only, Listing: listing}
	}
	locations := verify.Locations{Listing: listing}
	origin := len(store.Mirrors) == 0
	for _, mirror := range store.Mirrors {
		locations.Content = add(locations.Content, s.located(verify.RoleMirror, mirror.Location, store, ref))
		origin = origin || mirror.Origin
	}
	if origin {
		locations.Content = add(locations.Content, own)
	}
	if !store.EvidenceExclusive {
		locations.Evidence = slices.Clone(locations.Content)
	}
	for _, location := range store.Evidence {
		locations.Evidence = add(locations.Evidence, s.located(verify.RoleEvidence, location, store, ref))
	}
	return locations
}

// Generation implements [verify.Registry].
func (s *session) Generation() string { return s.access.Generation }

// located returns the location of an image for a Location of a Store. If it has no name,
// every request fails.
func (s *session) located(role verify.Role, listed Location, by Store, ref image.Reference) *location {
	p := &location{session: s, role: role, named: listed.Named}
	if listed.Via != nil {
		p.store = *listed.Via
	}
	var err error
	if p.at, err = listed.Template.For(ref); err != nil {
		p.at = image.Reference{Host: listed.Template.Host()}
		p.store = Store{Broken: Unusable(fmt.Sprintf("%s: %v", by.Source, err), "")}
	}
	return p
}

// add appends a location unless it is already present: the first one to list it determines how it
// is reached.
func add(locations []verify.Location, p *location) []verify.Location {
	name := p.at.Name()
	if slices.ContainsFunc(locations, func(other verify.Location) bool { return other.Name == name }) {
		return locations
	}
	return append(locations, verify.Location{Name: name, Role: p.role, Repository: p})
}

// of returns the text about an image with the location, if that is another repository.
func (p *location) of(ref image.Reference, text string) string {
	if p.at.Name() == ref.Name() {
		return text
	}
	return text + " at " + p.at.Name()
}

// explain is the function of that name, for this location.
func (p *location) explain(err error, doing string) error {
	err = explain(err, doing, p.at.Host)
	if p.role == verify.RoleMirror && verify.HasReason(err, policy.ReasonNotFound) {
		return verify.PermanentWith(policy.ReasonNotFound, err, "copy the image to the mirror, or set fallback: Origin for a mirror in the "+
			"Store that names it; landwaiter verify --explain --compare-origin says whether the origin has it")
	}
	return p.withoutLogin(err)
}

// withoutLogin adds to a refusal of an anonymous request that only a Store provides logins, and who can add one. Pods
// use the pull secrets of their namespace, so people look there first.
func (p *location) withoutLogin(err error) error {
	var refused *verify.PermanentError
	if !errors.As(err, &refused) || p.credential != (Credential{}) || refused.Remediation != withLogin(p.at.Host) {
		return err
	}
	why, fix := "no Store lists "+p.at.Host, "ask an admin of the namespace for a Store that lists "+p.at.Host+
		" and has its pull secret in imagePullSecrets"
	if store := p.store.Source; store != (policy.ObjectRef{}) {
		why, fix = store.String()+" has none for "+p.at.Name(),
			store.Owner("add a pull secret for "+p.at.Host+" to imagePullSecrets of "+store.String())
	}
	return verify.PermanentWith(refused.Reason,
		fmt.Errorf("%w: only the login of a Store counts, not the pull secrets of pods, and %s", err, why), fix)
}
