package verify_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// A Verifier in the namespace counts for no mandatory policy, and hides every ClusterVerifier from the others.
func TestTheRemedyOfAClusterPolicyOffersNothingInTheNamespace(t *testing.T) {
	platform := policy.ObjectRef{Kind: "ClusterVerificationPolicy", Name: "platform"}
	elsewhere := verifier(t, "elsewhere", "k1")
	elsewhere.Source = policy.ObjectRef{Kind: "ClusterVerifier", Name: "elsewhere"}
	elsewhere.Images = patterns(t, "other.example.com/**")
	for name, c := range map[string]struct {
		demand    verify.Requirement
		verifiers []*verify.Verifier
		fix       string
	}{
		"types, of which there is none": {verify.Requirement{Types: []string{"Notation"}, AtLeast: 1}, nil,
			"ask a cluster admin to add the image to spec.images of a ClusterVerifier, or to create a ClusterVerifier for it"},
		"types, of which none is for the image": {verify.Requirement{Types: []string{"Cosign"}, AtLeast: 1}, []*verify.Verifier{elsewhere},
			"ask a cluster admin to add the image to spec.images of a ClusterVerifier, or to create a ClusterVerifier for it"},
		"a name that does not exist": {verify.Requirement{AnyOf: []string{"missing"}, AtLeast: 1}, nil,
			"ask a cluster admin to create it, or to correct the name in the policy"},
		"a name that is not for the image": {verify.Requirement{AllOf: []string{"elsewhere"}, AtLeast: 1}, []*verify.Verifier{elsewhere},
			"ask a cluster admin to add the image to spec.images of the ClusterVerifier, or to require another ClusterVerifier"},
	} {
		for _, mandatory := range []bool{true, false} {
			l := tier(t, newRegistry(), c.demand, c.verifiers...)
			l.Source, l.Mandatory = platform, mandatory
			l.Judge = verify.ByRules([]verify.Rule{{Source: platform, Images: everything(t), Require: []verify.Requirement{c.demand}}}, verify.DefaultDeny)
			verdict := engine(newCache(), verify.Options{}).Verify(t.Context(), config(l), ref(t, "r.example.com/app@"+appDigest.String())).Verdict
			require.Equal(t, policy.Denied, verdict.Outcome(), name)
			require.Equal(t, c.fix, verdict.Remediation, name)
		}
	}
}
