package operator

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func request(tenant string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: tenant}}
}

// byLabel returns the Tenant whose label an object has.
func byLabel(_ context.Context, object client.Object) []reconcile.Request {
	if tenant := object.GetLabels()[v1beta1.LabelTenant]; tenant != "" {
		return []reconcile.Request{request(tenant)}
	}
	return nil
}

// ofObject returns the Tenant of a changed object, for the object's namespace only.
func (r *reconciler) ofObject(ctx context.Context, object client.Object) []reconcile.Request {
	return r.ask(byLabel(ctx, object), object.GetNamespace())
}

// ofPins returns a Tenant whose condition may differ.
func (r *reconciler) ofPins(_ context.Context, tenant client.Object) []reconcile.Request {
	return r.ask([]reconcile.Request{request(tenant.GetName())}, "")
}

// ask requests the content of a namespace, "" for everything, of Tenants, and returns them.
func (r *reconciler) ask(tenants []reconcile.Request, namespace string) []reconcile.Request {
	for _, tenant := range tenants {
		r.rounds.add(tenant.Name, namespace)
	}
	return tenants
}

// changedByOthers accepts objects that may differ from what was applied. New objects do not:
// their creator knows them.
func changedByOthers() predicate.Predicate {
	return predicate.And(predicate.ResourceVersionChangedPredicate{},
		predicate.Funcs{CreateFunc: func(event.CreateEvent) bool { return false }})
}

// limitsChanged is changedByOthers for ResourceQuotas, ignoring changes of their usage. The
// first count is a change: [reduce] then keeps the status.
func limitsChanged() predicate.Predicate {
	return predicate.Funcs{CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*corev1.ResourceQuota)
			after, also := e.ObjectNew.(*corev1.ResourceQuota)
			return !ok || !also || !equality.Semantic.DeepEqual(before.Spec, after.Spec) || len(before.Status.Hard) != len(after.Status.Hard) ||
				!maps.Equal(before.Labels, after.Labels)
		}}
}

// ending accepts a Tenant whose deletion begins.
func ending() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return (e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
	}}
}

// ofTenants accepts a namespace that is created or deleted, and changes of the platform's
// labels and annotations on it. A team's account may change everything else continuously, and
// each time all objects of its Tenant would be applied.
func ofTenants() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return replaced(e) ||
			!maps.Equal(saidLabels(e.ObjectOld), saidLabels(e.ObjectNew)) || !maps.Equal(saidAnnotations(e.ObjectOld), saidAnnotations(e.ObjectNew))
	}}
}

// replaced reports whether a namespace was created again, or is being deleted.
func replaced(e event.UpdateEvent) bool {
	return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
		(e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
}

// maxSaid bounds a value that is kept: it is more than a label or a name may have, so names
// are never cut.
const maxSaid = 254

// saidLabelNames are fixed: a team's account may create more with the same prefixes.
func saidLabelNames() []string {
	return []string{v1beta1.LabelTenant, v1beta1.LabelHomeNamespace, v1beta1.LabelOwner, v1beta1.LabelFluxTenant, onboard.LabelDemo,
		onboard.LabelPodSecurity + "enforce", onboard.LabelPodSecurity + "enforce-version", onboard.LabelPodSecurity + "warn",
		onboard.LabelPodSecurity + "warn-version"}
}

func saidAnnotationNames() []string {
	return []string{v1beta1.AnnotationCreated, v1beta1.AnnotationAdopted}
}

// saidLabels returns the platform's labels on a namespace.
func saidLabels(namespace client.Object) map[string]string {
	return these(namespace.GetLabels(), saidLabelNames())
}

// saidAnnotations returns the platform's annotations about the origin of a namespace.
func saidAnnotations(namespace client.Object) map[string]string {
	return these(namespace.GetAnnotations(), saidAnnotationNames())
}

// these returns the entries with the given names, their values cut to [maxSaid].
func these(all map[string]string, names []string) map[string]string {
	found := map[string]string{}
	for _, name := range names {
		if value, ok := all[name]; ok {
			found[name] = strings.Clone(value[:min(len(value), maxSaid)])
		}
	}
	return found
}

// appliedFields returns managed fields for which [owns] returns the same about the platform's
// labels and annotations: at most one entry. Anybody can choose the name of a field manager.
func appliedFields(namespace client.Object) []metav1.ManagedFieldsEntry {
	if !applied(namespace) {
		return nil
	}
	type names = map[string]struct{}
	var kept struct {
		Metadata struct {
			Labels      names `json:"f:labels,omitempty"`
			Annotations names `json:"f:annotations,omitempty"`
		} `json:"f:metadata"`
	}
	for _, f := range namespace.GetManagedFields() {
		if f.Manager == FieldManager && f.Operation == metav1.ManagedFieldsOperationApply && f.FieldsV1 != nil {
			_ = json.Unmarshal(f.FieldsV1.GetRawBytes(), &kept) // what cannot be read says nothing
			kept.Metadata.Labels, kept.Metadata.Annotations = only(kept.Metadata.Labels, saidLabelNames()),
				only(kept.Metadata.Annotations, saidAnnotationNames())
		}
	}
	text, _ := json.Marshal(kept) // names always can be
	return []metav1.ManagedFieldsEntry{{Manager: FieldManager, Operation: metav1.ManagedFieldsOperationApply,
		FieldsV1: metav1.NewFieldsV1(string(text))}}
}

// only returns those of the fields that have some names.
func only(fields map[string]struct{}, names []string) map[string]struct{} {
	found := map[string]struct{}{}
	for _, name := range names {
		if _, ok := fields["f:"+name]; ok {
			found["f:"+name] = struct{}{}
		}
	}
	return found
}

// ofNamespace returns the Tenants that a change of a namespace affects: its holder, and the
// one in its label.
func (r *reconciler) ofNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	requests := byLabel(ctx, namespace)
	all, err := r.list(ctx)
	if err != nil {
		r.log.WithField("namespace", namespace.GetName()).WithError(err).Error("cannot tell whose namespace changed; the next comparison will")
		return requests
	}
	labels := resource.Labels{namespace.GetName(): namespace.GetLabels()[v1beta1.LabelTenant]}
	if holder := resource.NewTenants(all).Labelled(labels).Holder(namespace.GetName()); holder != nil &&
		!slices.Contains(requests, request(holder.Name)) {
		requests = append(requests, request(holder.Name))
	}
	return requests
}

