package library

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

type (
	ref        struct{ Kind, Name, Namespace, Branch string }
	automation struct {
		metav1.TypeMeta
		Metadata struct{ Name, Namespace string }
		// The fields that image.toolkit.fluxcd.io/v1 and source.toolkit.fluxcd.io/v1 define, of those that the sample has.
		Spec struct {
			Interval, URL, Image          string
			Ref                           *ref
			SecretRef, ImageRepositoryRef *ref
			SourceRef                     *ref
			DigestReflectionPolicy        string
			Policy                        *struct{ Semver struct{ Range string } }
			Git                           *struct {
				Checkout struct{ Ref ref }
				Commit   struct{ Author struct{ Name, Email string } }
				Push     ref
			}
			Update *struct{ Strategy, Path string }
		}
	}
)

// The sample stays in one namespace, and its references lead from the automation to the repository and the image.
func TestTheSampleForImageAutomationIsOfOneNamespace(t *testing.T) {
	text, err := os.ReadFile("../../library/samples/flux-image-automation.yaml")
	require.NoError(t, err)
	found := map[string]automation{}
	for _, document := range strings.Split(string(text), "\n---\n") {
		var object automation
		require.NoError(t, yaml.UnmarshalStrict([]byte(document), &object))
		require.Equal(t, "iris-green", object.Metadata.Namespace)
		found[object.Kind+" "+object.Metadata.Name] = object
		for _, r := range []*ref{object.Spec.SecretRef, object.Spec.ImageRepositoryRef, object.Spec.SourceRef} {
			require.True(t, r == nil || r.Namespace == "", "--no-cross-namespace-refs=true refuses it")
		}
	}
	require.Len(t, found, 4)
	update, policy := found["ImageUpdateAutomation web"].Spec, found["ImagePolicy web"].Spec
	require.Contains(t, found, update.SourceRef.Kind+" "+update.SourceRef.Name)
	require.Contains(t, found, "ImageRepository "+policy.ImageRepositoryRef.Name)
	require.NotEqual(t, update.Git.Checkout.Ref.Branch, update.Git.Push.Branch, "people merge what is committed")
}
