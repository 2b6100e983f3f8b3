package v1beta1

// RegistryProvider selects the registry login of a cloud provider or of GitHub.
// +kubebuilder:validation:Enum=ECR;ACR;GAR;GHCR
type RegistryProvider string

// The providers: Amazon, Azure, Google Cloud, GitHub.
const (
	RegistryProviderECR  RegistryProvider = "ECR"
	RegistryProviderACR  RegistryProvider = "ACR"
	RegistryProviderGAR  RegistryProvider = "GAR"
	RegistryProviderGHCR RegistryProvider = "GHCR"
)

// RegistryIdentity configures the login to the registries of a cloud or of GitHub. If a
// ClusterStore sets neither secretRef nor serviceAccount, Landwaiter logs in with the identity
// of its own pod.
// +kubebuilder:validation:AtMostOneOf=secretRef;serviceAccount
// +kubebuilder:validation:XValidation:rule="self.provider != 'GHCR' || has(self.secretRef)",message="provider GHCR logs in as a GitHub App and needs secretRef"
// +kubebuilder:validation:XValidation:rule="self.provider != 'ECR' || !has(self.serviceAccount) || has(self.serviceAccount.aws)",message="provider ECR needs serviceAccount.aws if it has a serviceAccount"
// +kubebuilder:validation:XValidation:rule="self.provider != 'ACR' || !has(self.serviceAccount) || has(self.serviceAccount.azure)",message="provider ACR needs serviceAccount.azure if it has a serviceAccount"
// +kubebuilder:validation:XValidation:rule="self.provider != 'GAR' || !has(self.serviceAccount) || has(self.serviceAccount.google)",message="provider GAR needs serviceAccount.google if it has a serviceAccount"
type RegistryIdentity struct {
	// Provider is ECR (Amazon), ACR (Azure), GAR (Google) or GHCR (GitHub). Landwaiter sends
	// credentials only to the provider's own hosts.
	Provider RegistryProvider `json:"provider"`
	// SecretRef references a Secret with credentials: accessKeyID and secretAccessKey for ECR;
	// tenantID, clientID and clientSecret for ACR; credentials.json for GAR; appID, installationID
	// and privateKey of a GitHub App for GHCR.
	// +optional
	SecretRef *Reference `json:"secretRef,omitempty"`
	// ServiceAccount to log in with, using short-lived tokens.
	// +optional
	ServiceAccount *CloudServiceAccount `json:"serviceAccount,omitempty"`
}

// CloudServiceAccount is a ServiceAccount with short-lived tokens that one cloud provider
// trusts.
// +kubebuilder:validation:ExactlyOneOf=aws;azure;google
type CloudServiceAccount struct {
	Reference `json:",inline"`
	// AWS is the role that Landwaiter assumes.
	// +optional
	AWS *AWSRole `json:"aws,omitempty"`
	// Azure is the Entra identity that Landwaiter uses.
	// +optional
	Azure *AzureIdentity `json:"azure,omitempty"`
	// Google is the workload identity that Landwaiter uses.
	// +optional
	Google *GoogleIdentity `json:"google,omitempty"`
}

// AWSRole is a role in AWS (AssumeRoleWithWebIdentity). The tokens have the audience
// sts.amazonaws.com.
type AWSRole struct {
	// RoleARN is the ARN of the role to assume.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^arn:aws[a-z-]*:iam::[0-9]{12}:role/.+$`
	RoleARN string `json:"roleARN"`
	// Region of the AWS token service and, if the key has no ARN, of the key. The default is the
	// region of the registry or key.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Region string `json:"region,omitempty"`
}

// AzureIdentity is an application or managed identity in Entra. The tokens have the audience
// api://AzureADTokenExchange.
type AzureIdentity struct {
	// TenantID is the ID of the Entra tenant.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	TenantID string `json:"tenantID"`
	// ClientID is the client ID of the application or managed identity. It must have a federated
	// credential for the ServiceAccount.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	ClientID string `json:"clientID"`
}

// GoogleIdentity is a workload identity of Google Cloud.
type GoogleIdentity struct {
	// Provider is the workload identity provider, as
	// projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/PROVIDER. The tokens
	// have the provider's full name as their audience.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^projects/[0-9]+/locations/global/workloadIdentityPools/[a-z0-9-]+/providers/[a-z0-9-]+$`
	Provider string `json:"provider"`
	// ServiceAccount is the email address of a Google service account to impersonate. By default,
	// the federated identity is used directly.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=320
	ServiceAccount string `json:"serviceAccount,omitempty"`
}

// AWSSignerAccess is the identity for requests to AWS Signer. It needs the permission
// signer:GetRevocationStatus. If a ClusterTrustStore sets neither field, Landwaiter uses the
// identity of its own pod.
// +kubebuilder:validation:AtMostOneOf=secretRef;serviceAccount
// +kubebuilder:validation:XValidation:rule="!has(self.serviceAccount) || has(self.serviceAccount.aws)",message="AWS Signer needs serviceAccount.aws if it has a serviceAccount"
type AWSSignerAccess struct {
	// SecretRef references a Secret with accessKeyID and secretAccessKey.
	// +optional
	SecretRef *Reference `json:"secretRef,omitempty"`
	// ServiceAccount to send requests with, using short-lived tokens.
	// +optional
	ServiceAccount *CloudServiceAccount `json:"serviceAccount,omitempty"`
}
