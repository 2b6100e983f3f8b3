//go:build e2e

package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/stack"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// lines are the log lines of the running provider that are about a namespace.
func (w *world) lines(namespace string) []map[string]any {
	var found []map[string]any
	for line := range strings.Lines(w.Current().Tail(1 << 20)) {
		var fields map[string]any
		if json.Unmarshal([]byte(line), &fields) == nil && fields["namespace"] == namespace {
			found = append(found, fields)
		}
	}
	return found
}

// deniedPod makes a pod, and then denies its image.
func (w *world) deniedPod(t *testing.T) (namespaceName string) {
	t.Helper()
	ns := w.namespace(t)
	w.apply(t, own(ns, w.teamA))
	w.admitted(t, ns, w.byTeamA)
	require.NoError(t, w.Client.Create(suite.Within(t), suite.Pod(ns, "earlier", w.byTeamA)))
	w.apply(t, trustStore(ns, "keys", w.teamB))
	return ns
}

// audited returns the messages of a constraint's violations in a namespace, and when the
// audit was.
func (w *world) audited(ctx context.Context, constraint, namespace string) (at string, messages []string, err error) {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("constraints.gatekeeper.sh/v1beta1")
	object.SetKind("VerifiedImages")
	if err := w.Client.Get(ctx, client.ObjectKey{Name: constraint}, object); err != nil {
		return "", nil, err
	}
	at, _, _ = unstructured.NestedString(object.Object, "status", "auditTimestamp")
	violations, _, err := unstructured.NestedSlice(object.Object, "status", "violations")
	for _, entry := range violations {
		if violation, _ := entry.(map[string]any); violation["namespace"] == namespace {
			messages = append(messages, fmt.Sprint(violation["message"]))
		}
	}
	return at, messages, err
}

// audits waits for a number of audits that find a violation in a namespace, and returns
// the messages of all. One audit takes a minute on a machine that is busy.
func (w *world) audits(t *testing.T, n int, constraint, namespace string) []string {
	t.Helper()
	times, all := map[string]bool{}, []string{}
	for range n {
		suite.Eventually(t, func(ctx context.Context) error {
			at, messages, err := w.audited(ctx, constraint, namespace)
			if err != nil || len(messages) == 0 || times[at] {
				return fmt.Errorf("%d audits found something in %s: %w", len(times), namespace, err)
			}
			times[at], all = true, append(all, messages...)
			return nil
		})
	}
	return all
}

func TestAuditFindsAPodThatWasThereBefore(t *testing.T) {
	w := installed(t)
	ns := w.deniedPod(t)
	require.Contains(t, strings.Join(w.audits(t, 1, "verified-images", ns), "\n"), w.byTeamA)
}

func TestAuditsAreToldApartFromAdmissionAndLoggedOnce(t *testing.T) {
	w := installed(t)
	ns := w.deniedPod(t)
	w.audits(t, 2, "verified-images", ns)
	metrics, err := stack.Get(suite.Within(t), w.Current().MetricsURL+"/metrics")
	require.NoError(t, err)
	require.Contains(t, metrics, `landwaiter_provider_requests_total{endpoint="audit_verify",outcome="answered"}`)
	require.Contains(t, metrics, `landwaiter_provider_images_total{namespace="`+ns+`",outcome="denied",source="audit"}`)
	about := 0
	for _, line := range w.lines(ns) {
		if line["msg"] == "key" && line["source"] == "audit" && line["level"] == "info" {
			require.Equal(t, "denied", line["verdict"])
			about++
		}
		if line["msg"] == "request" && line["source"] == "audit" {
			require.Equal(t, "audit_verify", line["endpoint"])
		}
	}
	require.Equal(t, 1, about, "%v", w.lines(ns))

	admissions := func() (n int) {
		for _, line := range w.lines(ns) {
			if line["source"] == "admission" {
				n++
			}
		}
		return n
	}
	before := admissions()
	require.Error(t, w.create(t, ns, w.byTeamA))
	// The audit may log meanwhile, and a request is logged after it was answered.
	suite.Eventually(t, func(context.Context) error {
		if admissions() <= before {
			return errors.New("what is admitted is never the audit's, and no request of admission is in the log")
		}
		return nil
	})
}

