package provider

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// Istio's gateways have image: auto in their Deployment. The denial must not send anybody to look for such an image.
func TestADenialOfAPlaceholderSaysWhatItMayBe(t *testing.T) {
	for text, want := range map[string]bool{"auto": true, "docker.io/library/auto:latest": true, "auto:v1": false, "team/auto": false, "r.example.com/library/auto": false} {
		ref, err := image.Parse(text)
		require.NoError(t, err)
		d := decision{answer: verify.AnswerDenied, result: verify.Result{Reference: ref, Verdict: policy.Verdict{Reason: "no signature was found"}}}
		said := d.text(1 << 10)
		require.Contains(t, said, "no signature was found")
		if want {
			require.Contains(t, said, "exemptImages", text)
		} else {
			require.NotContains(t, said, "exemptImages", text)
		}
	}
	_, err := image.Parse("")
	require.ErrorContains(t, err, "a webhook that fills it in for pods")
}
