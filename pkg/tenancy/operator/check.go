package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// Findings of Check other than those about permissions.
const (
	findingNoDefaultDeny        = "NoDefaultDeny"
	findingDrift                = "Drift"
	findingConflict             = "Conflict"
	findingHomeNamespaceHasPods = "HomeNamespaceHasPods"
	findingSharedSource         = "SharedSource"
	findingOtherAccount         = "OtherAccount"
	findingNoTenant             = "NoTenant"
	findingLeftoverBinding      = "LeftoverBinding"
	findingNoPermissions        = "NoPermissions"
)

// Check returns what is wrong with a Tenant, or with all of them if no name is given. It changes nothing,
// whatever the Options say. Checks that need permissions that the caller lacks are unchecked.
func (e *Engine) Check(ctx context.Context, name string) ([]resource.Finding, []resource.Unchecked, error) {
	options := e.options
	options.DryRun = true
	dry := New(e.client, options)
	dry.checks = true
	w, _, err := dry.look(ctx, nil)
	if err != nil {
		return nil, nil, err
	}
	c := &checker{Engine: dry, world: w, roles: map[rbacv1.RoleRef][]rbacv1.PolicyRule{}, empty: map[rbacv1.RoleRef]bool{}}
	if err := c.attempt([]string{findingLeftoverBinding}, "", c.makers(ctx, name)); err != nil {
		return nil, nil, err
	}
	known := false
	for _, tenant := range w.all {
		if name != "" && tenant.Name != name {
			continue
		}
		known = true
		if err := c.tenant(ctx, tenant); err != nil {
			return nil, nil, fmt.Errorf("check Tenant %s: %w", tenant.Name, err)
		}
	}
	if name != "" && !known {
		return nil, nil, apierrors.NewNotFound(v1beta1.GroupVersion.WithResource("tenants").GroupResource(), name)
	}
	if name == "" {
		c.orphans()
		if err := c.attempt([]string{findingNoTenant}, "", c.named(ctx)); err != nil {
			return nil, nil, err
		}
	}
	c.sort()
	return c.found, c.unchecked(), nil
}

// sort orders the findings by Tenant, namespace and kind. Findings that block others come
// first.
func (c *checker) sort() {
	rank := func(f resource.Finding) int {
		if f.ID == string(policy.ReasonNotOwned) && f.Object.Kind == kindNamespace {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(c.found, func(a, b resource.Finding) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Object.Namespace, b.Object.Namespace),
			cmp.Compare(a.ID, b.ID), cmp.Compare(a.Object.String(), b.Object.String()))
	})
}

// checker collects the findings of one Check.
type checker struct {
	*Engine
	*world
	found []resource.Finding
	// lacking are missing permissions to write, without which there is no dry run.
	lacking []string
	// skipped are checks that need another permission that the caller lacks.
	skipped []resource.Unchecked
	roles   map[rbacv1.RoleRef][]rbacv1.PolicyRule // those of ClusterRoles
	empty   map[rbacv1.RoleRef]bool                // ClusterRoles whose aggregation is empty
}

// maxMessage bounds the text about one object.
const maxMessage = 1000

// add adds a finding about a Tenant, "" if it is about the cluster.
func (c *checker) add(tenant string, f resource.Finding) {
	f.Tenant, f.Severity, f.Message = tenant, resource.Error, policy.Shown(f.Message, maxMessage) // anybody can choose texts in a cluster
	c.found = append(c.found, f)
}

// mended adds to a finding the command that provisions a Tenant. Without consent to take over a
// namespace, that command writes nothing.
func (c *checker) mended(tenant string, f resource.Finding) resource.Finding {
	f.Command = "landwaiter tenant add " + resource.ShellWord(tenant)
	if slices.ContainsFunc(c.found, func(f resource.Finding) bool {
		return f.Tenant == tenant && f.ID == string(policy.ReasonNotOwned) && f.Object.Kind == kindNamespace
	}) {
		f.Fix, f.Command = "once each namespace that is NotOwned may be taken over, run `"+f.Command+" --set adopt=true`", ""
	}
	return f
}

