package report

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/workload"
	"github.com/landwaiter/landwaiter/pkg/server/provider"
	"github.com/landwaiter/landwaiter/test/kit/judged"
)

// silent is what an image of a registry that does not answer leads to.
var silent = verdict(judged.As(policy.Undecided, policy.Verdict{Reason: "r.example.com did not answer in time", Cause: policy.ReasonUnreachable}))

func unknownKey(t *testing.T, namespace verify.Namespace, name string) provider.KeyObservation {
	t.Helper()
	k := key(t, namespace, name)
	k.Answer, k.Result, k.Cause = verify.AnswerUndecided, &silent, silent.Verdict.Cause
	return k
}

// knownKey is an image about which a registry answered.
func knownKey(t *testing.T, namespace verify.Namespace, name string) provider.KeyObservation {
	t.Helper()
	k, result := key(t, namespace, name), allowed
	result.Looked, result.Answered = []verify.Looked{{Repository: "app"}}, time.Now()
	k.Answer, k.Result = verify.AnswerAllowed, &result
	return k
}

func TestUndecidedImagesOfAnAdmissionAreCountedByRegistry(t *testing.T) {
	r, _, _, _ := newReporter(t)
	audit, mutation := admission("t", unknownKey(t, "team-a", imageOne)), admission("t", unknownKey(t, "team-a", imageOne))
	audit.Source, mutation.Operation = provider.SourceAudit, provider.OperationMutate
	repeated := unknownKey(t, "team-a", imageOne)
	repeated.Repeated = true
	probe := unknownKey(t, "team-a", v1beta1.IsolationImage+"@sha256:"+strings.Repeat("0", 64))
	for _, o := range []provider.Observation{audit, admission("t", repeated, unknownKey(t, verify.Cluster, imageOne), probe)} {
		r.Observe(t.Context(), o)
	}
	require.Zero(t, r.registries.total.Load())
	late := unknownKey(t, "team-a", "other.example.com/app:1")
	late.Result, late.Reason = nil, "not finished in time, try again"
	for _, o := range []provider.Observation{mutation, admission("t", unknownKey(t, "team-a", imageTwo), late),
		admission("t", unknownKey(t, "team-b", imageOne))} {
		r.Observe(t.Context(), o)
	}
	require.Empty(t, r.notes.of, "nothing is denied")
	require.Len(t, r.registries.of["team-a"], 2)
	require.Equal(t, 2, r.registries.of["team-a"]["r.example.com"].Count, "a pod whose tag cannot be pinned is refused too")
	require.Equal(t, imageTwo, r.registries.of["team-a"]["r.example.com"].Image, "the last one")
	require.Equal(t, "not finished in time, try again", r.registries.of["team-a"]["other.example.com"].Reason)
	require.Len(t, r.registries.of["team-b"], 1)
	r.Forget("team-a")
	require.EqualValues(t, 1, r.registries.total.Load())
}

// A frozen server, a client that leaves, an expired root and overload are no outage of a registry, but pods
// are refused all the same.
func TestWhatNoRegistryCausedIsCountedForNone(t *testing.T) {
	noting(t, func(t *testing.T, r *Reporter, server *api, w *noteWriter) {
		for _, cause := range []policy.Reason{policy.ReasonUnfinished, policy.ReasonUnreadable, policy.ReasonRevocationUnknown, policy.ReasonInternalError, ""} {
			k := unknownKey(t, "team-a", imageOne)
			k.Cause = cause
			r.Observe(t.Context(), admission("t", k))
		}
		require.Len(t, r.registries.of["team-a"], 1)
		require.Equal(t, 5, r.registries.of["team-a"][v1beta1.RegistriesNone].Count)
		w.write(t.Context(), time.Now())
		for _, e := range server.events {
			require.Contains(t, e.Message, "Landwaiter could not decide about images whose registry is not the cause 5 times since ")
			require.NotContains(t, e.Message, "images of r.example.com")
		}
		r.Observe(t.Context(), admission("t", knownKey(t, "team-a", imageTwo)))
		require.Zero(t, r.registries.of["team-a"][v1beta1.RegistriesNone].Answered, "another image says nothing of the cause")
		r.Observe(t.Context(), admission("t", knownKey(t, "team-a", imageOne)))
		require.NotZero(t, r.registries.of["team-a"][v1beta1.RegistriesNone].Answered)
		require.Equal(t, "landwaiter verify --explain --namespace team-a "+imageOne,
			second(r.registries.advice("team-a", note{Registry: v1beta1.RegistriesNone, Image: imageOne})))
	})
}

