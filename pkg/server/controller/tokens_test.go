package controller

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/landwaiter/landwaiter/pkg/remote/external"
)

// issuing is an API server that issues tokens, and accepts some of them.
type issuing struct {
	mu       sync.Mutex
	denies   *metav1.Status // instead of a token
	accepts  int            // the status of a request with a token that was issued
	requests []authenticationv1.TokenRequestSpec
	reviews  int
}

func (i *issuing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	answer := func(status int, what any) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(what)
	}
	refuse := func(status int, reason metav1.StatusReason) {
		answer(status, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: reason, Code: int32(status)})
	}
	switch {
	case strings.HasSuffix(r.URL.Path, "/serviceaccounts/puller/token") && i.denies != nil:
		answer(int(i.denies.Code), i.denies)
	case strings.HasSuffix(r.URL.Path, "/serviceaccounts/puller/token"):
		var asked authenticationv1.TokenRequest
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &asked)
		i.requests = append(i.requests, asked.Spec)
		asked.Status.Token = "issued"
		answer(http.StatusCreated, asked)
	case strings.HasSuffix(r.URL.Path, "/selfsubjectreviews") && r.Header.Get("Authorization") == "Bearer issued":
		i.reviews++
		switch i.accepts {
		case http.StatusCreated:
			answer(http.StatusCreated, authenticationv1.SelfSubjectReview{})
		case http.StatusForbidden:
			refuse(http.StatusForbidden, metav1.StatusReasonForbidden)
		case http.StatusUnauthorized:
			refuse(http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
		default:
			refuse(i.accepts, metav1.StatusReasonInternalError)
		}
	case strings.HasSuffix(r.URL.Path, "/selfsubjectreviews") && r.Header.Get("Authorization") == "Bearer own":
		answer(http.StatusCreated, authenticationv1.SelfSubjectReview{Status: authenticationv1.SelfSubjectReviewStatus{
			UserInfo: authenticationv1.UserInfo{Username: "system:serviceaccount:landwaiter-system:landwaiter"}}})
	default:
		refuse(http.StatusNotFound, metav1.StatusReasonNotFound)
	}
}

func newIssuing(t *testing.T) (*issuing, *Tokens) {
	t.Helper()
	i := &issuing{accepts: http.StatusUnauthorized}
	server := httptest.NewServer(i)
	t.Cleanup(server.Close)
	tokens, err := NewTokens(&rest.Config{Host: server.URL, BearerToken: "own", ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	require.NoError(t, err)
	return i, tokens
}

func TestATokenHasOneAudienceAndTheShortestLife(t *testing.T) {
	i, tokens := newIssuing(t)
	for range 2 {
		got, err := tokens.Token(t.Context(), "team-a", "puller", "sts.amazonaws.com")
		require.NoError(t, err)
		require.Equal(t, "issued", got)
	}
	seconds := int64(600)
	want := authenticationv1.TokenRequestSpec{Audiences: []string{"sts.amazonaws.com"}, ExpirationSeconds: &seconds}
	require.Equal(t, []authenticationv1.TokenRequestSpec{want, want}, i.requests, "none is kept")
	require.Equal(t, 1, i.reviews, "the audience is not checked each time")
	_, err := tokens.Token(t.Context(), "team-a", "puller", "vault://vault.example.com")
	require.NoError(t, err)
	require.Equal(t, 2, i.reviews, "but each is")
}

func TestNoTokenLeavesThatTheAPIServerAccepts(t *testing.T) {
	for status, says := range map[int]string{
		http.StatusCreated:             "the Kubernetes API itself accepts tokens for sts.amazonaws.com",
		http.StatusForbidden:           "the Kubernetes API itself accepts tokens for sts.amazonaws.com",
		http.StatusInternalServerError: "did not say whether it accepts tokens for sts.amazonaws.com (InternalError)",
	} {
		i, tokens := newIssuing(t)
		i.accepts = status
		for range 2 {
			got, err := tokens.Token(t.Context(), "team-a", "puller", "sts.amazonaws.com")
			require.ErrorContains(t, err, says)
			require.Empty(t, got)
		}
		require.GreaterOrEqual(t, i.reviews, 2, "only a refusal is remembered")
	}
}

func TestAMissingRightComesWithTheCommandsThatGiveIt(t *testing.T) {
	const commands = "grant it with: kubectl create role landwaiter-token-puller --namespace=team-a --verb=create --resource=serviceaccounts/token " +
		"--resource-name=puller" +
		" && kubectl create rolebinding landwaiter-token-puller --namespace=team-a --role=landwaiter-token-puller --serviceaccount=landwaiter-system:landwaiter"
	status := func(code int32, reason metav1.StatusReason, message string) *metav1.Status {
		return &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}
	}
	for name, c := range map[string]struct {
		denies *metav1.Status
		says   string
		right  bool
	}{
		"no permission": {status(403, metav1.StatusReasonForbidden, `User "x" cannot create resource`),
			"ServiceAccount team-a/puller: landwaiter has no permission to get its tokens; " + commands, true},
		"a policy": {status(403, metav1.StatusReasonForbidden, "policy 'x' denied request: a role is too wide"),
			"ServiceAccount team-a/puller: landwaiter has no permission to get its tokens (a role is too wide); " + commands, true},
		"a long one": {status(403, metav1.StatusReasonForbidden, "policy 'x' denied request: "+strings.Repeat("x", 5000)),
			fmt.Sprintf("(%s); ", strings.Repeat("x", maxDenial)), true},
		"no such account": {status(404, metav1.StatusReasonNotFound, "says a stranger"), "ServiceAccount team-a/puller does not exist", false},
		"an internal error": {status(500, metav1.StatusReasonInternalError, "says a stranger"),
			"the Kubernetes API gave no token of ServiceAccount team-a/puller (InternalError)", false},
	} {
		i, tokens := newIssuing(t)
		i.denies = c.denies
		_, err := tokens.Token(t.Context(), "team-a", "puller", "sts.amazonaws.com")
		require.ErrorContains(t, err, c.says, name)
		require.NotContains(t, err.Error(), "stranger", name)
		require.Equal(t, c.right, errors.Is(err, external.ErrNoRight), name)
	}
}
