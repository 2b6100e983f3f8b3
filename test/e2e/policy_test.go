//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/stack"
)

// listener creates pods and hears the warnings of the constraint that warns.
type listener struct {
	client.Client
	heard *warnings
}

func listen(t *testing.T) listener {
	t.Helper()
	sample(t, "constraint-warn.yaml")
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
	require.NoError(t, cluster.Until(within(t), func(ctx context.Context) error {
		l.heard.take()
		if err := l.Create(ctx, pod(ns, "probe", image), client.DryRunAll); err != nil {
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
	}))
}

func TestAStricterPolicyThatWarnsSwitchesNothingOff(t *testing.T) {
	ns := namespace(t)
	apply(t, own(ns, w.teamA)+trustStore(ns, "more-keys", w.teamB)+verifier(ns, "second", "more-keys")+
		policy(ns, "a-rehearsal", `{enforcementAction: Warn, rules: [{images: ["**"], require: [{allOf: [release, second]}]}]}`))
	both, err := w.push(within(t), ns+"/both", w.teamA, w.teamB)
	require.NoError(t, err)
	l := listen(t)
	l.admits(t, ns, w.byTeamA, w.byTeamA+" is allowed in namespace "+ns+" with a warning", "VerificationPolicy "+ns+"/a-rehearsal", "second")
	l.admits(t, ns, both)
	denied(t, ns, w.unsigned, "VerificationPolicy "+ns+"/release")
	require.Error(t, create(t, ns, w.unsigned))
	require.NoError(t, create(t, ns, w.byTeamA))
}

// Nobody denies where every policy that applies only warns.
func TestAPolicyThatWarnsAloneAdmitsWithAWarning(t *testing.T) {
	ns := namespace(t)
	denied(t, ns, w.unsigned, "ClusterVerificationPolicy signed")
	rules := `rules: [{images: ["**"], require: [{anyOf: [platform-signature]}]}]`
	t.Cleanup(func() { // other tests rely on it
		objects, err := cluster.Decode([]byte(policy("", "signed", "{"+rules+"}")))
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(context.Background(), settle)
		defer cancel()
		require.NoError(t, w.Apply(ctx, objects...))
		require.NoError(t, cluster.Until(ctx, func(ctx context.Context) error {
			return deniedFor(try(ctx, ns, w.unsigned), "ClusterVerificationPolicy signed")
		}))
	})
	apply(t, policy("", "signed", "{enforcementAction: Warn, "+rules+"}"))
	l := listen(t)
	l.admits(t, ns, w.unsigned, w.unsigned+" is allowed in namespace "+ns+" with a warning", "ClusterVerificationPolicy signed")
	require.NoError(t, create(t, ns, w.unsigned))
	l.admits(t, ns, w.signed)
}

func TestAFloorThatWarnsAdmitsWithAWarning(t *testing.T) {
	ns := namespace(t)
	apply(t, policy(ns, "lax", `{defaultAction: Allow}`))
	floor := func(action string) string {
		return policy("", "e2e-warning-floor", `{scope: Floor, defaultAction: Allow, enforcementAction: `+action+`,
  rules: [{images: ["`+w.Registry.Host()+`/somebody/**"], require: [{anyOf: [platform-signature]}]}]}`)
	}
	apply(t, floor("Warn"))
	t.Cleanup(func() { remove(t, floor("Warn")) })
	l := listen(t)
	l.admits(t, ns, w.unsigned, w.unsigned+" is allowed in namespace "+ns+" with a warning", "ClusterVerificationPolicy e2e-warning-floor")
	require.NoError(t, create(t, ns, w.unsigned))
	l.admits(t, ns, w.byTeamA) // the floor is not about it
	apply(t, floor("Deny"))
	denied(t, ns, w.unsigned, "ClusterVerificationPolicy e2e-warning-floor")
}

// asked returns the requests that the registry has had about a repository.
func asked(repository string) []fixture.Request {
	return slices.DeleteFunc(w.Registry.Requests(), func(r fixture.Request) bool { return !strings.Contains(r.Path, "/"+repository+"/") })
}

func TestRulesAllowAndDenyWithoutVerification(t *testing.T) {
	ns := namespace(t)
	apply(t, own(ns, w.teamA))
	admitted(t, ns, w.byTeamA)
	repository := ns + "/third-party/pause"
	image, err := w.push(within(t), repository)
	require.NoError(t, err)
	denied(t, ns, image, "VerificationPolicy "+ns+"/release")
	other := ns + "/third-party/other"
	unseen, err := w.push(within(t), other)
	require.NoError(t, err)
	w.Registry.Reset()

	apply(t, policy(ns, "release", `{rules: [
  {images: ["`+w.Registry.Host()+"/"+ns+`/third-party/**"], action: Allow},
  {images: ["`+w.Registry.Host()+`/team-a/**"], action: Deny},
  {images: ["**"], require: [{anyOf: [release]}]}]}`))
	admitted(t, ns, image)
	require.NoError(t, create(t, ns, unseen))
	require.Empty(t, asked(other), "not even which digest the tag names")
	denied(t, ns, w.byTeamA, "a rule of VerificationPolicy "+ns+"/release denies")
	metrics, err := stack.Get(within(t), w.Current().MetricsURL+"/metrics")
	require.NoError(t, err)
	require.Contains(t, metrics, `landwaiter_provider_keys_total{namespace="`+ns+`",outcome="unverified",source="admission"}`)

	floor := policy("", "e2e-third-party", `{scope: Floor, defaultAction: Allow,
  rules: [{images: ["`+w.Registry.Host()+"/"+ns+`/third-party/**"], require: [{anyOf: [platform-signature]}]}]}`)
	apply(t, floor)
	t.Cleanup(func() { remove(t, floor) })
	denied(t, ns, image, "ClusterVerificationPolicy e2e-third-party")
	denied(t, ns, unseen, "ClusterVerificationPolicy e2e-third-party")
}
