package resolve

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/external"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Objects holds the resources of one level (a namespace or the cluster), sorted by name.
type Objects struct {
	Namespace  verify.Namespace
	uid        string
	broken     error  // the Namespace object itself could not be read
	ending     bool   // the namespace is being deleted
	labelled   string // the Tenant that the label of the namespace names, "" for none
	referenced compile.Referenced
	// unreadable holds the kinds, without "Cluster", that a person cannot list at the level, and
	// [resource.KindNamespace] for the Namespace itself.
	unreadable map[string]resource.Unreadable
	// annotations are the Namespace's annotations for break-glass.
	annotations map[string]string
	// bytes is what the specs of each [resource.Share] of a namespace take in memory, and withheld says whether
	// some of them were not kept.
	bytes    [2]int
	withheld [2]bool
	// hashed is shared by the copies of these objects.
	hashed *levelHash

	// entries are the resources of all kinds, each with a pointer to its spec, or to the whole object if that is a Tenant.
	entries []compile.Entry[any]
}

// EntriesOf yields the resources of a level whose spec is an S, by name. A namespaced kind and its Cluster twin share
// a spec type. S is [v1beta1.Tenant] for Tenants, whose name and age are needed too.
func EntriesOf[S any](o *Objects) iter.Seq2[int, compile.Entry[S]] {
	return func(yield func(int, compile.Entry[S]) bool) {
		i := 0
		for _, e := range o.entries {
			if spec, ok := e.Spec.(*S); ok {
				if !yield(i, compile.Entry[S]{Source: e.Source, Generation: e.Generation, Created: e.Created, Spec: *spec, Broken: e.Broken,
					Refused: e.Refused}) {
					return
				}
				i++
			}
		}
	}
}

// Levels are the objects of each level: of the cluster, which always exists, and of
// namespaces. Callers group a change once, then fetch its references and compile it.
type Levels map[verify.Namespace]*Objects

// Only returns a change of one level. A namespace without objects is gone.
func (levels Levels) Only(level verify.Namespace) Levels { return Levels{level: levels[level]} }

// Group groups objects by level.
func Group(o resource.Objects) Levels {
	levels := Levels{verify.Cluster: {}}
	at := func(namespace string) *Objects {
		l := levels[verify.Namespace(namespace)]
		if l == nil {
			l = &Objects{Namespace: verify.Namespace(namespace)}
			levels[l.Namespace] = l
		}
		return l
	}
	for i := range o.Namespaces {
		l := at(o.Namespaces[i].Name)
		l.uid, l.ending = string(o.Namespaces[i].UID), o.Namespaces[i].DeletionTimestamp != nil
		l.labelled = o.Namespaces[i].Labels[v1beta1.LabelTenant]
		l.annotations = breakGlassOf(o.Namespaces[i].Annotations)
	}
	for _, object := range o.Resources {
		l := at(object.GetNamespace())
		l.add(resource.RefOf(object), object, resource.Missing(object))
		if share, limited := resource.ShareOf(object); limited {
			l.bytes[share] += resource.Size(object)
			l.withheld[share] = l.withheld[share] || resource.Withheld(object)
		}
	}
	for _, b := range o.Broken {
		// A broken object stays, so that it denies there instead of counting as deleted. Broken
		// Secrets and the like are found where they are used.
		if kind, ok := v1beta1.KindNamed(b.Source.Kind); ok {
			at(b.Source.Namespace).add(b.Source, kind.New(), resource.Reasoned(b.Reason, b.Err))
		} else if b.Source.Kind == resource.KindNamespace {
			at(b.Source.Name).broken = b.Err
		}
	}
	levels.unreadable(o.Unreadable, at)
	material := compile.NewReferenced(o)
	for namespace, l := range levels {
		l.sort()
		l.hashed = &levelHash{}
		l.referenced = material
		l.referenced.Namespace = o.ReferenceNamespace(string(namespace))
	}
	return levels
}

// References returns the Secrets, ConfigMaps and ServiceAccounts that resources reference, by
// the namespace of the resources ([verify.Cluster] for cluster resources), sorted and without
// duplicates. It includes the pull secrets of ServiceAccounts in o. Namespaced resources only
// reference their own namespace, so reading these objects never exposes one namespace's data
// to another.
func References(o resource.Objects) map[verify.Namespace][]policy.ObjectRef {
	all, pulls := map[verify.Namespace][]policy.ObjectRef{}, o.PullSecrets()
	for _, object := range o.Resources {
		owner := verify.Namespace(object.GetNamespace())
		for _, f := range resource.FieldsOf(object) {
			all[owner] = append(all[owner], f.Named(o.ReferenceNamespace(string(owner)), pulls)...)
		}
	}
	for owner, list := range all {
		if all[owner] = sortedRefs(list); len(list) == 0 {
			delete(all, owner)
		}
	}
	return all
}

