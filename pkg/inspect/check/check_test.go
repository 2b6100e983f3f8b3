package check_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/config"
	"github.com/landwaiter/landwaiter/pkg/inspect/check"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
	"github.com/landwaiter/landwaiter/pkg/server/provider"
)

func TestASoundInstallationHasNoFindings(t *testing.T) {
	report := check.Examine(sound(t), schema.Embedded())
	require.Empty(t, report.Findings)
	require.Len(t, report.Unchecked, 1)
	require.True(t, report.Unchecked[0].Unpublished, "what nobody published is not known")
}

// Each case breaks a sound installation in one place. The command is what a person runs.
func TestFindsWhatIsBroken(t *testing.T) {
	const hook, manager, constraint = "kubectl patch validatingwebhookconfiguration theirs --type=json --patch=",
		"kubectl patch deployment gatekeeper-manager --namespace=policy --type=json --patch=",
		"kubectl patch verifiedimages.constraints.gatekeeper.sh verified-images --type="
	guard := func(i *check.Inventory) *admissionv1.ValidatingWebhook { return &i.Validating[0].Webhooks[1] }
	spec := func(t *testing.T, i *check.Inventory, text string) {
		i.Constraints[0].Object["spec"] = object(t, text).Object
	}
	for name, c := range map[string]struct {
		change  func(*testing.T, *check.Inventory)
		want    string
		command string
	}{
		"no webhook": {func(_ *testing.T, i *check.Inventory) { i.Validating, i.Exempt = nil, []string{"policy"} }, check.NoGatekeeper,
			"helm upgrade gatekeeper gatekeeper/gatekeeper --install"},
		"a webhook that fails open": {func(_ *testing.T, i *check.Inventory) { guard(i).FailurePolicy = pointer(admissionv1.Ignore) }, check.WebhookFailsOpen,
			hook + `'[{"op":"test","path":"/webhooks/1/name","value":"validation.gatekeeper.sh"},{"op":"add","path":"/webhooks/1/failurePolicy","value":"Fail"}]'`},
		"a label that fails open": {func(_ *testing.T, i *check.Inventory) {
			i.Validating[0].Webhooks[2].FailurePolicy = pointer(admissionv1.Ignore)
		}, check.WebhookFailsOpen, "/webhooks/2/failurePolicy"},
		"a webhook as short as Gatekeeper waits": {func(_ *testing.T, i *check.Inventory) { guard(i).TimeoutSeconds = pointer(int32(3)) }, check.WebhookTimeout,
			`"/webhooks/1/timeoutSeconds","value":4}]`},
		"no ephemeral containers": {func(_ *testing.T, i *check.Inventory) { guard(i).Rules[0].Resources = []string{"*"} }, check.WebhookRules,
			"/webhooks/1/rules/-"},
		"no updates": {func(_ *testing.T, i *check.Inventory) {
			guard(i).Rules[0].Operations = []admissionv1.OperationType{"CREATE"}
		}, check.WebhookRules, "/webhooks/1/rules/-"},
		"cluster scope": {func(_ *testing.T, i *check.Inventory) { guard(i).Rules[0].Scope = pointer(admissionv1.ClusterScope) }, check.WebhookRules,
			"/webhooks/1/rules/-"},
		"a namespace by its name": {func(_ *testing.T, i *check.Inventory) {
			guard(i).
				NamespaceSelector = &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: corev1.LabelMetadataName, Operator: "NotIn", Values: []string{"team-a", "policy"}}}}
		}, check.WebhookNamespaces, `"values":["policy"]`},
		"namespaces without a label that an exempt one has": {func(_ *testing.T, i *check.Inventory) {
			i.Namespaces[0].Labels = map[string]string{"verify": "yes"}
			guard(i).NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"verify": "yes"}}
		}, check.WebhookNamespaces,
			`"value":{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["kube-node-lease","landwaiter-system","policy"]}]}`},
		"namespaces without a label": {func(_ *testing.T, i *check.Inventory) {
			guard(i).NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"verify": "yes"}}
		}, check.WebhookNamespaces, "/webhooks/1/namespaceSelector"},
		"pods by label": {func(_ *testing.T, i *check.Inventory) {
			guard(i).ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"verify": "yes"}}
		}, check.WebhookObjects, `"/webhooks/1/objectSelector","value":{}`},
		"a condition of somebody": {func(_ *testing.T, i *check.Inventory) {
			guard(i).MatchConditions = []admissionv1.MatchCondition{{Name: "x", Expression: "false"}}
		}, check.WebhookConditions, `"/webhooks/1/matchConditions","value":[]`},
		"a condition of the other webhook": {func(t *testing.T, i *check.Inventory) {
			guard(i).MatchConditions = mutatingConditions(t)
		}, check.WebhookConditions, `"/webhooks/1/matchConditions","value":[{"name":"not-needed-to-start"`},
		"a CA that ends": {func(t *testing.T, i *check.Inventory) {
			guard(i).ClientConfig.CABundle = authority(t, 29*24*time.Hour)
		}, check.WebhookCA, "kubectl delete secret gatekeeper-webhook-server-cert --namespace=policy"},
		"an ignored namespace": {func(_ *testing.T, i *check.Inventory) {
			i.Namespaces[1].Labels = map[string]string{"admission.gatekeeper.sh/ignore": ""}
		}, check.NamespaceIgnored, "kubectl label namespace team-a admission.gatekeeper.sh/ignore-"},
		"a long cache": {func(_ *testing.T, i *check.Inventory) {
			i.Gatekeepers[0].Spec = container("--external-data-provider-response-cache-ttl", "1h", "--max-serving-threads=64")
		}, check.CacheTTL,
			manager + `'[{"op":"test","path":"/spec/template/spec/containers/0/args/1","value":"1h"},{"op":"replace","path":"/spec/template/spec/containers/0/args/1",` +
				`"value":"10s"}]'`},
		"Gatekeeper's own cache": {func(_ *testing.T, i *check.Inventory) {
			i.Gatekeepers[0].Spec = container("--log-level=INFO", "--max-serving-threads=64")
		}, check.CacheTTL, `"op":"add","path":"/spec/template/spec/containers/0/args/-"`},
		"threads as processors": {func(_ *testing.T, i *check.Inventory) {
			i.Gatekeepers[0].Spec.Template.Spec.Containers[0].Args[3] = "--max-serving-threads=-1"
		}, check.ServingThreads, `"/spec/template/spec/containers/0/args/3","value":"--max-serving-threads=64"}]'`},
		"few threads": {func(_ *testing.T, i *check.Inventory) {
			i.Gatekeepers[0].Spec.Template.Spec.Containers[0].Args[3] = "--max-serving-threads=31"
		}, check.ServingThreads, `"value":"--max-serving-threads=64"}]'`},
		"Gatekeeper's own threads": {func(_ *testing.T, i *check.Inventory) {
			args := &i.Gatekeepers[0].Spec.Template.Spec.Containers[0].Args
			*args = (*args)[:3]
		}, check.ServingThreads, `"op":"add","path":"/spec/template/spec/containers/0/args/-","value":"--max-serving-threads=64"`},
		"keys of the cluster that somebody may replace": {func(_ *testing.T, i *check.Inventory) {
			i.Resources = append(i.Resources,
				&v1beta1.ClusterTrustStore{ObjectMeta: named("", "keys"), Spec: v1beta1.TrustStoreSpec{Type: v1beta1.TrustStoreTypePublicKeys,
					Source: v1beta1.TrustSource{ConfigMapKeyRef: &v1beta1.KeyReference{Name: "keys", Key: "cosign.pub"}}}})
			i.Roles = append(i.Roles,
				rbacv1.Role{ObjectMeta: named("landwaiter-system", "maps"),
					Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"update"}},
						// a role of a namespace gives no permissions for cluster resources
						{APIGroups: []string{v1beta1.Group}, Resources: []string{"*"}, Verbs: []string{"*"}}}})
			i.RoleBindings = append(i.RoleBindings,
				rbacv1.RoleBinding{ObjectMeta: named("landwaiter-system", "maps"), RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "maps"},
					Subjects: []rbacv1.Subject{{Kind: "User", Name: "eve"}}})
		}, check.TrustWithinReach, "kubectl get configmap keys --namespace=landwaiter-system"},
		"external data off": {func(_ *testing.T, i *check.Inventory) {
			i.Gatekeepers[0].Spec.Template.Spec.Containers[0].Args = append(i.Gatekeepers[0].Spec.Template.Spec.Containers[0].Args, "--enable-external-data=false")
		}, check.ExternalDataDisabled, "--enable-external-data=true"},
		"an exemptable suffix": {func(_ *testing.T, i *check.Inventory) {
			i.Gatekeepers[0].Spec.Template.Spec.Containers[0].Args = append(i.Gatekeepers[0].Spec.Template.Spec.Containers[0].Args, "--exempt-namespace-suffix", "a")
		}, check.ExemptableNamespaces, `"/spec/template/spec/containers/0/args/4","value":"--exempt-namespace"`},
		"an exemptable namespace beside one that may be": {func(_ *testing.T, i *check.Inventory) {
			i.Gatekeepers[0].Spec.Template.Spec.Containers[0].Args = append(i.Gatekeepers[0].Spec.Template.Spec.Containers[0].Args, "--exempt-namespace=team-a")
		}, check.ExemptableNamespaces, `{"op":"replace","path":"/spec/template/spec/containers/0/args/4","value":"--exempt-namespace=policy"}]`},
		"an exemptable namespace alone": {func(_ *testing.T, i *check.Inventory) {
			i.Gatekeepers[0].Spec.Template.Spec.Containers[0].Args[2] = "--exempt-namespace=team-a"
		}, check.ExemptableNamespaces,
			`[{"op":"test","path":"/spec/template/spec/containers/0/args/2","value":"--exempt-namespace=team-a"},{"op":"remove",` +
				`"path":"/spec/template/spec/containers/0/args/2"}]`},
		"an exemptable prefix alone, in two words": {func(_ *testing.T, i *check.Inventory) {
			args := &i.Gatekeepers[0].Spec.Template.Spec.Containers[0].Args
			*args = append((*args)[:2], "--exempt-namespace-prefix", "team-", "--max-serving-threads=64")
		}, check.ExemptableNamespaces,
			`{"op":"remove","path":"/spec/template/spec/containers/0/args/3"},{"op":"test","path":"/spec/template/spec/containers/0/args/2",` +
				`"value":"--exempt-namespace-prefix"},{"op":"remove","path":"/spec/template/spec/containers/0/args/2"}]`},
		"no audit": {func(_ *testing.T, i *check.Inventory) { i.Gatekeepers[0].Spec.Replicas = pointer(int32(0)) }, check.AuditOff,
			"kubectl scale deployment gatekeeper-manager --namespace=policy --replicas=1"},
		"a Config that excludes": {func(t *testing.T, i *check.Inventory) {
			i.Configs = []unstructured.Unstructured{
				object(t, `{metadata: {namespace: policy, name: config}, spec: {match: [{processes: [webhook], excludedNamespaces: ["team-*", kube-system]}, {processes: `+
					`[audit], excludedNamespaces: [team-a]}]}}`)}
		}, check.ConfigIgnores, `[{"excludedNamespaces":["kube-system"],"processes":["webhook"]},{"excludedNamespaces":["team-a"],"processes":["audit"]}]`},
		"a short Provider": {func(_ *testing.T, i *check.Inventory) { set(i, 2, "timeout") }, check.ProviderTimeout, `{"spec":{"timeout":3}}`},
		"a slow Landwaiter": {func(_ *testing.T, i *check.Inventory) {
			i.Landwaiters[0].Spec.Template.Spec.Containers[0].Args[2], guard(i).TimeoutSeconds = "--timeout=mutate=1s,verify=4s", nil
		}, check.ProviderTimeout, `{"spec":{"timeout":5}}`},
		"plain HTTP":              {theirs("http://landwaiter/v1/verify"), check.ProviderURL, `"https://landwaiter.landwaiter-system.svc:443/v1/verify"`},
		"a Provider that mutates": {theirs("https://landwaiter.landwaiter-system.svc:443/v1/mutate"), check.ProviderURL, `svc:443/v1/verify`},
		"another Service": {theirs("https://landwaiter.team-a.svc:443/v1/verify"), check.ProviderURL,
			`"https://landwaiter.landwaiter-system.svc:443/v1/verify"`},
		"another Service, by a value": {func(_ *testing.T, i *check.Inventory) { set(i, "https://landwaiter.team-a.svc:443/v1/verify", "url") }, check.ProviderURL,
			"--set provider.url="},
		"no CA": {func(_ *testing.T, i *check.Inventory) { set(i, "", "caBundle") }, check.ProviderCA,
			`kubectl get secret landwaiter-tls --namespace=landwaiter-system`},
		"another CA than served": {func(t *testing.T, i *check.Inventory) {
			i.Facts = &resource.Facts{Certificate: string(authority(t, time.Hour))}
		}, check.ProviderCA, `kubectl patch provider.externaldata.gatekeeper.sh landwaiter-verdict`},
		"another CA, and it is given": {func(t *testing.T, i *check.Inventory) {
			c := &i.Landwaiters[0].Spec.Template.Spec.Containers[0]
			c.Args = append(c.Args, "--provider-ca=/etc/landwaiter/provider-ca/ca.crt")
			set(i, "", "caBundle")
		}, check.ProviderCA, "--set-file tls.caBundle=ca.crt"},
		"a Secret that somebody else writes": {func(_ *testing.T, i *check.Inventory) {
			i.Providers[0].SetAnnotations(map[string]string{v1beta1.AnnotationCertificateProblem: "somebody changes it again and again"})
		}, check.CertificateContested, "--set tls.secretName=landwaiter-own-tls"},
		"a Provider that Landwaiter has not made": {func(_ *testing.T, i *check.Inventory) { i.Providers = i.Providers[1:] }, check.ProviderMissing,
			"helm upgrade landwaiter charts/landwaiter"},
		"a Provider that is not there": {func(t *testing.T, i *check.Inventory) { spec(t, i, `{parameters: {provider: nowhere}}`) }, check.ProviderMissing,
			`{"spec":{"parameters":{"provider":"landwaiter-verdict"}}}`},
		"no template": {func(_ *testing.T, i *check.Inventory) { i.Templates = nil }, check.NoTemplate,
			"library/verified-images/template.yaml"},
		"no constraint": {func(_ *testing.T, i *check.Inventory) { i.Constraints = nil }, check.NoConstraint,
			"library/verified-images/samples/constraint-dryrun.yaml"},
		"a rehearsal": {func(t *testing.T, i *check.Inventory) { spec(t, i, `{enforcementAction: dryrun}`) }, check.NothingDenied,
			constraint + `merge --patch='{"spec":{"enforcementAction":"deny","scopedEnforcementActions":null}}'`},
		"a rehearsal by its name": {func(t *testing.T, i *check.Inventory) {
			i.Constraints[0] = object(t, `{metadata: {name: verified-images-dryrun}, spec: {enforcementAction: dryrun}}`)
		}, check.NothingDenied, "kubectl apply --filename=library/verified-images/samples/constraint.yaml"},
		"two rehearsals": {func(t *testing.T, i *check.Inventory) {
			spec(t, i, `{enforcementAction: warn}`)
			i.Constraints = append([]unstructured.Unstructured{object(t, `{metadata: {name: verified-images-dryrun}, spec: {enforcementAction: dryrun}}`)},
				i.Constraints...)
		}, check.NothingDenied, constraint + "merge"},
		"denied by the audit only": {func(t *testing.T, i *check.Inventory) {
			spec(t, i, `{enforcementAction: scoped, scopedEnforcementActions: [{action: deny, enforcementPoints: [{name: audit.gatekeeper.sh}]}]}`)
		}, check.NothingDenied, constraint},
		"Deployments only": {func(t *testing.T, i *check.Inventory) {
			spec(t, i, `{match: {kinds: [{apiGroups: [apps], kinds: ["*"]}]}}`)
		}, check.ConstraintKinds, `"/spec/match/kinds/-"`},
		"an excluded namespace": {func(t *testing.T, i *check.Inventory) { spec(t, i, `{match: {excludedNamespaces: [policy, team-a]}}`) }, check.ConstraintExempt,
			constraint + `json --patch='[{"op":"replace","path":"/spec/match/excludedNamespaces","value":["policy"]}]'`},
		"chosen namespaces": {func(t *testing.T, i *check.Inventory) {
			spec(t, i, `{match: {namespaces: [team-a], labelSelector: {matchLabels: {a: b}}}}`)
		}, check.ConstraintExempt, `[{"op":"remove","path":"/spec/match/namespaces"},{"op":"remove","path":"/spec/match/labelSelector"}]`},
		"exempt images": {func(t *testing.T, i *check.Inventory) {
			i.ExemptImages = []string{"auto"}
			spec(t, i, `{parameters: {exemptImages: [auto, "registry.example.com/*"]}}`)
		}, check.ImagesExempt, constraint + `json --patch='[{"op":"replace","path":"/spec/parameters/exemptImages","value":["auto"]}]'`},
		"only exempt images": {func(t *testing.T, i *check.Inventory) {
			spec(t, i, `{parameters: {exemptImages: ["registry.example.com/*"]}}`)
		}, check.ImagesExempt, `[{"op":"remove","path":"/spec/parameters/exemptImages"}]`},
		"nobody who answers": {func(_ *testing.T, i *check.Inventory) { i.Landwaiters = nil }, check.NoLandwaiter,
			"helm upgrade landwaiter charts/landwaiter --install"},
		"one replica": {func(_ *testing.T, i *check.Inventory) { i.Landwaiters[0].Spec.Replicas = nil }, check.SingleReplica,
			"kubectl scale deployment landwaiter --namespace=landwaiter-system --replicas=2"},
		"any client": {func(_ *testing.T, i *check.Inventory) {
			i.Landwaiters[0].Spec.Template.Spec.Containers[0].Args[3] = "--insecure-no-client-auth"
		}, check.NoClientAuth, `"--client-ca=secret/policy/gatekeeper-webhook-server-cert"`},
		"no CRD": {func(_ *testing.T, i *check.Inventory) { i.Definitions = i.Definitions[1:] }, check.CRDsMissing, "--kustomize=config/crd"},
		"a lease that nobody renews": {func(_ *testing.T, i *check.Inventory) { i.Lease.Spec.RenewTime.Time = now().Add(-2 * time.Minute) }, check.LeaseStale,
			"kubectl rollout restart deployment landwaiter"},
		"no lease": {func(_ *testing.T, i *check.Inventory) { i.Lease = nil }, check.LeaseStale, "kubectl rollout restart deployment landwaiter"},
		"a clock that differs": {func(_ *testing.T, i *check.Inventory) {
			i.Facts = &resource.Facts{List: []resource.Fact{{ID: resource.FactClockSkew, Bad: true, Message: "x"}}}
		}, check.ClockSkew, "kubectl rollout restart deployment landwaiter"},
		"everybody": {func(_ *testing.T, i *check.Inventory) {
			i.ClusterRoles = []rbacv1.ClusterRole{
				{ObjectMeta: named("", "all"), Rules: []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}}}
			i.ClusterRoleBindings = []rbacv1.ClusterRoleBinding{
				{ObjectMeta: named("", "open"), RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "all"},
					Subjects: []rbacv1.Subject{{Kind: "Group", Name: "ops"}, {Kind: "Group", Name: "system:authenticated"}}}}
		}, check.BroadAccess, `kubectl patch clusterrolebinding open --type=json ` +
			`--patch='[{"op":"test","path":"/subjects/1/name","value":"system:authenticated"},{"op":"remove","path":"/subjects/1"}]'`},
	} {
		t.Run(name, func(t *testing.T) {
			i := sound(t)
			c.change(t, i)
			report := check.Examine(i, schema.Embedded())
			var found []string
			for _, f := range report.Findings {
				found = append(found, f.ID)
				require.NotEmpty(t, f.Message)
				require.NotEmpty(t, f.Why)
			}
			require.Equal(t, []string{c.want}, found)
			require.Contains(t, report.Findings[0].Command, c.command)
		})
	}
}

