package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/stack"
)

// reportReady says, as a node would, that Landwaiter's pods are ready: no node runs them, and
// their process runs beside the cluster. It returns once the Deployment counts them.
func reportReady(ctx context.Context, s *stack.Stack) error {
	const deployed = "landwaiter"
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return cluster.Until(ctx, func(ctx context.Context) error {
		var pods corev1.PodList
		if err := s.Client.List(ctx, &pods, client.InNamespace(stack.Namespace), client.MatchingLabels{"app.kubernetes.io/name": deployed}); err != nil {
			return fmt.Errorf("list the pods of Landwaiter: %w", err)
		}
		for _, pod := range pods.Items {
			pod.Status.Phase = corev1.PodRunning
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			if err := s.Client.Status().Update(ctx, &pod); err != nil {
				return fmt.Errorf("say that pod %s is ready: %w", pod.Name, err)
			}
		}
		var deployment appsv1.Deployment
		if err := s.Client.Get(ctx, client.ObjectKey{Namespace: stack.Namespace, Name: deployed}, &deployment); err != nil {
			return fmt.Errorf("read the Deployment: %w", err)
		}
		if ready, all := deployment.Status.ReadyReplicas, deployment.Status.Replicas; ready == 0 || ready < all {
			return fmt.Errorf("%d of %d replicas of the Deployment are ready", ready, all)
		}
		return nil
	})
}

// awaitRules returns once Landwaiter counts those of the objects that are its own: the first
// command that a person copies depends on them.
func awaitRules(ctx context.Context, s *stack.Stack, objects []*unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return cluster.Until(ctx, func(ctx context.Context) error {
		var missing []error
		for _, object := range objects {
			if object.GroupVersionKind().Group == v1beta1.GroupVersion.Group {
				missing = append(missing, ready(ctx, s, object))
			}
		}
		return errors.Join(missing...)
	})
}

// ready returns an error unless the latest generation of an object has the condition Ready.
func ready(ctx context.Context, s *stack.Stack, object *unstructured.Unstructured) error {
	got := object.DeepCopy()
	if err := s.Client.Get(ctx, client.ObjectKeyFromObject(object), got); err != nil {
		return fmt.Errorf("read %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	var state struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(got.Object, &state); err != nil {
		return fmt.Errorf("read the status of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	if c := meta.FindStatusCondition(state.Status.Conditions, v1beta1.ConditionReady); c == nil || c.Status != metav1.ConditionTrue ||
		c.ObservedGeneration != got.GetGeneration() {
		return fmt.Errorf("%s %s is not Ready yet", object.GetKind(), object.GetName())
	}
	return nil
}
