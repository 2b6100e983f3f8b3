package compile

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/external"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/registry"
	"github.com/landwaiter/landwaiter/pkg/resource"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// Externals returns what resources have kept outside of the cluster, by the
// namespace of the resources, in order and each once. The Secrets that they name
// must be in o: credentials are part of a source. What is wrong with a resource
// is said when it is compiled.
func Externals(o resource.Objects) map[verify.Namespace][]external.Source {
	all, m := map[verify.Namespace][]external.Source{}, newMaterial(o, nil)
	for namespace, d := range levels(o) {
		found := map[external.Source]bool{}
		for _, t := range d.trustStores {
			if source, err := trustRemote(namespace, t.spec, m); err == nil && source != nil {
				found[*source] = true
			}
		}
		for _, s := range d.stores {
			sources, _ := loginRemotes(namespace, s.spec.StoreSpec, m) // compiling says what is wrong
			for _, source := range sources {
				found[source] = true
			}
		}
		for _, v := range d.verifiers {
			if usesPublicGood(v.spec) {
				found[publicGood(namespace)] = true
			}
		}
		if len(found) > 0 {
			all[namespace] = slices.SortedFunc(maps.Keys(found), func(a, b external.Source) int {
				return strings.Compare(a.String()+string(a.Credentials), b.String()+string(b.Credentials))
			})
		}
	}
	return all
}

// publicGood is Sigstore's own root, for keyless verifiers that name none.
func publicGood(owner verify.Namespace) external.Source {
	return external.Source{Owner: owner, Kind: external.TUF}
}

func usesPublicGood(spec v1alpha1.VerifierSpec) bool {
	return (spec.Cosign != nil && spec.Cosign.Keyless != nil && spec.Cosign.Keyless.TrustStore == nil) ||
		(spec.Attestation != nil && spec.Attestation.Keyless != nil && spec.Attestation.Keyless.TrustStore == nil)
}

// trustRemote returns where a trust store's material is fetched from, nil if it is
// in the cluster.
func trustRemote(owner verify.Namespace, spec v1alpha1.TrustStoreSpec, m material) (*external.Source, error) {
	switch s := spec.Source; {
	case s.KMS != nil:
		made := &external.Source{Owner: owner, Kind: external.KMS, Address: s.KMS.URI}
		var err error
		made.Credentials, err = secretCredentials(owner, s.KMS.SecretRef, m)
		return made, wrap("spec.source.kms.secretRef", err)
	case s.Vault != nil:
		made := &external.Source{Owner: owner, Kind: external.VaultKeys, Address: s.Vault.Address, Path: s.Vault.Path, Authority: s.Vault.CABundle}
		if spec.Type != v1alpha1.PublicKeys {
			made.Kind = external.VaultCertificates
		}
		token, err := m.key(owner, kindSecret, s.Vault.Token)
		if err != nil {
			return nil, wrap("spec.source.vault.token", err)
		}
		made.Credentials, err = sealed(map[string]string{"token": string(token), "namespace": s.Vault.VaultNamespace})
		return made, err
	case s.TUF != nil:
		if (s.TUF.Mirror == "") != (s.TUF.Root == "") {
			return nil, errors.New("spec.source.tuf needs both mirror and root, or neither for the public-good repository")
		}
		return &external.Source{Owner: owner, Kind: external.TUF, Address: s.TUF.Mirror, Root: s.TUF.Root, Authority: s.TUF.CABundle}, nil
	}
	return nil, nil //nolint:nilnil // most material is in the cluster
}

// secretCredentials reads all of a Secret; without one there are no credentials.
func secretCredentials(owner verify.Namespace, ref *v1alpha1.SecretRef, m material) (external.Secret, error) {
	if ref == nil {
		return "", nil
	}
	source, err := locate(owner, kindSecret, ref.Namespace, ref.Name)
	if err != nil {
		return "", err
	}
	content, err := m.object(source)
	if err != nil {
		return "", err
	}
	texts := make(map[string]string, len(content))
	size := 0
	for name, value := range content {
		texts[name] = string(value)
		if size += len(value); size > maxMaterialBytes {
			return "", fmt.Errorf("%s is larger than %d bytes", source, maxMaterialBytes)
		}
	}
	return sealed(texts)
}

func sealed(texts map[string]string) (external.Secret, error) {
	text, err := json.Marshal(texts)
	return external.Secret(text), err
}

// fetched returns what is known of a source.
func (m material) fetched(source external.Source) (external.Value, error) {
	known, ok := m.remotes[source]
	switch {
	case !ok:
		return known, resource.Reasoned(policy.ReasonUnreadable, fmt.Errorf("%s is not fetched here", source))
	case known.Content == nil && known.Err != nil:
		return known, resource.Reasoned(policy.ReasonUnreadable, known.Err)
	case known.Content == nil:
		return known, resource.Reasoned(policy.ReasonUnreadable, fmt.Errorf("%s has not been fetched yet", source))
	}
	return known, nil
}

// loginRemotes are the logins at the registries of a store, one for each host.
func loginRemotes(owner verify.Namespace, spec v1alpha1.StoreSpec, m material) ([]external.Source, error) {
	if spec.Identity == nil {
		return nil, nil
	}
	switch spec.Identity.Provider {
	case v1alpha1.ProviderECR, v1alpha1.ProviderACR, v1alpha1.ProviderGAR:
	default:
		return nil, fmt.Errorf("spec.identity.provider is %q, it must be ECR, ACR or GAR", spec.Identity.Provider)
	}
	given, err := secretCredentials(owner, spec.Identity.SecretRef, m)
	if err != nil {
		return nil, wrap("spec.identity.secretRef", err)
	}
	list, err := hosts(spec.Registries)
	if err != nil {
		return nil, err
	}
	sources := make([]external.Source, len(list))
	for i, host := range list {
		sources[i] = external.Source{Owner: owner, Kind: external.Registry, Path: string(spec.Identity.Provider), Address: host, Credentials: given}
	}
	return sources, nil
}

// logins are the credentials that were fetched for a store's registries, and what
// identifies them: the identity, not the tokens, which change by the hour.
func logins(owner verify.Namespace, spec v1alpha1.StoreSpec, m material) (map[string]registry.Credential, []byte, error) {
	sources, err := loginRemotes(owner, spec, m)
	if err != nil {
		return nil, nil, err
	}
	all := map[string]registry.Credential{}
	var identity []byte
	for _, source := range sources {
		identity = fmt.Appendf(identity, "%q %q\n", source.String(), string(source.Credentials))
		known, err := m.fetched(source)
		if err != nil {
			return nil, identity, wrap("spec.identity", err)
		}
		found, err := registry.ParseDockerConfig(known.Content)
		if err != nil {
			return nil, identity, wrap("spec.identity", err)
		}
		maps.Copy(all, found)
	}
	return all, identity, nil
}

// Material returns what the trust stores of a namespace hold, or of the cluster.
func (s *Snapshot) Material(namespace verify.Namespace) map[policy.ObjectRef]v1alpha1.Material {
	if namespace == verify.Cluster {
		return s.cluster.materials()
	}
	if v, ok := s.namespaces[namespace]; ok {
		return v.materials
	}
	return nil
}

func (l *level) materials() map[policy.ObjectRef]v1alpha1.Material {
	if len(l.trustStores) == 0 {
		return nil
	}
	all := make(map[policy.ObjectRef]v1alpha1.Material, len(l.trustStores))
	for _, t := range l.trustStores {
		if t.err == nil {
			all[t.source] = t.material()
		}
	}
	return all
}
