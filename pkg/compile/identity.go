package compile

import (
	"errors"
	"fmt"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/external"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// identityOf returns as whom a resource is fetched: with the credentials in a Secret, as a
// ServiceAccount, or as the pod if there is neither, which only a resource of the cluster
// may leave out.
func identityOf(owner verify.Namespace, field string, secret *v1beta1.ClusterSecretRef, as *v1beta1.ClusterServiceAccountIdentity, m material) (external.Identity, error) {
	switch {
	case secret != nil && as != nil:
		return nil, fmt.Errorf("%s must have only one of secretRef and serviceAccount", field)
	case as != nil:
		made, err := accountOf(owner, as.ClusterServiceAccountRef, external.Federation{AWSRoleARN: as.AWSRoleARN, AWSRegion: as.AWSRegion,
			AzureTenantID: as.AzureTenantID, AzureClientID: as.AzureClientID, GoogleProvider: as.GoogleProvider, GoogleServiceAccount: as.GoogleServiceAccount})
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

// accountOf returns the identity of a ServiceAccount.
func accountOf(owner verify.Namespace, ref v1beta1.ClusterServiceAccountRef, federation external.Federation) (external.Identity, error) {
	source, err := locate("ServiceAccount", ref.Namespace, ref.Name)
	if err != nil {
		return nil, err
	}
	return external.ServiceAccount(owner, source.Namespace, source.Name, federation)
}

// secretIdentity returns the identity of the credentials in a Secret.
func secretIdentity(ref v1beta1.ClusterSecretRef, m material) (external.Identity, error) {
	source, err := locate(kindSecret, ref.Namespace, ref.Name)
	if err != nil {
		return nil, err
	}
	content, err := m.object(source)
	if err != nil {
		return nil, err
	}
	texts := make(map[string]string, len(content))
	size := 0
	for name, value := range content {
		texts[name] = string(value)
		if size += len(value); size > maxMaterialBytes {
			return nil, fmt.Errorf("%s is larger than %d bytes", source, maxMaterialBytes)
		}
	}
	as, err := external.Given(texts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	return as, nil
}

// registryIdentity returns as whom a store logs in.
func registryIdentity(owner verify.Namespace, identity v1beta1.ClusterRegistryIdentity, m material) (external.Identity, error) {
	const field = "spec.identity"
	as := identity.ServiceAccount
	missing := ""
	switch identity.Provider {
	case v1beta1.RegistryProviderECR:
		if as != nil && as.AWSRoleARN == "" {
			missing = "awsRoleARN, the role to assume"
		}
	case v1beta1.RegistryProviderACR:
		if as != nil && (as.AzureTenantID == "" || as.AzureClientID == "") {
			missing = "azureTenantID and azureClientID"
		}
	case v1beta1.RegistryProviderGAR:
		if as != nil && as.GoogleProvider == "" {
			missing = "googleProvider, the workload identity provider"
		}
	case v1beta1.RegistryProviderGHCR:
		if as != nil || identity.SecretRef == nil {
			return nil, fmt.Errorf("%s: GHCR logs in as a GitHub App: use secretRef", field)
		}
	default:
		return nil, fmt.Errorf("%s.provider is %q, it must be ECR, ACR, GAR or GHCR", field, identity.Provider)
	}
	if missing != "" {
		return nil, fmt.Errorf("%s.serviceAccount: %s needs %s", field, identity.Provider, missing)
	}
	return identityOf(owner, field, identity.SecretRef, as, m)
}

// vaultIdentity returns as whom Vault is read.
func vaultIdentity(owner verify.Namespace, v v1beta1.ClusterVaultSource, m material) (external.Identity, error) {
	const field = "spec.source.vault"
	switch {
	case (v.TokenSecretKeyRef == nil) == (v.ServiceAccount == nil):
		return nil, errors.New(field + " must have exactly one of tokenSecretKeyRef and serviceAccount")
	case v.ServiceAccount != nil && v.ServiceAccount.Role == "":
		return nil, errors.New(field + ".serviceAccount.role is missing: the role in Vault to log in with")
	case v.ServiceAccount != nil:
		as, err := accountOf(owner, v.ServiceAccount.ClusterServiceAccountRef,
			external.Federation{VaultRole: v.ServiceAccount.Role, VaultMount: v.ServiceAccount.Mount, VaultNamespace: v.VaultNamespace})
		return as, fieldError(field+".serviceAccount", err)
	}
	token, err := m.key(kindSecret, *v.TokenSecretKeyRef)
	if err != nil {
		return nil, fieldError(field+".tokenSecretKeyRef", err)
	}
	return external.Given(map[string]string{"token": string(token), "namespace": v.VaultNamespace})
}
