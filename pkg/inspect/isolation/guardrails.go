package isolation

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/inspect/check"
)

// guardrailNames returns the names of the existing guardrail policies.
func guardrailNames(guard check.Guardrails) []string {
	var names []string
	for _, name := range check.GuardrailNames() {
		if p := guard.Policy(name); p != nil {
			names = append(names, p.Name)
		}
	}
	return names
}

// guardrails checks each guardrail, and tries it with accounts of Kubernetes whose
// permissions are sufficient.
func (s *scene) guardrails(ctx context.Context) []Result {
	var results []Result
	for _, name := range check.GuardrailNames() {
		if !s.guard.Needs(name) {
			continue
		}
		r := Result{Case: "guardrail-" + name, Tries: "is guardrail " + name + " in force", Who: "everybody", Outcome: Held,
			By: []string{"its policy and binding"}}
		r.faults = s.guard.Faults(name)
		switch {
		case s.unread != nil:
			r.Outcome, r.By, r.faults, r.Why, r.Fix = NotTried, nil, nil, notReadable(s.unread),
				"ask for permission to read validatingadmissionpolicies and validatingadmissionpolicybindings"
		case len(r.faults) > 0:
			r.Outcome, r.By, r.Why, r.Fix = NotHeld, nil, r.faults[0].Object.String()+": "+r.faults[0].Message, r.faults[0].Command
		case !s.guard.Comparable():
			r.Outcome, r.By, r.Why, r.Fix = NotTried, nil, "its rules cannot be compared: this installation is not called landwaiter",
				"compare it with helm template by hand; other cases try what it refuses"
		}
		results = append(results, r)
	}
	results = append(results, s.pieces(ctx)...)
	for _, team := range s.teams {
		results = append(results, s.controllers(ctx, team)...)
	}
	return results
}

const (
	kubeSystem = "kube-system"
	// apartFix is the fix if controllers have the permissions of kube-controller-manager.
	apartFix = "start kube-controller-manager with --use-service-account-credentials=true: then each controller has its own ServiceAccount, " +
		"and guardrails apply to all of them"
)

// controllersApart reports whether the controllers of Kubernetes have separate accounts:
// kube-controller-manager then creates the ServiceAccount of each controller that it runs.
func (s *server) controllersApart(ctx context.Context) (bool, error) {
	accounts, err := list[metav1.PartialObjectMetadata](ctx, s, listing(core("serviceaccounts"), kubeSystem), "")
	return slices.ContainsFunc(accounts, func(a metav1.PartialObjectMetadata) bool {
		return slices.Contains([]string{garbageCollector, replicaSets, "namespace-controller", "resourcequota-controller",
			"validatingadmissionpolicy-status-controller"}, a.Name)
	}), err
}

// Controllers whose accounts are used to try guardrails.
const (
	garbageCollector = "generic-garbage-collector"
	replicaSets      = "replicaset-controller"
	roleAggregation  = "clusterrole-aggregation-controller"
)

// controller is a controller of Kubernetes, whose permissions cover every namespace, as it runs in
// this cluster: with its own account, or as kube-controller-manager.
func (s *scene) controller(name string) person {
	if !s.controllersApart {
		return person{role: roleSystem, user: "system:kube-controller-manager", groups: []string{"system:authenticated"}}
	}
	return account(roleSystem, types.NamespacedName{Namespace: kubeSystem, Name: name})
}

// controllers tries guardrails as controllers of Kubernetes: their permissions let them change
// anything, so only the guardrail can refuse them, regardless of other permissions.
func (s *scene) controllers(ctx context.Context, team *team) []Result {
	var results []Result
	add := func(id, tries string, who person, requests ...request) {
		for _, r := range s.byController(ctx, id, tries, who, requests...) {
			r.Tenant = team.tenant.Name
			results = append(results, r)
		}
	}
	collector := s.controller(garbageCollector)
	var patches, breakGlasses []request
	for _, n := range team.namespaces() {
		if team.spaces[n].Labels[v1beta1.LabelTenant] != "" {
			patches = append(patches, protectedLabels(team, n)...)
			breakGlasses = append(breakGlasses, breakGlass(n)...)
		}
	}
	add("tenant-labels", "change labels that rules trust", collector, patches...)
	add("break-glass", "open a namespace past the rules", collector, breakGlasses...)
	var owned []request
	for _, r := range platformObjects(team) {
		if r.verb != verbCreate { // it may create nothing
			owned = append(owned, r)
		}
	}
	add("platform-objects", "change or delete objects of the platform", collector, owned...)
	add("namespace-deletion", "delete a team's namespace", collector,
		guarded("namespace-deletion",
			inEach(team.namespaces(), func(n string) []request { return []request{remove(core("namespaces"), "", n)} })...)...)
	if team.spaces[team.home].Labels[v1beta1.LabelHomeNamespace] != "" {
		add("home-workloads", "run a pod in the home namespace", s.controller(replicaSets), homePods(team)...)
	}
	if team.kustomization != "" {
		add("home-accounts", "have Flux act as another account in the home namespace", collector,
			guarded("home-accounts",
				change("give Kustomization "+team.kustomization+" another account", group(fluxGroup, "v1", "kustomizations"), team.home,
					team.kustomization,
					map[string]any{"spec": map[string]any{"serviceAccountName": "kustomize-controller"}}))...)
	}
	return results
}

