//go:build e2e

package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
	"github.com/landwaiter/landwaiter/test/kit/stack"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// namespaces are two of an installation, without Tenants.
type namespaces struct {
	*installation
	a, b string
}

// Each step begins with what the last one left.
func TestTeamsFindVerdictsWhereTheyLook(t *testing.T) {
	w := &namespaces{installation: installed(t)}
	w.a, w.b = w.fresh("team-a"), w.fresh("team-b")
	require.NoError(t, w.Apply(suite.Within(t), suite.Namespace(w.a), suite.Namespace(w.b)))
	signed, unsigned := w.image(t, w.a+"/app", w.platform), w.image(t, w.a+"/bad")
	t.Run("what runs is reported by workload, container and digest", func(t *testing.T) { w.reportsWhatRuns(t, signed) })
	t.Run("what was denied is reported with its workload", func(t *testing.T) { w.reportsWhatWasDenied(t, unsigned) })
	t.Run("a ReplicaSet that is denied again has one Event with a count", func(t *testing.T) { w.countsDenials(t, unsigned) })
	t.Run("what others write over a report is replaced", func(t *testing.T) { w.keepsItsOwn(t, signed) })
	t.Run("a replica that is killed loses no denial and counts none twice", func(t *testing.T) { w.losesNothing(t) })
	t.Run("a revoked key makes running pods fail, with one Event", func(t *testing.T) { w.revokes(t, signed) })
	t.Run("no report of a team names another's resource", func(t *testing.T) { w.keepsTeamsApart(t) })
}

func (w *namespaces) reportsWhatRuns(t *testing.T, signed string) {
	require.NoError(t, w.Client.Create(t.Context(), deployment(w.a, "web", signed)))
	require.NoError(t, w.Client.Create(t.Context(), suite.Pod(w.b, "secret-project", signed)))
	r := w.result(t, w.a, v1beta1.ReportNameRunning, signed, func(*openreports.ReportResult) bool { return true })
	require.EqualValues(t, v1beta1.ReportPass, r.Result)
	require.Len(t, r.Subjects, 1)
	require.Equal(t, "apps/v1 Deployment "+w.a+"/web",
		fmt.Sprintf("%s %s %s/%s", r.Subjects[0].APIVersion, r.Subjects[0].Kind, r.Subjects[0].Namespace, r.Subjects[0].Name))
	require.Equal(t, "app", r.Properties[v1beta1.PropertyContainer])
	require.Regexp(t, `^sha256:[0-9a-f]{64}$`, r.Properties[v1beta1.PropertyDigest])
	require.NotEmpty(t, r.Properties[v1beta1.PropertySince])
	require.Contains(t, r.Description, "ClusterVerifier platform")
	require.Regexp(t, `^sha256:[0-9a-f]{64}$`, r.Properties[v1beta1.PropertySigners], "the key that signed")
	w.eventually(t, func(ctx context.Context) error {
		text, err := stack.Get(ctx, w.Current().MetricsURL+"/metrics")
		if err == nil && !strings.Contains(text, `landwaiter_running_images{namespace="`+w.a+`",outcome="pass"} 1`) {
			err = errors.New("the metric does not count the image")
		}
		for namespace, mode := range map[string]string{w.a: "deny", "kube-system": "none"} { // which the constraint excludes
			if err == nil && !strings.Contains(text, `landwaiter_namespace_mode{mode="`+mode+`",namespace="`+namespace+`",tenant=""} 1`) {
				err = fmt.Errorf("the metric does not say that the mode of %s is %s", namespace, mode)
			}
		}
		return err
	})
}

