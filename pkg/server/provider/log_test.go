package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// logged sends one request and returns the log lines that it made.
func logged(t *testing.T, level logrus.Level, keys ...string) []map[string]any {
	t.Helper()
	return loggedAt(t, level, "/v1/verify", keys...)
}

func loggedAt(t *testing.T, level logrus.Level, path string, keys ...string) []map[string]any {
	t.Helper()
	var out bytes.Buffer
	h := testHandler(byRepository, pinning, nil)
	h.log.SetOutput(&out)
	h.log.SetLevel(level)
	h.log.SetFormatter(&logrus.JSONFormatter{})
	ask(t, h, path, keys...)
	var lines []map[string]any
	for line := range strings.Lines(out.String()) {
		var fields map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &fields), "%s", line)
		lines = append(lines, fields)
	}
	return lines
}

func TestLogsOneLineForARequestAndOneForEachKeyThatIsNotAllowed(t *testing.T) {
	lines := logged(t, logrus.InfoLevel, "[team-a]r.example.com/allow", "[team-a]r.example.com/deny", "[team-a]r.example.com/deny", "[x")
	require.Len(t, lines, 3)
	request := lines[0]
	require.Equal(t, "request", request["msg"])
	require.Equal(t, "verify", request["endpoint"])
	require.Equal(t, "answered", request["outcome"])
	require.Equal(t, "team-a", request["namespace"])
	require.Regexp(t, `^[0-9a-f]{32}$`, request["traceID"])
	for field, want := range map[string]float64{"keys": 4, "images": 2, "allowed": 1, "denied": 1, "invalid": 1, "undecided": 0, "status": 200} {
		require.Equal(t, want, request[field], field)
	}
	require.Equal(t, "r.example.com/deny:latest", lines[1]["image"])
	require.Equal(t, "denied", lines[1]["verdict"])
	require.Equal(t, "because of denied", lines[1]["reason"])
	require.Equal(t, `"[x"`, lines[2]["key"])
	for _, line := range lines {
		require.Equal(t, request["traceID"], line["traceID"])
	}
	require.Equal(t, "team-a", lines[1]["namespace"])
	require.NotContains(t, lines[2], "namespace", "nobody knows whose key it is")
	require.Len(t, logged(t, logrus.DebugLevel, "[team-a]r.example.com/allow"), 2)
	require.Empty(t, logged(t, logrus.InfoLevel, "[team-a]r.example.com/allow"), "a request that is allowed in whole is for debuggers")
	require.Equal(t, "*", logged(t, logrus.DebugLevel, "[a]r.example.com/a", "[b]r.example.com/a")[0]["namespace"])
}

func TestStringsOfClientsCannotForgeLogLines(t *testing.T) {
	lines := logged(t, logrus.InfoLevel, "x\nlevel=info msg=forged \x1b[31m"+strings.Repeat("é", 1000))
	require.Len(t, lines, 2)
	key, _ := lines[1]["key"].(string)
	require.NotContains(t, key, "\n")
	require.NotContains(t, key, "\x1b")
	require.Less(t, len(key), 2000)
	for _, r := range key {
		require.Less(t, r, rune(0x7f))
	}
}

func TestOneRequestLogsABoundedNumberOfLines(t *testing.T) {
	var keys []string
	for i := range maxImages {
		keys = append(keys, fmt.Sprintf("r.example.com/d%d", i))
	}
	require.Len(t, logged(t, logrus.InfoLevel, keys...), 1+maxLoggedKeys)
}

func TestPanicIsLoggedWithItsTraceAndCounted(t *testing.T) {
	lines := logged(t, logrus.ErrorLevel, "[team-a]r.example.com/panic")
	require.Len(t, lines, 1)
	require.Equal(t, "panic: the verifier is broken", lines[0]["msg"])
	require.Equal(t, "team-a", lines[0]["namespace"])
	require.Regexp(t, `^[0-9a-f]{32}$`, lines[0]["traceID"])
	require.Contains(t, lines[0]["stack"], "goroutine")
}