// orphans finds namespaces whose Tenant was deleted without its objects, such as after
// somebody removed its finalizer.
func (c *checker) orphans() {
	for i := range c.namespaces {
		namespace := &c.namespaces[i]
		tenant := namespace.Labels[v1beta1.LabelTenant]
		if tenant != "" && c.tenants.Named(tenant) == nil {
			c.withoutTenant(policy.ObjectRef{Kind: kindNamespace, Name: namespace.Name}, tenant,
				"names Tenant %s, which does not exist, but its bindings may")
		}
	}
}

// named finds cluster resources that name a Tenant that does not exist.
func (c *checker) named(ctx context.Context) error {
	for _, list := range namingLists() {
		if err := c.client.List(ctx, list); err != nil {
			return fmt.Errorf("list what names Tenants: %w", err)
		}
		for _, object := range objectsIn(list) {
			for _, tenant := range tenantsIn(object) {
				if c.tenants.Named(tenant) == nil {
					c.add("",
						resource.Finding{ID: findingNoTenant, Object: resource.RefOf(object),
							Message: fmt.Sprintf("names Tenant %s, which does not exist, and would apply to a later Tenant of that name", tenant),
							Fix:     "remove the name from it, or create the Tenant"})
				}
			}
		}
	}
	return nil
}

// withoutTenant finds an object that outlived its Tenant. The message has a verb for the Tenant's name.
func (c *checker) withoutTenant(object policy.ObjectRef, tenant, message string) {
	c.add("", resource.Finding{ID: findingNoTenant, Object: object, Message: fmt.Sprintf(message, tenant),
		Command: "landwaiter tenant delete " + resource.ShellWord(tenant) + " --yes"})
}

// tenant checks one Tenant.
func (c *checker) tenant(ctx context.Context, tenant *v1beta1.Tenant) error {
	if text := c.tenants.Conflict(tenant); text != "" {
		c.add(tenant.Name,
			resource.Finding{ID: findingConflict, Object: policy.ObjectRef{Kind: v1beta1.KindTenant, Name: tenant.Name}, Message: text,
				Fix: "take it off one of them"})
	}
	report, err := c.Apply(ctx, tenant)
	if err != nil {
		return err
	}
	c.incomparable(report.Problems)
	for _, problem := range report.Problems {
		if problem.lacks != "" {
			if problem.would != "" {
				c.drifted(tenant.Name, Outcome{problem.Object, problem.would})
			}
			continue
		}
		if slices.ContainsFunc(c.found, func(f resource.Finding) bool { return f.ID == findingLeftoverBinding && f.Object == problem.Object }) {
			continue // makers found it
		}
		c.add(tenant.Name, resource.Finding{ID: string(problem.Reason), Object: problem.Object, Message: problem.Message})
	}
	for _, outcome := range report.Outcomes {
		if outcome.Result != Unchanged {
			c.drifted(tenant.Name, outcome)
		}
	}
	for _, namespace := range c.tenants.ActiveNamespaces(tenant, c.namespaces) {
		for _, check := range c.ofNamespaces() {
			if err := c.attempt(check.ids, "", check.run(ctx, tenant, namespace)); err != nil {
				return err
			}
		}
	}
	for _, namespace := range report.Namespaces {
		if c.namespace(namespace) == nil {
			continue // it is already reported as a difference
		}
		if err := c.attempt([]string{findingNoDefaultDeny}, "", c.network(ctx, tenant, namespace)); err != nil {
			return err
		}
	}
	return nil
}

// drifted finds an object that differs from what its Tenant says.
func (c *checker) drifted(tenant string, outcome Outcome) {
	c.add(tenant,
		c.mended(tenant,
			resource.Finding{ID: findingDrift, Object: outcome.Object, Message: fmt.Sprintf("is not as the Tenant says (%s)", outcome.Result)}))
}

