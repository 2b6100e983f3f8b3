//go:build nightly

package load

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

const (
	// hoards is how many large objects one team writes before the start, and again after it.
	hoards = 150
	// piles is the same of objects that are each small enough to keep.
	piles = 500
)

// TestATeamThatFillsTheAPIServerLeavesTheOthersTheirMemory has one team write objects as
// large as the API server takes: specs, annotations and finalizers. The CRDs are
// those of a version that did not limit specs, so that the replica's own limit is seen.
func TestATeamThatFillsTheAPIServerLeavesTheOthersTheirMemory(t *testing.T) {
	c := hoarded(t)
	hoarding(t, c, func(prefix string) {
		for i := range hoards {
			hoard(t, c, prefix, i)
		}
	})
}

// TestATeamThatWritesManyPoliciesLeavesTheOthersTheirMemory has one team write 1,000 policies
// of 58 KiB, and then delete all but two.
func TestATeamThatWritesManyPoliciesLeavesTheOthersTheirMemory(t *testing.T) {
	c := hoarded(t)
	judged := hoarding(t, c, func(prefix string) {
		for i := range piles {
			require.NoError(t, c.Client.Create(suite.Within(t), pile(prefix, i)))
		}
	})
	for i := range piles {
		require.NoError(t, c.Client.Delete(suite.Within(t), pile("before", i)))
		if i < piles-2 {
			require.NoError(t, c.Client.Delete(suite.Within(t), pile("after", i)))
		}
	}
	judged(gatekeeper.Allowed) // the last came when there was no room for them
}

// TestATeamOfManyKeysAndLargeRegularExpressionsLeavesTheOthersTheirMemory has one team use 500 keys in
// each of 64 Verifiers, and as many of the largest regular expressions as Verifiers may have: little to
// write, and 64 MiB and more to keep if it were compiled.
func TestATeamOfManyKeysAndLargeRegularExpressionsLeavesTheOthersTheirMemory(t *testing.T) {
	c := hoarded(t)
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	identities := make([]any, 16)
	for i := range identities {
		identities[i] = map[string]any{"issuer": "https://issuer.example.com", "subjectRegExp": fmt.Sprintf("(?:a?b?c?d?){200}%d", i)}
	}
	hoarding(t, c, func(prefix string) {
		keys := suite.Object("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s-keys, namespace: hoard}}", prefix) // too long for a spec
		keys.Object["data"] = map[string]any{"keys": strings.Repeat(string(key.PEM), 500)}
		store := suite.Resource("TrustStore", "hoard", prefix+"-keys",
			fmt.Sprintf("{type: PublicKeys, source: {configMapKeyRef: {name: %s-keys, key: keys}}}", prefix))
		require.NoError(t, c.Client.Create(suite.Within(t), keys))
		require.NoError(t, c.Client.Create(suite.Within(t), store))
		for i := range 64 {
			keyed := suite.Resource("Verifier", "hoard", fmt.Sprintf("%s-keys-%d", prefix, i),
				fmt.Sprintf("{type: Cosign, cosign: {keys: {trustStoreRefs: [{name: %s-keys}], insecureIgnoreTransparencyLog: true}}}", prefix))
			keyless := suite.Resource("Verifier", "hoard", fmt.Sprintf("%s-identities-%d", prefix, i), "{}")
			keyless.Object["spec"] = map[string]any{"type": "Cosign", "cosign": map[string]any{"keyless": map[string]any{"identities": identities}}}
			require.NoError(t, c.Client.Create(suite.Within(t), keyed))
			require.NoError(t, c.Client.Create(suite.Within(t), keyless))
		}
	})
}