func (w *namespaces) reportsWhatWasDenied(t *testing.T, unsigned string) {
	require.NoError(t, w.Client.Create(t.Context(), deployment(w.a, "bad", unsigned)))
	r := w.result(t, w.a, v1beta1.ReportNameDenied, unsigned, func(r *openreports.ReportResult) bool { return r.Properties[v1beta1.PropertyMatched] != "" })
	require.EqualValues(t, v1beta1.ReportFail, r.Result)
	require.Equal(t, "Deployment bad", r.Subjects[0].Kind+" "+r.Subjects[0].Name)
	require.Equal(t, "by namespace and image", r.Properties[v1beta1.PropertyMatched])
	require.Equal(t, "Gatekeeper decides whether that stops a pod", r.Properties[v1beta1.PropertyNote])
	require.NotEmpty(t, r.Properties[v1beta1.PropertyTraceID])
	require.Regexp(t, "^cosign sign .*@sha256:[0-9a-f]{64}$", r.Properties[v1beta1.PropertyCommand])
	require.NotEmpty(t, r.Description)
	require.Contains(t, w.Current().Tail(1000), r.Properties[v1beta1.PropertyTraceID], "the log has the request")
	events := w.events(t, w.a, v1beta1.EventImageDenied)
	require.Len(t, events, 1)
	require.Contains(t, events[0].Message, unsigned)
	require.Contains(t, events[0].Message, "Gatekeeper decides whether that stops a pod")
	require.Regexp(t, "To fix, if your build made it: cosign sign .*@sha256:[0-9a-f]{64}$", events[0].Message,
		"the command ends the Event, so that it can be copied")
}

// countsDenials looks at the Events of the controller whose pods are denied for ever.
func (w *namespaces) countsDenials(t *testing.T, unsigned string) {
	const enough = 5 // times, between which Gatekeeper asks again
	w.eventually(t, func(context.Context) error {
		var texts []string
		for _, e := range w.events(t, w.a, "FailedCreate") {
			if strings.Contains(e.Message, unsigned) && e.Count >= enough {
				return nil
			}
			texts = append(texts, fmt.Sprintf("%d times: %s", e.Count, e.Message))
		}
		return fmt.Errorf("no Event counts %d denials: %s", enough, strings.Join(texts, "; "))
	})
	events := slices.DeleteFunc(w.events(t, w.a, "FailedCreate"), func(e corev1.Event) bool { return !strings.Contains(e.Message, unsigned) })
	require.Len(t, events, 1)
}

// keepsItsOwn writes as a person who may write reports in the namespace does.
func (w *namespaces) keepsItsOwn(t *testing.T, signed string) {
	other := newReport(w.a, "landwaiter-running-x")
	other.SetLabels(map[string]string{v1beta1.LabelReport: v1beta1.ReportRunning})
	require.NoError(t, unstructured.SetNestedField(other.Object, "landwaiter", "source"))
	require.NoError(t, w.Client.Create(t.Context(), other))
	version := other.GetResourceVersion()
	ours := newReport(w.a, v1beta1.ReportNameRunning)
	suite.Eventually(t, func(ctx context.Context) error { // the server may write meanwhile
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(ours), ours); err != nil {
			return err
		}
		unstructured.RemoveNestedField(ours.Object, "results")
		return w.Client.Update(ctx, ours)
	})
	w.result(t, w.a, v1beta1.ReportNameRunning, signed, func(*openreports.ReportResult) bool { return true })
	require.NoError(t, w.Client.Delete(t.Context(), ours))
	w.result(t, w.a, v1beta1.ReportNameRunning, signed, func(*openreports.ReportResult) bool { return true })
	require.NoError(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(other), other))
	require.Equal(t, version, other.GetResourceVersion(), "others' reports are left alone")
}

// leads waits until a replica holds the lease.
func (w *namespaces) leads(t *testing.T, replica *stack.Replica) {
	t.Helper()
	w.eventually(t, func(ctx context.Context) error {
		lease := lease()
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(lease), lease); err != nil {
			return fmt.Errorf("read the lease: %w", err)
		}
		if holder := lease.Spec.HolderIdentity; holder == nil || *holder == "" || !strings.Contains(replica.Tail(10_000), *holder) {
			return errors.New("another one leads")
		}
		return nil
	})
}

