package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// member is a namespace of a Tenant to provision.
type member struct {
	name string
	// existing is nil for a namespace to create.
	existing *corev1.Namespace
	adopt    bool
}

// members returns the namespaces to provision, the home namespace first, and why others are not. Without
// the home namespace there are none.
func (e *Engine) members(ctx context.Context, w *world, tenant *v1beta1.Tenant, report *Report) ([]member, error) {
	var found []member
	for _, namespace := range w.tenants.Namespaces(tenant, w.namespaces) {
		m, err := e.member(ctx, w, tenant, namespace, report)
		if err != nil {
			return nil, err
		}
		if m == nil && namespace.Name == tenant.Spec.HomeNamespace {
			return nil, nil
		}
		if m != nil {
			found = append(found, *m)
		}
	}
	return found, nil
}

func (e *Engine) member(ctx context.Context, w *world, tenant *v1beta1.Tenant, namespace v1beta1.TenantNamespace,
	report *Report) (*member, error) {
	ref := policy.ObjectRef{Kind: "Namespace", Name: namespace.Name}
	if e.reserved(namespace.Name) {
		report.problem(policy.ReasonReserved, ref, "namespace %s is reserved: take it off Tenant %s; RoleBindings that others than the "+
			"operator made stay (kubectl get rolebindings -n %s)", namespace.Name, tenant.Name, namespace.Name)
		return nil, nil
	}
	existing := w.namespace(namespace.Name)
	switch namespace.State {
	case v1beta1.NamespaceConflict:
		report.problem(policy.ReasonNotOwned, ref, "%s: take it off one of them", w.tenants.Held(namespace.Name))
		return nil, nil
	case v1beta1.NamespaceTerminating:
		report.problem(policy.ReasonNotOwned, ref, "namespace %s is being deleted: wait until it is gone", namespace.Name)
		return nil, nil
	case v1beta1.NamespaceMissing:
		// The reader may lag behind, and a namespace that somebody has just created belongs to
		// them.
		live := &corev1.Namespace{}
		err := e.client.Get(ctx, client.ObjectKey{Name: namespace.Name}, live)
		if err == nil {
			existing = live
		} else if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("look for namespace %s: %w", namespace.Name, err)
		}
	case v1beta1.NamespaceHome, v1beta1.NamespaceActive:
	}
	m := &member{name: namespace.Name, existing: existing}
	if existing == nil || existing.Labels[v1beta1.LabelTenant] == tenant.Name {
		return m, nil
	}
	if m.adopt = e.options.Adopt && tenant.Spec.Adopt; m.adopt {
		return m, nil
	}
	whose := "belongs to no Tenant"
	if label := existing.Labels[v1beta1.LabelTenant]; label != "" { // as in a restore that creates Tenants one after the other
		whose = fmt.Sprintf("carries the label of Tenant %s, which does not claim it", label)
	}
	if e.options.Adopt {
		report.problem(policy.ReasonNotOwned, ref, "Namespace %s exists and %s; --set adopt=true, or spec.adopt in a file, gives it to Tenant "+
			"%s (%s, labels kept)", namespace.Name, whose, tenant.Name, e.pods(ctx, namespace.Name))
		return nil, nil
	}
	otherwise := "or take it off the Tenant"
	if !w.tenants.Lists(namespace.Name) {
		otherwise = "its name begins with the Tenant's prefix, so otherwise move what is in it to another namespace, and delete it"
	}
	report.problem(policy.ReasonNotOwned, ref, "namespace %s exists and %s: `landwaiter tenant add %s --set adopt=true` takes it over; %s",
		namespace.Name, whose, tenant.Name, otherwise)
	return nil, nil
}

// pods counts the pods of a namespace, for an admin who is about to adopt it.
func (e *Engine) pods(ctx context.Context, namespace string) string {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := e.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return "its pods cannot be listed"
	}
	if len(list.Items) == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", len(list.Items))
}

// reserved reports whether a namespace belongs to the system.
func (e *Engine) reserved(name string) bool {
	return onboard.IsSystemNamespace(name) || name == e.options.Onboard.Landwaiter.Namespace || slices.Contains(e.options.Reserved, name)
}

// strictness orders the levels of the Pod Security Standards.
func strictness(level string) int {
	return slices.Index([]string{"privileged", "baseline", "restricted"}, level)
}

// mark completes a rendered Namespace: with its origin and, if others set a stricter pod
// security level, that level.
func (m *member) mark(rendered client.Object, tenant string) {
	annotations, labels := rendered.GetAnnotations(), rendered.GetLabels()
	if annotations == nil {
		annotations = map[string]string{}
	}
	switch {
	case m.existing == nil:
		annotations[v1beta1.AnnotationCreated] = tenant
	case m.adopt:
		annotations[v1beta1.AnnotationAdopted] = tenant
	default:
		for _, name := range []string{v1beta1.AnnotationCreated, v1beta1.AnnotationAdopted} {
			if value, ok := m.existing.Annotations[name]; ok && owns(m.existing, "f:annotations", name) {
				annotations[name] = value
			}
		}
	}
	rendered.SetAnnotations(annotations)
	if m.existing == nil {
		return
	}
	for name, level := range m.existing.Labels {
		if strings.HasPrefix(name, onboard.LabelPodSecurity) && strictness(level) > strictness(labels[name]) &&
			!owns(m.existing, "f:labels", name) {
			delete(labels, name)
		}
	}
	rendered.SetLabels(labels)
}

// made reports whether a namespace was created for a Tenant, and may be deleted with it.
func made(namespace client.Object, tenant string) bool {
	return namespace.GetAnnotations()[v1beta1.AnnotationCreated] == tenant && namespace.GetLabels()[v1beta1.LabelTenant] == tenant
}

// owns reports whether a label or annotation was applied by [FieldManager].
func owns(object client.Object, group, name string) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == FieldManager && f.Operation == metav1.ManagedFieldsOperationApply && f.FieldsV1 != nil &&
			hasField(f.FieldsV1.GetRawBytes(), "f:metadata", group, "f:"+name)
	})
}

// hasField reports whether managed fields have a path.
func hasField(raw []byte, path ...string) bool {
	var fields map[string]any
	if json.Unmarshal(raw, &fields) != nil {
		return false
	}
	_, found, _ := unstructured.NestedFieldNoCopy(fields, path...) // what is no map has no fields
	return found
}

// applied reports whether an object was applied by [FieldManager].
func applied(object client.Object) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == FieldManager && f.Operation == metav1.ManagedFieldsOperationApply
	})
}

// counted reports whether Kubernetes' quota controller has counted a ResourceQuota's limits on
// Landwaiter's resources. Until then the API server may refuse such resources: "status unknown for
// quota". The controller never counts resources that the cluster does not know, which a Tenant may
// also limit.
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

// expectCount records a ResourceQuota, as returned by the API server, that is not counted
// yet.
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
// yet, without deleted ones.
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

// SayUncounted explains the effect of uncounted ResourceQuotas, one at least.
func SayUncounted(quotas []policy.ObjectRef) string {
	which, are := quotas[0].String(), "is"
	if len(quotas) > 1 {
		which, are = fmt.Sprintf("%s and %d more", which, len(quotas)-1), "are"
	}
	return fmt.Sprintf("%s %s not counted by Kubernetes' quota controller yet; until then the API server may refuse resources there "+
		"(does kube-controller-manager run? after Landwaiter's CRDs were installed, it takes up to five minutes)", which, are)
}
