//go:build e2e

package install

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// uids returns the identities of the chart's objects of some kinds.
func (a *admin) uids(t *testing.T, kinds string) []string {
	t.Helper()
	found := strings.Fields(a.kubectl(t).Must(t, "get", kinds, "--all-namespaces", "--selector=app.kubernetes.io/instance=landwaiter",
		"--output=go-template={{range .items}}{{.kind}}/{{.metadata.name}}/{{.metadata.uid}} {{end}}"))
	require.NotEmpty(t, found, kinds)
	return found
}

// As docs/operate/rotate.md says of what another tool takes over, and back.
func TestWhatHelmKeepsOutlivesItsSwitch(t *testing.T) {
	a := administered(t)
	a.kubelet.start(t)
	w := a.released("helm")
	values := func(more ...string) []string {
		return a.values(t, append([]string{"guardrails.enabled=true"}, more...)...)
	}
	ran(t, w.apply(t, values()))
	a.trusted(t, "landwaiter-verdict", "landwaiter-audit")
	a.rolledOut(t)
	load, lasting := a.loaded(t), a.lasting(t)
	handed := []struct{ value, kinds string }{
		{"guardrails.enabled", "validatingadmissionpolicies,validatingadmissionpolicybindings"},
		{"personas.create", "clusterroles"},
		{"rbac.create", "clusterroles,clusterrolebindings,roles,rolebindings"},
	}
	for _, c := range handed {
		before := a.uids(t, c.kinds)
		a.kubectl(t).Must(t, "annotate", c.kinds, "--all-namespaces", "--selector=app.kubernetes.io/instance=landwaiter", "--overwrite",
			"helm.sh/resource-policy=keep")
		ran(t, w.apply(t, values(c.value+"=false")))
		a.rolledOut(t)
		require.Equal(t, before, a.uids(t, c.kinds), "%s: off", c.value)
		ran(t, w.apply(t, values()))
		a.rolledOut(t)
		require.Equal(t, before, a.uids(t, c.kinds), "%s: on again", c.value)
	}
	load.none(t)
	lasting()
	suite.Eventually(t, func(ctx context.Context) error { // the replica that leads now does it, a moment after the roll-out
		list, err := a.providers(t).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, p := range list.Items {
			if len(p.GetOwnerReferences()) == 0 {
				return fmt.Errorf("no role owns Provider %s again yet", p.GetName())
			}
		}
		return nil
	})
	ran(t, w.remove(t))
	for _, c := range handed {
		a.kubectl(t).Must(t, "delete", c.kinds, "--all-namespaces", "--selector=app.kubernetes.io/instance=landwaiter")
	}
	a.gone(t)
}
