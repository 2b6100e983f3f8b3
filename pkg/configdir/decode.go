package configdir

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/tenant"
)

// content is what one file says.
type content struct {
	objects []object
	broken  []tenant.Broken
	// ignored are objects of foreign kinds.
	ignored []tenant.Problem
	// unreadable is set if a document says nothing about which object it is: what
	// the file was to say is then not fully known.
	unreadable error
}

// object is one decoded object.
type object struct {
	source policy.Source
	add    func(*tenant.Objects)
}

// head is what every Kubernetes object begins with.
type head struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
}

func (h head) source() policy.Source {
	return policy.Source{Kind: h.Kind, Namespace: h.Metadata.Namespace, Name: h.Metadata.Name}
}

// decode reads the documents of a file (YAML, or JSON, which is YAML). It is
// pure. Each document stands or falls by itself.
func decode(name string, data []byte) content {
	var c content
	documents := split(data)
	if len(documents) > maxDocuments {
		return content{unreadable: fmt.Errorf("%s has %d documents, the limit is %d", name, len(documents), maxDocuments)}
	}
	for i, d := range documents {
		where := fmt.Sprintf("%s, document %d (line %d)", name, i+1, d.line)
		if err := c.document(where, d.text); err != nil && c.unreadable == nil {
			c.unreadable = fmt.Errorf("%s: %w", where, err)
		}
	}
	return c
}

// document adds one document; the error says that it cannot be told which object
// it is about.
func (c *content) document(where string, text []byte) error {
	asJSON, syntaxErr := yaml.YAMLToJSONStrict(text)
	var h head
	if syntaxErr != nil {
		h = salvage(text)
	} else {
		if bytes.Equal(bytes.TrimSpace(asJSON), []byte("null")) {
			return nil // only comments
		}
		if err := kjson.UnmarshalCaseSensitivePreserveInts(asJSON, &h); err != nil {
			return errors.New("it is not a Kubernetes object: it has no apiVersion, kind and metadata")
		}
	}
	kind, known := kinds()[h.APIVersion+" "+h.Kind]
	if !known {
		return c.unknown(where, h, syntaxErr)
	}
	if err := kind.placed(h); err != nil {
		return errors.Join(err, syntaxErr)
	}
	if syntaxErr != nil {
		c.broken = append(c.broken, tenant.Broken{Source: h.source(), Err: fmt.Errorf("%s: %w", where, syntaxErr)})
		// A damaged document may have been meant as something else.
		return syntaxErr
	}
	add, err := kind.decode(asJSON)
	if err != nil {
		c.broken = append(c.broken, tenant.Broken{Source: h.source(), Err: fmt.Errorf("%s: %w", where, err)})
		return nil
	}
	c.objects = append(c.objects, object{source: h.source(), add: add})
	return nil
}

// unknown deals with a kind that is not read from files. Foreign ones are
// ignored, and said so; one of our own that is misspelt must not be, because its
// author relies on it.
func (c *content) unknown(where string, h head, syntaxErr error) error {
	switch {
	case syntaxErr != nil:
		return syntaxErr
	case h.APIVersion == "" || h.Kind == "":
		return errors.New("it is not a Kubernetes object: it needs apiVersion and kind")
	case h.APIVersion == "v1" && h.Kind == "List", strings.HasPrefix(h.APIVersion, v1alpha1.Group+"/") && strings.HasSuffix(h.Kind, "List"):
		return errors.New("lists are not read; separate the objects by lines of ---")
	case strings.HasPrefix(h.APIVersion, v1alpha1.Group):
		return fmt.Errorf("there is no kind %s in %s; the kinds of %s/%s are Verifier, Store, TrustStore, VerificationPolicy and the same with Cluster before them",
			h.Kind, h.APIVersion, v1alpha1.Group, v1alpha1.Version)
	}
	c.ignored = append(c.ignored, tenant.Problem{Source: h.source(), Reason: "Ignored",
		Message: fmt.Sprintf("%s: %s %s is ignored: only resources of %s and core/v1 Namespaces, Secrets and ConfigMaps are read", where, h.APIVersion, h.Kind, v1alpha1.Group)})
	return nil
}

// kind is a kind that is read from files.
type kind struct {
	namespaced bool
	decode     func(asJSON []byte) (func(*tenant.Objects), error)
}

