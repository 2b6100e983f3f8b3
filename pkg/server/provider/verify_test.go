package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/test/kit/judged"
)

func TestAnswersEveryDistinctKeyOnceInTheOrderAsked(t *testing.T) {
	h := testHandler(byRepository, pinning, nil)
	response := ask(t, h, "/v1/verify", "r.example.com/deny", "[team-a]r.example.com/allow", "r.example.com/deny", "[x", "r.example.com/allow", "[x")
	require.Empty(t, response.SystemError)
	var keys []string
	for _, item := range response.Items {
		keys = append(keys, item.Key)
	}
	require.Equal(t, []string{"r.example.com/deny", "[team-a]r.example.com/allow", "[x", "r.example.com/allow"}, keys)
	byKey := items(response)
	require.False(t, succeeded(byKey["r.example.com/deny"]))
	require.Empty(t, byKey["r.example.com/deny"].Error, "a denial is a value")
	require.True(t, succeeded(byKey["[team-a]r.example.com/allow"]))
	require.Contains(t, byKey["[x"].Error, "without an end")
}

func TestVerifiesEachImageOncePerNamespaceHoweverItIsSpelled(t *testing.T) {
	asked := &calls{}
	h := testHandler(asked.decider(byRepository), pinning, nil)
	response := ask(t, h, "/v1/verify", "alpine", "docker.io/library/alpine:latest", "index.docker.io/alpine", "alpine:latest",
		"[team-a]alpine", "[team-a]docker.io/alpine", "[team-b]alpine", "R.Example.com:443/a", "r.example.com/a")
	require.Len(t, response.Items, 9)
	require.Equal(t, map[string]int{"|docker.io/library/alpine:latest": 1, "team-a|docker.io/library/alpine:latest": 1,
		"team-b|docker.io/library/alpine:latest": 1, "|r.example.com/a:latest": 1}, asked.get())
}

func Test512KeysOf32ImagesAre32Verifications(t *testing.T) {
	asked := &calls{}
	h := testHandler(asked.decider(byRepository), pinning, nil)
	var keys []string
	for i := range maxImages {
		keys = append(keys, fmt.Sprintf("r.example.com/a%d", i%32))
	}
	require.Len(t, ask(t, h, "/v1/verify", keys...).Items, 32)
	require.Len(t, asked.get(), 32)
	for call, count := range asked.get() {
		require.Equal(t, 1, count, call)
	}
}

func TestOneUndecidedKeyMakesTheWholeResponseASystemError(t *testing.T) {
	h := testHandler(byRepository, pinning, nil)
	for _, path := range []string{"/v1/verify", "/v1/mutate"} {
		response, status := post(t, h, path, requestBody(t, "r.example.com/allow", "r.example.com/deny", "r.example.com/unreachable", "r.example.com/Bad"))
		require.Equal(t, http.StatusOK, status)
		text := response.Response.SystemError
		require.Contains(t, text, "undecided: image r.example.com/unreachable could not be decided: ")
		require.Contains(t, text, "image r.example.com/deny is denied: ")
		require.Contains(t, text, `image reference "r.example.com/Bad" is not valid: repository name (Bad) must be lowercase`)
		require.NotContains(t, text, "r.example.com/allow")
	}
}

func TestNamesAsManyUndecidedKeysAsFit(t *testing.T) {
	h := testHandler(deciderFunc(func(_ context.Context, ns verify.Namespace, ref image.Reference) verify.Result {
		result := verdict(policy.Undecided, ns, ref)
		result.Verdict.Reason = strings.Repeat("é", 2000)
		return result
	}), pinning, nil)
	var keys []string
	for i := range maxImages {
		keys = append(keys, fmt.Sprintf("r.example.com/%s%d", strings.Repeat("x", 200), i))
	}
	text := ask(t, h, "/v1/verify", keys...).SystemError
	require.Regexp(t, `^undecided: image r.example.com/x`, text)
	require.Regexp(t, `undecided: … and \d+ more; try again \(traceID [0-9a-f]{32}\)$`, text)
}

