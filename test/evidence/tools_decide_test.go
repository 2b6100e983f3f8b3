//go:build !e2e

package evidence

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/remote/egress"
	"github.com/landwaiter/landwaiter/pkg/remote/external"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

const (
	trusted      = "trusted" // the trust store that verifiers name
	materialFile = "material.pem"
)

// cold starts a service that knows where registries are. The caller closes it.
func cold(t *testing.T) *service.Service {
	t.Helper()
	var at []string
	registries.Range(func(name, r any) bool {
		running, _ := r.(*fixture.Registry)
		at = append(at, fmt.Sprintf("%s=%s", name, running.Address()))
		return true
	})
	endpoints, err := egress.ParseEndpoints(at)
	require.NoError(t, err)
	s, err := service.New(service.Options{External: external.Options{Endpoints: endpoints}}, service.AnyNamespace{})
	require.NoError(t, err)
	return s
}

// decide compiles team-a's resources and asks about ref: what the server would
// answer, without its edge. Each call starts cold.
func decide(t *testing.T, source *fixture.Registry, verifier v1beta1.VerifierSpec, material []byte, ref image.Reference) verify.Result {
	t.Helper()
	return decideBy(t, resources(source, verifier, material), ref)
}

// decideBy is decide with other resources.
func decideBy(t *testing.T, objects resource.Objects, ref image.Reference) verify.Result {
	t.Helper()
	s := cold(t)
	defer s.Close()
	require.Empty(t, s.Apply(t.Context(), objects))
	return s.Verify(t.Context(), "team-a", ref)
}

// refused returns the first problem of resources that cannot be used.
func refused(t *testing.T, objects resource.Objects) string {
	t.Helper()
	s := cold(t)
	defer s.Close()
	problems := s.Apply(t.Context(), objects)
	require.NotEmpty(t, problems)
	return fmt.Sprint(problems[0])
}

// resources are what a cluster admin and a team would apply: the registry, the
// trust material in a Secret, one verifier, and a policy that requires it.
func resources(source *fixture.Registry, verifier v1beta1.VerifierSpec, material []byte) resource.Objects {
	kind := v1beta1.TrustStoreTypePublicKeys
	switch {
	case verifier.Notation != nil:
		kind = v1beta1.TrustStoreTypeCertificates
	case verifier.Cosign != nil && verifier.Cosign.Keyless != nil, verifier.Attestation != nil && verifier.Attestation.Keyless != nil:
		kind = v1beta1.TrustStoreTypeSigstoreRoot
	}
	own := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "team-a", Name: name} }
	return resource.Objects{
		Namespaces: []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "team-a", UID: "uid-of-team-a"}}},
		Secrets:    []corev1.Secret{{ObjectMeta: own("material"), Data: map[string][]byte{materialFile: material}}},
		Resources: []v1beta1.Object{
			&v1beta1.ClusterStore{ObjectMeta: metav1.ObjectMeta{Name: "loopback"}, Spec: v1beta1.StoreSpec{
				Registries: []string{source.Host()}, InsecurePlainHTTP: true,
			}},
			&v1beta1.TrustStore{ObjectMeta: own(trusted), Spec: v1beta1.TrustStoreSpec{
				Type:   kind,
				Source: v1beta1.TrustSource{SecretKeyRef: &v1beta1.KeyReference{Name: "material", Key: materialFile}},
			}},
			&v1beta1.Verifier{ObjectMeta: own("release"), Spec: verifier},
			&v1beta1.VerificationPolicy{ObjectMeta: own("images"), Spec: v1beta1.VerificationPolicySpec{
				Rules: []v1beta1.PolicyRule{{Images: []string{source.Host() + "/**"}, Require: []v1beta1.Requirement{{AnyOf: []string{"release"}}}}},
			}},
		},
	}
}
