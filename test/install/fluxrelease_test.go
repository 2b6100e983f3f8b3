//go:build nightly

package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/flux"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// flowing is a cluster whose release Flux's own source- and helm-controller keep as a HelmRelease says. The chart is in a
// Git repository.
type flowing struct {
	*admin
	repository *flux.Repository
}

var flows = suite.Once(parts, func(ctx context.Context, e *suite.Env) (*flowing, error) {
	tools, err := suite.Tool(suite.FluxTools)
	if err != nil {
		return nil, err
	}
	a, err := administer(ctx, e)
	if err != nil {
		return nil, err
	}
	git, err := flux.StartGit(context.Background(), e.Path("git"))
	if err != nil {
		return nil, err
	}
	e.OnStop(git.Close)
	folder := e.Path("fleet")
	if err := os.CopyFS(filepath.Join(folder, "charts/landwaiter"), os.DirFS(filepath.Join(root, "charts/landwaiter"))); err != nil {
		return nil, fmt.Errorf("copy the chart: %w", err)
	}
	repository, err := git.Publish(ctx, "fleet", folder)
	if err != nil {
		return nil, err
	}
	trusted := e.Path("trusted.crt")
	if err := os.WriteFile(trusted, git.CertificatePEM(), 0o600); err != nil {
		return nil, err
	}
	started, err := flux.Start(ctx, a.Cluster, flux.Options{Tools: tools, Dir: e.Dir, Helm: true, Open: true, Env: []string{"SSL_CERT_FILE=" + trusted}})
	if err != nil {
		return nil, err
	}
	e.OnStop(started.Stop)
	return &flowing{a, repository},
		a.Apply(ctx,
			suite.Object("{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {namespace: %s, name: fleet}, spec: {interval: 1h, url: %q, ref: "+
				"{branch: %s}}}",
				suite.System, repository.URL(), flux.Branch))
})

// read merges the files of values that arguments of helm name.
func read(t *testing.T, args []string) map[string]any {
	t.Helper()
	values := map[string]any{}
	for i := 0; i < len(args); i += 2 {
		require.Equal(t, "--values", args[i])
		text, err := os.ReadFile(args[i+1])
		require.NoError(t, err)
		more := map[string]any{}
		require.NoError(t, yaml.Unmarshal(text, &more))
		values = overlaid(values, more)
	}
	return values
}

// ignored is what docs/operate/upgrade.md has people add for autoscaling.
const ignored = `{"ignore": [{"paths": ["/spec/replicas"], "target": {"kind": "Deployment", "name": "landwaiter"}}]}`

// applyRelease applies the HelmRelease with these values, and with more in its spec. Drift is looked for every second.
func (f *flowing) applyRelease(t *testing.T, values map[string]any, spec string) {
	t.Helper()
	text, err := json.Marshal(values)
	require.NoError(t, err)
	release := suite.Object(`{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {namespace: %s, name: landwaiter}, spec: {
		interval: 1s, timeout: 5m, driftDetection: {mode: enabled},
		chart: {spec: {chart: charts/landwaiter, reconcileStrategy: Revision, sourceRef: {kind: GitRepository, name: fleet}}},
		upgrade: {remediation: {retries: 0, remediateLastFailure: true, strategy: rollback}}, values: %s}}`, suite.System, text)
	more := map[string]any{}
	require.NoError(t, yaml.Unmarshal([]byte(spec), &more))
	release.Object["spec"] = overlaid(release.Object["spec"].(map[string]any), more) //nolint:forcetypeassert // a panic fails the test too
	require.NoError(t, f.Apply(suite.Within(t), release))
}

