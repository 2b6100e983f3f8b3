package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// clock is a time that a test moves.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// logging is a handler with a log to read and a clock to move.
func logging(level logrus.Level) (*handler, *bytes.Buffer, *clock) {
	out, c := &bytes.Buffer{}, &clock{at: time.Unix(1, 0)}
	h := testHandler(byRepository, pinning, nil)
	h.log.SetOutput(out)
	h.log.SetLevel(level)
	h.log.SetFormatter(&logrus.JSONFormatter{})
	h.observers = []Observer{newRequestLog(h.log, h.decider.Account, c.now)}
	return h, out, c
}

// drain returns the lines since the last call.
func drain(t *testing.T, out *bytes.Buffer) []map[string]any {
	t.Helper()
	var lines []map[string]any
	for text := range strings.Lines(out.String()) {
		var fields map[string]any
		require.NoError(t, json.Unmarshal([]byte(text), &fields), "%s", text)
		lines = append(lines, fields)
	}
	out.Reset()
	return lines
}

func TestTheSameDenialIsLoggedOnceAnHourForAuditsAndSoonForAdmission(t *testing.T) {
	for _, c := range []struct {
		path, source string
		window       time.Duration
	}{{"/v1/audit/verify", "audit", time.Hour}, {"/v1/verify", "admission", 10 * time.Second}} {
		h, out, clock := logging(logrus.InfoLevel)
		const image = "[team-a]r.example.com/deny"
		ask(t, h, c.path, image)
		first := drain(t, out)
		require.Len(t, first, 2, "a request and a key")
		require.Equal(t, c.source, first[1]["source"])
		require.Equal(t, "VerificationPolicy team-a/main", first[1]["policy"])
		require.Equal(t, someDigest.String(), first[1]["digest"])
		require.NotContains(t, first[1], "repeated")
		for range 3 {
			ask(t, h, c.path, image)
		}
		clock.at = clock.at.Add(c.window - time.Nanosecond)
		ask(t, h, c.path, image)
		require.Empty(t, drain(t, out))

		clock.at = clock.at.Add(time.Nanosecond)
		ask(t, h, c.path, image)
		again := drain(t, out)
		require.Len(t, again, 2)
		require.Equal(t, 4.0, again[1]["repeated"])
		ask(t, h, c.path, "[team-b]r.example.com/deny", image)
		other := drain(t, out)
		require.Len(t, other, 2, "only what is new")
		require.Equal(t, "team-b", other[1]["namespace"])
		require.Equal(t, 2.0, other[0]["denied"], "the request counts both")

		clock.at = clock.at.Add(2 * c.window)
		ask(t, h, c.path, image)
		require.NotContains(t, drain(t, out)[1], "repeated", "it had ended")
	}
}

func TestAuditsDoNotSilenceAdmission(t *testing.T) {
	h, out, _ := logging(logrus.InfoLevel)
	ask(t, h, "/v1/audit/verify", "[team-a]r.example.com/deny")
	ask(t, h, "/v1/verify", "[team-a]r.example.com/deny")
	require.Len(t, drain(t, out), 4)
}

func TestWhatIsNotLoggedAgainIsThereForDebuggers(t *testing.T) {
	h, out, _ := logging(logrus.DebugLevel)
	for range 2 {
		ask(t, h, "/v1/audit/verify", "[team-a]r.example.com/deny")
	}
	lines := drain(t, out)
	require.Len(t, lines, 4)
	for i, want := range []string{"info", "info", "debug", "debug"} {
		require.Equal(t, want, lines[i]["level"], i)
	}
}

func TestUndecidedImagesAreTheSameWhateverTheReason(t *testing.T) {
	one, two := KeyObservation{Answer: verify.AnswerUndecided, Key: "a", Reason: "after 1 ms"},
		KeyObservation{Answer: verify.AnswerUndecided, Key: "a", Reason: "after 2 ms"}
	require.Equal(t, one.line(), two.line())
	one.Answer, two.Answer = verify.AnswerDenied, verify.AnswerDenied
	require.NotEqual(t, one.line(), two.line(), "another reason is news")
	require.NotEqual(t, lineOf("ab", "c"), lineOf("a", "bc"))
}

func TestRefusedRequestsAreLoggedOnceInAWhile(t *testing.T) {
	h, out, clock := logging(logrus.InfoLevel)
	for range 100 {
		ask(t, h, "/nowhere")
	}
	require.Len(t, drain(t, out), 1)
	ask(t, h, "/v1/namespaces/Bad/verify")
	require.Len(t, drain(t, out), 1, "another path")
	clock.at = clock.at.Add(admissionWindow)
	ask(t, h, "/nowhere")
	require.Equal(t, 99.0, drain(t, out)[0]["repeated"])
}

func TestMalformedImagesAreLoggedWithTheirNamespace(t *testing.T) {
	h, out, _ := logging(logrus.InfoLevel)
	ask(t, h, "/v1/verify", "[team-a]UPPER", "[team-a][team-b]x", "[Team-A]x")
	lines := drain(t, out)
	require.Len(t, lines, 4)
	for i, want := range []any{"team-a", "team-a", nil} {
		require.Equal(t, want, lines[i+1]["namespace"], i)
		require.Equal(t, "invalid", lines[i+1]["verdict"])
	}
}

