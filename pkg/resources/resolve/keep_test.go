package resolve_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

// kept reduces resources as a replica does, after making one of them too large to keep.
func kept(t *testing.T, o resource.Objects, name string) resource.Objects {
	t.Helper()
	filler := []string{strings.Repeat("x", 100_000)}
	for _, object := range o.Resources {
		if object.GetName() == name {
			switch large := object.(type) {
			case *v1beta1.ClusterVerificationPolicy:
				large.Spec.Rules = append(large.Spec.Rules, v1beta1.PolicyRule{Images: filler})
			case *v1beta1.VerificationPolicy:
				large.Spec.Rules = append(large.Spec.Rules, v1beta1.PolicyRule{Images: filler})
			case *v1beta1.Verifier:
				large.Spec.Images = filler
			case *v1beta1.ClusterException:
				large.Spec.Images = append(large.Spec.Images, filler...)
			default:
				t.Fatalf("%T", large)
			}
		}
		require.NoError(t, resource.Keep(object))
		require.Equal(t, object.GetName() == name, resource.Oversized(object) != nil, object.GetName())
	}
	return o
}

func TestAResourceThatIsTooLargeToKeepDeniesWhereItApplies(t *testing.T) {
	const lax = "defaultAction: Allow"
	for name, c := range map[string]struct {
		documents []string
		denied    map[verify.Namespace]bool
	}{
		"a policy of a namespace": {[]string{written.Object("ClusterVerificationPolicy", "", "lax", lax), written.Object("VerificationPolicy", "shop", "large", lax)},
			map[verify.Namespace]bool{"shop": true, "other": false}},
		"the cluster's policy": {[]string{written.Object("ClusterVerificationPolicy", "", "large", lax), written.Object("VerificationPolicy", "shop", "own", lax)},
			map[verify.Namespace]bool{"shop": true, "other": true}}, // it may have been a mandatory policy
		"a mandatory policy": {[]string{written.Object("ClusterVerificationPolicy", "", "large", lax+"\nscope: Mandatory"),
			written.Object("VerificationPolicy", "shop", "own", lax)},
			map[verify.Namespace]bool{"shop": true, "other": true}},
		"a policy that " +
			"only warned": {[]string{written.Object("ClusterVerificationPolicy", "", "lax", lax),
			written.Object("VerificationPolicy", "shop", "large", lax+"\nenforcementAction: Warn")},
			map[verify.Namespace]bool{"shop": true, "other": false}},
		"a Verifier that a " +
			"policy names": {[]string{written.Object("ClusterVerificationPolicy", "", "lax", lax), written.Object("Verifier", "shop", "large", written.CosignVerifier),
			written.Object("VerificationPolicy", "shop", "own", written.PolicySpec("{anyOf: [large]}"))}, map[verify.Namespace]bool{"shop": true, "other": false}},
		"a Verifier without a policy": {[]string{written.Object("Verifier", "shop", "large", written.CosignVerifier)}, map[verify.Namespace]bool{"shop": true}},
	} {
		t.Run(name, func(t *testing.T) {
			s, problems := written.Compiled(kept(t, written.Objects(t, append(c.documents, written.Namespace("shop", "1"), written.Namespace("other", "2"))...),
				"large"))
			require.NotEmpty(t, problems)
			for where, denied := range c.denied {
				got := written.Verdict(t, s, where, "r.example.com/app")
				require.Equal(t, denied, got.Outcome() == policy.Denied, "%s: %s", where, got.Reason)
			}
		})
	}
}

func TestAnExceptionThatIsTooLargeToKeepAllowsNothing(t *testing.T) {
	documents := []string{written.Namespace("shop", "1"), written.Object("ClusterVerificationPolicy", "", "p", denies),
		written.Object("ClusterException", "", "large", terms(time.Hour, inShop))}
	s, _ := written.Compiled(aged(written.Objects(t, documents...)))
	require.Equal(t, "ClusterException large", by(t, s, "shop", "r.example.com/app", soon))
	s, _ = written.Compiled(kept(t, aged(written.Objects(t, documents...)), "large"))
	require.Empty(t, by(t, s, "shop", "r.example.com/app", soon))
}
