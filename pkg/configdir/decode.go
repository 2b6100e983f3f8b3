package configdir

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/policy"
)

// reading is what one file says.
type reading struct {
	entries []entry
	ignored []ignored
	// lost is set if there is something that nobody can identify: a document,
	// or the whole file.
	lost []error
}

// entry is an object that is there. With err set its content is not known.
type entry struct {
	document
	source policy.ObjectRef
	object runtime.Object
	err    error
}

// ignored is an object of somebody else.
type ignored struct {
	document
	source policy.ObjectRef
	why    string
}

// decoder turns the text of files into objects, strictly, as an API server with
// fieldValidation=Strict does.
type decoder struct {
	scheme *runtime.Scheme
	codec  runtime.Decoder
}

func newDecoder() (*decoder, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register resource types: %w", err)
		}
	}
	factory := serializer.NewCodecFactory(scheme, serializer.EnableStrict)
	return &decoder{scheme: scheme, codec: factory.UniversalDeserializer()}, nil
}

// file reads the content of one file. Documents fail one by one.
func (d *decoder) file(name string, content []byte) reading {
	documents, err := split(name, content)
	if err != nil {
		return reading{lost: []error{err}}
	}
	var r reading
	for _, doc := range documents {
		d.document(&r, doc)
	}
	return r
}

func (d *decoder) document(r *reading, doc document) {
	json, duplicate, err := doc.toJSON()
	if err != nil {
		r.lost = append(r.lost, fmt.Errorf("%s: %w", doc, err))
		return
	}
	h, err := headOf(json)
	if err != nil {
		r.lost = append(r.lost, fmt.Errorf("%s: %w", doc, err))
		return
	}
	scope, known := scopes()[h.GroupVersionKind]
	if !known && h.foreign() {
		r.ignored = append(r.ignored, ignored{document: doc, source: h.source(),
			why: fmt.Sprintf("apiVersion %s, kind %s is none of Landwaiter's and has no effect here", h.APIVersion, h.Kind)})
		return
	}
	if !known {
		err = h.unknown()
	} else {
		err = h.validate(scope)
	}
	if err != nil {
		r.lost = append(r.lost, fmt.Errorf("%s: %w", doc, err))
		return
	}
	e := entry{document: doc, source: h.source()}
	e.object, e.err = d.content(h, scope, json, duplicate)
	if scope == cluster {
		e.source.Namespace = ""
	}
	r.entries = append(r.entries, e)
}

// content decodes an identified object.
func (d *decoder) content(h head, scope scope, json []byte, duplicate error) (runtime.Object, error) {
	if scope == cluster && h.Metadata.Namespace != "" {
		return nil, fmt.Errorf("metadata.namespace is %q, but a %s belongs to no namespace; remove it", h.Metadata.Namespace, h.Kind)
	}
	if duplicate != nil {
		return nil, duplicate
	}
	object, _, err := d.codec.Decode(json, nil, nil)
	if strict, ok := runtime.AsStrictDecodingError(err); ok {
		var texts []string
		for _, e := range strict.Errors() {
			texts = append(texts, e.Error())
		}
		return nil, errors.New(strings.Join(texts, "; "))
	}
	if err != nil && h.Kind == "Secret" {
		// The decoder's own words may quote a value.
		return nil, errors.New("it is not a valid Secret: values of data are base64 text, values of stringData plain text in quotes")
	}
	if err != nil {
		return nil, err
	}
	return object, nil
}

// head is what identifies an object.
type head struct {
	schema.GroupVersionKind `json:"-"`

	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
}

func headOf(json []byte) (h head, err error) {
	if err := utiljson.Unmarshal(json, &h); err != nil {
		return head{}, fmt.Errorf("apiVersion, kind and metadata cannot be read: %w", err)
	}
	if h.APIVersion == "" || h.Kind == "" {
		return head{}, errors.New("apiVersion or kind is missing")
	}
	gv, err := schema.ParseGroupVersion(h.APIVersion)
	if err != nil {
		return head{}, fmt.Errorf("apiVersion cannot be read: %w", err)
	}
	h.GroupVersionKind = gv.WithKind(h.Kind)
	return h, nil
}

func (h head) source() policy.ObjectRef {
	return policy.ObjectRef{Kind: h.Kind, Namespace: h.Metadata.Namespace, Name: h.Metadata.Name}
}

// foreign reports whether an object of an unknown kind is certainly none of
// ours. A mistyped group or kind of ours is not: to ignore it could weaken what
// its author asked for. Neither is a List, which may hold anything.
func (h head) foreign() bool {
	ours := strings.Contains(strings.ToLower(h.Group), "landwaiter")
	list := h.Group == "" && strings.HasSuffix(h.Kind, "List")
	return !ours && !list
}

func (h head) unknown() error {
	if strings.HasSuffix(h.Kind, "List") {
		return fmt.Errorf("kind %s is not supported; write its items as documents of their own, separated by ---", h.Kind)
	}
	return fmt.Errorf("apiVersion %s, kind %s is not known to this version of Landwaiter; it knows %s", h.APIVersion, h.Kind, v1alpha1.GroupVersion())
}

// validate checks that the object has the name and namespace that it would need
// in a cluster. A namespace is never guessed.
func (h head) validate(scope scope) error {
	valid := validation.IsDNS1123Subdomain
	if h.Kind == "Namespace" {
		valid = validation.IsDNS1123Label
	}
	switch name, namespace := h.Metadata.Name, h.Metadata.Namespace; {
	case name == "":
		return fmt.Errorf("metadata.name of this %s is missing", h.Kind)
	case len(valid(name)) > 0:
		return fmt.Errorf("metadata.name %q of this %s is not valid: %s", name, h.Kind, valid(name)[0])
	case scope == cluster:
		return nil
	case namespace == "":
		return fmt.Errorf("metadata.namespace of %s %s is missing; in files it has no default", h.Kind, name)
	case len(validation.IsDNS1123Label(namespace)) > 0:
		return fmt.Errorf("metadata.namespace %q of %s %s is not valid: %s", namespace, h.Kind, name, validation.IsDNS1123Label(namespace)[0])
	}
	return nil
}

type scope bool

const (
	cluster    scope = false
	namespaced scope = true
)

// scopes lists the kinds that are read.
func scopes() map[schema.GroupVersionKind]scope {
	core, own := corev1.SchemeGroupVersion, v1alpha1.GroupVersion()
	return map[schema.GroupVersionKind]scope{
		core.WithKind("Namespace"):                cluster,
		core.WithKind("Secret"):                   namespaced,
		core.WithKind("ConfigMap"):                namespaced,
		own.WithKind("Verifier"):                  namespaced,
		own.WithKind("ClusterVerifier"):           cluster,
		own.WithKind("Store"):                     namespaced,
		own.WithKind("ClusterStore"):              cluster,
		own.WithKind("TrustStore"):                namespaced,
		own.WithKind("ClusterTrustStore"):         cluster,
		own.WithKind("VerificationPolicy"):        namespaced,
		own.WithKind("ClusterVerificationPolicy"): cluster,
		own.WithKind("ClusterLimits"):             cluster,
	}
}
