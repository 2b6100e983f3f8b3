//go:build e2e

package admission

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// before returns a namespace in which every image is admitted, and a function that
// ends this: what is made in between runs with images that are denied from then on.
func (w *world) before(t *testing.T) (ns string, enforce func()) {
	t.Helper()
	ns = w.namespace(t)
	w.apply(t, policy(ns, "before", `{defaultAction: Allow}`))
	w.admitted(t, ns, w.unsigned)
	return ns, func() {
		t.Helper()
		w.apply(t, policy(ns, "before", `{defaultAction: Deny, rules: [{images: ["**"], require: [{anyOf: [platform-signature]}]}]}`))
		w.denied(t, ns, w.unsigned)
		w.admitted(t, ns, w.signed)
	}
}

// running makes a pod that runs before the constraint denies it.
func (w *world) running(t *testing.T, ns, name string) *corev1.Pod {
	t.Helper()
	made := suite.Pod(ns, name, w.unsigned)
	made.Spec.InitContainers = []corev1.Container{{Name: "init", Image: w.unsigned}}
	made.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: w.unsigned}}}}
	require.NoError(t, w.Client.Create(suite.Within(t), made))
	return made
}

func change[T client.Object](t *testing.T, w *world, object T, change func(T)) error {
	t.Helper()
	from, ok := object.DeepCopyObject().(client.Object)
	require.True(t, ok)
	change(object)
	return w.Client.Patch(suite.Within(t), object, client.MergeFrom(from))
}

func (w *world) gone(t *testing.T, object client.Object) {
	t.Helper()
	suite.Eventually(t, func(ctx context.Context) error {
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}

func TestPodThatRanBeforeTheConstraintLivesOn(t *testing.T) {
	w := installed(t)
	ns, enforce := w.before(t)
	kept, evicted, deleted := w.running(t, ns, "kept"), w.running(t, ns, "evicted"), w.running(t, ns, "deleted")
	require.NoError(t, change(t, w, kept, func(p *corev1.Pod) { p.Finalizers = []string{"example.com/hold"} }))
	enforce()

	require.NoError(t, change(t, w, kept, func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} }), "a label")
	require.NoError(t, change(t, w, kept, func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} }), "an annotation")
	kept.Status.Phase = corev1.PodSucceeded
	require.NoError(t, w.Client.Status().Update(suite.Within(t), kept), "finished")
	require.NoError(t, w.Client.Delete(suite.Within(t), kept), "deleted with a finalizer")
	require.NoError(t, w.Client.Get(suite.Within(t), client.ObjectKeyFromObject(kept), kept))
	require.NoError(t, change(t, w, kept, func(p *corev1.Pod) { p.Finalizers = nil }), "a finalizer taken off")
	w.gone(t, kept)

	require.NoError(t, w.Client.SubResource("eviction").Create(suite.Within(t), evicted, &policyv1.Eviction{}), "evicted")
	w.gone(t, evicted)
	require.NoError(t, w.Client.Delete(suite.Within(t), deleted))
	w.gone(t, deleted)
}

