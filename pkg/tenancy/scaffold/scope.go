package scaffold

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// clusterScoped reports whether an object's kind has no namespace although kustomize, which only
// knows the kinds of Kubernetes, gives it one.
func clusterScoped(o *unstructured.Unstructured) bool {
	switch o.GroupVersionKind().Group {
	case v1beta1.Group:
		kind, ok := v1beta1.KindNamed(o.GetKind())
		return ok && !kind.Namespaced
	case constraintGroup, "templates.gatekeeper.sh":
		return true
	}
	return false
}

// withoutNamespace finds the line that gives a namespace to an object without one, and removes
// the namespace, so that it causes no further findings.
func (c *checker) withoutNamespace(folder string, o *unstructured.Unstructured) {
	namespace := o.GetNamespace()
	if namespace == "" || !clusterScoped(o) {
		return
	}
	o.SetNamespace("")
	files := c.setNamespace(folder, namespace, map[string]bool{})
	for _, file := range files {
		c.namespaceSet(file, "gives %s a namespace, which the API server refuses, because a %s has none", identity(o), o.GetKind())
	}
	if len(files) == 0 {
		c.find("NamespaceSet", c.of(folder, o), "%s has metadata.namespace, and a %s has no namespace: remove it, or spec.targetNamespace of "+
			"the Kustomization that applies it", identity(o), o.GetKind())
	}
}

// severalNamespaces finds the lines that make kustomize refuse a build, and reports whether there
// are any.
func (c *checker) severalNamespaces(folder string, err error) bool {
	if !strings.Contains(err.Error(), "namespace transformation produces ID conflict") {
		return false
	}
	files := c.setNamespace(folder, "", map[string]bool{})
	for _, file := range files {
		c.namespaceSet(file, "moves objects of several namespaces into one, so it does not build")
	}
	return len(files) > 0
}

// namespaceSet adds a finding about the line of a kustomization that sets a namespace.
func (c *checker) namespaceSet(file, format string, args ...any) {
	c.findings[resource.Finding{ID: "NamespaceSet", Severity: resource.Error, File: file, Line: lineOf(c.files[file], "namespace"),
		Message: "the field namespace " + fmt.Sprintf(format, args...) + ": remove the line, and name the namespace in the objects " +
			"that have one"}] = true
}

// setNamespace returns the kustomizations of a build that move all of their objects into a namespace,
// or into any if namespace is empty.
func (c *checker) setNamespace(folder, namespace string, seen map[string]bool) (files []string) {
	file := c.kustomizationFile(folder)
	var k types.Kustomization
	if seen[folder] || file == "" || c.bad[file] || k.Unmarshal(c.files[file]) != nil {
		return nil
	}
	seen[folder] = true
	if k.Namespace != "" && (namespace == "" || k.Namespace == namespace) {
		files = append(files, file)
	}
	for _, name := range references(k) {
		files = append(files, c.setNamespace(path.Join(folder, name), namespace, seen)...)
	}
	return files
}

// lineOf returns the line of a field of a file's first document, 0 if it has none.
func lineOf(content []byte, name string) int {
	documents, err := parse(content)
	if err != nil || len(documents) == 0 {
		return 0
	}
	for i := 0; i+1 < len(documents[0].Content); i += 2 {
		if documents[0].Content[i].Value == name {
			return documents[0].Content[i].Line
		}
	}
	return 0
}

// registered matches kustomize's message about an object that a build has twice:
// Namespace.v1.[noGrp]/apps.[noNs].
var registered = regexp.MustCompile(`already registered id: ([A-Za-z]+)\.[^/\s]*/([^\s']+)\.(?:\[noNs\]|[a-z0-9-]+)`)

// inTwoFiles finds the files of an object that kustomize refuses as a duplicate, and reports whether there
// are any.
func (c *checker) inTwoFiles(folder string, err error) bool {
	found := registered.FindStringSubmatch(err.Error())
	if found == nil {
		return false
	}
	object := found[1] + " " + found[2]
	files := slices.Compact(slices.Sorted(slices.Values(c.places[object])))
	switch len(files) {
	case 0:
		c.find("DoesNotBuild", c.at(folder), "it does not build, because it contains %s twice: remove one of the two", object)
	case 1:
		c.find("DoesNotBuild", c.at(folder), "it does not build, because it contains %s twice, from %s: remove the second copy from that file, "+
			"or include the file only once", object, files[0])
	default:
		c.find("DoesNotBuild", c.at(folder), "it does not build, because %s is in %s: remove it from all but one; if two Tenants list the "+
			"namespace, remove it from one Tenant", object, strings.Join(files[:min(len(files), maxNamed)], ", "))
	}
	return true
}

// decrypted finds encrypted objects that a Kustomization of Flux applies and does not decrypt, or not with
// their key. It accepts objects that a service or Vault can also decrypt.
func (c *checker) decrypted(at string, k *unstructured.Unstructured, b *built) {
	decryption, _, _ := unstructured.NestedMap(k.Object, "spec", "decryption")
	key := c.platform().sops()
	secret, _, _ := unstructured.NestedString(decryption, "secretRef", "name")
	for _, o := range b.objects {
		sops, ok := o.Object["sops"].(map[string]any)
		switch {
		case !ok:
		case decryption == nil:
			c.find("NotDecrypted", at, "%s applies the encrypted %s and has no spec.decryption, so Flux applies nothing of it, or the encrypted "+
				"values: run landwaiter platform init again with --set sopsAge, sopsPGP or sopsKMS", identity(k), identity(o))
			return
		case key == (sopsKey{}) || secret != key.secret || k.GetNamespace() != fluxNamespace:
		case !readableWith(sops, key.value):
			c.report(resource.Warning, "EncryptedForOthers", at, "%s applies the %s, which is encrypted for none of the recipients in %s, so Flux "+
				"applies nothing of it: encrypt it again with the tree's .sops.yaml%s", identity(k), identity(o), key.setting, key.inCluster())
			return
		}
	}
}

// readableWith reports whether one of the recipients, or a service, can decrypt an object, by sops' metadata.
func readableWith(sops map[string]any, recipients string) bool {
	others := false
	groups, _, _ := unstructured.NestedSlice(sops, "key_groups")
	for _, group := range append(groups, sops) {
		keys, _ := group.(map[string]any)
		for field, name := range map[string]string{"age": "recipient", "pgp": "fp", "kms": "", "gcp_kms": "", "azure_kv": "", "hc_vault": ""} {
			entries, _ := keys[field].([]any)
			for _, entry := range entries {
				each, _ := entry.(map[string]any)
				recipient, _ := each[name].(string)
				if name == "" || recipient != "" && slices.Contains(strings.Split(recipients, ","), recipient) {
					return true
				}
				others = true
			}
		}
	}
	return !others
}
