package compile

import (
	"net/url"
	"slices"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/remote/external"
)

// reaches returns what the condition Ready says about the servers that the verifiers of l
// need, by verifier: that of Sigstore's public-good root, and those that certificates name for
// revocation. cluster has the ClusterTrustStores.
func (l *level) reaches(cluster *level) map[policy.ObjectRef]string {
	said := map[policy.ObjectRef]string{}
	for _, e := range l.objects.verifiers {
		if usesPublicGood(e.spec) {
			said[e.source] = "; it needs " + external.PublicGoodHost + ", where Sigstore's public-good root is fetched"
		}
		if e.spec.Notation == nil || revocationOf(*e.spec.Notation) != v1beta1.RevocationModeCheck {
			continue
		}
		said[e.source] = "; revocation is checked, so the hosts that signing certificates name for it must be reachable and in --egress-host"
		var hosts []string
		for _, source := range trustStoresOf(l.objects.namespace, e.spec) {
			hosts = append(hosts, l.responders(source, cluster)...)
		}
		slices.Sort(hosts)
		if hosts = slices.Compact(hosts); len(hosts) > 0 {
			said[e.source] += ", among them " + joinNames(hosts)
		}
	}
	return said
}

// responders returns the hosts that certificates of a trust store name for revocation. A
// namespace is not told those of a ClusterTrustStore whose text it may not be shown.
func (l *level) responders(source policy.ObjectRef, cluster *level) (hosts []string) {
	from := l
	if source.Namespace == "" {
		from = cluster
	}
	t, ok := from.trustStores[source.Name]
	if !ok || from != l && !t.open {
		return nil
	}
	for _, certificate := range t.certificates {
		for _, address := range slices.Concat(certificate.OCSPServer, certificate.CRLDistributionPoints) {
			if u, err := url.Parse(address); err == nil && plainWord.MatchString(u.Host) {
				hosts = append(hosts, u.Host)
			}
		}
	}
	return hosts
}
