package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestThePageAsksAgainForWhatWasRefusedAfterHalfAMinute(t *testing.T) {
	asked, status := 0, http.StatusForbidden
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"code": %d, "message": %q}`, status, r.URL.Path)
	}))
	defer server.Close()
	now := time.Now()
	client := &http.Client{Transport: &refusals{next: http.DefaultTransport, now: func() time.Time { return now }}}
	get := func(path, accept string) string {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		require.NoError(t, err)
		request.Header.Set("Accept", accept)
		response, err := client.Do(request)
		require.NoError(t, err)
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, "application/json", response.Header.Get("Content-Type"))
		return string(text)
	}
	for range 3 {
		require.JSONEq(t, `{"code": 403, "message": "/a"}`, get("/a?limit=1", "application/json"))
	}
	require.Equal(t, 1, asked)
	get("/a?limit=2", "application/json")
	get("/a?limit=1", "application/yaml")
	require.Equal(t, 3, asked, "another list, or another form of it")

	status = http.StatusOK
	get("/a?limit=1", "application/json")
	require.Equal(t, 3, asked)
	now = now.Add(refusedFor)
	for range 2 {
		require.JSONEq(t, `{"code": 200, "message": "/a"}`, get("/a?limit=1", "application/json"))
	}
	require.Equal(t, 5, asked, "only refusals are repeated")

	status = http.StatusForbidden
	for i := range 2 * maxRefusals {
		get(fmt.Sprintf("/b/%d", i), "application/json")
	}
	kept, ok := client.Transport.(*refusals)
	require.True(t, ok)
	require.LessOrEqual(t, len(kept.kept), maxRefusals)
}
