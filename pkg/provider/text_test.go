package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/image"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/verify"
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
	text := ask(t, h, "/v1/verify", "r.example.com/unreachable", "r.example.com/deny", "r.example.com/allow", "r.example.com/Bad", "r.example.com/unreachable:v2").SystemError
	lines := strings.Split(text, "\n")
	require.Len(t, lines, 5)
	require.True(t, slices.IsSorted(lines), "%q", lines)
	require.Equal(t, 1, strings.Count(text, "try again"))
	require.Regexp(t, `\(traceID [0-9a-f]{32}\)$`, text)
	require.Equal(t, 1, strings.Count(text, "traceID"))
}

func TestReasonsOfManyDeniedImagesStayReadable(t *testing.T) {
	h := testHandler(saying(strings.Repeat("because ", 1000)), pinning, nil)
	for denied, most := range map[int]int{1: maxReasonBytes, 10: maxReasonBytes, 50: maxReasonsBytes / 50, maxKeys: minReasonBytes} {
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
	const odd = "first\nsecond\x00\u0085third\r\ttab"
	h := testHandler(saying(odd), pinning, nil)
	for image, field := range map[string]string{"r.example.com/deny": "reason", "r.example.com/allow": "warning"} {
		value, _ := ask(t, h, "/v1/verify", image).Items[0].Value.(map[string]any)
		require.Equal(t, "first second  third  tab", value[field])
	}
	undecided := testHandler(deciderFunc(func(_ context.Context, ns verify.Namespace, ref image.Reference) verify.Result {
		result := verdict(policy.Undecided, ns, ref)
		result.Verdict.Reason = odd
		return result
	}), pinning, nil)
	require.Equal(t, 1, strings.Count(ask(t, undecided, "/v1/verify", "r.example.com/a").SystemError, "\n"))
}

func TestMalformedKeysNameTheTraceID(t *testing.T) {
	items := ask(t, testHandler(byRepository, pinning, nil), "/v1/verify", "r.example.com/Bad").Items
	require.Regexp(t, `\(traceID [0-9a-f]{32}\)$`, items[0].Error)
}