// An image that one constraint leaves out is verified for another that matches the same pods.
func TestExemptImagesAreOnlyThoseThatNoConstraintAsksAbout(t *testing.T) {
	for name, c := range map[string]struct {
		specs    []string
		intended []string
		want     string
	}{
		"another constraint asks about all":  {[]string{`{parameters: {exemptImages: [a]}}`, `{}`}, nil, ""},
		"another constraint only warns":      {[]string{`{parameters: {exemptImages: [a]}}`, `{enforcementAction: warn}`}, nil, "a"},
		"another constraint leaves out less": {[]string{`{parameters: {exemptImages: [a, b]}}`, `{parameters: {exemptImages: [b]}}`}, nil, "b"},
		"another constraint is for other pods": {[]string{`{parameters: {exemptImages: [a]}}`, `{match: {labelSelector: {matchLabels: {x: "y"}}}}`},
			nil, "a"},
		"another constraint is for other kinds": {[]string{`{parameters: {exemptImages: [a]}}`, `{match: {kinds: [{apiGroups: [apps], kinds: ["*"]}]}}`},
			nil, "a"},
		"all are intended": {[]string{`{parameters: {exemptImages: [a, "b/*"]}}`}, []string{"a", "b/*"}, ""},
		"a constraint that only warns leaves some out": {[]string{`{}`, `{enforcementAction: warn, parameters: {exemptImages: [a]}}`}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			i := sound(t)
			i.Only, i.ExemptImages, i.Constraints = []string{check.ImagesExempt}, c.intended, nil
			for _, spec := range c.specs {
				i.Constraints = append(i.Constraints, object(t, `{metadata: {name: c}, spec: `+spec+`}`))
			}
			said := ""
			for _, f := range check.Examine(i, schema.Embedded()).Findings {
				if f.ID == check.ImagesExempt {
					require.Equal(t, resource.Warning, f.Severity)
					said = strings.TrimPrefix(f.Message, "spec.parameters.exemptImages leaves out ")
				}
			}
			require.Equal(t, c.want, said)
		})
	}
}

