package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Scope selects namespaces.
type Scope struct {
	// Namespaces are the selected ones, unless All is set.
	Namespaces []verify.Namespace
	All        bool
	// BreakGlass is the server's limit on break-glass, as far as the person knows it. A status needs it.
	BreakGlass Limit
	// Action returns Gatekeeper's action in a namespace with its labels on a pod whose image is not
	// allowed, "" if unknown, whether the namespace is exempt, and the entries of exemptImages that it
	// never asks about. A status needs it.
	Action func(name string, labels map[string]string) (action string, exempt bool, images []string)
	// LeftOut reports whether such entries match an image. A status needs it.
	LeftOut func(entries []string, image string) bool
	// Stopped is when Landwaiter last renewed its Lease, if that is too long ago. It is zero otherwise, or if the person
	// may not read it. A status needs it.
	Stopped time.Time
	// Unwatched says why the person may not read that, "" if they may.
	Unwatched string
	// ClusterResourceNamespace is the namespace of objects that cluster resources reference.
	ClusterResourceNamespace string
}

// State is the part of a cluster that a person may read.
type State struct {
	Objects resource.Objects
	// Namespaces are the namespaces of the scope, sorted. Missing are those that do not exist.
	Namespaces, Missing []verify.Namespace
	// Rights are the distinct missing permissions.
	Rights []Right

	// unsure says why it is unknown whether the server accepts break-glass of a namespace.
	unsure map[verify.Namespace]string
}

// Read returns the resources that decide in the namespaces of scope, with their references.
// It fails if the API server does not answer.
func (p *Person) Read(ctx context.Context, scope Scope) (State, error) {
	before, _, err := p.Rehearse(ctx, scope, Change{})
	return before, err
}

// Rehearse returns the current state and the state after change.
func (p *Person) Rehearse(ctx context.Context, scope Scope, change Change) (before, after State, err error) {
	r := &reading{client: p.client, schemas: p.schemas,
		objects: resource.Objects{Person: true, ClusterResourceNamespace: scope.ClusterResourceNamespace}}
	if err := r.kinds(ctx, verify.Cluster, false); err != nil {
		return before, after, err
	}
	if scope.All {
		err = r.everything(ctx)
	} else {
		err = r.namespaces(ctx, scope.Namespaces, change)
	}
	if err != nil {
		return before, after, err
	}
	before = State{Objects: r.objects, Namespaces: r.scope, Missing: r.missing}
	after = State{Objects: change.applied(r.objects), Namespaces: r.scope, Missing: r.missing}
	if err := r.fill(ctx, &before.Objects, before.Objects, Change{}); err != nil {
		return before, after, err
	}
	if err := r.fill(ctx, &after.Objects, before.Objects, change); err != nil {
		return before, after, err
	}
	before.Rights, after.Rights = r.rights, r.rights
	return before, after, nil
}

// reading collects the objects that the person may read.
type reading struct {
	client  client.Client
	schemas resource.Schemas
	objects resource.Objects
	scope   []verify.Namespace
	missing []verify.Namespace
	rights  []Right
	// material has the Secrets and the like that were read, nil for those that do not exist, and
	// unread says why others could not be read.
	material map[policy.ObjectRef]runtime.Object
	unread   map[policy.ObjectRef]string
}

// lacks records a missing permission, and returns it as a clause.
func (r *reading) lacks(right Right) string {
	if !slices.Contains(r.rights, right) {
		r.rights = append(r.rights, right)
	}
	return right.String()
}

func (r *reading) cannotRead(source policy.ObjectRef, right Right) {
	r.objects.Unreadable = append(r.objects.Unreadable, resource.Unreadable{Source: source, Why: r.lacks(right)})
}

// listing returns the permission to list a kind at a level.
func listing(kind v1beta1.Kind, level verify.Namespace) Right {
	return Right{Verb: "list", Resource: runtimeschema.GroupResource{Group: v1beta1.GroupVersion.Group, Resource: kind.Plural},
		Namespace: string(level)}
}

