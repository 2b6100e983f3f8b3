package compile

import (
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/trust"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// trustStore is compiled trust material. With err set, whatever uses it is
// broken too.
type trustStore struct {
	source       policy.ObjectRef
	kind         v1alpha1.TrustStoreType
	hash         crypto.Hash // of signatures made with keys; 0 is cosign's choice
	keys         []trust.PublicKey
	certificates []*x509.Certificate
	root         *trust.SigstoreRoot
	fetchedAt    time.Time // zero for material in the cluster
	text         []byte
	fingerprint  string // changes whenever the store means something else
	err          error
}

func compileTrustStore(owner verify.Namespace, r entry[v1alpha1.TrustStoreSpec], m material) *trustStore {
	t := &trustStore{source: r.source, kind: r.spec.Type, err: r.broken}
	var content []byte
	if t.err == nil {
		content, t.fetchedAt, t.err = trustContent(owner, r.spec, m)
	}
	if t.err == nil {
		t.err = t.parse(r.spec, content)
	}
	t.text = content
	t.fingerprint = fingerprint(r.source, r.spec, content, t.err)
	return t
}

// maxShown is how many fingerprints a status shows.
const maxShown = 16

// material is what a status shows of the store.
func (t *trustStore) material() v1alpha1.Material {
	var made v1alpha1.Material
	if !t.fetchedAt.IsZero() {
		at := metav1.NewTime(t.fetchedAt)
		made.FetchedAt = &at
	}
	for _, key := range t.keys {
		made.Fingerprints = append(made.Fingerprints, key.Fingerprint)
	}
	for _, certificate := range t.certificates {
		made.Fingerprints = append(made.Fingerprints, hashed(certificate.RawSubjectPublicKeyInfo))
	}
	if t.root != nil {
		made.Fingerprints = append(made.Fingerprints, hashed(t.text))
	}
	made.Fingerprints = made.Fingerprints[:min(len(made.Fingerprints), maxShown)]
	return made
}

func hashed(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// trustContent reads the material from where the specification says it is, and
// says when it was fetched, if it was.
func trustContent(owner verify.Namespace, spec v1alpha1.TrustStoreSpec, m material) ([]byte, time.Time, error) {
	s := spec.Source
	given := 0
	for _, set := range []bool{s.Inline != "", s.SecretRef != nil, s.ConfigMapRef != nil, s.KMS != nil, s.Vault != nil, s.TUF != nil} {
		if set {
			given++
		}
	}
	if given != 1 {
		return nil, time.Time{}, fmt.Errorf("spec.source must name exactly one of inline, secretRef, configMapRef, kms, vault, tuf; it names %d", given)
	}
	if err := fitting(spec); err != nil {
		return nil, time.Time{}, err
	}
	source, err := trustRemote(owner, spec, m)
	switch {
	case err != nil:
		return nil, time.Time{}, err
	case source != nil:
		known, err := m.fetched(*source)
		return known.Content, known.FetchedAt, wrap("spec.source", err)
	case s.SecretRef != nil:
		content, err := m.key(owner, kindSecret, *s.SecretRef)
		return content, time.Time{}, wrap("spec.source.secretRef", err)
	case s.ConfigMapRef != nil:
		content, err := m.key(owner, kindConfigMap, *s.ConfigMapRef)
		return content, time.Time{}, wrap("spec.source.configMapRef", err)
	}
	if len(s.Inline) > maxMaterialBytes {
		return nil, time.Time{}, fmt.Errorf("spec.source.inline is %d bytes large, the limit is %d", len(s.Inline), maxMaterialBytes)
	}
	return []byte(s.Inline), time.Time{}, nil
}

// fitting refuses sources that cannot have material of the type.
func fitting(spec v1alpha1.TrustStoreSpec) error {
	switch s := spec.Source; {
	case s.TUF != nil && spec.Type != v1alpha1.SigstoreRoot:
		return fmt.Errorf("spec.source.tuf is only for spec.type %s", v1alpha1.SigstoreRoot)
	case s.KMS != nil && spec.Type != v1alpha1.PublicKeys:
		return fmt.Errorf("spec.source.kms is only for spec.type %s", v1alpha1.PublicKeys)
	case s.Vault != nil && spec.Type == v1alpha1.SigstoreRoot:
		return fmt.Errorf("spec.source.vault is not for spec.type %s", v1alpha1.SigstoreRoot)
	}
	return nil
}

func (t *trustStore) parse(spec v1alpha1.TrustStoreSpec, content []byte) (err error) {
	switch spec.Type {
	case v1alpha1.PublicKeys:
		if t.hash, err = hashOf(spec.Hash); err == nil {
			t.keys, err = trust.ParsePublicKeys(content)
		}
	case v1alpha1.Certificates, v1alpha1.TimestampAuthorities:
		if spec.Hash != "" {
			return fmt.Errorf("spec.hash is only for type %s", v1alpha1.PublicKeys)
		}
		t.certificates, err = trust.ParseCertificates(content)
	case v1alpha1.SigstoreRoot:
		if spec.Hash != "" {
			return fmt.Errorf("spec.hash is only for type %s", v1alpha1.PublicKeys)
		}
		t.root, err = trust.ParseSigstoreRoot(content)
	default:
		err = fmt.Errorf("spec.type is %q, it must be one of PublicKeys, Certificates, TimestampAuthorities, SigstoreRoot", spec.Type)
	}
	return err
}

func hashOf(name v1alpha1.HashAlgorithm) (crypto.Hash, error) {
	switch name {
	case "":
		return 0, nil
	case v1alpha1.SHA256:
		return crypto.SHA256, nil
	case v1alpha1.SHA384:
		return crypto.SHA384, nil
	case v1alpha1.SHA512:
		return crypto.SHA512, nil
	}
	return 0, fmt.Errorf("spec.hash is %q, it must be one of SHA256, SHA384, SHA512", name)
}

// trustStores finds what references to trust stores mean for resources of one
// level.
type trustStores struct {
	owner   verify.Namespace
	own     map[string]*trustStore
	cluster map[string]*trustStore
	// publicGood is what a keyless verifier uses that names no store.
	publicGood *trustStore
}

// find returns the store that ref names, if it is usable and of the kind wanted.
func (ts trustStores) find(ref v1alpha1.TrustStoreRef, want v1alpha1.TrustStoreType) (*trustStore, error) {
	source, err := ts.locate(ref)
	if err != nil {
		return nil, err
	}
	stores := ts.own
	if source.Namespace == "" {
		stores = ts.cluster
	}
	store, ok := stores[source.Name]
	switch {
	case !ok:
		return nil, fmt.Errorf("%s is not there", source)
	case store.err != nil:
		return nil, fmt.Errorf("%s cannot be used: %w", source, store.err)
	case store.kind != want:
		return nil, fmt.Errorf("%s is of type %s, here it must be %s", source, store.kind, want)
	}
	return store, nil
}

// locate says which object ref names: trustStore is one of the own scope, kind
// and name spell it out.
func (ts trustStores) locate(ref v1alpha1.TrustStoreRef) (policy.ObjectRef, error) {
	ownKind := kindTrustStore
	if ts.owner == verify.Cluster {
		ownKind = clusterPrefix + kindTrustStore
	}
	own := policy.ObjectRef{Kind: ownKind, Namespace: string(ts.owner), Name: ref.TrustStore}
	switch {
	case ref.TrustStore != "" && ref.Kind == "" && ref.Name == "":
		return own, nil
	case ref.TrustStore != "" || ref.Name == "":
		return policy.ObjectRef{}, fmt.Errorf("a trust store is named either by trustStore or by kind and name")
	case ref.Kind == clusterPrefix+kindTrustStore:
		return policy.ObjectRef{Kind: string(ref.Kind), Name: ref.Name}, nil
	case string(ref.Kind) == ownKind:
		own.Name = ref.Name
		return own, nil
	case ref.Kind == kindTrustStore:
		return policy.ObjectRef{}, fmt.Errorf("a cluster resource cannot use TrustStore %s: it belongs to a namespace; use a ClusterTrustStore", ref.Name)
	}
	return policy.ObjectRef{}, fmt.Errorf("kind is %q, it must be TrustStore or ClusterTrustStore", ref.Kind)
}

// publicGoodStore is Sigstore's own root as it was fetched, like a trust store
// that nobody declares.
func publicGoodStore(owner verify.Namespace, m material) *trustStore {
	t := &trustStore{source: policy.ObjectRef{Kind: "Sigstore's public-good root"}, kind: v1alpha1.SigstoreRoot}
	known, err := m.fetched(publicGood(owner))
	if err == nil {
		t.root, err = trust.ParseSigstoreRoot(known.Content)
	}
	t.err = err
	t.fingerprint = fingerprint(t.source, "", known.Content, err)
	return t
}