func TestPanicOfAVerifierIsUndecidedAndEndsNothing(t *testing.T) {
	h := testHandler(byRepository, pinning, nil)
	for _, path := range []string{"/v1/verify", "/v1/mutate"} {
		response := ask(t, h, path, "r.example.com/panic", "r.example.com/allow")
		require.Contains(t, response.SystemError, "image r.example.com/panic could not be decided: internal error")
		require.Len(t, ask(t, h, path, "r.example.com/allow").Items, 1)
	}
}

func TestUnknownOrForeignVerdictsAdmitNothing(t *testing.T) {
	for name, change := range map[string]func(*verify.Result){
		"another namespace":  func(r *verify.Result) { r.Namespace = "team-b" },
		"another repository": func(r *verify.Result) { r.Reference.Repository = "other" },
		"another host":       func(r *verify.Result) { r.Reference.Host = "evil.example.com" },
		"another tag":        func(r *verify.Result) { r.Reference.Tag = "v0" },
		"another digest": func(r *verify.Result) {
			r.Digest = "sha256:" + "11111111111111111111111111111111" + "11111111111111111111111111111111"
		},
		"nothing at all": func(r *verify.Result) { *r = verify.Result{Verdict: judged.As(policy.Allowed, policy.Verdict{})} },
	} {
		t.Run(name, func(t *testing.T) {
			h := testHandler(deciderFunc(func(_ context.Context, ns verify.Namespace, ref image.Reference) verify.Result {
				result := verdict(policy.Allowed, ns, ref)
				change(&result)
				return result
			}), pinning, nil)
			response := ask(t, h, "/v1/verify", "[team-a]r.example.com/a:v1@"+someDigest.String())
			require.Contains(t, response.SystemError, "internal error")
		})
	}
}

func TestZeroResultDenies(t *testing.T) {
	h := testHandler(deciderFunc(func(context.Context, verify.Namespace, image.Reference) verify.Result { return verify.Result{} }), pinning, nil)
	response := ask(t, h, "/v1/verify", "r.example.com/a")
	require.Len(t, response.Items, 1)
	require.False(t, succeeded(response.Items[0]))
}

func TestAnswersInTimeWhenAVerifierIgnoresItsContext(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	stuck := deciderFunc(func(_ context.Context, ns verify.Namespace, ref image.Reference) verify.Result {
		if strings.HasSuffix(ref.Repository, "stuck") {
			<-release
		}
		return verdict(policy.Allowed, ns, ref)
	})
	slow := resolverFunc(func(_ context.Context, _ verify.Namespace, ref image.Reference) (image.Reference, error) {
		<-release
		return ref, errors.New("too late")
	})
	h := testHandler(stuck, slow, func(o *Options) { o.VerifyTimeout, o.MutateTimeout = minTimeout, minTimeout })
	for _, path := range []string{"/v1/verify", "/v1/mutate", "/v1/namespaces/team-a/verify"} {
		response := ask(t, h, path, "r.example.com/stuck", "r.example.com/Bad")
		require.Regexp(t, `image r.example.com/stuck could not be decided( in namespace team-a)?: not finished in time`, response.SystemError)
	}
}

func TestVerifierThatEndsWithItsContextIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHandler(deciderFunc(func(ctx context.Context, ns verify.Namespace, ref image.Reference) verify.Result {
			<-ctx.Done()
			result := verdict(policy.Undecided, ns, ref)
			result.Verdict.Reason = "the registry is slow"
			return result
		}), pinning, func(o *Options) { o.VerifyTimeout = 5 * time.Second / 2 })
		require.Contains(t, ask(t, h, "/v1/verify", "r.example.com/a").SystemError, "the registry is slow")
	})
}

func TestVerifierThatEndsItsGoroutineIsUndecided(t *testing.T) {
	h := testHandler(deciderFunc(func(context.Context, verify.Namespace, image.Reference) verify.Result {
		runtime.Goexit()
		return verify.Result{}
	}), pinning, func(o *Options) { o.VerifyTimeout = minTimeout })
	require.NotEmpty(t, ask(t, h, "/v1/verify", "r.example.com/a").SystemError)
}

