//go:build azure

package external

import (
	"context"
	"crypto"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/landwaiter/landwaiter/pkg/remote/egress"
)

func entra() cloudAPI { return cloudAPI{key: azureKey, login: acrLogin} }

// azureKey reads a key of Azure Key Vault, azurekms://NAME.vault.azure.net/KEY[/VERSION].
// Credentials are tenantID, clientID and clientSecret.
func azureKey(ctx context.Context, n network, uri string, as Identity) (crypto.PublicKey, error) {
	parts := strings.Split(strings.TrimPrefix(uri, "azurekms://"), "/")
	if len(parts) == 2 {
		parts = append(parts, "") // the newest version
	}
	cloud, known := azureFor(parts[0], ".vault.azure.net", ".vault.azure.cn", ".vault.usgovcloudapi.net")
	if name, hsm := strings.CutSuffix(parts[0], ".managedhsm.azure.net"); hsm && egress.IsLabel(name) {
		cloud, known = azure{authority: "login.microsoftonline.com", vault: "https://managedhsm.azure.net/.default", exchange: audienceAzure},
			true
	}
	if !known || len(parts) != 3 || !isSegment(parts[1]) || (parts[2] != "" && !isSegment(parts[2])) {
		return nil, problem("the URI of an Azure key must have the form azurekms://NAME.vault.azure.net/KEY or …/KEY/VERSION")
	}
	token, err := n.azureToken(ctx, as, cloud, cloud.vault)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Key jsonWebKey `json:"key"`
	}
	address := "https://" + parts[0] + "/keys/" + strings.TrimSuffix(parts[1]+"/"+parts[2], "/") + "?api-version=7.4"
	if err := n.getJSON(ctx, "Azure Key Vault", address, token, &answer); err != nil {
		return nil, err
	}
	return answer.Key.public()
}

// azureToken gets a token for a scope: with the given client secret, with a token of a
// ServiceAccount instead, or as the pod.
func (n network) azureToken(ctx context.Context, as Identity, cloud azure, scope string) (string, error) {
	form := url.Values{"grant_type": {"client_credentials"}, "scope": {scope}}
	tenant, wrong := "", ""
	switch as := as.(type) {
	case pod:
		return n.azurePodToken(ctx, scope)
	case account:
		// An issued token can be stolen, so it is only requested if the request is not refused
		// below.
		if !isSegment(as.federation.AzureTenantID) {
			return "", noTenant("azure.tenantID")
		}
		assertion, err := n.token(ctx, as, cloud.exchange)
		if err != nil {
			return "", err
		}
		tenant, wrong = as.federation.AzureTenantID, "azure.tenantID"
		form.Set("client_id", as.federation.AzureClientID)
		form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		form.Set("client_assertion", assertion)
	default:
		values, _, err := held(as, "tenantID", "clientID", "clientSecret")
		if err != nil {
			return "", err
		}
		tenant, wrong = values["tenantID"], "tenantID of the credentials"
		form.Set("client_id", values["clientID"])
		form.Set("client_secret", values["clientSecret"])
	}
	if !isSegment(tenant) {
		return "", noTenant(wrong)
	}
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	if err := n.postForm(ctx, "Azure's "+tokens, "https://"+cloud.authority+"/"+tenant+"/oauth2/v2.0/token", form, &answer); err != nil {
		return "", err
	}
	if answer.AccessToken == "" {
		return "", problem("Azure gave no token")
	}
	return answer.AccessToken, nil
}

func noTenant(field string) error {
	return problem(field + " is not the identifier or the domain of a tenant")
}

func (n network) azurePodToken(ctx context.Context, scope string) (string, error) {
	client, err := n.asPod(ctx)
	if err != nil {
		return "", err
	}
	defer client.Close()
	own, err := azidentity.NewDefaultAzureCredential(
		&azidentity.DefaultAzureCredentialOptions{ClientOptions: azcore.ClientOptions{Transport: client.HTTP()}})
	if err != nil {
		return "", problem("the pod has no Azure identity")
	}
	token, err := own.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{scope}})
	if err != nil {
		return "", problem("the pod's Azure identity gets no token: check its workload identity or managed identity")
	}
	return token.Token, nil
}

// acrUser is the user name that Azure Container Registry expects with a token.
const acrUser = "00000000-0000-0000-0000-000000000000"

// acrLogin exchanges an Entra ID token for a token of the registry (Azure's "AAD
// OAuth" exchange), which is valid for 3 hours.
func acrLogin(ctx context.Context, n network, host string, as Identity) (login, error) {
	cloud, ok := azureFor(host, ".azurecr.io", ".azurecr.cn", ".azurecr.us")
	if !ok {
		return login{}, problemf("%.253s is not a host of ACR", host)
	}
	token, err := n.azureToken(ctx, as, cloud, "https://containerregistry.azure.net/.default")
	if err != nil {
		return login{}, err
	}
	now := time.Now()
	var answer struct {
		RefreshToken string `json:"refresh_token"`
	}
	form := url.Values{"grant_type": {"access_token"}, "service": {host}, "access_token": {token}}
	if err := n.postForm(ctx, "the registry's "+tokens, "https://"+host+"/oauth2/exchange", form, &answer); err != nil {
		return login{}, err
	}
	if answer.RefreshToken == "" {
		return login{}, problem("the registry exchanged no token")
	}
	return login{user: acrUser, password: answer.RefreshToken}.lasts(now.Add(acrLifetime)), nil
}
