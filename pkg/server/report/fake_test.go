package report

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/workload"
)

// api is an API server in memory, with reports and Events.
type api struct {
	t *testing.T

	mu        sync.Mutex
	version   int
	reports   map[string]*openreports.Report
	events    map[string]*corev1.Event
	requests  []string // verbs and paths of writes
	undefined bool     // it knows no reports
	failing   func(verb, path string) *apierrors.StatusError
	lists     int // of reports
	largest   int // number of reports of one of them
	watches   []context.CancelFunc
}

// RoundTrip implements [http.RoundTripper]: nothing leaves the process.
func (a *api) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Get("watch") != "" {
		return a.watch(request)
	}
	recorder := httptest.NewRecorder()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.serve(recorder, request)
	return recorder.Result(), nil
}

// watch answers with a watch in which nothing happens.
func (a *api) watch(request *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	if request.URL.Query().Get("sendInitialEvents") != "" {
		refuse(recorder, apierrors.NewInvalid(schema.GroupKind{}, "", nil))
		return recorder.Result(), nil
	}
	reader, writer := io.Pipe()
	ctx, cancel := context.WithCancel(request.Context())
	a.mu.Lock()
	a.watches = append(a.watches, cancel)
	a.mu.Unlock()
	go func() {
		<-ctx.Done()
		_ = writer.Close()
	}()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: reader, Request: request}, nil
}

// end ends the watches, as an API server does now and then.
func (a *api) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, cancel := range a.watches {
		cancel()
	}
	a.watches = nil
}

func refuse(w http.ResponseWriter, err *apierrors.StatusError) {
	status := err.ErrStatus
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	answer(w, int(status.Code), &status)
}

func answer(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object)
}

func (a *api) serve(w http.ResponseWriter, request *http.Request) {
	path := request.URL.Path
	if request.Method != http.MethodGet {
		a.requests = append(a.requests, request.Method+" "+path)
	}
	if a.failing != nil {
		if err := a.failing(request.Method, path); err != nil {
			refuse(w, err)
			return
		}
	}
	var body []byte
	if request.Body != nil {
		var err error
		body, err = io.ReadAll(request.Body)
		require.NoError(a.t, err)
	}
	parts := strings.Split(path, "/")
	switch {
	case strings.Contains(path, "/events"):
		a.serveEvent(w, request.Method, parts[len(parts)-1], body)
	case a.undefined:
		http.NotFound(w, request)
	case strings.HasSuffix(path, "/reports") && request.Method == http.MethodGet:
		a.serveList(w, request)
	default:
		a.serveReport(w, request.Method, parts[5]+"/"+parts[len(parts)-1], body)
	}
}

// serveList answers with reports in the order of their names, as many as were asked for.
func (a *api) serveList(w http.ResponseWriter, request *http.Request) {
	list := openreports.ReportList{TypeMeta: metav1.TypeMeta{APIVersion: "openreports.io/v1alpha1", Kind: "ReportList"}}
	list.ResourceVersion = strconv.Itoa(a.version)
	limit, err := strconv.Atoi(cmp.Or(request.URL.Query().Get("limit"), "0"))
	require.NoError(a.t, err)
	for _, name := range slices.Sorted(maps.Keys(a.reports)) {
		if name <= request.URL.Query().Get("continue") {
			continue
		}
		if limit > 0 && len(list.Items) == limit {
			last := list.Items[limit-1]
			list.Continue = last.Namespace + "/" + last.Name
			break
		}
		list.Items = append(list.Items, *a.reports[name])
	}
	a.lists, a.largest = a.lists+1, max(a.largest, len(list.Items))
	answer(w, http.StatusOK, list)
}

