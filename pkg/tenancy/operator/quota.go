package operator

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// counted reports whether Kubernetes' quota controller has counted what a ResourceQuota limits
// of Landwaiter's resources. Until then the API server may refuse them: "status unknown for quota".
// It never counts resources that the cluster does not know, which a Tenant may limit too.
func counted(quota *corev1.ResourceQuota) bool {
	if !equality.Semantic.DeepEqual(quota.Spec.Hard, quota.Status.Hard) {
		return false
	}
	for _, name := range onboard.CountedResources() {
		_, limited := quota.Spec.Hard[name]
		if _, used := quota.Status.Used[name]; limited && !used {
			return false
		}
	}
	return true
}

// expectCount notes a ResourceQuota, as the API server answered, that is not counted yet.
func (r *Report) expectCount(live *unstructured.Unstructured) error {
	if live.GetKind() != kindResourceQuota {
		return nil
	}
	quota := &corev1.ResourceQuota{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, quota); err != nil {
		return fmt.Errorf("read %s: %w", refOf(live), err)
	}
	if !counted(quota) {
		r.Uncounted = append(r.Uncounted, refOf(live))
	}
	return nil
}

// Uncounted returns those of some ResourceQuotas that Kubernetes' quota controller has not counted
// yet. One that is gone is not among them.
func (e *Engine) Uncounted(ctx context.Context, quotas []policy.ObjectRef) (left []policy.ObjectRef, err error) {
	for _, ref := range quotas {
		quota := &corev1.ResourceQuota{}
		err := e.client.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, quota)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read %s: %w", ref, err)
		}
		if err == nil && !counted(quota) {
			left = append(left, ref)
		}
	}
	return left, nil
}

// SayUncounted says what it means that ResourceQuotas, one at least, are not counted.
func SayUncounted(quotas []policy.ObjectRef) string {
	which, are := quotas[0].String(), "is"
	if len(quotas) > 1 {
		which, are = fmt.Sprintf("%s and %d more", which, len(quotas)-1), "are"
	}
	return fmt.Sprintf("%s %s not counted by Kubernetes' quota controller yet; until then the API server may refuse resources there "+
		"(does kube-controller-manager run? after Landwaiter's CRDs were installed, it takes up to five minutes)", which, are)
}
