//go:build azure

package external

import (
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/sigstore/sigstore/pkg/signature/kms/azure"
	sigoptions "github.com/sigstore/sigstore/pkg/signature/options"
)

// azureKey reads a key of Azure Key Vault. It only uses the identity of this
// process: sigstore's package takes no credentials.
func azureKey(ctx context.Context, uri string, given map[string]string) (crypto.PublicKey, error) {
	if len(given) > 0 {
		return nil, errors.New("credentials of a Secret are not supported for Azure: use a ClusterTrustStore and the identity of the pod")
	}
	client, err := azure.LoadSignerVerifier(ctx, uri)
	if err != nil {
		return nil, fmt.Errorf("open the Azure key: %w", err)
	}
	return client.PublicKey(sigoptions.WithContext(ctx))
}

// azureIdentity uses the given credentials, or the identity of this process if
// there are none.
func azureIdentity(given map[string]string) (azcore.TokenCredential, error) {
	if len(given) == 0 {
		return azidentity.NewDefaultAzureCredential(nil)
	}
	if given["tenantID"] == "" || given["clientID"] == "" || given["clientSecret"] == "" {
		return nil, errors.New("the credentials for Azure need tenantID, clientID and clientSecret")
	}
	return azidentity.NewClientSecretCredential(given["tenantID"], given["clientID"], given["clientSecret"], nil)
}

// acrUser is the user name that Azure Container Registry expects with a token.
const acrUser = "00000000-0000-0000-0000-000000000000"

// acrLogin exchanges an Entra ID token for a token of the registry (Azure's "AAD
// OAuth" exchange), which is valid for 3 hours.
func acrLogin(ctx context.Context, host string, given map[string]string) (user, password string, err error) {
	identity, err := azureIdentity(given)
	if err != nil {
		return "", "", fmt.Errorf("find the Azure identity: %w", err)
	}
	token, err := identity.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{"https://containerregistry.azure.net/.default"}})
	if err != nil {
		return "", "", fmt.Errorf("get an Entra ID token: %w", err)
	}
	form := url.Values{"grant_type": {"access_token"}, "service": {host}, "access_token": {token.Token}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+host+"/oauth2/exchange", strings.NewReader(form.Encode()))
	if err != nil {
		return "", "", fmt.Errorf("make request: %w", err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	client := &http.Client{Transport: limited{http.DefaultTransport}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		return "", "", fmt.Errorf("exchange the token: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // it was read whole, or it is not needed
	var answer struct {
		RefreshToken string `json:"refresh_token"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || response.StatusCode != http.StatusOK || answer.RefreshToken == "" {
		return "", "", fmt.Errorf("the registry exchanged no token, status %d", response.StatusCode)
	}
	return acrUser, answer.RefreshToken, nil
}
