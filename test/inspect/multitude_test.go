//go:build nightly

package inspect

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

const (
	// teamsOfMany is how many Tenants a large cluster has, with spacesEach namespaces each and
	// runningEach pods in each of these.
	teamsOfMany = 200
	spacesEach  = 5
	runningEach = 10
)

// multitude is an API server of a large cluster: what teams write, what Landwaiter reports, and
// constraints, but nobody who admits.
type multitude struct {
	*cluster.Cluster
	key string // a public key
	now time.Time
}

// settle starts the API server and creates everything in it.
func settle(t *testing.T) *multitude {
	t.Helper()
	m := &multitude{now: time.Now().UTC().Truncate(time.Second)}
	var err error
	m.Cluster, err = suite.ForTest(t).Cluster(t.Context(), cluster.Options{WithoutGatekeeper: true, WithoutWebhooks: true})
	require.NoError(t, err)
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	m.key = string(key.PEM)
	chart, err := suite.Chart(t.Context(), "landwaiter", "--set", "reports.enabled=true")
	require.NoError(t, err)
	require.NoError(t, m.Apply(suite.Within(t), suite.Only(chart, "CustomResourceDefinition")...))
	suite.Apply(t, m.Cluster, m.ofTheCluster()+constraintsOfMany)
	config := rest.CopyConfig(m.Config)
	config.QPS, config.Burst = 5000, 5000
	quick, err := m.NewClient(config)
	require.NoError(t, err)
	began := time.Now()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(16)
	for team := range teamsOfMany {
		group.Go(func() error { return m.team(ctx, quick, team) })
	}
	require.NoError(t, group.Wait())
	t.Logf("%d namespaces were filled after %s", teamsOfMany*spacesEach, time.Since(began).Round(time.Second))
	return m
}

// constraintsOfMany are two constraints, with a CRD in place of the one that Gatekeeper makes.
const constraintsOfMany = `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: verifiedimages.constraints.gatekeeper.sh}
spec:
  group: constraints.gatekeeper.sh
  names: {kind: VerifiedImages, listKind: VerifiedImagesList, plural: verifiedimages, singular: verifiedimages}
  scope: Cluster
  versions: [{name: v1beta1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
{apiVersion: constraints.gatekeeper.sh/v1beta1, kind: VerifiedImages, metadata: {name: all}, spec: {enforcementAction: warn, match: {kinds: [{apiGroups: [""], kinds: [Pod]}]}}}
---
{apiVersion: constraints.gatekeeper.sh/v1beta1, kind: VerifiedImages, metadata: {name: most}, spec: {enforcementAction: deny, match: {kinds: [{apiGroups: [""], kinds: [Pod]}], namespaceSelector: {matchExpressions: [{key: lax, operator: DoesNotExist}]}}}}
`

// ofTheCluster are the resources of the platform team.
func (m *multitude) ofTheCluster() string {
	text := fmt.Sprintf(`---
{apiVersion: landwaiter.dev/v1beta1, kind: ClusterTrustStore, metadata: {name: platform}, spec: {type: PublicKeys, source: {inline: %q}}}
---
{apiVersion: landwaiter.dev/v1beta1, kind: ClusterVerifier, metadata: {name: platform}, spec: {type: Cosign, cosign: {keys: {trustStoreRefs: [{name: platform}], insecureIgnoreTransparencyLog: true}}}}
---
{apiVersion: landwaiter.dev/v1beta1, kind: ClusterVerificationPolicy, metadata: {name: mandatory}, spec: {scope: Mandatory, rules: [{images: ['registry.example.com/platform/**'], require: [{anyOf: [platform]}]}], defaultAction: Allow}}
---
{apiVersion: landwaiter.dev/v1beta1, kind: ClusterVerificationPolicy, metadata: {name: fallback}, spec: {rules: [{images: ['registry.example.com/**'], require: [{anyOf: [platform]}]}], defaultAction: Deny}}
`, m.key)
	for i := range 20 {
		text += fmt.Sprintf("---\n{apiVersion: landwaiter.dev/v1beta1, kind: ClusterStore, metadata: {name: s%[1]d}, spec: {registries: "+
			"[registry-%[1]d.example.com]}}\n", i)
	}
	return text
}

