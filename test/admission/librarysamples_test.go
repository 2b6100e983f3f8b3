//go:build e2e

package admission

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// providerClass has the fields of the Secrets Store CSI driver's CRD.
const providerClass = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: secretproviderclasses.secrets-store.csi.x-k8s.io}
spec:
  group: secrets-store.csi.x-k8s.io
  scope: Namespaced
  names: {kind: SecretProviderClass, listKind: SecretProviderClassList, plural: secretproviderclasses, singular: secretproviderclass}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          apiVersion: {type: string}
          kind: {type: string}
          metadata: {type: object}
          spec:
            type: object
            properties:
              provider: {type: string}
              parameters: {type: object, additionalProperties: {type: string}}
              secretObjects: {type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}`

// accepted makes the objects of a sample, for a moment, in a namespace; fields that the
// CRD does not know are refused.
func (l *library) accepted(t *testing.T, path, namespace string) []*unstructured.Unstructured {
	t.Helper()
	l.apply(t, namespace, "{apiVersion: v1, kind: Namespace, metadata: {name: $NS}}")
	objects, err := cluster.DecodeFile(suite.Root + "/library/" + path)
	require.NoError(t, err)
	require.NotEmpty(t, objects)
	for _, object := range objects {
		require.Equal(t, namespace, object.GetNamespace())
		require.NoError(t, l.Client.Create(suite.Within(t), object.DeepCopy(), client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict)))
	}
	return objects
}

func TestTheSampleForTheCSIDriverIsValid(t *testing.T) {
	l := withLibrary(t)
	l.apply(t, "", providerClass)
	class := l.accepted(t, "samples/csi-provider-class.yaml", "iris-green-web")[0]
	text, found, err := unstructured.NestedString(class.Object, "spec", "parameters", "objects")
	require.NoError(t, err)
	require.True(t, found)
	var mounted []map[string]string // Vault's provider reads it so
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &mounted))
	require.NotEmpty(t, mounted)
	for _, secret := range mounted {
		require.NotEmpty(t, secret["objectName"])
		require.Regexp(t, "^secret/data/iris-green/", secret["secretPath"], "below the team's own prefix")
	}
}

func TestTheSampleOfAnArtifactIsAccepted(t *testing.T) {
	l := withLibrary(t)
	l.accepted(t, "verified-artifacts/samples/ocirepository.yaml", "team-a")
}
