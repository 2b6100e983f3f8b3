package resource

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// Kinds of core/v1 objects that resources refer to.
const (
	KindNamespace      = "Namespace"
	KindSecret         = "Secret"
	KindConfigMap      = "ConfigMap"
	KindServiceAccount = "ServiceAccount"
)

// Use is the purpose of a reference.
type Use int

// The uses of fields.
const (
	TrustMaterial Use = iota + 1 // trust material for signatures
	Authority                    // certificates of the CAs of servers
	Credential                   // credentials for a server that the resource names
	PullSecret                   // logins, each for a registry that the Secret itself names
	PullAccount                  // a ServiceAccount whose pull secrets are used
	TokenAccount                 // a ServiceAccount whose tokens are exchanged for credentials
	Trust                        // the trust store of a Verifier
	Required                     // the Verifier of a requirement
	Registry                     // a registry whose images a resource is for
	Place                        // a mirror or evidence repository
)

// Field is a field of a resource that refers to something.
type Field struct {
	// Path is the field, such as spec.source.secretKeyRef. For the name of a Verifier it is the
	// requirement.
	Path string
	Use  Use
	// Kind is the kind of the object or resource; empty for hosts, and for a trust store without
	// a kind.
	Kind string
	// Name is the object's name, or the host with or without a path. Only the name of a Verifier
	// may be empty.
	Name string
}

// FieldsOf returns the references of a resource. It is the only table of them: watches,
// fetches, previews, permissions and conditions use it.
func FieldsOf(object v1beta1.Object) []Field { return FieldsOfSpec(SpecOf(object)) }

// FieldsOfSpec is [FieldsOf] for a result of [SpecOf].
func FieldsOfSpec(spec any) []Field {
	switch spec := spec.(type) {
	case *v1beta1.StoreSpec:
		return FieldsOfStore(*spec)
	case *v1beta1.TrustStoreSpec:
		return FieldsOfTrustStore(*spec)
	case *v1beta1.VerifierSpec:
		return FieldsOfVerifier(*spec)
	case *v1beta1.VerificationPolicySpec:
		return FieldsOfPolicy(*spec)
	}
	return nil
}

// FieldsOfStore returns the references of a Store.
func FieldsOfStore(spec v1beta1.StoreSpec) []Field {
	var f fields
	for i, host := range spec.Registries {
		f.add(at("spec.registries", i), Registry, "", host)
	}
	for i, mirror := range spec.Mirrors {
		f.add(at("spec.mirrors", i), Place, "", mirror.Host)
	}
	for i, evidence := range or(spec.Evidence).Repositories {
		f.add(at("spec.evidence.repositories", i), Place, "", evidence.Repository)
	}
	for i, secret := range spec.ImagePullSecrets {
		f.add(at("spec.imagePullSecrets", i), PullSecret, KindSecret, secret.Name)
	}
	f.add("spec.imagePullSecretsFrom.serviceAccount", PullAccount, KindServiceAccount, or(spec.ImagePullSecretsFrom).ServiceAccount.Name)
	f.add("spec.identity.secretRef", Credential, KindSecret, or(or(spec.Identity).SecretRef).Name)
	f.add("spec.identity.serviceAccount", TokenAccount, KindServiceAccount, or(or(spec.Identity).ServiceAccount).Name)
	f.bundle("spec.caBundle", spec.CABundle)
	for i := range spec.AdditionalCABundles {
		f.bundle(at("spec.additionalCABundles", i), &spec.AdditionalCABundles[i])
	}
	f.add("spec.clientCertificate.secretRef", Credential, KindSecret, or(spec.ClientCertificate).SecretRef.Name)
	f.add("spec.proxy.secretRef", Credential, KindSecret, or(or(spec.Proxy).SecretRef).Name)
	f.bundle("spec.proxy.caBundle", or(spec.Proxy).CABundle)
	return f
}

// FieldsOfTrustStore returns the references of a TrustStore.
func FieldsOfTrustStore(spec v1beta1.TrustStoreSpec) []Field {
	var f fields
	source, kms, vault, signer := spec.Source, or(spec.Source.KMS), or(spec.Source.Vault), or(spec.AWSSigner)
	f.add("spec.source.secretKeyRef", TrustMaterial, KindSecret, or(source.SecretKeyRef).Name)
	f.add("spec.source.configMapKeyRef", TrustMaterial, KindConfigMap, or(source.ConfigMapKeyRef).Name)
	f.add("spec.source.kms.secretRef", Credential, KindSecret, or(kms.SecretRef).Name)
	f.add("spec.source.kms.serviceAccount", TokenAccount, KindServiceAccount, or(kms.ServiceAccount).Name)
	f.add("spec.source.vault.tokenSecretKeyRef", Credential, KindSecret, or(vault.TokenSecretKeyRef).Name)
	f.add("spec.source.vault.serviceAccount", TokenAccount, KindServiceAccount, or(vault.ServiceAccount).Name)
	f.bundle("spec.source.vault.caBundle", vault.CABundle)
	f.bundle("spec.source.tuf.caBundle", or(source.TUF).CABundle)
	f.add("spec.awsSigner.secretRef", Credential, KindSecret, or(signer.SecretRef).Name)
	f.add("spec.awsSigner.serviceAccount", TokenAccount, KindServiceAccount, or(signer.ServiceAccount).Name)
	return f
}

