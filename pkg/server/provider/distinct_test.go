package provider

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/fair"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

var allowing = deciderFunc(func(_ context.Context, ns verify.Namespace, ref image.Reference) verify.Result {
	return verdict(policy.Allowed, ns, ref)
})

// reporting is a verifier that allows, with findings that have long messages.
func reporting(findings, bytes int) deciderFunc {
	return func(_ context.Context, ns verify.Namespace, ref image.Reference) verify.Result {
		result := verdict(policy.Allowed, ns, ref)
		result.Findings = slices.Repeat([]policy.Finding{{Verifier: "release", Message: strings.Repeat("x", bytes)}}, findings)
		return result
	}
}

// spellings returns so many keys that are all about the same digest of one repository.
func spellings(n int) []string {
	var keys []string
	for i := 0; len(keys) < n; i++ {
		tag := fmt.Sprintf(":v%d", i)
		if i == 0 {
			tag = ""
		}
		for _, name := range []string{"a/b", "docker.io/a/b", "index.docker.io/a/b", "Docker.io:443/a/b"} {
			keys = append(keys, "[team-a]"+name+tag+"@"+someDigest.String())
		}
	}
	return keys[:n]
}

func TestManySpellingsOfOneDigestAreOneImage(t *testing.T) {
	for _, n := range []int{2, maxImages + 1, 700, maxKeys} {
		for _, path := range []string{"/v1/verdict", "/v1/verify", "/v1/audit/verify", "/v1/mutate"} {
			asked, keys := &calls{}, spellings(n)
			if path == "/v1/mutate" {
				for i := range keys {
					keys[i] = strings.TrimPrefix(keys[i], "[team-a]")
				}
			}
			response := ask(t, testHandler(asked.decider(allowing), pinning, nil), path, keys...)
			require.Empty(t, response.SystemError)
			require.Len(t, response.Items, n, "each key has an item")
			if path != "/v1/mutate" { // a digest is pinned already
				require.Equal(t, map[string]int{"team-a|docker.io/a/b@" + someDigest.String(): 1}, asked.get(), "what tags it has decides nothing")
			}
		}
	}
}

func TestTagsAndDigestsAndNamespacesStayDistinct(t *testing.T) {
	other := "sha256:" + strings.Repeat("1", 64)
	asked := &calls{}
	h := testHandler(asked.decider(byRepository), pinning, nil)
	response := ask(t, h, "/v1/verdict", "[x]r.example.com/a", "[x]r.example.com/a:v1", "[x]r.example.com/a:v1@"+someDigest.String(),
		"[y]r.example.com/a:v1@"+someDigest.String(),
		"[x]r.example.com:5000/a@"+someDigest.String(), "[x]r.example.com/a@"+other)
	require.NotEmpty(t, response.SystemError, "the verdict is about another digest")
	require.Len(t, asked.get(), 6)
}

// Nothing about too many images changes by itself, so nobody is told to try again.
func TestADenialOfTooManyImagesSaysWhatToDo(t *testing.T) {
	images := func(n int, image string) (keys []string) {
		for i := range n {
			keys = append(keys, fmt.Sprintf(image, i))
		}
		return keys
	}
	long := "[team-a]r.example.com/" + strings.Repeat("a", maxKeyBytes)
	for name, c := range map[string]struct {
		keys   []string
		want   string
		status int
	}{
		"one more than the limit": {images(maxImages+1, "[team-a]r.example.com/a%d"), "more than 512 different images", http.StatusRequestEntityTooLarge},
		"one more that is no image": {append(images(maxImages, "[team-a]r.example.com/a%d"), "[team-a]r.example.com/Bad"), "more than 512 different images",
			http.StatusRequestEntityTooLarge},
		"nothing of it is an image": {images(maxImages+1, "[team-a]r.example.com/A%d"), "more than 512 different images", http.StatusRequestEntityTooLarge},
		"by digests": {images(maxImages+1, "[team-a]r.example.com/a:v1@sha256:%064d"), "more than 512 different images",
			http.StatusRequestEntityTooLarge},
		"more spellings than are read":    {spellings(maxKeys + 1), "2049 images", http.StatusRequestEntityTooLarge},
		"a long image":                    {[]string{long}, fmt.Sprintf("%d bytes", len(long)), http.StatusRequestEntityTooLarge},
		"images that are long altogether": {images(1000, "[team-a]r.example.com/"+strings.Repeat("a", 1100)+"%d"), "1048576 bytes", http.StatusRequestEntityTooLarge},
	} {
		for _, path := range []string{"/v1/verdict", "/v1/verify", "/v1/audit/verify"} {
			response, status := post(t, testHandler(byRepository, pinning, nil), path, requestBody(t, c.keys...))
			text := response.Response.SystemError
			require.Equal(t, c.status, status, name)
			require.Contains(t, text, c.want, name)
			require.Regexp(t, `^denied: [^\n]*\. To fix: [^\n]*(different|fewer|shorter)[^\n]* \(traceID [0-9a-f]{32}\)$`, text, name)
			require.NotContains(t, text, "try again", name)
			require.NotContains(t, text, "undecided", name)
		}
	}
	require.Len(t, ask(t, testHandler(byRepository, pinning, nil), "/v1/verdict", images(maxImages, "[team-a]r.example.com/a%d")...).Items, maxImages)
}