// kinds reads the resources of a level: the cluster's, a namespace's, or with all the
// resources of every namespace. It reads several kinds concurrently, and returns them in
// their order.
func (r *reading) kinds(ctx context.Context, level verify.Namespace, all bool) error {
	wanted := slices.DeleteFunc(v1beta1.Kinds(), func(kind v1beta1.Kind) bool { return kind.Namespaced != (all || level != verify.Cluster) })
	items, errs := make([][]runtime.Object, len(wanted)), make([]error, len(wanted))
	var group errgroup.Group
	group.SetLimit(maxLists)
	for i, kind := range wanted {
		group.Go(func() error {
			errs[i] = caught(func() (err error) {
				items[i], err = r.kind(ctx, kind, string(level))
				return err
			})
			return nil
		})
	}
	_ = group.Wait() // no task returns an error
	for i, kind := range wanted {
		err, right := errs[i], listing(kind, level)
		switch {
		case meta.IsNoMatchError(err) && kind.Name == v1beta1.KindClusterVerifier:
			return errors.New("the cluster has no CRDs of Landwaiter: install it, or use --config-dir for files")
		case meta.IsNoMatchError(err): // of a later version than the cluster's: there are none
		case apierrors.IsForbidden(err) && all:
			for _, namespace := range r.scope {
				r.cannotRead(policy.ObjectRef{Kind: kind.Name, Namespace: string(namespace)}, right)
			}
		case apierrors.IsForbidden(err):
			r.cannotRead(policy.ObjectRef{Kind: kind.Name, Namespace: string(level)}, right)
		case err != nil:
			return fmt.Errorf("list %s: %w", kind.Plural, err)
		}
		for _, item := range items[i] {
			if err := r.objects.Add(item); err != nil {
				return fmt.Errorf("list %s: %w", kind.Plural, err)
			}
		}
	}
	return nil
}

// caught calls f and turns a panic into an error: in a separate goroutine it would end the process,
// and with it the page.
func caught(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("internal error: %v", p)
		}
	}()
	return f()
}

// kind returns the resources of one kind, reduced as in a replica.
func (r *reading) kind(ctx context.Context, kind v1beta1.Kind, namespace string) (items []runtime.Object, err error) {
	list, ok := kind.NewList().(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%T is not a list", kind.NewList())
	}
	err = r.list(ctx, list, namespace, func(item runtime.Object) error {
		if ours, ok := item.(v1beta1.Object); ok {
			if err := resource.Keep(ours); err != nil {
				return err
			}
			item = r.checked(ctx, ours)
		}
		items = append(items, item)
		return nil
	})
	return items, err
}

// checked returns a resource that a cluster stored, or its replacement if the schema refuses
// it: see [resource.Refuse]. A resource without its spec is already broken.
func (r *reading) checked(ctx context.Context, object v1beta1.Object) v1beta1.Object {
	if resource.Missing(object) != nil {
		return object
	}
	if why := r.schemas.Refuses(ctx, object); why != nil {
		return resource.Refuse(object, why)
	}
	return object
}

// list calls do for each object of a kind, page by page.
func (r *reading) list(ctx context.Context, list client.ObjectList, namespace string, do func(runtime.Object) error) error {
	n := 0
	for next := ""; ; {
		if err := r.client.List(ctx, list, client.InNamespace(namespace), client.Limit(pageSize), client.Continue(next)); err != nil {
			return err
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			if n++; n > maxObjects {
				return fmt.Errorf("there are more than %d; cover one namespace at a time", maxObjects)
			}
			return do(item.DeepCopyObject())
		})
		if next = list.GetContinue(); err != nil || next == "" {
			return err
		}
	}
}

// everything reads all namespaces.
func (r *reading) everything(ctx context.Context) error {
	err := r.list(ctx, &corev1.NamespaceList{}, "", func(item runtime.Object) error { return r.objects.Add(item) })
	if apierrors.IsForbidden(err) {
		return MissingError{Right{Verb: "list", Resource: corev1.Resource("namespaces")}}
	}
	if err != nil {
		return fmt.Errorf("list namespaces: %w", err)
	}
	for i := range r.objects.Namespaces {
		r.scope = append(r.scope, verify.Namespace(r.objects.Namespaces[i].Name))
	}
	slices.Sort(r.scope)
	return r.kinds(ctx, verify.Cluster, true)
}

// namespace reads one namespace with its resources.
func (r *reading) namespace(ctx context.Context, name verify.Namespace) error {
	var found corev1.Namespace
	err := r.client.Get(ctx, client.ObjectKey{Name: string(name)}, &found)
	switch {
	case apierrors.IsForbidden(err):
		r.cannotRead(policy.ObjectRef{Kind: "Namespace", Name: string(name)},
			Right{Verb: "get", Resource: corev1.Resource("namespaces"), Name: string(name)})
	case apierrors.IsNotFound(err):
		if slices.Contains(r.scope, name) {
			r.missing = append(r.missing, name)
		}
		return nil // the compiler reports a missing home namespace
	case err != nil:
		return fmt.Errorf("get namespace %s: %w", name, err)
	default:
		r.objects.Namespaces = append(r.objects.Namespaces, found)
	}
	return r.kinds(ctx, name, false)
}

