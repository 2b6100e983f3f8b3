package compile

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/external"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/resource"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// maxMaterialBytes is the size of a key, certificate bundle or pull secret that
// is looked at; Kubernetes itself allows 1 MiB for the whole object.
const maxMaterialBytes = 256 << 10

// Fetched is what is known of [Externals].
type Fetched = map[external.Source]external.Value

// material finds the content of Secrets and ConfigMaps.
type material struct {
	objects map[policy.ObjectRef]map[string][]byte
	broken  map[policy.ObjectRef]error
	remotes map[external.Source]external.Value
}

func newMaterial(o resource.Objects, fetched Fetched) material {
	m := material{objects: map[policy.ObjectRef]map[string][]byte{}, broken: map[policy.ObjectRef]error{}, remotes: fetched}
	for _, secret := range o.Secrets {
		content := make(map[string][]byte, len(secret.Data)+len(secret.StringData))
		for key, value := range secret.Data {
			content[key] = value
		}
		for key, value := range secret.StringData {
			content[key] = []byte(value)
		}
		m.objects[policy.ObjectRef{Kind: kindSecret, Namespace: secret.Namespace, Name: secret.Name}] = content
	}
	for _, configMap := range o.ConfigMaps {
		content := make(map[string][]byte, len(configMap.Data)+len(configMap.BinaryData))
		for key, value := range configMap.Data {
			content[key] = []byte(value)
		}
		for key, value := range configMap.BinaryData {
			content[key] = value
		}
		m.objects[policy.ObjectRef{Kind: kindConfigMap, Namespace: configMap.Namespace, Name: configMap.Name}] = content
	}
	for _, b := range o.Broken {
		if b.Source.Kind == kindSecret || b.Source.Kind == kindConfigMap {
			m.broken[b.Source] = resource.Reasoned(b.Reason, b.Err)
		}
	}
	return m
}

// locate says which object a reference means when a resource of the level owner
// makes it. A namespace's resource reaches its own namespace and no other; a
// cluster resource must say which namespace it means.
func locate(owner verify.Namespace, kind, namespace, name string) (policy.ObjectRef, error) {
	switch {
	case name == "":
		return policy.ObjectRef{}, fmt.Errorf("the reference to a %s has no name", kind)
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		return policy.ObjectRef{}, fmt.Errorf("the reference to a %s names %q, which cannot be the name of one", kind, name)
	case namespace != "" && len(validation.IsDNS1123Label(namespace)) > 0:
		return policy.ObjectRef{}, fmt.Errorf("the reference to %s %s names namespace %q, which cannot be the name of one", kind, name, namespace)
	case owner == verify.Cluster && namespace == "":
		return policy.ObjectRef{}, fmt.Errorf("the reference to %s %s needs a namespace, because the resource has none", kind, name)
	case owner != verify.Cluster && namespace != "":
		return policy.ObjectRef{}, fmt.Errorf("the reference to %s %s names namespace %q; "+
			"leave the namespace out: only objects of the own namespace can be used", kind, name, namespace)
	case owner != verify.Cluster:
		namespace = string(owner)
	}
	return policy.ObjectRef{Kind: kind, Namespace: namespace, Name: name}, nil
}

// object returns all of a Secret's or ConfigMap's content.
func (m material) object(source policy.ObjectRef) (map[string][]byte, error) {
	if err := m.broken[source]; err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", source, err)
	}
	content, ok := m.objects[source]
	if !ok {
		return nil, resource.Reasoned(policy.ReasonNotFound, fmt.Errorf("%s is not there", source))
	}
	return content, nil
}

// key returns one value of a Secret or ConfigMap.
func (m material) key(owner verify.Namespace, kind string, ref v1alpha1.ObjectKeyRef) ([]byte, error) {
	source, err := locate(owner, kind, ref.Namespace, ref.Name)
	if err != nil {
		return nil, err
	}
	content, err := m.object(source)
	if err != nil {
		return nil, err
	}
	value, ok := content[ref.Key]
	switch {
	case !ok:
		return nil, fmt.Errorf("%s has no key %q", source, ref.Key)
	case len(value) == 0:
		return nil, fmt.Errorf("key %q of %s is empty", ref.Key, source)
	case len(value) > maxMaterialBytes:
		return nil, fmt.Errorf("key %q of %s is %d bytes large, the limit is %d", ref.Key, source, len(value), maxMaterialBytes)
	}
	return value, nil
}
