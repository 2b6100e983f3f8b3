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

// RegistryIdentity configures the login at the registries of a cloud. Without secretRef and
// serviceAccount a ClusterStore logs in as Landwaiter's own pod.
// +kubebuilder:validation:AtMostOneOf=secretRef;serviceAccount
// +kubebuilder:validation:XValidation:rule="self.provider != 'GHCR' || has(self.secretRef)",message="provider GHCR logs in as a GitHub App and needs secretRef"
// +kubebuilder:validation:XValidation:rule="self.provider != 'ECR' || !has(self.serviceAccount) || has(self.serviceAccount.aws)",message="provider ECR needs serviceAccount.aws if it has a serviceAccount"
// +kubebuilder:validation:XValidation:rule="self.provider != 'ACR' || !has(self.serviceAccount) || has(self.serviceAccount.azure)",message="provider ACR needs serviceAccount.azure if it has a serviceAccount"
// +kubebuilder:validation:XValidation:rule="self.provider != 'GAR' || !has(self.serviceAccount) || has(self.serviceAccount.google)",message="provider GAR needs serviceAccount.google if it has a serviceAccount"
type RegistryIdentity struct {
	// Provider is ECR (Amazon), ACR (Azure), GAR (Google) or GHCR (GitHub). Credentials
	// are only sent to the provider's own hosts.
	Provider RegistryProvider `json:"provider"`
	// SecretRef names a Secret with credentials: accessKeyID and secretAccessKey for
	// ECR; tenantID, clientID and clientSecret for ACR; credentials.json for GAR; appID,
	// installationID and privateKey of a GitHub App for GHCR.
	// +optional
	SecretRef *Reference `json:"secretRef,omitempty"`
	// ServiceAccount logs in as a ServiceAccount, with a short-lived token.
	// +optional
	ServiceAccount *CloudServiceAccount `json:"serviceAccount,omitempty"`
}

// CloudServiceAccount is a ServiceAccount whose short-lived tokens an account of one cloud
// trusts.
// +kubebuilder:validation:ExactlyOneOf=aws;azure;google
type CloudServiceAccount struct {
	Reference `json:",inline"`
	// AWS is the role that is assumed.
	// +optional
	AWS *AWSRole `json:"aws,omitempty"`
	// Azure is the identity in Entra that is used.
	// +optional
	Azure *AzureIdentity `json:"azure,omitempty"`
	// Google is the workload identity that is used.
	// +optional
	Google *GoogleIdentity `json:"google,omitempty"`
}

// AWSRole is a role in AWS (AssumeRoleWithWebIdentity). Tokens for it have the audience
// sts.amazonaws.com.
type AWSRole struct {
	// RoleARN is the role to assume.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^arn:aws[a-z-]*:iam::[0-9]{12}:role/.+$`
	RoleARN string `json:"roleARN"`
	// Region of the token service and, for a key without an ARN, of the key. The
	// default is the registry's or the key's.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Region string `json:"region,omitempty"`
}

// AzureIdentity is an application or managed identity in Entra. Tokens for it have the
// audience api://AzureADTokenExchange.
type AzureIdentity struct {
	// TenantID is the Entra tenant.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	TenantID string `json:"tenantID"`
	// ClientID is the application or managed identity with a federated credential for the
	// ServiceAccount.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	ClientID string `json:"clientID"`
}

// GoogleIdentity is a workload identity of Google Cloud.
type GoogleIdentity struct {
	// Provider is the workload identity provider, as
	// projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/PROVIDER. Its
	// full name is the audience of tokens.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^projects/[0-9]+/locations/global/workloadIdentityPools/[a-z0-9-]+/providers/[a-z0-9-]+$`
	Provider string `json:"provider"`
	// ServiceAccount is the email of a Google service account to impersonate. The
	// default is direct access of the federated identity.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=320
	ServiceAccount string `json:"serviceAccount,omitempty"`
}

// AWSSignerAccess is the identity at AWS Signer. It needs the permission
// signer:GetRevocationStatus. With neither field a ClusterTrustStore asks as Landwaiter's own
// pod.
// +kubebuilder:validation:AtMostOneOf=secretRef;serviceAccount
// +kubebuilder:validation:XValidation:rule="!has(self.serviceAccount) || has(self.serviceAccount.aws)",message="AWS Signer needs serviceAccount.aws if it has a serviceAccount"
type AWSSignerAccess struct {
	// SecretRef names a Secret with accessKeyID and secretAccessKey.
	// +optional
	SecretRef *Reference `json:"secretRef,omitempty"`
	// ServiceAccount asks as a ServiceAccount, with a short-lived token.
	// +optional
	ServiceAccount *CloudServiceAccount `json:"serviceAccount,omitempty"`
}
