package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

const (
	// statusManager applies the condition Provisioned and the finalizer, separately from the
	// Tenants' authors and from the conditions of serving replicas.
	statusManager = "landwaiter-operator"
	// shownProblems bounds the message of a condition.
	shownProblems = 5
)

// reconciler provisions Tenants. Its requests are names of Tenants.
type reconciler struct {
	engine *Engine
	client client.Client
	reader client.Reader
	log    *logrus.Logger
	rounds rounds
	// guardrails is nil if the operator runs without them.
	guardrails *proof
	// pins is nil if the operator manages no mutation objects.
	pins *pinner
}

var errRefused = errors.New("a guardrail refused something of the Tenant, which the API server may not know yet as it is")

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	tenant := &v1beta1.Tenant{}
	if err := r.reader.Get(ctx, request.NamespacedName, tenant); err != nil {
		if apierrors.IsNotFound(err) {
			r.rounds.forget(request.Name)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err) // its objects were removed before it
	}
	began := time.Now()
	only, wait := r.rounds.take(tenant.Name, began)
	if wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil // others are next
	}
	// For a Tenant that is being deleted, the first guardrail may refuse the request, as it refuses
	// everything but its deletion.
	if err := r.guardrails.of(ctx, tenant); err != nil && (tenant.DeletionTimestamp == nil || !errors.Is(err, errUnlisted)) {
		r.rounds.failed(tenant.Name, time.Now())
		return reconcile.Result{}, r.failed(ctx, tenant, err)
	}
	if tenant.DeletionTimestamp != nil {
		result, err := r.delete(ctx, tenant)
		r.rounds.done(tenant.Name, false, 0, began, time.Now())
		return result, err
	}
	if !slices.Contains(tenant.Finalizers, Finalizer) {
		if err := r.finalizer(ctx, tenant, Finalizer); err != nil {
			return reconcile.Result{}, err
		}
	}
	report, err := r.engine.Apply(ctx, tenant, only...)
	if err != nil {
		r.rounds.failed(tenant.Name, time.Now())
		return reconcile.Result{}, r.failed(ctx, tenant, err)
	}
	if len(only) > 0 {
		r.logReport(tenant, report)
		// The condition is about all namespaces, so the next full round reports a problem.
		return reconcile.Result{RequeueAfter: r.rounds.donePartly(tenant.Name, len(report.Problems) == 0, began, time.Now())}, nil
	}
	if r.pins.refuses(tenant.Name) {
		report.problem(policy.ReasonLimitExceeded, policy.ObjectRef{Kind: v1beta1.KindTenant, Name: tenant.Name},
			"not all Stores of Tenant %s pin tags, because the limit is %d sets of mutation objects, each of which costs every admission in the "+
				"cluster: the cluster's Stores pin the others; raise --mutation limit=N, or use fewer Stores", tenant.Name, r.pins.Limit)
	}
	r.logReport(tenant, report)
	condition := metav1.Condition{Status: metav1.ConditionTrue, Reason: string(policy.ReasonProvisioned),
		Message: fmt.Sprintf("%d objects in %d namespaces are as the Tenant says",
			len(report.Outcomes)-report.Count(Removed)-report.Count(Released), len(report.Namespaces))}
	again, sound := resync, len(report.Problems)+len(report.Uncounted) == 0
	if len(report.Uncounted) > 0 {
		again = maxRetryPause // its count is a watched change, if it comes
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, string(policy.ReasonUnfinished),
			SayUncounted(report.Uncounted)
	}
	if len(report.Problems) > 0 {
		again = maxRetryPause // no watch tells when an admin has fixed it
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, string(report.Problems[0].Reason),
			messages(report.Problems)
	}
	err = r.condition(ctx, tenant, condition)
	if err == nil && report.refused {
		err = errRefused // often a matter of moments: retried soon, then at growing intervals
	}
	if err != nil {
		r.rounds.failed(tenant.Name, time.Now())
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: r.rounds.done(tenant.Name, sound, again, began, time.Now())}, nil
}

