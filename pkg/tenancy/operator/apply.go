package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// Refusals returns why a Tenant could not be applied as it is, without changing anything:
// namespaces that are reserved, being deleted, somebody else's, or without consent.
func (e *Engine) Refusals(ctx context.Context, tenant *v1beta1.Tenant) ([]Problem, error) {
	w, tenant, err := e.look(ctx, tenant)
	if err != nil {
		return nil, err
	}
	report := &Report{}
	_, err = e.members(ctx, w, tenant, report)
	return report.Problems, err
}

// Apply applies the objects of a Tenant, and removes those that it no longer has. Parts that
// cannot be applied are Problems, and the rest continues. If namespaces are given, it only
// covers their content.
func (e *Engine) Apply(ctx context.Context, tenant *v1beta1.Tenant, only ...string) (*Report, error) {
	w, tenant, err := e.look(ctx, tenant)
	if err != nil {
		return nil, err
	}
	report := &Report{}
	members, err := e.members(ctx, w, tenant, report)
	if err != nil {
		return nil, err
	}
	existing, err := e.owned(ctx, tenant.Name, only...)
	if err != nil {
		return nil, err
	}
	for _, refused := range existing.refused {
		report.problem(policy.ReasonAccessDenied, policy.ObjectRef{Kind: v1beta1.KindTenant, Name: tenant.Name}, "%v", refused)
		report.lacks(refused, "")
	}
	if err := e.withdraw(ctx, existing, report); err != nil {
		return report, err
	}
	rendered, err := e.render(tenant, members, report)
	if err != nil {
		return nil, err
	}
	for _, object := range rendered {
		if len(only) > 0 && !slices.Contains(only, placeOf(object)) || report.withholds(object, existing) {
			continue
		}
		problems := len(report.Problems)
		if err := e.put(ctx, tenant, members, object, existing, report); err != nil {
			return report, err
		}
		if found := len(report.Problems); found > problems && (!e.options.DryRun || report.Problems[found-1].lacks == "") {
			report.failed(object)
		}
	}
	if len(only) == 0 {
		if err := e.expectMaker(ctx, tenant, rendered, report); err != nil {
			return report, err
		}
	}
	if len(members) == 0 {
		return report, nil // a Tenant that is not provisioned keeps its objects
	}
	return report, e.prune(ctx, w, tenant, rendered, existing, report)
}

// render returns the objects of a Tenant in its namespaces.
func (e *Engine) render(tenant *v1beta1.Tenant, members []member, report *Report) ([]*unstructured.Unstructured, error) {
	if len(members) == 0 {
		return nil, nil
	}
	options := e.options.Onboard
	for _, m := range members {
		options.Namespaces = append(options.Namespaces, m.name)
	}
	report.Namespaces = options.Namespaces
	objects, err := onboard.Objects(tenant, options)
	if err != nil {
		return nil, fmt.Errorf("render Tenant %s: %w", tenant.Name, err)
	}
	return objects, nil
}

// placeOf returns the namespace that an object is in, or is; "" for other cluster-scoped
// objects.
func placeOf(object client.Object) string {
	if object.GetObjectKind().GroupVersionKind().Kind == kindNamespace {
		return object.GetName()
	}
	return object.GetNamespace()
}

// put applies one object, and reports what happened.
func (e *Engine) put(ctx context.Context, tenant *v1beta1.Tenant, members []member, object *unstructured.Unstructured, existing *inventory,
	report *Report) error {
	object = object.DeepCopy()
	inside := placeOf(object)
	i := slices.IndexFunc(members, func(m member) bool { return m.name == inside })
	if inside != "" && i < 0 {
		return fmt.Errorf("render Tenant %s: %s is in no namespace of it", tenant.Name, refOf(object))
	}
	if (object.GetKind() == kindClusterRoleBinding || object.GetKind() == kindClusterRole) && !e.options.ClusterBindings {
		return nil // expectMaker looks for the needed one
	}
	before := existing.version(object)
	ours := before != "" || tenant.Spec.Adopt && e.options.Adopt || object.GetKind() == kindNamespace
	if object.GetKind() == kindNamespace {
		members[i].mark(object, tenant.Name)
		if members[i].existing != nil {
			before = members[i].existing.ResourceVersion
		}
	}
	if e.options.DryRun && inside != "" && members[i].existing == nil {
		report.add(object, Created) // the API server cannot tell: its namespace does not exist yet
		return nil
	}
	if before == "" && (inside == "" || members[i].existing != nil) { // a new namespace is empty
		found, err := e.find(ctx, object)
		if err != nil {
			return e.refused(err, object, report)
		}
		before = found.ResourceVersion
		ours = ours || labels.SelectorFromSet(labels.Set(labelsOf(tenant.Name))).Matches(labels.Set(found.Labels))
	}
	if before != "" && !ours && object.GetKind() == kindNetworkPolicy {
		// Additional rules would stay in it, under the name of the platform.
		report.problem(policy.ReasonNotOwned, refOf(object), somebodyElses, refOf(object), "it does not have the labels of the Tenant")
		return nil
	}
	return e.write(ctx, object, before, ours, report)
}

