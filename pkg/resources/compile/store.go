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

// Store is a compiled Store; its fingerprint covers the credentials.
type Store struct {
	registry.Store
	Fingerprint     string
	CredentialsHash string // a hash of the credentials, tokens included
	Proxy           *registry.Proxy
	// Ignored lists the ignored entries of pull secrets, with reasons.
	Ignored []string
}

// NewStore compiles a Store. A Store with an error denies the images of its registries.
func NewStore(owner verify.Namespace, e Entry[v1beta1.StoreSpec], m Referenced) (Store, error) {
	s := Store{Store: registry.Store{Source: e.Source}}
	identity, err := s.read(owner, e, m)
	switch {
	case resource.IsUnread(err):
		s.Broken = unknown(e.Source, err)
	case err != nil:
		s.Broken = Unusable(e.Source, err)
		why, grant := resource.CutGrant(s.Broken.Error(), faultsOf(err)[0])
		fix := cmp.Or(grant, policy.OutsideOf(s.Broken))
		if fix == "" && e.Source.Namespace == "" { // a team cannot read the condition that the text names
			fix = e.Source.Owner("correct " + e.Source.String())
		}
		s.Broken = registry.Unusable(why, fix)
	}
	s.CredentialsHash = DigestOf(s.Logins.Text())
	login := s.CredentialsHash
	if identity != nil { // its tokens rotate without changing a verdict
		login = DigestOf([]string{string(identity)})
	}
	content := append([]byte(login), s.RootCAs...)
	if s.ClientCertificate != nil {
		content = fmt.Appendf(content, "%x", s.ClientCertificate.Certificate)
	}
	s.Fingerprint = Fingerprint(e.Source, e.Spec, content, err)
	return s, err
}

// read fills s from its spec, and returns the cloud identity that logs in, if any.
func (s *Store) read(owner verify.Namespace, e Entry[v1beta1.StoreSpec], m Referenced) (identity []byte, err error) {
	// Registries first, so that a store with other errors denies only these.
	named, patterns, err := Hosts(owner, e.Spec.Registries)
	if err == nil {
		s.Registries, s.Patterns = named, patterns
	}
	if err := cmp.Or(e.Broken, err); err != nil {
		if e.Spec.Proxy != nil { // also of a ClusterStore that the schema refuses
			s.Proxy = brokenProxy(e.Source, err)
		}
		return nil, err
	}
	// The proxy also applies to the Stores of namespaces, even if other fields are broken.
	if s.Proxy, err = m.proxy(e.Spec); err != nil {
		s.Proxy = brokenProxy(e.Source, err)
		return nil, err
	}
	if err := s.readPlaces(e.Spec); err != nil {
		return nil, err
	}
	switch {
	case e.Refused != nil:
		return nil, e.Refused
	case e.Spec.Identity != nil:
		s.Logins, identity, err = logins(owner, e.Spec, m)
	case e.Spec.ImagePullSecretsFrom != nil:
		err = s.readAccount(e.Spec.ImagePullSecretsFrom.ServiceAccount, m)
	default:
		err = s.readSecrets(e.Spec.ImagePullSecrets, func(i int) string { return fmt.Sprintf("spec.imagePullSecrets[%d]", i) }, m)
	}
	var errAuthorities, errCertificate error
	s.RootCAs, errAuthorities = m.Authorities(e.Spec)
	s.ClientCertificate, errCertificate = m.clientCertificate(e.Spec.ClientCertificate)
	return identity, errors.Join(err, errAuthorities, errCertificate)
}

// readSecrets adds the logins of pull secrets. field names each of them.
func (s *Store) readSecrets(refs []v1beta1.Reference, field func(i int) string, m Referenced) error {
	var wrong []error
	for i, ref := range refs {
		wrong = append(wrong, s.readSecret(field(i), ref, m))
	}
	if err := errors.Join(wrong...); err != nil {
		s.Logins = nil
		return err
	}
	return nil
}

