//go:build e2e || nightly

// Package inspect looks at clusters as people do, with the commands status, preview, verify,
// explain and check, and in the reports and Events that Landwaiter writes. Each person has
// the permissions of one role and no others.
package inspect

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

var parts = suite.New("inspect")

func TestMain(m *testing.M) { os.Exit(parts.Run(m)) }

// person calls the programs, and the API server, with the permissions of one user.
type person struct {
	landwaiter, kubectl suite.Program
	client              client.Client
}

// as returns the user of a cluster who is in groups, with a default namespace.
func as(t *testing.T, c *cluster.Cluster, user, namespace string, groups ...string) person {
	t.Helper()
	p := caller(t, suite.Kubeconfig(t, c, user, namespace, groups...))
	var err error
	p.client, err = c.NewClient(c.As(user, groups...))
	require.NoError(t, err)
	return p
}

// caller returns somebody who has a kubeconfig and only calls programs.
func caller(t *testing.T, kubeconfig string) person {
	t.Helper()
	return person{
		landwaiter: suite.Program{Path: suite.MustTool(t, suite.Landwaiter), Kubeconfig: kubeconfig},
		kubectl:    suite.Program{Path: suite.MustTool(t, suite.ClusterTools, "kubectl"), Kubeconfig: kubeconfig},
	}
}

// preview is what landwaiter preview -o json prints.
type preview struct {
	Images []struct {
		Namespace, Image string
		Used             []string
		From, To         struct{ Answer, Reason, Remediation string }
	}
	Missing         []string
	Breaks, Unknown int
}

// trusted is a key of the cluster and the verifier that trusts it.
func trusted(name string, key *fixture.CosignKey) string {
	return fmt.Sprintf(`---
{apiVersion: landwaiter.dev/v1beta1, kind: ClusterTrustStore, metadata: {name: %[1]s}, spec: {type: PublicKeys, source: {inline: %[2]q}}}
---
{apiVersion: landwaiter.dev/v1beta1, kind: ClusterVerifier, metadata: {name: %[1]s}, spec: {type: Cosign, cosign: {keys: {trustStoreRefs: [{name: %[1]s}], insecureIgnoreTransparencyLog: true}}}}
`, name, key.PEM)
}