// write applies an object that had the given resource version, "" if it did not exist. It
// only overwrites fields of others on objects that belong to the Tenant.
func (e *Engine) write(ctx context.Context, object *unstructured.Unstructured, before string, ours bool, report *Report) error {
	live, err := e.content(ctx, object, before)
	if err != nil {
		return e.refused(err, object, report)
	}
	sent := object.DeepCopy()
	err = e.apply(ctx, sent, ours)
	if err != nil && ours && before != "" && apierrors.IsInvalid(err) && object.GetKind() == kindRoleBinding {
		// The role of a binding cannot be changed.
		if err = e.client.Delete(ctx, object.DeepCopy()); err == nil && !e.options.DryRun {
			sent = object.DeepCopy()
			err = e.apply(ctx, sent, ours)
		}
	}
	narrowed := false
	if err == nil {
		narrowed, err = e.narrow(ctx, object, sent)
	}
	if err != nil {
		return e.refused(err, object, report)
	}
	if err := report.expectCount(sent); err != nil {
		return err
	}
	switch {
	case before == "":
		report.add(object, Created)
	case narrowed, live == nil && before != sent.GetResourceVersion(), live != nil && !sameContent(live, sent):
		report.add(object, Changed)
	default:
		report.add(object, Unchanged)
	}
	return nil
}

// content returns the current object, because a dry run does not change its resource version,
// and an admin is not told about a new owner of the same fields. It returns nil for the
// operator, which saves the request.
func (e *Engine) content(ctx context.Context, object *unstructured.Unstructured, before string) (*unstructured.Unstructured, error) {
	if before == "" || !e.options.DryRun && !e.options.Adopt {
		return nil, nil
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	err := e.client.Get(ctx, client.ObjectKeyFromObject(object), live)
	return live, client.IgnoreNotFound(err)
}

// sameContent reports whether only the API server's bookkeeping differs, as for an object
// that Git or kubectl applied before.
func sameContent(live, sent *unstructured.Unstructured) bool {
	strip := func(object *unstructured.Unstructured) map[string]any {
		object = object.DeepCopy()
		object.SetManagedFields(nil)
		object.SetResourceVersion("")
		object.SetGeneration(0)
		delete(object.Object, "status") // meanwhile, Kubernetes counts the limited resources
		return object.Object
	}
	return equality.Semantic.DeepEqual(strip(live), strip(sent))
}

// apply sends an object, and reads the answer into it.
func (e *Engine) apply(ctx context.Context, object *unstructured.Unstructured, force bool) error {
	var options []client.ApplyOption
	if force {
		options = append(options, client.ForceOwnership)
	}
	return e.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), options...)
}

// find returns the existing object, without a resource version if there is none.
func (e *Engine) find(ctx context.Context, object *unstructured.Unstructured) (*metav1.PartialObjectMetadata, error) {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	err := e.client.Get(ctx, client.ObjectKeyFromObject(object), live)
	return live, client.IgnoreNotFound(err)
}

const somebodyElses = "%s exists and is somebody else's (%s): delete it, or `landwaiter tenant add --set adopt=true` takes it over"

// Messages of the operator guardrails, and about them.
const (
	// unlisted is the message about a Tenant that Landwaiter has not listed.
	unlisted = "-operated-tenants does not list Tenant "
	// waitsForList is the message about the next step.
	waitsForList = "waits until Landwaiter has listed the Tenant for the operator guardrails (do its pods run, with --cluster-role " +
		"operated-tenants=NAME?)"
	// takesOver is the message about an existing object without the labels of the Tenant.
	takesOver = "the operator takes over no object"
)

// refusedByPolicy reports whether a guardrail refused a request for a reason that may be
// temporary: the API server may see a change of a Tenant later than the operator.
func refusedByPolicy(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '") &&
		!strings.Contains(err.Error(), takesOver)
}

// refused turns a permanent refusal of the API server into a Problem.
func (e *Engine) refused(err error, object *unstructured.Unstructured, report *Report) error {
	ref := refOf(object)
	report.refused = report.refused || refusedByPolicy(err)
	switch {
	// A deleted CRD is still known for a while.
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err) && object.GetKind() == onboard.KindRegistries:
		report.problem(policy.ReasonNotInstalled, ref, "the cluster does not know %s of %s: %s", object.GetKind(),
			object.GroupVersionKind().Group, installs(object.GetKind()))
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), unlisted):
		report.problem(policy.ReasonUnfinished, ref, "%s "+waitsForList, ref)
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), takesOver):
		report.problem(policy.ReasonNotOwned, ref, somebodyElses, ref, "it does not have the labels of the Tenant")
	case apierrors.IsForbidden(err):
		report.problem(policy.ReasonAccessDenied, ref, "%s cannot be applied: %s%s", ref, err, bindItself(object))
		report.lacks(err, "")
	case apierrors.IsConflict(err):
		report.problem(policy.ReasonNotOwned, ref, somebodyElses, ref, err)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		report.problem(policy.ReasonInvalid, ref, "%s cannot be applied: %s", ref, err)
	default:
		return fmt.Errorf("apply %s: %w", ref, err)
	}
	return nil
}

