package configdir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
)

// entry is what a document or an item of a list contains. Without a document number, it is a file or
// directory that cannot be read.
type entry struct {
	document
	parsedObject // with decoder.keep

	source policy.ObjectRef // the zero value if the object cannot be identified
	object runtime.Object   // nil if its content could not be read
	// ignored says that Landwaiter does not use the kind of the object.
	ignored bool
	// err says why the object is ignored, cannot be identified or cannot be read or, if there is an
	// object, that the schema refuses it.
	err error
}

// lost reports whether the object cannot be identified.
func (e entry) lost() bool { return e.source == policy.ObjectRef{} }

// said returns the error of an entry with its position.
func (e entry) said() error {
	if e.number == 0 {
		return e.err
	}
	return e.at(e.err)
}

// decoder decodes the text of files into objects, strictly, as an API server does with
// fieldValidation=Strict.
type decoder struct {
	scheme  *runtime.Scheme
	codec   runtime.Decoder
	schemas *schema.Set
	keep    bool // whether entries keep their source text
	now     func() time.Time
	// namespace is the namespace of objects that need one and name none; empty means that this
	// is an error.
	namespace string
	accounts  bool // whether to read ServiceAccounts without pull secrets
}

func newDecoder(keep bool) (*decoder, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register resource types: %w", err)
		}
	}
	factory := serializer.NewCodecFactory(scheme, serializer.EnableStrict)
	return &decoder{scheme: scheme, codec: factory.UniversalDeserializer(), schemas: schema.Embedded(), keep: keep, now: time.Now}, nil
}

// file parses one file. A document that cannot be parsed does not affect the
// others.
func (d *decoder) file(ctx context.Context, name string, content []byte) []entry {
	documents, err := split(name, content)
	if err != nil {
		return unreadable(name, err)
	}
	var found []entry
	for _, doc := range documents {
		whole, err := doc.parse()
		if err != nil {
			found = append(found, entry{document: doc, err: err})
			continue
		}
		if h, err := parseHeader(whole.json); err == nil && isList(h.GroupVersionKind) {
			found = append(found, d.list(ctx, doc, h, whole)...)
			continue
		}
		found = append(found, d.object(ctx, doc, whole))
	}
	return found
}

// unreadable is the result for a file that cannot be read at all.
func unreadable(name string, err error) []entry {
	return []entry{{document: document{file: name, begin: 1, line: 1}, err: err}}
}

// object identifies and decodes the object of a document or of an item of a list.
func (d *decoder) object(ctx context.Context, doc document, from parsedObject) entry {
	h, err := parseHeader(from.json)
	scope, known := scopes()[h.GroupVersionKind]
	// Repositories have many ServiceAccounts, of which only pull secrets are used; one without
	// any may replace one that has some.
	known = known && (h.Kind != "ServiceAccount" || d.accounts || value(from.node, "imagePullSecrets") != nil)
	switch {
	case err != nil:
	case known:
		if scope != cluster && h.Metadata.Namespace == "" {
			from.json, err = inNamespace(from.json, d.namespace)
			h.Metadata.Namespace = d.namespace
		}
		err = errors.Join(err, h.validate(scope))
	case isList(h.GroupVersionKind):
		err = fmt.Errorf("a %s within a list is not read; write its items into the outer list", h.Kind)
	case h.foreign() && hasOurs(from.node):
		err = fmt.Errorf("apiVersion %s, kind %s is not read, and it has Landwaiter's resources among its items; make it a list of apiVersion "+
			"v1, kind List", h.APIVersion, h.Kind)
	case h.foreign():
		e := entry{document: doc, source: h.ref(), ignored: true,
			err: fmt.Errorf("apiVersion %s, kind %s is not a Landwaiter resource and is ignored", h.APIVersion, h.Kind)}
		if d.keep {
			e.json = from.json
		}
		return e
	default:
		err = h.unknown()
	}
	if err != nil {
		return entry{document: doc, err: err}
	}
	e := entry{document: doc, source: h.ref()}
	if d.keep {
		e.parsedObject = from
	}
	e.object, e.err = d.content(h, scope, from.json, from.duplicate)
	if ours, ok := e.object.(v1beta1.Object); ok && e.err == nil {
		if e.err = d.schemas.RefusesText(ctx, h.Kind, from.json); e.err != nil {
			e.object = resource.Refuse(ours, e.err) // as if a cluster had stored it
		}
	}
	if scope == cluster {
		e.source.Namespace = ""
	}
	return e
}

