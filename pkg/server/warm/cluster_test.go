//go:build e2e

package warm_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/pkg/server/controller"
	"github.com/landwaiter/landwaiter/pkg/server/warm"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/stack"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

var parts = suite.New("warm")

func TestMain(m *testing.M) { os.Exit(parts.Run(m)) }

// world is an API server, a registry, and a service with a watcher that warms its cache.
type world struct {
	*cluster.Cluster
	registry  *fixture.Registry
	key       *fixture.CosignKey
	namespace string // of one test
	service   *service.Service
}

// running is the API server and the registry that tests share.
var running = suite.Once(parts, func(ctx context.Context, e *suite.Env) (*world, error) {
	w := &world{}
	var err error
	if w.Cluster, err = e.Cluster(ctx, cluster.Options{WithoutGatekeeper: true}); err != nil {
		return nil, err
	}
	if w.registry, err = fixture.StartRegistry(fixture.RegistryOptions{TLS: true}); err != nil {
		return nil, err
	}
	e.OnStop(func() { _ = w.registry.Close() })
	if w.key, err = fixture.NewCosignKey(fixture.ECDSAP256); err != nil {
		return nil, err
	}
	return w, w.declare(ctx)
})

// prepare returns the world with a namespace for one test.
func prepare(t *testing.T) *world {
	t.Helper()
	w := *running(t)
	w.namespace = suite.Fresh("team")
	require.NoError(t, w.Client.Create(t.Context(), suite.Namespace(w.namespace)))
	return &w
}

// start runs all of it. The watcher has the permissions that the chart gives for it, and
// no others.
func start(t *testing.T, interval time.Duration) *world {
	t.Helper()
	w := prepare(t)
	log := logrus.New()
	log.SetOutput(io.Discard)
	finder, err := controller.NewFinder(w.Config)
	require.NoError(t, err)
	w.service, err = service.New(service.Options{}, finder)
	require.NoError(t, err)
	t.Cleanup(w.service.Close)
	resources, err := controller.New(w.Config, w.service.Set(), w.service.Outside(), schema.Embedded(), log, controller.Options{})
	require.NoError(t, err)
	watcher, err := warm.New(w.As("watcher"), w.service, log, warm.Options{Interval: interval, Metrics: prometheus.NewRegistry()})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var group errgroup.Group
	group.Go(func() error { return resources.Run(ctx) })
	group.Go(func() error { return watcher.Run(ctx) })
	t.Cleanup(func() { cancel(); require.NoError(t, group.Wait()) })
	suite.Eventually(t, func(context.Context) error { return w.service.Set().Ready() })
	return w
}

// declare makes the CRDs, a rule that images must be signed, and the watcher's role.
func (w *world) declare(ctx context.Context) error {
	definitions, err := suite.Definitions()
	if err != nil {
		return err
	}
	if err := w.Apply(ctx, definitions...); err != nil {
		return err
	}
	store := &v1beta1.ClusterStore{ObjectMeta: named("registry")}
	store.Spec.Registries, store.Spec.CABundle = []string{w.registry.Host()}, &v1beta1.CABundle{Inline: string(w.registry.CertificatePEM())}
	keys := &v1beta1.ClusterTrustStore{ObjectMeta: named("keys")}
	keys.Spec.Type, keys.Spec.Source.Inline = v1beta1.TrustStoreTypePublicKeys, string(w.key.PEM)
	release := &v1beta1.ClusterVerifier{ObjectMeta: named("release")}
	release.Spec.Type = v1beta1.VerifierTypeCosign
	release.Spec.Cosign = &v1beta1.CosignVerifier{
		Signers: v1beta1.Signers{Keys: &v1beta1.Keys{TrustStoreRefs: []v1beta1.TrustStoreRef{{Name: "keys"}},
			TransparencyLog: v1beta1.TransparencyLog{InsecureIgnoreTransparencyLog: true}}}}
	read := func(group string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"get", "list", "watch"}}
	}
	for _, object := range []client.Object{store, keys, release,
		&rbacv1.ClusterRole{ObjectMeta: named("watcher"), Rules: []rbacv1.PolicyRule{read("", "pods"),
			read("apps", "deployments", "statefulsets", "daemonsets"), read("batch", "jobs", "cronjobs")}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: named("watcher"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "watcher"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "watcher"}}},
	} {
		if err := w.Client.Create(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// create makes an object that is gone when the next test begins.
func (w *world) create(t *testing.T, object client.Object) {
	t.Helper()
	require.NoError(t, w.Client.Create(t.Context(), object))
	t.Cleanup(func() {
		require.NoError(t,
			w.Client.Delete(context.WithoutCancel(t.Context()), object, client.GracePeriodSeconds(0), client.PropagationPolicy(metav1.DeletePropagationBackground)))
	})
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

// image pushes an image, signed if it is to be, and returns it by its digest.
func (w *world) image(t *testing.T, repository string, signed bool) image.Reference {
	t.Helper()
	pushed, err := w.registry.PushImage(t.Context(), w.namespace+"/"+repository, "v1")
	require.NoError(t, err)
	if signed {
		_, err = w.registry.SignCosign(t.Context(), pushed, w.key, fixture.CosignOptions{})
		require.NoError(t, err)
	}
	return pushed.Reference
}

// known waits until a verdict is in memory, which nobody has asked for.
func (w *world) known(t *testing.T, ref image.Reference, want policy.Outcome) {
	t.Helper()
	suite.Eventually(t, func(context.Context) error {
		if result, ok := w.service.Recall(verify.Namespace(w.namespace), ref); !ok || result.Verdict.Outcome() != want {
			return fmt.Errorf("%s: %t, %s: %s", ref, ok, result.Verdict.Outcome(), result.Verdict.Reason)
		}
		return nil
	})
}

func template(ref image.Reference) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{{Name: "main", Image: ref.String()}}}}
}

