//go:build e2e

package inspect

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// audited is one request in the audit log of the API server.
type audited struct {
	Verb, RequestURI, UserAgent string
	ImpersonatedUser            struct{ Username string }
	ObjectRef                   struct{ Resource, Namespace, Name string }
	Annotations                 map[string]string
	RequestReceivedTimestamp    time.Time
}

// allowed reports whether the API server let the person do it.
func (a audited) allowed() bool { return a.Annotations["authorization.k8s.io/decision"] == "allow" }

// auditOf returns what the program for people has asked the API server since the log had so many bytes.
func (w *installation) auditOf(t *testing.T, since int64) (requests []audited) {
	t.Helper()
	text, err := os.ReadFile(w.audit)
	require.NoError(t, err)
	for line := range strings.Lines(string(text[since:])) {
		var a audited
		require.NoError(t, json.Unmarshal([]byte(line), &a), line)
		if strings.HasPrefix(a.UserAgent, "landwaiter/") {
			requests = append(requests, a)
		}
	}
	return requests
}

// auditSize returns how long the audit log is.
func (w *installation) auditSize(t *testing.T) int64 {
	t.Helper()
	info, err := os.Stat(w.audit)
	require.NoError(t, err)
	return info.Size()
}

// mostRequests is how many requests a page makes for one person who looks at every view once, in the time
// for which the page keeps what it read longest. On a slow machine a page reads again.
const (
	mostRequests = 600
	keptFor      = 2 * time.Minute
)

// most returns how many of the requests were received within one such time.
func most(received []time.Time) (n int) {
	slices.SortFunc(received, time.Time.Compare)
	first := 0
	for i, at := range received {
		for at.Sub(received[first]) >= keptFor {
			first++
		}
		n = max(n, i-first+1)
	}
	return n
}

// requireReads fails unless the requests of a page were made as the person, only read, and were few. It
// returns those that the API server allowed.
func requireReads(t *testing.T, requests []audited, user string) (allowed []audited) {
	t.Helper()
	var mine []time.Time
	for _, a := range requests {
		require.NotEmpty(t, a.ImpersonatedUser.Username, "the page asked as the administrator: %s %s", a.Verb, a.RequestURI)
		if a.ImpersonatedUser.Username != user {
			continue
		}
		mine = append(mine, a.RequestReceivedTimestamp)
		review := a.Verb == "create" && a.ObjectRef.Resource == "localsubjectaccessreviews"
		require.True(t, review || slices.Contains([]string{"get", "list", "watch"}, a.Verb), "%s %s", a.Verb, a.RequestURI)
		if a.allowed() {
			allowed = append(allowed, a)
		}
	}
	t.Logf("%s: %d requests, %d of them allowed, at most %d within %s", user, len(mine), len(allowed), most(mine), keptFor)
	require.NotEmpty(t, allowed, "the audit log has nothing of %s", user)
	require.LessOrEqual(t, most(mine), mostRequests)
	return allowed
}

// requireOwn fails if one of the allowed requests touched an object of another team: one of theirs by its
// namespace or its name, or all namespaces.
func requireOwn(t *testing.T, allowed []audited, others ...string) {
	t.Helper()
	var touched []string
	for _, a := range allowed {
		everywhere := a.Verb == "list" && a.ObjectRef.Namespace == "" && !strings.HasPrefix(a.ObjectRef.Resource, "cluster")
		if everywhere || slices.Contains(others, a.ObjectRef.Namespace) || slices.Contains(others, a.ObjectRef.Name) {
			touched = append(touched, a.Verb+" "+a.RequestURI)
		}
	}
	require.Empty(t, touched, "requests that are about another team, or about every namespace")
}