func TestJobThatRanBeforeTheConstraintCompletes(t *testing.T) {
	w := installed(t)
	ns, enforce := w.before(t)
	job := workloads(ns, w.unsigned)["Job"].(*batchv1.Job) //nolint:forcetypeassert // a panic fails the test too
	require.NoError(t, w.Client.Create(suite.Within(t), job))
	var made corev1.Pod
	suite.Eventually(t, func(ctx context.Context) error {
		var pods corev1.PodList
		if err := w.Client.List(ctx, &pods, client.InNamespace(ns)); err != nil || len(pods.Items) != 1 {
			return errors.Join(fmt.Errorf("%d pods", len(pods.Items)), err)
		}
		made = pods.Items[0]
		return nil
	})
	require.NotEmpty(t, made.Finalizers, "the controller's, which it must take off")
	enforce()
	made.Status.Phase = corev1.PodSucceeded
	require.NoError(t, w.Client.Status().Update(suite.Within(t), &made))
	suite.Eventually(t, func(ctx context.Context) error {
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil {
			return err
		}
		for _, condition := range job.Status.Conditions {
			if condition.Type == batchv1.JobComplete && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("the job is not complete: %+v", job.Status)
	})
}

func TestWorkloadsThatRanBeforeTheConstraintLiveOn(t *testing.T) {
	w := installed(t)
	ns, enforce := w.before(t)
	made := workloads(ns, w.unsigned)
	for kind, workload := range made {
		require.NoError(t, w.Client.Create(suite.Within(t), workload), kind)
	}
	enforce()
	w.enforceWorkloads(t, ns)
	for kind, workload := range made {
		require.NoError(t, w.Client.Get(suite.Within(t), client.ObjectKeyFromObject(workload), workload), kind)
		require.NoError(t, change(t, w, workload, func(o client.Object) { o.SetAnnotations(map[string]string{"a": kind}) }), kind)
	}
	deployment := made["Deployment"].(*appsv1.Deployment) //nolint:forcetypeassert // a panic fails the test too
	for _, replicas := range []int32{0, 2} {
		require.NoError(t, change(t, w, deployment, func(d *appsv1.Deployment) { d.Spec.Replicas = &replicas }), "scaled to %d", replicas)
		// The controller has to write to the Deployment and its ReplicaSet.
		suite.Eventually(t, func(ctx context.Context) error {
			if err := w.Client.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
				return err
			}
			if deployment.Status.ObservedGeneration < deployment.Generation {
				return fmt.Errorf("not seen: %+v", deployment.Status)
			}
			return nil
		})
	}
	// Restarting it makes new pods, whose images are asked about.
	restart := func(d *appsv1.Deployment) { d.Spec.Template.Annotations = map[string]string{"restartedAt": "now"} }
	require.NoError(t, deniedBy(change(t, w, deployment, restart), "verified-images-workloads", w.unsigned))

	signed := workloads(ns, w.signed)["Deployment"].(*appsv1.Deployment) //nolint:forcetypeassert // a panic fails the test too
	signed.Name = "signed"
	require.NoError(t, w.Client.Create(suite.Within(t), signed))
	require.NoError(t, change(t, w, signed, restart))
}

// enforceWorkloads applies the constraint for kinds that make pods, until it denies.
func (w *world) enforceWorkloads(t *testing.T, ns string) {
	t.Helper()
	w.sample(t, "constraint-workloads.yaml")
	suite.Eventually(t, func(ctx context.Context) error {
		probe := workloads(ns, w.unsigned)["StatefulSet"]
		probe.SetName("probe")
		return deniedBy(w.Client.Create(ctx, probe, client.DryRunAll), "verified-images-workloads", w.unsigned)
	})
}

// templateOf returns where a workload has its pods.
func templateOf(t *testing.T, workload client.Object) *corev1.PodTemplateSpec {
	t.Helper()
	switch o := workload.(type) {
	case *appsv1.Deployment:
		return &o.Spec.Template
	case *appsv1.ReplicaSet:
		return &o.Spec.Template
	case *appsv1.StatefulSet:
		return &o.Spec.Template
	case *appsv1.DaemonSet:
		return &o.Spec.Template
	case *corev1.ReplicationController:
		return o.Spec.Template
	case *batchv1.Job:
		return &o.Spec.Template
	case *batchv1.CronJob:
		return &o.Spec.JobTemplate.Spec.Template
	}
	t.Fatalf("%T has no pods that could be changed", workload)
	return nil
}

func TestAnImageChangeIsAskedAboutInEveryKind(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.admitted(t, ns, w.signed)
	w.enforceWorkloads(t, ns)
	for kind, workload := range workloads(ns, w.signed) {
		if kind == "Job" {
			continue // its pods cannot be changed
		}
		require.NoError(t, w.Client.Create(suite.Within(t), workload), kind)
		for name, edit := range map[string]func(*corev1.PodSpec){
			"an image": func(s *corev1.PodSpec) { s.Containers[0].Image = w.unsigned },
			"another container": func(s *corev1.PodSpec) {
				s.Containers = append(s.Containers, corev1.Container{Name: "two", Image: w.unsigned})
			},
			"an init container": func(s *corev1.PodSpec) { s.InitContainers = []corev1.Container{{Name: "init", Image: w.unsigned}} },
		} {
			changed, ok := workload.DeepCopyObject().(client.Object)
			require.True(t, ok)
			err := change(t, w, changed, func(o client.Object) { edit(&templateOf(t, o).Spec) })
			require.NoError(t, deniedBy(err, "verified-images-workloads", w.unsigned), "%s of a %s", name, kind)
		}
	}
	plain := suite.Pod(ns, "plain", w.signed)
	plain.Spec.InitContainers = []corev1.Container{{Name: "init", Image: w.signed}}
	require.NoError(t, w.Client.Create(suite.Within(t), plain))
	for name, edit := range map[string]func(*corev1.PodSpec){
		"an image":                      func(s *corev1.PodSpec) { s.Containers[0].Image = w.unsigned },
		"an image of an init container": func(s *corev1.PodSpec) { s.InitContainers[0].Image = w.unsigned },
	} {
		changed := plain.DeepCopy()
		require.NoError(t, deniedFor(change(t, w, changed, func(p *corev1.Pod) { edit(&p.Spec) }), w.unsigned), name)
	}
	require.NoError(t, change(t, w, plain, func(p *corev1.Pod) { p.Spec.Containers[0].Image = w.signed + "@" + w.digestOf(t, w.signed) }))
}

