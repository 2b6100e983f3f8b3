package compile

import (
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/trust"
	"github.com/landwaiter/landwaiter/pkg/remote/external"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// trustStore is a compiled TrustStore. If err is set, everything that uses it is broken
// too.
type trustStore struct {
	source       policy.ObjectRef
	kind         v1beta1.TrustStoreType
	hash         crypto.Hash // for signatures by keys; 0 means cosign's default
	keys         []trust.PublicKey
	certificates []*x509.Certificate
	root         *trust.SigstoreRoot
	lists        []*trust.RevocationList
	open         bool      // the text is in the resource or a ConfigMap
	fetchedAt    time.Time // zero for trust material in the cluster
	fetchedEnds  []trust.End
	awsSigner    external.Identity // as whom AWS Signer is asked; nil if nobody is named
	text         []byte
	fingerprint  string // changes whenever the store's meaning changes
	err          error
}

// compileTrustStore compiles a TrustStore. Its error is a field, for what uses it.
func compileTrustStore(e entry[v1beta1.TrustStoreSpec], m referenced) *trustStore {
	t := &trustStore{source: e.source, kind: e.spec.Type, err: e.err(), open: e.spec.Source.Inline != "" || e.spec.Source.ConfigMapKeyRef != nil}
	if t.err == nil {
		var value external.Value
		value, t.err = trustContent(verify.Namespace(e.source.Namespace), e.spec, m)
		t.text, t.fetchedAt, t.fetchedEnds = value.Content, value.FetchedAt, keptEnds(value)
	}
	if t.err == nil {
		t.err = t.parse(e.spec, t.text)
	}
	if t.err == nil && e.spec.AWSSigner != nil {
		t.awsSigner, t.err = awsSignerIdentity(verify.Namespace(e.source.Namespace), e.spec, m)
	}
	content := t.text
	if t.awsSigner != nil { // a new key has to reach the Verifiers, although it changes no verdict
		content = append(slices.Clone(t.text), external.Source{As: t.awsSigner}.Fingerprint()...)
	}
	t.fingerprint = fingerprint(e.source, e.spec, content, t.err)
	return t
}

// awsSignerIdentity returns as whom a trust store has AWS Signer asked.
func awsSignerIdentity(owner verify.Namespace, spec v1beta1.TrustStoreSpec, m referenced) (external.Identity, error) {
	if spec.Type != v1beta1.TrustStoreTypeSigningAuthorities {
		return nil, fmt.Errorf("spec.awsSigner is only for spec.type %s; remove it", v1beta1.TrustStoreTypeSigningAuthorities)
	}
	if as := spec.AWSSigner.ServiceAccount; as != nil && as.AWS == nil {
		return nil, errors.New("spec.awsSigner: AWS Signer needs serviceAccount.aws")
	}
	return identityOf(owner, "spec.awsSigner", spec.AWSSigner.SecretRef, spec.AWSSigner.ServiceAccount, m)
}

// fingerprints returns the fingerprints of the trust material for the status, at most
// [maxFingerprints].
func (t *trustStore) fingerprints() []string {
	var list []string
	for _, key := range t.keys {
		list = append(list, key.Fingerprint)
	}
	for _, certificate := range t.certificates {
		list = append(list, hashed(certificate.RawSubjectPublicKeyInfo))
	}
	for _, revoked := range t.lists {
		list = append(list, hashed(revoked.Raw))
	}
	if t.root != nil {
		list = append(list, hashed(t.text))
	}
	return list[:min(len(list), maxFingerprints)]
}

func hashed(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// trustContent reads the trust material from the source in spec. That of the
// cluster has no times.
func trustContent(owner verify.Namespace, spec v1beta1.TrustStoreSpec, m referenced) (external.Value, error) {
	s := spec.Source
	if err := exactlyOne("spec.source", member{"inline", s.Inline != ""}, member{"secretKeyRef", s.SecretKeyRef != nil}, member{"configMapKeyRef", s.ConfigMapKeyRef != nil},
		member{"kms", s.KMS != nil}, member{"vault", s.Vault != nil}, member{"tuf", s.TUF != nil}); err != nil {
		return external.Value{}, err
	}
	if err := checkSourceType(spec); err != nil {
		return external.Value{}, err
	}
	source, err := externalSource(owner, spec, m)
	switch {
	case err != nil:
		return external.Value{}, err
	case source != nil:
		known, err := m.get(*source)
		return known, fieldError("spec.source", err)
	case s.SecretKeyRef != nil:
		content, err := m.key(resource.KindSecret, *s.SecretKeyRef)
		return external.Value{Content: content}, fieldError("spec.source.secretKeyRef", err)
	case s.ConfigMapKeyRef != nil:
		content, err := m.key(resource.KindConfigMap, *s.ConfigMapKeyRef)
		return external.Value{Content: content}, fieldError("spec.source.configMapKeyRef", err)
	case len(s.Inline) > maxReferencedBytes:
		return external.Value{}, fmt.Errorf("spec.source.inline is %d bytes, the limit is %d", len(s.Inline), maxReferencedBytes)
	}
	return external.Value{Content: []byte(s.Inline)}, nil
}

// checkSourceType rejects sources that cannot provide trust material of the spec's type.
func checkSourceType(spec v1beta1.TrustStoreSpec) error {
	switch s := spec.Source; {
	case s.TUF != nil && spec.Type != v1beta1.TrustStoreTypeSigstoreRoot:
		return fmt.Errorf("spec.source.tuf is only for spec.type %s", v1beta1.TrustStoreTypeSigstoreRoot)
	case s.KMS != nil && spec.Type != v1beta1.TrustStoreTypePublicKeys:
		return fmt.Errorf("spec.source.kms is only for spec.type %s", v1beta1.TrustStoreTypePublicKeys)
	case s.Vault != nil && (spec.Type == v1beta1.TrustStoreTypeSigstoreRoot || spec.Type == v1beta1.TrustStoreTypeRevocationLists):
		return fmt.Errorf("spec.source.vault is not for spec.type %s", spec.Type)
	}
	return nil
}

func (t *trustStore) parse(spec v1beta1.TrustStoreSpec, content []byte) (err error) {
	if spec.Hash != "" && spec.Type != v1beta1.TrustStoreTypePublicKeys {
		return fmt.Errorf("spec.hash is only for type %s", v1beta1.TrustStoreTypePublicKeys)
	}
	switch spec.Type {
	case v1beta1.TrustStoreTypePublicKeys:
		if t.hash, err = hashOf(spec.Hash); err != nil {
			return err
		}
		t.keys, err = trust.ParsePublicKeys(content)
	case v1beta1.TrustStoreTypeCertificates, v1beta1.TrustStoreTypeSigningAuthorities, v1beta1.TrustStoreTypeTimestampAuthorities:
		t.certificates, err = trust.ParseCertificates(content)
	case v1beta1.TrustStoreTypeSigstoreRoot:
		t.root, err = trust.ParseSigstoreRoot(content)
	case v1beta1.TrustStoreTypeRevocationLists:
		t.lists, err = trust.ParseRevocationLists(content)
	default:
		return fmt.Errorf("spec.type is %q, it must be one of PublicKeys, Certificates, SigningAuthorities, TimestampAuthorities, SigstoreRoot, RevocationLists", spec.Type)
	}
	return fieldError(sourceField(spec.Source), err)
}

// sourceField names the field that trust material is from.
func sourceField(source v1beta1.TrustSource) string {
	switch {
	case source.Inline != "":
		return "spec.source.inline"
	case source.SecretKeyRef != nil:
		return "spec.source.secretKeyRef"
	case source.ConfigMapKeyRef != nil:
		return "spec.source.configMapKeyRef"
	}
	return "spec.source"
}

func hashOf(name v1beta1.HashAlgorithm) (crypto.Hash, error) {
	hashes := map[v1beta1.HashAlgorithm]crypto.Hash{v1beta1.HashAlgorithmSHA256: crypto.SHA256, v1beta1.HashAlgorithmSHA384: crypto.SHA384, v1beta1.HashAlgorithmSHA512: crypto.SHA512}
	return hashes[name], knownWord("spec.hash", name, "", v1beta1.HashAlgorithmSHA256, v1beta1.HashAlgorithmSHA384, v1beta1.HashAlgorithmSHA512)
}

// shelf holds the trust stores of one level, by name.
type shelf struct {
	owner  verify.Namespace
	stores map[string]*trustStore
	hidden error // why they may not be read
}

// trustStores resolves references of one level's resources to trust stores.
type trustStores struct {
	levels []shelf // nearest first: the own level, then the cluster's
	// publicGood is the default root of keys and identities, nil if no verifier uses it.
	publicGood *trustStore
}

// owner returns the namespace of the referencing resources.
func (ts trustStores) owner() verify.Namespace { return ts.levels[0].owner }

// find returns the store that ref names. It returns an error unless the store is usable
// and has the type want.
func (ts trustStores) find(ref v1beta1.TrustStoreRef, want v1beta1.TrustStoreType) (*trustStore, error) {
	kind := string(ref.Kind)
	if kind == "" {
		kind = kindOf(ts.owner(), v1beta1.KindTrustStore)
	}
	if ref.Name == "" {
		return nil, errors.New("the reference to a trust store has no name")
	}
	for _, l := range ts.levels {
		if kindOf(l.owner, v1beta1.KindTrustStore) == kind {
			return ts.at(l, kind, ref.Name, want)
		}
	}
	if kind == v1beta1.KindTrustStore {
		return nil, fmt.Errorf("a cluster resource cannot use TrustStore %s, which belongs to a namespace; use a ClusterTrustStore", ref.Name)
	}
	return nil, fmt.Errorf("kind is %q, it must be TrustStore or ClusterTrustStore", kind)
}

func (ts trustStores) at(l shelf, kind, name string, want v1beta1.TrustStoreType) (*trustStore, error) {
	source := policy.ObjectRef{Kind: kind, Namespace: string(l.owner), Name: name}
	store, ok := l.stores[name]
	switch {
	case !ok && l.hidden != nil:
		return nil, l.hidden
	case !ok:
		return nil, resource.Reasoned(policy.ReasonNotFound, fmt.Errorf("%s does not exist", source))
	case policy.IsHidden(store.err):
		return nil, fmt.Errorf("%s cannot be read: %w", source, store.err)
	case store.err != nil:
		if ts.owner() == verify.Cluster { // its own status may say why
			return nil, resource.Reasoned(policy.ReasonReferenceNotReady, fmt.Errorf("%s cannot be used: %w", source, store.err))
		}
		return nil, resource.Reasoned(policy.ReasonReferenceNotReady, unusable(source, store.err))
	case store.kind != want:
		return nil, fmt.Errorf("%s is of type %s, it must be of type %s", source, store.kind, want)
	}
	return store, nil
}

// sigstoreRoot returns the root that spec names or, by default, Sigstore's public-good one.
func (ts trustStores) sigstoreRoot(spec v1beta1.TransparencyLog) (*trustStore, error) {
	switch {
	case spec.RootTrustStoreRef != nil:
		return ts.find(*spec.RootTrustStoreRef, v1beta1.TrustStoreTypeSigstoreRoot)
	case ts.publicGood == nil:
		return nil, errors.New("the default is Sigstore's public-good root, which " + resource.NotFetched)
	case ts.publicGood.err != nil:
		return nil, fmt.Errorf("the default is Sigstore's public-good root, which cannot be used: %w (it is fetched from %s)", ts.publicGood.err, external.PublicGoodHost)
	}
	return ts.publicGood, nil
}

// publicGoodStore returns Sigstore's public-good root as an implicit trust store.
func publicGoodStore(owner verify.Namespace, m referenced) *trustStore {
	t := &trustStore{source: policy.ObjectRef{Kind: "Sigstore's public-good root"}, kind: v1beta1.TrustStoreTypeSigstoreRoot}
	known, err := m.get(publicGood(owner))
	if err == nil {
		t.root, err = trust.ParseSigstoreRoot(known.Content)
	}
	t.err, t.fetchedEnds = err, keptEnds(known)
	t.fingerprint = fingerprint(t.source, "", known.Content, err)
	return t
}
