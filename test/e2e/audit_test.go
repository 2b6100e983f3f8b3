//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/stack"
)

// lines are the log lines of the running provider that are about a namespace.
func lines(namespace string) []map[string]any {
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
func deniedPod(t *testing.T) (namespaceName string) {
	t.Helper()
	ns := namespace(t)
	apply(t, own(ns, w.teamA))
	admitted(t, ns, w.byTeamA)
	require.NoError(t, w.Client.Create(within(t), pod(ns, "earlier", w.byTeamA)))
	apply(t, trustStore(ns, "keys", w.teamB))
	return ns
}

// audited returns the messages of a constraint's violations in a namespace, and when the
// audit was.
func audited(ctx context.Context, constraint, namespace string) (at string, messages []string, err error) {
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

// auditsBy bounds the wait for audits. Gatekeeper makes one every two seconds, but one
// takes a minute on a machine that is busy.
const auditsBy = 4 * time.Minute

// audits waits for a number of audits that find a violation in a namespace, and returns
// the messages of all.
func audits(t *testing.T, n int, constraint, namespace string) []string {
	t.Helper()
	times, all := map[string]bool{}, []string{}
	ctx, cancel := context.WithTimeout(t.Context(), auditsBy)
	defer cancel()
	require.NoError(t, cluster.Until(ctx, func(ctx context.Context) error {
		at, messages, err := audited(ctx, constraint, namespace)
		if err == nil && len(messages) > 0 {
			times[at] = true
			all = append(all, messages...)
		}
		if len(times) < n {
			return fmt.Errorf("%d audits found something in %s: %w", len(times), namespace, err)
		}
		return nil
	}))
	return all
}

func TestAuditsAreToldApartFromAdmissionAndLoggedOnce(t *testing.T) {
	ns := deniedPod(t)
	audits(t, 2, "verified-images", ns)
	metrics, err := stack.Get(within(t), w.Current().MetricsURL+"/metrics")
	require.NoError(t, err)
	require.Contains(t, metrics, `landwaiter_provider_requests_total{endpoint="audit_verify",outcome="answered"}`)
	require.Contains(t, metrics, `landwaiter_provider_keys_total{namespace="`+ns+`",outcome="denied",source="audit"}`)
	about := 0
	for _, line := range lines(ns) {
		if line["msg"] == "key" && line["source"] == "audit" && line["level"] == "info" {
			require.Equal(t, "denied", line["verdict"])
			about++
		}
		if line["msg"] == "request" && line["source"] == "audit" {
			require.Equal(t, "audit_verify", line["endpoint"])
		}
	}
	require.Equal(t, 1, about, "%v", lines(ns))

	require.Error(t, create(t, ns, w.byTeamA))
	last := lines(ns)[len(lines(ns))-1]
	require.Equal(t, "admission", last["source"], "what is admitted is never the audit's")
}

// A constraint may name a Provider for audits that is not there: before the chart is
// upgraded, or with provider.audit=false.
func TestAuditWithoutItsProviderAsksThatOfAdmission(t *testing.T) {
	ns := deniedPod(t)
	constraint(t, "no-audit-provider", `enforcementAction: dryrun, match: {kinds: [{apiGroups: [""], kinds: [Pod]}], namespaces: [`+ns+`]}, parameters: {provider: landwaiter-verify, auditProvider: nobody}`)
	for _, message := range audits(t, 2, "no-audit-provider", ns) {
		require.Contains(t, message, "image "+w.byTeamA+" is denied in namespace "+ns)
		require.NotContains(t, message, "provider cache")
	}
	require.Eventually(t, func() bool {
		for _, line := range lines(ns) {
			if line["msg"] == "key" && line["source"] == "admission" {
				return true
			}
		}
		return false
	}, settle, settle/100)
}

func TestAHealthyStartLogsNothingThatNeedsAttention(t *testing.T) {
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
