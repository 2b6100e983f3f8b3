package check_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/inspect/check"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

func TestHostsThatRevocationNeedsAreNamed(t *testing.T) {
	root, err := fixture.NewAuthority("root")
	require.NoError(t, err)
	issuing, err := root.IssueAuthority("issuing", fixture.CertificateOptions{Responder: "http://ocsp.example.com/", Lists: "http://crl.example.com:8080/ca.crl"})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		flags   []string
		spec    v1beta1.NotationVerifier
		cluster bool
		missing string
	}{
		"by default":      {nil, v1beta1.NotationVerifier{}, false, "crl.example.com:8080, ocsp.example.com"},
		"of the cluster":  {nil, v1beta1.NotationVerifier{}, true, "crl.example.com:8080, ocsp.example.com"},
		"one is listed":   {[]string{"--egress-host=ocsp.example.com"}, v1beta1.NotationVerifier{}, false, "crl.example.com:8080"},
		"both are listed": {[]string{"--egress-host=ocsp.example.com:80,crl.example.com:8080"}, v1beta1.NotationVerifier{}, false, ""},
		"another port is listed": {[]string{"--egress-host=ocsp.example.com", "--egress-host", "crl.example.com"}, v1beta1.NotationVerifier{}, false,
			"crl.example.com:8080"},
		"it is ignored":       {nil, v1beta1.NotationVerifier{Revocation: v1beta1.RevocationModeIgnore}, false, ""},
		"AWS Signer is asked": {nil, v1beta1.NotationVerifier{AWSSigner: &v1beta1.AWSSignerProfiles{}}, false, ""},
		"both are asked": {nil, v1beta1.NotationVerifier{AWSSigner: &v1beta1.AWSSignerProfiles{}, Revocation: v1beta1.RevocationModeCheck}, false,
			"crl.example.com:8080, ocsp.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			inventory := sound(t)
			args := &inventory.Landwaiters[0].Spec.Template.Spec.Containers[0].Args
			*args = append(*args, c.flags...)
			c.spec.TrustStoreRefs = []v1beta1.TrustStoreRef{{Name: "ca"}, {Name: "none"}}
			if c.cluster {
				verifier, store := &v1beta1.ClusterVerifier{TypeMeta: metav1.TypeMeta{Kind: "ClusterVerifier"}, ObjectMeta: named("", "release")},
					&v1beta1.ClusterTrustStore{TypeMeta: metav1.TypeMeta{Kind: "ClusterTrustStore"}, ObjectMeta: named("", "ca")}
				verifier.Spec.Notation, store.Spec.Source.Inline = &c.spec, string(issuing.CertificatePEM)
				inventory.Resources = append(inventory.Resources, verifier, store)
			} else {
				verifier, store := &v1beta1.Verifier{TypeMeta: metav1.TypeMeta{Kind: "Verifier"}, ObjectMeta: named("team-a", "release")},
					&v1beta1.TrustStore{TypeMeta: metav1.TypeMeta{Kind: "TrustStore"}, ObjectMeta: named("team-a", "ca")}
				verifier.Spec.Notation, store.Spec.Source.Inline = &c.spec, string(issuing.CertificatePEM)
				inventory.Resources = append(inventory.Resources, verifier, store)
			}
			said := ""
			for _, f := range check.Examine(inventory, schema.Embedded()).Findings {
				if f.ID == check.RevocationHostNotAllowed {
					require.Equal(t, resource.Warning, f.Severity)
					require.Contains(t, f.Command, "kubectl patch deployment")
					said += f.Message
				}
			}
			if c.missing == "" {
				require.Empty(t, said)
				return
			}
			require.Equal(t, "it checks revocation, and certificates that it trusts name hosts that --egress-host lacks: "+c.missing, said)
		})
	}
}