func TestWhatChangesInTheClusterIsVerifiedBeforeAnybodyAsks(t *testing.T) {
	w := start(t, time.Hour)
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	meta := metav1.ObjectMeta{Namespace: w.namespace, Name: "web"}
	once := func(ref image.Reference) corev1.PodTemplateSpec {
		made := template(ref)
		made.Spec.RestartPolicy = corev1.RestartPolicyNever
		return made
	}
	deployment := &appsv1.Deployment{ObjectMeta: meta}
	for repository, make := range map[string]func(ref image.Reference) client.Object{
		"deployment": func(ref image.Reference) client.Object {
			deployment.Spec = appsv1.DeploymentSpec{Selector: selector, Template: template(ref)}
			return deployment
		},
		"statefulset": func(ref image.Reference) client.Object {
			return &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector, Template: template(ref)}}
		},
		"daemonset": func(ref image.Reference) client.Object {
			return &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template(ref)}}
		},
		"job": func(ref image.Reference) client.Object {
			return &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Template: once(ref)}}
		},
		"cronjob": func(ref image.Reference) client.Object {
			return &batchv1.CronJob{ObjectMeta: meta,
				Spec: batchv1.CronJobSpec{Schedule: "0 0 1 1 *", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: once(ref)}}}}
		},
		"pod": func(ref image.Reference) client.Object {
			return &corev1.Pod{ObjectMeta: meta, Spec: template(ref).Spec}
		},
	} {
		ref := w.image(t, repository, true)
		_, early := w.service.Recall(verify.Namespace(w.namespace), ref)
		require.False(t, early, repository)
		w.create(t, make(ref))
		w.known(t, ref, policy.Allowed)
	}

	next, unsigned := w.image(t, "next", true), w.image(t, "unsigned", false)
	deployment.Spec.Template.Spec.Containers[0].Image = next.String()
	require.NoError(t, w.Client.Update(t.Context(), deployment))
	w.known(t, next, policy.Allowed)
	deployment.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "first", Image: unsigned.String()}}
	require.NoError(t, w.Client.Update(t.Context(), deployment))
	w.known(t, unsigned, policy.Denied)
	asked := w.registry.Asked("/manifests/sha256:")
	require.Equal(t, policy.Allowed, w.service.Verify(t.Context(), verify.Namespace(w.namespace), next).Verdict.Outcome())
	require.Equal(t, asked, w.registry.Asked("/manifests/sha256:"), "an admission finds it")
}

func TestImagesOfRunningPodsAreVerifiedAgain(t *testing.T) {
	w := start(t, 100*time.Millisecond)
	ref := w.image(t, "pod", true)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "web"}, Spec: template(ref).Spec}
	w.create(t, pod)
	w.known(t, ref, policy.Allowed)
	for range 3 {
		w.registry.Reset()
		suite.Eventually(t, func(context.Context) error {
			for _, request := range w.registry.Requests() {
				if strings.HasPrefix(request.Path, "/v2/"+w.namespace+"/pod/") {
					return nil
				}
			}
			return fmt.Errorf("the registry was not asked again")
		})
		_, kept := w.service.Recall(verify.Namespace(w.namespace), ref)
		require.True(t, kept)
	}
}

// verified is the metric after an image was verified: once, or again after a change of the rules.
var verified = regexp.MustCompile(`landwaiter_warm_images_total\{outcome="allowed"\} [1-9]`)

func TestServeWarmsUpIfAsked(t *testing.T) {
	w := prepare(t)
	server, err := suite.ForTest(t).Server(t.Context(), suite.ServerOptions{Binary: suite.LandwaiterServer,
		Env: []string{"KUBECONFIG=" + w.Kubeconfig()}, Args: []string{"--leader-elect=false", "--warm-up", "--ttl=warm-up=30m"}})
	require.NoError(t, err)
	signed := w.image(t, "pod", true)
	w.create(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "web"}, Spec: template(signed).Spec})
	suite.Eventually(t, func(ctx context.Context) error {
		text, err := stack.Get(ctx, server.MetricsURL+"/metrics")
		if err == nil && !verified.MatchString(text) {
			err = fmt.Errorf("nothing was verified; the log ends with:\n%s", server.Tail(20))
		}
		return err
	})
}