// An hour of audits writes what one writes.
func TestAuditsDoNotFillTheLog(t *testing.T) {
	h, out, clock := logging(logrus.InfoLevel)
	total, one := 0, 0
	for audit := range 8 {
		for pod := range 250 {
			ask(t, h, "/v1/audit/verify", fmt.Sprintf("[team-%d]r.example.com/denied-%d:v1", pod%10, pod))
		}
		total += out.Len()
		if audit == 0 {
			one = out.Len()
			require.Positive(t, one)
		}
		out.Reset()
		clock.at = clock.at.Add(time.Minute)
	}
	require.Equal(t, one, total)
	t.Logf("8 audits of 250 denied pods: %d bytes, of which the first %d; %d if each were logged", total, one, 8*one)
}

func TestAccountThatFloodsTheLogCostsNobodyElseALine(t *testing.T) {
	c := &clock{at: time.Unix(1, 0)}
	r := newRepeats(time.Hour, 64, c.now)
	logged := 0
	for i := range 10_000 {
		if log, _ := r.fresh("flood", lineOf(fmt.Sprint(i))); log {
			logged++
		}
	}
	require.Equal(t, 64+1, logged, "all places, and one line for the rest")
	require.Equal(t, 64, r.order.Len())
	for i := range 8 {
		log, _ := r.fresh("other", lineOf("other", fmt.Sprint(i)))
		require.True(t, log)
		log, _ = r.fresh("other", lineOf("other", fmt.Sprint(i)))
		require.False(t, log, "it is remembered")
	}
	for _, what := range []string{"0", "63"} {
		log, _ := r.fresh("flood", lineOf(what))
		require.False(t, log, "neither what had to go nor what is remembered is logged again")
	}
	c.at = c.at.Add(crowdedInterval)
	log, repeated := r.fresh("flood", lineOf("20000"))
	require.True(t, log)
	require.Equal(t, 10_000-65+1, repeated)
	c.at = c.at.Add(2 * time.Hour)
	_, _ = r.fresh("new", lineOf("new"))
	require.Equal(t, 1, r.order.Len(), "what ended is forgotten")
	require.Len(t, r.known, 1)
	require.Len(t, r.accounts, 1)
}

// Fifteen accounts, each with as much as it is given, once left no place for anyone.
func TestManyAccountsThatFloodTheLogSilenceNobody(t *testing.T) {
	c := &clock{at: time.Unix(1, 0)}
	r := newRepeats(time.Hour, 1024, c.now)
	log, _ := r.fresh("quiet", lineOf("quiet"))
	require.True(t, log)
	for flood := range 15 {
		for i := range 2000 {
			_, _ = r.fresh(verify.Account(fmt.Sprint("flood", flood)), lineOf(fmt.Sprint(flood), fmt.Sprint(i)))
		}
	}
	for i := range 1024/16 - 1 {
		log, _ := r.fresh("quiet", lineOf("quiet", fmt.Sprint(i)))
		require.True(t, log, i)
	}
	require.Equal(t, 1024, r.order.Len())
}

// A cluster may have more denied images than are remembered. The namespaces that come last
// then logged all of theirs, with each audit.
func TestMoreDenialsThanAreRememberedDoNotFillTheLog(t *testing.T) {
	c := &clock{at: time.Unix(1, 0)}
	r := newRepeats(time.Hour, 1000, c.now)
	for audit := range 5 {
		logged := 0
		for namespace := range 100 {
			for i := range 50 {
				if log, _ := r.fresh(verify.Account(fmt.Sprint(namespace)), lineOf(fmt.Sprint(namespace), fmt.Sprint(i))); log {
					logged++
				}
			}
		}
		if audit > 0 {
			require.LessOrEqual(t, logged, 100, "a line of each namespace")
		}
		require.Len(t, r.accounts, 100)
		c.at = c.at.Add(time.Minute)
	}
}

func TestAccountsBeyondThePlacesShareALine(t *testing.T) {
	c := &clock{at: time.Unix(1, 0)}
	r := newRepeats(time.Hour, 8, c.now)
	logged := 0
	for i := range 100 {
		if log, _ := r.fresh(verify.Account(fmt.Sprint(i)), lineOf(fmt.Sprint(i))); log {
			logged++
		}
	}
	require.Equal(t, 8+1, logged)
	require.Len(t, r.accounts, 8)
}

func TestManyAccountsStayWithinTheLinesThatThereAre(t *testing.T) {
	c := &clock{at: time.Unix(1, 0)}
	r := newRepeats(time.Hour, 64, c.now)
	var running sync.WaitGroup
	for i := range 200 {
		running.Go(func() {
			for j := range 20 {
				_, _ = r.fresh(verify.Account(fmt.Sprint(i)), lineOf(fmt.Sprint(i), fmt.Sprint(j)))
			}
		})
	}
	running.Wait()
	require.LessOrEqual(t, r.order.Len(), 64)
	require.LessOrEqual(t, len(r.accounts), 64)
	require.Len(t, r.known, r.order.Len())
}

// A line that is new must cost the same whoever else has lines: the lock is everybody's.
func BenchmarkANewLineInAFullLog(b *testing.B) {
	for _, accounts := range []int{10, 1000, 5000} {
		b.Run(fmt.Sprint(accounts), func(b *testing.B) {
			r := newRepeats(time.Hour, maxRepeats, func() time.Time { return time.Unix(0, 0) })
			for i := range accounts {
				for j := range 3 {
					r.fresh(verify.Account(fmt.Sprint("quiet", i)), lineOf(fmt.Sprint(i, j)))
				}
			}
			for n := 0; len(r.known) < maxRepeats; n++ {
				r.fresh("flood", lineOf("filling", fmt.Sprint(n)))
			}
			for n := 0; b.Loop(); n++ {
				r.fresh("flood", lineOf("more", fmt.Sprint(n)))
			}
		})
	}
}