func TestMetricsCountRequestsKeysAndStages(t *testing.T) {
	h := testHandler(deciderFunc(func(ctx context.Context, ns verify.Namespace, ref image.Reference) verify.Result {
		result := byRepository(ctx, ns, ref)
		result.Stages = []verify.Stage{{Name: "resolve", Duration: time.Millisecond}}
		return result
	}), pinning, func(o *Options) { o.MaxKeys = 8 })
	ask(t, h, "/v1/verify", "[team-a]r.example.com/a", "[team-a]r.example.com/d", "r.example.com/a", "[x")
	ask(t, h, "/v1/verify", "[team-a]r.example.com/u", "[team-a]r.example.com/p")
	ask(t, h, "/v1/mutate", "r.example.com/a")
	ask(t, h, "/v1/audit/verify", "[team-a]r.example.com/d")
	ask(t, h, "/nowhere")
	ask(t, h, "/v1/namespaces/Bad/verify")
	require.True(t, h.door.Take("somebody", 8, 0))
	ask(t, h, "/ratify/gatekeeper/v1/mutate", "r.example.com/a")
	m := h.metrics
	for _, c := range []struct {
		want             float64
		endpoint, result string
	}{{1, "verify", "answered"}, {1, "verify", "undecided"}, {1, "mutate", "answered"}, {1, "unknown", "malformed"}, {1, "namespace_verify", "malformed"},
		{1, "ratify_mutate", "overloaded"}} {
		require.Equal(t, c.want, testutil.ToFloat64(m.requests.WithLabelValues(c.endpoint, c.result)), c)
	}
	for _, c := range []struct {
		want              float64
		namespace, result string
	}{{1, "team-a", "allowed"}, {1, "team-a", "denied"}, {2, "-", "allowed"}, {1, "-", "invalid"}, {2, "team-a", "undecided"}} {
		require.Equal(t, c.want, testutil.ToFloat64(m.images.WithLabelValues(c.namespace, c.result, "admission")), c)
	}
	require.Equal(t, 1.0, testutil.ToFloat64(m.requests.WithLabelValues("audit_verify", "answered")))
	require.Equal(t, 1.0, testutil.ToFloat64(m.images.WithLabelValues("team-a", "denied", "audit")))
	require.Equal(t, 1.0, testutil.ToFloat64(m.panics))
	require.Equal(t, 1.0, testutil.ToFloat64(m.requestsOverloaded))
	require.Equal(t, 0.0, testutil.ToFloat64(m.inFlight))
	require.Equal(t, 1, testutil.CollectAndCount(m.stages))
}

func TestNamespaceLabelsAreBounded(t *testing.T) {
	h := testHandler(byRepository, pinning, nil)
	for i := range 3 {
		var keys []string
		for j := range maxImages {
			keys = append(keys, fmt.Sprintf("[team-%d-%d]r.example.com/a", i, j))
		}
		ask(t, h, "/v1/verify", keys...)
	}
	require.Equal(t, maxNamespaceLabels+1, testutil.CollectAndCount(h.metrics.images))
	require.Equal(t, float64(3*maxImages-maxNamespaceLabels), testutil.ToFloat64(h.metrics.images.WithLabelValues(otherLabel, "allowed", "admission")))
}

func TestNoImageReferenceIsAMetricLabel(t *testing.T) {
	w := serve(t, byRepository, nil)
	_, err := w.send(t, w.caller(t, w.client), "/v1/verify", "[team-a]r.example.com/secret-name", "r.example.com/a")
	require.NoError(t, err)
	var page string
	require.Eventually(t, func() bool {
		_, page = get(t, "http://"+w.server.MetricsAddress()+"/metrics")
		return strings.Contains(page, `images_total{namespace="team-a",outcome="denied",source="admission"} 1`)
	}, time.Minute, time.Millisecond)
	require.NotContains(t, page, "r.example.com")
	require.Contains(t, page, "landwaiter_provider_certificate_expiry_timestamp_seconds")
}

func TestNoticesOfStrangersAreFew(t *testing.T) {
	var out bytes.Buffer
	logger := logrus.New()
	logger.SetOutput(&out)
	n := newNotices(logger)
	for range 1000 {
		_, err := n.Write([]byte("http: TLS handshake error\nforged"))
		require.NoError(t, err)
	}
	require.LessOrEqual(t, strings.Count(out.String(), "\n"), 2*noticeBurst)
}

