package compile

import (
	"errors"
	"fmt"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/image"
	"github.com/landwaiter/landwaiter/pkg/registry"
	"github.com/landwaiter/landwaiter/pkg/trust"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// store is a compiled Store; its fingerprint covers the credentials.
type store struct {
	registry.Store
	fingerprint string
	credentials string // a hash of the credentials, tokens included
}

func compileStore(owner verify.Namespace, e entry[v1alpha1.ClusterStoreSpec], m material) (store, error) {
	s := store{Store: registry.Store{Source: e.source}}
	identity, err := s.read(owner, e, m)
	if err != nil {
		s.Broken = unusable(e.source, err)
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
	s.fingerprint = fingerprint(e.source, e.spec, append([]byte(login), s.RootCAs...), err)
	return s, err
}

// read fills s from its spec, and returns the cloud identity that logs in, if any.
func (s *store) read(owner verify.Namespace, e entry[v1alpha1.ClusterStoreSpec], m material) (identity []byte, err error) {
	if e.broken != nil {
		return nil, e.broken
	}
	// Registries first, so that a store that is broken otherwise denies only these.
	if s.Registries, err = hosts(e.spec.Registries); err != nil {
		return nil, err
	}
	if err := s.readPlaces(e.spec.StoreCommon); err != nil {
		return nil, err
	}
	switch {
	case e.refused != nil:
		return nil, e.refused
	case e.spec.Identity != nil && len(e.spec.ImagePullSecrets) > 0:
		return nil, errors.New("spec.identity and spec.imagePullSecrets are two ways to log in; use one")
	case e.spec.Identity != nil:
		s.Credentials, identity, err = logins(owner, e.spec, m)
	default:
		s.Credentials, err = credentials(e.spec.ImagePullSecrets, m)
	}
	if err != nil {
		return identity, err
	}
	if s.RootCAs, err = m.caBundle("spec.caBundle", e.spec.CABundle); err != nil || s.RootCAs == nil {
		return identity, err
	}
	_, err = trust.ParseCertificates(s.RootCAs)
	return identity, fieldError("spec.caBundle", err)
}

func hosts(list []string) ([]string, error) {
	if len(list) == 0 {
		return nil, errors.New("spec.registries is empty, so the store would be for no registry")
	}
	normalised := make([]string, 0, len(list))
	for i, s := range list {
		host, err := image.NormaliseHost(s)
		if err != nil {
			return nil, fmt.Errorf("spec.registries[%d]: %w", i, err)
		}
		normalised = append(normalised, host)
	}
	return normalised, nil
}

func credentials(refs []v1alpha1.ClusterSecretRef, m material) (map[string]registry.Credential, error) {
	all := map[string]registry.Credential{}
	for i, ref := range refs {
		field := fmt.Sprintf("spec.imagePullSecrets[%d]", i)
		source, err := locate(kindSecret, ref.Namespace, ref.Name)
		if err != nil {
			return nil, fieldError(field, err)
		}
		content, err := m.object(source)
		if err != nil {
			return nil, fieldError(field, err)
		}
		config, ok := content[".dockerconfigjson"]
		if !ok {
			if config, ok = content[".dockercfg"]; !ok {
				return nil, fmt.Errorf("%s: %s has neither .dockerconfigjson nor .dockercfg; make it with kubectl create secret docker-registry", field, source)
			}
		}
		found, err := registry.ParseDockerConfig(config)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", field, source, err)
		}
		for host, credential := range found {
			if _, earlier := all[host]; !earlier { // the first secret wins, as with kubelet
				all[host] = credential
			}
		}
	}
	return all, nil
}

// hostRules returns the rules for the registries in ClusterStores: these may have
// private addresses, and plain HTTP if the store allows it. They come from the spec alone
// and hold for the Stores of namespaces, so a store whose credentials are broken keeps its
// rules.
func hostRules(specs []entry[v1alpha1.ClusterStoreSpec], compiled []store) map[string]registry.HostRule {
	rules := map[string]registry.HostRule{}
	for i, s := range compiled {
		for _, host := range s.Registries {
			rule := rules[host]
			rule.Private = true
			rule.PlainHTTP = rule.PlainHTTP || specs[i].spec.InsecurePlainHTTP
			rules[host] = rule
		}
	}
	return rules
}
