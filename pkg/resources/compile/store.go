package compile

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
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

func compileStore(owner verify.Namespace, e entry[v1beta1.StoreSpec], m referenced) (store, error) {
	s := store{Store: registry.Store{Source: e.source}}
	identity, err := s.read(owner, e, m)
	if err != nil {
		s.Broken, s.Hidden = unusable(e.source, err), resource.IsHidden(faultsOf(err)[0])
		s.Broken, s.Fix = resource.CutGrant(s.Broken, faultsOf(err)[0])
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

// hostRules returns the rules for the registries in ClusterStores: these may have
// private addresses, and plain HTTP if the store allows it. They come from the spec alone
// and hold for the Stores of namespaces, so a store whose credentials or other registries are
// broken keeps its rules. One that the schema refuses allows nothing, but nobody goes around its
// proxy. The proxy is that of the first store by name.
func hostRules(specs []entry[v1beta1.StoreSpec], compiled []store) (map[string]registry.HostRule, []registry.PatternRule) {
	rules := map[string]registry.HostRule{}
	var patterns []registry.PatternRule
	for i, s := range compiled[:min(len(compiled), len(specs))] { // what stands for hidden ones has no spec
		sound := specs[i].broken == nil
		if !sound && s.proxy == nil {
			continue
		}
		named, matching, _ := hosts(verify.Cluster, specs[i].spec.Registries) // the entries that are right
		for _, host := range named {
			rule, earlier := rules[host]
			if !earlier {
				rule.Proxy = s.proxy
			}
			rule.Private = rule.Private || sound
			rule.PlainHTTP = rule.PlainHTTP || specs[i].spec.InsecurePlainHTTP
			rules[host] = rule
		}
		for _, pattern := range matching {
			patterns = append(patterns, registry.PatternRule{Hosts: pattern, Rule: registry.HostRule{Private: sound, Proxy: s.proxy}})
		}
	}
	return rules, patterns
}
