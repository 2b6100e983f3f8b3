package onboard

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// account of the team's Git repository. It is in the home namespace, because anyone who may edit a
// namespace may use every account in it.
func (r *rendering) account() {
	if r.Spec.Reconciler == nil {
		return
	}
	r.add(&corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta: r.meta(r.Spec.HomeNamespace, Account(r.Tenant))})
}

// bindings gives permissions in one namespace. In the home namespace, only the team's admins
// and its account get any.
func (r *rendering) bindings(namespace string) {
	if r.Spec.Reconciler != nil {
		binding := r.Name
		if isDemo(r.Tenant) {
			binding = r.Spec.HomeNamespace
		}
		r.bind(namespace, binding+"-reconciler", r.Spec.Reconciler.ClusterRole, r.reconciler())
	}
	r.bind(namespace, r.Name+"-admins", "admin", subjects(r.Spec.Access.Admins)...)
	if namespace == r.Spec.HomeNamespace {
		r.bind(namespace, RoleReferenceReader, RoleReferenceReader,
			rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: r.landwaiter.Namespace, Name: r.landwaiter.Name})
		return
	}
	r.bind(namespace, r.Name+"-developers", "edit", subjects(r.Spec.Access.Developers)...)
	r.bind(namespace, r.Name+"-viewers", "view", subjects(r.Spec.Access.Viewers)...)
}

// NamespaceMaker returns the name of the ClusterRoleBinding of spec.reconciler.createNamespaces.
func NamespaceMaker(tenant string) string { return tenant + "-namespace-maker" }

// namespaceMaker lets the team's account create namespaces.
func (r *rendering) namespaceMaker() {
	if r.Spec.Reconciler == nil || !r.Spec.Reconciler.CreateNamespaces {
		return
	}
	r.add(&rbacv1.ClusterRoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: r.meta("", NamespaceMaker(r.Name)), RoleRef: clusterRole(RoleNamespaceMaker), Subjects: []rbacv1.Subject{r.reconciler()}})
}

// TenantReader returns the name of the ClusterRole and the ClusterRoleBinding with which a team reads its own Tenant.
func TenantReader(tenant string) string { return tenant + "-tenant-reader" }

// People returns the distinct people to whom spec.access gives a role.
func People(tenant *v1beta1.Tenant) []rbacv1.Subject {
	var people []rbacv1.Subject
	for _, person := range subjects(slices.Concat(tenant.Spec.Access.Admins, tenant.Spec.Access.Developers, tenant.Spec.Access.Viewers)) {
		if !slices.Contains(people, person) {
			people = append(people, person)
		}
	}
	return people
}

// tenantReader lets the team's people, and their commands, read their own Tenant, which shows where their rules are.
func (r *rendering) tenantReader() {
	people := People(r.Tenant)
	if len(people) == 0 {
		return
	}
	name := TenantReader(r.Name)
	r.add(&rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: r.meta("", name),
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{v1beta1.Group}, Resources: []string{"tenants"}, ResourceNames: []string{r.Name},
			Verbs: []string{"get"}}}})
	r.add(&rbacv1.ClusterRoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: r.meta("", name), RoleRef: clusterRole(name), Subjects: people})
}

func (r *rendering) reconciler() rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: r.Spec.HomeNamespace, Name: Account(r.Tenant)}
}

// bind creates no binding without subjects.
func (r *rendering) bind(namespace, name, role string, subjects ...rbacv1.Subject) {
	if len(subjects) == 0 {
		return
	}
	r.add(&rbacv1.RoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: r.meta(namespace, name), RoleRef: clusterRole(role), Subjects: subjects})
}

func clusterRole(name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
}

// subjects has the API group that an API server would default.
func subjects(people []v1beta1.TenantSubject) []rbacv1.Subject {
	made := make([]rbacv1.Subject, len(people))
	for i, person := range people {
		made[i] = rbacv1.Subject{Kind: string(person.Kind), Name: person.Name, Namespace: person.Namespace}
		if person.Kind != v1beta1.SubjectServiceAccount {
			made[i].APIGroup = rbacv1.GroupName
		}
	}
	return made
}