// settled waits until Flux is done with the HelmRelease as it was applied last, and it is ready. While it still works on it, the
// condition Ready may be that of before.
func (f *flowing) settled(t *testing.T, commit string) {
	t.Helper()
	suite.Eventually(t, func(ctx context.Context) error {
		if _, err := flux.Await(ctx, f.Cluster, flux.HelmRelease(), suite.System, "landwaiter", commit, metav1.ConditionTrue); err != nil {
			return err
		}
		release := &unstructured.Unstructured{}
		release.SetGroupVersionKind(flux.HelmRelease())
		if err := f.Client.Get(ctx, client.ObjectKey{Namespace: suite.System, Name: "landwaiter"}, release); err != nil {
			return err
		}
		seen, _, _ := unstructured.NestedInt64(release.Object, "status", "observedGeneration")
		conditions, _, _ := unstructured.NestedSlice(release.Object, "status", "conditions")
		working := slices.ContainsFunc(conditions, func(c any) bool { return c.(map[string]any)["type"] == "Reconciling" }) //nolint:forcetypeassert // a panic fails the test too
		if seen != release.GetGeneration() || working {
			return fmt.Errorf("Flux works on generation %d, and is done with %d", release.GetGeneration(), seen)
		}
		return nil
	})
}

// withoutDrift checks that Flux saw nothing in the cluster that is not as the chart says: what Landwaiter itself writes is no drift.
func (f *flowing) withoutDrift(t *testing.T) {
	t.Helper()
	events := f.kubectl(t).Must(t, "get", "events", "--namespace", suite.System, "--field-selector", "involvedObject.kind=HelmRelease", "--output",
		`go-template={{range .items}}{{.reason}}: {{.message}}{{"\n"}}{{end}}`)
	require.NotContains(t, events, "Drift")
	require.Contains(t, events, "UpgradeSucceeded", "Flux writes events at all")
}

// templates are the ReplicaSets of the Deployment, one for each template of its pods.
func (f *flowing) templates(t *testing.T) int {
	t.Helper()
	var sets appsv1.ReplicaSetList
	require.NoError(t, f.Client.List(suite.Within(t), &sets, client.InNamespace(suite.System), client.MatchingLabels{app: "landwaiter"}))
	return len(sets.Items)
}

// As docs/operate/rotate.md says, with what kubectl applied before Flux took it over, and with a certificate that Gatekeeper would not
// believe on the way.
func TestFluxTakesOverSwitchesTheCertificateAndRollsBackWithoutALostRequest(t *testing.T) {
	f := flows(t)
	f.kubelet.start(t)
	t.Cleanup(func() { f.removed(t) })
	issued := f.values(t)
	given := append(f.values(t), f.given(t, "given")...)
	objects, err := suite.Chart(t.Context(), "landwaiter", issued...)
	require.NoError(t, err)
	require.NoError(t, f.Apply(suite.Within(t), objects...))
	f.trusted(t, "landwaiter-verdict", "landwaiter-verify", "landwaiter-audit")
	f.rolledOut(t)
	load, lasting, certificates := f.loaded(t), f.lasting(t), f.certificates(t)

	f.applyRelease(t, read(t, issued), "")
	f.settled(t, "")
	require.Equal(t, 1, f.templates(t), "adopted: the same pods")
	f.applyRelease(t, read(t, given), "")
	f.settled(t, "")
	f.rolledOut(t)

	commit, err := f.repository.Push(suite.Within(t), "nothing about the chart")
	require.NoError(t, err)
	before := f.templates(t)
	require.NoError(t, flux.Reconcile(suite.Within(t), f.Cluster, flux.GitRepository(), suite.System, "fleet"))
	f.settled(t, commit[:12])
	require.Equal(t, before, f.templates(t), "another version of the chart restarts nothing")

	f.applyRelease(t, read(t, issued), "")
	f.settled(t, "")
	f.rolledOut(t)

	stranger, err := fixture.NewAuthority("stranger")
	require.NoError(t, err)
	wrong := overlaid(read(t, given), map[string]any{"tls": map[string]any{"caBundle": string(stranger.CertificatePEM)}})
	f.applyRelease(t, wrong, "timeout: 20s")
	suite.Eventually(t, func(ctx context.Context) error { // it says UpgradeFailed before it rolls back
		state, err := flux.Await(ctx, f.Cluster, flux.HelmRelease(), suite.System, "landwaiter", "", metav1.ConditionFalse)
		if err == nil && state.Ready.Reason != "RollbackSucceeded" {
			err = fmt.Errorf("%s: %s", state.Ready.Reason, state.Ready.Message)
		}
		return err
	})
	f.rolledOut(t)
	f.applyRelease(t, read(t, issued), "")
	f.settled(t, "")
	f.rolledOut(t)

	load.none(t)
	lasting()
	require.LessOrEqual(t, certificates(), 2)
	f.withoutDrift(t)
}

