package compile

import (
	"fmt"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/external"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// identityOf returns the identity that fetches a resource: the credentials in a Secret, a
// ServiceAccount, or, only for a cluster resource with neither, the pod's identity.
func identityOf(owner verify.Namespace, field string, secret *v1beta1.Reference, as *v1beta1.CloudServiceAccount,
	m Referenced) (external.Identity, error) {
	switch {
	case as != nil:
		federation, err := federationOf(field+".serviceAccount", *as)
		if err != nil {
			return nil, err
		}
		made, err := accountOf(owner, as.Reference, federation, m)
		return made, fieldError(field+".serviceAccount", err)
	case secret != nil:
		made, err := secretIdentity(*secret, m)
		return made, fieldError(field+".secretRef", err)
	}
	made, err := external.Pod(owner)
	if err != nil {
		return nil, fmt.Errorf("%s needs secretRef or serviceAccount: %w", field, err)
	}
	return made, nil
}

// federationOf returns the account of the cloud that trusts a ServiceAccount.
func federationOf(field string, as v1beta1.CloudServiceAccount) (external.Federation, error) {
	switch {
	case as.AWS != nil:
		return external.Federation{AWSRoleARN: as.AWS.RoleARN, AWSRegion: as.AWS.Region}, nil
	case as.Azure != nil:
		return external.Federation{AzureTenantID: as.Azure.TenantID, AzureClientID: as.Azure.ClientID}, nil
	case as.Google != nil:
		return external.Federation{GoogleProvider: as.Google.Provider, GoogleServiceAccount: as.Google.ServiceAccount}, nil
	}
	return external.Federation{}, notKnown(field)
}

// accountOf returns the identity of a ServiceAccount.
func accountOf(owner verify.Namespace, ref v1beta1.Reference, federation external.Federation, m Referenced) (external.Identity, error) {
	source, err := resource.Locate(m.Namespace, resource.KindServiceAccount, ref.Name)
	if err != nil {
		return nil, err
	}
	return external.ServiceAccount(owner, source.Namespace, source.Name, federation)
}

// secretIdentity returns the identity with the credentials of a Secret.
func secretIdentity(ref v1beta1.Reference, m Referenced) (external.Identity, error) {
	source, content, err := m.named(resource.KindSecret, ref.Name)
	if err != nil {
		return nil, err
	}
	texts := make(map[string]string, len(content))
	size := 0
	for name, value := range content {
		texts[name] = string(value)
		if size += len(value); size > maxReferencedBytes {
			return nil, fmt.Errorf("%s is larger than %d bytes", source, maxReferencedBytes)
		}
	}
	as, err := external.Given(texts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	return as, nil
}

// vaultIdentity returns the identity that reads Vault.
func vaultIdentity(owner verify.Namespace, v v1beta1.VaultSource, m Referenced) (external.Identity, error) {
	const field = "spec.source.vault"
	switch {
	case v.ServiceAccount != nil:
		as, err := accountOf(owner, v.ServiceAccount.Reference,
			external.Federation{VaultRole: v.ServiceAccount.Role, VaultMount: v.ServiceAccount.Mount, VaultNamespace: v.VaultNamespace}, m)
		return as, fieldError(field+".serviceAccount", err)
	case v.TokenSecretKeyRef == nil:
		return nil, notKnown(field)
	}
	token, err := m.key(resource.KindSecret, *v.TokenSecretKeyRef)
	if err != nil {
		return nil, fieldError(field+".tokenSecretKeyRef", err)
	}
	return external.Given(map[string]string{"token": string(token), "namespace": v.VaultNamespace})
}
