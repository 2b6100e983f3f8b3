package compile

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/formats/trust"
	"github.com/landwaiter/landwaiter/pkg/remote/external"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Hosts reads spec.registries: hosts, and patterns in resources of the cluster. If it returns an
// error, it also returns the valid entries.
func Hosts(owner verify.Namespace, list []string) (named []string, patterns []image.HostPattern, err error) {
	if len(list) == 0 {
		return nil, nil, notKnown("spec.registries")
	}
	var wrong []error
	for i, s := range list {
		pattern, err := image.ParseHostPattern(s)
		switch {
		case err != nil:
			wrong = append(wrong, fmt.Errorf("spec.registries[%d]: %w", i, err))
		case !image.IsHostPattern(s):
			named = append(named, pattern.String())
		case owner != verify.Cluster:
			wrong = append(wrong, fmt.Errorf("spec.registries[%d]: only a ClusterStore can list registries by pattern; list each host", i))
		default:
			patterns = append(patterns, pattern)
		}
	}
	return named, patterns, errors.Join(wrong...)
}

// Authorities returns the PEM text of all CA bundles of a store, empty if there is none.
func (m Referenced) Authorities(spec v1beta1.StoreSpec) ([]byte, error) {
	fields, bundles := []string{"spec.caBundle"}, []*v1beta1.CABundle{spec.CABundle}
	for i := range spec.AdditionalCABundles {
		fields, bundles = append(fields, fmt.Sprintf("spec.additionalCABundles[%d]", i)), append(bundles, &spec.AdditionalCABundles[i])
	}
	var all [][]byte
	size := 0
	for i, bundle := range bundles {
		text, err := m.caBundle(fields[i], bundle)
		if err != nil {
			return nil, err
		}
		if text == nil {
			continue
		}
		if text, err = normalised(text); err != nil {
			return nil, fieldError(fields[i], err)
		}
		if size += len(text); size > maxAuthorityBytes {
			return nil, fmt.Errorf("%s: the CA bundles of the store are together larger than %d bytes; leave out what these registries do not need",
				fields[i], maxAuthorityBytes)
		}
		all = append(all, text)
	}
	return bytes.Join(all, []byte("\n")), nil
}

// clientCertificate returns the certificate of a Secret, nil if there is none.
func (m Referenced) clientCertificate(spec *v1beta1.ClientCertificate) (*tls.Certificate, error) {
	if spec == nil {
		return nil, nil //nolint:nilnil // most registries ask for none
	}
	const field = "spec.clientCertificate.secretRef"
	source, content, err := m.named(resource.KindSecret, spec.SecretRef.Name)
	if err != nil {
		return nil, fieldError(field, err)
	}
	certificate, err := registry.ParseClientCertificate(content["tls.crt"], content["tls.key"])
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w; make it with kubectl create secret tls", field, source, err)
	}
	return certificate, nil
}

// brokenProxy replaces a proxy that cannot be used: nothing is sent.
func brokenProxy(store policy.ObjectRef, err error) *registry.Proxy {
	if resource.IsUnread(err) {
		return &registry.Proxy{Broken: unknown(store, err)}
	}
	err = Unusable(store, err)
	return &registry.Proxy{Broken: verify.PermanentWith(policy.ReasonBrokenResource, err,
		cmp.Or(policy.OutsideOf(err), "ask a cluster admin to correct the proxy of the ClusterStore"))}
}

// proxy returns the proxy of a ClusterStore, nil if it has none.
func (m Referenced) proxy(spec v1beta1.StoreSpec) (*registry.Proxy, error) {
	p := spec.Proxy
	if p == nil {
		return nil, nil //nolint:nilnil // that of the environment
	}
	made := &registry.Proxy{}
	for i, host := range p.AdditionalHosts {
		pattern, err := image.ParseHostPattern(host)
		if err != nil {
			return nil, fmt.Errorf("spec.proxy.additionalHosts[%d]: %w", i, err)
		}
		made.AdditionalHosts = append(made.AdditionalHosts, pattern)
	}
	if p.URL == "" {
		return made, nil
	}
	err := made.Through(p.URL, strings.Join(p.NoProxy, ","))
	if err != nil {
		return nil,
			errors.New("spec.proxy.url: it must be http://HOST:PORT or https://HOST:PORT, without a path; a login goes into spec.proxy.secretRef")
	}
	if p.SecretRef != nil {
		if made.Own.Username, made.Own.Password, err = m.login(*p.SecretRef); err != nil {
			return nil, fieldError("spec.proxy.secretRef", err)
		}
	}
	if made.Own.Roots, err = m.caBundle("spec.proxy.caBundle", p.CABundle); err != nil || made.Own.Roots == nil {
		return made, err
	}
	made.Own.Roots, err = normalised(made.Own.Roots)
	return made, fieldError("spec.proxy.caBundle", err)
}

