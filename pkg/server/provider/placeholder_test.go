package provider

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// Istio's gateways have image: auto in their Deployment. The denial must not send anybody to look for such an image.
func TestADenialOfAPlaceholderSaysWhatItMayBe(t *testing.T) {
	for text, want := range map[string]bool{"auto": true, "docker.io/library/auto:latest": true, "auto:v1": false, "team/auto": false,
		"r.example.com/library/auto": false} {
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
	for _, blank := range []string{"", " ", "\t \n"} {
		_, err := image.Parse(blank)
		require.ErrorContains(t, err, "a webhook that fills it in for pods", "%q", blank)
	}
}

// Gatekeeper mutates before Istio's injector does, and OpenShift's triggers fill in a blank image later. Denying
// these would deny pods whose final image is verified anyway.
func TestMutationLeavesPlaceholdersToWhoeverFillsThemIn(t *testing.T) {
	for _, path := range []string{"/v1/mutate", "/v1/namespaces/team-a/mutate", "/ratify/gatekeeper/v1/mutate"} {
		for _, drop := range []bool{false, true} {
			asked := &calls{}
			h := testHandler(byRepository, asked.resolver(pinning), func(o *Options) { o.DropTag = drop })
			placeholders := []string{"auto", "", " ", "\t\n"}
			response := ask(t, h, path, append(placeholders, "r.example.com/a", "r.example.com/missing")...)
			require.Empty(t, response.SystemError)
			byKey := items(response)
			for _, key := range placeholders {
				require.Empty(t, byKey[key].Error, "%s %q", path, key)
				require.Equal(t, key, byKey[key].Value, path)
			}
			require.Contains(t, byKey["r.example.com/a"].Value, "@", "other images of the request are pinned")
			require.NotEmpty(t, byKey["r.example.com/missing"].Error)
			require.Len(t, asked.get(), 2, "nobody is asked about a placeholder")
		}
	}
}

func TestMutationPinsWhatOnlyLooksLikeAPlaceholder(t *testing.T) {
	h := testHandler(byRepository, pinning, nil)
	for _, key := range []string{"auto:latest", "auto:v1", "docker.io/library/auto", "team/auto", "r.example.com/auto"} {
		require.Equal(t, key+"@"+someDigest.String(), items(ask(t, h, "/v1/mutate", key))[key].Value)
	}
	for _, key := range []string{" auto", "auto ", "AUTO", "[team-a]auto", "[team-a]"} {
		require.NotEmpty(t, items(ask(t, h, "/v1/mutate", key))[key].Error, "%q", key)
	}
}

// What nothing has filled in by then would run as it is written.
func TestVerificationNeverAllowsAPlaceholder(t *testing.T) {
	h := testHandler(deciderFunc(func(_ context.Context, ns verify.Namespace, ref image.Reference) verify.Result {
		return verdict(policy.Denied, ns, ref)
	}), pinning, nil)
	for _, path := range []string{"/v1/verdict", "/v1/verify", "/v1/audit/verify", "/ratify/gatekeeper/v1/verify"} {
		for _, key := range []string{"[team-a]auto", "auto"} {
			item := items(ask(t, h, path, key))[key]
			require.Empty(t, item.Error)
			require.Equal(t, false, item.Value.(map[string]any)["isSuccess"], "%s %q", path, key)
		}
		for _, key := range []string{"[team-a]", "[team-a] ", "", " "} {
			require.Contains(t, items(ask(t, h, path, key))[key].Error, "empty", "%s %q", path, key)
		}
	}
}
