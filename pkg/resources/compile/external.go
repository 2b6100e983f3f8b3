package compile

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/external"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
)

// PublicGood returns the source of Sigstore's public-good root, the default of
// cosign and attestation verifiers.
func PublicGood(owner verify.Namespace) external.Source {
	return external.Source{Owner: owner, Kind: external.TUF}
}

// UsesPublicGood reports whether a verifier trusts Sigstore's public-good root. Keys trust only its logs.
func UsesPublicGood(spec v1beta1.VerifierSpec) bool {
	signers := SignersOf(spec)
	switch {
	case signers == nil || logOf(*signers).RootTrustStoreRef != nil:
		return false
	case signers.Keyless != nil:
		return true
	}
	return signers.Keys != nil && !signers.Keys.InsecureIgnoreTransparencyLog
}

// ExternalSource returns the source from which a trust store's trust material is fetched,
// nil if the trust material is in the cluster.
func ExternalSource(owner verify.Namespace, spec v1beta1.TrustStoreSpec, m Referenced) (*external.Source, error) {
	switch s := spec.Source; {
	case s.KMS != nil:
		as, err := identityOf(owner, "spec.source.kms", s.KMS.SecretRef, s.KMS.ServiceAccount, m)
		return &external.Source{Owner: owner, Kind: external.KMS, Address: s.KMS.URI, As: as}, err
	case s.Vault != nil:
		return vaultSource(owner, spec.Type, *s.Vault, m)
	case s.TUF != nil:
		authority, err := m.caBundle("spec.source.tuf.caBundle", s.TUF.CABundle)
		return &external.Source{Owner: owner, Kind: external.TUF, Address: s.TUF.Mirror, Root: s.TUF.Root, Authority: string(authority)}, err
	}
	return nil, nil //nolint:nilnil // most trust material is in the cluster
}

func vaultSource(owner verify.Namespace, kind v1beta1.TrustStoreType, v v1beta1.VaultSource, m Referenced) (*external.Source, error) {
	as, err := vaultIdentity(owner, v, m)
	if err != nil {
		return nil, err
	}
	authority, err := m.caBundle("spec.source.vault.caBundle", v.CABundle)
	if err != nil {
		return nil, err
	}
	source := &external.Source{Owner: owner, Kind: external.VaultKeys, Address: v.Address, Path: v.Path, Authority: string(authority), As: as}
	if kind != v1beta1.TrustStoreTypePublicKeys {
		source.Kind = external.VaultCertificates
	}
	return source, nil
}

// LoginSources returns the sources of a store's registry credentials, one per host.
func LoginSources(owner verify.Namespace, spec v1beta1.StoreSpec, m Referenced) ([]external.Source, error) {
	if spec.Identity == nil {
		return nil, nil
	}
	as, err := identityOf(owner, "spec.identity", spec.Identity.SecretRef, spec.Identity.ServiceAccount, m)
	if err != nil {
		return nil, err
	}
	list, err := loginHosts(owner, spec)
	if err != nil {
		return nil, err
	}
	return MapSlice(list, func(host string) external.Source {
		return external.Source{Owner: owner, Kind: external.Registry, Path: string(spec.Identity.Provider), Address: host, As: as}
	}), nil
}

// logins returns the fetched logins for a store's registries, and bytes that
// identify the cloud identity. The fingerprint covers the identity instead of the
// tokens, which change every hour.
func logins(owner verify.Namespace, spec v1beta1.StoreSpec, m Referenced) (all registry.Logins, identity []byte, err error) {
	sources, err := LoginSources(owner, spec, m)
	if err != nil {
		return nil, nil, err
	}
	_, patterns, err := Hosts(owner, spec.Registries)
	if err != nil {
		return nil, nil, err
	}
	for i, source := range sources { // patterns come last
		identity = fmt.Appendf(identity, "%q %q\n", source.String(), source.Fingerprint())
		known, err := m.get(source)
		if err != nil {
			return nil, identity, fieldError("spec.identity", err)
		}
		found, _, err := registry.ParseDockerConfig(known.Content)
		if err == nil && len(found) == 0 {
			err = errors.New("the answer has no login")
		}
		if err != nil {
			return nil, identity, fieldError("spec.identity", err)
		}
		if p := i - len(sources) + len(patterns); p >= 0 {
			for n := range found {
				found[n].Serves = func(host string) bool {
					return patterns[p].Match(host) && external.Serves(string(spec.Identity.Provider), host)
				}
			}
		}
		all = append(all, found...)
	}
	return all, identity, nil
}

// Reaches returns the servers that a verifier needs in addition to registries, as the end of a
// sentence: the server of Sigstore's public-good root, and the servers that certificates name for
// revocation.
func Reaches(spec v1beta1.VerifierSpec, certificates []*x509.Certificate) string {
	said := ""
	if UsesPublicGood(spec) {
		said = "; it needs " + external.PublicGoodHost + ", where Sigstore's public-good root is fetched"
	}
	if spec.Notation == nil || revocationOf(*spec.Notation) != v1beta1.RevocationModeCheck {
		return said
	}
	said = "; revocation is checked, so the hosts that signing certificates name for it must be reachable and in --egress-host"
	var hosts []string
	for _, certificate := range certificates {
		for _, address := range slices.Concat(certificate.OCSPServer, certificate.CRLDistributionPoints) {
			if u, err := url.Parse(address); err == nil && plainWord.MatchString(u.Host) {
				hosts = append(hosts, u.Host)
			}
		}
	}
	slices.Sort(hosts)
	if hosts = slices.Compact(hosts); len(hosts) > 0 {
		said += ", among them " + JoinNames(hosts)
	}
	return said
}
