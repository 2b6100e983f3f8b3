//go:build gcp

package external

import (
	"context"
	"net/url"
	"strings"
	"time"
)

const (
	gcpSTS  = "https://sts.googleapis.com/v1/token"
	gcpIAM  = "iamcredentials.googleapis.com"
	gcpFull = "https://www.googleapis.com/auth/cloud-platform"
)

// gcpAccountToken exchanges the token of a ServiceAccount for one of Google (RFC 8693): of
// the federated identity, or of the Google service account that it may impersonate.
func (n network) gcpAccountToken(ctx context.Context, as account, scope string) (string, time.Time, error) {
	provider, email := as.federation.GoogleProvider, as.federation.GoogleServiceAccount
	if provider == "" {
		return "", time.Time{}, problem("serviceAccount.google.provider is missing: the workload identity provider")
	}
	if name, domain, ok := strings.Cut(email, "@"); email != "" && (!ok || !isSegment(name) || !isSegment(domain)) {
		return "", time.Time{}, problem("serviceAccount.google.serviceAccount is not the email of a Google service account")
	}
	token, err := n.token(ctx, as, audienceGoogle+provider)
	if err != nil {
		return "", time.Time{}, err
	}
	first := scope
	if email != "" {
		first = gcpFull // the permission to impersonate needs it
	}
	access, ends, err := n.gcpExchange(ctx, gcpSTS, url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "audience": {strings.TrimPrefix(audienceGoogle, "https:") + provider}, "scope": {first},
		"requested_token_type": {"urn:ietf:params:oauth:token-type:access_token"}, "subject_token_type": {"urn:ietf:params:oauth:token-type:jwt"}, "subject_token": {token}})
	if err != nil || email == "" {
		return access, ends, err
	}
	client, err := n.to(ctx, "", gcpIAM)
	if err != nil {
		return "", time.Time{}, err
	}
	defer client.Close()
	var answer struct {
		AccessToken string    `json:"accessToken"`
		ExpireTime  time.Time `json:"expireTime"`
	}
	asked := map[string]any{"scope": []string{scope}, "lifetime": "3600s"}
	address := "https://" + gcpIAM + "/v1/projects/-/serviceAccounts/" + email + ":generateAccessToken"
	if err := postJSON(ctx, client, "Google's credentials service", address, access, nil, asked, &answer); err != nil {
		return "", time.Time{}, err
	}
	if answer.AccessToken == "" {
		return "", time.Time{}, problem("Google gave no token")
	}
	if limit := time.Now().Add(googleLifetime); answer.ExpireTime.IsZero() || answer.ExpireTime.After(limit) {
		answer.ExpireTime = limit
	}
	return answer.AccessToken, answer.ExpireTime, nil
}