// losesNothing denies at two replicas, kills the one that leads as soon as its last denial
// is at the API server, and goes on at the other.
func (w *namespaces) losesNothing(t *testing.T) {
	first := w.Current()
	ports, err := cluster.FreePorts(1)
	require.NoError(t, err)
	second, err := w.StartReplica(t.Context(), ports[0])
	require.NoError(t, err)
	w.leads(t, first)
	image := w.image(t, w.a+"/counted")
	deny := func(port, times int) {
		c := w.asker(t, port)
		for range times {
			answer, err := c.Ask(t.Context(), gatekeeper.VerifyPath, "["+w.a+"]"+image)
			require.NoError(t, err)
			require.Empty(t, answer.SystemError)
			verdict, _ := gatekeeper.Judge(answer.Items[0])
			require.Equal(t, gatekeeper.Denied, verdict)
		}
	}
	deny(w.Port(), 7)
	deny(ports[0], 5)
	noted := func(want int) {
		w.eventually(t, func(context.Context) error {
			total := 0
			for _, e := range w.events(t, w.a, v1beta1.EventImageDenied) {
				if strings.Contains(e.Message, image) {
					total += int(e.Count)
				}
			}
			if total != want {
				return fmt.Errorf("%d of %d denials are noted", total, want)
			}
			return nil
		})
	}
	noted(12)
	w.kill(t, first) // the report may or may not have them yet
	deny(ports[0], 4)
	counted := func(want int) *openreports.ReportResult {
		return w.result(t, w.a, v1beta1.ReportNameDenied, image, func(r *openreports.ReportResult) bool {
			return r.Properties[v1beta1.PropertyCount] == strconv.Itoa(want)
		})
	}
	r := counted(16)
	require.NotEmpty(t, r.Properties[v1beta1.PropertyFirst])
	for _, e := range w.events(t, w.a, v1beta1.EventImageDenied) { // as after an hour
		require.NoError(t, client.IgnoreNotFound(w.Client.Delete(t.Context(), &e)))
	}
	last, err := w.StartReplica(t.Context(), w.free(t, w.Port()))
	require.NoError(t, err)
	second.Terminate(suite.Patience)
	w.leads(t, last)
	counted(16)
}

// free returns the port of a replica that has ended.
func (w *namespaces) free(t *testing.T, port int) int {
	t.Helper()
	w.eventually(t, func(ctx context.Context) error {
		if _, err := w.asker(t, port).Ask(ctx, gatekeeper.VerifyPath); err == nil {
			return errors.New("it still answers")
		}
		return nil
	})
	return port
}

func (w *namespaces) revokes(t *testing.T, signed string) {
	before := w.result(t, w.a, v1beta1.ReportNameRunning, signed, func(r *openreports.ReportResult) bool { return r.Result == v1beta1.ReportPass })
	other, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	suite.Apply(t, w.Cluster, trusted("platform", other))
	failed := func(r *openreports.ReportResult) bool { return r.Result == v1beta1.ReportFail }
	after := w.result(t, w.a, v1beta1.ReportNameRunning, signed, failed)
	require.GreaterOrEqual(t, after.Properties[v1beta1.PropertySince], before.Properties[v1beta1.PropertySince])
	require.Contains(t, after.Description, "key")
	w.Current().Terminate(suite.Patience)
	replica, err := w.StartReplica(t.Context(), w.free(t, w.Port()))
	require.NoError(t, err)
	w.leads(t, replica)
	w.eventually(t, func(ctx context.Context) error { // the new leader has looked
		text, err := stack.Get(ctx, replica.MetricsURL+"/metrics")
		if err == nil && !strings.Contains(text, `landwaiter_running_images{namespace="`+w.a+`",outcome="fail"} 1`) {
			err = errors.New("the new leader has not loaded the report")
		}
		return err
	})
	again := w.result(t, w.a, v1beta1.ReportNameRunning, signed, failed)
	require.Equal(t, after.Properties, again.Properties, "since is kept")
	events := w.events(t, w.a, v1beta1.EventImageNoLongerTrusted)
	require.Len(t, events, 1)
	require.Equal(t, "Deployment web", events[0].InvolvedObject.Kind+" "+events[0].InvolvedObject.Name)
	require.EqualValues(t, 1, events[0].Count)
}