// hoarding starts a replica for a quiet team and one that writes much, before the start and
// after it. It returns what waits until the quiet team's images are judged right, and those of
// the other as told.
func hoarding(t *testing.T, c *cluster.Cluster, write func(prefix string)) (judged func(hoarder gatekeeper.Verdict)) {
	t.Helper()
	write("before")
	registry, err := fixture.StartRegistry(fixture.RegistryOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = registry.Close() })
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	signed, err := registry.PushImage(t.Context(), "quiet/app", "v1")
	require.NoError(t, err)
	_, err = registry.SignCosign(t.Context(), signed, key, fixture.CosignOptions{})
	require.NoError(t, err)
	unsigned, err := registry.PushImage(t.Context(), "quiet/unsigned", "v1")
	require.NoError(t, err)
	suite.Apply(t, c,
		fmt.Sprintf(`{apiVersion: landwaiter.dev/v1beta1, kind: ClusterStore, metadata: {name: loopback}, spec: {registries: [%q], insecurePlainHTTP: true}}
---
`, registry.Host())+trust("quiet", "keys", string(key.PEM))+`---
{apiVersion: landwaiter.dev/v1beta1, kind: Verifier, metadata: {name: release, namespace: quiet}, spec: {type: Cosign, cosign: {keys: {trustStoreRefs: [{name: keys}], insecureIgnoreTransparencyLog: true}}}}
---
{apiVersion: landwaiter.dev/v1beta1, kind: VerificationPolicy, metadata: {name: strict, namespace: quiet}, spec: {rules: [{images: ["**"], require: [{anyOf: [release]}]}]}}
`)
	server, err := suite.ForTest(t).
		Server(t.Context(), suite.ServerOptions{Binary: suite.PlainServer, Env: []string{"GOGC=300", "GOMEMLIMIT=400MiB", "KUBECONFIG=" + c.Kubeconfig()},
			Args: []string{"--leader-elect=false", "--log-level", "error"}})
	require.NoError(t, err)
	w := &siege{Server: server}
	t.Logf("ready with at most %d MiB, of %d in the limit", w.within(t), limit)

	name := func(namespace string, image fixture.Image) string {
		return "[" + namespace + "]" + image.Reference.Name() + "@" + image.Reference.Digest.String()
	}
	judged = func(hoarder gatekeeper.Verdict) {
		t.Helper()
		suite.Eventually(t, func(ctx context.Context) error {
			answer, err := server.Client.Ask(ctx, gatekeeper.VerifyPath, name("quiet", signed), name("quiet", unsigned), name("hoard", signed))
			if err != nil {
				return err
			}
			items := gatekeeper.Items(answer)
			for key, want := range map[string]gatekeeper.Verdict{name("quiet", signed): gatekeeper.Allowed, name("quiet", unsigned): gatekeeper.Denied,
				name("hoard", signed): hoarder} {
				if got, why := gatekeeper.Judge(items[key]); got != want {
					return fmt.Errorf("%s is %s: %s; %s", key, got, why, answer.SystemError)
				}
			}
			return nil
		})
	}
	judged(gatekeeper.Denied)
	write("after")
	judged(gatekeeper.Denied)
	t.Logf("at most %d MiB, of %d in the limit", w.within(t), limit)
	return judged
}

// pile is a policy of 58 KiB that allows what the hoarder runs.
func pile(prefix string, number int) client.Object {
	patterns := make([]any, 60)
	for i := range patterns {
		patterns[i] = fmt.Sprintf("none.example.com/%s/%d", strings.Repeat("x", 480), i)
	}
	policy := suite.Resource("VerificationPolicy", "hoard", fmt.Sprintf("%s-%03d", prefix, number), "{}")
	rule := map[string]any{"images": patterns, "action": "Deny"}
	policy.Object["spec"] = map[string]any{"defaultAction": "Allow", "rules": []any{rule, rule}}
	return policy
}

// hoarded starts an API server and makes the namespaces quiet and hoard.
func hoarded(t *testing.T) *cluster.Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c, err := suite.ForTest(t).Cluster(ctx, cluster.Options{WithoutGatekeeper: true})
	require.NoError(t, err)
	definitions, err := suite.Definitions()
	require.NoError(t, err)
	require.NoError(t, c.Apply(ctx, append(definitions, suite.Namespace("quiet"), suite.Namespace("hoard"))...))
	return c
}

// hoard writes one policy of 1.4 MB: of two in three the spec, of the others the metadata.
func hoard(t *testing.T, c *cluster.Cluster, prefix string, number int) {
	t.Helper()
	policy := suite.Resource("VerificationPolicy", "hoard", fmt.Sprintf("%s-%d", prefix, number), `{rules: [{images: ["**"], action: Deny}]}`)
	if number%3 == 0 {
		policy.SetAnnotations(map[string]string{"example.com/hoard": strings.Repeat("a", 250<<10)})
		finalizers := make([]string, 3900)
		for i := range finalizers {
			finalizers[i] = fmt.Sprintf("%sexample.com/%s%d", strings.Repeat("f.", 115), strings.Repeat("f", 50), i)
		}
		policy.SetFinalizers(finalizers)
	} else {
		policy.Object["spec"] = map[string]any{"rules": slices.Repeat([]any{map[string]any{"images": []any{"**"},
			"require": slices.Repeat([]any{map[string]any{"expression": "true" + strings.Repeat(" ", 8000)}}, 16)}}, 11)}
	}
	require.NoError(t, c.Client.Create(suite.Within(t), policy))
}
