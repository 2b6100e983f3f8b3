//go:build e2e || nightly

package teams

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// stub is a kind of others without its schema.
type stub struct{ group, version, kind, plural string }

// pieced are the kinds of the chart's pieces.
func pieced() map[string][]stub {
	const images, notifications = "image.toolkit.fluxcd.io", "notification.toolkit.fluxcd.io"
	return map[string][]stub{
		"flux-images": {{images, "v1", "ImageRepository", "imagerepositories"}, {images, "v1", "ImagePolicy", "imagepolicies"},
			{images, "v1", "ImageUpdateAutomation", "imageupdateautomations"}},
		"flux-notifications": {{notifications, "v1beta3", "Alert", "alerts"}, {notifications, "v1beta3", "Provider", "providers"},
			{notifications, "v1", "Receiver", "receivers"}},
		"secret-provider-classes": {{"secrets-store.csi.x-k8s.io", "v1", "SecretProviderClass", "secretproviderclasses"}},
		"push-secrets":            {{"external-secrets.io", "v1alpha1", "PushSecret", "pushsecrets"}},
		"certificates":            {{"cert-manager.io", "v1", "Certificate", "certificates"}},
		"gateway-routes": {{"gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes"}, {"gateway.networking.k8s.io", "v1", "GRPCRoute", "grpcroutes"},
			{"gateway.networking.k8s.io", "v1", "TLSRoute", "tlsroutes"}},
		"monitors": {{"monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors"}, {"monitoring.coreos.com", "v1", "PodMonitor", "podmonitors"}},
	}
}

// stubs are the CRDs of the pieces' kinds and of those beside them, and the role that their charts add to edit
// and admin.
func stubs() []*unstructured.Unstructured {
	kinds := []stub{{"external-secrets.io", "v1", "ExternalSecret", "externalsecrets"}, {"cert-manager.io", "v1", "Issuer", "issuers"}}
	for _, of := range pieced() {
		kinds = append(kinds, of...)
	}
	var all []*unstructured.Unstructured
	for _, s := range kinds {
		definition := suite.Object("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %[4]s.%[1]s}, spec: {group: %[1]s, "+
			"scope: Namespaced, names: {kind: %[3]s, listKind: %[3]sList, plural: %[4]s, singular: %[5]s}, "+
			"versions: [{name: %[2]s, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}", s.group,
			s.version, s.kind, s.plural, strings.ToLower(s.kind))
		if s.group == "gateway.networking.k8s.io" { // Kubernetes asks for it below k8s.io
			definition.SetAnnotations(map[string]string{"api-approved.kubernetes.io": "unapproved, for a test"})
		}
		all = append(all, definition)
	}
	return append(all,
		suite.Object("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: secrets-edit, labels: "+
			"{rbac.authorization.k8s.io/aggregate-to-edit: 'true', rbac.authorization.k8s.io/aggregate-to-admin: 'true'}}, "+
			"rules: [{apiGroups: [external-secrets.io, cert-manager.io, secrets-store.csi.x-k8s.io], resources: [externalsecrets, pushsecrets, certificates, issuers, "+
			"secretproviderclasses], verbs: [get, list, create, update, patch, delete]}]}"))
}

// aggregator fills in ClusterRoles, and may change each of them.
func aggregator() persona { return accountOf("kube-system", "clusterrole-aggregation-controller") }

const piece = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: piece, labels: " +
	"{landwaiter.dev/aggregate-to-reconciler: 'true'}}, %s}"