func (w *namespaces) keepsTeamsApart(t *testing.T) {
	for namespace, other := range map[string][]string{w.a: {w.b, "secret-project"}, w.b: {w.a, "web"}} {
		list := newReport(namespace, "")
		reports := &unstructured.UnstructuredList{Object: map[string]any{}}
		reports.SetAPIVersion(list.GetAPIVersion())
		reports.SetKind(v1beta1.ReportKind + "List")
		require.NoError(t, w.Client.List(t.Context(), reports, client.InNamespace(namespace)))
		require.NotEmpty(t, reports.Items)
		for i := range reports.Items {
			r := &openreports.Report{}
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(reports.Items[i].Object, r))
			for _, result := range r.Results {
				delete(result.Properties, v1beta1.PropertyImage) // a repository may be called as a team
				text, err := json.Marshal([]any{result.Properties, result.Subjects, result.Policy})
				require.NoError(t, err)
				for _, name := range other {
					require.NotContains(t, string(text), `"`+name+`"`)
				}
			}
		}
	}
	// A role that a team has by default may read reports, and not write them.
	reader, err := w.NewClient(w.As("dev", "devs"))
	require.NoError(t, err)
	require.True(t, apierrors.IsForbidden(reader.Get(t.Context(), client.ObjectKey{Namespace: w.a, Name: v1beta1.ReportNameRunning}, newReport(w.a, ""))))
}

func deployment(namespace, name, image string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: suite.Pod("", "", image).Spec}}}
}

func newReport(namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: v1beta1.ReportGroup, Version: v1beta1.ReportVersion, Kind: v1beta1.ReportKind})
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// report reads a report.
func (w *namespaces) report(ctx context.Context, namespace, name string) (*openreports.Report, error) {
	found := newReport(namespace, name)
	if err := w.Client.Get(ctx, client.ObjectKeyFromObject(found), found); err != nil {
		return nil, fmt.Errorf("read report %s/%s: %w", namespace, name, err)
	}
	r := &openreports.Report{}
	return r, runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, r)
}

// result waits for the one result about an image that holds what is asked for.
func (w *namespaces) result(t *testing.T, namespace, name, image string, holds func(r *openreports.ReportResult) bool) *openreports.ReportResult {
	t.Helper()
	var found *openreports.ReportResult
	w.eventually(t, func(ctx context.Context) error {
		r, err := w.report(ctx, namespace, name)
		if err != nil {
			return err
		}
		for i := range r.Results {
			if found = &r.Results[i]; found.Properties[v1beta1.PropertyImage] == image && holds(found) {
				return nil
			}
		}
		text, err := json.Marshal(r.Results)
		return fmt.Errorf("%s/%s has no such result about %s: %s, %w", namespace, name, image, text, err)
	})
	return found
}

// asker asks a replica as Gatekeeper does.
func (w *namespaces) asker(t *testing.T, port int) *gatekeeper.Client {
	t.Helper()
	certificate, err := w.GatekeeperCertificate()
	require.NoError(t, err)
	c := gatekeeper.New(gatekeeper.Options{URL: fmt.Sprintf("https://localhost:%d", port), InsecureAnyServer: true, Certificate: &certificate,
		Timeout: suite.Patience})
	t.Cleanup(c.Close)
	return c
}

// events returns the Events of a namespace with a reason.
func (w *namespaces) events(t *testing.T, namespace, reason string) []corev1.Event {
	t.Helper()
	var list corev1.EventList
	require.NoError(t, w.Client.List(t.Context(), &list, client.InNamespace(namespace)))
	return slices.DeleteFunc(list.Items, func(e corev1.Event) bool { return e.Reason != reason })
}
