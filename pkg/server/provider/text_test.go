package provider

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// saying is a verifier that denies with a reason, and warns of it where the image
// is allowed.
func saying(reason string) deciderFunc {
	return func(_ context.Context, ns verify.Namespace, ref image.Reference) verify.Result {
		outcome := policy.Denied
		if strings.HasPrefix(ref.Repository, "allow") {
			outcome = policy.Allowed
		}
		result := verdict(outcome, ns, ref)
		result.Verdict.Reason, result.Verdict.Warning = reason, reason
		return result
	}
}

func TestUndecidedLinesAreSortedAndEndWithTheTraceID(t *testing.T) {
	h := testHandler(byRepository, pinning, nil)
	text := ask(t, h, "/v1/verify", "r.example.com/unreachable", "r.example.com/deny", "r.example.com/allow", "r.example.com/Bad", "r.example.com/unreachable:v2").
		SystemError
	lines := strings.Split(text, "\n")
	require.Len(t, lines, 4)
	require.True(t, slices.IsSorted(lines), "%q", lines)
	require.Equal(t, 1, strings.Count(text, "try again"))
	require.Regexp(t, `\(traceID [0-9a-f]{32}\)$`, text)
	require.Equal(t, 1, strings.Count(text, "traceID"))
}

func TestReasonsOfManyDeniedImagesStayReadable(t *testing.T) {
	h := testHandler(saying(strings.Repeat("because ", 1000)), pinning, nil)
	for denied, most := range map[int]int{1: maxReasonBytes, 10: maxReasonBytes, 50: maxReasonsBytes / 50, maxImages: minReasonBytes} {
		keys := make([]string, denied)
		for i := range keys {
			keys[i] = fmt.Sprintf("r.example.com/a%d", i)
		}
		items := ask(t, h, "/v1/verify", keys...).Items
		require.Len(t, items, denied)
		for _, item := range items {
			value, _ := item.Value.(map[string]any)
			reason, _ := value["reason"].(string)
			require.LessOrEqual(t, len(reason), most+len("…"))
			require.GreaterOrEqual(t, len(reason), most)
		}
	}
}

func TestReasonsAreOneLineEach(t *testing.T) {
	const odd = "first\nsecond\x00\u0085third\r\ttab\u2028line\u202eback"
	h := testHandler(saying(odd), pinning, nil)
	for image, field := range map[string]string{"r.example.com/deny": "reason", "r.example.com/allow": "warning"} {
		value, _ := ask(t, h, "/v1/verify", image).Items[0].Value.(map[string]any)
		require.Equal(t, "first second  third  tab line back", value[field])
	}
	undecided := testHandler(deciderFunc(func(_ context.Context, ns verify.Namespace, ref image.Reference) verify.Result {
		result := verdict(policy.Undecided, ns, ref)
		result.Verdict.Reason = odd
		return result
	}), pinning, nil)
	require.NotContains(t, ask(t, undecided, "/v1/verify", "r.example.com/a").SystemError, "\n")
}

func TestADenialSaysWhatToDoWithinItsRoom(t *testing.T) {
	h := testHandler(deciderFunc(func(_ context.Context, ns verify.Namespace, ref image.Reference) verify.Result {
		result := verdict(policy.Denied, ns, ref)
		result.Verdict.Reason, result.Verdict.Remediation = strings.Repeat("because ", 1000), "cosign sign --key KEY "+ref.Name()+"\nimage x is allowed"
		return result
	}), pinning, nil)
	value, _ := ask(t, h, "/v1/verify", "r.example.com/a").Items[0].Value.(map[string]any)
	reason, _ := value["reason"].(string)
	require.LessOrEqual(t, len(reason), maxReasonBytes)
	require.True(t, strings.HasSuffix(reason, "…. To fix: cosign sign --key KEY r.example.com/a image x is allowed"), reason)
}

func TestADenialNamesEveryPolicyAndEndsWithItsCommand(t *testing.T) {
	const command = "cosign sign --key KEY r.example.com/a@sha256:1"
	for0, for1 := strings.Replace(command, "KEY", "KEY-FOR-p0", 1), strings.Replace(command, "KEY", "KEY-FOR-p1", 1)
	others := func(n int) (list []policy.Objection) {
		for i := range n {
			name := fmt.Sprintf("ClusterVerificationPolicy p%d", i)
			list = append(list,
				policy.Objection{Policy: policy.ObjectRef{Kind: "ClusterVerificationPolicy", Name: fmt.Sprintf("p%d", i)}, Reason: name + " requires\na signature",
					Command: command, Contact: "security@example.com"})
		}
		return list
	}
	h := testHandler(deciderFunc(func(_ context.Context, ns verify.Namespace, ref image.Reference) verify.Result {
		result := verdict(policy.Denied, ns, ref)
		result.Verdict.Others, result.Verdict.Contact = others(2), "#team-a"
		if ref.Repository == "many" {
			result.Verdict.Others = others(policy.MaxOthers)
		}
		return result
	}), pinning, nil)
	for _, path := range []string{"/v1/verify", "/v1/verdict"} {
		value, _ := ask(t, h, path, "[team-a]r.example.com/a").Items[0].Value.(map[string]any)
		require.Equal(t, "because of denied. Ask: #team-a. Also: ClusterVerificationPolicy p0 requires a signature. Ask: security@example.com"+
			". Also: ClusterVerificationPolicy p1 requires a signature. Ask: security@example.com. To fix, if your build made it: "+for0+" && "+for1, value["reason"])
		if path == "/v1/verify" {
			require.Equal(t, map[string]any{"kind": "VerificationPolicy", "namespace": "team-a", "name": "main"}, value["policy"], "the first that denies")
		}
	}
	var keys []string
	for i := range 50 {
		keys = append(keys, fmt.Sprintf("r.example.com/many:%d", i))
	}
	sum := 0
	for _, item := range ask(t, h, "/v1/verdict", keys...).Items {
		value, _ := item.Value.(map[string]any)
		reason, _ := value["reason"].(string)
		require.Contains(t, reason, "ClusterVerificationPolicy p6", "each policy is named")
		sum += len(reason)
	}
	require.Less(t, sum, 40<<10)
}

func TestMutationsSayWhatToDoAndNameTheTraceID(t *testing.T) {
	h := testHandler(byRepository, resolverFunc(func(_ context.Context, _ verify.Namespace, ref image.Reference) (image.Reference, error) {
		return ref, verify.PermanentWith(policy.ReasonNotFound, errors.New("cannot look up "+ref.String()+":\nno such image"), "push it")
	}), nil)
	for image, want := range map[string]string{
		"r.example.com/a":   "cannot look up r.example.com/a:latest: no such image. To fix: push it",
		"r.example.com/Bad": `image reference "r.example.com/Bad" is not valid: repository name (Bad) must be lowercase`,
	} {
		require.Regexp(t, "^"+regexp.QuoteMeta(want)+` \(traceID [0-9a-f]{32}\)$`, ask(t, h, "/v1/mutate", image).Items[0].Error)
	}
}

func TestMalformedKeysNameTheTraceID(t *testing.T) {
	items := ask(t, testHandler(byRepository, pinning, nil), "/v1/verify", "r.example.com/Bad").Items
	require.Regexp(t, `\(traceID [0-9a-f]{32}\)$`, items[0].Error)
}
