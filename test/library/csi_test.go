package library

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// secretProviderClass has the fields that the Secrets Store CSI driver's secrets-store.csi.x-k8s.io/v1 defines.
type secretProviderClass struct {
	metav1.TypeMeta
	Metadata struct{ Name, Namespace string }
	Spec     struct {
		Provider      string
		Parameters    map[string]string
		SecretObjects []struct {
			SecretName, Type    string
			Labels, Annotations map[string]string
			Data                []struct{ ObjectName, Key string }
		}
	}
}

// The sample is of one namespace, so that a team has its own and reaches no other's.
func TestTheSampleForTheCSIDriverIsValid(t *testing.T) {
	text, err := os.ReadFile("../../library/samples/csi-provider-class.yaml")
	require.NoError(t, err)
	var sample secretProviderClass
	require.NoError(t, yaml.UnmarshalStrict(text, &sample))
	require.Equal(t, "secrets-store.csi.x-k8s.io/v1", sample.APIVersion)
	require.Equal(t, "SecretProviderClass", sample.Kind)
	require.NotEmpty(t, sample.Metadata.Name)
	require.NotEmpty(t, sample.Metadata.Namespace)
	require.NotEmpty(t, sample.Spec.Provider)
	require.NotEmpty(t, sample.Spec.Parameters)
}
