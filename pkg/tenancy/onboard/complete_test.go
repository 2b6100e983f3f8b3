package onboard

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

func TestCompleteFillsInTheDefaultsOfTheDefinition(t *testing.T) {
	tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: v1beta1.TenantSpec{HomeNamespace: "web",
		Reconciler: &v1beta1.TenantReconciler{Source: &v1beta1.TenantSource{URL: "oci://registry.example.com/web"}}}}
	got, err := Complete(tenant)
	require.NoError(t, err)
	require.Equal(t, v1beta1.TenantSpec{HomeNamespace: "web", NamespaceReclaimPolicy: v1beta1.NamespaceReclaimPolicyRetain,
		Reconciler: &v1beta1.TenantReconciler{ClusterRole: "landwaiter-reconciler", Path: "./",
			Source: &v1beta1.TenantSource{URL: "oci://registry.example.com/web", Branch: "latest", Interval: "1m"}},
		Isolation:    v1beta1.TenantIsolation{PodSecurity: v1beta1.PodSecurityRestricted, Network: v1beta1.NetworkIsolationDeny},
		Verification: v1beta1.TenantVerification{PolicyLevel: v1beta1.PolicyLevelNamespace},
	}, got.Spec)
	require.Empty(t, tenant.Spec.NamespaceReclaimPolicy, "the Tenant given stays as it is")
}