// trust finds trust material that developers can change. In the home namespace there is none.
func (c *checker) trust(ctx context.Context, tenant *v1beta1.Tenant, namespace string) error {
	if namespace == tenant.Spec.HomeNamespace {
		return nil
	}
	var resources []v1beta1.Object
	for _, list := range []client.ObjectList{&v1beta1.TrustStoreList{}, &v1beta1.StoreList{}} {
		if err := c.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("list resources of namespace %s: %w", namespace, err)
		}
		resources = append(resources, objectsIn(list)...)
	}
	// Developers cannot reach the content of the home namespace.
	for _, f := range resource.Exposures(resources...) {
		c.add(tenant.Name,
			resource.Finding{ID: findingTrustWithinReach, Object: f.Resource,
				Message: fmt.Sprintf("its %s can be written by developers (edit)", f.Object.Kind), Fix: "move it to the home namespace; or " + f.Fix})
	}
	return nil
}

// bindings finds roles with permissions beyond their namespace, and permissions of the default
// account.
func (c *checker) bindings(ctx context.Context, tenant *v1beta1.Tenant, namespace string) error {
	var bindings rbacv1.RoleBindingList
	if err := c.client.List(ctx, &bindings, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("list RoleBindings of namespace %s: %w", namespace, err)
	}
	for i := range bindings.Items {
		b := &bindings.Items[i]
		rules, err := c.rules(ctx, namespace, b.RoleRef)
		if err != nil {
			return err
		}
		for _, f := range reachOf(b, rules) {
			c.add(tenant.Name, f)
		}
		if c.empty[b.RoleRef] {
			c.add(tenant.Name,
				resource.Finding{ID: findingNoPermissions, Object: policy.ObjectRef{Kind: kindRoleBinding, Namespace: b.Namespace, Name: b.Name},
					Message: fmt.Sprintf("gives nothing: ClusterRole %s aggregates other roles, and has no rules", b.RoleRef.Name),
					Fix: "start kube-controller-manager with its controller clusterrole-aggregation-controller, and see that roles with the label " +
						"exist: kubectl get clusterroles --selector " + v1beta1.LabelPiece})
		}
	}
	return nil
}

// rules returns the rules of a role, nothing if it does not exist.
func (c *checker) rules(ctx context.Context, namespace string, ref rbacv1.RoleRef) ([]rbacv1.PolicyRule, error) {
	if known, ok := c.roles[ref]; ok {
		return known, nil
	}
	var rules []rbacv1.PolicyRule
	var err error
	if ref.Kind == "ClusterRole" {
		role := &rbacv1.ClusterRole{}
		err = c.client.Get(ctx, client.ObjectKey{Name: ref.Name}, role)
		rules = role.Rules
		c.empty[ref] = role.AggregationRule != nil && len(rules) == 0
	} else {
		role := &rbacv1.Role{}
		err = c.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, role)
		rules = role.Rules
	}
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read %s %s: %w", ref.Kind, ref.Name, err)
	}
	if ref.Kind == "ClusterRole" {
		c.roles[ref] = rules
	}
	return rules, nil
}

// network looks for a policy that denies everything that no other policy allows.
func (c *checker) network(ctx context.Context, tenant *v1beta1.Tenant, namespace string) error {
	if tenant.Spec.Isolation.Network == v1beta1.NetworkIsolationOpen {
		return nil
	}
	var policies networkingv1.NetworkPolicyList
	if err := c.client.List(ctx, &policies, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("list NetworkPolicies of namespace %s: %w", namespace, err)
	}
	if !slices.ContainsFunc(policies.Items, deniesByDefault) {
		c.add(tenant.Name,
			c.mended(tenant.Name,
				resource.Finding{ID: findingNoDefaultDeny, Object: policy.ObjectRef{Kind: kindNamespace, Name: namespace},
					Message: "NetworkPolicy default-deny is missing"}))
	}
	return nil
}

