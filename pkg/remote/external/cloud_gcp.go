//go:build gcp

package external

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
)

// Hosts of Google Cloud. A resource names none of them.
const (
	gcpTokenHost = "oauth2.googleapis.com" //nolint:gosec // an address
	gcpTokenURI  = "https://" + gcpTokenHost + "/token"
	gcpKMSHost   = "cloudkms.googleapis.com"
	gcpScope     = "https://www.googleapis.com/auth/cloud-platform.read-only"
	gcpKMSScope  = "https://www.googleapis.com/auth/cloudkms"
)

func gcp() cloudAPI { return cloudAPI{key: gcpKey, login: garLogin} }

// gcpKey reads a key of Google Cloud KMS, the newest enabled version unless the URI names
// one. Credentials are credentials.json, the key of a service account.
func gcpKey(ctx context.Context, n network, uri string, as Identity) (crypto.PublicKey, error) {
	name, version, err := gcpName(uri)
	if err != nil {
		return nil, err
	}
	token, _, err := n.gcpToken(ctx, as, gcpKMSScope)
	if err != nil {
		return nil, err
	}
	const who = "Google Cloud KMS"
	base := "https://" + gcpKMSHost + "/v1/" + name + "/cryptoKeyVersions"
	if version == "" {
		var list struct {
			Versions []struct{ Name, State string } `json:"cryptoKeyVersions"`
		}
		if err := n.getJSON(ctx, who, base+"?filter=state%3DENABLED&orderBy=name%20desc&pageSize=100", token, &list); err != nil {
			return nil, err
		}
		newest := 0
		for _, one := range list.Versions {
			number, err := strconv.Atoi(one.Name[strings.LastIndexByte(one.Name, '/')+1:])
			if err == nil && one.State == "ENABLED" {
				newest = max(newest, number)
			}
		}
		if newest == 0 {
			return nil, problem("the Google Cloud key has no enabled version")
		}
		version = strconv.Itoa(newest)
	}
	var answer struct {
		PEM string `json:"pem"`
	}
	if err := n.getJSON(ctx, who, base+"/"+version+"/publicKey", token, &answer); err != nil {
		return nil, err
	}
	block, _ := pem.Decode([]byte(answer.PEM))
	if block == nil {
		return nil, problem("the Google Cloud key is malformed")
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, problem("the Google Cloud key is malformed")
	}
	return key, nil
}

// gcpName reads gcpkms://projects/P/locations/L/keyRings/R/cryptoKeys/K, optionally followed
// by /cryptoKeyVersions/V or /versions/V.
func gcpName(uri string) (name, version string, err error) {
	parts := strings.Split(strings.TrimPrefix(uri, "gcpkms://"), "/")
	wrong := problem("the URI of a Google Cloud key must have the form gcpkms://projects/P/locations/L/keyRings/R/cryptoKeys/K[/versions/V]")
	if len(parts) == 10 && (parts[8] == "cryptoKeyVersions" || parts[8] == "versions") {
		version, parts = parts[9], parts[:8]
		if !isNumber(version, 1, 9) {
			return "", "", wrong
		}
	}
	if len(parts) != 8 {
		return "", "", wrong
	}
	for i, label := range []string{"projects", "locations", "keyRings", "cryptoKeys"} {
		if parts[2*i] != label || !isSegment(parts[2*i+1]) {
			return "", "", wrong
		}
	}
	return strings.Join(parts, "/"), version, nil
}

// garLogin gets an access token, which Artifact Registry accepts as a password. It is valid
// for an hour.
func garLogin(ctx context.Context, n network, _ string, as Identity) (login, error) {
	token, ends, err := n.gcpToken(ctx, as, gcpScope)
	return login{user: "oauth2accesstoken", password: token}.lasts(ends), err
}

// gcpToken gets an access token for a scope, with its expiry.
func (n network) gcpToken(ctx context.Context, as Identity, scope string) (string, time.Time, error) {
	switch as := as.(type) {
	case pod:
		return n.gcpPodToken(ctx, scope)
	case account:
		return n.gcpAccountToken(ctx, as, scope)
	}
	values, _, err := held(as, "credentials.json")
	if err != nil {
		return "", time.Time{}, err
	}
	key, private, err := parseServiceAccount(values["credentials.json"])
	if err != nil {
		return "", time.Time{}, err
	}
	assertion, err := key.assertion(private, scope, time.Now())
	if err != nil {
		return "", time.Time{}, err
	}
	return n.gcpExchange(ctx, gcpTokenURI, url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {assertion}})
}