// normalised returns the certificates of a CA bundle without the surrounding text: crypto/x509 skips a
// certificate after a byte order mark or a space.
func normalised(text []byte) ([]byte, error) {
	certificates, err := trust.ParseCertificates(text)
	if err != nil {
		return nil, err
	}
	var clean []byte
	for _, certificate := range certificates {
		clean = append(clean, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})...)
	}
	return clean, nil
}

// login returns the username and password of a Secret, as of type kubernetes.io/basic-auth.
func (m Referenced) login(ref v1beta1.Reference) (username, password string, err error) {
	source, content, err := m.named(resource.KindSecret, ref.Name)
	if err != nil {
		return "", "", err
	}
	username, password = string(content["username"]), string(content["password"])
	switch {
	case username == "":
		return "", "", fmt.Errorf("%s has no username", source)
	case password == "":
		return "", "", fmt.Errorf("%s has no password", source)
	case len(username)+len(password) > maxProxyLogin || strings.ContainsAny(username, ":\r\n") || strings.ContainsAny(password, "\r\n"):
		return "", "", fmt.Errorf("%s is not usable: a username has no colon, neither has line ends, and both have at most %d bytes",
			source, maxProxyLogin)
	}
	return username, password, nil
}

// loginHosts returns the hosts at which a store with an identity logs in: the ones it lists,
// and one for each pattern. A pattern must lie within the provider's own hosts, and all hosts
// that it matches must have the same login.
func loginHosts(owner verify.Namespace, spec v1beta1.StoreSpec) ([]string, error) {
	named, patterns, err := Hosts(owner, spec.Registries)
	if err != nil {
		return nil, err
	}
	for _, pattern := range patterns {
		host, err := sampleHost(spec.Identity.Provider, pattern.String())
		if err != nil {
			return nil, fmt.Errorf("spec.registries: %w", err)
		}
		named = append(named, host)
	}
	return named, nil
}

// sampleHost returns a host that represents a pattern when a provider is asked for a login:
// ECR has one login for each region, and Google Cloud one for all hosts.
func sampleHost(provider v1beta1.RegistryProvider, pattern string) (string, error) {
	first, rest, _ := strings.Cut(pattern, ".")
	var host string
	switch provider {
	case v1beta1.RegistryProviderECR:
		if image.IsHostPattern(rest) {
			return "", fmt.Errorf("%s: a login of ECR is for one region; write *.dkr.ecr.REGION.amazonaws.com for each", pattern)
		}
		missing := max(ecrAccountDigits-len(strings.ReplaceAll(first, "*", "")), 0)
		host = strings.ReplaceAll(strings.Replace(first, "*", strings.Repeat("0", missing), 1), "*", "") + "." + rest
	case v1beta1.RegistryProviderGAR:
		host = strings.ReplaceAll(pattern, "*", "x")
	case v1beta1.RegistryProviderACR, v1beta1.RegistryProviderGHCR:
		fallthrough
	default:
		return "", fmt.Errorf("%s: with %s each registry has a login of its own, so patterns cannot be used with spec.identity; list each host",
			pattern, provider)
	}
	if !external.Serves(string(provider), host) {
		return "", fmt.Errorf("%s is not within the hosts of %s, so its login is not sent there", pattern, provider)
	}
	return host, nil
}

// ProxyHash is a hash of the proxy of s, credentials included.
func (s Store) ProxyHash() string {
	if s.Proxy == nil {
		return ""
	}
	parts := MapSlice(s.Proxy.AdditionalHosts, image.HostPattern.String)
	if own := s.Proxy.Own; own != nil {
		parts = append(parts, fmt.Sprintf("%q %t %q %q %q", own.Address, own.TLS, own.Username, own.Password, own.Roots))
	}
	return DigestOf(append(parts, TextOf(s.Proxy.Broken)))
}
