package scaffold

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// providers are the fields of spec.provider of a ClusterSecretStore. A newer external-secrets may
// have more, so an unknown provider is refused only if it looks like a misspelt one.
func providers() []string {
	return strings.Fields(`akeyless alibaba aws azurekv barbican beyondtrust beyondtrustworkloadcredentials bitwardensecretsmanager chef
		cloudrusm conjur delinea device42 doppler dvls fake fortanix gcpsm github gitlab ibm infisical keepersecurity kubernetes
		nebiusmysterybox ngrok onboardbase onepassword onepasswordSDK openBao oracle ovh passbolt passworddepot previder pulumi scaleway
		secretserver senhasegura vault volcengine webhook yandexcertificatemanager yandexlockbox`)
}

// misspelt refuses a provider that is a misspelt known one, according to near. A short name that differs by
// more than its case is not similar enough.
func (p Platform) misspelt(near func(word string, words []string) (string, bool)) error {
	if near == nil {
		return nil
	}
	for _, group := range slices.Sorted(maps.Keys(p.SecretStores)) {
		for name := range p.SecretStores[group] {
			if meant, ok := near(name, providers()); ok && meant != name && (len(name) > 4 || strings.EqualFold(name, meant)) {
				return fmt.Errorf("secretStores: %s: external-secrets has no provider %s; did you mean %s?", group, name, meant)
			}
		}
	}
	return nil
}

// unknownProviders notes providers that this program does not know.
func (c *checker) unknownProviders() {
	if c.settings == nil {
		return
	}
	for _, group := range slices.Sorted(maps.Keys(c.settings.SecretStores)) {
		for name := range c.settings.SecretStores[group] {
			if !slices.Contains(providers(), name) {
				c.report(resource.Note, "ProviderUnknown", SettingsFile, "secretStores: %s: this version of landwaiter does not know the provider "+
					"%s: see whether the version of external-secrets in %s has it", group, name,
					path.Join("infrastructure/external-secrets", "release.yaml"))
			}
		}
	}
}

// sharedSecrets finds objects that use a shared store in a namespace of the platform, where a
// constraint of the tree denies them: such a namespace has no Tenant, and so no keys of its own.
func (c *checker) sharedSecrets(all *closure) {
	labelled := all.labels()
	holders := resource.NewTenants(all.tenants()).Labelled(labelled)
	for _, constraint := range all.objects {
		action, _, _ := unstructured.NestedString(constraint.Object, "spec", "enforcementAction")
		if constraint.GetKind() != keysKind || constraint.GroupVersionKind().Group != constraintGroup || action != "" && action != "deny" {
			continue
		}
		shared, _, _ := unstructured.NestedStringSlice(constraint.Object, "spec", "parameters", "storeKinds")
		if len(shared) == 0 {
			shared = []string{"ClusterSecretStore"}
		}
		for _, o := range all.objects {
			kind, namespace := o.GetKind(), o.GetNamespace()
			if o.GroupVersionKind().Group != "external-secrets.io" || kind != "ExternalSecret" && kind != "PushSecret" ||
				!matches(constraint.Unstructured, needed{namespace: namespace}) {
				continue
			}
			if store := storeOf(o.Object["spec"], shared); store != "" && labelled[namespace] == "" && holders.Holder(namespace) == nil {
				c.find("ExternalSecretDenied", c.of(o.folder, o.Unstructured),
					"%s uses a %s, and constraint %s denies that in namespace %s, which is no team's: run platform init with --set "+
						"infrastructureNamespaces=%s, or use a SecretStore of the namespace",
					identity(o.Unstructured), store, constraint.GetName(), namespace, namespace)
			}
		}
	}
}

// storeOf returns the kind of a store that a part of an object references, if it is one of kinds.
func storeOf(part any, kinds []string) string {
	switch part := part.(type) {
	case map[string]any:
		if kind, _ := part["kind"].(string); slices.Contains(kinds, kind) {
			return kind
		}
		for _, name := range slices.Sorted(maps.Keys(part)) {
			if found := storeOf(part[name], kinds); found != "" {
				return found
			}
		}
	case []any:
		for _, entry := range part {
			if found := storeOf(entry, kinds); found != "" {
				return found
			}
		}
	}
	return ""
}

// tenants returns the readable Tenants of a cluster.
func (all *closure) tenants() (tenants []*v1beta1.Tenant) {
	for _, o := range all.objects {
		tenant := &v1beta1.Tenant{}
		if isResource(o.Unstructured) && o.GetKind() == v1beta1.KindTenant &&
			runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, tenant) == nil {
			tenants = append(tenants, tenant)
		}
	}
	return tenants
}

// labels returns the Tenants in the labels of namespaces.
func (all *closure) labels() resource.Labels {
	labels := resource.Labels{}
	for _, o := range all.objects {
		if o.GetKind() == "Namespace" && o.GroupVersionKind().Group == "" {
			labels[o.GetName()] = o.GetLabels()[v1beta1.LabelTenant]
		}
	}
	return labels
}