// Without a replica that answers, every new pod of the cluster is refused: that is said first,
// whatever else is wrong.
func TestNoReplicaThatAnswersIsTheWorst(t *testing.T) {
	for name, c := range map[string]struct {
		status  appsv1.DeploymentStatus
		want    string
		what    string
		command string
	}{
		"none is ready": {appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2, UnavailableReplicas: 2}, "NoReplicas", "none of its 2 replicas is ready",
			"kubectl rollout restart deployment landwaiter --namespace=landwaiter-system"},
		"none is wanted": {appsv1.DeploymentStatus{}, "NoReplicas", "it has 0 replicas",
			"kubectl scale deployment landwaiter --namespace=landwaiter-system --replicas=2"},
		"one is ready": {appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2, ReadyReplicas: 1}, check.ConfigIgnores, "it excludes", ""},
		// Nobody has said yet how many there are.
		"nobody has looked": {appsv1.DeploymentStatus{}, check.ConfigIgnores, "it excludes", ""},
		"nobody is there":   {appsv1.DeploymentStatus{}, check.NoLandwaiter, "no Deployment", "helm upgrade landwaiter"},
	} {
		t.Run(name, func(t *testing.T) {
			i := sound(t)
			i.Configs = []unstructured.Unstructured{
				object(t, `{metadata: {namespace: policy, name: config}, spec: {match: [{processes: [webhook], excludedNamespaces: [team-a]}]}}`)}
			i.Landwaiters[0].Status = c.status
			switch name {
			case "none is wanted":
				i.Landwaiters[0].Spec.Replicas = pointer(int32(0))
			case "nobody is there":
				i.Landwaiters = nil
			}
			first := check.Examine(i, schema.Embedded()).Findings[0]
			require.Equal(t, c.want, first.ID)
			require.Equal(t, resource.Error, first.Severity)
			require.Contains(t, first.Message, c.what)
			require.Contains(t, first.Command, c.command)
			if c.want != check.ConfigIgnores {
				require.Contains(t, first.Why, "every new pod is denied")
			}
		})
	}
}

