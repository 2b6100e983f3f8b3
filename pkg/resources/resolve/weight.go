package resolve

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// weight is what the resources of one level keep once they are compiled, in bytes. It is a pure
// function of the resources and their trust material, so that every replica agrees.
type weight struct {
	total int
	// largest is the resource that weighs most, and most its weight; the zero value if there are no
	// resources.
	largest policy.ObjectRef
	most    int
	// exceptions is what exceptions keep: they are weighed apart, because too many of them must
	// not deny anything.
	exceptions int
	// refused says why the level is too much by itself, so that nothing of it is compiled.
	refused error
}

// of returns what a share of the level counts against its account.
func (w weight) of(share resource.Share) int {
	switch {
	case share == resource.Exceptions:
		return w.exceptions
	case w.refused != nil:
		return 0
	}
	return w.total
}

// advice names the largest resource, and says what makes resources weigh less.
func (w weight) advice() string {
	return fmt.Sprintf("the largest is %s with %d KiB: shorten expressions and lists, use a key or certificate in fewer Verifiers, or "+
		"delete what is not used", w.largest, w.most>>10)
}

// scale weighs the resources of one level before they are compiled.
type scale struct {
	referenced compile.Referenced
	cluster    *Level         // nil for the cluster's own level
	uses       map[string]use // of the level's trust stores

	weight
}

// pemBegin begins each block of PEM text.
const pemBegin = "-----BEGIN "

// use is what a trust store adds to each Verifier that names it.
type use struct {
	keys, anchors int
}

func useOf(content []byte, blocks int) use {
	return use{keys: blocks*keyWeight + len(content)*keyByteWeight, anchors: blocks * anchorWeight}
}

// weighed is what a level is compiled from.
type weighed struct {
	Objects *Objects
	weight  weight
	// uses maps each ClusterTrustStore that a namespace's verifiers name to its fingerprint, "" if
	// it did not exist. Others change neither the weight nor what is compiled.
	uses map[string]string
}

// weigh weighs a level; cluster is nil for the cluster's own.
func weigh(o *Objects, cluster *Level) *weighed {
	s := &scale{referenced: o.referenced, cluster: cluster, uses: map[string]use{}}
	if s.refused = o.tooMany(); s.refused == nil {
		s.refused = s.load(o)
	}
	if s.refused == nil {
		s.exceptions = exceptionsOf(o)
	}
	w := &weighed{Objects: o, weight: s.weight}
	if cluster != nil {
		w.uses = usedOf(o, cluster)
	}
	return w
}

// follows reports whether the ClusterTrustStores that w uses are still those of cluster.
func (w *weighed) follows(cluster *Level) bool {
	for name, fingerprint := range w.uses {
		if cluster.fingerprintOf(name) != fingerprint {
			return false
		}
	}
	return true
}

// load weighs o. It returns an error if its resources weigh more than one level may.
func (s *scale) load(o *Objects) error {
	limit, whose := maxWeight, "the resources of namespace "+string(o.Namespace)
	if o.Namespace == verify.Cluster {
		limit, whose = maxClusterWeight, "the cluster resources"
	}
	for _, e := range EntriesOf[v1beta1.TrustStoreSpec](o) {
		s.add(e.Source, s.trustStore(e))
	}
	for _, e := range EntriesOf[v1beta1.StoreSpec](o) {
		s.add(e.Source, s.store(e.Spec))
	}
	for _, e := range EntriesOf[v1beta1.VerificationPolicySpec](o) {
		s.add(e.Source, policyOf(e.Spec))
	}
	for _, e := range EntriesOf[v1beta1.VerifierSpec](o) {
		weight := s.verifier(o.Namespace, e.Spec)
		if s.total+weight <= limit { // sizing a regular expression takes time, too
			weight += identities(e.Spec)
		}
		s.add(e.Source, weight)
	}
	if s.total <= limit {
		return nil
	}
	return resource.Reasoned(policy.ReasonLimitExceeded, fmt.Errorf("%s take about %d KiB once they are compiled, the limit is %d KiB; %s",
		whose, s.total>>10, limit>>10, s.advice()))
}

func (s *scale) add(source policy.ObjectRef, weight int) {
	if s.total += weight; weight > s.most {
		s.largest, s.most = source, weight
	}
}

// exceptionsOf weighs those of the exceptions that may be in force.
func exceptionsOf(o *Objects) (weight int) {
	for i, e := range EntriesOf[v1beta1.ExceptionSpec](o) {
		if i == maxExceptions {
			break
		}
		weight += weightOf(e.Spec)
	}
	return min(weight, maxExceptionWeight)
}

