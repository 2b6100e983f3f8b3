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

// parsedFile is the content of one file.
type parsedFile struct {
	entries []entry
	ignored []ignored
	// unidentified has an error for each document whose object cannot be
	// identified, or one for the whole file.
	unidentified []error
}

// entry is an identified object. If err is set, its content could not be read.
type entry struct {
	document
	source policy.ObjectRef
	object runtime.Object
	err    error
}

// ignored is an object of a kind that Landwaiter does not use.
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

// file parses one file. A document that cannot be parsed does not affect the
// others.
func (d *decoder) file(name string, content []byte) parsedFile {
	documents, err := split(name, content)
	if err != nil {
		return parsedFile{unidentified: []error{err}}
	}
	var r parsedFile
	for _, doc := range documents {
		d.document(&r, doc)
	}
	return r
}

func (d *decoder) document(r *parsedFile, doc document) {
	json, duplicate, err := doc.toJSON()
	if err != nil {
		r.unidentified = append(r.unidentified, fmt.Errorf("%s: %w", doc, err))
		return
	}
	h, err := parseHeader(json)
	if err != nil {
		r.unidentified = append(r.unidentified, fmt.Errorf("%s: %w", doc, err))
		return
	}
	scope, known := scopes()[h.GroupVersionKind]
	if !known && h.foreign() {
		r.ignored = append(r.ignored, ignored{document: doc, source: h.ref(),
			why: fmt.Sprintf("apiVersion %s, kind %s is not a Landwaiter resource and is ignored", h.APIVersion, h.Kind)})
		return
	}
	if !known {
		err = h.unknown()
	} else {
		err = h.validate(scope)
	}
	if err != nil {
		r.unidentified = append(r.unidentified, fmt.Errorf("%s: %w", doc, err))
		return
	}
	e := entry{document: doc, source: h.ref()}
	e.object, e.err = d.content(h, scope, json, duplicate)
	if scope == cluster {
		e.source.Namespace = ""
	}
	r.entries = append(r.entries, e)
}

// content decodes an identified object.
func (d *decoder) content(h header, scope scope, json []byte, duplicate error) (runtime.Object, error) {
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
		// The decoder's message may quote a value.
		return nil, errors.New("it is not a valid Secret: values of data are base64 text, values of stringData plain text in quotes")
	}
	if err != nil {
		return nil, err
	}
	return object, nil
}

// header holds the fields that identify an object.
type header struct {
	schema.GroupVersionKind `json:"-"`

	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
}

func parseHeader(json []byte) (h header, err error) {
	if err := utiljson.Unmarshal(json, &h); err != nil {
		return header{}, fmt.Errorf("apiVersion, kind and metadata cannot be read: %w", err)
	}
	if h.APIVersion == "" || h.Kind == "" {
		return header{}, errors.New("apiVersion or kind is missing")
	}
	gv, err := schema.ParseGroupVersion(h.APIVersion)
	if err != nil {
		return header{}, fmt.Errorf("apiVersion cannot be read: %w", err)
	}
	h.GroupVersionKind = gv.WithKind(h.Kind)
	return h, nil
}

func (h header) ref() policy.ObjectRef {
	return policy.ObjectRef{Kind: h.Kind, Namespace: h.Metadata.Namespace, Name: h.Metadata.Name}
}

// foreign reports whether an object of an unknown kind is certainly not a
// Landwaiter resource. A mistyped group or kind may be one, and ignoring it could
// weaken verification. So may a List, which can contain anything.
func (h header) foreign() bool {
	ours := strings.Contains(strings.ToLower(h.Group), "landwaiter")
	list := h.Group == "" && strings.HasSuffix(h.Kind, "List")
	return !ours && !list
}

func (h header) unknown() error {
	if strings.HasSuffix(h.Kind, "List") {
		return fmt.Errorf("kind %s is not supported; write its items as documents of their own, separated by ---", h.Kind)
	}
	return fmt.Errorf("apiVersion %s, kind %s is not known to this version of Landwaiter; it knows %s", h.APIVersion, h.Kind, v1alpha1.GroupVersion)
}

// validate checks that the object has a valid name and, if namespaced, a valid
// namespace. A namespace is never guessed.
func (h header) validate(scope scope) error {
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

// scopes returns the supported kinds.
func scopes() map[schema.GroupVersionKind]scope {
	core := corev1.SchemeGroupVersion
	all := map[schema.GroupVersionKind]scope{
		core.WithKind("Namespace"): cluster,
		core.WithKind("Secret"):    namespaced,
		core.WithKind("ConfigMap"): namespaced,
	}
	for _, kind := range v1alpha1.Kinds() {
		all[v1alpha1.GroupVersion.WithKind(kind.Name)] = scope(kind.Namespaced)
	}
	return all
}