// placed checks that an object says where it is. A namespace is never guessed.
func (k kind) placed(h head) error {
	switch {
	case h.Metadata.Name == "":
		return fmt.Errorf("the %s has no metadata.name", h.Kind)
	case k.namespaced && h.Metadata.Namespace == "":
		return fmt.Errorf("%s %s has no metadata.namespace", h.Kind, h.Metadata.Name)
	case !k.namespaced && h.Metadata.Namespace != "":
		return fmt.Errorf("%s %s is cluster-wide, remove its metadata.namespace", h.Kind, h.Metadata.Name)
	}
	return nil
}

func kinds() map[string]kind {
	const own = v1alpha1.Group + "/" + v1alpha1.Version + " "
	return map[string]kind{
		"v1 Namespace":                    {false, into(func(o *tenant.Objects) *[]corev1.Namespace { return &o.Namespaces })},
		"v1 Secret":                       {true, into(func(o *tenant.Objects) *[]corev1.Secret { return &o.Secrets })},
		"v1 ConfigMap":                    {true, into(func(o *tenant.Objects) *[]corev1.ConfigMap { return &o.ConfigMaps })},
		own + "Verifier":                  {true, into(func(o *tenant.Objects) *[]v1alpha1.Verifier { return &o.Verifiers })},
		own + "ClusterVerifier":           {false, into(func(o *tenant.Objects) *[]v1alpha1.ClusterVerifier { return &o.ClusterVerifiers })},
		own + "Store":                     {true, into(func(o *tenant.Objects) *[]v1alpha1.Store { return &o.Stores })},
		own + "ClusterStore":              {false, into(func(o *tenant.Objects) *[]v1alpha1.ClusterStore { return &o.ClusterStores })},
		own + "TrustStore":                {true, into(func(o *tenant.Objects) *[]v1alpha1.TrustStore { return &o.TrustStores })},
		own + "ClusterTrustStore":         {false, into(func(o *tenant.Objects) *[]v1alpha1.ClusterTrustStore { return &o.ClusterTrustStores })},
		own + "VerificationPolicy":        {true, into(func(o *tenant.Objects) *[]v1alpha1.VerificationPolicy { return &o.VerificationPolicies })},
		own + "ClusterVerificationPolicy": {false, into(func(o *tenant.Objects) *[]v1alpha1.ClusterVerificationPolicy { return &o.ClusterVerificationPolicies })},
	}
}

// into decodes as an API server does: names in their exact case, and no field
// that the type does not have.
func into[T any](list func(*tenant.Objects) *[]T) func([]byte) (func(*tenant.Objects), error) {
	return func(asJSON []byte) (func(*tenant.Objects), error) {
		var v T
		strict, err := kjson.UnmarshalStrict(asJSON, &v)
		if err = errors.Join(append(strict, err)...); err != nil {
			return nil, err
		}
		return func(o *tenant.Objects) { l := list(o); *l = append(*l, v) }, nil
	}
}

// document is one document of a file and the line that it begins in.
type document struct {
	line int
	text []byte
}

// split parts a file at lines of "---" (YAML 1.2, section 9.2). Block scalars
// are indented, so that such a line is never within one.
func split(data []byte) []document {
	documents := []document{{line: 1}}
	for i, line := range bytes.SplitAfter(data, []byte("\n")) {
		last := &documents[len(documents)-1]
		if bytes.Equal(bytes.TrimRight(line, " \t\r\n"), []byte("---")) {
			if len(bytes.TrimSpace(last.text)) > 0 {
				documents = append(documents, document{})
				last = &documents[len(documents)-1]
			}
			last.line, last.text = i+2, nil
			continue
		}
		last.text = append(last.text, line...)
	}
	if last := documents[len(documents)-1]; len(bytes.TrimSpace(last.text)) == 0 {
		documents = documents[:len(documents)-1]
	}
	return documents
}

// salvage guesses from its lines which object a damaged document is about, so
// that it denies there. The guess is only ever used to deny.
func salvage(text []byte) head {
	var h head
	first := func(pattern string) string {
		found := regexp.MustCompile(pattern).FindSubmatch(text)
		if found == nil {
			return ""
		}
		return string(found[1])
	}
	h.APIVersion = first(`(?m)^apiVersion:\s*["']?([\w./-]+)`)
	h.Kind = first(`(?m)^kind:\s*["']?(\w+)`)
	h.Metadata.Name = first(`(?m)^(?:metadata:\s*\{.*\b| +)name:\s*["']?([\w.-]+)`)
	h.Metadata.Namespace = first(`(?m)^(?:metadata:\s*\{.*\b| +)namespace:\s*["']?([\w-]+)`)
	return h
}
