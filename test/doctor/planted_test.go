//go:build e2e

package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/doctor"
)

// planted breaks one thing. Those of one round are broken at once.
type planted struct {
	id doctor.ID
	// plant is the line that breaks it.
	plant string
	// edit is what a person does in the editor that the printed command opens, for sed.
	edit string
	// then stands in for what a cluster with nodes and Gatekeeper's own rotation does after
	// the printed command.
	then func(*testing.T)
	// process breaks what no line can.
	process func(*testing.T)
}

const (
	validating = "kubectl patch validatingwebhookconfiguration gatekeeper-validating-webhook-configuration --type=json --patch='[%s]'"
	manager    = "kubectl patch deployment gatekeeper-controller-manager --namespace=gatekeeper-system --type=json --patch='[%s]'"
	serve      = "kubectl patch deployment landwaiter --namespace=landwaiter-system --type=json --patch='[%s]'"
	images     = "kubectl patch verifiedimages verified-images --type=json --patch='[%s]'"
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
			{id: doctor.ProviderTimeout, plant: `kubectl patch providers.externaldata.gatekeeper.sh landwaiter-verify --type=merge --patch='{"spec":{"timeout":2}}'`},
			{id: doctor.ProviderURL, plant: `kubectl get providers.externaldata.gatekeeper.sh landwaiter-audit --output=yaml | sed "/resourceVersion:/d; s,/v1/audit/verify,/verify," | kubectl replace --filename=-`},
			{id: doctor.ProviderAuthority, plant: apply(`{apiVersion: externaldata.gatekeeper.sh/v1beta1, kind: Provider, metadata: {name: second}, spec: {url: "https://localhost:1/v1/verify", timeout: 3, caBundle: ENDING}}
---
{apiVersion: constraints.gatekeeper.sh/v1beta1, kind: VerifiedImages, metadata: {name: second}, spec: {enforcementAction: dryrun, parameters: {provider: second}}}`)},
			{id: doctor.ProviderMissing, plant: apply(`{apiVersion: constraints.gatekeeper.sh/v1beta1, kind: VerifiedImages, metadata: {name: third}, spec: {enforcementAction: dryrun, parameters: {provider: nowhere}}}`)},
			{id: doctor.ConstraintExempt, plant: fmt.Sprintf(images, add("/spec/match/excludedNamespaces/-", `"team-a"`))},
			{id: doctor.TemplateChanged, plant: `sed "s/input.review.operation == .DELETE./input.review.operation != \"CREATE\"/" library/verified-images/template.yaml | kubectl apply --server-side --force-conflicts --filename=-`},
			{id: doctor.SingleReplica, plant: "kubectl scale deployment landwaiter --namespace=landwaiter-system --replicas=1"},
			{id: doctor.NoClientAuth, plant: fmt.Sprintf(serve, add("/spec/template/spec/containers/0/args/-", `"--insecure-no-client-auth"`))},
			{id: doctor.BroadAccess, plant: "kubectl create clusterrolebinding everybody --clusterrole=landwaiter-cluster-admin --group=platform --group=system:authenticated"},
			{id: doctor.GuardrailFailsOpen, plant: fmt.Sprintf(guardrail, "validatingadmissionpolicy", "tenant-labels", `{"spec":{"failurePolicy":"Ignore"}}`)},
			{id: doctor.GuardrailNotDeny, plant: fmt.Sprintf(guardrail, "validatingadmissionpolicybinding", "home-workloads", `{"spec":{"validationActions":["Audit"]}}`)},
		},
		"charts": {
			{id: doctor.VersionSkew, plant: "kubectl label customresourcedefinition stores.landwaiter.dev app.kubernetes.io/version=0.0.1 --overwrite"},
			{id: doctor.GuardrailMissing, plant: "kubectl delete validatingadmissionpolicy landwaiter-tokens"},
			{id: doctor.GuardrailChanged, plant: fmt.Sprintf(guardrail, "validatingadmissionpolicy", "home-accounts", `{"spec":{"validations":[{"expression":"true"}]}}`)},
		},
		"landwaiter":  {{id: doctor.NoLandwaiter, plant: "kubectl delete deployment landwaiter --namespace=landwaiter-system"}},
		"definitions": {{id: doctor.DefinitionsMissing, plant: "kubectl delete customresourcedefinition clusterquotas.landwaiter.dev"}},
		"warn":        {{id: doctor.NothingDenied, plant: `kubectl patch verifiedimages verified-images --type=merge --patch='{"spec":{"enforcementAction":"warn"}}'`}},
		"kinds":       {{id: doctor.ConstraintKinds, plant: fmt.Sprintf(images, add("/spec/match/kinds", `[{"apiGroups":["apps"],"kinds":["Deployment"]}]`))}},
		"constraint":  {{id: doctor.NoConstraint, plant: "kubectl delete verifiedimages --all"}},
		"gatekeeper":  {{id: doctor.NoGatekeeper, plant: "kubectl delete validatingwebhookconfiguration gatekeeper-validating-webhook-configuration", then: certified}},
		"authority": {{id: doctor.WebhookAuthority, then: certified,
			plant: fmt.Sprintf(validating, add("/webhooks/0/clientConfig/caBundle", `"ENDING"`))}},
		"lease": {{id: doctor.LeaseStale, then: restarted, process: func(*testing.T) { w.Current().Kill() },
			plant: `kubectl patch lease landwaiter --namespace=landwaiter-system --type=merge --patch='{"spec":{"renewTime":"2026-01-01T00:00:00.000000Z"}}'`}},
		"process": {
			{id: doctor.RedisEviction, plant: `redis-cli -e -u "$REDIS_URL" CONFIG SET maxmemory 100mb && redis-cli -e -u "$REDIS_URL" CONFIG SET maxmemory-policy noeviction`},
			{id: doctor.RedisRights, plant: `redis-cli -e -u "$REDIS_URL" ACL SETUSER landwaiter -set -unlink`},
			{id: doctor.RegistryUnreachable, edit: "s/127.0.0.1:9/REGISTRY/",
				plant: apply(`{apiVersion: landwaiter.dev/v1alpha1, kind: ClusterStore, metadata: {name: gone}, spec: {registries: ["127.0.0.1:9"], insecurePlainHTTP: true}}`)},
		},
		// The printed command opens the Deployment: only its owner knows where that Redis is.
		"redis": {{id: doctor.RedisUnreachable, plant: "true", process: func(t *testing.T) { t.Helper(); require.NoError(t, w.Redis.Pause()) },
			then: func(t *testing.T) { t.Helper(); require.NoError(t, w.Redis.Resume()) }}},
		"template": {{id: doctor.NoTemplate, plant: "kubectl delete constrainttemplate verifiedimages", then: constrained}},
		"trust": {
			{id: doctor.TrustWithinReach, plant: team("team-a", "Secret") + apply(`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: devs, namespace: team-a}, rules: [{apiGroups: [""], resources: [secrets], verbs: [update]}]}`) +
				"\nkubectl create rolebinding devs --namespace=team-a --role=devs --group=devs" +
				"\nkubectl create rolebinding landwaiter-material --namespace=team-a --clusterrole=landwaiter-material --serviceaccount=landwaiter-system:landwaiter"},
			{id: doctor.ResourceNotReady, plant: team("team-b", "Secret")},
			{id: doctor.ResourceUnused, plant: apply(`{apiVersion: landwaiter.dev/v1alpha1, kind: Verifier, metadata: {name: idle, namespace: team-b}, spec: {type: Cosign, cosign: {keys: {trustStoreRefs: [{name: keys}]}}}}`)},
			{id: doctor.ResourceUnsatisfiable, plant: team("team-c", "Inline") + "\n" + `kubectl patch verificationpolicy release --namespace=team-c --type=merge --patch='{"spec":{"rules":[{"images":["**"],"require":[{"anyOf":["release"],"atLeast":5}]}]}}'`,
				edit: "s/atLeast: 5/atLeast: 1/"},
			{id: doctor.TrustEnds, plant: apply(`{apiVersion: v1, kind: Namespace, metadata: {name: team-d}}
---
{apiVersion: landwaiter.dev/v1alpha1, kind: TrustStore, metadata: {name: roots, namespace: team-d}, spec: {type: Certificates, source: {inline: "ENDINGTEXT"}}}
---
{apiVersion: landwaiter.dev/v1alpha1, kind: Verifier, metadata: {name: release, namespace: team-d}, spec: {type: Notation, notation: {trustStoreRefs: [{name: roots}], trustedIdentities: ["*"]}}}
---
{apiVersion: landwaiter.dev/v1alpha1, kind: VerificationPolicy, metadata: {name: release, namespace: team-d}, spec: {rules: [{images: ["**"], require: [{anyOf: [release]}]}]}}`)},
		},
	}
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
{apiVersion: landwaiter.dev/v1alpha1, kind: TrustStore, metadata: {name: keys, namespace: NS}, spec: {type: PublicKeys, source: `+where+`}}
---
{apiVersion: landwaiter.dev/v1alpha1, kind: Verifier, metadata: {name: release, namespace: NS}, spec: {type: Cosign, cosign: {keys: {trustStoreRefs: [{name: keys}]}}}}
---
{apiVersion: landwaiter.dev/v1alpha1, kind: VerificationPolicy, metadata: {name: release, namespace: NS}, spec: {rules: [{images: ["**"], require: [{anyOf: [release]}]}]}}`, "NS", namespace))
}

// certified stands in for Gatekeeper's rotation.
func certified(t *testing.T) {
	t.Helper()
	require.NoError(t, w.certify(t.Context()))
}

// constrained makes the constraint again, which went with its template.
func constrained(t *testing.T) {
	t.Helper()
	line(t, "kubectl wait --for=jsonpath='{.status.created}'=true constrainttemplate/verifiedimages --timeout=30s && kubectl apply --filename=library/verified-images/samples/constraint.yaml")
}

// restarted stands in for nodes: it runs the pod that the printed command has replaced.
func restarted(t *testing.T) {
	t.Helper()
	_, err := w.StartReplica(t.Context(), w.Port())
	require.NoError(t, err)
}

// Everything that doctor finds is mended by the command that it prints, and nothing else
// has to be done.
func TestEachFindingIsMendedByItsCommand(t *testing.T) {
	line(t, "kubectl create namespace team-a; kubectl create namespace team-b")
	until(t, func(d diagnosis) bool { return len(d.Findings) == 0 })
	all := rounds()
	for _, name := range slices.Sorted(maps.Keys(all)) { // what fails, fails again
		t.Run(name, func(t *testing.T) { breaks(t, all[name]) })
	}
}

func breaks(t *testing.T, round []planted) {
	t.Helper()
	var ids []string
	for _, p := range round {
		if p.process != nil {
			p.process(t)
		}
		line(t, w.filled(p.plant))
		ids = append(ids, string(p.id))
	}
	found := until(t, func(d diagnosis) bool {
		return !slices.ContainsFunc(ids, func(id string) bool { return !slices.Contains(d.ids(), id) })
	})
	require.Equal(t, 1, found.code)
	ran := map[string]bool{}
	for _, f := range found.Findings {
		at := slices.IndexFunc(round, func(p planted) bool { return string(p.id) == f.ID })
		if at < 0 {
			continue // a consequence of what was planted: it goes with its cause
		}
		require.NotEmpty(t, f.Why)
		if !ran[f.Command] { // one upgrade of a chart mends several
			line(t, f.Command, "EDIT="+w.filled(round[at].edit))
		}
		ran[f.Command] = true
		if round[at].then != nil {
			round[at].then(t)
		}
	}
	until(t, func(d diagnosis) bool { return len(d.Findings) == 0 })
}
