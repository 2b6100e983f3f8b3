package provider

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// seen is an Observer that keeps what it is told.
type seen []Observation

func (s *seen) Observe(_ context.Context, o Observation) { *s = append(*s, o) }

func observed(t *testing.T, decider Decider, path string, keys ...string) Observation {
	t.Helper()
	var s seen
	h := testHandler(decider, pinning, func(o *Options) { o.Observers = []Observer{&s} })
	ask(t, h, path, keys...)
	require.Len(t, s, 1)
	return s[0]
}

func TestObserversSeeEveryVerdict(t *testing.T) {
	began := time.Now()
	o := observed(t, byRepository, "/v1/verify", "[team-a]r.example.com/allow", "r.example.com/deny", "[x", "[team-a]r.example.com/allow:latest",
		"[team-a]r.example.com/allow")
	require.Regexp(t, `^[0-9a-f]{32}$`, o.TraceID)
	require.False(t, o.Requested.Before(began))
	require.Positive(t, o.Duration)
	require.Equal(t, OperationVerify, o.Operation)
	require.Equal(t, "verify", o.Endpoint)
	require.Equal(t, RequestAnswered, o.Outcome)
	require.Equal(t, http.StatusOK, o.Status)
	require.Equal(t, 5, o.Asked)
	require.Equal(t, 2, o.Images)
	require.Len(t, o.Keys, 4)

	allowed, denied, malformed, again := o.Keys[0], o.Keys[1], o.Keys[2], o.Keys[3]
	require.Equal(t, verify.Namespace("team-a"), allowed.Namespace)
	require.Equal(t, "r.example.com/allow:latest", allowed.Reference.String())
	require.Equal(t, verify.AnswerAllowed, allowed.Answer)
	require.Equal(t, policy.Allowed, allowed.Result.Verdict.Outcome())
	require.Equal(t, someDigest, allowed.Result.Digest)
	require.False(t, allowed.Repeated)
	require.Equal(t, verify.Cluster, denied.Namespace)
	require.Equal(t, verify.AnswerDenied, denied.Answer)
	require.Equal(t, "because of denied", denied.Reason)
	require.False(t, denied.Repeated)
	require.Equal(t, verify.AnswerInvalid, malformed.Answer)
	require.Equal(t, "[x", malformed.Key)
	require.Nil(t, malformed.Result)
	require.True(t, again.Repeated, "another key for the same image")
	require.Same(t, allowed.Result, again.Result)
	require.False(t, o.AllAllowed())
}

func TestOnlyTheAuditsPathIsTheAudits(t *testing.T) {
	audit := observed(t, byRepository, "/v1/audit/verify", "[team-a]r.example.com/deny")
	require.Equal(t, SourceAudit, audit.Source)
	require.Equal(t, "audit_verify", audit.Endpoint)
	require.Equal(t, OperationVerify, audit.Operation)
	require.Equal(t, verify.Namespace("team-a"), audit.Keys[0].Namespace)
	require.Equal(t, verify.AnswerDenied, audit.Keys[0].Answer)
	for _, path := range []string{"/v1/verify", "/v1/mutate", "/v1/namespaces/audit/verify", "/ratify/gatekeeper/v1/verify", "/nowhere"} {
		require.Equal(t, SourceAdmission, observed(t, byRepository, path, "r.example.com/a").Source, path)
	}
}

func TestObserversSeeNoVerdictWhereThereIsNone(t *testing.T) {
	ofAnother := deciderFunc(func(_ context.Context, _ verify.Namespace, ref image.Reference) verify.Result {
		return verdict(policy.Allowed, "team-b", ref)
	})
	for name, o := range map[string]Observation{
		"a verdict of another namespace": observed(t, ofAnother, "/v1/verify", "[team-a]r.example.com/a"),
		"a panic":                        observed(t, byRepository, "/v1/verify", "r.example.com/panic"),
		"a mutation that fails":          observed(t, byRepository, "/v1/mutate", "r.example.com/unreachable"),
	} {
		require.Equal(t, RequestUndecided, o.Outcome, name)
		require.Equal(t, verify.AnswerUndecided, o.Keys[0].Answer, name)
		require.NotEmpty(t, o.Keys[0].Reason, name)
		require.Nil(t, o.Keys[0].Result, "the zero Result is a denial: %s", name)
	}
	undecided := observed(t, byRepository, "/v1/verify", "r.example.com/u")
	require.Equal(t, policy.Undecided, undecided.Keys[0].Result.Verdict.Outcome(), "the Decider said so")
	pinned := observed(t, byRepository, "/v1/namespaces/team-a/mutate", "r.example.com/a")
	require.Equal(t, OperationMutate, pinned.Operation)
	require.Equal(t, verify.Namespace("team-a"), pinned.Namespace)
	require.Equal(t, verify.AnswerAllowed, pinned.Keys[0].Answer)
	require.Nil(t, pinned.Keys[0].Result)
	refused := observed(t, byRepository, "/nowhere", "r.example.com/a")
	require.Equal(t, RequestMalformed, refused.Outcome)
	require.Equal(t, http.StatusNotFound, refused.Status)
	require.Empty(t, refused.Keys)
	require.Empty(t, refused.Operation)
	require.False(t, refused.AllAllowed(), "nothing was asked about")
}

func TestARegistryIsNotToBlameForAClientThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := deciderFunc(func(context.Context, verify.Namespace, image.Reference) verify.Result {
			time.Sleep(time.Minute) // virtual
			return verify.Result{}
		})
		cause := func(ctx context.Context) policy.Reason {
			var s seen
			h := testHandler(stuck, pinning, func(o *Options) { o.Observers = []Observer{&s} })
			request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/verify", bytes.NewReader(requestBody(t, "[team-a]r.example.com/a")))
			request.Header.Set("Content-Type", "application/json")
			h.ServeHTTP(httptest.NewRecorder(), request)
			require.Len(t, s, 1)
			require.True(t, s[0].Keys[0].Undecided())
			return s[0].Keys[0].Cause
		}
		require.Equal(t, policy.ReasonUnreachable, cause(t.Context()), "nobody else is known to be slow")
		left, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		require.Equal(t, policy.ReasonUnfinished, cause(left))
		stood, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Minute))
		defer cancel()
		require.NotEqual(t, policy.ReasonUnreachable, cause(stood), "the process noticed the end a minute late")
		time.Sleep(2 * time.Minute)
	})
}
