package check_test

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/library"
	"github.com/landwaiter/landwaiter/pkg/inspect/check"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// now is when the inventories of these tests were read.
func now() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }

func pointer[T any](value T) *T { return &value }

// object reads one object from YAML.
func object(t *testing.T, text string) unstructured.Unstructured {
	t.Helper()
	var o unstructured.Unstructured
	require.NoError(t, yaml.Unmarshal([]byte(text), &o.Object))
	return o
}

// authority returns a CA that ends after a time.
func authority(t *testing.T, lasts time.Duration) []byte {
	t.Helper()
	made, err := fixture.NewAuthorityWith("authority", fixture.CertificateOptions{NotBefore: now().Add(-time.Hour), NotAfter: now().Add(lasts)})
	require.NoError(t, err)
	return made.CertificatePEM
}

func container(args ...string) appsv1.DeploymentSpec {
	return appsv1.DeploymentSpec{Replicas: pointer(int32(2)), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Args: args}}}}}
}

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// sound is an installation in which nothing is wrong, under names that no distribution has.
func sound(t *testing.T) *check.Inventory {
	t.Helper()
	lasting := authority(t, 1000*24*time.Hour)
	service := func(path string) admissionv1.WebhookClientConfig {
		return admissionv1.WebhookClientConfig{CABundle: lasting, Service: &admissionv1.ServiceReference{Namespace: "policy", Name: "hook", Path: &path}}
	}
	template, err := library.Files.ReadFile("verified-images/template.yaml")
	require.NoError(t, err)
	i := &check.Inventory{Options: check.Options{Namespace: "landwaiter-system"}, Now: now(), Unread: map[check.Source]check.Unread{},
		Validating: []admissionv1.ValidatingWebhookConfiguration{{ObjectMeta: named("", "theirs"), Webhooks: []admissionv1.ValidatingWebhook{
			{Name: "other.example.com", ClientConfig: service("/v1/admit")},
			{Name: "validation.gatekeeper.sh", ClientConfig: service("/v1/admit"), FailurePolicy: pointer(admissionv1.Fail), TimeoutSeconds: pointer(int32(5)),
				Rules: []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{"CREATE", "UPDATE"},
					Rule: admissionv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*", "pods/ephemeralcontainers"}}}}},
			{Name: "check-ignore-label.gatekeeper.sh", ClientConfig: service("/v1/admitlabel"), FailurePolicy: pointer(admissionv1.Fail)},
		}}},
		Providers: []unstructured.Unstructured{
			object(t, `{metadata: {name: landwaiter-verdict}, spec: {url: "https://landwaiter.landwaiter-system.svc:443/v1/verdict", timeout: 3, caBundle: "`+
				base64.StdEncoding.EncodeToString(lasting)+`"}}`)},
		Templates: []unstructured.Unstructured{object(t, string(template))},
		Constraints: []unstructured.Unstructured{
			object(t, `{metadata: {name: verified-images}, spec: {match: {kinds: [{apiGroups: [""], kinds: [Pod]}], excludedNamespaces: [kube-system, policy]}}}`)},
		Gatekeepers: []appsv1.Deployment{{ObjectMeta: named("policy", "gatekeeper-manager"),
			Spec: container("--external-data-provider-response-cache-ttl", "10s", "--exempt-namespace=policy", "--max-serving-threads=64")}},
		Landwaiters: []appsv1.Deployment{{ObjectMeta: named("landwaiter-system", "landwaiter"),
			Spec: container("serve", "--provider-object=landwaiter-verdict=/v1/verdict", "--timeout=verify=2500ms", "--client-ca=secret/policy/ca")}},
		Namespaces: []corev1.Namespace{{ObjectMeta: named("", "kube-system")}, {ObjectMeta: named("", "team-a")}},
		Lease:      &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: now().Add(-5 * time.Second)}}},
	}
	for _, kind := range v1beta1.Kinds() {
		i.Definitions = append(i.Definitions, metav1.PartialObjectMetadata{ObjectMeta: named("", kind.Plural+"."+v1beta1.Group)})
	}
	return i
}