// theirs leads the Provider to a URL, and has Landwaiter keep none.
func theirs(url string) func(*testing.T, *check.Inventory) {
	return func(_ *testing.T, i *check.Inventory) {
		set(i, url, "url")
		i.Landwaiters[0].Spec.Template.Spec.Containers[0].Args[1] = "--log-level=info"
	}
}

// set changes a field of the Provider.
func set(i *check.Inventory, value any, field string) {
	if n, ok := value.(int); ok {
		value = int64(n)
	}
	_ = unstructured.SetNestedField(i.Providers[0].Object, value, "spec", field) // its spec is a map
}

func TestTheDefaultsOfServeAreKnown(t *testing.T) {
	i := sound(t)
	i.Landwaiters[0].Spec = container("serve", "--provider-object=landwaiter-verdict=/v1/verdict")
	set(i, int(provider.DefaultVerifyTimeout/time.Second), "timeout")
	require.Equal(t, check.ProviderTimeout, check.Examine(i, schema.Embedded()).Findings[0].ID)
	set(i, int(provider.DefaultVerifyTimeout/time.Second)+1, "timeout")
	require.Empty(t, check.Examine(i, schema.Embedded()).Findings)
}

func TestNothingThatWasNotReadIsSound(t *testing.T) {
	for _, source := range []check.Source{check.SourceWebhooks, check.SourceProviders, check.SourceTemplates, check.SourceConstraints, check.SourceConfigs,
		check.SourceGatekeeper, check.SourceLandwaiter,
		check.SourceNamespaces, check.SourceResources, check.SourceGuardrails, check.SourceDefinitions, check.SourceRights, check.SourceLease, check.SourceFacts} {
		t.Run(string(source), func(t *testing.T) {
			i := sound(t)
			i.Unread[source] = check.Unread{Missing: "list x", Why: "you cannot list x"}
			report := check.Examine(i, schema.Embedded())
			require.Empty(t, report.Findings)
			require.Equal(t, "list x", report.Unchecked[0].Missing)
			require.NotEmpty(t, report.Unchecked[0].IDs)
		})
	}
}