// byController tries requests as a controller of Kubernetes that a guardrail must refuse.
func (s *scene) byController(ctx context.Context, id, tries string, who person, requests ...request) []Result {
	if len(requests) == 0 {
		return nil
	}
	r := s.try(ctx, who, requests)
	asked := r.Outcome != NotTried
	if r.Outcome == Held && !slices.ContainsFunc(r.By, func(by string) bool { return strings.HasPrefix(by, byGuardrail) }) {
		r.Outcome, r.By, r.Why, r.Fix = NotTried, nil, "permissions refused the controller, so the guardrail was never asked",
			"see case guardrail-"+id
	}
	if asked && !s.controllersApart && r.Outcome != Held {
		r.Why, r.Fix = r.Why+"; all controllers act as kube-controller-manager here, whose user may have another name", apartFix
	}
	r.Case, r.Tries = "controller-"+id, tries+" with the permissions of a controller of Kubernetes"
	return []Result{r}
}

// operator is the operator's account, as named by the chart.
func (s *scene) operator() person {
	return account(roleSystem, types.NamespacedName{Namespace: s.landwaiter.Namespace, Name: s.landwaiter.Name + "-operator"})
}

// accounts tries requests that Landwaiter's own accounts must not be able to make.
func (s *scene) accounts(ctx context.Context) []Result {
	own := account(roleSystem, s.landwaiter)
	operator := s.operator()
	var results []Result
	for _, c := range []struct {
		id, tries string
		who       person
		requests  []request
	}{
		{"landwaiter-account", "read every Secret, take a token by one, run something or give permissions as Landwaiter itself", own,
			append(guarded("secrets",
				create(core("secrets"), "Secret", s.landwaiter.Namespace, map[string]any{"type": "kubernetes.io/service-account-token",
					"annotations": map[string]any{"kubernetes.io/service-account.name": s.landwaiter.Name}})),
				mayDo("get", core("secrets"), "", ""), mayDo("list", core("secrets"), "", ""), mayDo("create", core("secrets"), "", ""),
				mayDo("create", core("serviceaccounts"), "token", ""), mayDo("create", core("pods"), "", ""),
				bind("kube-system", "view"), mayDo("create", group(rbacGroup, "v1", "clusterrolebindings"), "", ""),
				mayDo("impersonate", core("users"), "", ""), mayDo("manage", group(v1beta1.Group, v1beta1.Version, "tenantlabels"), "", ""),
				mayDo("delete", group(admission, "v1", "validatingadmissionpolicies"), "", ""))},
		{"operator-account", "leave the namespaces of Tenants, or read Secrets, as the operator", operator,
			append(guarded("operator-guardrail", bind("kube-system", "admin"),
				newNamespace(probeName, map[string]any{podSecurity + "enforce": "restricted"})),
				mayDo("get", core("secrets"), "", ""), mayDo("create", core("serviceaccounts"), "token", ""), mayDo("create", core("pods"), "", ""),
				mayDo("create", group(rbacGroup, "v1", "roles"), "", ""))},
	} {
		r := s.try(ctx, c.who, c.requests)
		if !slices.Contains(s.accountsThere, c.who.user) {
			if c.who.user == operator.user && slices.Contains(s.accountsThere, own.user) {
				continue // the operator is not installed
			}
			r = Result{Who: c.who.String(), Outcome: NotTried, Why: "there is no such ServiceAccount",
				Fix: "name Landwaiter's ServiceAccount with --landwaiter-account"}
		}
		r.Case, r.Tries = c.id, c.tries
		results = append(results, r)
	}
	return results
}
