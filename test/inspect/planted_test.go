package inspect

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/inspect/doctor"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// planted breaks one thing. Those of one round are broken at once.
type planted struct {
	id doctor.ID
	// plant is the line that breaks it.
	plant string
	// edit is what a person does in the editor that the printed command opens, for sed.
	edit string
}

const (
	validating = "kubectl patch validatingwebhookconfiguration gatekeeper-validating-webhook-configuration --type=json --patch='[%s]'"
	manager    = "kubectl patch deployment gatekeeper-controller-manager --namespace=gatekeeper-system --type=json --patch='[%s]'"
	serve      = "kubectl patch deployment landwaiter --namespace=landwaiter-system --type=json --patch='[%s]'"
	images     = "kubectl patch verifiedimages verified-images --type=json --patch='[%s]'"
	older      = "kubectl patch customresourcedefinition verificationpolicies.landwaiter.dev --type=json --patch='[%s]'"
	guardrail  = "kubectl patch %s landwaiter-%s --type=merge --patch='%s'"
)

func add(path, value string) string {
	return fmt.Sprintf(`{"op":"add","path":"%s","value":%s}`, path, value)
}

func rounds() map[string][]planted {
	return map[string][]planted{
		"webhooks": {
			{id: doctor.WebhookFailsOpen, plant: fmt.Sprintf(validating, add("/webhooks/0/failurePolicy", `"Ignore"`))},
			{id: doctor.WebhookTimeout, plant: fmt.Sprintf(validating, add("/webhooks/0/timeoutSeconds", "3"))},
			{id: doctor.WebhookRules, plant: fmt.Sprintf(validating, add("/webhooks/0/rules/0/resources", `["*"]`))},
			{id: doctor.WebhookNamespaces, plant: fmt.Sprintf(validating, add("/webhooks/0/namespaceSelector/matchExpressions/1/values/-", `"team-b"`))},
			{id: doctor.WebhookObjects, plant: fmt.Sprintf(validating, add("/webhooks/0/objectSelector/matchLabels", `{"verify":"yes"}`))},
			{id: doctor.WebhookConditions, plant: fmt.Sprintf(validating, add("/webhooks/0/matchConditions/-", `{"name":"mine","expression":"request.namespace != '\''team-b'\''"}`))},
			{id: doctor.NamespaceIgnored, plant: "kubectl label namespace team-a admission.gatekeeper.sh/ignore=because"},
			{id: doctor.CacheTTL, plant: `kubectl get deployment gatekeeper-controller-manager --namespace=gatekeeper-system --output=yaml | sed "/resourceVersion:/d; s/cache-ttl=10s/cache-ttl=3m/" | kubectl replace --filename=-`},
			{id: doctor.ExternalDataDisabled, plant: fmt.Sprintf(manager, add("/spec/template/spec/containers/0/args/-", `"--enable-external-data=false"`))},
			{id: doctor.ExemptableNamespaces, plant: fmt.Sprintf(manager, add("/spec/template/spec/containers/0/args/-", `"--exempt-namespace-prefix=team-"`))},
			{id: doctor.AuditOff, plant: "kubectl scale deployment gatekeeper-audit --namespace=gatekeeper-system --replicas=0"},
			{id: doctor.ConfigIgnores, plant: apply(`{apiVersion: config.gatekeeper.sh/v1alpha1, kind: Config, metadata: {name: config, namespace: gatekeeper-system},
				spec: {match: [{excludedNamespaces: [kube-system, team-a], processes: ["*"]}]}}`)},
		},
		"providers": {
			{id: doctor.ProviderTimeout, plant: like("slow", "{{.spec.url}}", 2)},
			{id: doctor.ProviderURL, plant: like("astray", "https://localhost:1/verify", 3)},
			{id: doctor.ProviderCA, plant: apply(`{apiVersion: externaldata.gatekeeper.sh/v1beta1, kind: Provider, metadata: {name: second}, spec: {url: "https://localhost:1/v1/verify", timeout: 3, caBundle: ENDING}}
---
{apiVersion: constraints.gatekeeper.sh/v1beta1, kind: VerifiedImages, metadata: {name: second}, spec: {enforcementAction: dryrun, parameters: {provider: second}}}`)},
			{id: doctor.ProviderMissing, plant: apply(`{apiVersion: constraints.gatekeeper.sh/v1beta1, kind: VerifiedImages, metadata: {name: third}, spec: {enforcementAction: dryrun, parameters: {provider: nowhere}}}`)},
			{id: doctor.ConstraintExempt, plant: fmt.Sprintf(images, add("/spec/match/excludedNamespaces/-", `"team-a"`))},
			{id: doctor.TemplateChanged, plant: `sed "s/input.review.operation == .DELETE./input.review.operation != \"CREATE\"/" library/verified-images/template.yaml | kubectl apply --server-side --force-conflicts --filename=-`},
			{id: doctor.SingleReplica, plant: "kubectl scale deployment landwaiter --namespace=landwaiter-system --replicas=1"},
			{id: doctor.NoClientAuth, plant: fmt.Sprintf(serve, add("/spec/template/spec/containers/0/args/-", `"--insecure-no-client-auth"`))},
			{id: doctor.BroadAccess, plant: "kubectl create clusterrolebinding everybody --clusterrole=landwaiter-cluster-admin --group=platform --group=system:authenticated"},
			{id: doctor.RoleMissing, plant: "kubectl create clusterrolebinding before --clusterrole=landwaiter-cluster-viewer --group=team-a"},
			{id: doctor.GuardrailFailsOpen, plant: fmt.Sprintf(guardrail, "validatingadmissionpolicy", "tenant-labels", `{"spec":{"failurePolicy":"Ignore"}}`)},
			{id: doctor.GuardrailNotDeny, plant: fmt.Sprintf(guardrail, "validatingadmissionpolicybinding", "home-workloads", `{"spec":{"validationActions":["Audit"]}}`)},
		},
		"charts": {
			{id: doctor.VersionSkew, plant: "kubectl label customresourcedefinition stores.landwaiter.dev app.kubernetes.io/version=0.0.1 --overwrite"},
			{id: doctor.GuardrailMissing, plant: "kubectl delete validatingadmissionpolicy landwaiter-tokens"},
			{id: doctor.GuardrailNotDeny, plant: fmt.Sprintf(guardrail, "validatingadmissionpolicybinding", "namespace-names", `{"spec":{"paramRef":{"name":"one","selector":null}}}`)},
			{id: doctor.GuardrailChanged, plant: fmt.Sprintf(guardrail, "validatingadmissionpolicy", "home-accounts", `{"spec":{"validations":[{"expression":"true"}]}}`)},
		},
		"landwaiter":  {{id: doctor.NoLandwaiter, plant: "kubectl delete deployment landwaiter --namespace=landwaiter-system"}},
		"replicas":    {{id: doctor.NoReplicas, plant: "kubectl scale deployment landwaiter --namespace=landwaiter-system --replicas=0"}},
		"definitions": {{id: doctor.CRDsMissing, plant: "kubectl delete customresourcedefinition clusterquotas.landwaiter.dev"}},
		"warn":        {{id: doctor.NothingDenied, plant: `kubectl patch verifiedimages verified-images --type=merge --patch='{"spec":{"enforcementAction":"warn"}}'`}},
		"kinds":       {{id: doctor.ConstraintKinds, plant: fmt.Sprintf(images, add("/spec/match/kinds", `[{"apiGroups":["apps"],"kinds":["Deployment"]}]`))}},
		"constraint":  {{id: doctor.NoConstraint, plant: "kubectl delete verifiedimages --all"}},
		"gatekeeper":  {{id: doctor.NoGatekeeper, plant: "kubectl delete validatingwebhookconfiguration gatekeeper-validating-webhook-configuration"}},
		"authority":   {{id: doctor.WebhookCA, plant: fmt.Sprintf(validating, add("/webhooks/0/clientConfig/caBundle", `"ENDING"`))}},
		"lease":       {{id: doctor.LeaseStale, plant: `kubectl patch lease landwaiter --namespace=landwaiter-system --type=merge --patch='{"spec":{"renewTime":"2026-01-01T00:00:00.000000Z"}}'`}},
		"process": {
			{id: doctor.RedisEviction, plant: `redis-cli -e -u "$REDIS_URL" CONFIG SET maxmemory 100mb && redis-cli -e -u "$REDIS_URL" CONFIG SET maxmemory-policy noeviction`},
			{id: doctor.RedisPermissions, plant: `redis-cli -e -u "$REDIS_URL" ACL SETUSER landwaiter -set -unlink`},
			{id: doctor.RegistryUnreachable, edit: "s/127.0.0.1:9/REGISTRY/",
				plant: apply(`{apiVersion: landwaiter.dev/v1beta1, kind: ClusterStore, metadata: {name: gone}, spec: {registries: ["127.0.0.1:9"], insecurePlainHTTP: true}}`)},
		},
		// An older CRD let it in.
		"refused": {{id: doctor.ResourceInvalid, edit: "s/defaultAction: Perhaps/defaultAction: Allow/", plant: fmt.Sprintf(older, `{"op":"remove","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/defaultAction/enum"}`) + `
timeout 60 sh -c 'until echo "$0" | kubectl create --filename=-; do :; done' '{apiVersion: landwaiter.dev/v1beta1, kind: VerificationPolicy, metadata: {name: refused, namespace: team-a}, spec: {defaultAction: Perhaps}}'
` + fmt.Sprintf(older, add("/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/defaultAction/enum", `["Deny","Allow","Inherit"]`))}},
		// The printed command opens the Deployment: only its owner knows where that Redis is.
		"redis":    {{id: doctor.RedisUnreachable, plant: "true"}},
		"template": {{id: doctor.NoTemplate, plant: "kubectl delete constrainttemplate verifiedimages"}},
		"trust": {
			{id: doctor.TrustWithinReach, plant: team("team-a", "Secret") + apply(`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: devs, namespace: team-a}, rules: [{apiGroups: [""], resources: [secrets], verbs: [update]}]}`) +
				"\nkubectl create rolebinding devs --namespace=team-a --role=devs --group=devs" +
				"\nkubectl create rolebinding landwaiter-reference-reader --namespace=team-a --clusterrole=landwaiter-reference-reader --serviceaccount=landwaiter-system:landwaiter"},
			{id: doctor.ResourceNotReady, plant: team("team-b", "Secret")},
			{id: doctor.ResourceUnused, plant: apply(`{apiVersion: landwaiter.dev/v1beta1, kind: Verifier, metadata: {name: idle, namespace: team-b}, spec: {type: Cosign, cosign: {keys: {trustStoreRefs: [{name: keys}], insecureIgnoreTransparencyLog: true}}}}`)},
			{id: doctor.ResourceUnsatisfiable, plant: team("team-c", "Inline") + "\n" + `kubectl patch verificationpolicy release --namespace=team-c --type=merge --patch='{"spec":{"rules":[{"images":["**"],"require":[{"anyOf":["release"],"atLeast":5}]}]}}'`,
				edit: "s/atLeast: 5/atLeast: 1/"},
			{id: doctor.TrustEnds, plant: apply(`{apiVersion: v1, kind: Namespace, metadata: {name: team-d}}
---
{apiVersion: landwaiter.dev/v1beta1, kind: TrustStore, metadata: {name: roots, namespace: team-d}, spec: {type: Certificates, source: {inline: "ENDINGTEXT"}}}
---
{apiVersion: landwaiter.dev/v1beta1, kind: Verifier, metadata: {name: release, namespace: team-d}, spec: {type: Notation, notation: {trustStoreRefs: [{name: roots}], trustedIdentities: ["*"]}}}
---
{apiVersion: landwaiter.dev/v1beta1, kind: VerificationPolicy, metadata: {name: release, namespace: team-d}, spec: {rules: [{images: ["**"], require: [{anyOf: [release]}]}]}}`)},
		},
	}
}