// Names and labels in a cluster are anybody's: they neither reach a terminal as they are nor
// become more than a word of a command.
func TestWhatOthersWroteIsShownAsText(t *testing.T) {
	i := sound(t)
	hostile := "a'; rm -rf /\n\x1b[31m\u202e"
	i.Namespaces[1].Labels = map[string]string{"admission.gatekeeper.sh/ignore": hostile}
	i.Gatekeepers[0].Spec.Template.Spec.Containers[0].Args = append(i.Gatekeepers[0].Spec.Template.Spec.Containers[0].Args, "--exempt-namespace="+hostile)
	trust := &v1beta1.TrustStore{TypeMeta: metav1.TypeMeta{Kind: "TrustStore"}, ObjectMeta: named("team-a", "keys")}
	trust.Spec.Type, trust.Spec.Source.Inline = v1beta1.TrustStoreTypePublicKeys, "a key"
	trust.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: "AccessDenied",
		Message: "grant it with: kubectl create rolebinding x --clusterrole=cluster-admin --group=everybody" + strings.Repeat("x", 1000)}}
	i.Resources = []v1beta1.Object{trust}
	report := check.Examine(i, schema.Embedded())
	require.Len(t, report.Findings, 3)
	for _, f := range report.Findings {
		for _, text := range []string{f.Message, f.Why, f.Command} {
			require.NotRegexp(t, `[\x00-\x1f\x7f\x{202e}]`, text)
			require.NotContains(t, f.Command, "cluster-admin")
			require.Less(t, len(f.Message), 500)
		}
		require.NotContains(t, strings.ReplaceAll(f.Command, `'\''`, ""), "a'; rm")
	}
}