func (s *Store) readSecret(field string, ref v1beta1.Reference, m Referenced) error {
	source, content, err := m.named(resource.KindSecret, ref.Name)
	if err != nil {
		return fieldError(field, err)
	}
	config, ok := content[".dockerconfigjson"]
	if !ok {
		if config, ok = content[".dockercfg"]; !ok {
			return fmt.Errorf("%s: %s has neither .dockerconfigjson nor .dockercfg; make it with kubectl create secret docker-registry",
				field, source)
		}
	}
	found, ignored, err := registry.ParseDockerConfig(config)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", field, source, err)
	}
	if len(found) == 0 {
		ignored = append(ignored, "it has no login")
	}
	if len(s.Patterns) == 0 {
		hosts := s.reaches()
		if others := found.Elsewhere(hosts); len(others) > 0 {
			why := fmt.Sprintf("it has no login for %s, only for ", strings.Join(hosts[:min(len(hosts), maxIgnored)], ", "))
			if s.Source.Namespace == "" { // teams may read the condition of a ClusterStore, and not what is in its Secret
				others = []string{"other hosts"}
			}
			ignored = append(ignored, why+strings.Join(others, ", "))
		}
	}
	all, leftOut := s.Logins.Add(found)
	if s.Logins = all; leftOut > 0 {
		ignored = append(ignored, fmt.Sprintf("%d entries with wildcards are ignored: a Store has 32 at most", leftOut))
	}
	s.Ignored = append(s.Ignored, MapSlice(ignored, func(why string) string { return fmt.Sprintf("%s: %s: %s", field, source, why) })...)
	s.Ignored = s.Ignored[:min(len(s.Ignored), maxIgnored)]
	return nil
}

// readAccount adds the logins of the pull secrets of a ServiceAccount.
func (s *Store) readAccount(ref v1beta1.Reference, m Referenced) error {
	const field = "spec.imagePullSecretsFrom.serviceAccount"
	secrets, err := m.pullSecrets(ref)
	if err != nil {
		return fieldError(field, err)
	}
	return s.readSecrets(secrets, func(i int) string {
		return fmt.Sprintf("%s: imagePullSecrets[%d] of ServiceAccount %s/%s", field, i, m.Namespace, ref.Name)
	}, m)
}

// TakesAll reports whether s is broken and applies to every host.
func (s Store) TakesAll() bool { return s.Broken != nil && len(s.Registries)+len(s.Patterns) == 0 }

// reaches returns the hosts of s by name: its registries, and where else images and evidence are, which get its logins
// too.
func (s Store) reaches() []string {
	hosts := slices.Clone(s.Registries)
	for _, m := range s.Mirrors {
		hosts = append(hosts, m.Template.Host())
	}
	for _, e := range s.Evidence {
		hosts = append(hosts, e.Template.Host())
	}
	return hosts
}

// Lists returns the hosts and patterns of s.
func (s Store) Lists() []string {
	return slices.Concat(s.Registries, MapSlice(s.Patterns, image.HostPattern.String))
}

// readPlaces reads the mirrors and evidence repositories of s. In a ClusterStore, a cluster
// admin names the hosts.
func (s *Store) readPlaces(spec v1beta1.StoreSpec) error {
	named := s.Source.Namespace == ""
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
		// The author of a pod chooses its registry: one tag of two registries must not become one
		// tag at the mirror.
		if (len(s.Registries) > 1 || len(s.Patterns) > 0) && !strings.Contains(path, "{registry}") {
			return fmt.Errorf("%s.path must have {registry}, because the store lists more than one registry or a pattern, and their repositories "+
				"would be one at the mirror; "+
				"write \"{registry}/{repository}\", or a store for each registry", field)
		}
		s.Mirrors = append(s.Mirrors,
			registry.Mirror{Location: registry.Location{Template: template, Named: named}, Origin: m.Fallback == v1beta1.MirrorFallbackOrigin})
	}
	return s.readEvidence(spec.Evidence, named)
}

func (s *Store) readEvidence(spec *v1beta1.Evidence, named bool) error {
	if spec == nil {
		return nil
	}
	for i, r := range spec.Repositories {
		field := fmt.Sprintf("spec.evidence.repositories[%d].repository", i)
		host, path, _ := strings.Cut(r.Repository, "/")
		template, err := image.ParseTemplate(host, path)
		if err != nil {
			return fieldError(field, err)
		}
		s.Evidence = append(s.Evidence, registry.Location{Template: template, Named: named})
	}
	s.EvidenceExclusive = spec.Exclusive
	return nil
}