func attacksOnPieces() []attack {
	const rule, label1 = "reconciler-pieces", "landwaiter.dev/aggregate-to-reconciler"
	all := []attack{
		{"make another role a piece", aggregator(), rule, "", "only the platform may change what ClusterRole view gives",
			change("ClusterRole", "", "view", label(label1, `"true"`))},
		{"make it one by another value", aggregator(), rule, "", "only the platform", change("ClusterRole", "", "view", label(label1, `"x"`))},
		{"empty the base piece", aggregator(), rule, "", "only the platform", change("ClusterRole", "", "landwaiter-reconciler-base", `{"rules":[]}`)},
		{"take the base piece away from all accounts", aggregator(), rule, "", "only the platform",
			change("ClusterRole", "", "landwaiter-reconciler-base", label(label1, "null"))},
		{"make cluster-admin a piece, as the platform", platform(), rule, "", "must not have *", change("ClusterRole", "", "cluster-admin", label(label1, `"true"`))},
	}
	for says, rules := range map[string]string{
		"rbac.authorization.k8s.io":    "{apiGroups: [rbac.authorization.k8s.io], resources: [clusterrolebindings], verbs: [create]}",
		"admissionregistration.k8s.io": "{apiGroups: [admissionregistration.k8s.io], resources: [validatingwebhookconfigurations], verbs: [delete]}",
		"landwaiter.dev":               "{apiGroups: [landwaiter.dev], resources: [tenants], verbs: [update]}",
		"openreports.io":               "{apiGroups: [openreports.io], resources: [reports], verbs: [create]}",
		"constraints.gatekeeper.sh":    "{apiGroups: [constraints.gatekeeper.sh], resources: [verifiedimages], verbs: [delete]}",
		"clustersecretstores":          "{apiGroups: [external-secrets.io], resources: [clustersecretstores], verbs: [create]}",
		"clusterexternalsecrets":       "{apiGroups: [external-secrets.io], resources: [clusterexternalsecrets], verbs: [create]}",
		"clusterpushsecrets":           "{apiGroups: [external-secrets.io], resources: [clusterpushsecrets], verbs: [create]}",
		"clusterissuers":               "{apiGroups: [cert-manager.io], resources: [clusterissuers], verbs: [create]}",
		"core":                         "{apiGroups: [''], resources: [nodes], verbs: [get]}",
		"impersonate":                  "{apiGroups: [example.com], resources: [things], verbs: [impersonate]}",
		"bind":                         "{apiGroups: [example.com], resources: [things], verbs: [bind]}",
		"escalate":                     "{apiGroups: [example.com], resources: [things], verbs: [escalate]}",
		"things/*":                     "{apiGroups: [example.com], resources: [things/*], verbs: [get]}",
		"*.example.com":                "{apiGroups: ['*.example.com'], resources: [things], verbs: [get]}",
		"nonResourceURLs":              "{nonResourceURLs: [/metrics], verbs: [get]}",
	} {
		all = append(all, attack{"give all accounts " + says + " by a piece, as the platform", platform(), rule, "", "must not have " + says,
			create(piece, "rules: [{apiGroups: [example.com], resources: [things], verbs: [get]}, "+rules+"]")})
	}
	return append(all,
		attack{"have a piece filled in by others", platform(), rule, "", "must not have aggregationRule",
			create(piece, "aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}")})
}

// Objects by which controllers write Secrets.
const (
	external = "{apiVersion: external-secrets.io/v1, kind: ExternalSecret, metadata: {namespace: %s, name: %s}, spec: {secretStoreRef: {name: x}%s}}"
	push     = "{apiVersion: external-secrets.io/v1alpha1, kind: PushSecret, metadata: {namespace: %s, name: x}, spec: {secretStoreRefs: [{name: x}], %s}}"
	provided = "{apiVersion: secrets-store.csi.x-k8s.io/v1, kind: SecretProviderClass, metadata: {namespace: %s, name: x}, spec: {provider: vault, " +
		"secretObjects: [{secretName: other, type: Opaque}, {secretName: %s, type: Opaque}]}}"
	certs = "{apiVersion: cert-manager.io/v1, kind: %s, metadata: {namespace: %s, name: x}, spec: {%s}}"
)

func externalSecrets() persona { return accountOf("external-secrets", "external-secrets") }

