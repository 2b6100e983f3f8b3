package check

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/formats/trust"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// unreachable finds hosts that the certificates in trust stores name for revocation, and that
// serve may not contact. The hosts of signing certificates are only known once Landwaiter
// sees one.
func unreachable(v *view, add func(resource.Finding)) {
	if v.serve == nil {
		return
	}
	var listed []string
	for _, use := range v.serve.flags(egressFlag) {
		listed = append(listed, strings.Split(use.value, ",")...)
	}
	stores := map[policy.ObjectRef]v1beta1.Object{}
	for _, o := range v.Resources {
		stores[resource.RefOf(o)] = o
	}
	for _, o := range v.Resources {
		n := notationOf(o)
		if n == nil || n.Revocation == v1beta1.RevocationModeIgnore || n.Revocation == "" && n.AWSSigner != nil {
			continue
		}
		var missing []string
		for _, ref := range anchorsOf(n) {
			for _, u := range responders(stores[storeOf(o, ref)]) {
				if !allowed(listed, u) {
					missing = append(missing, u.Host)
				}
			}
		}
		if slices.Sort(missing); len(missing) == 0 {
			continue
		}
		missing = slices.Compact(missing)
		var added []operation
		for _, host := range missing {
			added = append(added, v.serve.added("--"+egressFlag+"="+host))
		}
		add(resource.Finding{ID: RevocationHostNotAllowed, Severity: resource.Warning, Object: resource.RefOf(o),
			Message: fmt.Sprintf("it checks revocation, and certificates that it trusts name hosts that --%s lacks: %s", egressFlag,
				strings.Join(missing, ", ")),
			Why: "the revocation status of these certificates is unknown, so images whose signatures need them are denied (level Strict) or " +
				"only reported (Permissive)", Command: v.serve.patch(added...),
			Keep: "the chart's value egressHosts"})
	}
}

// allowed reports whether the flag contains the host of an address, for its port or for the
// standard ones.
func allowed(listed []string, u *url.URL) bool {
	standard := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	port := cmp.Or(u.Port(), standard)
	return slices.ContainsFunc(listed, func(entry string) bool {
		return strings.EqualFold(entry, u.Hostname()+":"+port) || port == standard && strings.EqualFold(entry, u.Hostname())
	})
}

// notationOf returns the notation settings of a Verifier or ClusterVerifier, nil for others.
func notationOf(o v1beta1.Object) *v1beta1.NotationVerifier {
	switch o := o.(type) {
	case *v1beta1.Verifier:
		return o.Spec.Notation
	case *v1beta1.ClusterVerifier:
		return o.Spec.Notation
	}
	return nil
}

// anchorsOf returns the trust stores whose certificates may be part of a chain.
func anchorsOf(n *v1beta1.NotationVerifier) []v1beta1.TrustStoreRef {
	all := slices.Clone(n.TrustStoreRefs)
	if n.SigningAuthorities != nil {
		all = append(all, n.SigningAuthorities.TrustStoreRefs...)
	}
	if n.Timestamps != nil {
		all = append(all, n.Timestamps.TrustStoreRefs...)
	}
	return all
}

// storeOf returns the trust store that a Verifier names.
func storeOf(verifier v1beta1.Object, ref v1beta1.TrustStoreRef) policy.ObjectRef {
	if verifier.GetNamespace() == "" || ref.Kind == v1beta1.TrustStoreKindClusterTrustStore {
		return policy.ObjectRef{Kind: v1beta1.KindClusterTrustStore, Name: ref.Name}
	}
	return policy.ObjectRef{Kind: v1beta1.KindTrustStore, Namespace: verifier.GetNamespace(), Name: ref.Name}
}

// responders returns the revocation addresses in the certificates of a trust store with
// inline text.
func responders(o v1beta1.Object) (list []*url.URL) {
	spec := trustOf(o)
	if spec == nil {
		return nil
	}
	certificates, err := trust.ParseCertificates([]byte(spec.Source.Inline))
	if err != nil {
		return nil
	}
	for _, certificate := range certificates {
		for _, address := range slices.Concat(certificate.OCSPServer, certificate.CRLDistributionPoints) {
			if u, err := url.Parse(address); err == nil && u.Host != "" {
				list = append(list, u)
			}
		}
	}
	return list
}
