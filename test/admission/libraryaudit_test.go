//go:build e2e

package admission

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// bad violates every constraint of the sets that speaks in audits; good violates none.
const (
	bad = `
{apiVersion: v1, kind: Namespace, metadata: {name: audited-bad, labels: {landwaiter.dev/tenant: audited}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: bad, namespace: audited-bad}, spec: {volumes: [{name: etc, hostPath: {path: /etc}}],
  containers: [{name: app, image: app, ports: [{containerPort: 22}], securityContext: {privileged: true}}]}}
---
{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: bad, namespace: audited-bad},
  spec: {interval: 10m, path: ./, prune: true, sourceRef: {kind: GitRepository, name: app, namespace: flux-system}}}
---
{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: bad, namespace: audited-bad}, spec: {interval: 1m, url: https://github.com/example-evil/app}}
---
{apiVersion: source.toolkit.fluxcd.io/v1, kind: OCIRepository, metadata: {name: bad, namespace: audited-bad}, spec: {interval: 1m, url: oci://ghcr.io/example/app, ref: {tag: v1}}}
---
{apiVersion: external-secrets.io/v1, kind: ExternalSecret, metadata: {name: bad, namespace: audited-bad},
  spec: {secretStoreRef: {kind: ClusterSecretStore, name: vault}, data: [{secretKey: a, remoteRef: {key: other-db}}]}}`
	good = `
{apiVersion: v1, kind: Namespace, metadata: {name: audited-good, labels: {landwaiter.dev/tenant: audited}}}
---
{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: default-deny, namespace: audited-good}, spec: {podSelector: {}, policyTypes: [Ingress, Egress]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: good, namespace: audited-good}, spec: {volumes: [{name: etc, emptyDir: {}}],
  securityContext: {runAsNonRoot: true, runAsUser: 1000, runAsGroup: 1000, fsGroup: 1000, supplementalGroups: [1000], seccompProfile: {type: RuntimeDefault}, appArmorProfile: {type: RuntimeDefault}},
  containers: [{name: app, image: app, ports: [{containerPort: 8080}]}]}}
---
{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: good, namespace: audited-good},
  spec: {interval: 10m, path: ./, prune: true, serviceAccountName: audited, sourceRef: {kind: GitRepository, name: app}}}
---
{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: good, namespace: audited-good}, spec: {interval: 1m, url: https://github.com/example/app}}
---
{apiVersion: external-secrets.io/v1, kind: ExternalSecret, metadata: {name: good, namespace: audited-good},
  spec: {secretStoreRef: {kind: ClusterSecretStore, name: vault}, data: [{secretKey: a, remoteRef: {key: audited-db}}]}}`
)

// totals are the violations of the bad objects, by constraint. Protected labels are never
// wrong in an audit, only changes of them.
func totals() map[string]int64 {
	return map[string]int64{
		"NoPrivilegedContainers/no-privileged-containers":          1,
		"NoHostPathVolumes/no-host-path-volumes":                   1,
		"ContainerAllowedPorts/container-allowed-ports":            1,
		"NamespaceNeedsDefaultDeny/namespace-needs-default-deny":   2, // incoming and outgoing
		"AllowedUsersAndGroups/allowed-users-and-groups":           1,
		"SeccompProfile/seccomp-profile":                           1,
		"AppArmorProfile/apparmor-profile":                         1,
		"FluxServiceAccountRequired/flux-service-account-required": 1,
		"FluxNoCrossNamespaceRefs/flux-no-cross-namespace-refs":    1,
		"FluxAllowedSources/flux-allowed-sources":                  1,
		"VerifiedArtifacts/verified-artifacts":                     1,
		"ExternalSecretTenantKeys/external-secret-tenant-keys":     1,
		"ProtectedNamespaceLabels/protected-namespace-labels":      0,
	}
}

func TestAuditsCountWhatTheSetsWouldDeny(t *testing.T) {
	l := withLibrary(t)
	l.apply(t, "", bad)
	l.apply(t, "", good)
	for _, set := range []string{"baseline", "restricted", "flux", "secrets"} {
		require.NoError(t, l.run(t.Context(), "apply", "-k", suite.Root+"/library/constraints/"+set))
	}
	t.Cleanup(func() {
		for _, set := range []string{"secrets", "flux", "restricted"} { // restricted has baseline
			if err := l.run(context.Background(), "delete", "-k", suite.Root+"/library/constraints/"+set); err != nil {
				t.Error(err)
			}
		}
	})
	want := totals()
	suite.Eventually(t, func(ctx context.Context) error {
		found, err := l.audited(ctx)
		if err == nil && fmt.Sprint(found) != fmt.Sprint(want) {
			err = fmt.Errorf("audits count\n%v, not\n%v", found, want)
		}
		return err
	})
}

// audited reads the totals of all constraints of the sets.
func (l *library) audited(ctx context.Context) (map[string]int64, error) {
	found := map[string]int64{}
	for kind := range totals() {
		list := &unstructured.UnstructuredList{}
		name, _, _ := strings.Cut(kind, "/")
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: "constraints.gatekeeper.sh", Version: "v1beta1", Kind: name + "List"})
		if err := l.Client.List(ctx, list); err != nil {
			return nil, fmt.Errorf("list %s: %w", name, err)
		}
		for _, constraint := range list.Items {
			total, done, err := unstructured.NestedInt64(constraint.Object, "status", "totalViolations")
			if err != nil || !done {
				return nil, fmt.Errorf("%s was not audited: %w", constraint.GetName(), err)
			}
			violations, _, err := unstructured.NestedSlice(constraint.Object, "status", "violations")
			if err != nil {
				return nil, fmt.Errorf("read violations: %w", err)
			}
			for _, violation := range violations {
				entry, _ := violation.(map[string]any)
				if place := fmt.Sprint(entry["namespace"], entry["name"]); place != "audited-badbad" && entry["name"] != "audited-bad" {
					return nil, fmt.Errorf("%s reports %v", constraint.GetName(), entry)
				}
			}
			found[name+"/"+constraint.GetName()] = total
		}
	}
	return found, nil
}
