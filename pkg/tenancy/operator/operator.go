// Package operator provisions Tenants at the API server, removes what it provisioned, and finds
// differences. The commands use it with the permissions of a cluster admin, `landwaiter-server
// operate` with those of its own account. It never takes over a namespace without the admin's
// consent, touches namespaces without a Tenant, or, as the operator, works without the guardrail
// that limits its permissions.
package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// FieldManager applies Tenants and their objects, for commands and operator alike, so that
// either can continue the other's work.
const FieldManager = "landwaiter-tenant"

// Client limits. Onboarding is a burst of small writes; the API server's own priority and
// fairness bounds it.
const (
	clientQPS   = 200
	clientBurst = 400
)

// Options of an [Engine]. The zero value writes, and adopts nothing.
type Options struct {
	// Onboard is the input of objects other than their Tenant; its Namespaces are filled in.
	Onboard onboard.Options
	// DryRun asks the API server without changing anything.
	DryRun bool
	// Adopt permits labels on existing namespaces, if the Tenant asks for it. Only an admin's
	// own command sets it.
	Adopt bool
	// ClusterBindings permits creating ClusterRoles and ClusterRoleBindings. Only an admin's own command sets
	// it.
	ClusterBindings bool
	// Reserved are namespaces that no Tenant may have.
	Reserved []string
	// Reader reads Tenants and namespaces; nil is the API server itself.
	Reader client.Reader
}

// Engine reads and changes the objects of Tenants.
type Engine struct {
	// client writes as [FieldManager], and in a dry run changes nothing.
	client  client.Client
	reader  client.Reader
	options Options
	// assumed are Tenants that a dry run did not write.
	assumed []*v1beta1.Tenant
	// checks says that kinds that the caller cannot list are left out, and reported. It is only for dry runs.
	checks bool
}

// NewClient returns a client for an Engine.
func NewClient(config *rest.Config) (client.Client, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = clientQPS, clientBurst
	config.WarningHandler = rest.NoWarnings{}
	made, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the Kubernetes API: %w", err)
	}
	return made, nil
}

// NewScheme returns the types that an Engine works with.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("register types: %w", err)
	}
	return scheme, nil
}

// New returns an Engine that uses the permissions of c.
func New(c client.Client, options Options) *Engine {
	e := &Engine{client: client.WithFieldOwner(c, FieldManager), reader: options.Reader, options: options}
	if options.DryRun {
		e.client = client.NewDryRunClient(e.client)
	}
	if e.reader == nil {
		e.reader = c
	}
	return e
}

// Result is the result for an object.
type Result string

// The results. In a dry run they are predictions.
const (
	Created   Result = "created"
	Changed   Result = "changed"
	Unchanged Result = "unchanged"
	Removed   Result = "removed"
	Released  Result = "released" // it stays, and is no longer the Tenant's
)

// Outcome is the result for one object.
type Outcome struct {
	Object policy.ObjectRef `json:"object"`
	Result Result           `json:"result"`
}

// Problem is a part of a Tenant that was not done, with the fix.
type Problem struct {
	Reason  policy.Reason    `json:"reason"`
	Object  policy.ObjectRef `json:"object"`
	Message string           `json:"message"`

	lacks string // the permission that the caller lacks, "" for every other problem
	would Result // the predicted result for the object, if known
}

// Report is the outcome of one call.
type Report struct {
	// Namespaces are the provisioned ones, the home namespace first.
	Namespaces []string
	Outcomes   []Outcome
	Problems   []Problem
	// Uncounted are ResourceQuotas that Kubernetes' quota controller had not counted when they
	// were applied.
	Uncounted []policy.ObjectRef

	// refused says that a guardrail refused something that it may permit in a moment.
	refused bool
	// unrestricted are namespaces, "" for all, with the missing restriction.
	unrestricted map[string]policy.ObjectRef
}

// Count returns how many objects have a result.
func (r *Report) Count(result Result) int {
	n := 0
	for _, outcome := range r.Outcomes {
		if outcome.Result == result {
			n++
		}
	}
	return n
}

func (r *Report) add(object client.Object, result Result) {
	r.Outcomes = append(r.Outcomes, Outcome{Object: refOf(object), Result: result})
}

func (r *Report) problem(reason policy.Reason, object policy.ObjectRef, format string, args ...any) {
	r.Problems = append(r.Problems, Problem{Reason: reason, Object: object, Message: fmt.Sprintf(format, args...)})
}

func refOf(object client.Object) policy.ObjectRef {
	return policy.ObjectRef{Kind: object.GetObjectKind().GroupVersionKind().Kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// world is the input of membership.
type world struct {
	all        []*v1beta1.Tenant
	tenants    *resource.Tenants
	namespaces []corev1.Namespace
}

// Assume makes a dry run continue as if a Tenant had been written.
func (e *Engine) Assume(tenant *v1beta1.Tenant) {
	tenant = tenant.DeepCopy()
	if tenant.CreationTimestamp.IsZero() {
		tenant.CreationTimestamp = metav1.Now()
	}
	e.assumed = append(e.assumed, tenant)
}

// look reads Tenants and namespaces. The given Tenant replaces the one with its name, or is
// the youngest.
func (e *Engine) look(ctx context.Context, tenant *v1beta1.Tenant) (*world, *v1beta1.Tenant, error) {
	var tenants v1beta1.TenantList
	if err := e.reader.List(ctx, &tenants); err != nil {
		return nil, nil, explained("list Tenants", err)
	}
	var namespaces corev1.NamespaceList
	if err := e.reader.List(ctx, &namespaces); err != nil {
		return nil, nil, explained("list namespaces", err)
	}
	all := slices.DeleteFunc(slices.Clone(e.assumed), func(t *v1beta1.Tenant) bool { return tenant != nil && t.Name == tenant.Name })
	created := metav1.NewTime(time.Now())
	for i := range tenants.Items {
		if slices.ContainsFunc(all, func(t *v1beta1.Tenant) bool { return t.Name == tenants.Items[i].Name }) {
			continue
		}
		if tenant != nil && tenants.Items[i].Name == tenant.Name {
			created = tenants.Items[i].CreationTimestamp
			continue
		}
		all = append(all, &tenants.Items[i])
	}
	if tenant != nil {
		tenant = tenant.DeepCopy()
		tenant.CreationTimestamp = created
		all = append(all, tenant)
	}
	return &world{all: all, tenants: resource.NewTenants(all).Labelled(resource.LabelsOf(namespaces.Items)), namespaces: namespaces.Items},
		tenant, nil
}

// explained wraps an error about Tenants, which is unclear if their CRD is missing.
func explained(doing string, err error) error {
	var discovery *apiutil.ErrResourceDiscoveryFailed
	if meta.IsNoMatchError(err) || errors.As(err, &discovery) {
		return fmt.Errorf("%s: the cluster does not know the kind Tenant: install Landwaiter's CRDs (charts/landwaiter), or check --context: %w",
			doing, err)
	}
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%s: your account lacks the permissions: ask a cluster admin to bind ClusterRoles landwaiter-tenant-reader and "+
			"landwaiter-reader to it, which only read, or landwaiter-cluster-admin instead of the first to change Tenants: %w", doing, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// namespace returns a listed namespace, nil if there is none.
func (w *world) namespace(name string) *corev1.Namespace {
	i := slices.IndexFunc(w.namespaces, func(n corev1.Namespace) bool { return n.Name == name })
	if i < 0 {
		return nil
	}
	return &w.namespaces[i]
}