// sortedRefs sorts a list in place, and returns it without duplicates.
func sortedRefs(list []policy.ObjectRef) []policy.ObjectRef {
	slices.SortFunc(list, func(a, b policy.ObjectRef) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(list)
}

// Externals returns the external sources that resources reference, by the namespace
// of the resources, sorted and without duplicates. The Secrets that they name must be
// in levels, because credentials are part of a source. Externals skips resources with
// errors: compiling reports those.
func (levels Levels) Externals() map[verify.Namespace][]external.Source {
	all := map[verify.Namespace][]external.Source{}
	for namespace, l := range levels {
		m := l.referenced
		found := map[external.Source]bool{}
		for _, t := range EntriesOf[v1beta1.TrustStoreSpec](l) {
			if source, err := compile.ExternalSource(namespace, t.Spec, m); err == nil && source != nil {
				found[*source] = true
			}
		}
		for _, s := range EntriesOf[v1beta1.StoreSpec](l) {
			sources, _ := compile.LoginSources(namespace, s.Spec, m) // compiling reports errors
			for _, source := range sources {
				found[source] = true
			}
		}
		for _, v := range EntriesOf[v1beta1.VerifierSpec](l) {
			if compile.UsesPublicGood(v.Spec) {
				found[compile.PublicGood(namespace)] = true
			}
		}
		if len(found) > 0 {
			all[namespace] = slices.SortedFunc(maps.Keys(found), func(a, b external.Source) int {
				return strings.Compare(a.String()+a.Fingerprint(), b.String()+b.Fingerprint())
			})
		}
	}
	return all
}

// add adds a resource. It contains the only switch over kinds.
func (l *Objects) add(source policy.ObjectRef, object v1beta1.Object, broken error) {
	e := compile.NewEntry(source, object, resource.SpecOf(object), broken)
	switch e.Spec.(type) {
	case *v1beta1.VerifierSpec, *v1beta1.StoreSpec, *v1beta1.TrustStoreSpec, *v1beta1.ExceptionSpec, *v1beta1.ClusterQuotaSpec:
	case *v1beta1.VerificationPolicySpec:
		if resource.Refused(object) != nil { // it still says which namespaces it is for
			e.Broken, e.Refused = nil, broken
		}
	case *v1beta1.TenantSpec:
		e.Spec = object
	default:
		panic(fmt.Sprintf("resolve: %T is in the table of kinds but has no compile step", object))
	}
	l.entries = append(l.entries, e)
}

// BreakGlassAnnotations returns the annotations of a Namespace that matter for break-glass.
func BreakGlassAnnotations() []string {
	return []string{v1beta1.AnnotationBreakGlassFrom, v1beta1.AnnotationBreakGlassUntil, v1beta1.AnnotationBreakGlassReason,
		v1beta1.AnnotationBreakGlassOverrideMandatory}
}

// breakGlassOf returns the break-glass annotations of a Namespace.
func breakGlassOf(all map[string]string) map[string]string {
	found := maps.Clone(all)
	maps.DeleteFunc(found, func(key, _ string) bool { return !slices.Contains(BreakGlassAnnotations(), key) })
	return found
}

// with returns the objects of a level together with fetched content. It does not change l: the
// caller may compile it again.
func (l *Objects) with(fetched external.Fetched) *Objects {
	known := *l
	known.referenced.Fetched = fetched
	return &known
}

// refuse marks every resource of a level as one that may not be compiled. Quotas and Tenants stay: no verdict depends
// on a quota, and Tenants are not compiled.
func (l *Objects) refuse(err error) {
	l.entries = compile.MapSlice(l.entries, func(e compile.Entry[any]) compile.Entry[any] {
		switch e.Spec.(type) {
		case *v1beta1.ClusterQuotaSpec, *v1beta1.Tenant:
		default:
			e.Refused = err
		}
		return e
	})
}

func (l *Objects) sort() {
	slices.SortStableFunc(l.entries, func(x, y compile.Entry[any]) int {
		return cmp.Or(cmp.Compare(x.Source.Name, y.Source.Name), cmp.Compare(x.Source.Kind, y.Source.Kind))
	})
}

// Generations returns each resource of the level with its generation.
func (l *Objects) Generations() map[policy.ObjectRef]int64 {
	all := make(map[policy.ObjectRef]int64, len(l.entries))
	for _, e := range l.entries {
		all[e.Source] = e.Generation
	}
	return all
}

// tooMany returns an error if a namespace has more than [maxResources] resources, or more
// than are kept. The cluster's resources only have a total limit, by [weigh]. Exceptions have
// their own limits: too many of them must not deny anything.
func (l *Objects) tooMany() error {
	n := 0
	for _, e := range l.entries {
		if _, exception := e.Spec.(*v1beta1.ExceptionSpec); !exception {
			n++
		}
	}
	if l.Namespace != verify.Cluster && n > maxResources {
		return fmt.Errorf("namespace %s has %d resources, the limit is %d: delete some", l.Namespace, n, maxResources)
	}
	return l.tooLarge(resource.Specs)
}

// tooLarge returns an error if the specs of a share of a namespace are more than is kept.
func (l *Objects) tooLarge(share resource.Share) error {
	limit, _ := share.Limits()
	if l.bytes[share] <= limit {
		return nil
	}
	return resource.Reasoned(policy.ReasonLimitExceeded,
		fmt.Errorf("the specs of the %s of namespace %s take %d KiB, the limit is %d KiB: delete some",
			share, l.Namespace, l.bytes[share]>>10, limit>>10))
}
