package report

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

func TestWhatIsPublishedIsReadAgain(t *testing.T) {
	facts := resource.Facts{Certificate: "PEM",
		List: []resource.Fact{{ID: resource.FactClockSkew, Message: "fine"},
			{ID: resource.FactRegistryUnreachable, Bad: true, Message: "gone", About: "registry.example.com"}}}
	require.Equal(t, &facts, resource.ReadFacts(bounded(facts).Report("landwaiter-system")))

	foreign := facts.Report("landwaiter-system")
	foreign.Object["source"] = "somebody"
	require.Nil(t, resource.ReadFacts(foreign))
	require.Equal(t, &resource.Facts{}, resource.ReadFacts(&unstructured.Unstructured{Object: map[string]any{"source": v1beta1.ReportSource, "results": []any{}}}))
}

func TestAReportIsBounded(t *testing.T) {
	var facts resource.Facts
	for range maxFacts + 10 {
		facts.List = append(facts.List, resource.Fact{ID: resource.FactRegistryUnreachable, Message: strings.Repeat("x", 10_000)})
	}
	read := resource.ReadFacts(bounded(facts).Report("landwaiter-system"))
	require.Len(t, read.List, maxFacts)
	require.Less(t, len(read.List[0].Message), maxFactBytes+10)
}

func TestAClockThatDiffersIsSaid(t *testing.T) {
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		date, before, after time.Time
		bad                 bool
	}{
		"the same":                      {at, at, at, false},
		"within a second":               {at, at.Add(999 * time.Millisecond), at.Add(999 * time.Millisecond), false},
		"ahead by the limit":            {at, at.Add(maxClockSkew + time.Second), at.Add(maxClockSkew + time.Second), false},
		"ahead":                         {at, at.Add(maxClockSkew + 2*time.Second), at.Add(maxClockSkew + 2*time.Second), true},
		"behind":                        {at, at.Add(-maxClockSkew - time.Second), at.Add(-maxClockSkew - time.Second), true},
		"an answer that took very long": {at, at.Add(-time.Minute), at.Add(time.Minute), false},
	} {
		t.Run(name, func(t *testing.T) {
			fact := clockFact(c.date, c.before, c.after)
			require.Equal(t, resource.FactClockSkew, fact.ID)
			require.Equal(t, c.bad, fact.Bad)
			require.NotEmpty(t, fact.Message)
		})
	}
}

func TestAsksTheAPIServerForItsClock(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", "Sun, 22 Nov 2026 12:00:00 GMT")
		require.Equal(t, "/version", r.URL.Path)
	}))
	defer server.Close()
	probe, err := Clock(&rest.Config{Host: server.URL}, func() time.Time { return time.Date(2026, 11, 22, 13, 0, 0, 0, time.UTC) })
	require.NoError(t, err)
	facts := probe(t.Context())
	require.Len(t, facts, 1)
	require.True(t, facts[0].Bad)
}

// server keeps what is applied, and answers with a status.
func server(t *testing.T, status int, applied *[]unstructured.Unstructured) *rest.Config {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "/apis/openreports.io/v1alpha1/namespaces/landwaiter-system/reports/landwaiter-process", r.URL.Path)
		var o unstructured.Unstructured
		require.NoError(t, json.NewDecoder(r.Body).Decode(&o.Object))
		*applied = append(*applied, o)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if status != http.StatusOK {
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
			return
		}
		_ = json.NewEncoder(w).Encode(o.Object)
	}))
	t.Cleanup(s.Close)
	return &rest.Config{Host: s.URL}
}

func TestWritesOnChangeOnly(t *testing.T) {
	var applied []unstructured.Unstructured
	bad := false
	p, err := NewPublisher(server(t, http.StatusOK, &applied), "landwaiter-system", func() string { return "" }, logrus.New(),
		func(context.Context) []resource.Fact {
			return []resource.Fact{{ID: resource.FactClockSkew, Bad: bad, Message: "m"}}
		})
	require.NoError(t, err)
	for range 3 {
		require.NoError(t, p.publish(t.Context()))
	}
	require.Len(t, applied, 1)
	bad = true
	require.NoError(t, p.publish(t.Context()))
	require.Len(t, applied, 2)
	require.True(t, resource.ReadFacts(&applied[1]).List[0].Bad)
}

// Without the CRD of reports there is nothing to say twice: the reporter has said so.
func TestAClusterWithoutReportsIsNoFailure(t *testing.T) {
	var applied []unstructured.Unstructured
	p, err := NewPublisher(server(t, http.StatusNotFound, &applied), "landwaiter-system", func() string { return "" }, logrus.New())
	require.NoError(t, err)
	require.NoError(t, p.publish(t.Context()))
	require.NoError(t, p.publish(t.Context()))
	require.Len(t, applied, 2, "it is tried again")
}
