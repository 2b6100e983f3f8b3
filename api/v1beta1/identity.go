package v1beta1

// RegistryProvider is a cloud provider, or GitHub, with its own registry login.
// +kubebuilder:validation:Enum=ECR;ACR;GAR;GHCR
type RegistryProvider string

// The providers: Amazon, Azure, Google Cloud, GitHub.
const (
	RegistryProviderECR  RegistryProvider = "ECR"
	RegistryProviderACR  RegistryProvider = "ACR"
	RegistryProviderGAR  RegistryProvider = "GAR"
	RegistryProviderGHCR RegistryProvider = "GHCR"
)

// RegistryIdentity configures a namespace's login at the registries of a cloud.
// +kubebuilder:validation:ExactlyOneOf=secretRef;serviceAccount
// +kubebuilder:validation:XValidation:rule="self.provider != 'GHCR' || has(self.secretRef)",message="GHCR logs in as a GitHub App: use secretRef"
// +kubebuilder:validation:XValidation:rule="self.provider != 'ECR' || !has(self.serviceAccount) || has(self.serviceAccount.awsRoleARN)",message="ECR needs serviceAccount.awsRoleARN, the role to assume"
// +kubebuilder:validation:XValidation:rule="self.provider != 'ACR' || !has(self.serviceAccount) || (has(self.serviceAccount.azureTenantID) && has(self.serviceAccount.azureClientID))",message="ACR needs serviceAccount.azureTenantID and azureClientID"
// +kubebuilder:validation:XValidation:rule="self.provider != 'GAR' || !has(self.serviceAccount) || has(self.serviceAccount.googleProvider)",message="GAR needs serviceAccount.googleProvider"
type RegistryIdentity struct {
	// Provider is ECR (Amazon), ACR (Azure), GAR (Google) or GHCR (GitHub). Credentials
	// are only sent to the provider's own hosts.
	Provider RegistryProvider `json:"provider"`
	// SecretRef names a Secret with credentials: accessKeyID and secretAccessKey for
	// ECR; tenantID, clientID and clientSecret for ACR; credentials.json for GAR; appID,
	// installationID and privateKey of a GitHub App for GHCR.
	// +optional
	SecretRef *SecretRef `json:"secretRef,omitempty"`
	// ServiceAccount logs in as a ServiceAccount of the namespace, with a short-lived
	// token.
	// +optional
	ServiceAccount *ServiceAccountIdentity `json:"serviceAccount,omitempty"`
}

// ClusterRegistryIdentity configures the cluster's login at the registries of a cloud.
// +kubebuilder:validation:AtMostOneOf=secretRef;serviceAccount
// +kubebuilder:validation:XValidation:rule="self.provider != 'GHCR' || has(self.secretRef)",message="GHCR logs in as a GitHub App: use secretRef"
// +kubebuilder:validation:XValidation:rule="self.provider != 'ECR' || !has(self.serviceAccount) || has(self.serviceAccount.awsRoleARN)",message="ECR needs serviceAccount.awsRoleARN, the role to assume"
// +kubebuilder:validation:XValidation:rule="self.provider != 'ACR' || !has(self.serviceAccount) || (has(self.serviceAccount.azureTenantID) && has(self.serviceAccount.azureClientID))",message="ACR needs serviceAccount.azureTenantID and azureClientID"
// +kubebuilder:validation:XValidation:rule="self.provider != 'GAR' || !has(self.serviceAccount) || has(self.serviceAccount.googleProvider)",message="GAR needs serviceAccount.googleProvider"
type ClusterRegistryIdentity struct {
	// Provider is ECR (Amazon), ACR (Azure), GAR (Google) or GHCR (GitHub). Credentials
	// are only sent to the provider's own hosts.
	Provider RegistryProvider `json:"provider"`
	// SecretRef names a Secret with credentials, as for a Store. The default is the
	// identity of Landwaiter's own pod.
	// +optional
	SecretRef *ClusterSecretRef `json:"secretRef,omitempty"`
	// ServiceAccount logs in as a ServiceAccount, with a short-lived token.
	// +optional
	ServiceAccount *ClusterServiceAccountIdentity `json:"serviceAccount,omitempty"`
}

// CloudAccount says which account of a cloud trusts the tokens of a ServiceAccount.
type CloudAccount struct {
	// AWSRoleARN is the role to assume (AssumeRoleWithWebIdentity). Tokens have the
	// audience sts.amazonaws.com.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^arn:aws[a-z-]*:iam::[0-9]{12}:role/.+$`
	AWSRoleARN string `json:"awsRoleARN,omitempty"`
	// AWSRegion of the token service and, for a key without an ARN, of the key. The
	// default is the registry's or the key's.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	AWSRegion string `json:"awsRegion,omitempty"`
	// AzureTenantID is the Entra tenant. Tokens have the audience
	// api://AzureADTokenExchange.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	AzureTenantID string `json:"azureTenantID,omitempty"`
	// AzureClientID is the application or managed identity with a federated credential
	// for the ServiceAccount.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	AzureClientID string `json:"azureClientID,omitempty"`
	// GoogleProvider is the workload identity provider, as
	// projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/PROVIDER. Its
	// full name is the audience of tokens.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^projects/[0-9]+/locations/global/workloadIdentityPools/[a-z0-9-]+/providers/[a-z0-9-]+$`
	GoogleProvider string `json:"googleProvider,omitempty"`
	// GoogleServiceAccount is the email of a Google service account to impersonate. The
	// default is direct access of the federated identity.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=320
	GoogleServiceAccount string `json:"googleServiceAccount,omitempty"`
}

// ServiceAccountIdentity is a ServiceAccount of the resource's own namespace.
type ServiceAccountIdentity struct {
	ServiceAccountRef `json:",inline"`
	CloudAccount      `json:",inline"`
}

// ClusterServiceAccountIdentity is a ServiceAccount for a cluster-scoped resource.
type ClusterServiceAccountIdentity struct {
	ClusterServiceAccountRef `json:",inline"`
	CloudAccount             `json:",inline"`
}

func (i *RegistryIdentity) in(namespace string) *ClusterRegistryIdentity {
	if i == nil {
		return nil
	}
	return &ClusterRegistryIdentity{Provider: i.Provider, SecretRef: i.SecretRef.in(namespace), ServiceAccount: i.ServiceAccount.in(namespace)}
}

func (i *ServiceAccountIdentity) in(namespace string) *ClusterServiceAccountIdentity {
	if i == nil {
		return nil
	}
	return &ClusterServiceAccountIdentity{ClusterServiceAccountRef: i.ServiceAccountRef.in(namespace), CloudAccount: i.CloudAccount}
}