// like returns the lines that make a Provider with the CA of Landwaiter's own, which
// it does not keep, and a constraint that names it.
func like(name, url string, seconds int) string {
	return fmt.Sprintf(`kubectl get providers.externaldata.gatekeeper.sh landwaiter-verify --output=go-template='{apiVersion: externaldata.gatekeeper.sh/v1beta1, kind: Provider, metadata: {name: %s},
  spec: {url: "%s", timeout: %d, caBundle: {{.spec.caBundle}}}}' | kubectl apply --server-side --filename=-
`, name, url, seconds) + apply(fmt.Sprintf(`{apiVersion: constraints.gatekeeper.sh/v1beta1, kind: VerifiedImages, metadata: {name: %s}, spec: {enforcementAction: dryrun, parameters: {provider: %s}}}`, name, name))
}

// apply returns the line that applies YAML.
func apply(yaml string) string {
	return "kubectl apply --server-side --filename=- <<'EOF'\n" + yaml + "\nEOF\n"
}

// team returns the lines that make a namespace with rules of its own.
func team(namespace, source string) string {
	where := `{inline: "KEY"}`
	if source == "Secret" {
		where = "{secretKeyRef: {name: keys, key: cosign.pub}}"
	}
	return apply(strings.ReplaceAll(`{apiVersion: v1, kind: Namespace, metadata: {name: NS}}
---
{apiVersion: v1, kind: Secret, metadata: {name: keys, namespace: NS}, stringData: {cosign.pub: "KEY"}}
---
{apiVersion: landwaiter.dev/v1beta1, kind: TrustStore, metadata: {name: keys, namespace: NS}, spec: {type: PublicKeys, source: `+where+`}}
---
{apiVersion: landwaiter.dev/v1beta1, kind: Verifier, metadata: {name: release, namespace: NS}, spec: {type: Cosign, cosign: {keys: {trustStoreRefs: [{name: keys}], insecureIgnoreTransparencyLog: true}}}}
---
{apiVersion: landwaiter.dev/v1beta1, kind: VerificationPolicy, metadata: {name: release, namespace: NS}, spec: {rules: [{images: ["**"], require: [{anyOf: [release]}]}]}}`, "NS", namespace))
}

// unplanted are the findings that no case here plants, with the test that does.
func unplanted() map[doctor.ID]string {
	// The processes of this test have one clock.
	return map[doctor.ID]string{doctor.ClockSkew: "TestAClockThatDiffersIsSaid in pkg/server/report",
		doctor.RevocationHostNotAllowed: "TestHostsThatRevocationNeedsAreNamed in pkg/inspect/doctor"} // no CA of these tests has a responder
}

func TestEachFindingIsPlantedAndExplained(t *testing.T) {
	page, err := os.ReadFile(suite.Root + "/docs/doctor.md")
	require.NoError(t, err)
	cases := map[doctor.ID]bool{}
	for _, round := range rounds() {
		for _, p := range round {
			cases[p.id] = true
		}
	}
	for _, id := range doctor.IDs() {
		require.True(t, cases[id] || unplanted()[id] != "", "no case of rounds plants %s, and unplanted does not say which test has it", id)
		require.Contains(t, string(page), "\n### "+string(id)+"\n", "docs/doctor.md does not explain it")
	}
	require.Len(t, doctor.IDs(), len(cases)+len(unplanted()))
}