func TestContainersThatSwapImagesAreAskedAbout(t *testing.T) {
	w := installed(t)
	ns, enforce := w.before(t)
	two := suite.Pod(ns, "two", w.signed)
	two.Spec.Containers = append(two.Spec.Containers, corev1.Container{Name: "other", Image: w.unsigned})
	require.NoError(t, w.Client.Create(suite.Within(t), two))
	enforce()
	require.NoError(t, change(t, w, two, func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} }))
	// The pod had this image, but not in this container.
	err := change(t, w, two, func(p *corev1.Pod) { p.Spec.Containers[0].Image = w.unsigned })
	require.NoError(t, deniedFor(err, w.unsigned))
}

func TestOnlyAnEphemeralContainerThatIsNewIsAskedAbout(t *testing.T) {
	w := installed(t)
	ns, enforce := w.before(t)
	old := w.running(t, ns, "old")
	enforce()
	old, err := w.debug(t, old, w.signed)
	require.NoError(t, err, "the containers that ran before are not signed")
	_, err = w.debug(t, old, w.unsigned)
	require.NoError(t, deniedFor(err, w.unsigned))
	require.Equal(t, 1, strings.Count(err.Error(), w.unsigned), "%v", err)
	_, err = w.debug(t, old, w.signed)
	require.NoError(t, err)
}

func TestDenialOfFiftyImagesIsOneLineEachAndSaysTheTraceIDOnce(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.admitted(t, ns, w.signed)
	many := suite.Pod(ns, "many", w.unsigned)
	for i := range 49 {
		image, err := w.push(suite.Within(t), fmt.Sprintf("somebody/with-a-name-of-usual-length-%d", i))
		require.NoError(t, err)
		many.Spec.Containers = append(many.Spec.Containers, corev1.Container{Name: fmt.Sprintf("c%d", i), Image: image + "@" + w.digestOf(t, image)})
	}
	var err error
	suite.Eventually(t, func(ctx context.Context) error {
		if err = w.Client.Create(ctx, many.DeepCopy(), client.DryRunAll); err != nil && strings.Contains(err.Error(), "try again") {
			return err // so many cold images may take longer than one request has
		}
		return nil
	})
	require.NoError(t, deniedFor(err))
	text := err.Error()
	require.Len(t, strings.Split(text, "\n"), 50+1)
	require.Equal(t, 1, strings.Count(text, "traceID"))
	require.Regexp(t, `\n\[[a-z-]+\] traceID [0-9a-f]{32}$`, text)
	require.Less(t, len(text), 32<<10)
	t.Logf("%d bytes, beginning with %.400s", len(text), text)
}

func TestWarningsReachWhoeverAppliesAPod(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.apply(t, policy(ns, "lax", `{defaultAction: Allow}`)+
		policy(ns, "rehearsed", `{enforcementAction: Warn, rules: [{images: ["**"], require: [{anyOf: [platform-signature]}]}]}`))
	w.admitted(t, ns, w.unsigned)
	l := w.listen(t)
	l.admits(t, ns, w.unsigned, w.unsigned+" is allowed", "platform-signature")
	l.admits(t, ns, w.signed)

	// Alone it says what would be denied.
	other := w.namespace(t)
	w.admitted(t, other, w.signed)
	deployment := workloads(other, w.unsigned)["Deployment"]
	require.NoError(t, l.Create(suite.Within(t), deployment, client.DryRunAll), "the constraint that denies is about pods")
	got := l.heard.take()
	require.Contains(t, got, "[verified-images-warn] image "+w.unsigned+" is denied in namespace "+other)
	require.Contains(t, got, "traceID")
}

// digestOf returns the digest that a tag of the registry names.
func (w *world) digestOf(t *testing.T, image string) string {
	t.Helper()
	name, tag, _ := strings.Cut(strings.TrimPrefix(image, w.Registry.Host()+"/"), ":")
	repository, err := w.Registry.Repository(suite.Within(t), name)
	require.NoError(t, err)
	found, err := repository.Resolve(suite.Within(t), tag)
	require.NoError(t, err)
	return found.Digest.String()
}
