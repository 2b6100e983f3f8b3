package check_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/landwaiter/landwaiter/pkg/inspect/check"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
)

// ofService are answers of the Service of a sound installation.
func ofService(a check.Answers) check.Answers {
	a.Place = check.Place{Host: "landwaiter.landwaiter-system.svc:443", Service: types.NamespacedName{Namespace: "landwaiter-system", Name: "landwaiter"},
		Port: "443"}
	a.Asked, a.Within = 8, 6*time.Second
	return a
}

func TestWhatBecomesOfPodsIsSaidAsItIs(t *testing.T) {
	hangs, gone := ofService(check.Answers{Silent: 8, Lapsed: true}), ofService(check.Answers{Refused: 8, Why: "connection refused", Lapsed: true})
	open := func(i *check.Inventory) {
		i.Validating[0].Webhooks[1].FailurePolicy, i.Validating[0].Webhooks[1].TimeoutSeconds = pointer(admissionv1.Ignore), pointer(int32(3))
	}
	for name, c := range map[string]struct {
		answers check.Answers
		change  func(*check.Inventory)
		says    string
	}{
		"it hangs": {hangs, func(*check.Inventory) {}, "nothing answers at landwaiter.landwaiter-system.svc:443 within 6s: every new pod is refused where a " +
			"constraint denies"},
		"it is gone": {gone, func(*check.Inventory) {}, "nothing answers at landwaiter.landwaiter-system.svc:443: connection refused: every new pod is refused " +
			"where a constraint denies"},
		"one of two hangs": {ofService(check.Answers{Answered: 5, Silent: 3}), func(*check.Inventory) {},
			"3 of 8 requests to landwaiter.landwaiter-system.svc:443 got no answer within 6s: not all of its 2 replicas answer: a share of new pods is delayed, and " +
				"then refused where a constraint denies"},
		"the API server gives up first": {hangs, open, "every new pod is admitted unverified, because the webhook has failurePolicy Ignore and gives up " +
			"before Gatekeeper"},
		"Gatekeeper knows before it gives up": {gone, open, "every new pod is refused where a constraint denies"},
		"Gatekeeper gives up first": {hangs, func(i *check.Inventory) { open(i); i.Validating[0].Webhooks[1].TimeoutSeconds = pointer(int32(5)) },
			"every new pod is refused where a constraint denies"},
		"constraints only warn": {hangs, func(i *check.Inventory) {
			i.Constraints[0].Object["spec"] = map[string]any{"enforcementAction": "warn"}
		}, "every new pod is admitted unverified, because nothing denies"},
		"nothing asks Gatekeeper": {hangs, func(i *check.Inventory) { i.Validating = nil }, "every new pod is admitted unverified, because nothing denies"},
	} {
		t.Run(name, func(t *testing.T) {
			i := sound(t)
			i.Answers = []check.Answers{c.answers}
			c.change(i)
			report := check.Examine(i, schema.Embedded())
			require.NotEmpty(t, report.Findings)
			f := report.Findings[0]
			require.Equal(t, check.NoAnswer, f.ID, "it comes first")
			require.Contains(t, f.String(), c.says)
			require.Equal(t, "kubectl rollout restart deployment landwaiter --namespace=landwaiter-system", f.Command)
		})
	}
}

// From here, a network that drops requests looks like a server that hangs.
func TestWhatIsNotReachedIsNoFinding(t *testing.T) {
	direct := check.Answers{Place: check.Place{Host: "localhost:8443", Port: "8443"}, Asked: 1}
	unreached, reached := direct, direct
	unreached.Why, reached.Silent = "no such host", 1
	for name, c := range map[string]struct {
		answers check.Answers
		finding bool
		says    string // why it is not known
	}{
		"a Service, and a replica runs":                {ofService(check.Answers{Silent: 8, Renewed: true}), false, "but a replica renews its Lease"},
		"a Service, and nobody knows about the Lease":  {ofService(check.Answers{Silent: 8}), false, "the API server gets no answer"},
		"a Service without endpoints":                  {ofService(check.Answers{Refused: 8}), true, ""},
		"a Service that the API server cannot connect": {ofService(check.Answers{Why: "i/o timeout", Lapsed: true}), false, "i/o timeout"},
		"a host that is not reached":                   {unreached, false, "you cannot reach localhost:8443 from here: no such host"},
		"a host that hangs":                            {reached, true, ""},
		"all is well":                                  {ofService(check.Answers{Answered: 8}), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			i := sound(t)
			i.Answers = []check.Answers{c.answers}
			report := check.Examine(i, schema.Embedded())
			require.Equal(t, c.finding, len(report.Findings) == 1, "%+v", report.Findings)
			var why []string
			for _, u := range report.Unchecked {
				if strings.Join(u.IDs, "") == check.NoAnswer {
					require.True(t, u.Unpublished, "it does not change the exit code")
					why = append(why, u.Why)
				}
			}
			require.Equal(t, c.says != "", len(why) == 1)
			require.Contains(t, strings.Join(why, ""), c.says)
		})
	}
}