func (s *scale) trustStore(e compile.Entry[v1beta1.TrustStoreSpec]) int {
	value, err := compile.TrustContent(verify.Namespace(e.Source.Namespace), e.Spec, s.referenced)
	if err != nil {
		return resourceWeight // it is not compiled
	}
	content := value.Content
	if e.Spec.Type != v1beta1.TrustStoreTypeSigstoreRoot {
		s.uses[e.Source.Name] = useOf(content, bytes.Count(content, []byte(pemBegin)))
	}
	return resourceWeight + len(content)*trustMaterialWeight
}

func (s *scale) store(spec v1beta1.StoreSpec) int {
	weight := resourceWeight
	for _, f := range resource.FieldsOfStore(spec) {
		switch f.Use { //nolint:exhaustive // what other fields refer to weighs nothing
		case resource.Registry:
			weight += textWeight(f.Name)
		case resource.Place:
			weight += placeWeight + textWeight(f.Name)
		case resource.PullSecret, resource.PullAccount:
			for _, source := range f.Named(s.referenced.Namespace, s.referenced.Pulls) {
				content, _ := s.referenced.Object(source) // compiling reports errors
				for _, value := range content {
					weight += len(value) * loginWeight
				}
			}
		}
	}
	for _, m := range spec.Mirrors {
		weight += textWeight(m.Path)
	}
	if p := spec.Proxy; p != nil {
		weight += texts(p.NoProxy) + texts(p.AdditionalHosts)
	}
	authorities, _ := s.referenced.Authorities(spec)
	return weight + len(authorities)*trustMaterialWeight
}

func policyOf(spec v1beta1.VerificationPolicySpec) int {
	weight := resourceWeight
	for _, rule := range spec.Rules {
		weight += ruleWeight + patternsOf(rule.Images)
		for _, r := range rule.Require {
			weight += requireWeight + texts(r.AnyOf) + texts(r.AllOf) + itemWeight*len(r.Types) + compile.ExpressionBytes(r.Expression)
		}
	}
	return weight
}

func (s *scale) verifier(owner verify.Namespace, spec v1beta1.VerifierSpec) int {
	weight := resourceWeight + patternsOf(spec.Images)
	for _, store := range compile.TrustStoresOf(owner, spec) {
		weight += itemWeight
		if added := s.use(owner, store); spec.Notation != nil {
			weight += added.anchors
		} else {
			weight += added.keys
		}
	}
	if n := spec.Notation; n != nil {
		weight += texts(n.TrustedIdentities)
		if n.AWSSigner != nil {
			weight += texts(n.AWSSigner.Profiles)
		}
	}
	if c := spec.Cosign; c != nil {
		for name, value := range c.Annotations {
			weight += itemWeight + len(name) + len(value)
		}
	}
	if a := spec.Attestation; a != nil {
		weight += compile.ExpressionBytes(a.Expression)
	}
	if text := compile.InlineKeys(spec); text != "" {
		weight += len(text)*trustMaterialWeight + useOf([]byte(text), strings.Count(text, pemBegin)).keys
	}
	if signers := compile.SignersOf(spec); signers != nil && signers.Keyless != nil {
		weight += keylessWeight + compile.ExpressionBytes(signers.Keyless.Expression)
		for _, identity := range signers.Keyless.Identities {
			weight += texts([]string{identity.Issuer, identity.Subject})
		}
	}
	return weight
}

// identities weighs the regular expressions of a verifier.
func identities(spec v1beta1.VerifierSpec) (weight int) {
	if signers := compile.SignersOf(spec); signers != nil && signers.Keyless != nil {
		for _, identity := range signers.Keyless.Identities {
			weight += compile.SignerIdentity(identity).Bytes()
		}
	}
	return weight
}

// use returns what a trust store adds to a verifier.
func (s *scale) use(owner verify.Namespace, source policy.ObjectRef) use {
	if s.cluster == nil || source.Namespace == string(owner) {
		return s.uses[source.Name]
	}
	if t, ok := s.cluster.TrustStores[source.Name]; ok && t.Root == nil {
		return useOf(t.Text, len(t.Keys)+len(t.Certificates))
	}
	return use{}
}

// patternsOf weighs image patterns: each is kept by its segments.
func patternsOf(list []string) (weight int) {
	for _, text := range list {
		weight += patternWeight + 10*len(text)
	}
	return weight
}

// texts weighs a list of texts: each is kept as it is, and in parts.
func texts(list []string) (weight int) {
	for _, text := range list {
		weight += textWeight(text)
	}
	return weight
}

func textWeight(text string) int { return itemWeight + 2*len(text) }

func weightOf(spec v1beta1.ExceptionSpec) int {
	weight := resourceWeight + patternsOf(spec.Images) + texts(spec.Namespaces)
	if d := spec.Delegate; d != nil {
		weight += patternsOf(d.Images) + texts(d.Namespaces) + texts(d.Tenants)
	}
	return weight
}
