//go:build e2e || nightly

package controller_test

import (
	"context"
	"io"
	"os"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/pkg/server/controller"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

var parts = suite.New("controller")

func TestMain(m *testing.M) { os.Exit(parts.Run(m)) }

// running returns the API server that tests share.
var running = suite.Once(parts, start)

// crowd returns an API server and how many teams to make there: with LANDWAITER_NIGHTLY set a
// thousand, on a server of their own, so that nothing else adds to the figures.
func crowd(t *testing.T) (*cluster.Cluster, int) {
	t.Helper()
	if os.Getenv("LANDWAITER_NIGHTLY") == "" {
		return running(t), 100
	}
	c, err := start(t.Context(), suite.ForTest(t))
	require.NoError(t, err)
	return c, 1000
}

// start starts an API server with Landwaiter's CRDs.
func start(ctx context.Context, e *suite.Env) (*cluster.Cluster, error) {
	c, err := e.Cluster(ctx, cluster.Options{WithoutGatekeeper: true})
	if err != nil {
		return nil, err
	}
	definitions, err := suite.Definitions()
	if err != nil {
		return nil, err
	}
	return c, c.Apply(ctx, definitions...)
}

// run starts a controller and returns its set, and how to end it.
func run(t *testing.T, config *rest.Config, options controller.Options) (*service.Set, func()) {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	set := &service.Set{}
	registries := registry.NewClient(registry.Options{})
	c, err := controller.New(config, set, resolve.Outside{Registry: registries.For}, schema.Embedded(), log, options)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	stopped := false
	stop := func() {
		if !stopped {
			stopped = true
			cancel()
			require.NoError(t, <-ended)
			registries.Close()
		}
	}
	t.Cleanup(stop)
	return set, stop
}

// eventually waits until ok returns nil, and returns how long that took.
func eventually(t *testing.T, ok func(context.Context) error) time.Duration {
	t.Helper()
	began := time.Now()
	suite.Eventually(t, ok)
	return time.Since(began).Round(time.Millisecond)
}

// namespace makes a namespace for one test.
func namespace(t *testing.T, c *cluster.Cluster, prefix string) string {
	t.Helper()
	made := suite.Namespace(suite.Fresh(prefix))
	require.NoError(t, c.Client.Create(t.Context(), made))
	return made.GetName()
}

func labelled(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// team are four resources of a namespace.
func team(namespace, pem string) []client.Object {
	keys := &v1beta1.TrustStore{ObjectMeta: labelled(namespace, "keys")}
	keys.Spec.Type, keys.Spec.Source.Inline = v1beta1.TrustStoreTypePublicKeys, pem
	if pem == "" {
		keys.Spec.Source = v1beta1.TrustSource{SecretKeyRef: &v1beta1.KeyReference{Name: "cosign-pub", Key: "cosign.pub"}}
	}
	release := &v1beta1.Verifier{ObjectMeta: labelled(namespace, "release")}
	release.Spec.Type = v1beta1.VerifierTypeCosign
	release.Spec.Cosign = &v1beta1.CosignVerifier{
		Signers: v1beta1.Signers{Keys: &v1beta1.Keys{TrustStoreRefs: []v1beta1.TrustStoreRef{{Name: "keys"}},
			TransparencyLog: v1beta1.TransparencyLog{InsecureIgnoreTransparencyLog: true}}}}
	store := &v1beta1.Store{ObjectMeta: labelled(namespace, "registry")}
	store.Spec.Registries = []string{"registry.example.com"}
	policy := &v1beta1.VerificationPolicy{ObjectMeta: labelled(namespace, "signed")}
	policy.Spec.Rules = []v1beta1.PolicyRule{{Images: []string{"**"}, Require: []v1beta1.Requirement{{AnyOf: []string{"release"}}}}}
	return []client.Object{keys, release, store, policy}
}
