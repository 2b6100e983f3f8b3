package isolation

import (
	"context"
	"regexp"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/inspect/doctor"
)

// shipped are the names of the guardrails without the release's, and whether they protect
// every installation or only one with the operator.
func shipped() []struct {
	name     string
	operator bool
} {
	return []struct {
		name     string
		operator bool
	}{{"tenant-labels", false}, {"platform-objects", false}, {"home-workloads", false}, {"home-accounts", false}, {"namespace-deletion", false},
		{"namespace-names", false}, {"tokens", false}, {"secrets", false}, {"effective-rules", false}, {"operator-guardrail", true}, {"operator-tenants", true}}
}

// labelName is what the chart sets to landwaiter on its objects.
const labelName = "app.kubernetes.io/name"

// policy returns the guardrail of a name, whatever the release is called.
func (s *scene) policy(name string) *admissionv1.ValidatingAdmissionPolicy {
	for i := range s.policies {
		p := &s.policies[i]
		if p.Name == "landwaiter-"+name || strings.HasSuffix(p.Name, "-"+name) && p.Labels[labelName] == "landwaiter" {
			return p
		}
	}
	return nil
}

// guardrailNames are the names of the objects of guardrails that exist.
func (s *scene) guardrailNames() []string {
	var names []string
	for _, g := range shipped() {
		if p := s.policy(g.name); p != nil {
			names = append(names, p.Name)
		}
	}
	return names
}

// guardrails looks at each guardrail, and tries it as accounts of Kubernetes that permissions
// would let through.
func (s *scene) guardrails(ctx context.Context) []Result {
	var results []Result
	operated := s.policy("operator-guardrail") != nil || s.policy("operator-tenants") != nil || slices.Contains(s.accountsThere, s.operator().user)
	for _, g := range shipped() {
		if g.operator && !operated {
			continue // without the operator there is nobody to limit
		}
		r := Result{Case: "guardrail-" + g.name, Tries: "is guardrail " + g.name + " in force", Who: "everybody", Outcome: Held, By: []string{"its policy and binding"}}
		why, known := s.weak(g.name), true
		if why == "" {
			why, known = s.changed(s.policy(g.name))
		}
		switch {
		case s.unread != nil:
			r.Outcome, r.By, r.Why, r.Fix = NotTried, nil, notReadable(s.unread), "ask for permission to read validatingadmissionpolicies and validatingadmissionpolicybindings"
		case why != "":
			r.Outcome, r.By, r.Why, r.Fix = NotHeld, nil, why, installGuardrails
		case !known:
			r.Outcome, r.By, r.Why, r.Fix = NotTried, nil, "its rules cannot be compared: this installation is not called landwaiter", "compare it with helm template by hand; other cases try what it refuses"
		}
		results = append(results, r)
	}
	for _, team := range s.teams {
		results = append(results, s.controllers(ctx, team)...)
	}
	return results
}

// weak says why a guardrail is not in force, "" if it is.
func (s *scene) weak(name string) string {
	policy := s.policy(name)
	if policy == nil {
		return "ValidatingAdmissionPolicy landwaiter-" + name + " is missing"
	}
	switch {
	case policy.Spec.FailurePolicy != nil && *policy.Spec.FailurePolicy != admissionv1.Fail:
		return "ValidatingAdmissionPolicy " + policy.Name + " has failurePolicy " + string(*policy.Spec.FailurePolicy)
	case len(policy.Spec.Validations) == 0:
		return "ValidatingAdmissionPolicy " + policy.Name + " has no validations"
	case policy.Spec.MatchConstraints == nil || len(policy.Spec.MatchConstraints.ResourceRules) == 0 || len(policy.Spec.MatchConstraints.ExcludeResourceRules) > 0:
		return "ValidatingAdmissionPolicy " + policy.Name + " leaves resources out"
	}
	problem := "ValidatingAdmissionPolicyBinding " + policy.Name + " is missing"
	for i := range s.bindings {
		b := &s.bindings[i]
		if b.Spec.PolicyName != policy.Name {
			continue
		}
		gap := doctor.GuardrailGap(policy, b)
		if gap == "" {
			return "" // several bindings add up
		}
		problem = "ValidatingAdmissionPolicyBinding " + b.Name + " " + gap
	}
	return problem
}