func deniesByDefault(p networkingv1.NetworkPolicy) bool {
	selector := p.Spec.PodSelector
	return len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 && len(p.Spec.Ingress)+len(p.Spec.Egress) == 0 &&
		slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeIngress) && slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
}

// pods finds workloads in a home namespace that is only for trust and credentials.
func (c *checker) pods(ctx context.Context, tenant *v1beta1.Tenant, namespace string) error {
	if namespace != tenant.Spec.HomeNamespace || len(tenant.Spec.Namespaces) == 0 && tenant.Spec.NamespacePrefix == "" {
		return nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := c.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("list pods of namespace %s: %w", namespace, err)
	}
	if len(list.Items) > 0 {
		c.add(tenant.Name,
			resource.Finding{ID: findingHomeNamespaceHasPods, Object: policy.ObjectRef{Kind: "Pod", Namespace: namespace, Name: list.Items[0].Name},
				Message: fmt.Sprintf("runs where the team's keys and Git account are (%d in all)", len(list.Items)),
				Fix:     "move it to another namespace"})
	}
	return nil
}

// appliers are the kinds of Flux that apply manifests as an account.
func appliers() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: kindKustomization},
		{Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease"},
	}
}

// flux finds Kustomizations and HelmReleases that apply a source of another namespace, or use
// an account other than the Tenant's.
func (c *checker) flux(ctx context.Context, tenant *v1beta1.Tenant, namespace string) error {
	for _, kind := range appliers() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := c.client.List(ctx, list, client.InNamespace(namespace))
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue // Flux, or this part of it, is not installed
		}
		if err != nil {
			return fmt.Errorf("list each %s of namespace %s: %w", kind.Kind, namespace, err)
		}
		for i := range list.Items {
			c.applier(tenant, &list.Items[i])
		}
	}
	return nil
}

// applier checks one object of Flux.
func (c *checker) applier(tenant *v1beta1.Tenant, object *unstructured.Unstructured) {
	text := func(path ...string) string {
		value, _, _ := unstructured.NestedString(object.Object, append([]string{"spec"}, path...)...)
		return value
	}
	where := policy.ObjectRef{Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()}
	other := cmp.Or(text("sourceRef", "namespace"), text("chartRef", "namespace"), text("chart", "spec", "sourceRef", "namespace"))
	if other != "" && other != object.GetNamespace() {
		c.add(tenant.Name, resource.Finding{ID: findingSharedSource, Object: where,
			Message: fmt.Sprintf("applies a source of namespace %s, which needs Flux with --no-cross-namespace-refs=false", other),
			Fix:     "copy the source into the home namespace"})
	}
	want := cmp.Or(onboard.Account(tenant), tenant.Name)
	_, remote, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "kubeConfig")
	account, home := text("serviceAccountName"), object.GetNamespace() == tenant.Spec.HomeNamespace
	f := resource.Finding{ID: findingOtherAccount, Object: where}
	switch {
	case remote:
		f.Message, f.Fix = "acts with the credentials of spec.kubeConfig, which no rule of the Tenant bounds", "remove them"
	case account == "":
		f.Message, f.Fix = "names no account, so Flux acts as its own, or as the one of --default-service-account", "set spec.serviceAccountName"
	case account != want && home:
		f.Message, f.Fix = fmt.Sprintf("acts as ServiceAccount %s and not as the team's", account), "set spec.serviceAccountName to "+want
	case account != want:
		f.Message = fmt.Sprintf("acts as ServiceAccount %s, which anyone who may edit the namespace may use", account)
		f.Fix = fmt.Sprintf("move it to the home namespace %s, where it acts as %s", tenant.Spec.HomeNamespace, want)
	default:
		return
	}
	c.add(tenant.Name, f)
}
