package conditions

import (
	"crypto/x509"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// reaches returns the text of the condition Ready about the servers that the verifiers of l
// need, by verifier. cluster has the ClusterTrustStores.
func reaches(l *resolve.Level, cluster *resolve.Level) map[policy.ObjectRef]string {
	said := map[policy.ObjectRef]string{}
	for _, e := range resolve.EntriesOf[v1beta1.VerifierSpec](l.Objects) {
		var certificates []*x509.Certificate
		for _, source := range compile.TrustStoresOf(l.Objects.Namespace, e.Spec) {
			certificates = append(certificates, certificatesOf(l, source, cluster)...)
		}
		said[e.Source] = compile.Reaches(e.Spec, certificates)
	}
	return said
}

// certificatesOf returns the certificates of a trust store. Namespaces do not see the
// certificates of a ClusterTrustStore whose text they may not see.
func certificatesOf(l *resolve.Level, source policy.ObjectRef, cluster *resolve.Level) []*x509.Certificate {
	from := l
	if source.Namespace == "" {
		from = cluster
	}
	t, ok := from.TrustStores[source.Name]
	if !ok || from != l && !t.Open {
		return nil
	}
	return t.Certificates
}

// noted returns the notes of the condition Ready: about Secrets and ConfigMaps that let people other
// than admins decide what is trusted, and about ignored entries of pull secrets.
func noted(l *resolve.Level) map[policy.ObjectRef]string {
	said := map[policy.ObjectRef]string{}
	add := func(found []resource.Exposure) {
		for _, f := range found {
			said[f.Resource] += ". Note: " + f.String()
		}
	}
	for _, e := range resolve.EntriesOf[v1beta1.TrustStoreSpec](l.Objects) {
		add(resource.ExposuresOf(e.Source, &e.Spec))
	}
	for _, e := range resolve.EntriesOf[v1beta1.StoreSpec](l.Objects) {
		add(resource.ExposuresOf(e.Source, &e.Spec))
	}
	for source, ignored := range l.Ignored() { // last, so that they displace nothing
		said[source] += ". Note: " + strings.Join(ignored, ". Note: ")
	}
	return said
}