// namespaces handles changes of namespaces. A created or deleted one affects the content of
// its Tenants elsewhere, too; a changed label only affects the namespace.
func (r *reconciler) namespaces() handler.Funcs {
	add := func(ctx context.Context, q queue, only string, namespaces ...client.Object) {
		for _, namespace := range namespaces {
			for _, tenant := range r.ask(r.ofNamespace(ctx, namespace), only) {
				q.Add(tenant)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { add(ctx, q, "", e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			only := e.ObjectNew.GetName()
			if replaced(e) {
				only = ""
			}
			add(ctx, q, only, e.ObjectOld, e.ObjectNew)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { add(ctx, q, "", e.Object) },
	}
}

// ofTenant returns a changed Tenant, and those that claim its current or previous namespaces.
func (r *reconciler) ofTenant(ctx context.Context, changed client.Object) []reconcile.Request {
	all, err := r.list(ctx)
	if err != nil {
		r.log.WithError(err).Error("cannot tell which Tenants a change concerns; the next comparison will")
	}
	requests := []reconcile.Request{request(changed.GetName())}
	for _, other := range all {
		if tenant, ok := changed.(*v1beta1.Tenant); ok && other.Name != tenant.Name && rivals(tenant, other) {
			requests = append(requests, request(other.Name))
		}
	}
	for _, tenant := range requests {
		r.rounds.hurry(tenant.Name)
	}
	return requests
}

// rivals reports whether two Tenants may claim one namespace.
func rivals(a, b *v1beta1.Tenant) bool {
	claims := func(t *v1beta1.Tenant, namespace string) bool {
		return namespace == t.Spec.HomeNamespace || slices.Contains(t.Spec.Namespaces, namespace) || t.Spec.NamespacePrefix != "" &&
			strings.HasPrefix(namespace, t.Spec.NamespacePrefix)
	}
	for _, pair := range [][2]*v1beta1.Tenant{{a, b}, {b, a}} {
		one, other := pair[0], pair[1]
		if slices.ContainsFunc(append([]string{one.Spec.HomeNamespace}, one.Spec.Namespaces...),
			func(n string) bool { return claims(other, n) }) ||
			one.Spec.NamespacePrefix != "" && other.Spec.NamespacePrefix != "" &&
				strings.HasPrefix(one.Spec.NamespacePrefix, other.Spec.NamespacePrefix) {
			return true
		}
	}
	return false
}

// list returns all Tenants. They belong to the cache.
func (r *reconciler) list(ctx context.Context) ([]*v1beta1.Tenant, error) {
	var tenants v1beta1.TenantList
	if err := r.reader.List(ctx, &tenants, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	all := make([]*v1beta1.Tenant, len(tenants.Items))
	for i := range tenants.Items {
		all[i] = &tenants.Items[i]
	}
	return all, nil
}