// FieldsOfVerifier returns the references of a Verifier.
func FieldsOfVerifier(spec v1beta1.VerifierSpec) []Field {
	var f fields
	f.signers("spec.cosign", or(spec.Cosign).Signers)
	f.signers("spec.attestation", or(spec.Attestation).Signers)
	notation := or(spec.Notation)
	f.trust("spec.notation.trustStoreRefs", notation.TrustStoreRefs)
	f.trust("spec.notation.signingAuthorities.trustStoreRefs", or(notation.SigningAuthorities).TrustStoreRefs)
	f.trust("spec.notation.timestamps.trustStoreRefs", or(notation.Timestamps).TrustStoreRefs)
	f.trust("spec.notation.revocationListTrustStoreRefs", notation.RevocationListTrustStoreRefs)
	return f
}

// FieldsOfPolicy returns the references of a VerificationPolicy.
func FieldsOfPolicy(spec v1beta1.VerificationPolicySpec) []Field {
	var f fields
	for i, rule := range spec.Rules {
		for j, requirement := range rule.Require {
			for _, name := range slices.Concat(requirement.AnyOf, requirement.AllOf) {
				f = append(f, Field{Path: at(at("spec.rules", i)+".require", j), Use: Required, Kind: v1beta1.KindVerifier, Name: name})
			}
		}
	}
	return f
}

// fields collects the fields of one resource.
type fields []Field

// add adds a field, unless it is empty.
func (f *fields) add(path string, use Use, kind, name string) {
	if name != "" {
		*f = append(*f, Field{Path: path, Use: use, Kind: kind, Name: name})
	}
}

func (f *fields) bundle(path string, bundle *v1beta1.CABundle) {
	if bundle != nil {
		f.add(path+".secretKeyRef", Authority, KindSecret, or(bundle.SecretKeyRef).Name)
		f.add(path+".configMapKeyRef", Authority, KindConfigMap, or(bundle.ConfigMapKeyRef).Name)
	}
}

func (f *fields) signers(path string, spec v1beta1.Signers) {
	if keys := spec.Keys; keys != nil {
		f.trust(path+".keys.trustStoreRefs", keys.TrustStoreRefs)
		f.root(path, ".keys.rootTrustStoreRef", keys.RootTrustStoreRef)
	}
	if spec.Keyless != nil {
		f.root(path, ".keyless.rootTrustStoreRef", spec.Keyless.RootTrustStoreRef)
	}
}

// root adds the field of a Sigstore root. Most have none, so it only builds the path if
// needed.
func (f *fields) root(path, field string, ref *v1beta1.TrustStoreRef) {
	if ref != nil {
		f.add(path+field, Trust, string(ref.Kind), ref.Name)
	}
}

func (f *fields) trust(path string, refs []v1beta1.TrustStoreRef) {
	for i, ref := range refs {
		f.add(at(path, i), Trust, string(ref.Kind), ref.Name)
	}
}

// or returns the target of a pointer, empty if it is nil.
func or[T any](field *T) (value T) {
	if field != nil {
		value = *field
	}
	return value
}

// at returns the path of an entry of a list.
func at(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// MaxPullSecrets is the number of pull secrets of one ServiceAccount, as of a Store.
const MaxPullSecrets = 8

// ReferenceNamespace returns the namespace of referenced objects: the owner's, or the cluster
// resource namespace if owner is empty.
func (o *Objects) ReferenceNamespace(owner string) string {
	if owner == "" {
		return o.ForCluster()
	}
	return owner
}

// Locate returns the object that a reference in a namespace names. No schema checks such
// names.
func Locate(namespace, kind, name string) (policy.ObjectRef, error) {
	switch {
	case name == "":
		return policy.ObjectRef{}, fmt.Errorf("the reference to a %s has no name", kind)
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		return policy.ObjectRef{}, fmt.Errorf("the reference to a %s names %q, which cannot be the name of one", kind, name)
	case len(validation.IsDNS1123Label(namespace)) > 0:
		return policy.ObjectRef{}, fmt.Errorf("the reference to %s %s is to namespace %q, which cannot be the name of one", kind, name, namespace)
	}
	return policy.ObjectRef{Kind: kind, Namespace: namespace, Name: name}, nil
}

// Named returns the objects that f names in a namespace, and the pull secrets of an account
// that it names. It omits names that objects cannot have.
func (f Field) Named(namespace string, pulls map[policy.ObjectRef][]string) []policy.ObjectRef {
	if f.Kind != KindSecret && f.Kind != KindConfigMap && f.Use != PullAccount { // tokens are not objects
		return nil
	}
	source, err := Locate(namespace, f.Kind, f.Name)
	if err != nil {
		return nil // compiling reports it
	}
	found := []policy.ObjectRef{source}
	if names := pulls[source]; len(names) <= MaxPullSecrets {
		for _, name := range names {
			if secret, err := Locate(namespace, KindSecret, name); err == nil {
				found = append(found, secret)
			}
		}
	}
	return found
}

// PullSecrets returns the names of the pull secrets of each ServiceAccount.
func (o *Objects) PullSecrets() map[policy.ObjectRef][]string {
	pulls := map[policy.ObjectRef][]string{}
	for _, account := range o.ServiceAccounts {
		source := policy.ObjectRef{Kind: KindServiceAccount, Namespace: account.Namespace, Name: account.Name}
		pulls[source] = nil // the last of several counts
		for _, secret := range account.ImagePullSecrets {
			pulls[source] = append(pulls[source], secret.Name)
		}
	}
	return pulls
}
