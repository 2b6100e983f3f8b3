package v1alpha1

// AWSSignerAccess is the identity of a namespace at AWS Signer. It needs the
// permission signer:GetRevocationStatus.
type AWSSignerAccess struct {
	// SecretRef names a Secret with accessKeyID and secretAccessKey.
	SecretRef SecretRef `json:"secretRef"`
}

// ClusterAWSSignerAccess is the identity of the cluster at AWS Signer. It needs the
// permission signer:GetRevocationStatus.
type ClusterAWSSignerAccess struct {
	// SecretRef names a Secret with accessKeyID and secretAccessKey. The default is the
	// identity of Landwaiter's own pod.
	// +optional
	SecretRef *ClusterSecretRef `json:"secretRef,omitempty"`
}

func (a *AWSSignerAccess) in(namespace string) *ClusterAWSSignerAccess {
	if a == nil {
		return nil
	}
	return &ClusterAWSSignerAccess{SecretRef: a.SecretRef.in(namespace)}
}
