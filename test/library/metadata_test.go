package library

import (
	"testing"

	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/stretchr/testify/require"
)

// Metadata is written by whoever writes the pod, so nothing in it may vouch for an image.
func TestNothingInThePodsMetadataVouchesForIt(t *testing.T) {
	text := source(t, "verified-images")
	require.NotContains(t, text, "metadata", "the template reads no metadata")
	query, err := compile(t.Context(), rego.Module("template.rego", text))
	require.NoError(t, err)
	for name, metadata := range map[string]object{
		"it is being deleted": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": []any{"example.com/stay"}},
		"an annotation " +
			"of a verdict": {"annotations": object{"landwaiter.dev/verified": "true", "kyverno.io/verify-images": `{"r/app:v1":"pass"}`,
			"kyverno.io/image-verification-outcomes": `{"r/app:v1":"pass"}`}},
		"a label of a verdict": {"labels": object{"landwaiter.dev/verified": "true", "policy.sigstore.dev/include": "false"}},
		"an owner":             {"ownerReferences": []any{object{"kind": "ReplicaSet", "name": "verified", "controller": true}}},
	} {
		t.Run(name, func(t *testing.T) {
			input := podReview("team-a", pod(image))
			input["review"].(object)["object"].(object)["metadata"] = metadata //nolint:forcetypeassert // podReview made it
			messages, asked, err := review(t.Context(), query, input, denying)
			require.NoError(t, err)
			require.Equal(t, []string{key}, asked)
			require.Len(t, messages, 2, "the denial and the traceID")
		})
	}
}