func attacksOnSecrets() []attack {
	const keys, logins, says = "secrets-of-truststores", "secrets-of-stores", "would write Secret keys, which TrustStore keys names"
	return []attack{
		{"have external-secrets write the team's key", green(), keys, "", says, create(external, "iris-green", "x", ", target: {name: keys}")},
		{"have it do so by the object's own name", green(), keys, "", says, create(external, "iris-green", "keys", "")},
		{"have it do so by an empty name", greenDev(), keys, "", says, create(external, "iris-green-web", "keys", ", target: {name: ''}")},
		{"have it write the team's login", greenDev(), logins, "", "would write Secret login, which Store registry names",
			create(external, "iris-green-web", "x", ", target: {name: login}")},
		{"push over the team's key", greenAdmin(), keys, "", says,
			create(push, "iris-green", "data: [{match: {secretKey: x, remoteRef: {remoteKey: other}}}, {match: {secretKey: x, remoteRef: {remoteKey: keys}}}]")},
		{"push under every name", greenAdmin(), keys, logins, "leave out spec.dataTo", create(push, "iris-green", "dataTo: [{storeRef: {name: x}}]")},
		{"have cert-manager write the team's key", greenAdmin(), keys, "", says,
			create(certs, "Certificate", "iris-green", "secretName: keys, issuerRef: {name: x}")},
		{"have it do so for an account of an authority", greenAdmin(), keys, "", says,
			create(certs, "Issuer", "iris-green", "acme: {server: 'https://example.com', privateKeySecretRef: {name: keys}}")},
		{"have the CSI driver write it", greenDev(), keys, "", says, create(provided, "iris-green-web", "keys")},
		{"write the team's key as external-secrets", externalSecrets(), keys, "", "bind it to ClusterRole landwaiter-rules-writer there",
			change("Secret", "iris-green", "keys", `{"data":{"cosign.pub":"eQ=="}}`)},
		{"write the team's login as cert-manager", accountOf("cert-manager", "cert-manager"), logins, "", "is named by Store registry",
			change("Secret", "iris-green-web", "login", `{"data":{"x":"eQ=="}}`)},
	}
}

// neededOfPieces is what must pass.
func neededOfPieces() map[string]allowed {
	return map[string]allowed{
		"the platform adds a piece with " +
			"kinds of others": {platform(), create(piece, "rules: [{apiGroups: [example.com], resources: [things, things/status], verbs: [get, update]}]")},
		"somebody notes something on a piece": {aggregator(),
			change("ClusterRole", "", "landwaiter-reconciler-base", `{"metadata":{"annotations":{"a":"b"}}}`)},
		"the aggregator fills in a role that is no piece": {aggregator(), change("ClusterRole", "", "landwaiter-reconciler", `{"rules":[]}`)},
		"a team has another Secret written":               {green(), create(external, "iris-green", "keys", ", target: {name: other}")},
		"a team pushes another Secret": {greenAdmin(),
			create(push, "iris-green", "data: [{match: {secretKey: x, remoteRef: {remoteKey: other}}}]")},
		"a team has a certificate": {greenDev(),
			create(certs, "Certificate", "iris-green-web", "secretName: web-tls, issuerRef: {name: x, kind: ClusterIssuer}")},
		"a team has an authority of its own":                    {greenDev(), create(certs, "Issuer", "iris-green-web", "selfSigned: {}")},
		"a team names what the CSI driver mounts":               {greenDev(), create(provided, "iris-green-web", "other")},
		"the platform has the team's login written":             {platform(), create(external, "iris-green", "x", ", target: {name: login}")},
		"the account writes the key that the team's rules name": {green(), change("Secret", "iris-green", "keys", `{"data":{"cosign.pub":"eQ=="}}`)},
		"the platform writes it":                                {platform(), change("Secret", "iris-green", "keys", `{"data":{"cosign.pub":"eQ=="}}`)},
		"external-secrets writes what no rule names": {externalSecrets(),
			create("{apiVersion: v1, kind: Secret, metadata: {namespace: iris-green, name: other}}")},
		"external-secrets labels what rules name": {externalSecrets(), change("Secret", "iris-green", "keys", label("a", `"b"`))},
		"external-secrets writes keys where it is bound to " +
			"rules-writer": {externalSecrets(), change("Secret", "iris-red", "keys", `{"data":{"cosign.pub":"eQ=="}}`)},
		"external-secrets writes keys where " +
			"no Tenant is": {externalSecrets(), create("{apiVersion: v1, kind: Secret, metadata: {namespace: payments, name: keys}}")},
		"somebody asks a controller again about what is older than a rule": {greenAdmin(), change("ExternalSecret", "iris-green", "older", label("a", `"b"`))},
	}
}

// allowed is a request that must pass.
type allowed struct {
	who persona
	try request
}
