//go:build !e2e && !nightly

package evidence

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// keyed gives team-a a verifier of a name with a key of the same name.
func (e *environment) keyed(t *testing.T, name string) func(*resource.Objects) {
	t.Helper()
	verifier := &v1beta1.Verifier{Spec: byKey(name)}
	verifier.Namespace, verifier.Name = "team-a", name
	trust := trustStore("team-a", name, v1beta1.TrustStoreTypePublicKeys, string(e.signer(t, name).PEM))
	return func(o *resource.Objects) { o.Resources = append(o.Resources, verifier, trust) }
}

// Each field of a policy flips the verdict on one image.
func TestEveryFieldOfAPolicyMatters(t *testing.T) {
	e := newEnvironment(t, fixture.RegistryOptions{})
	images := map[string]fixture.Image{
		"none": e.signed(t, "app/none"), "a": e.signed(t, "app/a", "a"), "b": e.signed(t, "app/b", "b"), "both": e.signed(t, "app/both", "a", "b"),
	}
	amd, arm := e.signed(t, "app/multi", "a"), e.signed(t, "app/multi", "a")
	plain := e.signed(t, "app/multi")
	for name, parts := range map[string][]fixture.Image{"parts": {amd, arm}, "half": {amd, plain}} {
		index, err := e.registry.PushIndex(t.Context(), "app/multi", name, parts...)
		require.NoError(t, err)
		images[name] = index
	}
	signedIndex, err := e.registry.PushIndex(t.Context(), "app/multi", "signed", plain)
	require.NoError(t, err)
	_, err = e.registry.SignCosign(t.Context(), signedIndex, e.signer(t, "a"), fixture.CosignOptions{})
	require.NoError(t, err)
	images["index"] = signedIndex
	rule := func(require string) string { return fmt.Sprintf("rules: [{images: ['**'], require: [%s]}]", require) }
	host := e.registry.Host()
	for _, c := range []struct{ image, allowed, denied string }{
		{"a", rule("{anyOf: [a]}"), rule("{anyOf: [b]}")},
		{"a", rule("{anyOf: [a, b]}"), rule("{allOf: [a, b]}")},
		{"a", rule("{types: [Cosign]}"), rule("{types: [Notation]}")},
		{"both", rule("{anyOf: [a, b], atLeast: 2}"), rule("{anyOf: [a, b], atLeast: 3}")},
		{"a", rule("{anyOf: [a]}"), rule("{anyOf: [a]}, {anyOf: [b]}")},
		{"a", "rules: [{images: ['" + host + "/app/a'], require: [{anyOf: [a]}]}]", "rules: [{images: ['" + host + "/app/b'], require: [{anyOf: [a]}]}]"},
		{"none", "defaultAction: Allow", "defaultAction: Deny"},
		{"none", "enforcementAction: Warn\n" + rule("{anyOf: [a]}"), "enforcementAction: Deny\n" + rule("{anyOf: [a]}")},
		{"none", "enforcementAction: Warn\ndefaultAction: Deny", "defaultAction: Deny"},
		{"none", "rules: [{images: ['**'], action: Allow}]", "rules: [{images: ['**'], action: Deny}]"},
		{"a", "rules: [{images: ['**'], action: Require, require: [{anyOf: [a]}]}]", "rules: [{images: ['**'], action: Deny}]"},
		{"both", rule("{expression: 'findings.exists(f, f.verifier == \"a\") && findings.exists(f, f.verifier == \"b\")'}"),
			rule("{expression: 'findings.exists(f, f.verifier == \"a\") && !findings.exists(f, f.verifier == \"b\")'}")},
		{"a", rule("{expression: 'findings.all(f, f.facts.keyFingerprint.startsWith(\"sha256:\"))'}"),
			rule("{expression: 'findings.all(f, f.facts.issuer == \"x\")'}")},
		{"a", rule("{expression: 'true', atLeast: 1}"), rule("{expression: 'true', atLeast: 2}")},
		{"parts", "rules: [{images: ['**'], index: ItselfOrEveryManifest, require: [{anyOf: [a]}]}]", rule("{anyOf: [a]}")},
		{"parts", "rules: [{images: ['**'], index: ItselfOrEveryManifest, require: [{anyOf: [a]}]}]",
			"rules: [{images: ['**'], index: Itself, require: [{anyOf: [a]}]}]"},
	} {
		for spec, want := range map[string]policy.Outcome{c.allowed: policy.Allowed, c.denied: policy.Denied} {
			require.Empty(t, e.apply(t, e.keyed(t, "a"), e.keyed(t, "b"), e.policy(t, "team-a", "p", spec)), spec)
			verdict := e.Verify(t.Context(), "team-a", images[c.image].Reference).Verdict
			require.Equal(t, want.String(), verdict.Outcome().String(), "%s of %s: %s", spec, c.image, verdict.Reason)
		}
	}
	either := "rules: [{images: ['**'], index: ItselfOrEveryManifest, require: [{anyOf: [a]}]}]"
	require.Empty(t, e.apply(t, e.keyed(t, "a"), e.policy(t, "team-a", "p", either)))
	require.Equal(t, policy.Denied, e.Verify(t.Context(), "team-a", images["half"].Reference).Verdict.Outcome(), "one manifest is not signed")
	require.Equal(t, policy.Allowed, e.Verify(t.Context(), "team-a", images["index"].Reference).Verdict.Outcome(), "the index is signed itself")
	require.Equal(t, policy.Denied, e.Verify(t.Context(), "team-a", digestOf(plain)).Verdict.Outcome(), "a signed index proves no manifest of it")
	for _, broken := range []string{"true", "findings.size() == 0", "!findings.exists(f, f.verifier == \"a\")"} {
		require.Empty(t, e.apply(t, e.keyed(t, "a"), e.policy(t, "team-a", "p", rule(fmt.Sprintf("{expression: %q}", broken)))))
		require.Equal(t, policy.Denied, e.Verify(t.Context(), "team-a", images["none"].Reference).Verdict.Outcome(), "nothing is proven, whatever %s says", broken)
	}
	// A tenant that only warns stays under the mandatory policy.
	require.Empty(t, e.apply(t, e.keyed(t, "a"), e.policy(t, "team-a", "p", "enforcementAction: Warn\ndefaultAction: Deny"), e.trusting(t, "", "cluster"),
		e.policy(t, "", "mandatory", "scope: Mandatory\n"+releaseNeeded)))
	require.Equal(t, policy.Denied, e.Verify(t.Context(), "team-a", images["none"].Reference).Verdict.Outcome())
}
