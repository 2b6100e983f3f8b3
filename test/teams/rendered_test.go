//go:build e2e

package teams

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// content is an object as JSON has it, without what only the server can know.
func content(t *testing.T, object *unstructured.Unstructured) map[string]any {
	t.Helper()
	made := map[string]any{}
	for field, value := range object.Object {
		if field != "metadata" && field != "status" {
			made[field] = value
		}
	}
	labels := object.GetLabels()
	if object.GetKind() == "Namespace" {
		delete(labels, corev1.LabelMetadataName)
		delete(made, "spec") // its finalizer
	}
	made["labels"] = labels
	text, err := json.Marshal(made)
	require.NoError(t, err)
	same := map[string]any{}
	require.NoError(t, json.Unmarshal(text, &same))
	return same
}

// What Git or Helm keeps does not differ from what the cluster has, so no tool ever shows
// a difference that nobody made.
func TestTheServerAddsNothingToWhatIsExported(t *testing.T) {
	w := installed(t)
	out := w.program.Must(t, "tenant", "export", "exported", "--set", "namespaces=exported-web", "--set", "namespacePrefix=exported-", "--set",
		"access.admins=admins", "--set", "access.developers=devs", "--set", "access.viewers=views",
		"--set", "reconciler.source.url=https://github.com/example/exported", "--set", "reconciler.source.secretRef.name=git", "--set",
		"reconciler.source.exclude=README.md", "--set", "reconciler.variables.REGION=eu", "--set", "reconciler.variablesFrom={secretRef: {name: app}}", "--set",
		"isolation.quota.pods=50", "--set", "isolation.quota.requests.memory=64Gi", "--set", "reconciler.createNamespaces=true")
	objects, err := cluster.Decode([]byte(out))
	require.NoError(t, err)
	w.gone(t, "exported")
	require.NoError(t, w.Apply(suite.Within(t), objects...))
	require.Greater(t, len(objects), 20)
	for _, want := range objects {
		got := &unstructured.Unstructured{}
		got.SetGroupVersionKind(want.GroupVersionKind())
		require.NoError(t, w.Client.Get(suite.Within(t), client.ObjectKeyFromObject(want), got))
		if want.GetKind() == "Tenant" {
			continue // it has defaults, which a person does not write
		}
		require.Equal(t, content(t, want), content(t, got), "%s %s/%s", want.GetKind(), want.GetNamespace(), want.GetName())
	}
	// The command finds everything as it should be, but for who applied it.
	again := w.add(t, "exported", "--set", "namespaces=exported-web", "--set", "namespacePrefix=exported-", "--set", "access.admins=admins", "--set",
		"access.developers=devs", "--set", "access.viewers=views",
		"--set", "reconciler.source.url=https://github.com/example/exported", "--set", "reconciler.source.secretRef.name=git", "--set",
		"reconciler.source.exclude=README.md", "--set", "reconciler.variables.REGION=eu", "--set", "reconciler.variablesFrom={secretRef: {name: app}}", "--set",
		"isolation.quota.pods=50", "--set", "isolation.quota.requests.memory=64Gi", "--set", "reconciler.createNamespaces=true")
	require.Zero(t, again.Created+again.Removed+again.Released)
}