func TestRefusesTenantsThatCannotBeWithFieldAndFix(t *testing.T) {
	group := func(name string) []v1beta1.TenantSubject {
		return []v1beta1.TenantSubject{{Kind: v1beta1.SubjectGroup, Name: name}}
	}
	for want, change := range map[string]func(*v1beta1.Tenant){
		"Tenant Web: metadata.name: use at most 40 lower-case letters": func(t *v1beta1.Tenant) { t.Name = "Web" },
		"metadata.name: use at most 40": func(t *v1beta1.Tenant) {
			t.Name = "a12345678901234567890123456789012345678901"
		},
		`spec.homeNamespace: "" is not the name of a namespace; use`: func(t *v1beta1.Tenant) {
			t.Spec.HomeNamespace = ""
		},
		"spec.homeNamespace: landwaiter-system is a namespace of the system; name one of the team": func(t *v1beta1.Tenant) {
			t.Spec.HomeNamespace = "landwaiter-system"
		},
		"spec.namespaces[1]: kube-public is a namespace of the system": func(t *v1beta1.Tenant) {
			t.Spec.Namespaces = []string{"a", "kube-public"}
		},
		`spec.namespaces[0]: "a.b" is not the name of a namespace`: func(t *v1beta1.Tenant) {
			t.Spec.Namespaces = []string{"a.b"}
		},
		`spec.namespacePrefix: "web" is not a prefix; use 3 to 40 lower-case letters, digits and dashes that`: func(t *v1beta1.Tenant) {
			t.Spec.NamespacePrefix = "web"
		},
		`spec.namespacePrefix: "w-" is not a prefix`: func(t *v1beta1.Tenant) {
			t.Spec.NamespacePrefix = "w-"
		},
		"spec.namespacePrefix: kube- covers namespaces of the system; choose one of the team": func(t *v1beta1.Tenant) {
			t.Spec.NamespacePrefix = "kube-"
		},
		"spec.namespacePrefix: flux- covers namespaces of the system": func(t *v1beta1.Tenant) {
			t.Spec.NamespacePrefix = "flux-"
		},
		"spec.access.admins[0]: system:masters: names that begin with system: belong to the system; name users": func(t *v1beta1.Tenant) {
			t.Spec.Access.Admins = group("system:masters")
		},
		"spec.access.admins[0]: name is missing; name the group": func(t *v1beta1.Tenant) {
			t.Spec.Access.Admins = group("")
		},
		`spec.access.admins[0]: kind "Robot" is unknown; use User, Group or ServiceAccount`: func(t *v1beta1.Tenant) {
			t.Spec.Access.Admins = []v1beta1.TenantSubject{{Kind: "Robot", Name: "r"}}
		},
		"spec.access.viewers[0]: ServiceAccount r: set namespace for a ServiceAccount, and remove it for a User": func(t *v1beta1.Tenant) {
			t.Spec.Access.Viewers = []v1beta1.TenantSubject{{Kind: v1beta1.SubjectServiceAccount, Name: "r"}}
		},
		"spec.access.viewers[0]: Group g: set namespace for a ServiceAccount": func(t *v1beta1.Tenant) {
			t.Spec.Access.Viewers = []v1beta1.TenantSubject{{Kind: v1beta1.SubjectGroup, Name: "g", Namespace: "x"}}
		},
		"spec.access: developers and viewers have no permissions in the home namespace web, and there is no other namespace; list one in spec.namespaces, or set " +
			"spec.namespacePrefix": func(t *v1beta1.Tenant) { t.Spec.Access.Developers = group("devs") },
		"spec.reconciler.createNamespaces needs spec.namespacePrefix": func(t *v1beta1.Tenant) {
			t.Spec.Reconciler = &v1beta1.TenantReconciler{CreateNamespaces: true}
		},
		`spec.reconciler.serviceAccount: "a/b" is not a name; use lower-case letters`: func(t *v1beta1.Tenant) {
			t.Spec.Reconciler = &v1beta1.TenantReconciler{ServiceAccount: "a/b"}
		},
		"spec.reconciler.serviceAccount: pods that name no account run as default and would have its permissions; name another": func(t *v1beta1.Tenant) {
			t.Spec.Reconciler = &v1beta1.TenantReconciler{ServiceAccount: "default"}
		},
		`spec.reconciler.variables: "a-b" is not the name of a variable; use letters`: func(t *v1beta1.Tenant) {
			t.Spec.Reconciler = &v1beta1.TenantReconciler{Variables: map[string]v1beta1.Variable{"a-b": ""}}
		},
		`spec.reconciler.variablesFrom[0].secretRef.name: "A b" is not the name of a Secret; name one in the home namespace`: func(t *v1beta1.Tenant) {
			t.Spec.Reconciler = &v1beta1.TenantReconciler{VariablesFrom: []v1beta1.VariablesSource{{SecretRef: v1beta1.Reference{Name: "A b"}}}}
		},
		"spec.reconciler.variablesFrom[1].secretRef.name: Secret app is named twice: remove one of the entries": func(t *v1beta1.Tenant) {
			t.Spec.Reconciler = &v1beta1.TenantReconciler{VariablesFrom: []v1beta1.VariablesSource{{SecretRef: v1beta1.Reference{Name: "app"}},
				{SecretRef: v1beta1.Reference{Name: "app"}, Optional: true}}}
		},
		"spec.reconciler.source.url: begin the URL with https://, ssh:// or oci://, and put": func(t *v1beta1.Tenant) {
			t.Spec.Reconciler = &v1beta1.TenantReconciler{Source: &v1beta1.TenantSource{URL: "https://me:pw@example.com/x"}}
		},
		"spec.reconciler.source.url: git@github.com:example/shop.git is the short form of SSH, which Flux does not read: write " +
			"ssh://git@github.com/example/shop.git": func(t *v1beta1.Tenant) {
			t.Spec.Reconciler = &v1beta1.TenantReconciler{Source: &v1beta1.TenantSource{URL: "git@github.com:example/shop.git"}}
		},
		"spec.reconciler.source.url: org@vs-ssh.visualstudio.com:v3/org/p/r is the short form of SSH, which Flux does not read: write " +
			"ssh://org@vs-ssh.visualstudio.com/v3/org/p/r": func(t *v1beta1.Tenant) {
			t.Spec.Reconciler = &v1beta1.TenantReconciler{Source: &v1beta1.TenantSource{URL: "org@vs-ssh.visualstudio.com:v3/org/p/r"}}
		},
		"spec.isolation.quota: pods: -1 is not a limit; name a resource and an amount": func(t *v1beta1.Tenant) {
			t.Spec.Isolation.Quota = map[corev1.ResourceName]resource.Quantity{"pods": resource.MustParse("-1")}
		},
		"spec.isolation.quota: Kubernetes knows no resource pod; did you mean pods?": func(t *v1beta1.Tenant) {
			t.Spec.Isolation.Quota = map[corev1.ResourceName]resource.Quantity{"pod": resource.MustParse("5")}
		},
		"spec.isolation.quota: Kubernetes knows no resource wholly-unknown; use the name of a resource": func(t *v1beta1.Tenant) {
			t.Spec.Isolation.Quota = map[corev1.ResourceName]resource.Quantity{"wholly-unknown": resource.MustParse("5")}
		},
		`spec.isolation.registries[0]: "example.com/web" is not a prefix; write host and path with a slash at the end, such as ` +
			`registry.example.com/web/`: func(t *v1beta1.Tenant) { t.Spec.Isolation.Registries = []string{"example.com/web"} },
		`spec.isolation.podSecurity: "Strict" is unknown; use Restricted, Baseline ` +
			`or Privileged`: func(t *v1beta1.Tenant) { t.Spec.Isolation.PodSecurity = "Strict" },
		`spec.isolation.network: "None" is unknown; use ` +
			`Deny or Open`: func(t *v1beta1.Tenant) { t.Spec.Isolation.Network = "None" },
		`spec.namespaceReclaimPolicy: "Purge" is unknown; use Retain or ` +
			`DeleteCreated`: func(t *v1beta1.Tenant) { t.Spec.NamespaceReclaimPolicy = "Purge" },
		`spec.verification.policyLevel: "Team" is unknown; use Namespace, ` +
			`Tenant or Cluster`: func(t *v1beta1.Tenant) { t.Spec.Verification.PolicyLevel = "Team" },
	} {
		t.Run(want, func(t *testing.T) {
			tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: v1beta1.TenantSpec{HomeNamespace: "web"}}
			change(tenant)
			objects, err := Objects(tenant, Options{})
			require.ErrorContains(t, err, want)
			require.Empty(t, objects)
		})
	}
}

