package check

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
)

// briefly is long enough for what never answers. What answers has patience.
const (
	briefly  = 50 * time.Millisecond
	patience = time.Minute
)

func asks(t *testing.T, within time.Duration, host string, service types.NamespacedName, requests int) (Answers, string) {
	t.Helper()
	a := &Asker{config: &rest.Config{Host: "http://" + host}, within: within, again: time.Millisecond}
	_, port, err := net.SplitHostPort(host)
	require.NoError(t, err)
	return a.ask(t.Context(), Place{Host: host, Service: service, Port: port}, requests)
}

// listening returns where the kernel accepts connections and nobody answers them, as for a process
// that is stopped.
func listening(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	return listener.Addr().String()
}

// nowhere returns where nothing listens.
func nowhere(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}

// edge returns where a server wants a client certificate, as Landwaiter does, or none.
func edge(t *testing.T, wants tls.ClientAuthType) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS, server.Config.ErrorLog = &tls.Config{MinVersion: tls.VersionTLS13, ClientAuth: wants}, log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func TestAServerIsAskedWhereGatekeeperAsks(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	for name, c := range map[string]struct {
		host   string
		within time.Duration
		want   Answers
	}{
		"a server that wants a certificate":            {edge(t, tls.RequireAnyClientCert), patience, Answers{Answered: 2}},
		"a server that answers anyone":                 {edge(t, tls.NoClientCert), patience, Answers{Answered: 2}},
		"a process that is stopped":                    {listening(t), briefly, Answers{Silent: 2}},
		"a process that is gone":                       {nowhere(t), briefly, Answers{Refused: 2}},
		"another server, which speaks no TLS":          {plain.Listener.Addr().String(), briefly, Answers{Refused: 2}},
		"an address to which nothing can be connected": {"127.0.0.1:99999", patience, Answers{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, missing := asks(t, c.within, c.host, types.NamespacedName{}, 2)
			require.Empty(t, missing)
			require.Equal(t, []int{2, c.want.Answered, c.want.Refused, c.want.Silent}, []int{got.Asked, got.Answered, got.Refused, got.Silent}, got.Why)
			require.Equal(t, got.Answered+got.Silent == 0, got.Why != "")
		})
	}
}

func TestAServerThatComesBackInTimeAnswers(t *testing.T) {
	host := nowhere(t)
	started := make(chan *httptest.Server, 1)
	a := &Asker{config: &rest.Config{}, within: patience, again: time.Millisecond}
	asked := make(chan Answers, 1)
	go func() {
		got, _ := a.ask(t.Context(), Place{Host: host}, 1)
		asked <- got
	}()
	go func() {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", host)
		if err != nil {
			started <- nil
			return
		}
		server := httptest.NewUnstartedServer(http.NotFoundHandler())
		_ = server.Listener.Close()
		server.Listener = listener
		server.StartTLS()
		started <- server
	}()
	server := <-started
	require.NotNil(t, server)
	defer server.Close()
	require.Equal(t, 1, (<-asked).Answered)
}

// The messages are those of Kubernetes 1.36.
func TestAServiceIsAskedThroughTheAPIServer(t *testing.T) {
	status := func(code int, message string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_ = json.NewEncoder(w).
				Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Message: message})
		}
	}
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		within  time.Duration
		want    Answers
		missing string
	}{
		"a pod that wants a certificate": {status(503, "error trying to reach service: remote error: tls: certificate required"), patience, Answers{Answered: 1}, ""},
		"a pod that answers anyone": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMethodNotAllowed) }, patience,
			Answers{Answered: 1}, ""},
		"a pod whose process ended": {status(503, "error trying to reach service: dial tcp 10.0.0.7:8443: connect: connection refused"), briefly,
			Answers{Refused: 1}, ""},
		"no pod that is ready":      {status(503, `no endpoints available for service "landwaiter"`), briefly, Answers{Refused: 1}, ""},
		"no Service":                {status(404, `services "landwaiter" not found`), briefly, Answers{Refused: 1}, ""},
		"a network that is closed":  {status(503, "error trying to reach service: dial tcp 10.0.0.7:8443: i/o timeout"), patience, Answers{}, ""},
		"a process that is stopped": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, briefly, Answers{Silent: 1}, ""},
		"nobody who may ask":        {status(403, "forbidden"), patience, Answers{}, "get services/proxy https:landwaiter:443 in namespace landwaiter-system"},
	} {
		t.Run(name, func(t *testing.T) {
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet || r.URL.Path != "/api/v1/namespaces/landwaiter-system/services/https:landwaiter:443/proxy/" {
					t.Errorf("asked for %s %s", r.Method, r.URL.Path)
				}
				c.handler(w, r)
			}))
			t.Cleanup(api.Close)
			a := &Asker{config: &rest.Config{Host: api.URL}, within: c.within, again: time.Millisecond}
			got, missing := a.ask(t.Context(),
				Place{Host: "landwaiter.landwaiter-system.svc:443", Service: types.NamespacedName{Namespace: "landwaiter-system", Name: "landwaiter"}, Port: "443"}, 1)
			require.Equal(t, c.missing, missing)
			require.Equal(t, []int{c.want.Answered, c.want.Refused, c.want.Silent}, []int{got.Answered, got.Refused, got.Silent}, got.Why)
		})
	}
}