// While a namespace has a Verifier, no ClusterVerifier applies there.
func TestNothingIsDeletedThatKeepsOtherResourcesOut(t *testing.T) {
	idle := func(o v1beta1.Object) v1beta1.Object {
		o.CommonStatus().Conditions = []metav1.Condition{{Type: v1beta1.ConditionEffective, Status: metav1.ConditionFalse, Reason: "Unused", Message: "x"}}
		return o
	}
	verifier := func(namespace, name string) *v1beta1.Verifier {
		return &v1beta1.Verifier{TypeMeta: metav1.TypeMeta{Kind: "Verifier"}, ObjectMeta: named(namespace, name)}
	}
	keys := &v1beta1.TrustStore{TypeMeta: metav1.TypeMeta{Kind: "TrustStore"}, ObjectMeta: named("team-a", "keys")}
	broken := verifier("team-a", "broken")
	broken.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: "ReferenceNotReady"}}
	home := &v1beta1.Tenant{TypeMeta: metav1.TypeMeta{Kind: "Tenant"}, ObjectMeta: named("", "red"), Spec: v1beta1.TenantSpec{HomeNamespace: "team-a"}}
	for name, row := range map[string]struct {
		resources []v1beta1.Object
		want      []string
	}{
		"the only Verifier":         {[]v1beta1.Object{idle(verifier("team-a", "v"))}, []string{"kubectl edit"}},
		"another namespace has one": {[]v1beta1.Object{idle(verifier("team-a", "v")), verifier("team-b", "w")}, []string{"kubectl edit"}},
		"another one decides":       {[]v1beta1.Object{idle(verifier("team-a", "v")), verifier("team-a", "w")}, []string{"kubectl delete"}},
		"no other one decides":      {[]v1beta1.Object{idle(verifier("team-a", "v")), idle(verifier("team-a", "w"))}, []string{"kubectl edit", "kubectl edit"}},
		"a home namespace":          {[]v1beta1.Object{home, idle(verifier("team-a", "v")), verifier("team-a", "w")}, []string{"kubectl edit"}},
		"a TrustStore":              {[]v1beta1.Object{idle(keys)}, []string{"kubectl delete"}},
		"a ClusterQuota": {
			[]v1beta1.Object{idle(&v1beta1.ClusterQuota{TypeMeta: metav1.TypeMeta{Kind: "ClusterQuota"}, ObjectMeta: named("", "gold")})}, []string{"kubectl edit"}},
		"a ClusterVerifier": {
			[]v1beta1.Object{idle(&v1beta1.ClusterVerifier{TypeMeta: metav1.TypeMeta{Kind: "ClusterVerifier"}, ObjectMeta: named("", "v")})}, nil},
		"a TrustStore, broken Verifier": {[]v1beta1.Object{idle(keys), broken}, []string{"kubectl edit"}},
	} {
		t.Run(name, func(t *testing.T) {
			i := sound(t)
			i.Resources = row.resources
			var got []string
			for _, f := range check.Examine(i, schema.Embedded()).Findings {
				if f.ID == check.ResourceUnused {
					got = append(got, strings.Join(strings.Fields(f.Command)[:2], " "))
				}
			}
			require.Equal(t, row.want, got)
		})
	}
}

