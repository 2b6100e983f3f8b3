//go:build e2e

package warm_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
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

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/controller"
	"github.com/landwaiter/landwaiter/pkg/image"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/service"
	"github.com/landwaiter/landwaiter/pkg/warm"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/stack"
)

// world is an API server, a registry, and a service with a watcher that warms its cache.
type world struct {
	*cluster.Cluster
	registry *fixture.Registry
	key      *fixture.CosignKey
	service  *service.Service
}

// prepare starts the API server and the registry.
func prepare(t *testing.T) *world {
	t.Helper()
	tools := os.Getenv("LANDWAITER_CLUSTER_TOOLS")
	require.NotEmpty(t, tools, "LANDWAITER_CLUSTER_TOOLS is not set; run make e2e")
	w := &world{}
	var err error
	w.Cluster, err = cluster.Start(t.Context(), cluster.Options{Tools: tools, Dir: t.TempDir(), WithoutGatekeeper: true})
	require.NoError(t, err)
	t.Cleanup(w.Stop)
	w.registry, err = fixture.StartRegistry(fixture.RegistryOptions{TLS: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.registry.Close()) })
	w.key, err = fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	w.declare(t)
	return w
}

// start runs all of it. The watcher has the rights that the chart gives for it, and
// no others.
func start(t *testing.T, interval time.Duration) *world {
	t.Helper()
	w := prepare(t)
	log := logrus.New()
	log.SetOutput(io.Discard)
	var err error
	w.service, err = service.New(service.Options{})
	require.NoError(t, err)
	t.Cleanup(w.service.Close)
	resources, err := controller.New(w.Config, w.service.Set(), w.service.Outside(), log, controller.Options{})
	require.NoError(t, err)
	w.service.SetFinder(resources)
	watcher, err := warm.New(w.As("watcher"), w.service, log, warm.Options{Interval: interval, Metrics: prometheus.NewRegistry()})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var group errgroup.Group
	group.Go(func() error { return resources.Run(ctx) })
	group.Go(func() error { return watcher.Run(ctx) })
	t.Cleanup(func() { cancel(); require.NoError(t, group.Wait()) })
	w.eventually(t, func(context.Context) error { return w.service.Set().Ready() })
	return w
}

// declare makes the definitions, a namespace whose images must be signed, and the
// watcher's role.
func (w *world) declare(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob("../../config/crd/landwaiter.dev_*.yaml")
	require.NoError(t, err)
	for _, name := range files {
		objects, err := cluster.DecodeFile(name)
		require.NoError(t, err)
		require.NoError(t, w.Apply(t.Context(), objects...))
	}
	store := &v1alpha1.ClusterStore{ObjectMeta: named("registry")}
	store.Spec.Registries, store.Spec.CABundle = []string{w.registry.Host()}, &v1alpha1.ClusterCABundle{Inline: string(w.registry.CertificatePEM())}
	keys := &v1alpha1.ClusterTrustStore{ObjectMeta: named("keys")}
	keys.Spec.Type, keys.Spec.Source.Inline = v1alpha1.TrustStoreTypePublicKeys, string(w.key.PEM)
	release := &v1alpha1.ClusterVerifier{ObjectMeta: named("release")}
	release.Spec.Type = v1alpha1.VerifierTypeCosign
	release.Spec.Cosign = &v1alpha1.CosignVerifier{Signers: v1alpha1.Signers{Keys: &v1alpha1.Keys{TrustStoreRefs: []v1alpha1.TrustStoreRef{{Name: "keys"}}}}}
	read := func(group string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"get", "list", "watch"}}
	}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: named("team-a")}, store, keys, release,
		&rbacv1.ClusterRole{ObjectMeta: named("watcher"), Rules: []rbacv1.PolicyRule{read("", "pods"),
			read("apps", "deployments", "statefulsets", "daemonsets"), read("batch", "jobs", "cronjobs")}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: named("watcher"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "watcher"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "watcher"}}},
	} {
		require.NoError(t, w.Client.Create(t.Context(), object))
	}
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

func (w *world) eventually(t *testing.T, ok func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, cluster.Until(ctx, ok))
}

