package provider

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/test/kit/judged"
)

func TestKnownVerdictsAreNotVerifiedAgain(t *testing.T) {
	asked := &calls{}
	h := testHandler(knowing{asked.decider(byRepository), func(ns verify.Namespace, ref image.Reference) (verify.Result, bool) {
		return verdict(policy.Denied, ns, ref), ref.Tag == "known"
	}}, pinning, nil)
	byKey := items(ask(t, h, "/v1/verify", "r.example.com/a:known", "r.example.com/a:new"))
	require.Len(t, byKey, 2)
	require.False(t, succeeded(byKey["r.example.com/a:known"]))
	require.True(t, succeeded(byKey["r.example.com/a:new"]))
	// Only the first target of a request is always recalled: the others must come within recallFor.
	byKey = items(ask(t, h, "/v1/verify", "[team-a]r.example.com/a:known"))
	require.Len(t, byKey, 1)
	require.False(t, succeeded(byKey["[team-a]r.example.com/a:known"]))
	require.Equal(t, map[string]int{"|r.example.com/a:new": 1}, asked.get())
}

func TestRecalledVerdictsAreCheckedLikeVerifiedOnes(t *testing.T) {
	for name, recall := range map[string]func(verify.Namespace, image.Reference) (verify.Result, bool){
		"of another namespace": func(_ verify.Namespace, ref image.Reference) (verify.Result, bool) {
			return verdict(policy.Allowed, "team-b", ref), true
		},
		"of another image": func(ns verify.Namespace, ref image.Reference) (verify.Result, bool) {
			ref.Repository = "other"
			return verdict(policy.Allowed, ns, ref), true
		},
		"undecided": func(ns verify.Namespace, ref image.Reference) (verify.Result, bool) {
			return verdict(policy.Undecided, ns, ref), true
		},
		"nothing": func(verify.Namespace, image.Reference) (verify.Result, bool) {
			return verify.Result{Verdict: judged.As(policy.Allowed, policy.Verdict{})}, true
		},
		"a panic": func(verify.Namespace, image.Reference) (verify.Result, bool) { panic("the memory is broken") },
	} {
		t.Run(name, func(t *testing.T) {
			response := ask(t, testHandler(knowing{byRepository, recall}, pinning, nil), "/v1/verify", "[team-a]r.example.com/a")
			require.NotEmpty(t, response.SystemError)
			require.Empty(t, response.Items)
		})
	}
}

// A memory that takes its time is not waited for: the other targets are worked on
// at once, as those that are not known.
func TestASlowRecallIsAbandoned(t *testing.T) {
	recalled := 0
	h := testHandler(knowing{byRepository, func(ns verify.Namespace, ref image.Reference) (verify.Result, bool) {
		recalled++
		for began := time.Now(); time.Since(began) < recallFor; {
			continue // a processor that is busy elsewhere
		}
		return verdict(policy.Denied, ns, ref), true
	}}, pinning, nil)
	response := ask(t, h, "/v1/verify", "r.example.com/a1", "r.example.com/a2", "r.example.com/a3")
	require.Len(t, response.Items, 3)
	require.Equal(t, 1, recalled)
	require.True(t, succeeded(items(response)["r.example.com/a3"]))
}

func TestMutationsAreNotRecalled(t *testing.T) {
	h := testHandler(knowing{byRepository, func(verify.Namespace, image.Reference) (verify.Result, bool) {
		panic("a verdict is no digest")
	}}, pinning, nil)
	require.Equal(t, "r.example.com/a:v1@"+someDigest.String(), items(ask(t, h, "/v1/mutate", "r.example.com/a:v1"))["r.example.com/a:v1"].Value)
}