func TestAVerifierThatAPolicyMisspellsIsMendedInThePolicy(t *testing.T) {
	for name, row := range map[string]struct {
		policyNamespace, names, others, want string
	}{
		"nearly this one":      {"team-a", "relaese-signature", "", "kubectl edit verificationpolicy.landwaiter.dev release --namespace=team-a"},
		"in another namespace": {"team-b", "relaese-signature", "", "kubectl edit verifier.landwaiter.dev release-signature --namespace=team-a"},
		"another one":          {"team-a", "scan", "scan", "kubectl delete verifier.landwaiter.dev release-signature --namespace=team-a"},
		"far off":              {"team-a", "scan", "", "kubectl edit verifier.landwaiter.dev release-signature --namespace=team-a"},
	} {
		i := sound(t)
		idle := &v1beta1.Verifier{TypeMeta: metav1.TypeMeta{Kind: "Verifier"}, ObjectMeta: named("team-a", "release-signature")}
		idle.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionEffective, Status: metav1.ConditionFalse, Reason: "Unused",
			Message: "no policy that applies asks for it"}}
		i.Resources = []v1beta1.Object{idle,
			&v1beta1.VerificationPolicy{TypeMeta: metav1.TypeMeta{Kind: "VerificationPolicy"}, ObjectMeta: named(row.policyNamespace, "release"),
				Spec: v1beta1.VerificationPolicySpec{Rules: []v1beta1.PolicyRule{{Images: []string{"**"}, Require: []v1beta1.Requirement{{AnyOf: []string{row.names}}}}}}}}
		if row.others != "" {
			i.Resources = append(i.Resources, &v1beta1.Verifier{TypeMeta: metav1.TypeMeta{Kind: "Verifier"}, ObjectMeta: named("team-a", row.others)})
		}
		for _, f := range check.Examine(i, schema.Embedded()).Findings {
			if f.ID == check.ResourceUnused {
				require.Equal(t, row.want, f.Command, name)
				if name == "nearly this one" {
					require.Equal(t, "if the policy means release-signature, correct the name in VerificationPolicy team-a/release", f.Fix)
					require.Equal(t, "spec.rules[0].require[0] of VerificationPolicy team-a/release names Verifier relaese-signature, which the namespace "+
						"does not have", f.Why)
				}
			}
		}
	}
}

