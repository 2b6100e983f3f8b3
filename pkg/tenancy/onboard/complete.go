package onboard

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// maxName bounds a Tenant's name, which begins the names of its objects.
const maxName = 40

// Complete returns a copy of a Tenant with the defaults of its CRD. A Tenant from a file has
// not been validated by an API server, so Complete refuses what that would refuse, and
// settings that would have no effect.
func Complete(tenant *v1beta1.Tenant) (*v1beta1.Tenant, error) {
	c := tenant.DeepCopy()
	c.Spec.NamespaceReclaimPolicy = cmp.Or(c.Spec.NamespaceReclaimPolicy, v1beta1.NamespaceReclaimPolicyRetain)
	c.Spec.Isolation.PodSecurity = cmp.Or(c.Spec.Isolation.PodSecurity, v1beta1.PodSecurityRestricted)
	c.Spec.Isolation.Network = cmp.Or(c.Spec.Isolation.Network, v1beta1.NetworkIsolationDeny)
	c.Spec.Verification.PolicyLevel = cmp.Or(c.Spec.Verification.PolicyLevel, v1beta1.PolicyLevelNamespace)
	if reconciler := c.Spec.Reconciler; reconciler != nil {
		reconciler.ClusterRole = cmp.Or(reconciler.ClusterRole, RoleReconciler)
		reconciler.Path = cmp.Or(reconciler.Path, "./")
		if source := reconciler.Source; source != nil {
			source.Interval = cmp.Or(source.Interval, "1m")
			branch := "main"
			if isArtifact(source) {
				branch = "latest"
			}
			source.Branch = cmp.Or(source.Branch, branch)
		}
	}
	for _, check := range []func(*v1beta1.Tenant) error{checkNames, checkPeople, checkReconciler, checkIsolation, checkChoices, checkForm} {
		if err := check(c); err != nil {
			return nil, fmt.Errorf("%s %s: %w", v1beta1.KindTenant, tenant.Name, err)
		}
	}
	return c, nil
}

func checkNames(t *v1beta1.Tenant) error {
	if len(t.Name) > maxName || !isLabel(t.Name) {
		return fmt.Errorf("metadata.name: use at most %d lower-case letters, digits and dashes, beginning and ending with a letter or digit",
			maxName)
	}
	if err := checkNamespace("spec.homeNamespace", t.Spec.HomeNamespace); err != nil {
		return err
	}
	for i, namespace := range t.Spec.Namespaces {
		if err := checkNamespace(fmt.Sprintf("spec.namespaces[%d]", i), namespace); err != nil {
			return err
		}
	}
	prefix := t.Spec.NamespacePrefix
	switch {
	case prefix == "":
		return nil
	case len(prefix) < 3 || len(prefix) > maxName || !strings.HasSuffix(prefix, "-") || !isLabel(prefix+"x"):
		return fmt.Errorf("spec.namespacePrefix: %q is not a prefix; use 3 to %d lower-case letters, digits and dashes that end with a dash, "+
			"such as %s-", prefix, maxName, t.Name)
	case strings.HasPrefix(prefix, "kube-") ||
		slices.ContainsFunc(systemNamespaces(), func(n string) bool { return strings.HasPrefix(n, prefix) }):
		return fmt.Errorf("spec.namespacePrefix: %s covers namespaces of the system; choose one of the team", prefix)
	}
	return nil
}

func checkNamespace(field, name string) error {
	if !isLabel(name) {
		return fmt.Errorf("%s: %q is not the name of a namespace; use at most 63 lower-case letters, digits and dashes", field, name)
	}
	if IsSystemNamespace(name) {
		return fmt.Errorf("%s: %s is a namespace of the system; name one of the team", field, name)
	}
	return nil
}

// IsSystemNamespace reports whether no Tenant may have a namespace of this name.
func IsSystemNamespace(name string) bool {
	return strings.HasPrefix(name, "kube-") || slices.Contains(systemNamespaces(), name)
}

// systemNamespaces are those that do not begin with kube-.
func systemNamespaces() []string {
	return []string{metav1.NamespaceDefault, "flux-system", "gatekeeper-system", "landwaiter-system"}
}

func isLabel(name string) bool { return len(validation.IsDNS1123Label(name)) == 0 }

