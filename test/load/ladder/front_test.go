package main

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
)

func TestAFrontTakesReplicasInTurn(t *testing.T) {
	a, b, f := &server{url: "https://127.0.0.1:1"}, &server{url: "https://127.0.0.1:2"}, &front{}
	_, err := f.pick()
	require.ErrorIs(t, err, errNoReplica)
	f.add(a)
	f.add(b)
	picked := map[string]int{}
	for range 10 {
		address, err := f.pick()
		require.NoError(t, err)
		picked[address]++
	}
	require.Equal(t, map[string]int{"127.0.0.1:1": 5, "127.0.0.1:2": 5}, picked)
	f.remove(a)
	for range 3 {
		address, err := f.pick()
		require.NoError(t, err)
		require.Equal(t, "127.0.0.1:2", address)
	}
}

// scripted answers with one body after another; an empty one is a connection that breaks.
type scripted struct{ bodies []string }

func (s *scripted) RoundTrip(*http.Request) (*http.Response, error) {
	body := s.bodies[0]
	s.bodies = s.bodies[1:]
	if body == "" {
		return nil, errors.New("the connection broke")
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(body))}, nil
}

func TestOneRetryHealsAndIsCounted(t *testing.T) {
	signed := sample{"r.example.com/a", true}
	allowed, denied := items(`{"key":"[team-a]r.example.com/a","value":{"isSuccess":true}}`),
		items(`{"key":"[team-a]r.example.com/a","value":{"isSuccess":false}}`)
	const late = `{"response":{"systemError":"too late"}}`
	for name, c := range map[string]struct {
		bodies []string
		want   figure
	}{
		"right at once":         {[]string{allowed}, figure{}},
		"broken once":           {[]string{"", allowed}, figure{Retries: 1}},
		"undecided once":        {[]string{late, allowed}, figure{Retries: 1}},
		"broken twice":          {[]string{"", ""}, figure{Retries: 1, Failed: 1}},
		"broken, then too late": {[]string{"", late}, figure{Retries: 1, Undecided: 1}},
		"wrong":                 {[]string{denied}, figure{Wrong: 1}},
		"wrong when retried":    {[]string{"", denied}, figure{Retries: 1, Wrong: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := &gatekeeper.Client{HTTP: &http.Client{Transport: &scripted{c.bodies}}, URL: "https://127.0.0.1"}
				f := load{client: client, connections: 1, check: true, retryOnce: true, next: func(i int) (request, bool) {
					r, err := newRequest("team-a", signed)
					return r, err == nil && i == 0
				}}.run(t.Context(), name)
				require.Equal(t, c.want, figure{Retries: f.Retries, Failed: f.Failed, Undecided: f.Undecided, Wrong: f.Wrong})
			})
		})
	}
}
