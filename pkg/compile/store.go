package compile

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"

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
}

func compileStore(owner verify.Namespace, r entry[v1alpha1.ClusterStoreSpec], m material) (store, error) {
	s := store{Store: registry.Store{Source: r.source}}
	err := r.broken
	if err == nil {
		// Hosts first: a store that is broken otherwise still denies only the
		// registries that it is about.
		s.Registries, err = hosts(r.spec.Registries)
	}
	if err == nil {
		s.Credentials, err = credentials(owner, r.spec.ImagePullSecrets, m)
	}
	var identity []byte
	if err == nil && r.spec.Identity != nil {
		if len(r.spec.ImagePullSecrets) > 0 {
			err = errors.New("spec.identity and spec.imagePullSecrets are two ways to log in: use one")
		} else {
			s.Credentials, identity, err = logins(owner, r.spec.StoreSpec, m)
		}
	}
	if err == nil {
		s.RootCAs, err = caBundle(owner, r.spec.CABundle, m)
	}
	if err != nil {
		s.Broken = fmt.Sprintf("%s cannot be used: %v", r.source, err)
	}
	secret := sha256.New()
	secret.Write(identity)
	if identity == nil { // whose tokens come and go
		for _, host := range sortedKeys(s.Credentials) {
			fmt.Fprintf(secret, "%q %q\n", host, s.Credentials[host])
		}
	}
	s.fingerprint = fingerprint(r.source, r.spec, append(secret.Sum(nil), s.RootCAs...), err)
	return s, err
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

func credentials(owner verify.Namespace, refs []v1alpha1.SecretRef, m material) (map[string]registry.Credential, error) {
	all := map[string]registry.Credential{}
	for i, ref := range refs {
		field := fmt.Sprintf("spec.imagePullSecrets[%d]", i)
		source, err := locate(owner, kindSecret, ref.Namespace, ref.Name)
		if err != nil {
			return nil, wrap(field, err)
		}
		content, err := m.object(source)
		if err != nil {
			return nil, wrap(field, err)
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
			if _, earlier := all[host]; !earlier { // the first secret wins, as for the kubelet
				all[host] = credential
			}
		}
	}
	return all, nil
}

func caBundle(owner verify.Namespace, bundle *v1alpha1.CABundle, m material) ([]byte, error) {
	if bundle == nil {
		return nil, nil
	}
	given := 0
	for _, set := range []bool{bundle.Inline != "", bundle.SecretRef != nil, bundle.ConfigMapRef != nil} {
		if set {
			given++
		}
	}
	if given != 1 {
		return nil, fmt.Errorf("spec.caBundle must have exactly one of inline, secretRef, configMapRef; it has %d", given)
	}
	content, field, err := []byte(bundle.Inline), "spec.caBundle.inline", error(nil)
	switch {
	case bundle.SecretRef != nil:
		field = "spec.caBundle.secretRef"
		content, err = m.key(owner, kindSecret, *bundle.SecretRef)
	case bundle.ConfigMapRef != nil:
		field = "spec.caBundle.configMapRef"
		content, err = m.key(owner, kindConfigMap, *bundle.ConfigMapRef)
	}
	if err == nil {
		_, err = trust.ParseCertificates(content)
	}
	if err != nil {
		return nil, wrap(field, err)
	}
	return content, nil
}

// hostRules is what cluster admins allow for the registries that they list: to
// be on a private address, and to be reached without TLS.
func hostRules(specs []entry[v1alpha1.ClusterStoreSpec], compiled []store) map[string]registry.HostRule {
	rules := map[string]registry.HostRule{}
	for i, s := range compiled {
		if s.Broken != "" {
			continue
		}
		for _, host := range s.Registries {
			rule := rules[host]
			rule.Private = true
			rule.PlainHTTP = rule.PlainHTTP || specs[i].spec.InsecurePlainHTTP
			rules[host] = rule
		}
	}
	return maps.Clone(rules)
}