// gcpExchange posts a form to a token server of Google.
func (n network) gcpExchange(ctx context.Context, address string, form url.Values) (string, time.Time, error) {
	var answer struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"`
	}
	now := time.Now()
	if err := n.postForm(ctx, "Google's "+tokens, address, form, &answer); err != nil {
		return "", time.Time{}, err
	}
	if answer.AccessToken == "" {
		return "", time.Time{}, problem("Google gave no token")
	}
	return answer.AccessToken, now.Add(googleFor(answer.ExpiresIn)), nil
}

// googleFor returns how long a token is valid for which Google states a number of seconds.
func googleFor(seconds int64) time.Duration {
	if seconds <= 0 || seconds > int64(googleLifetime/time.Second) {
		return googleLifetime
	}
	return time.Duration(seconds) * time.Second
}

func (n network) gcpPodToken(ctx context.Context, scope string) (string, time.Time, error) {
	client, err := n.asPod(ctx)
	if err != nil {
		return "", time.Time{}, err
	}
	defer client.Close()
	own, err := google.DefaultTokenSource(context.WithValue(ctx, oauth2.HTTPClient, client.HTTP()), scope)
	if err != nil {
		return "", time.Time{}, problem("the pod has no Google Cloud identity")
	}
	token, err := own.Token()
	if err != nil {
		return "", time.Time{}, problem("the pod's Google Cloud identity gets no token: check its workload identity")
	}
	ends := token.Expiry
	if ends.IsZero() {
		ends = time.Now().Add(googleLifetime)
	}
	return token.AccessToken, ends, nil
}

// serviceAccount has the relevant fields of a service account's key. Other types of
// credentials name files, commands and servers, and are refused.
type serviceAccount struct {
	Type       string `json:"type"`
	Email      string `json:"client_email"`
	KeyID      string `json:"private_key_id"`
	PrivateKey string `json:"private_key"`
	TokenURI   string `json:"token_uri"`
	Universe   string `json:"universe_domain"`
}

// parseServiceAccount reads credentials.json. Its token_uri must be Google's own: we
// would post to it.
func parseServiceAccount(text string) (serviceAccount, *rsa.PrivateKey, error) {
	var a serviceAccount
	if len(text) > maxServiceAccount || json.Unmarshal([]byte(text), &a) != nil {
		return a, nil, problem("credentials.json is not the key of a service account")
	}
	switch {
	case a.Type != "service_account":
		return a, nil, problemf("type of credentials.json is %.40q; only service_account is read", a.Type)
	case a.TokenURI != "" && a.TokenURI != gcpTokenURI:
		return a, nil, problem("token_uri of credentials.json is not " + gcpTokenURI + ", and nothing else is asked")
	case a.Universe != "" && a.Universe != "googleapis.com":
		return a, nil, problem("universe_domain of credentials.json is not googleapis.com, and nothing else is asked")
	case a.Email == "":
		return a, nil, problem("credentials.json has no client_email")
	}
	key, err := parseRSA("private_key of credentials.json", a.PrivateKey)
	return a, key, err
}

// assertion returns a signed JWT that asks for a token (RFC 7523 section 2.1).
func (a serviceAccount) assertion(key *rsa.PrivateKey, scope string, now time.Time) (string, error) {
	return signJWT(key, a.KeyID,
		map[string]any{"iss": a.Email, "scope": scope, "aud": gcpTokenURI, "iat": now.Unix(), "exp": now.Add(assertionLifetime).Unix()})
}

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
		"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "audience": {strings.TrimPrefix(audienceGoogle, "https:") + provider},
		"scope":                {first},
		"requested_token_type": {"urn:ietf:params:oauth:token-type:access_token"}, "subject_token_type": {"urn:ietf:params:oauth:token-type:jwt"},
		"subject_token": {token}})
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
