package compile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// store is a compiled Store; its fingerprint covers the credentials.
type store struct {
	registry.Store
	fingerprint string
	credentials string // a hash of the credentials, tokens included
	proxy       *registry.Proxy
}

// compileStore compiles a Store. One with an error denies the images of its registries.
func compileStore(owner verify.Namespace, e entry[v1beta1.StoreSpec], m referenced) (store, error) {
	s := store{Store: registry.Store{Source: e.source}}
	identity, err := s.read(owner, e, m)
	if err != nil {
		if s.Broken = unusable(e.source, err); !policy.IsHidden(s.Broken) {
			s.Broken = registry.Unusable(resource.CutGrant(s.Broken.Error(), faultsOf(err)[0]))
		}
	}
	var secrets []string
	for _, host := range sortedKeys(s.Credentials) {
		secrets = append(secrets, fmt.Sprintf("%q %q", host, s.Credentials[host]))
	}
	s.credentials = digestOf(secrets)
	login := s.credentials
	if identity != nil { // its tokens rotate, and change no verdict
		login = digestOf([]string{string(identity)})
	}
	content := append([]byte(login), s.RootCAs...)
	if s.ClientCertificate != nil {
		content = fmt.Appendf(content, "%x", s.ClientCertificate.Certificate)
	}
	s.fingerprint = fingerprint(e.source, e.spec, content, err)
	return s, err
}

// read fills s from its spec, and returns the cloud identity that logs in, if any.
func (s *store) read(owner verify.Namespace, e entry[v1beta1.StoreSpec], m referenced) (identity []byte, err error) {
	// Registries first, so that a store that is broken otherwise denies only these.
	named, patterns, err := hosts(owner, e.spec.Registries)
	if err == nil {
		s.Registries, s.Patterns = named, patterns
	}
	if err := cmp.Or(e.broken, err); err != nil {
		if e.spec.Proxy != nil { // also of a ClusterStore that the schema refuses
			s.proxy = brokenProxy(e.source, err)
		}
		return nil, err
	}
	if owner != verify.Cluster && (e.spec.Proxy != nil || e.spec.InsecurePlainHTTP) {
		return nil, errors.New("only a ClusterStore can have spec.proxy and spec.insecurePlainHTTP; remove them")
	}
	// The proxy is in force for the Stores of namespaces, too, whatever else is broken.
	if s.proxy, err = m.proxy(e.spec); err != nil {
		s.proxy = brokenProxy(e.source, err)
		return nil, err
	}
	if err := s.readPlaces(e.spec); err != nil {
		return nil, err
	}
	if err := atMostOne("spec", member{"identity", e.spec.Identity != nil}, member{"imagePullSecrets", len(e.spec.ImagePullSecrets) > 0}, member{"imagePullSecretsFrom", e.spec.ImagePullSecretsFrom != nil}); err != nil {
		return nil, err
	}
	switch {
	case e.refused != nil:
		return nil, e.refused
	case len(s.Patterns) > 0 && e.spec.InsecurePlainHTTP:
		return nil, errors.New("spec.insecurePlainHTTP cannot be used with patterns in spec.registries; list each host")
	case e.spec.Identity != nil:
		if s.Credentials, identity, err = logins(owner, e.spec, m); err == nil {
			s.Logins, err = patternLogins(e.spec, s.Credentials)
		}
	case e.spec.ImagePullSecretsFrom != nil:
		s.Credentials, err = m.accountCredentials(e.spec.ImagePullSecretsFrom.ServiceAccount)
	default:
		s.Credentials, err = credentials(e.spec.ImagePullSecrets, m)
	}
	var errAuthorities, errCertificate error
	s.RootCAs, errAuthorities = m.authorities(e.spec)
	s.ClientCertificate, errCertificate = m.clientCertificate(e.spec.ClientCertificate)
	return identity, errors.Join(err, errAuthorities, errCertificate)
}

func credentials(refs []v1beta1.Reference, m referenced) (map[string]registry.Credential, error) {
	all := map[string]registry.Credential{}
	var wrong []error
	for i, ref := range refs {
		wrong = append(wrong, addCredentials(all, fmt.Sprintf("spec.imagePullSecrets[%d]", i), ref, m))
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	return all, nil
}

// addCredentials adds those of a pull secret that an earlier one does not have: the first
// secret wins, as with kubelet.
func addCredentials(all map[string]registry.Credential, field string, ref v1beta1.Reference, m referenced) error {
	source, err := m.locate(resource.KindSecret, ref.Name)
	if err != nil {
		return fieldError(field, err)
	}
	content, err := m.object(source)
	if err != nil {
		return fieldError(field, err)
	}
	config, ok := content[".dockerconfigjson"]
	if !ok {
		if config, ok = content[".dockercfg"]; !ok {
			return fmt.Errorf("%s: %s has neither .dockerconfigjson nor .dockercfg; make it with kubectl create secret docker-registry", field, source)
		}
	}
	found, err := registry.ParseDockerConfig(config)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", field, source, err)
	}
	for host, credential := range found {
		if _, earlier := all[host]; !earlier {
			all[host] = credential
		}
	}
	return nil
}

// touches reports whether s says something about a host without naming it, or as a place
// of other registries.
func (s store) touches(host string) bool {
	matches := func(p image.HostPattern) bool { return p.Match(host) }
	return slices.ContainsFunc(s.Patterns, matches) || s.proxy != nil && slices.ContainsFunc(s.proxy.AdditionalHosts, matches)
}

// takesAll reports whether s is broken and for every host.
func (s store) takesAll() bool { return s.Broken != nil && len(s.Registries)+len(s.Patterns) == 0 }

// lists returns the hosts and patterns of s.
func (s store) lists() []string {
	return slices.Concat(s.Registries, mapSlice(s.Patterns, image.HostPattern.String))
}

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

// asFarAsKnown returns s, or a hidden store for the same hosts if s has places about which
// hidden, the cluster's, may say more.
func (s store) asFarAsKnown(hidden *store) store {
	places := slices.Concat(s.lists(), mapSlice(s.Mirrors, func(m registry.Mirror) string { return m.Template.Host() }),
		mapSlice(s.Evidence, func(e registry.Location) string { return e.Template.Host() }))
	if !slices.ContainsFunc(places, func(host string) bool { return !slices.Contains(hidden.Except, host) }) {
		return s
	}
	return store{Store: registry.Store{Source: s.Source, Registries: s.Registries, Patterns: s.Patterns, Broken: hidden.Broken},
		fingerprint: digestOf([]string{s.fingerprint, hidden.fingerprint})}
}