// A constraint may name a Provider for audits that is not there: before the chart is
// upgraded, or with provider.audit=false.
func TestAuditWithoutItsProviderAsksThatOfAdmission(t *testing.T) {
	w := installed(t)
	ns := w.deniedPod(t)
	w.constraint(t, "no-audit-provider", `enforcementAction: dryrun, match: {kinds: [{apiGroups: [""], kinds: [Pod]}], namespaces: [`+ns+
		`]}, parameters: {provider: landwaiter-verify, auditProvider: nobody}`)
	for _, message := range w.audits(t, 2, "no-audit-provider", ns) {
		require.Contains(t, message, "image "+w.byTeamA+" is denied in namespace "+ns)
		require.NotContains(t, message, "provider cache")
	}
	suite.Eventually(t, func(context.Context) error {
		for _, line := range w.lines(ns) {
			if line["msg"] == "key" && line["source"] == "admission" {
				return nil
			}
		}
		return errors.New("no key of admission is logged")
	})
}

// In an outage every pod is a violation. People and alerts tell by the message, and by the metrics,
// that nothing is known to be wrong with its image; nothing is let in for that.
func TestAnAuditDuringAnOutageSaysThatImagesAreUndecided(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	image, err := w.push(t.Context(), "outage/app", w.platform)
	require.NoError(t, err)
	w.admitted(t, ns, image)
	require.NoError(t, w.Client.Create(suite.Within(t), suite.Pod(ns, "earlier", image)))
	undecided := "undecided: image " + image + " could not be decided in namespace " + ns

	w.constraint(t, "no-provider", `enforcementAction: dryrun, match: {kinds: [{apiGroups: [""], kinds: [Pod]}], namespaces: [`+ns+
		`]}, parameters: {provider: nobody, auditProvider: nobody}`)
	unanswered := w.audits(t, 1, "no-provider", ns)
	require.Len(t, unanswered, 1)
	require.Contains(t, unanswered[0], undecided+": Gatekeeper got no answer from Landwaiter: ")

	w.Registry.SetIntercept(func(answer http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/v2/outage/") {
			answer.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		return false
	})
	t.Cleanup(func() { w.Registry.SetIntercept(nil) })
	slow := w.audits(t, 1, "verified-images", ns)
	require.Len(t, slow, 1, "one violation for one image")
	require.True(t, strings.HasPrefix(slow[0], undecided+": "), slow[0])
	w.shows(t, `landwaiter_provider_requests_total\{endpoint="audit_verify",outcome="undecided"\} [1-9].*`,
		`landwaiter_provider_images_total\{namespace="`+ns+`",outcome="undecided",source="audit"\} [1-9].*`)
	require.ErrorContains(t, w.create(t, ns, image), "[verified-images] "+undecided)

	w.Registry.SetIntercept(nil)
	suite.Eventually(t, func(ctx context.Context) error {
		_, messages, err := w.audited(ctx, "verified-images", ns)
		if err == nil && len(messages) > 0 {
			err = fmt.Errorf("after the outage: %q", messages)
		}
		return err
	})
}

func TestAHealthyStartLogsNothingThatNeedsAttention(t *testing.T) {
	w := installed(t)
	levels := map[any]int{}
	for text := range strings.Lines(w.startLog) {
		var line map[string]any
		require.NoError(t, json.Unmarshal([]byte(text), &line), "a line that is not JSON: %s", text)
		require.Contains(t, []any{"info", "debug"}, line["level"], text)
		levels[line["level"]]++
	}
	require.Greater(t, levels["info"], 3, w.startLog)
	t.Log(w.startLog)
}
