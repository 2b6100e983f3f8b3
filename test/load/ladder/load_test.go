package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
)

func TestClientsOfTheLadderAreAList(t *testing.T) {
	clients, err := parseClients("1,10")
	require.NoError(t, err)
	require.Equal(t, []int{1, 10}, clients)
	for _, wrong := range []string{"", "a", "0", "1,,2", "-1", "1001"} {
		_, err := parseClients(wrong)
		require.Error(t, err, wrong)
	}
}

func TestAnswersThatAreNotRightAreNoticed(t *testing.T) {
	r, err := newRequest("team-a", sample{"r.example.com/a", true}, sample{"r.example.com/b", false})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		status int
		body   string
		want   answer
	}{
		"as it must be": {200,
			items(`{"key":"[team-a]r.example.com/a","value":{"isSuccess":true}}`, `{"key":"[team-a]r.example.com/b","value":{"isSuccess":false}}`), right},
		"swapped": {200,
			items(`{"key":"[team-a]r.example.com/a","value":{"isSuccess":false}}`, `{"key":"[team-a]r.example.com/b","value":{"isSuccess":true}}`), wrong},
		"of another": {200,
			items(`{"key":"[team-b]r.example.com/a","value":{"isSuccess":true}}`, `{"key":"[team-a]r.example.com/b","value":{"isSuccess":false}}`), wrong},
		"one allowed wrong": {200,
			items(`{"key":"[team-a]r.example.com/a","value":{"isSuccess":true}}`, `{"key":"[team-a]r.example.com/b","value":{"isSuccess":true}}`), wrong},
		"one is missing":     {200, items(`{"key":"[team-a]r.example.com/a","value":{"isSuccess":true}}`), wrong},
		"an error":           {200, items(`{"key":"[team-a]r.example.com/a","value":{"isSuccess":true}}`, `{"key":"[team-a]r.example.com/b","error":"x"}`), wrong},
		"nothing":            {200, ``, wrong},
		"a system error":     {200, `{"response":{"systemError":"too late"}}`, undecided},
		"no understanding":   {400, items(), failed},
		"a server that ends": {0, "", failed},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if c.status == 0 {
					panic(http.ErrAbortHandler)
				}
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			t.Cleanup(server.Close)
			require.Equal(t, c.want, ask(t.Context(), &gatekeeper.Client{HTTP: server.Client(), URL: server.URL}, r, true))
		})
	}
}

func items(list ...string) string {
	return `{"apiVersion":"externaldata.gatekeeper.sh/v1beta1","kind":"ProviderResponse","response":{"idempotent":true,"items":[` + strings.Join(list, ",") + `]}}`
}

func TestOneAnswerIsForTheKeyThatWasAsked(t *testing.T) {
	signed, err := newRequest("team-a", sample{"r.example.com/a", true})
	require.NoError(t, err)
	unsigned, err := newRequest("team-a", sample{"r.example.com/b", false})
	require.NoError(t, err)
	allowed, denied := items(`{"key":"[team-a]r.example.com/a","value":{"isSuccess":true}}`),
		items(`{"key":"[team-a]r.example.com/b","value":{"isSuccess":false}}`)
	require.True(t, signed.answered([]byte(allowed)))
	require.True(t, unsigned.answered([]byte(denied)))
	require.False(t, signed.answered([]byte(denied)))
	require.False(t, unsigned.answered([]byte(allowed)))
	require.False(t, signed.answered([]byte(items(`{"key":"[team-a]r.example.com/a","value":{"isSuccess":false}}`))))
	require.False(t, unsigned.answered([]byte(items(`{"key":"[team-a]r.example.com/b","value":{"isSuccess":true}}`))))
}

func TestWhatCannotBeMeasuredIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		options options
		says    string
	}{
		"no program":    {options{binary: "/nowhere/landwaiter", duration: time.Second, connections: 1, images: 10, cold: 1, pods: 1, rounds: 1}, "go build"},
		"no connection": {options{binary: "sh", duration: time.Second, images: 10, cold: 1, pods: 1, rounds: 1}, "-connections"},
		"no pattern":    {options{binary: "sh", only: "(", duration: time.Second, connections: 1, images: 10, cold: 1, pods: 1, rounds: 1}, "-run"},
	} {
		require.ErrorContains(t, run(t.Context(), c.options, &bytes.Buffer{}, &bytes.Buffer{}), c.says, name)
	}
}
