package resolve

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/external"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// refuse makes every resource of a level one that may not be compiled.
func (l *Objects) refuse(err error) {
	refuse(l.Verifiers, err)
	refuse(l.Stores, err)
	refuse(l.TrustStores, err)
	refuse(l.policies, err)
	refuse(l.exceptions, err)
}

func refuse[S any](entries []compile.Entry[S], err error) {
	for i := range entries {
		entries[i].Refused = err
	}
}

// Objects holds the resources of one level (a namespace or the cluster), each kind
// sorted by name.
type Objects struct {
	Namespace  verify.Namespace
	uid        string
	broken     error            // the Namespace object itself could not be read
	ending     bool             // the namespace is being deleted
	unread     error            // the Namespace object is hidden
	hidden     map[string]error // the kinds that are hidden, without "Cluster"
	known      resource.Known   // what is known of them all the same
	referenced compile.Referenced
	// annotations are those of the Namespace that matter, for break-glass.
	annotations map[string]string
	// sizes is what the specs of each kind take in memory, in bytes, which no limit of the cluster is about.
	sizes []sizeOf

	Verifiers   []compile.Entry[v1beta1.VerifierSpec]
	Stores      []compile.Entry[v1beta1.StoreSpec]
	TrustStores []compile.Entry[v1beta1.TrustStoreSpec]
	policies    []compile.Entry[v1beta1.VerificationPolicySpec]
	exceptions  []compile.Entry[v1beta1.ExceptionSpec]
	Quotas      []compile.Entry[v1beta1.ClusterQuotaSpec] // cluster level only
	tenants     []compile.Entry[*v1beta1.Tenant]          // cluster level only
}

// Levels are the objects of each level: of the cluster, which is always there, and of
// namespaces. A change of resources groups them once, then asks what has to be fetched for
// them, and compiles them, once.
type Levels map[verify.Namespace]*Objects

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
		l.annotations = breakGlassOf(o.Namespaces[i].Annotations)
	}
	for _, object := range o.Resources {
		l, source := at(object.GetNamespace()), resource.RefOf(object)
		l.add(source, object, resource.Missing(object))
		l.measure(source.Kind, object)
	}
	for _, b := range o.Broken {
		// A broken object keeps its place, so that it denies there instead of counting
		// as deleted. Broken Secrets and the like are found where they are used.
		if kind, ok := v1beta1.KindNamed(b.Source.Kind); ok {
			at(b.Source.Namespace).add(b.Source, kind.New(), resource.Reasoned(b.Reason, b.Err))
		} else if b.Source.Kind == resource.KindNamespace {
			at(b.Source.Name).broken = b.Err
		}
	}
	for _, h := range o.Hidden {
		hide(at, h)
	}
	material := compile.NewReferenced(o)
	for namespace, l := range levels {
		l.sort()
		l.referenced = material
		l.referenced.Namespace = o.ReferenceNamespace(string(namespace))
	}
	return levels
}

// measure adds the size of a spec. Those of the cluster have no limit.
func (l *Objects) measure(kind string, object v1beta1.Object) {
	if l.Namespace == verify.Cluster {
		return
	}
	i := slices.IndexFunc(l.sizes, func(s sizeOf) bool { return s.kind == kind })
	if i < 0 {
		if l.sizes == nil {
			l.sizes = make([]sizeOf, 0, 4) // most have a few kinds
		}
		i, l.sizes = len(l.sizes), append(l.sizes, sizeOf{kind: kind})
	}
	l.sizes[i].bytes += resource.Size(object)
}

// sizeOf is what the specs of a kind take in memory: there are few kinds.
type sizeOf struct {
	kind  string
	bytes int
}

// add adds a resource. It has the only switch over kinds.
func (l *Objects) add(source policy.ObjectRef, object v1beta1.Object, broken error) {
	switch o := object.(type) {
	case *v1beta1.Verifier:
		l.Verifiers = append(l.Verifiers, compile.NewEntry(source, object, o.Spec, broken))
	case *v1beta1.ClusterVerifier:
		l.Verifiers = append(l.Verifiers, compile.NewEntry(source, object, o.Spec, broken))
	case *v1beta1.Store:
		l.Stores = append(l.Stores, compile.NewEntry(source, object, o.Spec, broken))
	case *v1beta1.ClusterStore:
		l.Stores = append(l.Stores, compile.NewEntry(source, object, o.Spec, broken))
	case *v1beta1.TrustStore:
		l.TrustStores = append(l.TrustStores, compile.NewEntry(source, object, o.Spec, broken))
	case *v1beta1.ClusterTrustStore:
		l.TrustStores = append(l.TrustStores, compile.NewEntry(source, object, o.Spec, broken))
	case *v1beta1.VerificationPolicy:
		l.policies = append(l.policies, compile.NewEntry(source, object, o.Spec, broken))
	case *v1beta1.ClusterVerificationPolicy:
		l.policies = append(l.policies, compile.NewEntry(source, object, o.Spec, broken))
	case *v1beta1.Exception:
		l.exceptions = append(l.exceptions, compile.NewEntry(source, object, o.Spec, broken))
	case *v1beta1.ClusterException:
		l.exceptions = append(l.exceptions, compile.NewEntry(source, object, o.Spec, broken))
	case *v1beta1.ClusterQuota:
		l.Quotas = append(l.Quotas, compile.NewEntry(source, object, o.Spec, broken))
	case *v1beta1.Tenant:
		l.tenants = append(l.tenants, compile.NewEntry(source, object, o, broken))
	default:
		panic(fmt.Sprintf("compile: %T is in the table of kinds but has no compile step", object))
	}
}