func checkPeople(t *v1beta1.Tenant) error {
	people := t.Spec.Access
	for _, list := range []struct {
		field  string
		people []v1beta1.TenantSubject
	}{{"admins", people.Admins}, {"developers", people.Developers}, {"viewers", people.Viewers}} {
		for i, person := range list.people {
			if err := checkSubject(person); err != nil {
				return fmt.Errorf("spec.access.%s[%d]: %w", list.field, i, err)
			}
		}
	}
	if alone(t) && len(people.Developers)+len(people.Viewers) > 0 {
		return fmt.Errorf("spec.access: developers and viewers have no permissions in the home namespace %s, and there is no other namespace; "+
			"list one in spec.namespaces, or set spec.namespacePrefix", t.Spec.HomeNamespace)
	}
	return nil
}

func checkSubject(person v1beta1.TenantSubject) error {
	known := []v1beta1.SubjectKind{v1beta1.SubjectUser, v1beta1.SubjectGroup, v1beta1.SubjectServiceAccount}
	switch {
	case !slices.Contains(known, person.Kind):
		return fmt.Errorf("kind %q is unknown; use User, Group or ServiceAccount", person.Kind)
	case person.Name == "":
		return fmt.Errorf("name is missing; name the %s", strings.ToLower(string(person.Kind)))
	case strings.HasPrefix(person.Name, "system:"):
		return fmt.Errorf("%s: names that begin with system: belong to the system; name users and groups of the team", person.Name)
	case (person.Kind == v1beta1.SubjectServiceAccount) != (person.Namespace != ""):
		return fmt.Errorf("%s %s: set namespace for a ServiceAccount, and remove it for a User or a Group", person.Kind, person.Name)
	case person.Namespace != "" && !isLabel(person.Namespace):
		return fmt.Errorf("namespace %q of ServiceAccount %s is not the name of a namespace", person.Namespace, person.Name)
	}
	return nil
}

func checkReconciler(t *v1beta1.Tenant) error {
	reconciler := t.Spec.Reconciler
	if reconciler == nil {
		return nil
	}
	if reconciler.ServiceAccount != "" && !isLabel(reconciler.ServiceAccount) {
		return fmt.Errorf("spec.reconciler.serviceAccount: %q is not a name; use lower-case letters, digits and dashes",
			reconciler.ServiceAccount)
	}
	if reconciler.ServiceAccount == "default" {
		return fmt.Errorf("spec.reconciler.serviceAccount: pods that name no account run as default and would have its permissions; name another")
	}
	if reconciler.CreateNamespaces && t.Spec.NamespacePrefix == "" {
		return fmt.Errorf("spec.reconciler.createNamespaces needs spec.namespacePrefix: without it there is no namespace that the " +
			"account could make")
	}
	// Values that Flux would refuse at every reconciliation, long after this was applied.
	name := regexp.MustCompile(`^[_a-zA-Z][_a-zA-Z0-9]*$`)
	for variable := range reconciler.Variables {
		if !name.MatchString(variable) {
			return fmt.Errorf("spec.reconciler.variables: %q is not the name of a variable; use letters, digits and underscores, and begin "+
				"with no digit", variable)
		}
	}
	for i, secret := range reconciler.VariablesFrom {
		field := fmt.Sprintf("spec.reconciler.variablesFrom[%d].secretRef.name", i)
		if len(validation.IsDNS1123Subdomain(secret.SecretRef.Name)) > 0 {
			return fmt.Errorf("%s: %q is not the name of a Secret; name one in the home namespace", field, secret.SecretRef.Name)
		}
		if slices.ContainsFunc(reconciler.VariablesFrom[:i], func(other v1beta1.VariablesSource) bool {
			return other.SecretRef == secret.SecretRef
		}) {
			return fmt.Errorf("%s: Secret %s is named twice: remove one of the entries", field, secret.SecretRef.Name)
		}
	}
	if reconciler.Source == nil {
		return nil
	}
	if url := reconciler.Source.URL; !regexp.MustCompile(`^(https|ssh|oci)://[^@ ]+$|^ssh://[A-Za-z0-9._-]+@[^@ ]+$`).MatchString(url) {
		if better := SSHURL(url); better != "" {
			return fmt.Errorf("spec.reconciler.source.url: %s is the short form of SSH, which Flux does not read: write %s", url, better)
		}
		return fmt.Errorf("spec.reconciler.source.url: begin the URL with https://, ssh:// or oci://, and put credentials into source.secretRef")
	}
	if every, err := reconciler.Source.Interval.Parse(); err != nil || every <= 0 {
		return fmt.Errorf("spec.reconciler.source.interval: %q is not a duration of more than 0; write one such as 1m",
			reconciler.Source.Interval)
	}
	return nil
}