func TestAnswersOfADrainingServerEndTheirConnections(t *testing.T) {
	h := testHandler(byRepository, pinning, nil)
	h.draining.Store(true)
	r := httptest.NewRequest(http.MethodPost, "/v1/verify", bytes.NewReader(requestBody(t, "r.example.com/a")))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, "close", w.Header().Get("Connection"))
	require.Len(t, parseAnswer(t, w.Body.Bytes()).Response.Items, 1)
}

func TestOutcomesHaveTheirWords(t *testing.T) {
	require.Equal(t, verify.AnswerUndecided, func() verify.Answer { o, _ := distinctKey{}.answer([]decision{{}}); return o }(), "nothing known is undecided")
	require.Equal(t, policy.Denied, policy.Outcome(0))
}

func TestWarningsAreAnsweredLoggedAndCounted(t *testing.T) {
	warns := deciderFunc(func(_ context.Context, ns verify.Namespace, ref image.Reference) verify.Result {
		result := verdict(policy.Allowed, ns, ref)
		result.Verdict.Warning = "not signed"
		return result
	})
	h := testHandler(warns, pinning, nil)
	logs := &bytes.Buffer{}
	h.log.SetOutput(logs)
	h.log.SetFormatter(&logrus.JSONFormatter{})
	response := ask(t, h, "/v1/verify", "[team-a]r.example.com/app")
	require.True(t, succeeded(response.Items[0]))
	require.Contains(t, fmt.Sprint(response.Items[0].Value), "warning:not signed")
	short, ok := ask(t, h, "/v1/verdict", "[team-a]r.example.com/app").Items[0].Value.(map[string]any)
	require.True(t, ok)
	require.Equal(t, map[string]any{"isSuccess": true, "warning": "not signed", "traceID": short["traceID"]}, short)
	require.Len(t, short["traceID"], 32)
	require.Contains(t, logs.String(), `"verdict":"warned"`)
	require.Contains(t, logs.String(), `"level":"warning"`)
	require.Equal(t, 2.0, testutil.ToFloat64(h.metrics.images.WithLabelValues("team-a", "warned", "admission")), "the key of both requests")
}

func TestImagesThatAreLetInUnverifiedAreLoggedAndCounted(t *testing.T) {
	lax := deciderFunc(func(_ context.Context, ns verify.Namespace, ref image.Reference) verify.Result {
		result := verdict(policy.Allowed, ns, ref)
		result.Verdict.Unverified = ref.Repository != "signed"
		if ref.Repository == "warned" {
			result.Verdict.Warning = "not signed"
		}
		return result
	})
	var s seen
	h := testHandler(lax, pinning, func(o *Options) { o.Observers = []Observer{&s} })
	logs := &bytes.Buffer{}
	h.log.SetOutput(logs)
	h.log.SetLevel(logrus.DebugLevel)
	h.log.SetFormatter(&logrus.JSONFormatter{})
	response := ask(t, h, "/v1/verify", "[team-a]r.example.com/base", "[team-a]r.example.com/signed")
	require.True(t, succeeded(response.Items[0]))
	require.Contains(t, logs.String(), `"verdict":"unverified"`)
	require.Contains(t, logs.String(), `"unverified":1`)
	require.Equal(t, []verify.Answer{verify.AnswerUnverified, verify.AnswerAllowed}, []verify.Answer{s[0].Keys[0].Answer, s[0].Keys[1].Answer})
	require.True(t, s[0].AllAllowed())
	for outcome, want := range map[string]float64{"unverified": 1, "allowed": 1} {
		require.Equal(t, want, testutil.ToFloat64(h.metrics.images.WithLabelValues("team-a", outcome, "admission")), outcome)
	}
	ask(t, h, "/v1/verify", "[team-a]r.example.com/warned")
	require.Equal(t, verify.AnswerWarned, s[1].Keys[0].Answer, "a warning says more")
	logs.Reset()
	h.log.SetLevel(logrus.InfoLevel)
	ask(t, h, "/v1/verify", "[team-a]r.example.com/base")
	require.Empty(t, logs.String(), "it is allowed, as the policy says")
}