// team creates one team of five namespaces, of which the first is its home.
func (m *multitude) team(ctx context.Context, c client.Client, team int) error {
	home := homeOf(team)
	spec := func(kind, name, spec string) *unstructured.Unstructured {
		return suite.Resource(kind, home, name, spec)
	}
	objects := []*unstructured.Unstructured{suite.Resource("Tenant", "", home, fmt.Sprintf("{homeNamespace: %s, namespacePrefix: %s-}", home, home))}
	for i := range spacesEach {
		namespace := suite.Namespace(spaceOf(team, i))
		if team%10 == 0 {
			namespace.SetLabels(map[string]string{"lax": "true"})
		}
		objects = append(objects, namespace)
	}
	objects = append(objects,
		spec("TrustStore", "keys", fmt.Sprintf("{type: PublicKeys, source: {inline: %q}}", m.key)),
		spec("Verifier", "release", "{images: ['registry.example.com/**'], type: Cosign, cosign: {keys: {trustStoreRefs: [{name: keys}], "+
			"insecureIgnoreTransparencyLog: true}}}"),
		spec("VerificationPolicy", "signed", "{rules: [{images: ['registry.example.com/**'], require: [{anyOf: [release]}]}], defaultAction: Deny}"))
	if team%2 == 0 {
		objects = append(objects,
			spec("Exception", "move",
				fmt.Sprintf("{images: ['registry.example.com/%s/old'], until: %q, reason: the vendor signs next month}", home,
					m.now.Add(time.Duration(team+1)*24*time.Hour).Format(time.RFC3339))))
	}
	for i := range spacesEach {
		objects = append(objects, m.reports(team, i)...)
		for _, role := range []string{"view", "edit"} {
			objects = append(objects,
				suite.Object("{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: %s, name: %s}, roleRef: {apiGroup: "+
					"rbac.authorization.k8s.io, kind: ClusterRole, name: %s}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: %s}]}", spaceOf(team, i),
					role, role, home))
		}
	}
	for _, object := range objects {
		if err := c.Create(ctx, object, client.FieldOwner(v1beta1.ReportSource)); err != nil {
			return fmt.Errorf("create %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	for i := range spacesEach {
		for pod := range runningEach {
			if err := c.Create(ctx, suite.Pod(spaceOf(team, i), fmt.Sprintf("app-%d", pod), imageOf(team, pod))); err != nil {
				return fmt.Errorf("create a pod: %w", err)
			}
		}
	}
	return nil
}

// homeOf, spaceOf and imageOf name what a team has.
func homeOf(team int) string { return fmt.Sprintf("team-%03d", team) }

func spaceOf(team, i int) string {
	if i == 0 {
		return homeOf(team)
	}
	return fmt.Sprintf("%s-%d", homeOf(team), i)
}

func imageOf(team, pod int) string {
	return fmt.Sprintf("registry.example.com/%s/app-%d:v1", homeOf(team), pod)
}

// reports are those of one namespace, as the server writes them: of ten containers one fails, and in
// every other namespace three images were denied.
func (m *multitude) reports(team, i int) []*unstructured.Unstructured {
	namespace, since := spaceOf(team, i), m.now.Add(-24*time.Hour).Format(time.RFC3339)
	var running, denied []any
	for pod := range runningEach {
		result, message, fix := v1beta1.ReportPass, fmt.Sprintf("signature verified by Verifier %s/release", homeOf(team)), ""
		if pod == 0 {
			result, message, fix = v1beta1.ReportFail,
				fmt.Sprintf("no signature is valid: Verifier %s/release: found no signature in registry.example.com/%s", homeOf(team), homeOf(team)),
				"sign the image with a key that the Verifier trusts, such as: cosign sign --key KEY IMAGE"
		}
		running = append(running,
			resultOfMany(namespace, result, message, map[string]any{v1beta1.PropertyImage: imageOf(team, pod), v1beta1.PropertyDigest: fmt.Sprintf("sha256:%064d", pod),
				v1beta1.PropertyContainer: "app", v1beta1.PropertyContainerType: "container", v1beta1.PropertyRemediation: fix, v1beta1.PropertySince: since},
				fmt.Sprintf("app-%d", pod)))
	}
	all := []*unstructured.Unstructured{reportOfMany(namespace, v1beta1.ReportNameRunning, v1beta1.ReportRunning, running)}
	if i%2 == 1 {
		for n := range 3 {
			denied = append(denied,
				resultOfMany(namespace, v1beta1.ReportFail, "no signature is valid", map[string]any{v1beta1.PropertyImage: imageOf(team, 90+n), v1beta1.PropertyCount: "3",
					v1beta1.PropertyFirst: since, v1beta1.PropertyLast: since, v1beta1.PropertyTraceID: fmt.Sprintf("%032d", n),
					v1beta1.PropertyRemediation: "sign the image"},
					"shop"))
		}
		all = append(all, reportOfMany(namespace, v1beta1.ReportNameDenied, v1beta1.ReportDenied, denied))
	}
	return all
}

func reportOfMany(namespace, name, about string, results []any) *unstructured.Unstructured {
	r := suite.Object("{apiVersion: openreports.io/v1alpha1, kind: Report, metadata: {namespace: %s, name: %s, labels: {%s: %s}}, source: landwaiter}", namespace,
		name, v1beta1.LabelReport, about)
	r.Object["results"] = results
	return r
}

func resultOfMany(namespace, result, message string, properties map[string]any, workload string) any {
	for name, value := range properties {
		if value == "" {
			delete(properties, name)
		}
	}
	properties[v1beta1.PropertyResultID] = "0123456789abcdef0123456789abcdef"
	return map[string]any{"source": v1beta1.ReportSource, "policy": "VerificationPolicy signed", "rule": "running", "category": v1beta1.ReportCategory,
		"severity": "info", "result": result,
		"scored": true, "message": message, "properties": properties, "timestamp": map[string]any{"seconds": int64(1), "nanos": int64(0)},
		"resources": []any{map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": namespace, "name": workload,
			"uid": "00000000-0000-0000-0000-000000000000"}}}
}