// delete removes everything provisioned for a Tenant, then its finalizer.
func (r *reconciler) delete(ctx context.Context, tenant *v1beta1.Tenant) (reconcile.Result, error) {
	if !slices.Contains(tenant.Finalizers, Finalizer) {
		return reconcile.Result{}, nil // others keep it
	}
	deletion, err := r.engine.Delete(ctx, tenant)
	if err != nil {
		return reconcile.Result{}, r.failed(ctx, tenant, err)
	}
	r.logReport(tenant, &deletion.Report)
	if len(deletion.Problems) > 0 {
		err := r.condition(ctx, tenant,
			metav1.Condition{Status: metav1.ConditionFalse, Reason: string(deletion.Problems[0].Reason), Message: messages(deletion.Problems)})
		if err == nil && deletion.refused {
			err = errRefused
		}
		return reconcile.Result{RequeueAfter: maxRetryPause}, err
	}
	if len(deletion.Pending) > 0 {
		err := r.condition(ctx, tenant, metav1.Condition{Status: metav1.ConditionFalse, Reason: string(policy.ReasonUnfinished),
			Message: fmt.Sprintf("%s waits for its finalizers (is Flux running?); the account keeps its permissions until then",
				deletion.Pending[0])})
		return reconcile.Result{RequeueAfter: pendingPause}, err
	}
	if err := r.finalizer(ctx, tenant); err != nil {
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), unlisted) {
			err = fmt.Errorf("it waits until Landwaiter has listed for the operator guardrails that Tenant %s ends (do its pods run, with "+
				"--cluster-role operated-tenants=NAME?): %w", tenant.Name, err)
		}
		return reconcile.Result{}, r.failed(ctx, tenant, err)
	}
	return reconcile.Result{}, nil
}

// failed writes why the state is unknown, and returns err for a retry.
func (r *reconciler) failed(ctx context.Context, tenant *v1beta1.Tenant, err error) error {
	condition := metav1.Condition{Status: metav1.ConditionFalse, Reason: string(policy.ReasonUnfinished), Message: err.Error()}
	if wrote := r.condition(ctx, tenant, condition); wrote != nil {
		r.log.WithField("tenant", tenant.Name).WithError(wrote).Warn("cannot write a status, will try again")
	}
	return err
}

func (r *reconciler) logReport(tenant *v1beta1.Tenant, report *Report) {
	for _, outcome := range report.Outcomes {
		if outcome.Result != Unchanged {
			r.logOf(tenant, outcome.Object).WithFields(logrus.Fields{"object": outcome.Object.String(), "result": outcome.Result}).
				Info("an object of a Tenant was written")
		}
	}
	for _, problem := range report.Problems {
		r.logOf(tenant, problem.Object).WithFields(logrus.Fields{"reason": problem.Reason, "problem": problem.Message}).
			Warn("something of a Tenant was not done")
	}
}

// logOf returns the log for lines about an object of a Tenant: those about a namespace, or
// what is in one, name it.
func (r *reconciler) logOf(tenant *v1beta1.Tenant, object policy.ObjectRef) *logrus.Entry {
	log := r.log.WithField("tenant", tenant.Name)
	switch {
	case object.Kind == "Namespace":
		return log.WithField("namespace", object.Name)
	case object.Namespace != "":
		return log.WithField("namespace", object.Namespace)
	}
	return log
}

func messages(problems []Problem) string {
	var texts []string
	for i, problem := range problems {
		if i == shownProblems {
			texts = append(texts, fmt.Sprintf("and %d more", len(problems)-i))
			break
		}
		texts = append(texts, problem.Message)
	}
	return strings.Join(texts, "; ")
}

// finalizer sets the operator's finalizers of a Tenant to the given ones.
func (r *reconciler) finalizer(ctx context.Context, tenant *v1beta1.Tenant, finalizers ...string) error {
	object := applyConfiguration(tenant)
	object.SetFinalizers(finalizers)
	// A Tenant that was deleted meanwhile is not created again.
	object.SetUID(tenant.UID)
	err := r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(statusManager), client.ForceOwnership)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("set the finalizer of Tenant %s: %w", tenant.Name, err)
	}
	return nil
}

// condition applies the condition Provisioned if it differs.
func (r *reconciler) condition(ctx context.Context, tenant *v1beta1.Tenant, condition metav1.Condition) error {
	condition.Type, condition.ObservedGeneration = v1beta1.ConditionProvisioned, tenant.Generation
	conditions := slices.Clone(tenant.Status.Conditions)
	if !meta.SetStatusCondition(&conditions, condition) {
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(meta.FindStatusCondition(conditions, condition.Type))
	if err != nil {
		return fmt.Errorf("write the status of Tenant %s: %w", tenant.Name, err)
	}
	object := applyConfiguration(tenant)
	object.Object["status"] = map[string]any{"conditions": []any{content}}
	err = r.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(statusManager),
		client.ForceOwnership)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the status of Tenant %s: %w", tenant.Name, err)
	}
	return nil
}

func applyConfiguration(tenant *v1beta1.Tenant) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(v1beta1.KindTenant))
	object.SetName(tenant.Name)
	return object
}
