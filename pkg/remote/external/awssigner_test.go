package external

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// service is an AWS Signer whose answers a test sets.
type service struct {
	mu      sync.Mutex
	revoked []string
	err     error
	asked   []awsQuestion
}

// answerTime is how long an answer takes in a test's bubble, so that no answer is there
// before whoever asked goes on.
const answerTime = time.Millisecond

func (s *service) ask(_ context.Context, q awsQuestion) ([]string, error) {
	time.Sleep(answerTime)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, q)
	return s.revoked, s.err
}

func (s *service) become(revoked []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revoked, s.err = revoked, err
}

// settle waits until everything that was asked has an answer.
func settle() {
	time.Sleep(2 * answerTime)
	synctest.Wait()
}

func (s *service) questions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

// asking returns a Fetcher whose questions about signatures a service answers.
func asking(t *testing.T, s *service) *Fetcher {
	t.Helper()
	f := New(Options{Fetch: map[Kind]Fetch{}}, time.Now)
	f.signatures = f.awsAnswers(s.ask)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = f.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return f
}

func TestAWSSignerIsAskedBesideRequestsAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{}
		f := asking(t, s)
		revoked := f.AWSSigner("team-a", given("{}"))
		signature := AWSSignature{Region: "eu-west-1", Job: "job"}
		_, err := revoked(t.Context(), signature)
		require.ErrorContains(t, err, "being asked, try again", "the request does not wait")
		settle()
		found, err := revoked(t.Context(), signature)
		require.NoError(t, err)
		require.Empty(t, found)
		require.Equal(t, 1, s.questions())

		s.become([]string{"job"}, nil)
		time.Sleep(awsSignerRefresh)
		settle()
		found, err = revoked(t.Context(), signature)
		require.NoError(t, err)
		require.Equal(t, []string{"job"}, found)

		_, err = f.AWSSigner("team-b", given("{}"))(t.Context(), signature)
		require.Error(t, err, "another namespace asks for itself")
		_, err = f.AWSSigner("team-a", given(`{"a":"b"}`))(t.Context(), signature)
		require.Error(t, err, "so does another identity")
	})
}

func TestAnAnswerOfAWSSignerCountsForATimeWhileItCannotBeAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{err: errors.New("503 canary")}
		f := asking(t, s)
		revoked := f.AWSSigner("team-a", given("{}"))
		ask := func() ([]string, error) { return revoked(t.Context(), AWSSignature{Job: "job"}) }
		_, err := ask()
		require.Error(t, err)
		settle()
		_, err = ask()
		require.Error(t, err)
		require.NotContains(t, err.Error(), "canary", "what a server says is not repeated")
		s.become(nil, nil)
		time.Sleep(2 * firstRetry)
		settle()
		_, err = ask()
		require.NoError(t, err)
		s.become(nil, problem("it is down"))
		for range 5 {
			time.Sleep(awsSignerKeep / 6)
			settle()
			_, err = ask()
			require.NoError(t, err)
		}
		time.Sleep(awsSignerKeep / 3)
		settle()
		_, err = ask()
		require.ErrorContains(t, err, "too old: it is down")
		f.Forget("team-a")
		require.Empty(t, f.signatures.Keys())
	})
}

func TestACommandWaitsForTheAnswerOfAWSSigner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := asking(t, &service{revoked: []string{"job"}})
		f.options.Wait = true
		found, err := f.AWSSigner("team-a", given("{}"))(t.Context(), AWSSignature{Job: "job"})
		require.NoError(t, err)
		require.Equal(t, []string{"job"}, found)
	})
}

// The namespaces of a Tenant have one share, however many they are.
func TestOneAccountAsksAboutABoundedNumberOfSignatures(t *testing.T) {
	// It does not run, so no answer comes.
	f := New(Options{Fetch: map[Kind]Fetch{}, Account: func(n verify.Namespace) verify.Account {
		return verify.TenantAccount(strings.TrimRight(string(n), "12"))
	}}, time.Now)
	ask := func(namespace verify.Namespace, job string) error {
		_, err := f.AWSSigner(namespace, given("{}"))(t.Context(), AWSSignature{Job: job})
		return err
	}
	for i := range maxSignaturesPending {
		require.ErrorContains(t, ask(verify.Namespace(fmt.Sprintf("iris-%d", 1+i%2)), fmt.Sprint(i)), "being asked")
	}
	require.ErrorContains(t, ask("iris-1", "one more"), "too many signatures")
	require.ErrorContains(t, ask("iris-2", "one more"), "too many signatures")
	require.ErrorContains(t, ask("team-b", "one more"), "being asked", "another account is not held up")
	f.Forget("iris-1")
	require.Len(t, f.signatures.Keys(), 1+maxSignaturesPending/2, "what another namespace asked about is kept")
	require.ErrorContains(t, ask("iris-2", "one more"), "being asked")
}
