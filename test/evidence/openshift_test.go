//go:build e2e

package evidence

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
)

// OpenShift's registry has a certificate of the cluster's service CA, which OpenShift writes into annotated ConfigMaps,
// and gives each ServiceAccount a pull secret of the older form with every name of the registry.
func TestImagesOfOpenShiftsInternalRegistryAreVerified(t *testing.T) {
	const service, long = "image-registry.openshift-image-registry.svc:5000", "image-registry.openshift-image-registry.svc.cluster.local:5000"
	key, serviceCA := newKey(t), newAuthority(t, "openshift-service-serving-signer")
	r := startRegistry(t, key, serviceCA, nil, strings.TrimSuffix(service, ":5000"), strings.TrimSuffix(long, ":5000"))
	login(r.Registry, "serviceaccount", "token-a")
	p := startProxy(t, map[string]string{service: r.host, long: r.host})

	account := func(namespace, name string) string {
		return fmt.Sprintf("---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: %[2]s, namespace: %[1]s}\nsecrets: [{name: "+
			"%[2]s-dockercfg-7x2kd}]\nimagePullSecrets: [{name: %[2]s-dockercfg-7x2kd}]\n", namespace, name)
	}
	dockercfg := func(namespace, name, token string) string {
		entry := fmt.Sprintf(`{"username":"serviceaccount","password":%q,"email":"serviceaccount@example.org","auth":%q}`, token,
			base64.StdEncoding.EncodeToString([]byte("serviceaccount:"+token)))
		return secret(namespace, name+"-dockercfg-7x2kd", "kubernetes.io/dockercfg", map[string]string{
			".dockercfg": fmt.Sprintf(`{"172.30.15.7:5000":%[1]s,"default-route-openshift-image-registry.apps.example.com":%[1]s,%[2]q:%[1]s,%[3]q:%[1]s}`, entry,
				long, service)})
	}
	configMap := func(namespace string, ca *fixture.Authority) string {
		return fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: openshift-service-ca, namespace: %s, annotations: "+
			"{service.beta.openshift.io/inject-cabundle: \"true\"}}\ndata:\n  service-ca.crt: |\n    %s\n",
			namespace, strings.ReplaceAll(strings.TrimSpace(string(ca.CertificatePEM)), "\n", "\n    "))
	}
	const bundle = "caBundle: {configMapKeyRef: {name: openshift-service-ca, key: service-ca.crt}}"
	pulls := func(account string) string {
		return "imagePullSecretsFrom: {serviceAccount: {name: " + account + "}}"
	}
	proxy := `proxy: {url: "` + p.url() + `"}` // the name resolves in OpenShift alone
	cluster := func(lines ...string) string {
		return store("", "openshift-registry", []string{service, long}, nil, append(lines, proxy)...)
	}
	s := serve(t, map[string]string{
		"cluster": cluster(bundle, pulls("landwaiter-pull")),
		"account": account("landwaiter-system", "landwaiter-pull") + dockercfg("landwaiter-system", "landwaiter-pull", "token-a") +
			configMap("landwaiter-system", serviceCA),
		"team-a": rules("team-a", key),
		"team-b": rules("team-b", key) + store("team-b", "own", []string{service}, nil, bundle, pulls("default")) +
			account("team-b", "default") + dockercfg("team-b", "default", "token-of-another") + configMap("team-b", serviceCA),
	})
	for _, host := range []string{service, long} {
		s.requireVerdict(t, gatekeeper.Allowed, "team-a", host+r.image)
	}
	s.requireVerdict(t, gatekeeper.Denied, "team-b", service+r.image, "refuses access", "renew the login")

	// The service CA is replaced every 26 months; a token at any time.
	s.write(t, "cluster", cluster(pulls("landwaiter-pull")))
	s.requireVerdict(t, undecided, "team-a", service+"/team/app:v1", "certificate that is not trusted")
	s.write(t, "cluster", cluster(bundle))
	s.requireVerdict(t, gatekeeper.Denied, "team-a", service+"/team/app:v1", "asks for a user name and password")
	s.write(t, "cluster", cluster(bundle, pulls("gone")))
	s.requireVerdict(t, gatekeeper.Denied, "team-a", service+r.image, "ClusterStore openshift-registry cannot be used")
}