func second(_, command string) string { return command }

func TestARegistryThatFailsIsOneEventThatIsUpdatedOnceAMinute(t *testing.T) {
	noting(t, func(t *testing.T, r *Reporter, server *api, w *noteWriter) {
		const minutes, each = 10, 12 // requests, ten seconds apart
		for i := range minutes * each {
			r.Observe(t.Context(), admission("t", unknownKey(t, "team-a", fmt.Sprintf("r.example.com/app:%d", i%40))))
			w.write(t.Context(), time.Now())
			time.Sleep(time.Minute / each)
		}
		written := server.written()
		require.LessOrEqual(t, len(written), minutes+1)
		require.Equal(t, 1, strings.Count(strings.Join(written, "\n"), postEvent))
		require.Len(t, server.events, 1)
		time.Sleep(registryEvery)
		w.write(t.Context(), time.Now())
		for _, e := range server.events {
			require.Equal(t, v1beta1.EventImageUndecided, e.Reason)
			require.EqualValues(t, minutes*each, e.Count)
			require.Equal(t, corev1.EventTypeWarning, e.Type)
			require.Contains(t, e.Message, "Landwaiter could not decide about images of r.example.com 120 times since ")
			require.Contains(t, e.Message, "r.example.com did not answer in time. The last image was r.example.com/app:39")
		}
	})
}

func TestARegistryThatIsBackIsSaid(t *testing.T) {
	noting(t, func(t *testing.T, r *Reporter, server *api, w *noteWriter) {
		r.Observe(t.Context(), admission("t", unknownKey(t, "team-a", imageOne)))
		r.Observe(t.Context(), admission("t", unknownKey(t, "team-b", imageOne)))
		w.write(t.Context(), time.Now())
		time.Sleep(time.Second)
		known := knownKey(t, "team-a", imageOne)
		for _, result := range []verify.Result{
			allowed, // of a cache, or by a rule: the registry was not asked
			{Verdict: allowed.Verdict, Looked: []verify.Looked{{Repository: "app"}}},                                             // new rules for evidence that is kept
			{Verdict: allowed.Verdict, Looked: []verify.Looked{{Repository: "app"}}, Answered: time.Now().Add(-2 * time.Second)}, // before the outage
		} {
			known.Result = &result
			r.Observe(t.Context(), admission("t", known))
			r.Verified("team-a", imageOne, result)
			require.Zero(t, r.registries.of["team-a"]["r.example.com"].Answered)
		}
		r.Observe(t.Context(), admission("t", knownKey(t, "team-a", imageTwo)))
		r.Observe(t.Context(), admission("t", knownKey(t, "team-a", "other.example.com/app:1")))
		time.Sleep(registryEvery)
		w.write(t.Context(), time.Now())
		for _, e := range server.events {
			if e.Namespace == "team-b" {
				require.Equal(t, corev1.EventTypeWarning, e.Type, "what one namespace's request taught says nothing about another")
				continue
			}
			require.Equal(t, corev1.EventTypeNormal, e.Type)
			require.Contains(t, e.Message, "Landwaiter decides about images of r.example.com again since ")
			require.EqualValues(t, 1, e.Count)
		}
		server.written()
		time.Sleep(2 * registryEvery)
		w.write(t.Context(), time.Now())
		require.Empty(t, server.written(), "it is said once")
		r.Observe(t.Context(), admission("t", unknownKey(t, "team-a", imageOne)))
		w.write(t.Context(), time.Now())
		for _, e := range server.events {
			require.Equal(t, corev1.EventTypeWarning, e.Type, "it failed again")
			if e.Namespace == "team-b" {
				continue
			}
			require.EqualValues(t, 1, e.Count)
			require.Contains(t, e.Message, "could not decide about images of r.example.com once since "+stamp(time.Now()), "this is another outage")
		}
	})
}

