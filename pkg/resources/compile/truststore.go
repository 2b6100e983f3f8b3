package compile

import (
	"cmp"
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

// TrustStore is a compiled TrustStore. If Err is set, everything that uses it is broken
// too.
type TrustStore struct {
	Source       policy.ObjectRef
	kind         v1beta1.TrustStoreType
	hash         crypto.Hash // for signatures by keys; 0 means cosign's default
	Keys         []trust.PublicKey
	Certificates []*x509.Certificate
	Root         *trust.SigstoreRoot
	lists        []*trust.RevocationList
	Open         bool      // the text is in the resource or a ConfigMap
	FetchedAt    time.Time // zero for trust material in the cluster
	fetchedEnds  []trust.End
	awsSigner    external.Identity // the identity for AWS Signer; nil if none is named
	Text         []byte
	Fingerprint  string // changes whenever the store's meaning changes
	Err          error
}

// NewTrustStore compiles a TrustStore. Its error is in the result, for resources that use it.
func NewTrustStore(e Entry[v1beta1.TrustStoreSpec], m Referenced) *TrustStore {
	t := &TrustStore{Source: e.Source, kind: e.Spec.Type, Err: e.Err(), Open: e.Spec.Source.Inline != "" ||
		e.Spec.Source.ConfigMapKeyRef != nil}
	if t.Err == nil {
		var value external.Value
		value, t.Err = TrustContent(verify.Namespace(e.Source.Namespace), e.Spec, m)
		t.Text, t.FetchedAt, t.fetchedEnds = value.Content, value.FetchedAt, keptEnds(value)
	}
	if t.Err == nil {
		t.Err = t.parse(e.Spec, t.Text)
	}
	if t.Err == nil && e.Spec.AWSSigner != nil {
		as := e.Spec.AWSSigner
		t.awsSigner, t.Err = identityOf(verify.Namespace(e.Source.Namespace), "spec.awsSigner", as.SecretRef, as.ServiceAccount, m)
	}
	content := t.Text
	if t.awsSigner != nil { // a new key must reach the Verifiers, although it changes no verdict
		content = append(slices.Clone(t.Text), external.Source{As: t.awsSigner}.Fingerprint()...)
	}
	t.Fingerprint = Fingerprint(e.Source, e.Spec, content, t.Err)
	return t
}

// Fingerprints returns the fingerprints of the trust material for the status, at most
// [maxFingerprints].
func (t *TrustStore) Fingerprints() []string {
	var list []string
	for _, key := range t.Keys {
		list = append(list, key.Fingerprint)
	}
	for _, certificate := range t.Certificates {
		list = append(list, hashed(certificate.RawSubjectPublicKeyInfo))
	}
	for _, revoked := range t.lists {
		list = append(list, hashed(revoked.Raw))
	}
	if t.Root != nil {
		list = append(list, hashed(t.Text))
	}
	return list[:min(len(list), maxFingerprints)]
}

// FingerprintsOf returns the fingerprints of the keys or certificates in a text, none if it is invalid.
func FingerprintsOf(text string) []string {
	keys, err := trust.ParsePublicKeys([]byte(text))
	if err == nil {
		return MapSlice(keys, func(key trust.PublicKey) string { return key.Fingerprint })
	}
	certificates, err := trust.ParseCertificates([]byte(text))
	if err != nil {
		return nil
	}
	return MapSlice(certificates, func(c *x509.Certificate) string { return hashed(c.RawSubjectPublicKeyInfo) })
}

func hashed(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// TrustContent reads the trust material from the source in spec. Material in the cluster has
// no times.
func TrustContent(owner verify.Namespace, spec v1beta1.TrustStoreSpec, m Referenced) (external.Value, error) {
	s := spec.Source
	source, err := ExternalSource(owner, spec, m)
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
	case s.Inline == "":
		return external.Value{}, notKnown("spec.source")
	}
	return external.Value{Content: []byte(s.Inline)}, nil
}

func (t *TrustStore) parse(spec v1beta1.TrustStoreSpec, content []byte) (err error) {
	switch spec.Type {
	case v1beta1.TrustStoreTypePublicKeys:
		if t.hash, err = hashOf(spec.Hash); err != nil {
			return err
		}
		t.Keys, err = trust.ParsePublicKeys(content)
	case v1beta1.TrustStoreTypeCertificates, v1beta1.TrustStoreTypeSigningAuthorities, v1beta1.TrustStoreTypeTimestampAuthorities:
		t.Certificates, err = trust.ParseCertificates(content)
	case v1beta1.TrustStoreTypeSigstoreRoot:
		t.Root, err = trust.ParseSigstoreRoot(content)
	case v1beta1.TrustStoreTypeRevocationLists:
		t.lists, err = trust.ParseRevocationLists(content)
	default:
		return notKnown("spec.type")
	}
	return fieldError(sourceField(spec.Source), err)
}

// sourceField names the field with the trust material.
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
	switch name {
	case "":
		return 0, nil
	case v1beta1.HashAlgorithmSHA256:
		return crypto.SHA256, nil
	case v1beta1.HashAlgorithmSHA384:
		return crypto.SHA384, nil
	case v1beta1.HashAlgorithmSHA512:
		return crypto.SHA512, nil
	}
	return 0, notKnown("spec.hash")
}

