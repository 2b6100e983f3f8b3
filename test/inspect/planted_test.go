package inspect

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/inspect/check"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// planted breaks one thing. Those of one round are broken at once.
type planted struct {
	id string
	// plant is the line that breaks it.
	plant string
	// edit is what a person does in the editor that the printed command opens, for sed.
	edit string
	// mend is what that person runs where the finding has no command, because the cause may be anywhere.
	mend string
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
			{id: check.WebhookFailsOpen, plant: fmt.Sprintf(validating, add("/webhooks/0/failurePolicy", `"Ignore"`))},
			{id: check.WebhookTimeout, plant: fmt.Sprintf(validating, add("/webhooks/0/timeoutSeconds", "3"))},
			{id: check.WebhookRules, plant: fmt.Sprintf(validating, add("/webhooks/0/rules/0/resources", `["*"]`))},
			{id: check.WebhookNamespaces, plant: fmt.Sprintf(validating, add("/webhooks/0/namespaceSelector/matchExpressions/1/values/-", `"team-b"`))},
			{id: check.WebhookObjects, plant: fmt.Sprintf(validating, add("/webhooks/0/objectSelector/matchLabels", `{"verify":"yes"}`))},
			{id: check.WebhookConditions,
				plant: fmt.Sprintf(validating, add("/webhooks/0/matchConditions/-", `{"name":"mine","expression":"request.namespace != '\''team-b'\''"}`))},
			{id: check.NamespaceIgnored, plant: "kubectl label namespace team-a admission.gatekeeper.sh/ignore=because"},
			{id: check.CacheTTL, plant: `kubectl get deployment gatekeeper-controller-manager --namespace=gatekeeper-system --output=yaml | sed "/resourceVersion:/d; ` +
				`s/cache-ttl=10s/cache-ttl=3m/" | kubectl replace --filename=-`},
			{id: check.ServingThreads, plant: `kubectl get deployment gatekeeper-controller-manager --namespace=gatekeeper-system --output=yaml | sed ` +
				`"/resourceVersion:/d; s/serving-threads=64/serving-threads=-1/" | kubectl replace --filename=-`},
			{id: check.ExternalDataDisabled, plant: fmt.Sprintf(manager, add("/spec/template/spec/containers/0/args/-", `"--enable-external-data=false"`))},
			{id: check.ExemptableNamespaces, plant: fmt.Sprintf(manager, add("/spec/template/spec/containers/0/args/-", `"--exempt-namespace-prefix=team-"`))},
			{id: check.AuditOff, plant: "kubectl scale deployment gatekeeper-audit --namespace=gatekeeper-system --replicas=0"},
			{id: check.ConfigIgnores, plant: apply(`{apiVersion: config.gatekeeper.sh/v1alpha1, kind: Config, metadata: {name: config, namespace: gatekeeper-system},
				spec: {match: [{excludedNamespaces: [kube-system, team-a], processes: ["*"]}]}}`)},
		},
		"providers": {
			{id: check.ProviderTimeout, plant: like("slow", "{{.spec.url}}", 2)},
			{id: check.ProviderURL, plant: like("astray", "https://localhost:1/verify", 3)},
			{id: check.ProviderCA,
				plant: apply(
					`{apiVersion: externaldata.gatekeeper.sh/v1beta1, kind: Provider, metadata: {name: second}, spec: {url: "https://localhost:1/v1/verify", timeout: 3, caBundle: ENDING}}
---
{apiVersion: constraints.gatekeeper.sh/v1beta1, kind: VerifiedImages, metadata: {name: second}, spec: {enforcementAction: dryrun, parameters: {provider: second}}}`)},
			{id: check.ProviderMissing,
				plant: apply(`{apiVersion: constraints.gatekeeper.sh/v1beta1, kind: VerifiedImages, metadata: {name: third}, spec: {enforcementAction: dryrun, ` +
					`parameters: {provider: nowhere}}}`)},
			{id: check.ConstraintExempt, plant: fmt.Sprintf(images, add("/spec/match/excludedNamespaces/-", `"team-a"`))},
			{id: check.ImagesExempt, plant: fmt.Sprintf(images, add("/spec/parameters/exemptImages", `["registry.example.com/*"]`))},
			{id: check.TemplateChanged, plant: `sed "s/input.review.operation == .DELETE./input.review.operation != \"CREATE\"/" ` +
				`library/verified-images/template.yaml | kubectl apply --server-side --force-conflicts --filename=-`},
			{id: check.SingleReplica, plant: "kubectl scale deployment landwaiter --namespace=landwaiter-system --replicas=1"},
			{id: check.NoClientAuth, plant: fmt.Sprintf(serve, add("/spec/template/spec/containers/0/args/-", `"--insecure-no-client-auth"`))},
			{id: check.BroadAccess, plant: "kubectl create clusterrolebinding everybody --clusterrole=landwaiter-cluster-admin --group=platform " +
				"--group=system:authenticated"},
			{id: check.GuardrailFailsOpen, plant: fmt.Sprintf(guardrail, "validatingadmissionpolicy", "tenant-labels", `{"spec":{"failurePolicy":"Ignore"}}`)},
			{id: check.GuardrailNotDeny,
				plant: fmt.Sprintf(guardrail, "validatingadmissionpolicybinding", "home-workloads", `{"spec":{"validationActions":["Audit"]}}`)},
		},
		"charts": {
			{id: check.VersionSkew, plant: "kubectl label customresourcedefinition stores.landwaiter.dev app.kubernetes.io/version=0.0.1 --overwrite"},
			{id: check.GuardrailMissing, plant: "kubectl delete validatingadmissionpolicy landwaiter-tokens"},
			{id: check.GuardrailNotDeny,
				plant: fmt.Sprintf(guardrail, "validatingadmissionpolicybinding", "namespace-names", `{"spec":{"paramRef":{"name":"one","selector":null}}}`)},
			{id: check.GuardrailChanged,
				plant: fmt.Sprintf(guardrail, "validatingadmissionpolicy", "home-accounts", `{"spec":{"validations":[{"expression":"true"}]}}`)},
		},
		"landwaiter":  {{id: check.NoLandwaiter, plant: "kubectl delete deployment landwaiter --namespace=landwaiter-system"}},
		"replicas":    {{id: check.NoReplicas, plant: "kubectl scale deployment landwaiter --namespace=landwaiter-system --replicas=0"}},
		"definitions": {{id: check.CRDsMissing, plant: "kubectl delete customresourcedefinition clusterquotas.landwaiter.dev"}},
		"warn": {
			{id: check.NothingDenied, plant: `kubectl patch verifiedimages verified-images --type=merge --patch='{"spec":{"enforcementAction":"warn"}}'`}},
		"kinds":      {{id: check.ConstraintKinds, plant: fmt.Sprintf(images, add("/spec/match/kinds", `[{"apiGroups":["apps"],"kinds":["Deployment"]}]`))}},
		"constraint": {{id: check.NoConstraint, plant: "kubectl delete verifiedimages --all"}},
		"gatekeeper": {{id: check.NoGatekeeper, plant: "kubectl delete validatingwebhookconfiguration gatekeeper-validating-webhook-configuration"}},
		"authority":  {{id: check.WebhookCA, plant: fmt.Sprintf(validating, add("/webhooks/0/clientConfig/caBundle", `"ENDING"`))}},
		"lease": {{id: check.LeaseStale, plant: `kubectl patch lease landwaiter --namespace=landwaiter-system --type=merge ` +
			`--patch='{"spec":{"renewTime":"2026-01-01T00:00:00.000000Z"}}'`}},
		"process": {
			{id: check.RedisEviction, plant: `redis-cli -e -u "$REDIS_URL" CONFIG SET maxmemory 100mb && redis-cli -e -u "$REDIS_URL" CONFIG SET ` +
				`maxmemory-policy noeviction`},
			{id: check.RedisPermissions, plant: `redis-cli -e -u "$REDIS_URL" ACL SETUSER landwaiter -set -unlink`},
			{id: check.RegistryUnreachable, mend: "kubectl edit clusterstore.landwaiter.dev gone", edit: "s/127.0.0.1:9/REGISTRY/",
				plant: apply(`{apiVersion: landwaiter.dev/v1beta1, kind: ClusterStore, metadata: {name: gone}, spec: {registries: ["127.0.0.1:9"], ` +
					`insecurePlainHTTP: true}}`)},
		},
		// An older CRD let it in.
		"refused": {{id: check.ResourceInvalid, edit: "s/defaultAction: Perhaps/defaultAction: Deny/",
			plant: fmt.Sprintf(older, `{"op":"remove","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/defaultAction/enum"}`) + `
timeout 60 sh -c 'until echo "$0" | kubectl create --filename=-; do :; done' '{apiVersion: landwaiter.dev/v1beta1, kind: VerificationPolicy, metadata: {name: refused, namespace: team-a}, spec: {defaultAction: Perhaps}}'
` + fmt.Sprintf(older, add("/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/defaultAction/enum", `["Deny","Allow","Inherit"]`))}},
		// No operator runs here.
		"stuck": {
			{id: check.TenantStuck,
				plant: apply(`{apiVersion: landwaiter.dev/v1beta1, kind: Tenant, metadata: {name: stuck, finalizers: [landwaiter.dev/operator]}, spec: `+
					`{homeNamespace: team-a}}`) +
					"\nkubectl delete tenant.landwaiter.dev stuck --wait=false"}},
		// No command is printed: only its owner knows where that Redis is.
		"redis":    {{id: check.RedisUnreachable, plant: "true"}},
		"template": {{id: check.NoTemplate, plant: "kubectl delete constrainttemplate verifiedimages"}},
		"trust": {
			{id: check.TrustWithinReach, plant: team("team-a", "Secret") +
				apply(`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: devs, namespace: team-a}, rules: [{apiGroups: [""], resources: [secrets], `+
					`verbs: [update]}]}`) +
				"\nkubectl create rolebinding devs --namespace=team-a --role=devs --group=devs" +
				"\nkubectl create rolebinding landwaiter-reference-reader --namespace=team-a --clusterrole=landwaiter-reference-reader " +
				"--serviceaccount=landwaiter-system:landwaiter"},
			{id: check.ResourceNotReady, plant: team("team-b", "Secret")},
			// In a namespace whose policy is not Ready, the policy might require it: its command would not delete it.
			{id: check.ResourceUnused, plant: team("team-e", "Inline") + "\n" +
				apply(`{apiVersion: landwaiter.dev/v1beta1, kind: Verifier, metadata: {name: idle, namespace: team-e}, spec: {type: Cosign, cosign: {keys: `+
					`{trustStoreRefs: [{name: keys}], insecureIgnoreTransparencyLog: true}}}}`)},
			{id: check.ResourceUnsatisfiable, plant: team("team-c", "Inline") + "\n" + `kubectl patch verificationpolicy release --namespace=team-c --type=merge ` +
				`--patch='{"spec":{"rules":[{"images":["**"],"require":[{"anyOf":["release"],"atLeast":5}]}]}}'`,
				edit: "s/atLeast: 5/atLeast: 1/"},
			{id: check.TrustEnds, plant: apply(`{apiVersion: v1, kind: Namespace, metadata: {name: team-d}}
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
	return fmt.Sprintf(
		`kubectl get providers.externaldata.gatekeeper.sh landwaiter-verify --output=go-template='{apiVersion: externaldata.gatekeeper.sh/v1beta1, kind: Provider, metadata: {name: %s},
  spec: {url: "%s", timeout: %d, caBundle: {{.spec.caBundle}}}}' | kubectl apply --server-side --filename=-
`, name, url, seconds) +
		apply(fmt.Sprintf(`{apiVersion: constraints.gatekeeper.sh/v1beta1, kind: VerifiedImages, metadata: {name: %s}, spec: {enforcementAction: dryrun, `+
			`parameters: {provider: %s}}}`, name, name))
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
func unplanted() map[string]string {
	// The processes of this test have one clock.
	return map[string]string{check.ClockSkew: "TestAClockThatDiffersIsSaid in pkg/server/report",
		// the printed command restarts pods, which do not exist here
		check.NoAnswer: "TestAFrozenServerIsTheFirstFindingOfCheck in test/inspect",
		// a planted annotation is not a Secret that somebody writes
		check.CertificateContested:                 "TestFindsWhatIsBroken in pkg/inspect/check",
		check.ShortNames:                           "TestNodesThatLookElsewhereForNamesWithoutAHostAreNamed in pkg/inspect/check", // nothing in a cluster mends it
		string(policy.ReasonIdentityForAnyone):     "TestWhatNeedsAReviewIsFound in pkg/inspect/check",                            // in a cluster: test/admission
		string(policy.ReasonIdentityTooBroad):      "TestWhatNeedsAReviewIsFound in pkg/inspect/check",
		string(policy.ReasonIdentityMatchesNobody): "TestWhatNeedsAReviewIsFound in pkg/inspect/check",
		string(policy.ReasonRuleTooBroad):          "TestWhatNeedsAReviewIsFound in pkg/inspect/check",
		string(policy.ReasonRuleNeverReached):      "TestWhatNeedsAReviewIsFound in pkg/inspect/check",
		string(policy.ReasonPlaceholder):           "TestWhatNeedsAReviewIsFound in pkg/inspect/check",
		string(policy.ReasonPublishedKey):          "TestWhatNeedsAReviewIsFound in pkg/inspect/check",
		check.ReferrersMissing:                     "TestARegistryWithoutReferrersIsANote in pkg/inspect/check", // the registry of this test has them
		check.RevocationHostNotAllowed:             "TestHostsThatRevocationNeedsAreNamed in pkg/inspect/check"} // no CA of these tests has a responder
}

func TestEachFindingIsPlantedAndExplained(t *testing.T) {
	page, err := os.ReadFile(suite.Root + "/docs/reference/findings.md")
	require.NoError(t, err)
	cases := map[string]bool{}
	for _, round := range rounds() {
		for _, p := range round {
			cases[p.id] = true
		}
	}
	for _, id := range check.IDs() {
		require.True(t, cases[id] || unplanted()[id] != "", "no case of rounds plants %s, and unplanted does not say which test has it", id)
		require.Contains(t, string(page), "\n### "+string(id)+"\n", "docs/reference/findings.md does not explain it")
	}
	require.Len(t, check.IDs(), len(cases)+len(unplanted()))
}
