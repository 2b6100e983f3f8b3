package compile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
)

// readPlaces fills in where the images of s and their evidence are. In a ClusterStore, a
// cluster admin names the hosts.
func (s *store) readPlaces(spec v1beta1.StoreSpec) error {
	named := s.Source.Namespace == ""
	if n := len(spec.Mirrors); n > maxPlaces {
		return fmt.Errorf("spec.mirrors has %d mirrors, the limit is %d", n, maxPlaces)
	}
	for i, m := range spec.Mirrors {
		field := fmt.Sprintf("spec.mirrors[%d]", i)
		path := m.Path
		if path == "" {
			path = "{repository}"
		}
		template, err := image.ParseTemplate(m.Host, path)
		if err != nil {
			return fieldError(field, err)
		}
		// Whoever names an image chooses its registry: one tag of two registries must not
		// become one tag at the mirror.
		if (len(s.Registries) > 1 || len(s.Patterns) > 0) && !strings.Contains(path, "{registry}") {
			return fmt.Errorf("%s.path must have {registry}, because the store lists more than one registry or a pattern, and their repositories would be one at the mirror; "+
				"write \"{registry}/{repository}\", or a store for each registry", field)
		}
		if err := knownWord(field+".fallback", m.Fallback, "", v1beta1.MirrorFallbackNever, v1beta1.MirrorFallbackOrigin); err != nil {
			return err
		}
		s.Mirrors = append(s.Mirrors, registry.Mirror{Location: registry.Location{Template: template, Named: named}, Origin: m.Fallback == v1beta1.MirrorFallbackOrigin})
	}
	return s.readEvidence(spec.Evidence, named)
}

func (s *store) readEvidence(spec *v1beta1.Evidence, named bool) error {
	if spec == nil {
		return nil
	}
	switch n := len(spec.Repositories); {
	case n == 0:
		return errors.New("spec.evidence.repositories is empty; list a repository, or leave out spec.evidence for the image's own")
	case n > maxPlaces:
		return fmt.Errorf("spec.evidence.repositories has %d repositories, the limit is %d", n, maxPlaces)
	}
	for i, r := range spec.Repositories {
		field := fmt.Sprintf("spec.evidence.repositories[%d].repository", i)
		host, path, found := strings.Cut(r.Repository, "/")
		if !found {
			return fmt.Errorf("%s: %.80q has no path; write host/path", field, r.Repository)
		}
		template, err := image.ParseTemplate(host, path)
		if err != nil {
			return fieldError(field, err)
		}
		s.Evidence = append(s.Evidence, registry.Location{Template: template, Named: named})
	}
	s.EvidenceExclusive = spec.Exclusive
	return nil
}

// reached returns s with the store that says how to reach each of its places: the nearest
// that lists the host, from the level of s on, or s itself. levels begin with that of s. A
// ClusterStore's places are never reached with what a namespace says.
func (s store) reached(levels []rung) store {
	if len(s.Mirrors)+len(s.Evidence) == 0 {
		return s
	}
	parts := []string{s.fingerprint}
	via := func(location registry.Location) registry.Location {
		host := location.Template.Host()
		for _, l := range levels {
			if found, ok := registry.StoreFor(registryStores(l.stores), host); ok {
				i := slices.IndexFunc(l.stores, func(other store) bool { return other.Source == found.Source })
				parts = append(parts, l.stores[i].fingerprint)
				location.Via = &found
				return location
			}
		}
		location.Via = s.ViaItself(host)
		return location
	}
	s.Mirrors = mapSlice(s.Mirrors, func(m registry.Mirror) registry.Mirror {
		m.Location = via(m.Location)
		return m
	})
	s.Evidence = mapSlice(s.Evidence, via)
	s.fingerprint = digestOf(parts)
	return s
}

// reachStores makes the cluster's stores say how to reach their places.
func (l *level) reachStores() {
	own := []rung{{l, LevelCluster}}
	l.stores = mapSlice(l.stores, func(s store) store { return s.reached(own) })
}