// fill adds the references of resources to o, in two rounds: pull secrets of ServiceAccounts are
// only known after these. It does not read objects that change deletes. A Secret that change
// would send elsewhere counts as unreadable: a change is previewed before anybody trusts it.
func (r *reading) fill(ctx context.Context, o *resource.Objects, before resource.Objects, change Change) error {
	touched := presentIn(change.Objects)
	for _, source := range change.Delete {
		touched[source] = true
	}
	for range 2 {
		have := presentIn(*o)
		for _, source := range change.Delete {
			have[source] = true
		}
		sent := map[policy.ObjectRef]policy.ObjectRef{}
		if !change.SendSecrets {
			sent = newlySent(before, *o, touched)
		}
		for _, sources := range resolve.References(*o) {
			for i, source := range sources {
				if have[source] {
					continue
				}
				have[source] = true
				if by, newly := sent[source]; newly {
					if err := r.fetch(ctx, source); err != nil { // an object that does not exist is sent to nobody
						return err
					}
					if r.material[source] == nil && r.unread[source] == "" {
						continue
					}
					o.Unreadable = append(o.Unreadable, resource.Unreadable{Source: source, Why: unsent(source, by)})
					continue
				}
				if i >= maxReferences {
					o.Broken = append(o.Broken, resource.Broken{Source: source, Reason: policy.ReasonUnreadable,
						Err: fmt.Errorf("the resources of the namespace name more than %d Secrets, ConfigMaps and ServiceAccounts", maxReferences)})
					continue
				}
				if err := r.fetch(ctx, source); err != nil {
					return err
				}
				if why := r.unread[source]; why != "" {
					o.Unreadable = append(o.Unreadable, resource.Unreadable{Source: source, Why: why})
				} else if object := r.material[source]; object != nil {
					if err := o.Add(object); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// unsent says why a Secret is not used for a change.
func unsent(secret, by policy.ObjectRef) string {
	return fmt.Sprintf("the change would let %s send %s to servers that do not receive it today; if you trust the change, use landwaiter "+
		"preview --send-secrets", by, secret)
}

// presentIn returns the Secrets and the like that are already present.
func presentIn(o resource.Objects) map[policy.ObjectRef]bool {
	have := map[policy.ObjectRef]bool{}
	for i := range o.Secrets {
		have[named("Secret", &o.Secrets[i])] = true
	}
	for i := range o.ConfigMaps {
		have[named("ConfigMap", &o.ConfigMaps[i])] = true
	}
	for i := range o.ServiceAccounts {
		have[named("ServiceAccount", &o.ServiceAccounts[i])] = true
	}
	for _, b := range o.Broken {
		have[b.Source] = true
	}
	for _, u := range o.Unreadable {
		have[u.Source] = true
	}
	return have
}

// fetch reads one Secret, ConfigMap or ServiceAccount by its name, once.
func (r *reading) fetch(ctx context.Context, source policy.ObjectRef) error {
	if r.material == nil {
		r.material, r.unread = map[policy.ObjectRef]runtime.Object{}, map[policy.ObjectRef]string{}
	}
	if _, done := r.material[source]; done {
		return nil
	}
	r.material[source] = nil
	var object client.Object
	plural := ""
	switch source.Kind {
	case "Secret":
		object, plural = &corev1.Secret{}, "secrets"
	case "ConfigMap":
		object, plural = &corev1.ConfigMap{}, "configmaps"
	case "ServiceAccount":
		object, plural = &corev1.ServiceAccount{}, "serviceaccounts"
	default:
		return fmt.Errorf("%s is not a kind that resources name", source.Kind)
	}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: source.Namespace, Name: source.Name}, object)
	switch {
	case apierrors.IsForbidden(err):
		r.unread[source] = r.lacks(Right{Verb: "get", Resource: corev1.Resource(plural), Namespace: source.Namespace, Name: source.Name})
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("get %s: %w", source, err)
	default:
		r.material[source] = object
	}
	return nil
}