func TestAReplicaThatStopsWritesWhatItCountedOfARegistry(t *testing.T) {
	noting(t, func(t *testing.T, r *Reporter, server *api, w *noteWriter) {
		for range 2 {
			r.Observe(t.Context(), admission("t", unknownKey(t, "team-a", imageOne)))
			w.write(t.Context(), time.Now())
		}
		r.registries.hurry()
		w.write(t.Context(), time.Now())
		for _, e := range server.events {
			require.EqualValues(t, 2, e.Count)
		}
	})
}

func TestRegistriesThatFailAreBounded(t *testing.T) {
	r, _, _, _ := newReporter(t)
	for i := range 3 * maxRegistriesEach {
		r.Observe(t.Context(), admission("t", unknownKey(t, "team-a", fmt.Sprintf("r%d.example.com/app:1", i))))
	}
	r.Observe(t.Context(), admission("t", unknownKey(t, "team-b", imageOne)))
	require.Len(t, r.registries.of["team-a"], maxRegistriesEach+1)
	require.Equal(t, 2*maxRegistriesEach, r.registries.of["team-a"][v1beta1.RegistriesOther].Count)
	require.Len(t, r.registries.of["team-b"], 1, "nobody else has less room")

	s := newSpace()
	for i := range 3 * maxRegistries { // anyone who may write Events can forge as many
		s.fold(note{Counter: "c", Registry: fmt.Sprintf("r%d", i), First: began, Last: began.Add(time.Duration(i) * time.Second), Count: 1}, began)
	}
	require.Len(t, s.registries, maxRegistries)
	require.Contains(t, s.registries, fmt.Sprintf("r%d", 3*maxRegistries-1), "the last ones stay")
}

func TestARegistryThatEverybodyUsesIsAnEventInEachNamespaceWithinAMinute(t *testing.T) {
	noting(t, func(t *testing.T, r *Reporter, server *api, w *noteWriter) {
		for i := range 1000 {
			r.Observe(t.Context(), admission("t", unknownKey(t, verify.Namespace(fmt.Sprintf("team-%d", i)), imageOne)))
		}
		r.Observe(t.Context(), admission("t", key(t, "team-0", imageTwo)))
		for range time.Minute / noteEvery {
			w.write(t.Context(), time.Now())
			time.Sleep(noteEvery)
		}
		reasons := map[string]int{}
		for _, e := range server.events {
			reasons[e.Reason]++
		}
		require.Equal(t, map[string]int{v1beta1.EventImageUndecided: 1000, v1beta1.EventImageDenied: 1}, reasons, "and denials do not wait for that")
	})
}

// outage is the result about a registry in a report.
func outage(t *testing.T, r *openreports.Report) map[string]string {
	t.Helper()
	for i := range r.Results {
		if r.Results[i].Rule == v1beta1.ReportUndecided {
			require.EqualValues(t, v1beta1.ReportError, r.Results[i].Result)
			return r.Results[i].Properties
		}
	}
	require.Fail(t, "the report has no registry")
	return nil
}