// installs says how to install a kind.
func installs(kind string) string {
	switch kind {
	case "GitRepository", "OCIRepository", "Kustomization":
		return "install Flux, or leave out spec.reconciler.source"
	case onboard.KindRegistries:
		return "install its template, library/tenant-allowed-registries/template.yaml, or leave out spec.isolation.registries; until then " +
			"nobody gets new permissions in the Tenant"
	}
	return "install Gatekeeper"
}

// bindItself is the command for a binding that the account may not create.
func bindItself(object *unstructured.Unstructured) string {
	if object.GetKind() != kindRoleBinding && object.GetKind() != kindClusterRoleBinding {
		return ""
	}
	role, _, _ := unstructured.NestedString(object.Object, "roleRef", "name")
	command := fmt.Sprintf("kubectl create %s %s --clusterrole=%s",
		map[string]string{kindRoleBinding: "rolebinding", kindClusterRoleBinding: "clusterrolebinding"}[object.GetKind()], object.GetName(), role)
	if object.GetNamespace() != "" {
		command += " --namespace=" + object.GetNamespace()
	}
	subjects, _, _ := unstructured.NestedSlice(object.Object, "subjects")
	for _, s := range subjects {
		subject, _ := s.(map[string]any)
		switch subject["kind"] {
		case "ServiceAccount":
			command += fmt.Sprintf(" --serviceaccount=%s:%s", subject["namespace"], subject["name"])
		case "Group":
			command += fmt.Sprintf(" --group=%s", subject["name"])
		case "User":
			command += fmt.Sprintf(" --user=%s", subject["name"])
		}
	}
	if object.GetKind() == kindClusterRoleBinding {
		return "; run: " + command
	}
	return "; if the operator is to bind ClusterRole " + role + ", list it in operator.clusterRoles of the chart; or run: " + command
}

// failed records a Tenant's restrictions that could not be applied before its people and its
// account get permissions.
func (r *Report) failed(object client.Object) {
	if r.unrestricted == nil {
		r.unrestricted = map[string]policy.ObjectRef{}
	}
	switch object.GetObjectKind().GroupVersionKind().Kind {
	case kindNamespace:
		r.unrestricted[object.GetName()] = refOf(object)
	case kindNetworkPolicy, kindResourceQuota:
		r.unrestricted[object.GetNamespace()] = refOf(object)
	case onboard.KindRegistries:
		r.unrestricted[""] = refOf(object) // of all namespaces
	}
}

// withholds reports whether an object has to wait, and adds a Problem for a binding. A
// namespace that could not be created or labelled gets nothing at all; one without another
// restriction gets no new permissions. Existing bindings are still applied, because that also
// removes people's permissions.
func (r *Report) withholds(object client.Object, existing *inventory) bool {
	missing, found := r.unrestricted[object.GetNamespace()]
	if !found {
		missing, found = r.unrestricted[""]
	}
	kind := object.GetObjectKind().GroupVersionKind().Kind
	binds := kind == kindRoleBinding || kind == kindClusterRoleBinding
	switch {
	case !found:
		return false
	case missing.Kind == kindNamespace && object.GetNamespace() != "":
		return true
	case !binds || existing.version(object) != "":
		return false
	}
	r.problem(policy.ReasonUnfinished, refOf(object), "%s is not made before %s is there", refOf(object), missing)
	return true
}

// exclusive returns the fields of a kind in which others' entries must not stay: what others allow in a
// network policy, entries under the platform's name, and a source in another namespace.
func exclusive(kind string) []string {
	return map[string][]string{kindNetworkPolicy: {"spec"}, "ConfigMap": {"data"}, kindResourceQuota: {"spec", "hard"},
		kindKustomization: {"spec", "sourceRef"}}[kind]
}

// narrow removes others' additions from an object: applying keeps fields that it does not
// name. It reports whether there were any.
func (e *Engine) narrow(ctx context.Context, object, live *unstructured.Unstructured) (bool, error) {
	path := exclusive(object.GetKind())
	if len(path) == 0 {
		return false, nil
	}
	wanted, _, _ := unstructured.NestedMap(object.Object, path...)
	there, _, _ := unstructured.NestedMap(live.Object, path...)
	maps.DeleteFunc(there, func(field string, _ any) bool { _, ok := wanted[field]; return ok })
	if len(there) == 0 || e.options.DryRun {
		return len(there) > 0, nil
	}
	for field := range there {
		there[field] = nil
	}
	patch := map[string]any{"metadata": map[string]any{"uid": live.GetUID()}}
	if err := unstructured.SetNestedMap(patch, there, path...); err != nil {
		return false, fmt.Errorf("take out what others added to %s: %w", refOf(object), err)
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return false, fmt.Errorf("take out what others added to %s: %w", refOf(object), err)
	}
	return true, e.client.Patch(ctx, live, client.RawPatch(types.MergePatchType, text))
}
