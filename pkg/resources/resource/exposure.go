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
// Cluster-scoped resources do not say in which namespace the objects are that they name. Nor are references an
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

// Exposures returns the exposures of resources, sorted by resource and field.
func Exposures(resources ...v1beta1.Object) []Exposure {
	var found []Exposure
	for _, object := range resources {
		found = append(found, ExposuresOf(RefOf(object), SpecOf(object))...)
	}
	slices.SortFunc(found, func(a, b Exposure) int {
		return cmp.Or(strings.Compare(a.Resource.String(), b.Resource.String()), strings.Compare(a.Field, b.Field))
	})
	return found
}

// ExposuresOf returns the exposures of one resource, given its spec as [SpecOf] returns it. Only
// TrustStores and Stores have any.
func ExposuresOf(source policy.ObjectRef, spec any) (found []Exposure) {
	if source.Namespace == "" {
		return nil
	}
	for _, f := range FieldsOfSpec(spec) {
		if allows, fix := exposed(spec, f); allows != "" {
			object := policy.ObjectRef{Kind: f.Kind, Namespace: source.Namespace, Name: f.Name}
			found = append(found, Exposure{Resource: source, Field: f.Path, Object: object, Allows: allows, Fix: fix})
		}
	}
	return found
}

// exposed says what somebody can do who can change the object that a field of a spec names, "" if
// nothing, and what to change in the resource.
func exposed(spec any, f Field) (allows, fix string) {
	switch spec := spec.(type) {
	case *v1beta1.TrustStoreSpec:
		material := materialOf(spec.Type)
		switch {
		case f.Use == TrustMaterial:
			return "so replace " + material + " and decide whose signatures count", inlineInstead(f)
		case spec.Source.KMS != nil && f.Kind == KindSecret && strings.HasPrefix(f.Path, "spec.source.kms.") &&
			accountIsInCredentials(spec.Source.KMS.URI):
			return "so choose the account and region in which spec.source.kms.uri names a key, and decide whose signatures count",
				"copy the public key into spec.source.inline"
		case spec.Source.Vault != nil && f.Use == Authority:
			return "with a way to redirect traffic to " + spec.Source.Vault.Address + " also replace " + material, inlineInstead(f)
		}
	case *v1beta1.StoreSpec:
		if f.Use == Authority {
			return "with a way to redirect traffic to these registries also decide what a tag names and which evidence is shown; signatures are " +
				"still verified", inlineInstead(f)
		}
	}
	return "", ""
}

// inlineInstead says how to avoid a reference to an object with public trust material.
func inlineInstead(f Field) string {
	return "use " + f.Path[:strings.LastIndex(f.Path, ".")] + ".inline: the trust material is public, and only those who may change this " +
		"resource can change it"
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
