// Package compile compiles resources into what the engine works with: for each
// namespace, which verifiers, stores and policies apply, from the namespace or
// from the cluster, each kind on its own. It is pure. It refuses to let a
// broken resource look like one that is not there: what depends on it denies.
package compile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/registry"
	"github.com/landwaiter/landwaiter/pkg/resource"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// Outside is how what is compiled reaches beyond this process. Its functions are
// called for every namespace and must be cheap.
type Outside struct {
	// Registry makes the registry client for what one tenant may reach.
	Registry func(registry.Access) verify.Registry
	// Revocation makes the transport by which one tenant's checks of revocation
	// are answered; it never waits for a network.
	Revocation func(verify.Namespace) http.RoundTripper
}

// Snapshot is the compiled state of all namespaces at one moment. It is
// immutable but for a memory of namespaces that declare nothing.
type Snapshot struct {
	outside    Outside
	cluster    *level
	namespaces map[verify.Namespace]*view
	undeclared memo
}

// level is what one level comes to.
type level struct {
	namespace verify.Namespace
	uid       string
	broken    string // why nothing of this level can be used

	trustStores map[string]*trustStore
	verifiers   []verifier
	stores      []store
	hosts       map[string]registry.HostRule       // of the cluster level
	limits      map[verify.Namespace]verify.Limits // of the cluster level
	policies    []compiledPolicy                   // without floors
	floors      []compiledPolicy                   // of the cluster level
}

// New turns objects into a Snapshot, and says what their owners should
// correct. It never fails: what is wrong with one namespace's objects denies in
// that namespace, what is wrong with cluster objects wherever they apply.
func New(o resource.Objects, fetched Fetched, outside Outside) (*Snapshot, []resource.Problem) {
	declared, m := levels(o), newMaterial(o, fetched)
	c := &compiler{material: m, outside: outside}
	s := &Snapshot{outside: outside, cluster: c.level(declared[verify.Cluster], nil), namespaces: map[verify.Namespace]*view{}}
	for _, namespace := range slices.Sorted(maps.Keys(declared)) {
		if namespace != verify.Cluster {
			s.namespaces[namespace] = s.link(c.level(declared[namespace], s.cluster))
		}
	}
	s.namespaces[verify.Cluster] = s.link(&level{})
	return s, c.problems
}

// With returns a snapshot that differs from s in one namespace, compiled anew
// from what o has of it, and what is wrong there; s itself stays as it is. A
// namespace of which o has nothing is not in the new snapshot. For a change of
// cluster objects everything must be compiled anew: then, and only then, it
// panics to be asked for [verify.Cluster], which would mix two states.
func (s *Snapshot) With(namespace verify.Namespace, o resource.Objects, fetched Fetched) (*Snapshot, []resource.Problem) {
	if namespace == verify.Cluster {
		panic("compile: a change of cluster objects needs New")
	}
	next := &Snapshot{outside: s.outside, cluster: s.cluster, namespaces: maps.Clone(s.namespaces)}
	declared, ok := levels(o)[namespace]
	if !ok {
		delete(next.namespaces, namespace)
		return next, nil
	}
	c := &compiler{material: newMaterial(o, fetched), outside: s.outside}
	next.namespaces[namespace] = next.link(c.level(declared, s.cluster))
	return next, c.problems
}

// compiler collects problems while it goes through the levels.
type compiler struct {
	material material
	outside  Outside
	problems []resource.Problem
}

func (c *compiler) problem(source policy.ObjectRef, err error) {
	if err != nil {
		c.problems = append(c.problems, resource.Problem{Source: source, Reason: resource.ReasonOf(err), Message: err.Error()})
	}
}

// level compiles what d declares; cluster is nil for the cluster's own level.
func (c *compiler) level(d *declared, cluster *level) *level {
	l := &level{namespace: d.namespace, uid: d.uid, trustStores: map[string]*trustStore{}}
	if d.broken != nil {
		l.broken = fmt.Sprintf("Namespace %s cannot be read: %v", d.namespace, d.broken)
		c.problem(policy.ObjectRef{Kind: kindNamespace, Name: string(d.namespace)}, d.broken)
	}
	if err := d.tooMany(); err != nil {
		l.broken = err.Error()
		for _, source := range d.sources() {
			c.problem(source, err)
		}
		return l
	}
	for _, r := range d.trustStores {
		t := compileTrustStore(d.namespace, r, c.material)
		l.trustStores[r.source.Name] = t
		c.problem(r.source, t.err)
	}
	reach := trustStores{owner: d.namespace, own: l.trustStores, cluster: l.trustStores}
	if slices.ContainsFunc(d.verifiers, func(r entry[v1alpha1.VerifierSpec]) bool { return usesPublicGood(r.spec) }) {
		reach.publicGood = publicGoodStore(d.namespace, c.material)
	}
	if cluster != nil {
		reach.cluster = cluster.trustStores
	}
	for _, r := range d.verifiers {
		v, err := compileVerifier(r, reach, c.outside)
		l.verifiers = append(l.verifiers, v)
		c.problem(r.source, err)
	}
	for _, r := range d.stores {
		s, err := compileStore(d.namespace, r, c.material)
		l.stores = append(l.stores, s)
		c.problem(r.source, err)
	}
	if cluster == nil {
		l.hosts, l.limits = hostRules(d.stores, l.stores), c.limits(d.limits)
	}
	for _, r := range d.policies {
		p, err := compilePolicy(r)
		if p.floor {
			l.floors = append(l.floors, p)
		} else {
			l.policies = append(l.policies, p)
		}
		c.problem(r.source, err)
	}
	return l
}

// fingerprint identifies what a resource means: its specification, the material
// that it uses, and what is wrong with it.
func fingerprint(source policy.ObjectRef, spec any, material []byte, err error) string {
	encoded, encodeErr := json.Marshal(spec)
	if encodeErr != nil {
		encoded = fmt.Appendf(nil, "%#v", spec)
	}
	hash := sha256.New()
	for _, part := range [][]byte{[]byte(source.String()), encoded, material, fmt.Append(nil, err)} {
		fmt.Fprintf(hash, "%d:", len(part))
		hash.Write(part)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