// A binding may name an account by its user name.
func TestAnAccountUnderItsUserNameIsNotTrusted(t *testing.T) {
	i := sound(t)
	i.Resources = []v1beta1.Object{&v1beta1.TrustStore{TypeMeta: metav1.TypeMeta{Kind: "TrustStore"}, ObjectMeta: named("team-a", "keys"),
		Spec: v1beta1.TrustStoreSpec{Type: v1beta1.TrustStoreTypePublicKeys, Source: v1beta1.TrustSource{SecretKeyRef: &v1beta1.KeyReference{Name: "s", Key: "k"}}}}}
	i.Roles = []rbacv1.Role{
		{ObjectMeta: named("team-a", "devs"), Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"update"}}}}}
	for user, want := range map[string]int{"system:serviceaccount:team-b:ci": 1, "system:serviceaccount:kube-system:x": 0,
		"system:kube-controller-manager": 0, "ann": 1} {
		i.RoleBindings = []rbacv1.RoleBinding{{ObjectMeta: named("team-a", "devs"), RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "devs"},
			Subjects: []rbacv1.Subject{{Kind: "User", Name: user}}}}
		require.Len(t, check.Examine(i, schema.Embedded()).Findings, want, user)
	}
}

// mutatingConditions are what config/gatekeeper/values.yaml has Gatekeeper's mutating webhook leave out.
func mutatingConditions(t *testing.T) []admissionv1.MatchCondition {
	t.Helper()
	text, err := config.Files.ReadFile("gatekeeper/values.yaml")
	require.NoError(t, err)
	var values struct {
		All []admissionv1.MatchCondition `json:"mutatingWebhookMatchConditions"`
	}
	require.NoError(t, yaml.Unmarshal(text, &values))
	require.Len(t, values.All, 2)
	return values.All
}
