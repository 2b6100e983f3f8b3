package resource

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

const (
	// ShownName is the name of the ConfigMap with what is [Shown], in each namespace of a Tenant.
	ShownName = "landwaiter-effective-rules"
	// ShownKey is its only key.
	ShownKey = "rules.json"
	// shownVersion changes with the meaning of the text, so that no reader misreads another
	// version.
	shownVersion = "landwaiter.dev/effective-rules/v1"
	// MaxShownBytes limits the text. A ConfigMap may have 1 MiB.
	MaxShownBytes = 512 << 10
)

// NotShown says why a ConfigMap of that name is not as Landwaiter writes it, whoever wrote
// it. It returns "" for one that is.
func NotShown(found *corev1.ConfigMap) string {
	switch {
	case found.Immutable != nil && *found.Immutable:
		return "it is immutable"
	case len(found.BinaryData) > 0:
		return "it has more than the key " + ShownKey
	}
	for key := range found.Data {
		if key != ShownKey {
			return "it has more than the key " + ShownKey
		}
	}
	return ""
}

// Shown holds the cluster's rules as far as they apply in one namespace, for people who may
// not read cluster resources.
type Shown struct {
	Namespace string
	// Tenant is the Tenant that holds the namespace.
	Tenant string
	// Resources are cluster resources, reduced to what applies in the namespace.
	Resources []v1beta1.Object
	// Withheld lists kinds of which not everything is among Resources.
	Withheld []Withheld
	// MaxException, MaxDelegation and MaxBreakGlass are the flags of serve of these names.
	// MaxBreakGlass is empty if break-glass does not count.
	MaxException, MaxDelegation, MaxBreakGlass string
}

// Withheld says that resources of a kind are not shown, except for what [Known] says.
type Withheld struct {
	Kind string `json:"kind"`
	Known
}

// Known is what is known of a kind of cluster resources although the rest is hidden.
type Known struct {
	// Hosts are registries about which everything that ClusterStores say is known.
	Hosts []string `json:"hosts,omitempty"`
	// Mandatory says that all mandatory policies are known.
	Mandatory bool `json:"mandatory,omitempty"`
}

// Withholds returns what is withheld of a kind, and whether anything is.
func (s Shown) Withholds(kind string) (Withheld, bool) {
	i := slices.IndexFunc(s.Withheld, func(w Withheld) bool { return w.Kind == kind })
	if i < 0 {
		return Withheld{}, false
	}
	return s.Withheld[i], true
}

// shownText is the text of a [Shown].
type shownText struct {
	Version       string          `json:"version"`
	Namespace     string          `json:"namespace"`
	Tenant        string          `json:"tenant"`
	MaxException  string          `json:"maxException"`
	MaxDelegation string          `json:"maxDelegation"`
	MaxBreakGlass string          `json:"maxBreakGlass,omitempty"`
	Resources     []shownResource `json:"resources"`
	Withheld      []Withheld      `json:"withheld"`
}

type shownResource struct {
	Kind    string          `json:"kind"`
	Name    string          `json:"name"`
	Created *metav1.Time    `json:"created,omitempty"`
	Spec    json.RawMessage `json:"spec"`
}

// Text returns s as JSON. Equal rules have equal texts.
func (s Shown) Text() (string, error) {
	text := shownText{Version: shownVersion, Namespace: s.Namespace, Tenant: s.Tenant, MaxException: s.MaxException, MaxDelegation: s.MaxDelegation,
		MaxBreakGlass: s.MaxBreakGlass, Resources: []shownResource{}, Withheld: append([]Withheld{}, s.Withheld...)}
	for _, object := range s.Resources {
		spec, err := json.Marshal(field(object, "Spec").Interface())
		if err != nil {
			return "", fmt.Errorf("show %s: %w", RefOf(object), err)
		}
		shown := shownResource{Kind: RefOf(object).Kind, Name: object.GetName(), Spec: spec}
		if created := object.GetCreationTimestamp(); !created.IsZero() {
			shown.Created = &created
		}
		text.Resources = append(text.Resources, shown)
	}
	slices.SortFunc(text.Resources, func(a, b shownResource) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	slices.SortFunc(text.Withheld, func(a, b Withheld) int { return strings.Compare(a.Kind, b.Kind) })
	encoded, err := json.MarshalIndent(text, "", " ")
	if err != nil {
		return "", fmt.Errorf("show the rules of namespace %s: %w", s.Namespace, err)
	}
	return string(encoded) + "\n", nil
}

// ReadShown reads a ConfigMap with what is shown in its namespace. It refuses one that others
// than Landwaiter may have written: the guardrails let nobody else set the label, in any
// namespace.
func ReadShown(found *corev1.ConfigMap) (Shown, error) {
	why := NotShown(found)
	if found.Labels[v1beta1.LabelOwner] != v1beta1.OwnerPlatform {
		why = "it has no label " + v1beta1.LabelOwner + "=" + v1beta1.OwnerPlatform
	}
	if why != "" {
		return Shown{}, fmt.Errorf("it is not Landwaiter's: %s", why)
	}
	return ParseShown(found.Namespace, found.Data[ShownKey])
}

// ParseShown reads the text of what is shown in a namespace. It refuses a text of another
// version and fields that it does not know: they may make a rule stricter.
func ParseShown(namespace, text string) (Shown, error) {
	if len(text) > MaxShownBytes {
		return Shown{}, fmt.Errorf("the text has %d bytes, the limit is %d", len(text), MaxShownBytes)
	}
	var versioned struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal([]byte(text), &versioned); err != nil {
		return Shown{}, fmt.Errorf("it is not JSON: %w", err)
	}
	if versioned.Version != shownVersion {
		return Shown{}, fmt.Errorf("its version is %.60q, and this program reads %q: use the landwaiter of the cluster's version", versioned.Version, shownVersion)
	}
	var read shownText
	if err := strictly([]byte(text), &read); err != nil {
		return Shown{}, err
	}
	if read.Namespace != namespace {
		return Shown{}, fmt.Errorf("it is about namespace %.63q", read.Namespace)
	}
	s := Shown{Namespace: namespace, Tenant: read.Tenant, Withheld: read.Withheld, MaxException: read.MaxException, MaxDelegation: read.MaxDelegation, MaxBreakGlass: read.MaxBreakGlass}
	for _, r := range read.Resources {
		kind, ok := v1beta1.KindNamed(r.Kind)
		if !ok || kind.Namespaced || r.Name == "" {
			return Shown{}, fmt.Errorf("%s is not a cluster resource of landwaiter.dev", policy.ObjectRef{Kind: r.Kind, Name: r.Name})
		}
		object := kind.New()
		object.SetName(r.Name)
		if r.Created != nil {
			object.SetCreationTimestamp(*r.Created)
		}
		if err := strictly(r.Spec, field(object, "Spec").Addr().Interface()); err != nil {
			return Shown{}, fmt.Errorf("%s: %w", RefOf(object), err)
		}
		s.Resources = append(s.Resources, object)
	}
	return s, nil
}

// strictly decodes JSON and refuses unknown fields.
func strictly(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}
