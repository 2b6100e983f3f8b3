package scaffold

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
)

// builtin knows the kinds of Kubernetes that platforms and teams write.
func builtin() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	kinds := runtime.NewSchemeBuilder(admissionregistrationv1.AddToScheme, appsv1.AddToScheme, autoscalingv2.AddToScheme, batchv1.AddToScheme,
		corev1.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme, schedulingv1.AddToScheme, storagev1.AddToScheme)
	if err := kinds.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("list the kinds of Kubernetes: %w", err)
	}
	return scheme, nil
}

// fluxFields are the fields of spec of the kinds of Flux, as their CRDs have them,
// and those that must be there.
func fluxFields() map[string]struct{ known, required []string } {
	words := strings.Fields
	return map[string]struct{ known, required []string }{
		"kustomize.toolkit.fluxcd.io/v1 Kustomization": {words("commonMetadata decryption deletionPolicy dependsOn force healthCheckExprs healthChecks ignoreMissingComponents images interval kubeConfig namePrefix nameSuffix patches path postBuild prune retryInterval serviceAccountName sourceRef suspend targetNamespace timeout wait components"), words("interval prune sourceRef")},
		"source.toolkit.fluxcd.io/v1 GitRepository":    {words("ignore include interval provider proxySecretRef recurseSubmodules ref secretRef serviceAccountName sparseCheckout suspend timeout url verify"), words("interval url")},
		"source.toolkit.fluxcd.io/v1 OCIRepository":    {words("certSecretRef ignore insecure interval layerSelector provider proxySecretRef ref secretRef serviceAccountName suspend timeout url verify"), words("interval url")},
		"source.toolkit.fluxcd.io/v1 HelmRepository":   {words("accessFrom certSecretRef insecure interval passCredentials provider secretRef suspend timeout type url"), words("url")},
		"source.toolkit.fluxcd.io/v1 Bucket":           {words("bucketName certSecretRef endpoint ignore insecure interval prefix provider proxySecretRef region secretRef serviceAccountName sts suspend timeout"), words("bucketName endpoint interval")},
		"helm.toolkit.fluxcd.io/v2 HelmRelease":        {words("chart chartRef commonMetadata dependsOn driftDetection healthCheckExprs install interval kubeConfig maxHistory persistentClient postRenderers releaseName rollback serviceAccountName storageNamespace suspend targetNamespace test timeout uninstall upgrade values valuesFrom waitStrategy"), words("interval")},
	}
}

// objects checks each object of a build as far as that is possible without a cluster.
func (c *checker) objects(folder string, objects []*unstructured.Unstructured) {
	for _, o := range objects {
		if message := c.object(o); message != "" {
			c.find(c.of(folder, o), "%s: %s", identity(o), message)
		}
	}
}

// object returns what is wrong with an object, "" if nothing is.
func (c *checker) object(o *unstructured.Unstructured) string {
	gvk := o.GroupVersionKind()
	switch {
	case gvk.Kind == "" || gvk.Version == "":
		return "apiVersion or kind is missing: say what it is"
	case o.GetName() == "":
		return "metadata.name is missing: name it"
	case gvk.Kind == "Namespace" && gvk.Group == "" && len(validation.IsDNS1123Label(o.GetName())) > 0:
		return "metadata.name is not the name of a namespace: use at most 63 lower-case letters, digits and dashes"
	}
	if fields, ok := c.flavours[gvk.GroupVersion().String()+" "+gvk.Kind]; ok {
		return checkFields(o, fields.known, fields.required)
	}
	if !c.scheme.Recognizes(gvk) {
		return ""
	}
	typed, err := c.scheme.New(gvk)
	if err != nil {
		return err.Error()
	}
	content := o.DeepCopy().Object
	delete(content, "sops") // of an encrypted Secret; Flux takes it out
	if gvk.Kind == "Secret" {
		delete(content, "data") // encrypted values are no base64 text
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(content, typed, true); err != nil {
		return err.Error()
	}
	return ""
}

func checkFields(o *unstructured.Unstructured, known, required []string) string {
	spec, _, err := unstructured.NestedMap(o.Object, "spec")
	if err != nil || spec == nil {
		return "spec is missing"
	}
	var names []string
	for name := range spec {
		if !slices.Contains(known, name) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		return fmt.Sprintf("there is no field spec.%s: remove it, or correct its name", names[0])
	}
	for _, name := range required {
		if _, ok := spec[name]; !ok {
			return fmt.Sprintf("spec.%s is missing: add it", name)
		}
	}
	return ""
}
