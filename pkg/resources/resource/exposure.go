package resource

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// Exposure is a field of a resource through which somebody may decide what is trusted without
// permission to change the resource: only admins may change resources, but the built-in role
// edit may change the Secrets and ConfigMaps that they name. Exposure does not depend on who
// has which role.
//
// Cluster-scoped resources have none: a cluster admin chose the namespace of the objects that
// they name, and the resources do not tell who has permissions there. Nor are references an
// exposure that only grant access, such as pull secrets, the ServiceAccount that has them, a
// client certificate or the token for Vault: with other content, evidence is missing and the
// image is denied.
type Exposure struct {
	// Resource is the resource with the field.
	Resource policy.ObjectRef
	// Field is its path, such as spec.source.secretKeyRef.
	Field string
	// Object is the Secret or ConfigMap that the field names.
	Object policy.ObjectRef
	// Allows says what somebody who can change the object can do with it.
	Allows string
	// Fix says what to change in the resource.
	Fix string
}

// String returns the exposure as one sentence, without the resource.
func (f Exposure) String() string {
	return fmt.Sprintf("anyone who may write %ss in the namespace, such as with the role edit, can change %s, which %s names, and %s; %s",
		f.Object.Kind, f.Object, f.Field, f.Allows, f.Fix)
}

// Exposures returns the exposures of resources, sorted by resource and field. Resources of
// other kinds have none.
func Exposures(resources ...v1beta1.Object) []Exposure {
	var found []Exposure
	for _, object := range resources {
		ref := policy.ObjectRef{Namespace: object.GetNamespace(), Name: object.GetName()}
		switch o := object.(type) {
		case *v1beta1.TrustStore:
			ref.Kind = v1beta1.KindTrustStore
			found = append(found, TrustStoreExposures(ref, o.Spec)...)
		case *v1beta1.Store:
			ref.Kind = v1beta1.KindStore
			found = append(found, StoreExposures(ref, o.Spec)...)
		}
	}
	slices.SortFunc(found, func(a, b Exposure) int {
		return cmp.Or(strings.Compare(a.Resource.String(), b.Resource.String()), strings.Compare(a.Field, b.Field))
	})
	return found
}

// TrustStoreExposures returns the exposures of one TrustStore, given its spec. A
// ClusterTrustStore has none.
func TrustStoreExposures(source policy.ObjectRef, spec v1beta1.TrustStoreSpec) []Exposure {
	c := collector{resource: source}
	material := materialOf(spec.Type)
	for _, f := range FieldsOfTrustStore(spec) {
		switch {
		case f.Use == TrustMaterial:
			c.add(f, "so replace "+material+" and decide whose signatures count", inlineInstead(f))
		case spec.Source.KMS != nil && f.Kind == KindSecret && strings.HasPrefix(f.Path, "spec.source.kms.") && accountIsInCredentials(spec.Source.KMS.URI):
			c.add(f, "so choose the account and region in which spec.source.kms.uri names a key, and decide whose signatures count", "copy the public key into spec.source.inline")
		case spec.Source.Vault != nil && f.Use == Authority:
			c.add(f, "with a way to redirect traffic to "+spec.Source.Vault.Address+" also replace "+material, inlineInstead(f))
		}
	}
	return c.found
}

// StoreExposures returns the exposures of one Store, given its spec. A ClusterStore has none.
func StoreExposures(source policy.ObjectRef, spec v1beta1.StoreSpec) []Exposure {
	c := collector{resource: source}
	for _, f := range FieldsOfStore(spec) {
		if f.Use == Authority {
			c.add(f, "with a way to redirect traffic to these registries also decide what a tag names and which evidence is shown; signatures are still verified", inlineInstead(f))
		}
	}
	return c.found
}

// inlineInstead says how to avoid a reference to an object with public trust material.
func inlineInstead(f Field) string {
	return "use " + f.Path[:strings.LastIndex(f.Path, ".")] + ".inline: the trust material is public, and only those who may change this resource can change it"
}

// materialOf names the trust material of a trust store.
func materialOf(kind v1beta1.TrustStoreType) string {
	switch kind {
	case v1beta1.TrustStoreTypePublicKeys:
		return "the keys"
	case v1beta1.TrustStoreTypeCertificates:
		return "the certificates"
	case v1beta1.TrustStoreTypeSigningAuthorities:
		return "the signing authorities"
	case v1beta1.TrustStoreTypeTimestampAuthorities:
		return "the timestamp authorities"
	case v1beta1.TrustStoreTypeSigstoreRoot:
		return "the trusted root"
	case v1beta1.TrustStoreTypeRevocationLists:
		return "the revocation lists"
	}
	return "the trust material"
}

// accountIsInCredentials reports whether the credentials determine the account of a key's
// URI: AWS finds an alias or a key ID in the caller's account, in the region of the Secret.
// Vaults of Azure and projects of Google Cloud are in the URI.
func accountIsInCredentials(uri string) bool {
	return strings.HasPrefix(uri, "awskms://") && !strings.Contains(uri, "/arn:aws")
}

// collector collects the exposures of one resource.
type collector struct {
	resource policy.ObjectRef
	found    []Exposure
}

func (c *collector) add(f Field, allows, fix string) {
	if c.resource.Namespace == "" {
		return
	}
	c.found = append(c.found, Exposure{Resource: c.resource, Field: f.Path,
		Object: policy.ObjectRef{Kind: f.Kind, Namespace: c.resource.Namespace, Name: f.Name}, Allows: allows, Fix: fix})
}
