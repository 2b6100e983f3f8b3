package live

import (
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// Named returns uses with the images that exceptions of the change name, marked: a preview answers for
// them even if nothing changes. If an exception names an image without a wildcard and nothing runs it,
// Named adds the image. State is the state after the change.
func (c Change) Named(uses []Use, state State) []Use {
	entries := entriesOf(c.Objects.Resources)
	if len(entries) == 0 {
		return uses
	}
	tenants := tenantsOf(state.Objects)
	home := func(namespace verify.Namespace) string {
		if holder := tenants.Holder(string(namespace)); holder != nil {
			return holder.Spec.HomeNamespace
		}
		return ""
	}
	named := slices.Clone(uses)
	for i := range named {
		u := &named[i]
		ref, err := image.Parse(u.Image)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if e.countsIn(string(u.Namespace), home(u.Namespace)) && e.has(ref) {
				u.Named, e.runsIn[u.Namespace] = true, true
			}
		}
	}
	type once struct { // several exceptions may name an image
		namespace verify.Namespace
		image     string
	}
	added := map[once]bool{}
	for _, e := range entries {
		if !e.exact || e.everywhere() && len(state.Namespaces) > 1 {
			continue
		}
		for _, namespace := range state.Namespaces {
			use := once{namespace, e.text}
			if !added[use] && !e.runsIn[namespace] && e.countsIn(string(namespace), home(namespace)) && len(named) < maxUses {
				named = append(named, Use{Namespace: namespace, Image: e.text, Named: true, Untagged: e.pinned.Digest == ""})
				added[use] = true
				e.runsIn[namespace] = true
			}
		}
	}
	return named
}

// entry is one entry of the images of an exception.
type entry struct {
	exception  v1beta1.Object
	text       string
	own        string // the exception's namespace, "" for a ClusterException
	namespaces []string
	pattern    image.Pattern
	pinned     image.Reference // if the entry has a digest
	exact      bool            // the entry names one image
	runsIn     map[verify.Namespace]bool
}

// entriesOf returns the image entries of exceptions among objects. It omits invalid entries.
func entriesOf(objects []v1beta1.Object) (all []*entry) {
	for _, object := range objects {
		spec := exceptionOf(object)
		if spec == nil {
			continue
		}
		for _, text := range spec.Images {
			e := &entry{exception: object, text: text, own: object.GetNamespace(), namespaces: spec.Namespaces, runsIn: map[verify.Namespace]bool{}}
			ref, err := image.Parse(text)
			e.exact = err == nil && !strings.Contains(text, "*")
			if e.exact && ref.Digest != "" {
				e.pinned = ref
			} else if e.pattern, err = image.ParsePattern(text); err != nil {
				continue
			}
			all = append(all, e)
		}
	}
	return all
}

// has reports whether the entry is for an image.
func (e *entry) has(ref image.Reference) bool {
	if e.pinned.Digest != "" {
		return e.pinned.Name() == ref.Name() && e.pinned.Digest == ref.Digest
	}
	return e.pattern.Match(ref)
}

func (e *entry) everywhere() bool { return slices.Contains(e.namespaces, v1beta1.EveryNamespace) }

// countsIn reports whether the exception can apply in a namespace with a Tenant's home namespace, "" if it
// has none.
func (e *entry) countsIn(namespace, home string) bool {
	if e.own != "" {
		return e.own == namespace || e.own == home
	}
	return e.everywhere() || slices.Contains(e.namespaces, namespace)
}
