package compile

import (
	"errors"
	"fmt"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/remote/external"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Referenced has the content of references: Secrets and ConfigMaps, the pull secrets of
// ServiceAccounts, and external values.
type Referenced struct {
	objects map[policy.ObjectRef]map[string][]byte
	Pulls   map[policy.ObjectRef][]string
	broken  map[policy.ObjectRef]error
	// roles holds the annotation [v1beta1.AnnotationTUFRoles] of ConfigMaps that have it.
	roles   map[policy.ObjectRef]string
	Fetched external.Fetched
	person  bool // as [resource.Objects.Person]
	// Namespace is the namespace of the current level's references.
	Namespace string
}

// NewReferenced returns the content of the objects in o, without a namespace and fetched
// values.
func NewReferenced(o resource.Objects) Referenced {
	m := Referenced{objects: map[policy.ObjectRef]map[string][]byte{}, broken: map[policy.ObjectRef]error{},
		roles: map[policy.ObjectRef]string{},
		Pulls: o.PullSecrets(), person: o.Person}
	for _, secret := range o.Secrets {
		content := make(map[string][]byte, len(secret.Data)+len(secret.StringData))
		for key, value := range secret.Data {
			content[key] = value
		}
		for key, value := range secret.StringData {
			content[key] = []byte(value)
		}
		m.objects[policy.ObjectRef{Kind: resource.KindSecret, Namespace: secret.Namespace, Name: secret.Name}] = content
	}
	for _, configMap := range o.ConfigMaps {
		content := make(map[string][]byte, len(configMap.Data)+len(configMap.BinaryData))
		for key, value := range configMap.Data {
			content[key] = []byte(value)
		}
		for key, value := range configMap.BinaryData {
			content[key] = value
		}
		source := policy.ObjectRef{Kind: resource.KindConfigMap, Namespace: configMap.Namespace, Name: configMap.Name}
		m.objects[source] = content
		if roles, ok := configMap.Annotations[v1beta1.AnnotationTUFRoles]; ok {
			m.roles[source] = roles
		}
	}
	for _, b := range o.Broken {
		if b.Source.Kind == resource.KindSecret || b.Source.Kind == resource.KindConfigMap || b.Source.Kind == resource.KindServiceAccount {
			m.broken[b.Source] = resource.Reasoned(b.Reason, b.Err)
		}
	}
	for _, u := range o.Unreadable {
		m.broken[u.Source] = resource.Unread(errors.New(u.Why))
	}
	return m
}

// named returns the Secret or ConfigMap that a reference names, and its content.
func (m Referenced) named(kind, name string) (policy.ObjectRef, map[string][]byte, error) {
	source, err := resource.Locate(m.Namespace, kind, name)
	if err != nil {
		return policy.ObjectRef{}, nil, err
	}
	content, err := m.Object(source)
	return source, content, err
}

// unreadable returns why an object could not be read, nil if it could.
func (m Referenced) unreadable(source policy.ObjectRef) error {
	err := m.broken[source]
	if err == nil || resource.IsUnread(err) { // which says so
		return err
	}
	return fmt.Errorf("%s cannot be read: %w", source, err)
}

// Object returns the content of a Secret or ConfigMap.
func (m Referenced) Object(source policy.ObjectRef) (map[string][]byte, error) {
	if err := m.unreadable(source); err != nil {
		return nil, err
	}
	content, ok := m.objects[source]
	if !ok {
		return nil, resource.Reasoned(policy.ReasonNotFound, fmt.Errorf("%s does not exist", source))
	}
	return content, nil
}

// key returns one value of a Secret or ConfigMap.
func (m Referenced) key(kind string, ref v1beta1.KeyReference) ([]byte, error) {
	source, content, err := m.named(kind, ref.Name)
	if err != nil {
		return nil, err
	}
	value, ok := content[ref.Key]
	switch {
	case !ok:
		return nil, fmt.Errorf("%s has no key %q", source, ref.Key)
	case len(value) == 0:
		return nil, fmt.Errorf("key %q of %s is empty", ref.Key, source)
	case len(value) > maxReferencedBytes:
		return nil, fmt.Errorf("key %q of %s is %d bytes, the limit is %d", ref.Key, source, len(value), maxReferencedBytes)
	}
	return value, nil
}

// caBundle returns the PEM text of a bundle, empty if there is none.
func (m Referenced) caBundle(field string, bundle *v1beta1.CABundle) ([]byte, error) {
	if bundle == nil {
		return nil, nil
	}
	switch {
	case bundle.SecretKeyRef != nil:
		content, err := m.key(resource.KindSecret, *bundle.SecretKeyRef)
		return content, fieldError(field+".secretKeyRef", err)
	case bundle.ConfigMapKeyRef != nil:
		content, err := m.key(resource.KindConfigMap, *bundle.ConfigMapKeyRef)
		return content, fieldError(field+".configMapKeyRef", err)
	case bundle.Inline == "":
		return nil, notKnown(field)
	}
	return []byte(bundle.Inline), nil
}

// pullSecrets returns the pull secrets of a ServiceAccount, in its namespace. An account
// without any is an error: a resource that names one asks for a login.
func (m Referenced) pullSecrets(ref v1beta1.Reference) ([]v1beta1.Reference, error) {
	source, err := resource.Locate(m.Namespace, resource.KindServiceAccount, ref.Name)
	if err != nil {
		return nil, err
	}
	if err := m.unreadable(source); err != nil {
		return nil, err
	}
	names, ok := m.Pulls[source]
	switch {
	case !ok:
		return nil, resource.Reasoned(policy.ReasonNotFound, fmt.Errorf("%s does not exist", source))
	case len(names) == 0:
		return nil, fmt.Errorf("%s has no imagePullSecrets; add some to it, or leave out imagePullSecretsFrom for access without a login", source)
	case len(names) > resource.MaxPullSecrets:
		return nil, fmt.Errorf("%s has %d imagePullSecrets, the limit is %d", source, len(names), resource.MaxPullSecrets)
	}
	return MapSlice(names, func(name string) v1beta1.Reference { return v1beta1.Reference{Name: name} }), nil
}

// get returns the fetched value of a source.
func (m Referenced) get(source external.Source) (external.Value, error) {
	known, err := m.fetched(source)
	if err != nil && m.person {
		err = resource.Unread(fmt.Errorf("%w; the cluster may have it: check that your own machine can reach the server", err))
	}
	return known, err
}

func (m Referenced) fetched(source external.Source) (external.Value, error) {
	known, ok := m.Fetched[source]
	var unanswered *external.UnansweredError
	switch {
	case !ok:
		return known, resource.Reasoned(policy.ReasonUnreadable, fmt.Errorf("%s "+resource.NotFetched, source))
	case known.Content == nil && errors.Is(known.Err, external.ErrNoRight):
		return known, resource.Reasoned(policy.ReasonAccessDenied, known.Err)
	case known.Content == nil && errors.As(known.Err, &unanswered):
		return known, resource.Outside(policy.Outside(policy.Answers(unanswered.Server)+unanswered.Instead), known.Err)
	case known.Content == nil && known.Err != nil:
		return known, resource.Reasoned(policy.ReasonUnreadable, known.Err)
	case known.Content == nil:
		return known, resource.Reasoned(policy.ReasonUnreadable, fmt.Errorf("%s has not been fetched yet", source))
	}
	return known, nil
}