// rules is what a policy decides as text. Where Landwaiter is reached is a setting of the
// chart, so it is left out.
func rules(p *admissionv1.ValidatingAdmissionPolicy) string {
	address := regexp.MustCompile(`'https://[^/']+/`)
	return address.ReplaceAllString(doctor.GuardrailRules(p), "'https://landwaiter/")
}

// changed says how the rules of a guardrail differ from those of this version, "" if they
// do not. It knows only the names that the embedded ones have.
func (s *scene) changed(p *admissionv1.ValidatingAdmissionPolicy) (why string, known bool) {
	if s.landwaiter.Name != doctor.ShippedRelease {
		return "", false
	}
	all, err := doctor.ShippedGuardrails(s.landwaiter.Namespace)
	at := slices.IndexFunc(all, func(shipped admissionv1.ValidatingAdmissionPolicy) bool { return shipped.Name == p.Name })
	if err != nil || at < 0 {
		return "", false
	}
	if rules(p) != rules(&all[at]) {
		return "ValidatingAdmissionPolicy " + p.Name + " has other rules than this version of Landwaiter ships", true
	}
	return "", true
}

const (
	kubeSystem = "kube-system"
	// apartFix is what to do where controllers have the permissions of kube-controller-manager.
	apartFix = "start kube-controller-manager with --use-service-account-credentials=true: then each controller has an account of its own, and guardrails hold for all of them"
)

// controllersApart reports whether the controllers of Kubernetes have accounts of their own:
// kube-controller-manager then makes the ServiceAccount of each controller that it runs.
func (s *server) controllersApart(ctx context.Context) (bool, error) {
	accounts, err := list[metav1.PartialObjectMetadata](ctx, s, listing(core("serviceaccounts"), kubeSystem), "")
	return slices.ContainsFunc(accounts, func(a metav1.PartialObjectMetadata) bool {
		return slices.Contains([]string{garbageCollector, replicaSets, "namespace-controller", "resourcequota-controller", "validatingadmissionpolicy-status-controller"}, a.Name)
	}), err
}

// Controllers as which guardrails are tried.
const (
	garbageCollector = "generic-garbage-collector"
	replicaSets      = "replicaset-controller"
)

// controller is a controller of Kubernetes, whose permissions reach every namespace, as it runs in
// this cluster: as an account of its own, or as kube-controller-manager.
func (s *scene) controller(name string) person {
	if !s.controllersApart {
		return person{role: roleSystem, user: "system:kube-controller-manager", groups: []string{"system:authenticated"}}
	}
	return account(roleSystem, types.NamespacedName{Namespace: kubeSystem, Name: name})
}

