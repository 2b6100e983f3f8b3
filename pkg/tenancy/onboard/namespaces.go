package onboard

import (
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

const (
	// LabelPodSecurity is the prefix of the labels of the Pod Security Standards.
	LabelPodSecurity = "pod-security.kubernetes.io/"
	dnsPort          = 53
	// labelNamespace is set by the API server on every namespace.
	labelNamespace = "kubernetes.io/metadata.name"
	// maxOfKind is the number of resources of each of Landwaiter's kinds in a namespace.
	maxOfKind = "64"
)

// add converts a typed object and removes the fields that an API server fills in.
func (r *rendering) add(object runtime.Object) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		r.err = fmt.Errorf("render %T of Tenant %s: %w", object, r.Name, err)
		return
	}
	delete(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	if spec, ok := content["spec"].(map[string]any); ok && len(spec) == 0 {
		delete(content, "spec")
	}
	r.objects = append(r.objects, &unstructured.Unstructured{Object: content})
}

// meta is the metadata of an object that the team must not change.
func (r *rendering) meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: r.owned()}
}

// namespace has no owner label: other rules protect it, and the team's account may delete
// those that it created.
func (r *rendering) namespace(name string) {
	level := strings.ToLower(string(r.Spec.Isolation.PodSecurity))
	labels := r.labels(map[string]string{
		v1beta1.LabelFluxTenant:              r.Name,
		LabelPodSecurity + "enforce":         level,
		LabelPodSecurity + "enforce-version": "latest",
		LabelPodSecurity + "warn":            level,
		LabelPodSecurity + "warn-version":    "latest",
	})
	if name == r.Spec.HomeNamespace && !alone(r.Tenant) {
		labels[v1beta1.LabelHomeNamespace] = r.Name
	}
	if isDemo(r.Tenant) {
		labels[LabelDemo] = r.Name
	}
	r.add(&corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
}

// SameTenantPolicy is the name of the NetworkPolicy that allows traffic within a team.
const SameTenantPolicy = "allow-same-tenant"

// networkPolicies denies all traffic, then allows DNS and traffic within the team. A home namespace
// with other namespaces has no pods, so it only gets the deny.
func (r *rendering) networkPolicies(namespace string) {
	if r.Spec.Isolation.Network != v1beta1.NetworkIsolationDeny {
		return
	}
	both := []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}
	r.networkPolicy(namespace, "default-deny", networkingv1.NetworkPolicySpec{PolicyTypes: both})
	if namespace == r.Spec.HomeNamespace && !alone(r.Tenant) {
		return
	}
	udp, tcp, port := corev1.ProtocolUDP, corev1.ProtocolTCP, intstr.FromInt32(dnsPort)
	r.networkPolicy(namespace, "allow-dns", networkingv1.NetworkPolicySpec{
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
		Egress: []networkingv1.NetworkPolicyEgressRule{{
			To:    namespacesLabelled(labelNamespace, metav1.NamespaceSystem),
			Ports: []networkingv1.NetworkPolicyPort{{Protocol: &udp, Port: &port}, {Protocol: &tcp, Port: &port}},
		}},
	})
	// The second peer, the namespace itself, outlives the label: a namespace that leaves its Tenant keeps working.
	team := append(namespacesLabelled(v1beta1.LabelTenant, r.Name), networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{}})
	r.networkPolicy(namespace, SameTenantPolicy, networkingv1.NetworkPolicySpec{
		PolicyTypes: both,
		Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: team}},
		Egress:      []networkingv1.NetworkPolicyEgressRule{{To: team}},
	})
}

func (r *rendering) networkPolicy(namespace, name string, spec networkingv1.NetworkPolicySpec) {
	r.add(&networkingv1.NetworkPolicy{TypeMeta: metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"},
		ObjectMeta: r.meta(namespace, name), Spec: spec})
}

func namespacesLabelled(label, value string) []networkingv1.NetworkPolicyPeer {
	return []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{label: value}}}}
}

// quota bounds Landwaiter's resources in every namespace, because each replica keeps them in
// memory, and the Tenant's own limits in each that may have pods. There, the Tenant's numbers
// win.
func (r *rendering) quota(namespace string) {
	hard := corev1.ResourceList{}
	for _, name := range CountedResources() {
		hard[name] = apiresource.MustParse(maxOfKind)
	}
	if namespace != r.Spec.HomeNamespace || alone(r.Tenant) {
		maps.Copy(hard, r.Spec.Isolation.Quota)
	}
	r.add(&corev1.ResourceQuota{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ResourceQuota"},
		ObjectMeta: r.meta(namespace, QuotaName), Spec: corev1.ResourceQuotaSpec{Hard: hard}})
}

// CountedResources returns the names by which ResourceQuotas count Landwaiter's resources.
func CountedResources() (names []corev1.ResourceName) {
	for _, kind := range v1beta1.Kinds() {
		if kind.Namespaced {
			names = append(names, corev1.ResourceName("count/"+kind.Plural+"."+v1beta1.Group))
		}
	}
	return names
}

func (r *rendering) configMap(namespace, name string, data map[string]string) {
	r.add(&corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: r.meta(namespace, name), Data: data})
}

// variables are in every namespace, because it may have the team's own Kustomizations.
func (r *rendering) variables(namespace string) {
	if r.Spec.Reconciler == nil || len(r.Spec.Reconciler.Variables) == 0 {
		return
	}
	data := map[string]string{}
	for name, value := range r.Spec.Reconciler.Variables {
		data[name] = string(value)
	}
	r.configMap(namespace, VariablesName, data)
}

// summary lists the Tenant's namespaces for the team's account, and for viewers of the home namespace.
func (r *rendering) summary() {
	r.configMap(r.Spec.HomeNamespace, SummaryName,
		map[string]string{"tenant": r.Name, "homeNamespace": r.Spec.HomeNamespace, "namespaces": strings.Join(r.namespaces, "\n")})
}

// registries limits the team's pods, and their ephemeral containers, to its own
// registries.
func (r *rendering) registries() {
	if len(r.Spec.Isolation.Registries) == 0 {
		return
	}
	r.objects = append(r.objects, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "constraints.gatekeeper.sh/v1beta1", "kind": KindRegistries,
		"metadata": map[string]any{"name": r.Name, "labels": texts(r.owned())},
		"spec": map[string]any{
			"enforcementAction": "deny",
			"match": map[string]any{
				"kinds":             []any{map[string]any{"apiGroups": []any{""}, "kinds": []any{"Pod"}}},
				"namespaceSelector": map[string]any{"matchLabels": map[string]any{v1beta1.LabelTenant: r.Name}},
			},
			"parameters": map[string]any{"prefixes": list(r.Spec.Isolation.Registries), "tenantLabel": v1beta1.LabelTenant},
		},
	}})
}

func texts(from map[string]string) map[string]any {
	made := make(map[string]any, len(from))
	for key, value := range from {
		made[key] = value
	}
	return made
}

func list(from []string) []any {
	made := make([]any, len(from))
	for i, value := range from {
		made[i] = value
	}
	return made
}