// image pushes an image, signed if it is to be, and returns it by its digest.
func (w *world) image(t *testing.T, repository string, signed bool) image.Reference {
	t.Helper()
	pushed, err := w.registry.PushImage(t.Context(), repository, "v1")
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
	w.eventually(t, func(context.Context) error {
		if result, ok := w.service.Recall("team-a", ref); !ok || result.Verdict.Outcome != want {
			return fmt.Errorf("%s: %t, %s: %s", ref, ok, result.Verdict.Outcome, result.Verdict.Reason)
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
	meta := metav1.ObjectMeta{Namespace: "team-a", Name: "web"}
	once := func(ref image.Reference) corev1.PodTemplateSpec {
		made := template(ref)
		made.Spec.RestartPolicy = corev1.RestartPolicyNever
		return made
	}
	deployment := &appsv1.Deployment{ObjectMeta: meta}
	for repository, make := range map[string]func(ref image.Reference) client.Object{
		"app/deployment": func(ref image.Reference) client.Object {
			deployment.Spec = appsv1.DeploymentSpec{Selector: selector, Template: template(ref)}
			return deployment
		},
		"app/statefulset": func(ref image.Reference) client.Object {
			return &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector, Template: template(ref)}}
		},
		"app/daemonset": func(ref image.Reference) client.Object {
			return &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template(ref)}}
		},
		"app/job": func(ref image.Reference) client.Object {
			return &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Template: once(ref)}}
		},
		"app/cronjob": func(ref image.Reference) client.Object {
			return &batchv1.CronJob{ObjectMeta: meta, Spec: batchv1.CronJobSpec{Schedule: "0 0 1 1 *", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: once(ref)}}}}
		},
		"app/pod": func(ref image.Reference) client.Object {
			return &corev1.Pod{ObjectMeta: meta, Spec: template(ref).Spec}
		},
	} {
		ref := w.image(t, repository, true)
		_, early := w.service.Recall("team-a", ref)
		require.False(t, early, repository)
		require.NoError(t, w.Client.Create(t.Context(), make(ref)), repository)
		w.known(t, ref, policy.Allowed)
	}

	next, unsigned := w.image(t, "app/next", true), w.image(t, "app/unsigned", false)
	deployment.Spec.Template.Spec.Containers[0].Image = next.String()
	require.NoError(t, w.Client.Update(t.Context(), deployment))
	w.known(t, next, policy.Allowed)
	deployment.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "first", Image: unsigned.String()}}
	require.NoError(t, w.Client.Update(t.Context(), deployment))
	w.known(t, unsigned, policy.Denied)
	asked := w.registry.Asked("/manifests/sha256:")
	require.Equal(t, policy.Allowed, w.service.Verify(t.Context(), "team-a", next).Verdict.Outcome)
	require.Equal(t, asked, w.registry.Asked("/manifests/sha256:"), "an admission finds it")
}

func TestImagesOfRunningPodsAreVerifiedAgain(t *testing.T) {
	w := start(t, 100*time.Millisecond)
	ref := w.image(t, "app/pod", true)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web"}, Spec: template(ref).Spec}
	require.NoError(t, w.Client.Create(t.Context(), pod))
	w.known(t, ref, policy.Allowed)
	for range 3 {
		w.registry.Reset()
		w.eventually(t, func(context.Context) error {
			for _, request := range w.registry.Requests() {
				if strings.HasPrefix(request.Path, "/v2/app/pod/") {
					return nil
				}
			}
			return fmt.Errorf("the registry was not asked again")
		})
		_, kept := w.service.Recall("team-a", ref)
		require.True(t, kept)
	}
}

func TestServeWarmsUpIfAsked(t *testing.T) {
	binary := os.Getenv("LANDWAITER_BINARY")
	require.NotEmpty(t, binary, "LANDWAITER_BINARY is not set; run make e2e")
	w := prepare(t)
	authority, err := fixture.NewAuthority("serving")
	require.NoError(t, err)
	serving, err := authority.IssueServer("127.0.0.1")
	require.NoError(t, err)
	dir := t.TempDir()
	for name, text := range map[string][]byte{"tls.crt": serving.CertificatePEM, "tls.key": serving.KeyPEM} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	ports, err := cluster.FreePorts(2)
	require.NoError(t, err)
	metrics := fmt.Sprintf("127.0.0.1:%d", ports[1])
	process, err := cluster.StartProcess(dir, cluster.Command{Name: "serve", Path: binary, Args: []string{"serve", "--kubeconfig=" + w.Kubeconfig(),
		"--tls-cert=" + filepath.Join(dir, "tls.crt"), "--tls-key=" + filepath.Join(dir, "tls.key"), "--insecure-no-client-auth", "--leader-elect=false",
		fmt.Sprintf("--address=127.0.0.1:%d", ports[0]), "--health-address=", "--metrics-address=" + metrics, "--warm-up", "--warm-up-interval=30m"}})
	require.NoError(t, err)
	t.Cleanup(process.Kill)
	signed := w.image(t, "app/pod", true)
	require.NoError(t, w.Client.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web"}, Spec: template(signed).Spec}))
	w.eventually(t, func(ctx context.Context) error {
		text, err := stack.Get(ctx, "http://"+metrics+"/metrics")
		if err == nil && !strings.Contains(text, `landwaiter_warm_images_total{outcome="allowed"} 1`) {
			err = fmt.Errorf("nothing was verified; the log ends with:\n%s", process.Tail(20))
		}
		return err
	})
}
