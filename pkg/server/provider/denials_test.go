package provider

import (
	"context"
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// tracesOf asks a handler and returns the traceIDs in the answer, each once.
func tracesOf(t *testing.T, h *handler, path string, keys ...string) []string {
	t.Helper()
	var found []string
	known := map[string]bool{}
	for _, item := range ask(t, h, path, keys...).Items {
		match := regexp.MustCompile(`traceID[: ]([0-9a-f]{32})`).FindStringSubmatch(fmt.Sprint(item))
		require.NotNil(t, match, "%v", item)
		if !known[match[1]] {
			known[match[1]] = true
			found = append(found, match[1])
		}
	}
	return found
}

// Kubernetes counts Events whose text is the same. A ReplicaSet is denied again and again, and
// a traceID of its own would make each denial an Event of its own.
func TestTheSameDenialKeepsTheFirstTraceID(t *testing.T) {
	reason := "nobody signed it"
	h := testHandler(deciderFunc(func(ctx context.Context, ns verify.Namespace, ref image.Reference) verify.Result {
		result := byRepository(ctx, ns, ref)
		if result.Verdict.Outcome() == policy.Denied {
			result.Verdict.Reason = reason
		}
		return result
	}), pinning, nil)
	const path, denied, allowed = "/v1/verify", "[team-a]r.example.com/deny", "[team-a]r.example.com/allow"
	first := tracesOf(t, h, path, denied)
	require.Equal(t, first, tracesOf(t, h, path, denied))
	require.Equal(t, first, tracesOf(t, h, path, allowed, denied), "a template shows that of any answer")
	invalid := tracesOf(t, h, path, "[team-a]UPPER")
	require.Equal(t, invalid, tracesOf(t, h, path, "[team-a]UPPER"))
	const mutate = "/v1/namespaces/team-a/mutate"
	require.Equal(t, tracesOf(t, h, mutate, "r.example.com/deny:v1"), tracesOf(t, h, mutate, "r.example.com/deny:v1"))

	require.NotEqual(t, first, invalid)
	require.NotEqual(t, first, tracesOf(t, h, path, "[team-b]r.example.com/deny"), "another namespace")
	require.NotEqual(t, first, tracesOf(t, h, path, "[team-a]r.example.com/d"), "another image")
	require.NotEqual(t, tracesOf(t, h, path, allowed), tracesOf(t, h, path, allowed), "nothing is denied")
	reason = "its key was revoked"
	require.NotEqual(t, first, tracesOf(t, h, path, denied), "another reason")
}

// Somebody who mistyped an image needs to know whom to ask, too.
func TestAnImageThatIsNoneSaysWhomToAsk(t *testing.T) {
	h := testHandler(deciderFunc(func(_ context.Context, ns verify.Namespace, ref image.Reference) verify.Result {
		return verdict(policy.Undecided, ns, ref)
	}), nil,
		func(o *Options) { o.Contact = func(ns verify.Namespace) string { return "#" + string(ns) } })
	for _, c := range []struct{ path, key, want string }{
		{"/v1/verdict", "[team-a]r.example.com/A", ". Ask: #team-a (traceID "},
		{"/v1/verify", "[team-a]r.example.com/A", ". Ask: #team-a (traceID "},
		{"/v1/namespaces/team-b/verify", "r.example.com/A", ". Ask: #team-b (traceID "},
		{"/v1/namespaces/team-b/mutate", "r.example.com/A", ". Ask: #team-b (traceID "},
	} {
		require.Contains(t, ask(t, h, c.path, c.key).Items[0].Error, c.want, c.path)
	}
	require.Contains(t, ask(t, h, "/v1/verdict", "[team-a]r.example.com/A", "[team-a]r.example.com/a").SystemError, ". Ask: #team-a",
		"beside one that could not be decided")
}
