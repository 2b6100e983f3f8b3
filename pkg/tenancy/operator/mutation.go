package operator

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

const (
	// labelManagedBy marks the mutation objects that the operator manages.
	labelManagedBy = "app.kubernetes.io/managed-by"
	// planPause collects changes, because one plan covers all of them.
	planPause = time.Second
	// replan is how often the plan is computed without a change: a new CA of Landwaiter's
	// certificate is announced ten minutes before it is used.
	replan = time.Minute
)

// Mutation configures the Providers and Assigns that pin tags.
type Mutation struct {
	// Pins returns whether the policies among some objects pin the tags of a namespace, "" for those
	// that do not exist yet. If it is nil, the operator manages no such objects, and the chart does.
	Pins func(resource.Objects) func(namespace string) bool
	// Objects is their common part; its CABundle is copied from the Provider for verification.
	Objects onboard.Mutation
	// Exempt are namespaces whose tags are never pinned.
	Exempt []string
	// Limit is the number of sets with their own Stores: each costs every admission in the
	// cluster.
	Limit int
}

// pinner manages the objects that pin tags. Its requests are all equal.
type pinner struct {
	Mutation
	engine *Engine
	reader client.Reader
	log    *logrus.Logger
	// changed wakes the reconciler of Tenants whose condition may differ.
	changed chan event.TypedGenericEvent[client.Object]

	mu      sync.Mutex
	refused []string
	applied map[policy.ObjectRef]string // the last applied content
	fresh   time.Time                   // when everything was applied last
}

// refuses reports whether the Stores of a Tenant exceed the limit.
func (p *pinner) refuses(tenant string) bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(p.refused, tenant)
}

// Reconcile implements reconcile.Reconciler.
func (p *pinner) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	namespaces, byDefault, err := p.pinnings(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	objects := p.Objects
	if objects.CABundle, err = p.authority(ctx); err != nil {
		return reconcile.Result{}, err
	}
	objects.Labels = map[string]string{labelManagedBy: statusManager}
	plan := objects.Plan(namespaces, byDefault, p.Exempt, p.Limit)
	if err := p.put(ctx, plan.Objects); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: replan}, p.announce(ctx, plan.Refused)
}

// pinnings returns the settings of each namespace, and of those that do not exist yet.
func (p *pinner) pinnings(ctx context.Context) ([]onboard.Pinning, bool, error) {
	var tenants v1beta1.TenantList
	var policies v1beta1.VerificationPolicyList
	var everywhere v1beta1.ClusterVerificationPolicyList
	var stores v1beta1.StoreList
	var namespaces corev1.NamespaceList
	for _, list := range []client.ObjectList{&tenants, &policies, &everywhere, &stores, &namespaces} {
		if err := p.reader.List(ctx, list); err != nil {
			return nil, false, fmt.Errorf("list %T: %w", list, err)
		}
	}
	var all []*v1beta1.Tenant
	objects := resource.Objects{Namespaces: namespaces.Items}
	for i := range tenants.Items {
		if tenants.Items[i].DeletionTimestamp == nil {
			all = append(all, &tenants.Items[i])
			objects.Resources = append(objects.Resources, &tenants.Items[i])
		}
	}
	objects.Resources = slices.Concat(objects.Resources, objectsIn(&policies), objectsIn(&everywhere))
	// Settings for tags in policies do not depend on the Verifiers that they name.
	pins := p.Pins(objects)
	withStores := map[string]bool{}
	for i := range stores.Items {
		withStores[stores.Items[i].Namespace] = true
	}
	holders := resource.NewTenants(all).Labelled(resource.LabelsOf(namespaces.Items))
	var found []onboard.Pinning
	for i := range namespaces.Items {
		if name := namespaces.Items[i].Name; namespaces.Items[i].DeletionTimestamp == nil {
			found = append(found, onboard.Pinning{Namespace: name, Tenant: holders.Holder(name), Stores: withStores[name], Pin: pins(name)})
		}
	}
	return found, pins(""), nil
}

// authority returns the CA of Landwaiter's certificate, which the leader writes to the
// Provider for verification.
func (p *pinner) authority(ctx context.Context) ([]byte, error) {
	provider := &unstructured.Unstructured{}
	provider.SetGroupVersionKind(providerKind())
	name := p.engine.options.Onboard.Landwaiter.Name + "-verify"
	if err := p.engine.client.Get(ctx, client.ObjectKey{Name: name}, provider); err != nil {
		return nil, fmt.Errorf("read the CA of Landwaiter's certificate: %w", err)
	}
	text, _, _ := unstructured.NestedString(provider.Object, "spec", "caBundle")
	bundle, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(bundle) == 0 {
		return nil, fmt.Errorf("read the CA of Landwaiter's certificate: Provider %s has no caBundle", name)
	}
	return bundle, nil
}

// put applies the objects of a plan, then removes those of older plans.
func (p *pinner) put(ctx context.Context, objects []*unstructured.Unstructured) error {
	last := p.applied
	if time.Since(p.fresh) > resync {
		last, p.fresh = nil, time.Now()
	}
	applied := map[policy.ObjectRef]string{}
	p.applied = nil // unless everything succeeds
	for _, object := range objects {
		content, err := json.Marshal(object)
		if err != nil {
			return fmt.Errorf("apply %s: %w", refOf(object), err)
		}
		if ref := refOf(object); last[ref] != string(content) {
			if err := p.engine.apply(ctx, object.DeepCopy(), true); err != nil {
				return fmt.Errorf("apply %s: %w", ref, err)
			}
			p.log.WithField("object", ref.String()).Info("a mutation object was applied")
		}
		applied[refOf(object)] = string(content)
	}
	for _, kind := range kinds() {
		if !kind.mutation {
			continue
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := p.engine.client.List(ctx, list, client.MatchingLabels{labelManagedBy: statusManager}); err != nil {
			return fmt.Errorf("list each %s: %w", kind.Kind, err)
		}
		for _, object := range list.Items {
			object.SetGroupVersionKind(kind.GroupVersionKind)
			if _, wanted := applied[refOf(&object)]; wanted {
				continue
			}
			report := &Report{}
			if err := p.engine.drop(ctx, &item{PartialObjectMetadata: object, kind: kind}, false, report); err != nil {
				return err
			}
			for _, problem := range report.Problems {
				return fmt.Errorf("remove a mutation object: %s", problem.Message)
			}
			p.log.WithField("object", refOf(&object).String()).Info("a mutation object was removed")
		}
	}
	p.applied = applied
	return nil
}

// announce triggers the Tenants whose Stores newly exceed the limit, or no longer do.
func (p *pinner) announce(ctx context.Context, refused []string) error {
	p.mu.Lock()
	last := p.refused
	p.refused = refused
	p.mu.Unlock()
	for _, name := range append(slices.Clone(last), refused...) {
		if slices.Contains(last, name) == slices.Contains(refused, name) {
			continue
		}
		select {
		case p.changed <- event.TypedGenericEvent[client.Object]{Object: &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}}}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