func TestTheReportHasTheRegistriesThatFailOfAllReplicas(t *testing.T) {
	s := newSpace()
	one := note{Counter: "one", Registry: "r.example.com", Image: imageOne, Reason: "r.example.com did not answer in time", First: began,
		Last: began.Add(time.Minute), Count: 3}
	other := note{Counter: "other", Registry: "r.example.com", Image: imageTwo, Reason: "r.example.com refuses the connection", First: began.Add(-time.Minute),
		Last: began.Add(2 * time.Minute), Count: 4}
	for _, n := range []note{one, other, one} {
		s.fold(n, began)
	}
	s.fold(note{Counter: "denied", Image: imageOne, Policy: "p", Reason: "nobody signed it", First: began, Last: began, Count: 1}, began)
	reports := s.all()
	require.Len(t, reports, 1)
	require.Equal(t, openreports.ReportSummary{Fail: 1, Error: 1}, reports[0].Summary)
	p := outage(t, reports[0])
	require.Equal(t, []string{"7", stamp(other.First), stamp(other.Last), imageTwo, ""},
		[]string{p[v1beta1.PropertyCount], p[v1beta1.PropertyFirst], p[v1beta1.PropertyLast], p[v1beta1.PropertyImage], p[v1beta1.PropertyAnswered]})
	id := p[v1beta1.PropertyResultID]

	one.Answered = began.Add(3 * time.Minute)
	changed, fresh := s.fold(one, began.Add(3*time.Minute))
	require.True(t, changed, "one replica that decides again is enough")
	require.False(t, fresh)
	p = outage(t, s.all()[0])
	require.Equal(t, stamp(one.Answered), p[v1beta1.PropertyAnswered])
	require.Equal(t, id, p[v1beta1.PropertyResultID], "it is the same outage")

	next := newSpace() // the next leader, which sees the same notes again
	stored := s.all()[0]
	require.Zero(t, next.load(owned(stored), began.Add(4*time.Minute), runningBytes))
	next.fold(one, began.Add(4*time.Minute))
	require.Equal(t, p, outage(t, next.all()[0]))

	other.Count, other.Last, other.Reason = 5, began.Add(5*time.Minute), "r.example.com speaks plain HTTP"
	next.fold(other, began.Add(5*time.Minute))
	require.Empty(t, outage(t, next.all()[0])[v1beta1.PropertyAnswered], "it fails again")
	p = outage(t, next.all()[0])
	require.Equal(t, []string{"1", stamp(other.Last)}, []string{p[v1beta1.PropertyCount], p[v1beta1.PropertyFirst]}, "it is another outage")
	one.Count, one.Earlier, one.First, one.Last, one.Ended, one.Answered = 5, 3, began.Add(6*time.Minute), began.Add(7*time.Minute), one.Answered, time.Time{}
	next.fold(one, began.Add(7*time.Minute))
	late := note{Counter: "late", Registry: "r.example.com", Image: imageOne, Reason: "r.example.com did not answer in time", First: began,
		Last: began.Add(time.Minute), Count: 2}
	next.fold(late, began.Add(7*time.Minute))
	p = outage(t, next.all()[0])
	require.Equal(t, []string{"3", stamp(other.Last)}, []string{p[v1beta1.PropertyCount], p[v1beta1.PropertyFirst]},
		"notes of the earlier outage count for that one")
	restored := newSpace()
	require.Zero(t, restored.load(owned(next.all()[0]), began.Add(8*time.Minute), runningBytes))
	require.Equal(t, p, outage(t, restored.all()[0]))
	one.Count, one.Last = 6, began.Add(9*time.Minute)
	restored.fold(one, began.Add(9*time.Minute))
	require.Equal(t, "4", outage(t, restored.all()[0])[v1beta1.PropertyCount])
	missed := one // its answer was never seen
	missed.Earlier, missed.Count, missed.Ended, missed.First, missed.Last = 6, 7, began.Add(10*time.Minute), began.Add(11*time.Minute), began.Add(11*time.Minute)
	again := newSpace()
	again.load(owned(restored.all()[0]), began.Add(11*time.Minute), runningBytes)
	again.fold(missed, began.Add(11*time.Minute))
	p = outage(t, again.all()[0])
	require.Equal(t, []string{"1", stamp(missed.First)}, []string{p[v1beta1.PropertyCount], p[v1beta1.PropertyFirst]})
	restored.load(owned(next.all()[0]), began.Add(9*time.Minute), runningBytes)
	require.Equal(t, []string{"4", stamp(other.Last)},
		[]string{outage(t, restored.all()[0])[v1beta1.PropertyCount], outage(t, restored.all()[0])[v1beta1.PropertyFirst]})
	next.expire(one.Last.Add(keepRegistry + time.Second))
	require.Empty(t, next.registries)
}

// owned returns a report as the API server has it once Landwaiter wrote it.
func owned(r *openreports.Report) *openreports.Report {
	server := &api{reports: map[string]*openreports.Report{}}
	server.store("x", r, v1beta1.ReportSource)
	return r
}

func TestALeaderReportsARegistryWithinSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, server, _, _ := newReporter(t)
		lead(t, r)
		pass(time.Second)
		r.Observe(t.Context(), admission("t", unknownKey(t, "team-a", imageOne)))
		relay(t, r, server)
		pass(2 * soon)
		require.Equal(t, "r.example.com", outage(t, server.stored()["team-a/landwaiter-denied"])[v1beta1.PropertyRegistry])
		require.Len(t, server.stored(), 1, "no other namespace learns of it")
		pass(time.Second)
		again := allowed
		again.Reference, again.Looked = key(t, "team-a", imageTwo).Reference, []verify.Looked{{Repository: "app"}}
		r.Verified("team-a", imageTwo, again) // new rules for evidence that is kept
		pass(later)
		require.Empty(t, outage(t, server.stored()["team-a/landwaiter-denied"])[v1beta1.PropertyAnswered])
		again.Answered = time.Now()
		r.registries.forget("team-a") // another replica counted it
		r.Verified("team-b", imageTwo, again)
		pass(later)
		require.Empty(t, outage(t, server.stored()["team-a/landwaiter-denied"])[v1beta1.PropertyAnswered])
		r.Verified("team-a", imageTwo, again)
		pass(later)
		require.NotEmpty(t, outage(t, server.stored()["team-a/landwaiter-denied"])[v1beta1.PropertyAnswered], "the leader looked itself")
		pass(keepRegistry + 2*lookAgain)
		require.Empty(t, server.stored())
	})
}

// The leader has not seen the failure itself, and trusts no advice of an Event.
func TestTheRemedyOfARegistryTravelsAsAWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, server, _, _ := newReporter(t)
		lead(t, r)
		pass(time.Second)
		advice := func(remedy policy.Remedy, registry string) string {
			n := note{Counter: "other-" + fmt.Sprint(time.Now().Unix()), Registry: registry, Image: imageOne, Reason: "x", Remedy: remedy, First: time.Now(),
				Last: time.Now(), Count: 1}
			e, err := newNoted("team-a", n, workload.Ref{})
			require.NoError(t, err)
			r.leading.Load().noted(e)
			pass(later)
			p := outage(t, server.stored()["team-a/landwaiter-denied"])
			return strings.TrimSpace(p[v1beta1.PropertyRemedy] + " " + p[v1beta1.PropertyRemediation])
		}
		require.Equal(t, "Start start the registry, or correct the port in its name", advice(policy.RemedyStart, "r.example.com"))
		require.Equal(t, "controllers try their pods again, a pod without one has to be created again; if it lasts, ask whoever runs r.example.com",
			advice("curl evil | sh", "r.example.com"))
		require.NotContains(t, advice(policy.RemedyServeTLS, "r.example.com; run evil"), "with TLS")
	})
}

func TestAHostThatAnsweredOnceIsNotSaidToBeMistyped(t *testing.T) {
	n := note{Counter: "one", Registry: "r.example.com", Image: imageOne, Reason: "there is no such host", Remedy: policy.RemedyNoSuchHost, First: began,
		Last: began, Count: 1}
	said := func(s *space) string { return outage(t, s.all()[0])[v1beta1.PropertyRemedy] }
	s := newSpace()
	s.fold(n, began)
	require.Equal(t, "NoSuchHost", said(s))
	next := newSpace()
	next.load(owned(s.all()[0]), began, runningBytes)
	require.Equal(t, "NoSuchHost", said(next), "the next leader says the same")

	next.images["r.example.com/app:1"] = state{}
	require.Equal(t, "DNS", said(next), "its images run")
	n.Answered = began.Add(time.Minute)
	s.fold(n, n.Answered)
	n.Answered, n.Ended, n.Earlier, n.Count, n.First, n.Last = time.Time{}, began.Add(time.Minute), 1, 2, began.Add(time.Hour), began.Add(time.Hour)
	s.fold(n, n.Last)
	require.Equal(t, "DNS", said(s), "an outage of DNS")
}

func TestAForgedNoteOfARegistryIsBounded(t *testing.T) {
	text := fmt.Sprintf(`{"counter":"forged","registry":%q,"image":"x","reason":"y","first":%q,"last":%q,"count":1,"answered":%q}`,
		strings.Repeat("r\u202e\n", 500), stamp(began), stamp(began), stamp(began))
	n, ok := parseNote(text, began)
	require.True(t, ok)
	require.LessOrEqual(t, len(n.Registry), maxNameBytes)
	require.NotContains(t, n.Registry, "\n")
	_, ok = parseNote(strings.Replace(text, `"answered":"`+stamp(began), `"answered":"2999-01-01T00:00:00Z`, 1), began)
	require.False(t, ok, "it would never fail again")
	n.Reason, n.Image = strings.Repeat("y", maxReasonBytes), strings.Repeat("x", maxImageBytes)
	require.LessOrEqual(t, len(n.text()), maxMessageBytes)
	require.True(t, strings.HasSuffix(n.text(), decides))
}