func (a *api) serveReport(w http.ResponseWriter, method, key string, body []byte) {
	r := &openreports.Report{}
	if len(body) > 0 && method != http.MethodDelete {
		require.NoError(a.t, json.Unmarshal(body, r))
		if method == http.MethodPost {
			key = r.Namespace + "/" + r.Name
		}
	}
	resource := schema.GroupResource{Group: "openreports.io", Resource: "reports"}
	known := a.reports[key]
	switch {
	case method == http.MethodPost && known != nil:
		refuse(w, apierrors.NewAlreadyExists(resource, key))
	case method != http.MethodPost && known == nil:
		refuse(w, apierrors.NewNotFound(resource, strings.Split(key, "/")[1]))
	case method == http.MethodGet:
		answer(w, http.StatusOK, known)
	case method == http.MethodDelete:
		delete(a.reports, key)
		answer(w, http.StatusOK, known)
	case method == http.MethodPut && known.ResourceVersion != r.ResourceVersion:
		refuse(w, apierrors.NewConflict(resource, key, nil))
	default:
		a.store(key, r, "landwaiter")
		answer(w, http.StatusOK, r)
	}
}

// store keeps a report as a field manager writes it.
func (a *api) store(key string, r *openreports.Report, manager string) {
	a.version++
	r.ResourceVersion = strconv.Itoa(a.version)
	r.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: manager}}
	a.reports[key] = r
}

func (a *api) serveEvent(w http.ResponseWriter, method, name string, body []byte) {
	e := &corev1.Event{}
	resource := schema.GroupResource{Resource: "events"}
	switch {
	case method == http.MethodGet:
		answer(w, http.StatusOK, corev1.EventList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}})
	case method == http.MethodPost:
		require.NoError(a.t, json.Unmarshal(body, e))
		if a.events[e.Name] != nil {
			refuse(w, apierrors.NewAlreadyExists(resource, e.Name))
			return
		}
		a.events[e.Name] = e
		answer(w, http.StatusCreated, e)
	case a.events[name] == nil:
		refuse(w, apierrors.NewNotFound(resource, name))
	default:
		require.NoError(a.t, json.Unmarshal(body, a.events[name]))
		answer(w, http.StatusOK, a.events[name])
	}
}

// stored returns the reports that there are.
func (a *api) stored() map[string]*openreports.Report {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.reports)
}

// written returns the writes since the last time.
func (a *api) written() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	written := a.requests
	a.requests = nil
	slices.Sort(written)
	return written
}

// cluster is what runs, in which each namespace pays for itself.
type cluster struct {
	mu     sync.Mutex
	runs   map[verify.Namespace][]workload.Running
	unread bool // not all of it is known
}

func (c *cluster) Namespaces() (found []verify.Namespace, synced bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for namespace := range c.runs {
		found = append(found, namespace)
	}
	return found, !c.unread
}

func (c *cluster) Running(namespace verify.Namespace) iter.Seq[workload.Running] {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Values(c.runs[namespace])
}

func (c *cluster) Having(namespace verify.Namespace, image string, limit int) (found []workload.Ref) {
	for r := range c.Running(namespace) {
		if r.Image == image && len(found) < limit {
			found = append(found, r.Of)
		}
	}
	return found
}

func (c *cluster) Account(namespace verify.Namespace) verify.Account { return namespace.Account() }

// contacts say whom to ask about policies, which apply everywhere.
var contacts = map[string]string{"ClusterVerifier release": "#team-a", "ClusterVerificationPolicy baseline": "#security",
	"ClusterVerificationPolicy team": "#team-a"}

func (c *cluster) Contacts(_ verify.Namespace, policies []string) (found []string) {
	for _, name := range policies {
		if contact := contacts[name]; contact != "" {
			found = append(found, contact)
		}
	}
	return found
}
func (c *cluster) NamespaceLabel(namespace verify.Namespace) string { return namespace.Label() }

func newReporter(t *testing.T) (*Reporter, *api, *cluster, *test.Hook) {
	t.Helper()
	server := &api{t: t, reports: map[string]*openreports.Report{}, events: map[string]*corev1.Event{}}
	runs := &cluster{runs: map[verify.Namespace][]workload.Running{}}
	log, hook := test.NewNullLogger()
	log.SetLevel(logrus.InfoLevel)
	r, err := New(&rest.Config{Host: "http://api.example.com", Transport: server, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, runs, log,
		prometheus.NewRegistry())
	require.NoError(t, err)
	r.Attach(runs)
	return r, server, runs, hook
}
