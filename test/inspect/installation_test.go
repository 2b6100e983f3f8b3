//go:build e2e

package inspect

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/stack"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// installation writes reports and has the guardrails. The platform must sign all images.
type installation struct {
	*stack.Stack
	platform, audits *fixture.CosignKey
	// audit is the audit log of the API server.
	audit string

	names int
}

var started = suite.Once(parts, func(ctx context.Context, e *suite.Env) (w *installation, err error) {
	w = &installation{}
	for _, key := range []**fixture.CosignKey{&w.platform, &w.audits} {
		if *key, err = fixture.NewCosignKey(fixture.ECDSAP256); err != nil {
			return nil, err
		}
	}
	// Controllers have accounts of their own, as in most clusters: with the administrator's permissions they would pass every guardrail.
	w.audit = e.Path("audit.log")
	w.Stack, err = e.Stack(ctx, cluster.Options{Workloads: true, ManagerArgs: []string{"--use-service-account-credentials=true"},
		ServerArgs: []string{"--audit-policy-file=testdata/audit.yaml", "--audit-log-path=" + w.audit}},
		map[string]any{"reports": map[string]any{"enabled": true}, "guardrails": map[string]any{"enabled": true}})
	return w, err
})

// installed returns the installation with the keys and the policy that it begins with.
func installed(t *testing.T) *installation {
	t.Helper()
	w := started(t)
	suite.Apply(t, w.Cluster, trusted("platform", w.platform)+trusted("audits", w.audits)+signedBy("platform"))
	repository := w.fresh("probe")
	unsigned, signed := w.image(t, repository+"/unsigned"), w.image(t, repository+"/signed", w.platform)
	suite.Eventually(t, func(ctx context.Context) error {
		if err := w.Client.Create(ctx, suite.Pod("default", "probe", unsigned), client.DryRunAll); err == nil || !strings.Contains(err.Error(), "verified-images") {
			return fmt.Errorf("an unsigned image is not denied: %w", err)
		}
		return w.Client.Create(ctx, suite.Pod("default", "probe", signed), client.DryRunAll)
	})
	return w
}

// fresh returns a name that no test has used.
func (w *installation) fresh(name string) string {
	w.names++
	return fmt.Sprintf("%s%d", name, w.names)
}

// signedBy is the policy of the cluster: an image must be signed by each of the verifiers.
func signedBy(verifiers ...string) string {
	return "---\n{apiVersion: landwaiter.dev/v1beta1, kind: ClusterVerificationPolicy, metadata: {name: signed}, spec: {rules: [{images: ['**'], " +
		"require: [{anyOf: [" +
		strings.Join(verifiers, "]}, {anyOf: [") + "]}]}]}}\n"
}

// image pushes an image that keys sign.
func (w *installation) image(t *testing.T, repository string, keys ...*fixture.CosignKey) string {
	t.Helper()
	pushed, err := w.Registry.PushImage(t.Context(), repository, "v1")
	require.NoError(t, err)
	for _, key := range keys {
		_, err = w.Registry.SignCosign(t.Context(), pushed, key, fixture.CosignOptions{})
		require.NoError(t, err)
	}
	return w.Registry.Host() + "/" + repository + ":v1"
}

// eventually is [suite.Eventually], and shows the server's log if it fails.
func (w *installation) eventually(t *testing.T, ok func(context.Context) error) {
	t.Helper()
	require.NoError(t, cluster.Until(suite.Within(t), ok), "the log ends with:\n%s", w.Current().Tail(30))
}

// lease is what the replica that writes reports holds.
func lease() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: suite.System, Name: "landwaiter"}}
}

// kill kills a replica. If it leads, its lease does not have to expire first.
func (w *installation) kill(t *testing.T, replica *stack.Replica) {
	t.Helper()
	replica.Kill()
	require.NoError(t, client.IgnoreNotFound(w.Client.Delete(t.Context(), lease())))
}