// Audits count every line as a violation, and people select those that begin so.
func TestEachLineSaysWhetherAnImageIsDeniedOrUndecided(t *testing.T) {
	h := testHandler(byRepository, pinning, nil)
	for _, path := range []string{"/v1/verdict", "/v1/verify", "/v1/audit/verify"} {
		text := ask(t, h, path, "[team-a]r.example.com/unreachable", "[team-a]r.example.com/deny", "[team-a]r.example.com/allow",
			"[team-a]r.example.com/unreachable:v2").SystemError
		require.Regexp(t, `^image r.example.com/deny is denied in namespace team-a: because of denied
undecided: image r.example.com/unreachable could not be decided in namespace team-a: because of undecided
undecided: image r.example.com/unreachable:v2 could not be decided in namespace team-a: because of undecided; try again \(traceID [0-9a-f]{32}\)$`, text)
	}
}

func TestWhatIsNoAnswerAboutImagesIsUndecided(t *testing.T) {
	full := testHandler(byRepository, pinning, func(o *Options) { o.MaxKeys = 1 })
	for name, text := range map[string]string{
		"overload":   ask(t, full, "/v1/audit/verify", "[team-a]r.example.com/a", "[team-a]r.example.com/a1").SystemError,
		"no path":    ask(t, full, "/v1/audit", "[team-a]r.example.com/a").SystemError,
		"no request": func() string { r, _ := post(t, full, "/v1/audit/verify", []byte("{}")); return r.Response.SystemError }(),
	} {
		require.Regexp(t, `^undecided: [^\n]+ \(traceID [0-9a-f]{32}\)$`, text, name)
	}
}

func TestManySpellingsOfAnImageWithManyReportsFitIntoAnAnswer(t *testing.T) {
	for _, path := range []string{"/v1/verdict", "/v1/verify", "/v1/audit/verify"} {
		response := ask(t, testHandler(reporting(maxReports, 200), pinning, nil), path, spellings(700)...)
		require.Empty(t, response.SystemError)
		require.Len(t, response.Items, 700)
	}
}

// The reports of one image are repeated for each of its spellings.
func TestAnAnswerThatIsTooLargeIsNotBuiltToItsEnd(t *testing.T) {
	h := testHandler(reporting(maxReports, 4<<10), pinning, nil)
	response, status := post(t, h, "/v1/verify", requestBody(t, spellings(maxKeys)...))
	require.Equal(t, http.StatusInternalServerError, status)
	require.Regexp(t, `^denied: .* larger than 8388608 bytes. To fix: .*fewer`, response.Response.SystemError)
	plan, refused := endpointOf(t, "/v1/verify").plan(spellings(maxKeys), image.Parse)
	require.Nil(t, refused)
	decisions := make([]decision, len(plan.targets))
	for i, target := range plan.targets {
		decisions[i] = decisionOf(reporting(maxReports, 4<<10)(t.Context(), target.namespace, target.ref), target)
	}
	text, _ := verified{plan: plan, decisions: decisions}.appendJSON(nil)
	require.Less(t, cap(text), 3*maxAnswerBytes)
}

// Nobody waits for it, or those who wait would hold the memory of their keys without a place.
func TestManySpellingsAreOnlyParsedInATurnOfTheirAccount(t *testing.T) {
	h := testHandler(allowing, pinning, nil)
	var turns []*fair.Turn[verify.Account]
	for turn := h.turns.Try("namespace/team-b"); turn != nil; turn = h.turns.Try("namespace/team-b") {
		turns = append(turns, turn)
	}
	response, status := post(t, h, "/v1/verdict", requestBody(t, spellings(maxImages+1)...))
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Regexp(t, `^undecided: overloaded: no processor is free to read so many images of namespace team-a, try again`, response.Response.SystemError)
	for _, turn := range turns {
		turn.Leave()
	}
	require.Len(t, ask(t, h, "/v1/verdict", spellings(maxImages+1)...).Items, maxImages+1)
	require.NotEmpty(t, ask(t, h, "/v1/verdict", make([]string, maxKeys+1)...).SystemError)
	for range turns {
		require.NotNil(t, h.turns.Try("namespace/team-b"), "every turn was left")
	}
}
