package live

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/workload"
)

// Use is one image of a namespace, with the workloads and pods that have it.
type Use struct {
	Namespace verify.Namespace
	Image     string // as written
	// Owners are workloads, and pods that nothing owns, as "Kind/name", sorted, at most
	// [MaxOwners].
	Owners []string
	Pods   int // that run, or are about to
	// Named says that an exception in the previewed change names the image. Then the image may have
	// neither workloads nor pods.
	Named bool
	// Untagged says that nothing runs the image, and that an exception names it without a tag and a digest. Only
	// rules and exceptions decide, without a lookup.
	Untagged bool
}

// Running returns the images of running pods and of workloads in the namespaces of scope,
// once per namespace, sorted, and the permissions without which some may be missing.
func (p *Person) Running(ctx context.Context, scope Scope) ([]Use, []Right, error) {
	namespaces := scope.Namespaces
	if scope.All {
		namespaces = []verify.Namespace{verify.Cluster}
	}
	u := &uses{of: map[useKey]*Use{}}
	r := &reading{client: p.client}
	for _, namespace := range namespaces {
		for _, kind := range workloadKinds() {
			err := r.list(ctx, kind.list, string(namespace), func(item runtime.Object) error { return u.add(item, "") })
			if apierrors.IsForbidden(err) {
				r.lacks(Right{Verb: "list", Resource: kind.resource, Namespace: string(namespace)})
			} else if err != nil {
				return nil, nil, fmt.Errorf("list %s: %w", kind.resource, err)
			}
		}
	}
	return u.sorted(), r.rights, nil
}

// workloadKind is a kind whose objects have images.
type workloadKind struct {
	resource schema.GroupResource
	list     client.ObjectList
}

func workloadKinds() []workloadKind {
	core, apps, batch := corev1.Resource, appsv1.SchemeGroupVersion.WithResource, batchv1.SchemeGroupVersion.WithResource
	return []workloadKind{
		{core("pods"), &corev1.PodList{}},
		{core("replicationcontrollers"), &corev1.ReplicationControllerList{}},
		{apps("deployments").GroupResource(), &appsv1.DeploymentList{}},
		{apps("statefulsets").GroupResource(), &appsv1.StatefulSetList{}},
		{apps("daemonsets").GroupResource(), &appsv1.DaemonSetList{}},
		{apps("replicasets").GroupResource(), &appsv1.ReplicaSetList{}},
		{batch("jobs").GroupResource(), &batchv1.JobList{}},
		{batch("cronjobs").GroupResource(), &batchv1.CronJobList{}},
	}
}

type useKey struct {
	namespace verify.Namespace
	image     string
}

// uses collects images.
type uses struct{ of map[useKey]*Use }

// add adds the images of an object of a kind with pods. An object without a namespace is in
// the given one.
func (u *uses) add(object runtime.Object, namespace string) error {
	of, ok := workload.Of(object)
	if !ok || !runs(object) {
		return nil
	}
	pod, isPod := object.(*corev1.Pod)
	owned := metav1.GetControllerOf(of.Meta) != nil
	if owned && !isPod {
		return nil // its owner has the images, or its pods
	}
	for named := range workload.Images(of.Pod) {
		key := useKey{verify.Namespace(cmp.Or(of.Meta.Namespace, namespace)), named.Image}
		use := u.of[key]
		if use == nil {
			if len(u.of) >= maxUses {
				return fmt.Errorf("there are more than %d images; cover one namespace at a time", maxUses)
			}
			use = &Use{Namespace: key.namespace, Image: key.image}
			u.of[key] = use
		}
		if isPod && pod.Status.Phase == corev1.PodRunning {
			use.Pods++
		}
		owner := of.Kind + "/" + cmp.Or(of.Meta.Name, of.Meta.GenerateName+"…")
		if !owned && len(use.Owners) < MaxOwners && !slices.Contains(use.Owners, owner) {
			use.Owners = append(use.Owners, owner)
		}
	}
	return nil
}

// runs reports whether an object has, or will have, running containers.
func runs(object runtime.Object) bool {
	switch o := object.(type) {
	case *corev1.Pod:
		return o.Status.Phase != corev1.PodSucceeded && o.Status.Phase != corev1.PodFailed
	case *batchv1.Job:
		return o.Status.CompletionTime == nil
	}
	return true
}

func (u *uses) sorted() []Use {
	var all []Use
	for _, use := range u.of {
		slices.Sort(use.Owners)
		all = append(all, *use)
	}
	slices.SortFunc(all, func(a, b Use) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Image, b.Image))
	})
	return all
}

// Governed returns the other namespaces to which a namespace's rules apply, because it is the home
// namespace of a Tenant in one of the states. It also returns permissions without which there may be
// more.
func (p *Person) Governed(ctx context.Context, home verify.Namespace, states ...State) ([]verify.Namespace, []Right, error) {
	r := &reading{client: p.client}
	var found []verify.Namespace
	for _, state := range states {
		tenants := tenantsOf(state.Objects)
		tenant := tenants.Holder(string(home))
		if tenant == nil || tenant.Spec.HomeNamespace != string(home) {
			continue
		}
		names := tenant.Spec.Namespaces
		if tenant.Spec.NamespacePrefix != "" {
			var all []corev1.Namespace
			err := r.list(ctx, &corev1.NamespaceList{}, "", func(item runtime.Object) error {
				all = append(all, *item.(*corev1.Namespace)) //nolint:forcetypeassert // of a list of them
				return nil
			})
			switch {
			case apierrors.IsForbidden(err):
				r.lacks(Right{Verb: "list", Resource: corev1.Resource("namespaces")})
			case err != nil:
				return nil, nil, fmt.Errorf("list namespaces: %w", err)
			}
			if all != nil {
				tenants = tenants.Labelled(resource.LabelsOf(all))
			}
			names = slices.Concat(names, tenants.ActiveNamespaces(tenant, all))
		}
		for _, name := range names {
			if name != string(home) && tenants.Holder(name) == tenant {
				found = append(found, verify.Namespace(name))
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found), r.rights, nil
}