func TestWhatAResourceQuotaLimitsMayBeInAQuota(t *testing.T) {
	for _, name := range append(limited(), "hugepages-2Mi", "requests.hugepages-1Gi", "count/deployments.apps", "requests.nvidia.com/gpu",
		"gold.storageclass.storage.k8s.io/requests.storage") {
		tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: v1beta1.TenantSpec{HomeNamespace: "web"}}
		tenant.Spec.Isolation.Quota = map[corev1.ResourceName]resource.Quantity{corev1.ResourceName(name): resource.MustParse("1")}
		_, err := Complete(tenant)
		require.NoError(t, err, name)
	}
}

func TestATenantWithAPrefixMayHaveDevelopersBeforeItHasNamespaces(t *testing.T) {
	tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: v1beta1.TenantSpec{HomeNamespace: "web", NamespacePrefix: "web-",
		Access: v1beta1.TenantAccess{Developers: []v1beta1.TenantSubject{{Kind: v1beta1.SubjectGroup, Name: "devs"}}}}}
	_, err := Objects(tenant, Options{Namespaces: []string{"web"}})
	require.NoError(t, err)
}

// CodeCommit takes the ID of a key as the user, and older hosts of Azure DevOps the organization; Flux reads it.
func TestSourcesOverSSHMayNameTheirUser(t *testing.T) {
	for _, url := range []string{"ssh://APKAEIBAERJR2EXAMPLE@git-codecommit.eu-west-1.amazonaws.com/v1/repos/shop",
		"ssh://org@vs-ssh.visualstudio.com/v3/org/p/r"} {
		_, err := Complete(&v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "shop"},
			Spec: v1beta1.TenantSpec{HomeNamespace: "shop", Reconciler: &v1beta1.TenantReconciler{Source: &v1beta1.TenantSource{URL: url}}}})
		require.NoError(t, err)
	}
}