// controllers tries guardrails as controllers of Kubernetes: their permissions let them change
// anything, so that only the guardrail is left to refuse, whoever else has which permissions.
func (s *scene) controllers(ctx context.Context, team *team) []Result {
	var results []Result
	add := func(id, tries string, who person, requests ...request) {
		if len(requests) == 0 {
			return
		}
		r := s.try(ctx, who, requests)
		asked := r.Outcome != NotTried
		if r.Outcome == Held && !slices.ContainsFunc(r.By, func(by string) bool { return strings.HasPrefix(by, byGuardrail) }) {
			r.Outcome, r.By, r.Why, r.Fix = NotTried, nil, "permissions refused the controller, so the guardrail was never asked", "see case guardrail-"+id
		}
		if asked && !s.controllersApart && r.Outcome != Held {
			r.Why, r.Fix = r.Why+"; all controllers act as kube-controller-manager here, whose user may have another name", apartFix
		}
		r.Case, r.Tries, r.Tenant = "controller-"+id, tries+" with the permissions of a controller of Kubernetes", team.tenant.Name
		results = append(results, r)
	}
	collector := s.controller(garbageCollector)
	var patches, glass []request
	for _, n := range team.namespaces() {
		if team.spaces[n].Labels[v1beta1.LabelTenant] != "" {
			patches = append(patches, protectedLabels(team, n)...)
			glass = append(glass, breakGlass(n)...)
		}
	}
	add("tenant-labels", "change labels that rules trust", collector, patches...)
	add("break-glass", "open a namespace past the rules", collector, glass...)
	var owned []request
	for _, r := range platformObjects(team) {
		if r.verb != verbCreate { // it may not create anything
			owned = append(owned, r)
		}
	}
	add("platform-objects", "change or delete objects of the platform", collector, owned...)
	add("namespace-deletion", "delete a team's namespace", collector, guarded("namespace-deletion", inEach(team.namespaces(), func(n string) []request { return []request{remove(core("namespaces"), "", n)} })...)...)
	if team.spaces[team.home].Labels[v1beta1.LabelHomeNamespace] != "" {
		add("home-workloads", "run a pod in the home namespace", s.controller(replicaSets), homePods(team)...)
	}
	if team.kustomization != "" {
		add("home-accounts", "have Flux act as another account in the home namespace", collector, guarded("home-accounts", change("give Kustomization "+team.kustomization+" another account", group(fluxGroup, "v1", "kustomizations"), team.home, team.kustomization,
			map[string]any{"spec": map[string]any{"serviceAccountName": "kustomize-controller"}}))...)
	}
	return results
}

// operator is the operator's account, as the chart names it.
func (s *scene) operator() person {
	return account(roleSystem, types.NamespacedName{Namespace: s.landwaiter.Namespace, Name: s.landwaiter.Name + "-operator"})
}

// accounts tries what Landwaiter's own accounts must not be able to do.
func (s *scene) accounts(ctx context.Context) []Result {
	own := account(roleSystem, s.landwaiter)
	operator := s.operator()
	var results []Result
	for _, c := range []struct {
		id, tries string
		who       person
		requests  []request
	}{
		{"landwaiter-account", "read every Secret, take a token by one, run something or give permissions as Landwaiter itself", own, append(guarded("secrets",
			create(core("secrets"), "Secret", s.landwaiter.Namespace, map[string]any{"type": "kubernetes.io/service-account-token",
				"annotations": map[string]any{"kubernetes.io/service-account.name": s.landwaiter.Name}})),
			mayDo("get", core("secrets"), "", ""), mayDo("list", core("secrets"), "", ""), mayDo("create", core("secrets"), "", ""), mayDo("create", core("serviceaccounts"), "token", ""), mayDo("create", core("pods"), "", ""),
			bind("kube-system", "view"), mayDo("create", group(rbacGroup, "v1", "clusterrolebindings"), "", ""), mayDo("impersonate", core("users"), "", ""), mayDo("manage", group(v1beta1.Group, v1beta1.Version, "tenantlabels"), "", ""),
			mayDo("delete", group(admission, "v1", "validatingadmissionpolicies"), "", ""))},
		{"operator-account", "leave the namespaces of Tenants, or read Secrets, as the operator", operator, append(guarded("operator-guardrail", bind("kube-system", "admin"),
			newNamespace(probeName, map[string]any{podSecurity + "enforce": "restricted"})),
			mayDo("get", core("secrets"), "", ""), mayDo("create", core("serviceaccounts"), "token", ""), mayDo("create", core("pods"), "", ""), mayDo("create", group(rbacGroup, "v1", "roles"), "", ""))},
	} {
		r := s.try(ctx, c.who, c.requests)
		if !slices.Contains(s.accountsThere, c.who.user) {
			if c.who.user == operator.user && slices.Contains(s.accountsThere, own.user) {
				continue // the operator is not installed
			}
			r = Result{Who: c.who.String(), Outcome: NotTried, Why: "there is no such ServiceAccount", Fix: "name Landwaiter's with --landwaiter-account"}
		}
		r.Case, r.Tries = c.id, c.tries
		results = append(results, r)
	}
	return results
}
