package report

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/server/provider"
)

func key(t *testing.T, namespace verify.Namespace, name string) provider.KeyObservation {
	t.Helper()
	ref, err := image.Parse(name)
	require.NoError(t, err)
	return provider.KeyObservation{Key: "[" + string(namespace) + "]" + name, Namespace: namespace, Reference: ref, Answer: verify.AnswerDenied, Result: &denied}
}

func admission(trace string, keys ...provider.KeyObservation) provider.Observation {
	return provider.Observation{TraceID: trace, Source: provider.SourceAdmission, Operation: provider.OperationVerify, Keys: keys}
}

// noting runs a test in which time passes at once, with what writes the notes of a replica.
func noting(t *testing.T, test func(t *testing.T, r *Reporter, server *api, w *noteWriter)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r, server, _, _ := newReporter(t)
		test(t, r, server, newNoteWriter(r))
	})
}

// relay writes the notes of a replica and hands their Events to the leader, as its watch does.
func relay(t *testing.T, r *Reporter, server *api) {
	t.Helper()
	newNoteWriter(r).write(t.Context(), time.Now())
	for _, e := range server.events {
		r.leading.Load().noted(e)
	}
}

func TestOnlyDenialsOfAdmissionsAreNoted(t *testing.T) {
	r, _, _, _ := newReporter(t)
	audit, mutation := admission("t", key(t, "team-a", imageOne)), admission("t", key(t, "team-a", imageOne))
	audit.Source, mutation.Operation = provider.SourceAudit, provider.OperationMutate
	repeated, cluster := key(t, "team-a", imageOne), key(t, verify.Cluster, imageOne)
	repeated.Repeated = true
	for _, o := range []provider.Observation{audit, mutation, admission("t", repeated, cluster)} {
		r.Observe(t.Context(), o)
	}
	for _, outcome := range []verify.Answer{verify.AnswerAllowed, verify.AnswerUnverified, verify.AnswerWarned, verify.AnswerUndecided} {
		k := key(t, "team-a", imageOne)
		k.Answer = outcome
		r.Observe(t.Context(), admission("t", k))
	}
	require.Empty(t, r.notes.of)
	probe := v1beta1.IsolationImage + "@sha256:" + strings.Repeat("0", 64)
	r.Observe(t.Context(), admission("t", key(t, "team-a", probe)))
	require.Empty(t, r.notes.of, "one team's check writes into no other's report")
	like := []string{"registry.invalid/landwaiter-isolation/app:1", "registry.invalid/landwaiter-isolation-x:1", "registry.invalid:5000/landwaiter-isolation:1",
		"r.example.com/landwaiter-isolation:1",
		"r.example.com/registry.invalid/landwaiter-isolation:1", "registry.invalid.example.com/landwaiter-isolation:1", "registry.invalid/x/landwaiter-isolation:1"}
	for _, name := range like {
		r.Observe(t.Context(), admission("t", key(t, "team-a", name), key(t, "team-a", probe)))
	}
	require.Len(t, r.notes.due(time.Now()), len(like), "a name that is like it hides nothing")
	r.notes.forget("team-a")
	malformed := provider.KeyObservation{Key: "[team-a]no\nimage", Namespace: "team-a", Answer: verify.AnswerInvalid, Reason: "it is no image"}
	r.Observe(t.Context(), admission("t", key(t, "team-a", imageOne), malformed))
	due := r.notes.due(time.Now())
	require.Len(t, due, 2)
	images := []string{due[0].Image, due[1].Image}
	require.ElementsMatch(t, []string{imageOne, "no image"}, images)
}