// TrustStores resolves references of one level's resources to trust stores.
type TrustStores struct {
	Owner verify.Namespace // of the referencing resources
	// Own and Cluster are the trust stores of the level and of the cluster, by name. Both are the
	// same for the resources of the cluster.
	Own, Cluster map[string]*TrustStore
	// PublicGood is the default root of keys and identities, nil if no verifier uses it.
	PublicGood *TrustStore
}

// find returns the store that ref names. It returns an error unless the store is usable
// and has the type want.
func (ts TrustStores) find(ref v1beta1.TrustStoreRef, want v1beta1.TrustStoreType) (*TrustStore, error) {
	kind := cmp.Or(string(ref.Kind), KindOf(ts.Owner, v1beta1.KindTrustStore))
	source := policy.ObjectRef{Kind: kind, Name: ref.Name}
	stores := ts.Cluster
	switch {
	case ref.Name == "":
		return nil, errors.New("the reference to a trust store has no name")
	case kind == v1beta1.KindTrustStore && ts.Owner == verify.Cluster:
		return nil, fmt.Errorf("a cluster resource cannot use TrustStore %s, which belongs to a namespace; use a ClusterTrustStore", ref.Name)
	case kind == v1beta1.KindTrustStore:
		source.Namespace, stores = string(ts.Owner), ts.Own
	case kind != v1beta1.KindClusterTrustStore:
		return nil, fmt.Errorf("kind is %q, it must be TrustStore or ClusterTrustStore", kind)
	}
	store, ok := stores[ref.Name]
	switch {
	case !ok:
		return nil, resource.Reasoned(policy.ReasonNotFound, fmt.Errorf("%s does not exist", source))
	case resource.IsUnread(store.Err):
		return nil, fmt.Errorf("%s: %w", source, store.Err)
	case store.Err != nil:
		err := Unusable(source, store.Err)
		if ts.Owner == verify.Cluster { // its own status may say why
			err = fmt.Errorf("%s cannot be used: %w", source, store.Err)
		}
		if remedy := policy.OutsideOf(err); remedy != "" {
			return nil, resource.Outside(remedy, err)
		}
		return nil, resource.Reasoned(policy.ReasonReferenceNotReady, err)
	case store.kind != want:
		return nil, fmt.Errorf("%s is of type %s, it must be of type %s", source, store.kind, want)
	}
	return store, nil
}

// all returns the stores that the refs in a field name, and the errors of those that cannot be used.
func (ts TrustStores) all(field string, refs []v1beta1.TrustStoreRef, want v1beta1.TrustStoreType) (found []*TrustStore, err error) {
	var wrong []error
	for i, ref := range refs {
		store, err := ts.find(ref, want)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s[%d]: %w", field, i, err))
			continue
		}
		found = append(found, store)
	}
	return found, errors.Join(wrong...)
}

// sigstoreRoot returns the root that spec names or, by default, Sigstore's public-good one.
func (ts TrustStores) sigstoreRoot(spec v1beta1.TransparencyLog) (*TrustStore, error) {
	switch {
	case spec.RootTrustStoreRef != nil:
		return ts.find(*spec.RootTrustStoreRef, v1beta1.TrustStoreTypeSigstoreRoot)
	case ts.PublicGood == nil:
		return nil, errors.New("the default is Sigstore's public-good root, which " + resource.NotFetched)
	case ts.PublicGood.Err != nil:
		return nil, fmt.Errorf("the default is Sigstore's public-good root, which cannot be used: %w (it is fetched from %s)", ts.PublicGood.Err,
			external.PublicGoodHost)
	}
	return ts.PublicGood, nil
}

// NewPublicGood returns Sigstore's public-good root as an implicit trust store.
func NewPublicGood(owner verify.Namespace, m Referenced) *TrustStore {
	t := &TrustStore{Source: policy.ObjectRef{Kind: "Sigstore's public-good root"}, kind: v1beta1.TrustStoreTypeSigstoreRoot}
	known, err := m.get(PublicGood(owner))
	if err == nil {
		t.Root, err = trust.ParseSigstoreRoot(known.Content)
	}
	t.Err, t.fetchedEnds = err, keptEnds(known)
	t.Fingerprint = Fingerprint(t.Source, "", known.Content, err)
	return t
}
