package v1beta1

// AWSSignerAccess is the identity of a namespace at AWS Signer. It needs the
// permission signer:GetRevocationStatus.
// +kubebuilder:validation:ExactlyOneOf=secretRef;serviceAccount
type AWSSignerAccess struct {
	// SecretRef names a Secret with accessKeyID and secretAccessKey.
	// +optional
	SecretRef *SecretRef `json:"secretRef,omitempty"`
	// ServiceAccount asks as a ServiceAccount of the namespace, with a short-lived token
	// for the role in awsRoleARN.
	// +optional
	ServiceAccount *ServiceAccountIdentity `json:"serviceAccount,omitempty"`
}

// ClusterAWSSignerAccess is the identity of the cluster at AWS Signer. It needs the
// permission signer:GetRevocationStatus.
// +kubebuilder:validation:AtMostOneOf=secretRef;serviceAccount
type ClusterAWSSignerAccess struct {
	// SecretRef names a Secret with accessKeyID and secretAccessKey. The default is the
	// identity of Landwaiter's own pod.
	// +optional
	SecretRef *ClusterSecretRef `json:"secretRef,omitempty"`
	// ServiceAccount asks as a ServiceAccount, with a short-lived token for the role in
	// awsRoleARN.
	// +optional
	ServiceAccount *ClusterServiceAccountIdentity `json:"serviceAccount,omitempty"`
}

func (a *AWSSignerAccess) in(namespace string) *ClusterAWSSignerAccess {
	if a == nil {
		return nil
	}
	return &ClusterAWSSignerAccess{SecretRef: a.SecretRef.in(namespace), ServiceAccount: a.ServiceAccount.in(namespace)}
}