// limited returns the resources without a slash in their names that a ResourceQuota limits.
func limited() []string {
	return []string{"cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory", "requests.storage", "requests.ephemeral-storage",
		"limits.cpu", "limits.memory", "limits.ephemeral-storage",
		"pods", "services", "services.nodeports", "services.loadbalancers", "replicationcontrollers", "resourcequotas", "secrets", "configmaps",
		"persistentvolumeclaims"}
}

// quotaCounts reports whether an API server accepts a name in a ResourceQuota: it knows all names without a
// slash.
func quotaCounts(name corev1.ResourceName) bool {
	text := string(name)
	return strings.Contains(text, "/") || strings.HasPrefix(strings.TrimPrefix(text, "requests."), corev1.ResourceHugePagesPrefix) ||
		slices.Contains(limited(), text)
}

func checkIsolation(t *v1beta1.Tenant) error {
	for name, quantity := range t.Spec.Isolation.Quota {
		if quantity.Sign() < 0 || len(validation.IsQualifiedName(string(name))) > 0 {
			return fmt.Errorf("spec.isolation.quota: %s: %s is not a limit; name a resource and an amount that is not negative, such as "+
				"pods: \"50\"", name, quantity.String())
		}
		if !quotaCounts(name) {
			known := "use the name of a resource that a ResourceQuota limits, such as pods or requests.cpu, or count/RESOURCE.GROUP"
			if plural := string(name) + "s"; slices.Contains(limited(), plural) {
				known = "did you mean " + plural + "?"
			}
			return fmt.Errorf("spec.isolation.quota: Kubernetes knows no resource %s; %s", name, known)
		}
	}
	prefix := regexp.MustCompile(`^[a-z0-9][-a-z0-9.]*(:[0-9]+)?/([-a-z0-9._/]*/)?$`)
	for i, registry := range t.Spec.Isolation.Registries {
		if !prefix.MatchString(registry) {
			return fmt.Errorf("spec.isolation.registries[%d]: %q is not a prefix; write host and path with a slash at the end, such as "+
				"registry.example.com/%s/", i, registry, t.Name)
		}
	}
	return nil
}

func checkChoices(t *v1beta1.Tenant) error {
	for _, choice := range []struct {
		field, value string
		allowed      []string
	}{
		{"spec.namespaceReclaimPolicy", string(t.Spec.NamespaceReclaimPolicy), []string{"Retain", "DeleteCreated"}},
		{"spec.isolation.podSecurity", string(t.Spec.Isolation.PodSecurity), []string{"Restricted", "Baseline", "Privileged"}},
		{"spec.isolation.network", string(t.Spec.Isolation.Network), []string{"Deny", "Open"}},
		{"spec.verification.policyLevel", string(t.Spec.Verification.PolicyLevel), []string{"Namespace", "Tenant", "Cluster"}},
	} {
		if !slices.Contains(choice.allowed, choice.value) {
			return fmt.Errorf("%s: %q is unknown; use %s", choice.field, choice.value, either(choice.allowed))
		}
	}
	return nil
}

// either lists words: a, b or c.
func either(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// shortSSH matches the form of an SSH URL that scp and Git take: git@github.com:example/shop.git.
var shortSSH = regexp.MustCompile(`^([A-Za-z0-9._-]+)@([a-zA-Z0-9][-a-zA-Z0-9.]*):([^/:@ ][^:@ ]*)$`)

// SSHURL returns the URL of a repository in the short form of SSH, "" for everything else.
func SSHURL(repository string) string {
	found := shortSSH.FindStringSubmatch(repository)
	if found == nil {
		return ""
	}
	return "ssh://" + found[1] + "@" + found[2] + "/" + found[3]
}
