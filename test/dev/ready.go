package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
