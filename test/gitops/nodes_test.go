//go:build nightly

package gitops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
)

// playNodes does what nodes would: Jobs of charts complete, Deployments become available,
// and Gatekeeper runs, as a process, with the arguments of its Deployments. Landwaiter does
// not run, because images are the matter of test/admission: that resources are in force, which it
// would say, is said here. It returns what ends it.
func (p *platform) playNodes() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Add(1)
	var last error
	go func() {
		defer group.Done()
		adopted := false
		for ctx.Err() == nil {
			if err := p.play(ctx, &adopted); ctx.Err() == nil {
				last = err
			}
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	}()
	return func() {
		cancel()
		group.Wait()
		if last != nil {
			fmt.Fprintln(os.Stderr, "nodes, at the end:", last)
		}
	}
}

// play does what is to do now.
func (p *platform) play(ctx context.Context, adopted *bool) error {
	var jobs batchv1.JobList
	var deployments appsv1.DeploymentList
	if err := errors.Join(p.Client.List(ctx, &jobs), p.Client.List(ctx, &deployments)); err != nil {
		return err
	}
	var errs []error
	for i := range jobs.Items {
		if jobs.Items[i].Status.CompletionTime == nil {
			errs = append(errs, p.complete(ctx, &jobs.Items[i]))
		}
	}
	for i := range deployments.Items {
		deployment := &deployments.Items[i]
		if deployment.Status.ObservedGeneration == deployment.Generation && deployment.Status.AvailableReplicas > 0 {
			continue
		}
		if deployment.Namespace == cluster.GatekeeperNamespace && !*adopted {
			if !p.hooked(ctx) {
				continue
			}
			if err := p.AdoptGatekeeper(ctx); err != nil {
				return err
			}
			*adopted = true
		}
		errs = append(errs, p.available(ctx, deployment))
	}
	return errors.Join(append(errs, p.inForce(ctx))...)
}

// inForce says what Landwaiter says of Tenants and of the rules that the tree has.
func (p *platform) inForce(ctx context.Context) error {
	var errs []error
	for _, kind := range v1beta1.Kinds() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(kind.Name + "List"))
		if err := p.Client.List(ctx, list); err != nil {
			if !meta.IsNoMatchError(err) { // the kinds come with the platform
				errs = append(errs, client.IgnoreNotFound(err))
			}
			continue
		}
		for i := range list.Items {
			errs = append(errs, p.ready(ctx, &list.Items[i]))
		}
	}
	return errors.Join(errs...)
}

// ready says that a resource is in force, unless that is said of its generation.
func (p *platform) ready(ctx context.Context, object *unstructured.Unstructured) error {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions") // absent until something is said
	said, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	if len(conditions) == 1 && said == object.GetGeneration() {
		return nil
	}
	object.Object["status"] = map[string]any{"observedGeneration": object.GetGeneration(),
		"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "InForce",
			"message": "played", "observedGeneration": object.GetGeneration(), "lastTransitionTime": metav1.Now().UTC().Format(time.RFC3339)}}}
	return p.Client.Status().Update(ctx, object)
}

// hooked reports whether the chart has installed everything that Gatekeeper needs to run.
func (p *platform) hooked(ctx context.Context) bool {
	var validating admissionv1.ValidatingWebhookConfiguration
	var mutating admissionv1.MutatingWebhookConfiguration
	var account corev1.ServiceAccount
	return p.Client.Get(ctx, client.ObjectKey{Name: "gatekeeper-validating-webhook-configuration"}, &validating) == nil &&
		p.Client.Get(ctx, client.ObjectKey{Name: "gatekeeper-mutating-webhook-configuration"}, &mutating) == nil &&
		p.Client.Get(ctx, client.ObjectKey{Namespace: cluster.GatekeeperNamespace, Name: "gatekeeper-admin"}, &account) == nil
}

func (p *platform) complete(ctx context.Context, job *batchv1.Job) error {
	now := metav1.Now()
	job.Status.StartTime, job.Status.CompletionTime, job.Status.Succeeded = &now, &now, 1
	for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	return p.Client.Status().Update(ctx, job)
}

// available gives a Deployment the ReplicaSet that Helm looks for, and says that all of its
// pods are ready.
func (p *platform) available(ctx context.Context, deployment *appsv1.Deployment) error {
	replicas, yes := *deployment.Spec.Replicas, true
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: deployment.Namespace, Name: fmt.Sprintf("%s-%d", deployment.Name, deployment.Generation),
		Labels:          deployment.Spec.Template.Labels,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: deployment.Name, UID: deployment.UID, Controller: &yes}}},
		Spec: appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: deployment.Spec.Selector, Template: deployment.Spec.Template}}
	if err := p.Client.Create(ctx, set); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	if err := p.Client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
		return err
	}
	set.Status = appsv1.ReplicaSetStatus{ObservedGeneration: set.Generation, Replicas: replicas, FullyLabeledReplicas: replicas, ReadyReplicas: replicas,
		AvailableReplicas: replicas}
	deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: deployment.Generation, Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas,
		AvailableReplicas: replicas,
		Conditions:        []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"}}}
	return errors.Join(p.Client.Status().Update(ctx, set), p.Client.Status().Update(ctx, deployment))
}