// As docs/operate/upgrade.md says of Flux with drift detection.
func TestFluxKeepsTheReplicasOfAnAutoscalerOnlyIfItIgnoresThem(t *testing.T) {
	f := flows(t)
	f.kubelet.start(t)
	t.Cleanup(func() { f.removed(t) })
	values := read(t, f.values(t))
	on := overlaid(values, map[string]any{"autoscaling": map[string]any{"enabled": true}})
	f.applyRelease(t, values, "")
	f.settled(t, "")
	f.applyRelease(t, on, "driftDetection: "+ignored)
	f.settled(t, "")
	require.EqualValues(t, 2, f.replicas(t), "switched on")
	f.scaled(t, "5")
	f.applyRelease(t, overlaid(on, map[string]any{"log": map[string]any{"level": "debug"}}), "driftDetection: "+ignored)
	f.settled(t, "")
	require.EqualValues(t, 5, f.replicas(t), "upgraded with what the autoscaler has set")
	f.scaled(t, "4")
	looked := f.handled(t)
	suite.Eventually(t, func(context.Context) error { return looked(3) })
	require.EqualValues(t, 4, f.replicas(t), "Flux has looked three times")

	f.applyRelease(t, overlaid(on, map[string]any{"log": map[string]any{"level": "debug"}}), "")
	suite.Eventually(t, func(ctx context.Context) error {
		var d appsv1.Deployment
		err := f.Client.Get(ctx, client.ObjectKey{Namespace: suite.System, Name: "landwaiter"}, &d)
		if err == nil && *d.Spec.Replicas != 5 {
			err = fmt.Errorf("%d replicas, and not the 5 of the last upgrade, as the page says", *d.Spec.Replicas)
		}
		return err
	})
}

// handled asks Flux to look at the HelmRelease now, again and again, and returns an error until it has done so some times.
func (f *flowing) handled(t *testing.T) func(times int) error {
	t.Helper()
	done, last := 0, ""
	return func(times int) error {
		if done >= times {
			return nil
		}
		release := &unstructured.Unstructured{}
		release.SetGroupVersionKind(flux.HelmRelease())
		if err := f.Client.Get(suite.Within(t), client.ObjectKey{Namespace: suite.System, Name: "landwaiter"}, release); err != nil {
			return err
		}
		asked := release.GetAnnotations()["reconcile.fluxcd.io/requestedAt"]
		handled, _, _ := unstructured.NestedString(release.Object, "status", "lastHandledReconcileAt")
		if last != "" && (asked != last || handled != last) {
			return errors.New("Flux has not looked yet")
		}
		if last != "" {
			done++
		}
		if err := flux.Reconcile(suite.Within(t), f.Cluster, flux.HelmRelease(), suite.System, "landwaiter"); err != nil {
			return err
		}
		if err := f.Client.Get(suite.Within(t), client.ObjectKey{Namespace: suite.System, Name: "landwaiter"}, release); err != nil {
			return err
		}
		last = release.GetAnnotations()["reconcile.fluxcd.io/requestedAt"]
		return fmt.Errorf("Flux has looked %d times", done)
	}
}

// removed has Flux uninstall the release.
func (f *flowing) removed(t *testing.T) {
	t.Helper()
	if t.Failed() {
		t.Log(f.kubectl(t).Run(t, "", "describe", "helmrelease", "--namespace", suite.System, "landwaiter").Stdout)
	}
	f.kubectl(t).Must(t, "delete", "helmrelease", "landwaiter", "--namespace", suite.System, "--ignore-not-found", "--timeout", suite.Patience.String())
	f.kubectl(t).Must(t, "delete", "configmap", "landwaiter-ca", "--namespace", suite.System, "--ignore-not-found")
	f.gone(t)
	require.NotContains(t, strings.ToLower(f.kubectl(t).Must(t, "get", "deployments", "--namespace", suite.System, "--output=name")), "landwaiter")
}
