//go:build e2e

package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// moments are the states of Providers in which Gatekeeper could not have asked Landwaiter.
type moments struct {
	done  chan struct{}
	wrong []string // read it once done is closed
}

// watched begins to note them.
func (a *admin) watched(t *testing.T) *moments {
	t.Helper()
	want, err := a.authority(suite.Within(t))
	require.NoError(t, err)
	list, err := a.providers(t).List(suite.Within(t), metav1.ListOptions{})
	require.NoError(t, err)
	events, err := a.providers(t).Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	require.NoError(t, err)
	m := &moments{done: make(chan struct{})}
	go func() {
		defer close(m.done)
		for event := range events.ResultChan() {
			object, _ := event.Object.(*unstructured.Unstructured)
			if object == nil {
				m.wrong = append(m.wrong, fmt.Sprintf("the watch failed: %v", event.Object))
				return
			}
			if object.GetAnnotations()[last] != "" {
				return
			}
			bundle, _, _ := unstructured.NestedString(object.Object, "spec", "caBundle")
			if event.Type == watch.Deleted || bundle != want {
				m.wrong = append(m.wrong, fmt.Sprintf("%s %s with the caBundle %.60q", event.Type, object.GetName(), bundle))
			}
		}
		m.wrong = append(m.wrong, "the watch ended early")
	}()
	t.Cleanup(events.Stop)
	return m
}

// none checks that there was no such moment up to now.
func (m *moments) none(t *testing.T, a *admin) {
	t.Helper()
	a.kubectl(t).Must(t, "annotate", "provider.externaldata.gatekeeper.sh", "landwaiter-verify", last+"=true")
	select {
	case <-m.done:
	case <-suite.Within(t).Done():
		require.Fail(t, "the watch has not ended")
	}
	require.Empty(t, m.wrong, "Gatekeeper could not have asked Landwaiter")
}

// way is how an admin, or a tool of theirs, applies the chart.
type way struct {
	// apply installs or upgrades, with arguments of helm for values.
	apply func(t *testing.T, values []string) suite.Result
	// back returns to what was applied before the last time.
	back func(t *testing.T, values []string) suite.Result
	// remove uninstalls.
	remove func(t *testing.T) suite.Result
}

// released is Helm itself.
func (a *admin) released(name string) way {
	return way{
		apply: func(t *testing.T, values []string) suite.Result {
			return a.helm(t, name).Run(t, "", append([]string{"upgrade", "--install", "landwaiter", chart, "--namespace", suite.System}, values...)...)
		},
		back: func(t *testing.T, _ []string) suite.Result {
			return a.helm(t, name).Run(t, "", "rollback", "landwaiter", "--namespace", suite.System)
		},
		remove: func(t *testing.T) suite.Result {
			return a.helm(t, name).Run(t, "", "uninstall", "landwaiter", "--namespace", suite.System)
		},
	}
}

// applied is kubectl, or a tool that applies with the same options.
func (a *admin) applied(options ...string) way {
	manifest := ""
	apply := func(t *testing.T, values []string) suite.Result {
		manifest = helm(t).Must(t, append([]string{"template", "landwaiter", chart, "--namespace", suite.System}, values...)...)
		return a.kubectl(t).Run(t, manifest, append([]string{"apply", "--filename", "-"}, options...)...)
	}
	return way{apply: apply, back: apply, remove: func(t *testing.T) suite.Result {
		return a.kubectl(t).Run(t, manifest, "delete", "--filename", "-", "--ignore-not-found")
	}}
}

// Flux's kustomize-controller and Argo CD, with ServerSideApply=true, apply with these field
// managers and by force, Argo CD without it as kubectl does on the client side; both do not
// run here.
func TestNoWayToApplyTheChartTakesTheAuthorityFromProviders(t *testing.T) {
	a := administered(t)
	a.kubelet.start(t)
	for name, w := range map[string]way{
		"helm 3":                       a.released("helm"),
		"helm 4":                       a.released("helm4"),
		"kubectl server-side":          a.applied("--server-side"),
		"kubectl client-side":          a.applied(),
		"as Flux":                      a.applied("--server-side", "--force-conflicts", "--field-manager=kustomize-controller"),
		"as Argo CD on the server":     a.applied("--server-side", "--force-conflicts", "--field-manager=argocd-controller"),
		"kubectl server-side by force": a.applied("--server-side", "--force-conflicts"),
	} {
		t.Run(name, func(t *testing.T) {
			ran(t, w.apply(t, a.values(t)))
			a.trusted(t, "landwaiter-verify", "landwaiter-audit")
			a.rolledOut(t)
			m := a.watched(t)
			ran(t, w.apply(t, a.values(t, "log.level=debug")))
			a.rolledOut(t)
			ran(t, w.apply(t, a.values(t, "log.level=warning")))
			a.rolledOut(t)
			ran(t, w.back(t, a.values(t, "log.level=debug")))
			a.rolledOut(t)
			m.none(t, a)
			require.Equal(t, []string{"landwaiter"}, a.managers(t, "landwaiter-verify"), "no field has two owners")

			ran(t, w.remove(t))
			a.gone(t)
		})
	}
}

// managers returns who manages fields of a Provider's spec.
func (a *admin) managers(t *testing.T, name string) (all []string) {
	t.Helper()
	found, err := a.providers(t).Get(suite.Within(t), name, metav1.GetOptions{})
	require.NoError(t, err)
	for _, entry := range found.GetManagedFields() {
		fields := map[string]any{}
		require.NoError(t, json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields))
		if _, ok := fields["f:spec"]; ok {
			all = append(all, entry.Manager)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// What a value asked for goes with it, and comes back with it.
func TestAProviderComesAndGoesWithItsValue(t *testing.T) {
	a := administered(t)
	a.kubelet.start(t)
	w := a.released("helm")
	ran(t, w.apply(t, a.values(t)))
	a.trusted(t, "landwaiter-verify", "landwaiter-audit")
	a.rolledOut(t)
	pinned := a.values(t, "mutation.enabled=true,mutation.namespaces={team-a},provider.ratify=true")
	for _, change := range []func(){
		func() { ran(t, w.apply(t, pinned)) },
		func() { // it is there again without a new revision of anything else
			require.NoError(t, a.providers(t).Delete(suite.Within(t), "landwaiter-mutate", metav1.DeleteOptions{}))
		},
	} {
		change()
		a.trusted(t, "landwaiter-verify", "landwaiter-audit", "landwaiter-mutate", "landwaiter-mutate-team-a", "landwaiter-ratify")
	}
	a.rolledOut(t)
	ran(t, w.back(t, nil))
	suite.Eventually(t, func(ctx context.Context) error {
		list, err := a.providers(t).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var names []string
		for _, p := range list.Items {
			names = append(names, p.GetName())
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != "landwaiter-audit landwaiter-verdict landwaiter-verify" {
			return errors.New(got)
		}
		return nil
	})
	ran(t, w.remove(t))
	a.gone(t)
}