// inNamespace returns an object with a namespace, or the object itself if the namespace is
// empty.
func inNamespace(text []byte, namespace string) ([]byte, error) {
	if namespace == "" {
		return text, nil
	}
	var object map[string]any
	if err := utiljson.Unmarshal(text, &object); err != nil {
		return nil, err
	}
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return text, nil // it has no name either, which is a separate error
	}
	metadata["namespace"] = namespace
	return json.Marshal(object)
}

// content decodes an identified object. With an error it returns none.
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
	if ours, ok := object.(v1beta1.Object); ok {
		if err := errors.Join(resource.Keep(ours), resource.Oversized(ours)); err != nil {
			return nil, err
		}
	}
	switch made := object.(type) {
	case *v1beta1.Exception:
		created(made, d.now())
	case *v1beta1.ClusterException:
		created(made, d.now())
	}
	return object, nil
}

// created sets the creation time of an exception without one to the time of reading: its
// duration counts from then, as if it were applied now. It also replaces a creation time in
// the future, which would extend the exception.
func created(object metav1.Object, now time.Time) {
	if at := object.GetCreationTimestamp(); at.IsZero() || at.After(now) {
		object.SetCreationTimestamp(metav1.NewTime(now).Rfc3339Copy())
	}
}

// header holds the fields that identify an object.
type header struct {
	runtimeschema.GroupVersionKind `json:"-"`

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
	gv, err := runtimeschema.ParseGroupVersion(h.APIVersion)
	if err != nil {
		return header{}, fmt.Errorf("apiVersion cannot be read: %w", err)
	}
	h.GroupVersionKind = gv.WithKind(h.Kind)
	return h, nil
}

func (h header) ref() policy.ObjectRef {
	return policy.ObjectRef{Kind: h.Kind, Namespace: h.Metadata.Namespace, Name: h.Metadata.Name}
}

// foreign reports whether an object of an unknown kind is certainly not a Landwaiter
// resource. A mistyped group or kind may be one, and ignoring it could weaken verification.
// The same applies to a list of an unsupported kind.
func (h header) foreign() bool {
	ours := strings.Contains(strings.ToLower(h.Group), "landwaiter")
	list := h.Group == "" && strings.HasSuffix(h.Kind, "List")
	return !ours && !list
}

func (h header) unknown() error {
	if strings.HasSuffix(h.Kind, "List") {
		return fmt.Errorf("apiVersion %s, kind %s is not read; write its items as documents of their own, separated by ---", h.APIVersion, h.Kind)
	}
	if h.APIVersion != v1beta1.GroupVersion.String() {
		return fmt.Errorf("%s: apiVersion %s is not known to this version of Landwaiter; use %s", h.called(), h.APIVersion, v1beta1.GroupVersion)
	}
	var kinds []string
	for _, kind := range v1beta1.Kinds() {
		kinds = append(kinds, kind.Name)
	}
	fix := "use one of " + strings.Join(kinds, ", ")
	if near, ok := policy.Nearest(h.Kind, kinds); ok {
		fix = "did you mean " + near + "?"
	}
	return fmt.Errorf("%s: %s has no kind %s; %s", h.called(), h.APIVersion, h.Kind, fix)
}

// called names an object in a message, even without a name.
func (h header) called() string {
	if h.Metadata.Name == "" {
		return h.Kind + " without a name"
	}
	return h.ref().String()
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
		return fmt.Errorf("metadata.name: this %s has none; give it one", h.Kind)
	case len(valid(name)) > 0:
		return fmt.Errorf("metadata.name: %q is not valid for a %s: %s", name, h.Kind, valid(name)[0])
	case scope == cluster:
		return nil
	case namespace == "":
		return fmt.Errorf("metadata.namespace: %s %s has none, and files have no default namespace; add it", h.Kind, name)
	case len(validation.IsDNS1123Label(namespace)) > 0:
		return fmt.Errorf("metadata.namespace: %q of %s %s is not valid: %s", namespace, h.Kind, name, validation.IsDNS1123Label(namespace)[0])
	}
	return nil
}

type scope bool

const (
	cluster    scope = false
	namespaced scope = true
)

// scopes returns the supported kinds.
func scopes() map[runtimeschema.GroupVersionKind]scope {
	core := corev1.SchemeGroupVersion
	all := map[runtimeschema.GroupVersionKind]scope{
		core.WithKind("Namespace"): cluster,
		core.WithKind("Secret"):    namespaced,
		core.WithKind("ConfigMap"): namespaced,

		core.WithKind("ServiceAccount"): namespaced,
	}
	for _, kind := range v1beta1.Kinds() {
		all[v1beta1.GroupVersion.WithKind(kind.Name)] = scope(kind.Namespaced)
	}
	return all
}
