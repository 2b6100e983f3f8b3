package provider

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// plainly is what encoding/json writes.
func plainly(t *testing.T, v any) string {
	t.Helper()
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	require.NoError(t, encoder.Encode(v))
	return strings.TrimSuffix(buffer.String(), "\n")
}

func FuzzAnswersAreWrittenAsEncodingJSONWritesThem(f *testing.F) {
	for _, text := range []string{"", "plain", "a\"b\\c", "<html>&", "line\nand\ttab\x00\x7f", "é…\u2028", "\xff\xfe", "[team-a]r.example.com/app:v1"} {
		f.Add(text, true, uint8(2))
	}
	f.Fuzz(func(t *testing.T, text string, success bool, reports uint8) {
		v := &value{Version: resultVersion, IsSuccess: success, Succeeded: success, TraceID: text, Timestamp: "2026-01-02T03:04:05Z",
			VerifierReports: []verifierReport{},
			Digest:          text, Namespace: text, Policy: policyRef{Kind: text, Name: text}, Reason: text}
		for i := range reports % 4 {
			r := verifierReport{Subject: text, IsSuccess: success, Name: text, VerifierName: text, Type: text, VerifierType: text, ReferenceDigest: text,
				ArtifactType: text, Message: text}
			if i > 0 {
				r.ErrorReason, r.Remediation, r.Extensions = text, text,
					map[string]any{"b": text, "a": []string{text, ""}, text: 7, "c": []map[string]any{{text: text, "d": []string(nil)}, nil, {}},
						"e": map[string]any{"f": true, "g": nil}, "h": []any{text}}
			}
			v.VerifierReports = append(v.VerifierReports, r)
		}
		if success {
			v.Warning, v.Policy.Namespace = text, text
			v.Exception = &exceptionRef{policyRef{Kind: text, Namespace: text, Name: text}, text}
		}
		written, err := v.appendJSON([]byte("before "))
		require.NoError(t, err)
		require.Equal(t, "before "+plainly(t, v), string(written))
		short := brief{IsSuccess: success, Reason: text, Warning: text, TraceID: text}
		require.Equal(t, "before "+plainly(t, short), string(short.appendJSON([]byte("before "))))
	})
}

func TestEveryByteThatNeedsAnEscapeIsSeenAtEveryPlace(t *testing.T) {
	for c := range 256 {
		for at := range 19 {
			text := []byte(strings.Repeat("~", at) + string([]byte{byte(c)}) + strings.Repeat(" ", 18-at))
			plain := c >= ' ' && c <= '~' && c != '"' && c != '\\'
			require.Equal(t, plain, unescaped(text), "%q", text)
			require.Equal(t, plainly(t, string(text)), string(appendString(nil, string(text))))
		}
	}
}

func TestAVerdictSaysOnlyWhatOurTemplatesRead(t *testing.T) {
	h := testHandler(byRepository, pinning, nil)
	const allowed, denied = "[team-a]r.example.com/a", "[team-a]r.example.com/d"
	full, short := items(ask(t, h, "/v1/verify", allowed, denied)), items(ask(t, h, "/v1/verdict", allowed, denied))
	require.Equal(t, map[string]any{"isSuccess": true}, short[allowed].Value)
	said, ok := short[denied].Value.(map[string]any)
	require.True(t, ok)
	was, ok := full[denied].Value.(map[string]any)
	require.True(t, ok)
	require.NotEmpty(t, said["reason"])
	require.Len(t, said["traceID"], 32)
	require.Equal(t, map[string]any{"isSuccess": false, "reason": was["reason"], "traceID": said["traceID"]}, said)
}

func TestKeysOfOneImageAreAnsweredAlike(t *testing.T) {
	h := testHandler(byRepository, pinning, nil)
	answered := items(ask(t, h, "/v1/verify", "r.example.com/allow", "r.example.com/allow:latest", "r.example.com/Bad", "r.example.com/deny"))
	require.Len(t, answered, 4)
	require.Equal(t, answered["r.example.com/allow"].Value, answered["r.example.com/allow:latest"].Value)
	require.True(t, succeeded(answered["r.example.com/allow:latest"]))
	require.False(t, succeeded(answered["r.example.com/deny"]))
	require.NotEmpty(t, answered["r.example.com/Bad"].Error)
}

func BenchmarkEncode(b *testing.B) {
	result, _ := cachedVerdict().Recall("team-a", image.Reference{Host: "registry.example.com", Repository: "team-a/app", Tag: "v1"})
	v := newValue(&decision{answer: verify.AnswerAllowed, result: result}, strings.Repeat("0", 32), time.Now(), maxReasonBytes, maxReports)
	b.Run("field by field", func(b *testing.B) {
		b.ReportAllocs()
		var text []byte
		for b.Loop() {
			text, _ = v.appendJSON(text[:0])
		}
	})
	b.Run("encoding/json", func(b *testing.B) {
		b.ReportAllocs()
		var buffer bytes.Buffer
		for b.Loop() {
			buffer.Reset()
			_ = json.NewEncoder(&buffer).Encode(v)
		}
	})
}
