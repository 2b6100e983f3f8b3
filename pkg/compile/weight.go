package compile

import (
	"bytes"
	"fmt"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/cel"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/resource"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// scale weighs the resources of one level before they are compiled. It is a pure
// function of the resources and their material, so that every replica agrees.
type scale struct {
	material material
	cluster  *level         // nil for the cluster's own level
	uses     map[string]use // the level's trust stores, by name

	total   int
	largest policy.ObjectRef
	most    int
}

// use is what a trust store adds to each Verifier that names it.
type use struct{ keys, anchors int }

func useOf(content []byte, blocks int) use {
	return use{keys: blocks*keyWeight + len(content)*keyByteWeight, anchors: blocks * anchorWeight}
}

// weigh returns an error if the resources of o weigh more than their level may.
func weigh(o *objects, cluster *level, m material) error {
	return (&scale{material: m, cluster: cluster, uses: map[string]use{}}).load(o)
}

func (s *scale) load(o *objects) error {
	limit, whose := maxWeight, "the resources of namespace "+string(o.namespace)
	if o.namespace == verify.Cluster {
		limit, whose = maxClusterWeight, "the cluster resources"
	}
	for _, e := range o.trustStores {
		s.add(e.source, s.trustStore(e))
	}
	for _, e := range o.stores {
		s.add(e.source, s.store(e.spec))
	}
	for _, e := range o.policies {
		s.add(e.source, policyOf(e.spec))
	}
	for _, e := range o.verifiers {
		weight := s.verifier(o.namespace, e.spec)
		if s.total+weight <= limit { // sizing a regular expression takes time, too
			weight += identities(e.spec)
		}
		s.add(e.source, weight)
	}
	if s.total <= limit {
		return nil
	}
	return resource.Reasoned(policy.ReasonLimitExceeded, fmt.Errorf("%s take about %d KiB once they are compiled, the limit is %d KiB; the largest is %s with %d KiB: "+
		"shorten expressions and lists, use a key or certificate in fewer Verifiers, or delete what is not used", whose, s.total>>10, limit>>10, s.largest, s.most>>10))
}

func (s *scale) add(source policy.ObjectRef, weight int) {
	if s.total += weight; weight > s.most {
		s.largest, s.most = source, weight
	}
}

func (s *scale) trustStore(e entry[v1alpha1.ClusterTrustStoreSpec]) int {
	value, err := trustContent(verify.Namespace(e.source.Namespace), e.spec, s.material)
	if err != nil {
		return resourceWeight // it is not compiled
	}
	content := value.Content
	if e.spec.Type != v1alpha1.TrustStoreTypeSigstoreRoot {
		s.uses[e.source.Name] = useOf(content, bytes.Count(content, []byte("-----BEGIN ")))
	}
	return resourceWeight + len(content)*materialWeight
}

func (s *scale) store(spec v1alpha1.ClusterStoreSpec) int {
	weight := resourceWeight + texts(spec.Registries)
	for _, m := range spec.Mirrors {
		weight += placeWeight + texts([]string{m.Host, m.Path})
	}
	if spec.Evidence != nil {
		for _, r := range spec.Evidence.Repositories {
			weight += placeWeight + texts([]string{r.Repository})
		}
	}
	secrets := spec.ImagePullSecrets
	if from := spec.ImagePullSecretsFrom; from != nil {
		secrets, _ = s.material.pullSecrets(from.ServiceAccount) // compiling reports errors
	}
	for _, ref := range secrets {
		content, _ := s.material.object(policy.ObjectRef{Kind: kindSecret, Namespace: ref.Namespace, Name: ref.Name})
		for _, value := range content {
			weight += len(value) * loginWeight
		}
	}
	if p := spec.Proxy; p != nil {
		weight += texts(p.NoProxy) + texts(p.AlsoFor)
	}
	authorities, _ := s.material.authorities(spec)
	return weight + len(authorities)*materialWeight
}

func policyOf(spec v1alpha1.ClusterVerificationPolicySpec) int {
	weight := resourceWeight
	for _, rule := range spec.Rules {
		weight += ruleWeight + patternsOf(rule.Images)
		for _, r := range rule.Require {
			weight += requireWeight + texts(r.AnyOf) + texts(r.AllOf) + itemWeight*len(r.Types) + expressionOf(r.Expression)
		}
	}
	return weight
}

func (s *scale) verifier(owner verify.Namespace, spec v1alpha1.VerifierSpec) int {
	weight := resourceWeight + patternsOf(spec.Images)
	for _, store := range trustStoresOf(owner, spec) {
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
		weight += expressionOf(a.Expression)
	}
	if signers := signersOf(spec); signers != nil && signers.Keyless != nil {
		weight += keylessWeight + expressionOf(signers.Keyless.Expression)
		for _, identity := range signers.Keyless.Identities {
			weight += texts([]string{identity.Issuer, identity.Subject})
		}
	}
	return weight
}

// identities weighs the regular expressions of a verifier.
func identities(spec v1alpha1.VerifierSpec) (weight int) {
	if signers := signersOf(spec); signers != nil && signers.Keyless != nil {
		for _, identity := range signers.Keyless.Identities {
			weight += signerIdentity(identity).Bytes()
		}
	}
	return weight
}

// use returns what a trust store adds to a verifier.
func (s *scale) use(owner verify.Namespace, source policy.ObjectRef) use {
	if s.cluster == nil || source.Namespace == string(owner) {
		return s.uses[source.Name]
	}
	if t, ok := s.cluster.trustStores[source.Name]; ok && t.root == nil {
		return useOf(t.text, len(t.keys)+len(t.certificates))
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

func expressionOf(text string) int {
	if text == "" {
		return 0
	}
	return cel.Bytes(text)
}

// texts weighs a list of texts: each is kept as it is, and in parts.
func texts(list []string) (weight int) {
	for _, text := range list {
		weight += itemWeight + 2*len(text)
	}
	return weight
}