func TestValueIsASupersetOfRatifysResult(t *testing.T) {
	h := testHandler(deciderFunc(func(_ context.Context, ns verify.Namespace, ref image.Reference) verify.Result {
		result := verdict(policy.Allowed, ns, ref)
		result.Findings = []policy.Finding{
			judged.Proven("sha256:00", policy.Finding{Verifier: "release", Type: "Notation", Digest: "sha256:aa", ArtifactType: "application/vnd.cncf.notary.signature",
				Message: "verified", Extensions: map[string]any{"Issuer": "CN=x,O=y", "SN": "CN=<z>"}}),
			{Verifier: "keys", Type: "Cosign", Digest: "sha256:bb", ArtifactType: "t", Message: "other key", Reason: policy.ReasonWrongKey, Remediation: "sign it"},
			{Verifier: "keys", Type: "Cosign", Message: "valid, but nobody signed"},
		}
		return result
	}), pinning, nil)
	item := ask(t, h, "/v1/verify", "[team-a]r.example.com/app:v1").Items[0]
	got, _ := item.Value.(map[string]any)
	require.Regexp(t, `^[0-9a-f]{32}$`, got["traceID"])
	text, _ := got["timestamp"].(string)
	_, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	delete(got, "traceID")
	delete(got, "timestamp")
	subject := "r.example.com/app:v1@" + someDigest.String()
	want := `{"version":"0.2.0","isSuccess":true,"succeeded":true,"digest":"` + someDigest.String() + `","namespace":"team-a","reason":"because of allowed",
		"policy":{"kind":"VerificationPolicy","namespace":"team-a","name":"main"},"verifierReports":[
		{"subject":"` + subject +
		`","isSuccess":true,"name":"release","verifierName":"release","type":"notation","verifierType":"notation","referenceDigest":"sha256:aa",
		 "artifactType":"application/vnd.cncf.notary.signature","message":"verified","extensions":{"Issuer":"CN=x,O=y","SN":"CN=<z>"}},
		{"subject":"` + subject + `","isSuccess":false,"name":"keys","verifierName":"keys","type":"cosign","verifierType":"cosign","referenceDigest":"sha256:bb",
		 "artifactType":"t","message":"other key","errorReason":"WrongKey","remediation":"if your build made it: sign it"},
		{"subject":"` + subject +
		`","isSuccess":false,"name":"keys","verifierName":"keys","type":"cosign","verifierType":"cosign","referenceDigest":"","artifactType":"",
		 "message":"valid, but nobody signed"}]}`
	var wanted map[string]any
	require.NoError(t, json.Unmarshal([]byte(want), &wanted))
	require.Empty(t, cmp.Diff(wanted, got))
}

func TestReportsAreNeverNull(t *testing.T) {
	item := ask(t, testHandler(byRepository, pinning, nil), "/v1/verify", "r.example.com/deny").Items[0]
	got, _ := item.Value.(map[string]any)
	require.Equal(t, []any{}, got["verifierReports"])
	require.Equal(t, false, got["isSuccess"])
	require.Equal(t, false, got["succeeded"])
}

func TestAnswerThatCannotBeWrittenDownIsASystemError(t *testing.T) {
	for name, extension := range map[string]any{"not JSON": func() {}, "too large": strings.Repeat("x", maxAnswerBytes)} {
		t.Run(name, func(t *testing.T) {
			h := testHandler(deciderFunc(func(_ context.Context, ns verify.Namespace, ref image.Reference) verify.Result {
				result := verdict(policy.Allowed, ns, ref)
				result.Findings = []policy.Finding{{Extensions: map[string]any{"x": extension}}}
				return result
			}), pinning, nil)
			response, status := post(t, h, "/v1/verify", requestBody(t, "r.example.com/a"))
			require.Equal(t, http.StatusInternalServerError, status)
			require.NotEmpty(t, response.Response.SystemError)
		})
	}
}
