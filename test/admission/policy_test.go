//go:build e2e

package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/stack"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// warnings are those that the API server sent.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

func (w *warnings) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() { w.texts = nil }()
	return strings.Join(w.texts, "\n")
}

// listener creates pods and hears the warnings of the constraint that warns.
type listener struct {
	client.Client
	heard *warnings
}

func (w *world) listen(t *testing.T) listener {
	t.Helper()
	w.sample(t, "constraint-warn.yaml")
	config, heard := rest.CopyConfig(w.Config), &warnings{}
	config.WarningHandler = heard
	made, err := w.NewClient(config)
	require.NoError(t, err)
	return listener{made, heard}
}

// admits waits until a pod with the image is admitted and the warnings contain all
// of says or, without any, are none of ours.
func (l listener) admits(t *testing.T, ns, image string, says ...string) {
	t.Helper()
	suite.Eventually(t, func(ctx context.Context) error {
		l.heard.take()
		if err := l.Create(ctx, suite.Pod(ns, "probe", image), client.DryRunAll); err != nil {
			return err
		}
		got := l.heard.take()
		if len(says) == 0 && strings.Contains(got, "verified-images-warn") {
			return fmt.Errorf("the warnings are %q", got)
		}
		for _, want := range says {
			if !strings.Contains(got, "[verified-images-warn]") || !strings.Contains(got, want) {
				return fmt.Errorf("%q is not in the warnings %q", want, got)
			}
		}
		return nil
	})
}

func TestAStricterPolicyThatWarnsSwitchesNothingOff(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.apply(t, own(ns, w.teamA)+trustStore(ns, "more-keys", w.teamB)+verifier(ns, "second", "more-keys")+
		policy(ns, "a-rehearsal", `{enforcementAction: Warn, rules: [{images: ["**"], require: [{allOf: [release, second]}]}]}`))
	both, err := w.push(suite.Within(t), ns+"/both", w.teamA, w.teamB)
	require.NoError(t, err)
	l := w.listen(t)
	l.admits(t, ns, w.byTeamA, w.byTeamA+" is allowed in namespace "+ns+" with a warning", "VerificationPolicy "+ns+"/a-rehearsal", "second")
	l.admits(t, ns, both)
	w.denied(t, ns, w.unsigned, "VerificationPolicy "+ns+"/release")
	require.Error(t, w.create(t, ns, w.unsigned))
	require.NoError(t, w.create(t, ns, w.byTeamA))
}

// Nobody denies where every policy that applies only warns.
func TestAPolicyThatWarnsAloneAdmitsWithAWarning(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.denied(t, ns, w.unsigned, "ClusterVerificationPolicy signed")
	rules := `rules: [{images: ["**"], require: [{anyOf: [platform-signature]}]}]`
	t.Cleanup(func() { // other tests rely on it
		objects, err := cluster.Decode([]byte(policy("", "signed", "{"+rules+"}")))
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(context.Background(), suite.Patience)
		defer cancel()
		require.NoError(t, w.Apply(ctx, objects...))
		require.NoError(t, cluster.Until(ctx, func(ctx context.Context) error {
			return deniedFor(w.try(ctx, ns, w.unsigned), "ClusterVerificationPolicy signed")
		}))
	})
	w.apply(t, policy("", "signed", "{enforcementAction: Warn, "+rules+"}"))
	l := w.listen(t)
	l.admits(t, ns, w.unsigned, w.unsigned+" is allowed in namespace "+ns+" with a warning", "ClusterVerificationPolicy signed")
	require.NoError(t, w.create(t, ns, w.unsigned))
	l.admits(t, ns, w.signed)
}

func TestAMandatoryPolicyThatWarnsAdmitsWithAWarning(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.apply(t, policy(ns, "lax", `{defaultAction: Allow}`))
	mandatory := func(action string) string {
		return policy("", "e2e-warning-mandatory", `{scope: Mandatory, defaultAction: Allow, enforcementAction: `+action+`,
  rules: [{images: ["`+w.Registry.Host()+`/somebody/**"], require: [{anyOf: [platform-signature]}]}]}`)
	}
	w.during(t, mandatory("Warn"))
	l := w.listen(t)
	l.admits(t, ns, w.unsigned, w.unsigned+" is allowed in namespace "+ns+" with a warning", "ClusterVerificationPolicy e2e-warning-mandatory")
	require.NoError(t, w.create(t, ns, w.unsigned))
	l.admits(t, ns, w.byTeamA) // the mandatory policy is not about it
	w.apply(t, mandatory("Deny"))
	w.denied(t, ns, w.unsigned, "ClusterVerificationPolicy e2e-warning-mandatory")
}

// asked returns the requests that the registry has had about a repository.
func (w *world) asked(repository string) []fixture.Request {
	return slices.DeleteFunc(w.Registry.Requests(), func(r fixture.Request) bool { return !strings.Contains(r.Path, "/"+repository+"/") })
}

func TestRulesAllowAndDenyWithoutVerification(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.apply(t, own(ns, w.teamA))
	w.admitted(t, ns, w.byTeamA)
	repository := ns + "/third-party/pause"
	image, err := w.push(suite.Within(t), repository)
	require.NoError(t, err)
	w.denied(t, ns, image, "VerificationPolicy "+ns+"/release")
	other := ns + "/third-party/other"
	unseen, err := w.push(suite.Within(t), other)
	require.NoError(t, err)
	w.Registry.Reset()

	w.apply(t, policy(ns, "release", `{rules: [
  {images: ["`+w.Registry.Host()+"/"+ns+`/third-party/**"], action: Allow},
  {images: ["`+w.Registry.Host()+`/team-a/**"], action: Deny},
  {images: ["**"], require: [{anyOf: [release]}]}]}`))
	w.admitted(t, ns, image)
	require.NoError(t, w.create(t, ns, unseen))
	require.Empty(t, w.asked(other), "not even which digest the tag names")
	w.denied(t, ns, w.byTeamA, "a rule of VerificationPolicy "+ns+"/release denies")
	metrics, err := stack.Get(suite.Within(t), w.Current().MetricsURL+"/metrics")
	require.NoError(t, err)
	require.Contains(t, metrics, `landwaiter_provider_images_total{namespace="`+ns+`",outcome="unverified",source="admission"}`)

	mandatory := policy("", "e2e-third-party", `{scope: Mandatory, defaultAction: Allow,
  rules: [{images: ["`+w.Registry.Host()+"/"+ns+`/third-party/**"], require: [{anyOf: [platform-signature]}]}]}`)
	w.during(t, mandatory)
	w.denied(t, ns, image, "ClusterVerificationPolicy e2e-third-party")
	w.denied(t, ns, unseen, "ClusterVerificationPolicy e2e-third-party")
}