func TestANoteSaysWhatWasDeniedAndWhy(t *testing.T) {
	noting(t, func(t *testing.T, r *Reporter, server *api, w *noteWriter) {
		r.Observe(t.Context(), admission("first", key(t, "team-a", imageOne)))
		r.Observe(t.Context(), admission("second", key(t, "team-a", imageOne)))
		w.write(t.Context(), time.Now())
		require.Equal(t, []string{postEvent}, server.written())
		r.Observe(t.Context(), admission("third", key(t, "team-a", imageOne)))
		w.write(t.Context(), time.Now())
		w.write(t.Context(), time.Now())
		written := server.written()
		require.Len(t, written, 1)
		require.Contains(t, written[0], "PATCH")
		for _, e := range server.events {
			require.EqualValues(t, 3, e.Count)
			require.Equal(t, v1beta1.EventImageDenied, e.Reason)
			require.Equal(t, "image "+imageOne+" failed verification 3 times (Gatekeeper decides whether that stops a pod): the key is not trusted. Ask: #team-a. To "+
				"fix, if your build made it: sign it. Command: cosign sign "+imageOne, e.Message)
			n, ok := parseNote(e.Annotations[annotationNote], time.Now())
			require.True(t, ok)
			require.Equal(t, 3, n.Count)
			require.Equal(t, "first", n.TraceID, "the log has the first of the same lines")
			require.Equal(t, "ClusterVerifier release", n.Policy)
		}
	})
}

func TestANoteNamesAllPoliciesThatDenyAndTheLeaderWhomToAskAboutEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, server, _, _ := newReporter(t)
		lead(t, r)
		pass(time.Second)
		several := denied
		for _, name := range []string{"baseline", "release", "silent", "team"} {
			several.Verdict.Others = append(several.Verdict.Others,
				policy.Objection{Policy: policy.ObjectRef{Kind: "ClusterVerificationPolicy", Name: name}, Reason: name + " denies",
					Contact: contacts["ClusterVerificationPolicy "+name]})
		}
		k := key(t, "team-a", imageOne)
		k.Result = &several
		r.Observe(t.Context(), admission("t", k))
		relay(t, r, server)
		for _, e := range server.events {
			require.Contains(t, e.Message, "Ask: #team-a; #security. ")
		}
		pass(2 * soon)
		p := server.stored()["team-a/landwaiter-denied"].Results[0].Properties
		require.Equal(t, "#team-a; #security", p[v1beta1.PropertyContact], "each once")
	})
}

func TestTheFurtherPoliciesOfAForgedNoteAreBounded(t *testing.T) {
	n := noteAt("r0-1", 1, began)
	for range 3 * policy.MaxOthers {
		n.Others = append(n.Others, strings.Repeat("x\u202e\n", 50))
	}
	text, err := json.Marshal(n)
	require.NoError(t, err)
	read, ok := parseNote(string(text), began)
	require.True(t, ok)
	require.Len(t, read.Others, policy.MaxOthers)
	for _, name := range read.Others {
		require.LessOrEqual(t, len(name), maxNameBytes)
		require.NotContains(t, name, "\n")
	}
}

func TestAnEventThatExpiredIsMadeAgainWithTheWholeCount(t *testing.T) {
	noting(t, func(t *testing.T, r *Reporter, server *api, w *noteWriter) {
		for range 2 {
			r.Observe(t.Context(), admission("t", key(t, "team-a", imageOne)))
			w.write(t.Context(), time.Now())
			clear(server.events)
		}
		r.Observe(t.Context(), admission("t", key(t, "team-a", imageOne)))
		w.write(t.Context(), time.Now())
		for _, e := range server.events {
			require.EqualValues(t, 3, e.Count)
		}
		require.Len(t, server.events, 1)
	})
}

func TestTheFirstDenialOfAnImageIsWrittenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, server, _, _ := newReporter(t)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		synctest.Wait()
		for i := range accountNotesAtOnce { // in no time
			r.Observe(ctx, admission("t", key(t, "team-a", fmt.Sprintf("r.example.com/app:%d", i))))
		}
		synctest.Wait()
		require.Len(t, server.events, accountNotesAtOnce, "a server that is killed now has lost none of them")
		stop()
		require.NoError(t, <-done)
	})
}

func TestAnIdleCounterBeginsAgainAsAnother(t *testing.T) {
	noting(t, func(t *testing.T, r *Reporter, server *api, w *noteWriter) {
		for range 2 {
			r.Observe(t.Context(), admission("t", key(t, "team-a", imageOne)))
			w.write(t.Context(), time.Now())
			time.Sleep(idleCounter + time.Minute)
			w.write(t.Context(), time.Now())
			require.Empty(t, r.notes.of)
			require.Zero(t, r.notes.total.Load())
			require.Empty(t, r.notes.each)
		}
		require.Len(t, server.events, 2)
	})
}

