//go:build e2e

package install

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// As docs/operate/rotate.md says.
func TestProvidersOutliveTheirValueIfTheirOwnersAreKept(t *testing.T) {
	a := administered(t)
	a.kubelet.start(t)
	w := a.released("helm")
	ran(t, w.apply(t, a.values(t)))
	a.trusted(t, "landwaiter-verdict", "landwaiter-audit")
	a.rolledOut(t)
	lasting := a.lasting(t)
	for value, args := range map[string][]string{"provider.create": a.values(t, "provider.create=false,tls.rotate=false,tls.secretName=landwaiter-tls"),
		"rbac.create": a.values(t, "rbac.create=false")} {
		refused := w.apply(t, args)
		require.NotZero(t, refused.Code, "the Providers would go")
		require.Contains(t, refused.Stderr, value+": without it, Helm deletes ClusterRole landwaiter-verdict-provider")
	}
	a.kubectl(t).Must(t, "annotate", "clusterroles", "--selector=app.kubernetes.io/instance=landwaiter", "helm.sh/resource-policy=keep")
	ran(t, w.apply(t, append(a.values(t, "provider.create=false", "tls.rotate=false"), "--set", "tls.secretName=landwaiter-tls")))
	a.rolledOut(t)
	lasting()
	ran(t, w.remove(t))
	a.kubectl(t).Must(t, "delete", "clusterroles", "--selector=app.kubernetes.io/instance=landwaiter")
	a.gone(t)
}

// As charts/landwaiter/README.md says under "Roles of your own".
func TestRolesThatAnAdminCreatedAreEnough(t *testing.T) {
	a := administered(t)
	a.kubelet.start(t)
	w := a.released("helm")
	values := a.values(t)
	ran(t, w.apply(t, append(values, "--set", "rbac.create=false")))
	suite.Eventually(t, func(context.Context) error {
		if said := a.kubelet.said(); !strings.Contains(said, "forbidden") {
			return fmt.Errorf("without roles, the log says no missing permission: %s", said)
		}
		return nil
	})
	created := helm(t).Must(t, append([]string{"template", "landwaiter", chart, "--namespace", suite.System, "--show-only", "templates/rbac.yaml"}, values...)...)
	ran(t, a.kubectl(t).Run(t, created, "apply", "--filename", "-"))
	a.trusted(t, "landwaiter-verdict", "landwaiter-audit")
	a.rolledOut(t)
	load, lasting := a.loaded(t), a.lasting(t)
	ran(t, w.apply(t, a.values(t, "rbac.create=false", "log.level=debug")))
	a.rolledOut(t)
	load.none(t)
	lasting()
	ran(t, w.remove(t))
	ran(t, a.kubectl(t).Run(t, created, "delete", "--filename", "-"))
	a.kubectl(t).Must(t, "delete", "providers.externaldata.gatekeeper.sh", "--all")
	a.gone(t)
}

// Who owned the Provider objects would delete them on the way, and a replica with another certificate than the
// leader's would not be believed.
func TestSwitchingWhoIssuesTheCertificateLosesNoRequest(t *testing.T) {
	a := administered(t)
	for _, c := range []struct {
		name string
		way  way
		host string
	}{
		{"helm at 127.0.0.1", a.released("helm"), "127.0.0.1"},
		{"as Flux at ::1", a.applied("--server-side", "--force-conflicts", "--field-manager=kustomize-controller"), "::1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a.kubelet.host = c.host
			defer func() { a.kubelet.host = "" }()
			a.kubelet.start(t)
			issued := a.values(t, "tls.extraDNSNames=null", "provider.url=https://"+net.JoinHostPort(c.host, strconv.Itoa(a.kubelet.port)))
			given := append(issued, a.given(t, "given")...)
			ran(t, c.way.apply(t, issued))
			a.trusted(t, "landwaiter-verdict", "landwaiter-audit")
			a.rolledOut(t)
			load, lasting, certificates := a.loaded(t), a.lasting(t), a.certificates(t)
			ran(t, c.way.apply(t, given))
			a.rolledOut(t)
			ran(t, c.way.back(t, issued))
			a.rolledOut(t)
			load.none(t)
			lasting()
			require.LessOrEqual(t, certificates(), 2)
			ran(t, c.way.remove(t))
			a.kubectl(t).Must(t, "delete", "configmap", "landwaiter-ca", "--namespace", suite.System, "--ignore-not-found") // kubectl apply prunes nothing, as Flux does
			a.gone(t)
		})
	}
}