func TestOverloadIsCountedForTheNamespace(t *testing.T) {
	busy := deciderFunc(func(_ context.Context, ns verify.Namespace, ref image.Reference) verify.Result {
		result := verdict(policy.Undecided, ns, ref)
		result.Overloaded = ns == "team-a"
		return result
	})
	h := testHandler(busy, pinning, nil)
	require.NotEmpty(t, ask(t, h, "/v1/verify", "[team-a]r.example.com/a", "[team-a]r.example.com/b", "[team-b]r.example.com/a").SystemError)
	require.Equal(t, 2.0, testutil.ToFloat64(h.metrics.imagesOverloaded.WithLabelValues("team-a")))
	require.Equal(t, 0.0, testutil.ToFloat64(h.metrics.imagesOverloaded.WithLabelValues("team-b")))
}

func TestLinesNameTheNamespaceThatTheyAreAboutAndOthersNone(t *testing.T) {
	const allowed, invalid = "r.example.com/allow", "UPPER/case:%"
	for name, c := range map[string]struct {
		path string
		keys []string
		want []any // by line; nil: none
	}{
		"a namespace in the key":     {"/v1/verify", []string{"[team-a]" + allowed}, []any{"team-a", "team-a"}},
		"no namespace":               {"/v1/verify", []string{allowed}, []any{"-", "-"}},
		"two namespaces":             {"/v1/verify", []string{"[team-a]" + allowed, "[team-b]" + allowed}, []any{"*", "team-a", "team-b"}},
		"a namespace and none":       {"/v1/verify", []string{"[team-a]" + allowed, allowed}, []any{"*", "team-a", "-"}},
		"what is no image of a team": {"/v1/verify", []string{"[team-a]" + invalid}, []any{"team-a", "team-a"}},
		"what is no image":           {"/v1/verify", []string{invalid}, []any{nil, nil}},
		"no image besides one":       {"/v1/verify", []string{"[x", "[team-a]" + allowed}, []any{"team-a", nil, "team-a"}},
		"a namespace in the path":    {"/v1/namespaces/team-a/verify", []string{"[x"}, []any{"team-a", "team-a"}},
		"no keys but a path":         {"/v1/namespaces/team-a/mutate", nil, []any{"team-a"}},
		"no keys":                    {"/v1/verify", nil, []any{nil}},
		"no such path":               {"/nowhere", []string{allowed}, []any{nil}},
		"no namespace in the path":   {"/v1/namespaces/Bad/verify", []string{allowed}, []any{nil}},
		"a panic":                    {"/v1/verify", []string{"[team-a]r.example.com/panic"}, []any{"team-a", "team-a", "team-a", "team-a"}},
	} {
		t.Run(name, func(t *testing.T) {
			for i, line := range loggedAt(t, logrus.DebugLevel, c.path, c.keys...) {
				require.Equal(t, c.want[i], line["namespace"], "%v", line)
			}
		})
	}
}

// What goes wrong while an answer is made is about a namespace, too.
func TestAPanicInTheHandlerNamesItsNamespace(t *testing.T) {
	var out bytes.Buffer
	h := testHandler(byRepository, pinning, nil)
	h.log.SetOutput(&out)
	h.log.SetFormatter(&logrus.JSONFormatter{})
	h.log.SetLevel(logrus.ErrorLevel)
	h.verification.answer = func(*exchange) answer { panic("the encoder is broken") }
	for path, want := range map[string]any{"/v1/verify": "team-a", "/v1/namespaces/team-b/verify": "team-b"} {
		out.Reset()
		key := "r.example.com/allow"
		if want == "team-a" {
			key = "[team-a]" + key
		}
		require.Contains(t, ask(t, h, path, key).SystemError, "internal error")
		var line map[string]any
		require.NoError(t, json.Unmarshal(out.Bytes(), &line), out.String())
		require.Equal(t, "panic in the handler", line["msg"])
		require.Equal(t, want, line["namespace"])
		require.NotEmpty(t, line["traceID"])
		require.Contains(t, line["stack"], "goroutine")
	}
}
