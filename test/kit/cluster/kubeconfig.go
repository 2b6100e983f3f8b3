package cluster

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// WriteKubeconfig writes a kubeconfig file for the owner of a token.
func (c *Cluster) WriteKubeconfig(path, token string) error {
	config := api.NewConfig()
	config.Clusters["landwaiter"] = &api.Cluster{Server: c.Config.Host, CertificateAuthorityData: c.ca.CertificatePEM}
	config.AuthInfos["user"] = &api.AuthInfo{Token: token}
	config.Contexts["landwaiter"] = &api.Context{Cluster: "landwaiter", AuthInfo: "user"}
	config.CurrentContext = "landwaiter"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

// As returns the configuration of a user in groups and system:authenticated.
func (c *Cluster) As(user string, groups ...string) *rest.Config {
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	return config
}

// tokenSeconds is the lifetime of a service account's token: longer than any run.
const tokenSeconds = 12 * 60 * 60

// AccountKubeconfig writes a kubeconfig file for a service account.
func (c *Cluster) AccountKubeconfig(ctx context.Context, namespace, name, path string) error {
	clients, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	seconds := int64(tokenSeconds)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	var token *authenticationv1.TokenRequest
	err = Until(ctx, func(ctx context.Context) (err error) { // the account may be created later
		token, err = clients.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("get a token for service account %s/%s: %w", namespace, name, err)
	}
	return c.WriteKubeconfig(path, token.Status.Token)
}