// installed is a cluster whose Provider leads to a host. Its Lease is renewed each time that it is read,
// if a replica runs.
func installed(t *testing.T, host string, runs bool) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1beta1.AddToScheme(scheme))
	foreign := func(group, version, kind, name string, spec map[string]any) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/" + version, "kind": kind,
			"metadata": map[string]any{"name": name}, "spec": spec}}
		scheme.AddKnownTypeWithName(o.GroupVersionKind(), &unstructured.Unstructured{})
		list := o.GroupVersionKind()
		list.Kind += "List"
		scheme.AddKnownTypeWithName(list, &unstructured.UnstructuredList{})
		return o
	}
	replicas, renewed := int32(1), time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	var reads atomic.Int32 // places are asked at the same time
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "landwaiter-system", Name: "landwaiter"}}
	deployment.Spec.Replicas, deployment.Spec.Template.Spec.Containers = &replicas, []corev1.Container{{Args: []string{"serve"}}}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "landwaiter-system", Name: leaseName},
		Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: renewed}}}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(deployment, lease,
		foreign("externaldata.gatekeeper.sh", "v1beta1", "Provider", defaultProvider, map[string]any{"url": "https://" + host + "/v1/verdict", "timeout": int64(3)}),
		foreign("constraints.gatekeeper.sh", "v1beta1", constraintKind, "verified-images", map[string]any{})).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if err := c.Get(ctx, key, object, options...); err != nil {
				return err
			}
			if found, ok := object.(*coordinationv1.Lease); ok && runs {
				found.Spec.RenewTime = &metav1.MicroTime{Time: renewed.Add(time.Duration(reads.Add(1)) * time.Second)}
			}
			return nil
		},
	}).Build()
}

func TestAServerThatHangsOrIsGoneIsTheFirstFinding(t *testing.T) {
	for name, c := range map[string]struct {
		host  string
		runs  bool // the Lease is renewed
		first string
		says  string
	}{
		"it hangs":                          {listening(t), false, NoAnswer, "though something accepts connections"},
		"it is gone":                        {nowhere(t), false, NoAnswer, "connection refused"},
		"it answers":                        {edge(t, tls.RequireAnyClientCert), true, NoGatekeeper, ""},
		"it runs, and is not to be reached": {nowhere(t), true, NoGatekeeper, ""},
	} {
		t.Run(name, func(t *testing.T) {
			asker := &Asker{config: &rest.Config{}, within: briefly, again: time.Millisecond}
			if name == "it answers" {
				asker.within = patience
			}
			now := time.Date(2026, 11, 22, 12, 0, 5, 0, time.UTC)
			inventory, err := Read(t.Context(), installed(t, c.host, c.runs), Options{Namespace: "landwaiter-system", Asker: asker}, now)
			require.NoError(t, err)
			report := Examine(inventory, schema.Embedded())
			require.NotEmpty(t, report.Findings)
			require.Equal(t, c.first, firstOf(report))
			require.Contains(t, report.Findings[0].Message, c.says)
			var unreached []string
			for _, u := range report.Unchecked {
				if strings.Contains(strings.Join(u.IDs, " "), NoAnswer) && u.Unpublished {
					unreached = append(unreached, u.Why)
				}
			}
			require.Equal(t, name == "it runs, and is not to be reached", len(unreached) == 1, "%v", unreached)
		})
	}
}

// firstOf is the ID of the first finding, of the CRDs that this cluster lacks apart.
func firstOf(r Report) string {
	for _, f := range r.Findings {
		if f.ID != CRDsMissing {
			return f.ID
		}
	}
	return ""
}

func TestWhoMayNotAskAServiceIsToldSo(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		said := apierrors.NewForbidden(corev1.Resource("services/proxy"), "https:landwaiter:443", nil).Status()
		said.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(said)
	}))
	t.Cleanup(api.Close)
	asker := &Asker{config: &rest.Config{Host: api.URL}, within: patience, again: time.Millisecond}
	inventory, err := Read(t.Context(), installed(t, "landwaiter.landwaiter-system.svc", false), Options{Namespace: "landwaiter-system", Asker: asker}, time.Now())
	require.NoError(t, err)
	require.Equal(t, "get services/proxy https:landwaiter:443 in namespace landwaiter-system", inventory.Unread[SourceAnswers].Missing)
	require.NotContains(t, mappedIDs(Examine(inventory, schema.Embedded())), NoAnswer)
	only := Options{Namespace: "landwaiter-system", Asker: asker, Only: GuardrailIDs()}
	inventory, err = Read(t.Context(), installed(t, "landwaiter.landwaiter-system.svc", false), only, time.Now())
	require.NoError(t, err)
	require.Empty(t, inventory.Unread, "nobody wants to know")
}

func mappedIDs(r Report) (ids []string) {
	for _, f := range r.Findings {
		ids = append(ids, f.ID)
	}
	return ids
}