func TestDenialsOfAnAccountAreBounded(t *testing.T) {
	noting(t, func(t *testing.T, r *Reporter, server *api, w *noteWriter) {
		for i := range 3 * maxPendingEach {
			r.Observe(t.Context(), admission("t", key(t, "team-a", fmt.Sprintf("r.example.com/app:%d", i))))
		}
		r.Observe(t.Context(), admission("t", key(t, "team-b", imageOne)))
		require.EqualValues(t, maxPendingEach+2, r.notes.total.Load(), "and one for all others")
		require.Equal(t, 2*maxPendingEach, r.notes.of["team-a"][""].Count)
		w.write(t.Context(), time.Now())
		require.Len(t, server.events, accountNotesAtOnce+1, "the other namespace's is written at once")
		for range 10 * 60 * 2 {
			time.Sleep(noteEvery)
			w.write(t.Context(), time.Now())
		}
		require.Len(t, server.events, maxPendingEach+2)
	})
}

func TestNotesOfANamespaceThatIsGoneAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, server, _, log := newReporter(t)
		server.failing = func(string, string) *apierrors.StatusError {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "team-a")
		}
		r.Observe(t.Context(), admission("t", key(t, "team-a", imageOne)))
		newNoteWriter(r).write(t.Context(), time.Now())
		require.Empty(t, r.notes.of)
		require.Empty(t, log.AllEntries())
	})
}

func TestNotesWaitForTheAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, server, _, log := newReporter(t)
		server.failing = func(string, string) *apierrors.StatusError { return apierrors.NewServiceUnavailable("away") }
		w := newNoteWriter(r)
		r.Observe(t.Context(), admission("t", key(t, "team-a", imageOne)))
		for range 4 {
			w.write(t.Context(), time.Now())
		}
		require.LessOrEqual(t, len(server.written()), 1, "with a pause")
		require.Len(t, log.AllEntries(), 1)
		require.Equal(t, "t", log.LastEntry().Data["traceID"])
		server.failing = nil
		time.Sleep(retryAfter + time.Second)
		w.write(t.Context(), time.Now())
		require.Len(t, server.events, 1)
	})
}

func TestAReplicaThatStopsWritesItsLastNotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, server, _, _ := newReporter(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		synctest.Wait()
		r.Observe(t.Context(), admission("t", key(t, "team-a", imageOne)))
		cancel()
		require.NoError(t, <-ended)
		require.Len(t, server.events, 1)
	})
}

func TestAWriteWhoseAnswerWasLostIsNotRepeatedAsAnother(t *testing.T) {
	noting(t, func(t *testing.T, r *Reporter, server *api, w *noteWriter) {
		r.Observe(t.Context(), admission("t", key(t, "team-a", imageOne)))
		for _, p := range r.notes.due(time.Now()) {
			require.NoError(t, w.save(t.Context(), p)) // and the process never learns of it
		}
		r.Observe(t.Context(), admission("t", key(t, "team-a", imageOne)))
		w.write(t.Context(), time.Now())
		require.Len(t, server.events, 1)
		for _, e := range server.events {
			require.EqualValues(t, 2, e.Count)
		}
	})
}

func TestTheTextOfAnEventIsBounded(t *testing.T) {
	n := note{Image: strings.Repeat("x", maxImageBytes), Reason: strings.Repeat("y", maxReasonBytes),
		Remediation: strings.Repeat("z", maxRemediationBytes), Count: 1}
	require.LessOrEqual(t, len(n.text()), maxMessageBytes)
	require.Contains(t, n.text(), decides)
	n.Command = "cosign sign --key KEY r.example.com/app@sha256:1"
	require.LessOrEqual(t, len(n.text()), maxMessageBytes)
	require.True(t, strings.HasSuffix(n.text(), " "+n.Command), "a command is whole, and nothing follows it")
	long := revocation{image: n.Image, state: state{reason: n.Reason, remediation: n.Remediation, command: n.Command, contact: n.Reason}}
	require.LessOrEqual(t, len(newRevoked("team-a", long, web, began).Message), maxMessageBytes)
}