func (l *Objects) sort() {
	sortByName(l.Verifiers)
	sortByName(l.Stores)
	sortByName(l.TrustStores)
	sortByName(l.policies)
	sortByName(l.exceptions)
	sortByName(l.Quotas)
	sortByName(l.tenants)
}

func sortByName[S any](entries []compile.Entry[S]) {
	slices.SortStableFunc(entries, func(x, y compile.Entry[S]) int { return cmp.Compare(x.Source.Name, y.Source.Name) })
}

// Generations returns each resource of the level with its generation.
func (l *Objects) Generations() map[policy.ObjectRef]int64 {
	all := map[policy.ObjectRef]int64{}
	addGenerations(all, l.Verifiers)
	addGenerations(all, l.Stores)
	addGenerations(all, l.TrustStores)
	addGenerations(all, l.policies)
	addGenerations(all, l.exceptions)
	addGenerations(all, l.Quotas)
	addGenerations(all, l.tenants)
	return all
}

func addGenerations[S any](all map[policy.ObjectRef]int64, entries []compile.Entry[S]) {
	for _, e := range entries {
		all[e.Source] = e.Generation
	}
}

// tooMany returns an error if a namespace has more than [maxResources] resources, or more of
// them than is kept. The cluster's only have a limit together, by [weigh]. Exceptions have
// limits of their own: too many of them must not deny anything.
func (l *Objects) tooMany() error {
	n := len(l.Verifiers) + len(l.Stores) + len(l.TrustStores) + len(l.policies)
	if l.Namespace != verify.Cluster && n > maxResources {
		return fmt.Errorf("namespace %s has %d resources, the limit is %d: delete some", l.Namespace, n, maxResources)
	}
	return l.excess(false)
}

// excess returns an error if the specs of the resources of a namespace, or of its Exceptions,
// are more than is kept.
func (l *Objects) excess(exceptions bool) error {
	share := resource.Share{Namespace: string(l.Namespace), Exceptions: exceptions}
	if l.Namespace == verify.Cluster || l.written(share) <= share.Limit() {
		return nil
	}
	sizes := map[string]int{}
	for _, s := range l.sizes {
		if (s.kind == v1beta1.KindException) == exceptions {
			sizes[s.kind] = s.bytes
		}
	}
	return share.Excess(sizes)
}

// Level is the compiled form of one level's objects.
type Level struct {
	Objects  *Objects
	weight   weight
	load     load
	compiled bool   // whether it is more than weighed
	excess   excess // as it was compiled with
	Broken   error  // why the level cannot be used

	TrustStores  map[string]*compile.TrustStore
	Verifiers    []compile.Verifier
	stores       []compile.Store
	hosts        map[string]registry.HostRule        // cluster level only
	patterns     []registry.PatternRule              // cluster level only
	quotas       map[verify.Account]verify.Limits    // cluster level only
	QuotaSources map[verify.Account]policy.ObjectRef // the ClusterQuota of each account in quotas
	Policies     []compile.Policy                    // without mandatory policies
	rules        []verify.Rule                       // of the policies that decide
	Mandatory    []compile.Policy                    // cluster level only
	Exceptions   []*compile.Exception                // those that are sound
	glass        *verify.Exception                   // break-glass of a namespace, nil if there is none
	problems     []resource.Problem
	allFaults    bool // of each resource, and not only the first, are problems
	// publicGood is Sigstore's public-good root, if a verifier uses it by default.
	publicGood *compile.TrustStore
	Ends       map[policy.ObjectRef]*compile.Ends

	// uses maps each ClusterTrustStore that a namespace's verifiers name to its
	// fingerprint, "" if it did not exist. Others change neither the weight nor what is compiled.
	uses map[string]string
	// shared is set for the cluster level.
	shared shared
}

// shared holds, for each kind, the fingerprint of the cluster's resources that
// namespaces use.
type shared struct {
	verifiers, stores, policies, mandatory, hosts string
	// exceptions change no generation: they are no part of a cached verdict.
	exceptions string
	// credentials also changes with the tokens of an identity and with proxies, which change
	// no verdict but without which no registry answers.
	credentials string
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
		for _, t := range l.TrustStores {
			if source, err := compile.ExternalSource(namespace, t.Spec, m); err == nil && source != nil {
				found[*source] = true
			}
		}
		for _, s := range l.Stores {
			sources, _ := compile.LoginSources(namespace, s.Spec, m) // compiling reports errors
			for _, source := range sources {
				found[source] = true
			}
		}
		for _, v := range l.Verifiers {
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

// endsOf collects when the trust material of a level's resources ends.
func (l *Level) endsOf(m compile.Referenced) map[policy.ObjectRef]*compile.Ends {
	all := map[policy.ObjectRef]*compile.Ends{}
	for _, e := range l.Objects.TrustStores {
		if t, ok := l.TrustStores[e.Source.Name]; ok {
			all[e.Source] = t.EndsIn(m, e.Spec.Source.ConfigMapKeyRef)
		}
	}
	for i, e := range l.Objects.Stores {
		if i < len(l.stores) {
			all[e.Source] = l.stores[i].Ends()
		}
	}
	for _, e := range l.Objects.Verifiers {
		if l.publicGood != nil && compile.UsesPublicGood(e.Spec) {
			all[e.Source] = l.publicGood.EndsIn(m, nil)
		}
	}
	return all
}
