//go:build aws && azure && gcp

package external

import (
	"crypto/ecdsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	teamRole = "arn:aws:iam::123456789012:role/team-a"
	provider = "projects/1/locations/global/workloadIdentityPools/pool/providers/cluster"
	ofTeamA  = "token of team-a/puller for "
)

// trusting is a cloud whose token services trust team-a/puller alone, and whose other
// services trust what those give.
func trusting(t *testing.T) *cloud {
	t.Helper()
	want, _, der := released(t)
	return newCloud(t, func(w http.ResponseWriter, r *http.Request) {
		form := r.PostFormValue
		says := func(ok bool, format string, values ...any) {
			if !ok {
				http.Error(w, `{"error":"`+canary+`"}`, http.StatusBadRequest)
				return
			}
			fmt.Fprintf(w, format, values...)
		}
		switch r.Host + r.URL.Path {
		case "sts.eu-central-1.amazonaws.com/", "sts.cn-north-1.amazonaws.com.cn/":
			says(form("WebIdentityToken") == ofTeamA+"sts.amazonaws.com" && form("RoleArn") == teamRole && form("RoleSessionName") == "landwaiter-team-a" &&
				r.Header.Get("Authorization") == "",
				`<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>ASIA</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>session</SessionToken></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`)
		case "api.ecr.eu-central-1.amazonaws.com/":
			w.Header().Set("Content-Type", "application/x-amz-json-1.1")
			says(strings.Contains(r.Header.Get("Authorization"), "Credential=ASIA/") && r.Header.Get("X-Amz-Security-Token") == "session",
				`{"authorizationData":[{"authorizationToken":%q,"expiresAt":%d}]}`, base64.StdEncoding.EncodeToString([]byte("AWS:token")),
				time.Now().Add(12*time.Hour).Unix())
		case "kms.eu-central-1.amazonaws.com/":
			w.Header().Set("Content-Type", "application/x-amz-json-1.1")
			says(strings.Contains(r.Header.Get("Authorization"), "Credential=ASIA/"), `{"KeyId":"k","PublicKey":%q,"KeyUsage":"SIGN_VERIFY"}`,
				base64.StdEncoding.EncodeToString(der))
		case "login.microsoftonline.com/t/oauth2/v2.0/token":
			says(form("client_assertion") == ofTeamA+"api://AzureADTokenExchange" && form("client_id") == "c" && form("client_secret") == "" &&
				form("client_assertion_type") == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer", `{"access_token":"entra"}`)
		case "login.microsoftonline.us/t/oauth2/v2.0/token":
			says(form("client_assertion") == ofTeamA+"api://AzureADTokenExchangeUSGov", `{"access_token":"entra"}`)
		case "team.azurecr.io/oauth2/exchange", "team.azurecr.us/oauth2/exchange":
			says(form("access_token") == "entra", `{"refresh_token":"refresh"}`)
		case "sts.googleapis.com/v1/token":
			says(form("subject_token") == ofTeamA+"https://iam.googleapis.com/"+provider && form("audience") == "//iam.googleapis.com/"+provider,
				`{"access_token":"federated","expires_in":3599}`)
		case "iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/a@p.iam.gserviceaccount.com:generateAccessToken":
			body, _ := io.ReadAll(r.Body)
			says(r.Header.Get("Authorization") == "Bearer federated" && strings.Contains(string(body), gcpScope),
				`{"accessToken":"impersonated","expireTime":"2099-01-01T00:00:00Z"}`)
		case "cloudkms.googleapis.com/v1/projects/p/locations/l/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1/publicKey":
			_ = json.NewEncoder(w).Encode(map[string]string{"pem": string(want)})
		default:
			http.Error(w, canary, http.StatusNotFound)
		}
	})
}

// everywhere is what all three clouds trust.
func everywhere() Federation {
	return Federation{AWSRoleARN: teamRole, AzureTenantID: "t", AzureClientID: "c", GoogleProvider: provider}
}

func TestAServiceAccountLogsInAtEveryCloudWithATokenForItAlone(t *testing.T) {
	hostileEnvironment(t)
	impersonates := everywhere()
	impersonates.GoogleServiceAccount = "a@p.iam.gserviceaccount.com"
	named := everywhere()
	named.AWSRegion = "eu-central-1"
	for name, c := range map[string]struct {
		source     Source
		federation Federation
		login      string
		audience   string
	}{
		"ECR": {Source{Kind: Registry, Path: "ECR", Address: "123456789012.dkr.ecr.eu-central-1.amazonaws.com"}, everywhere(), "AWS:token",
			"sts.amazonaws.com"},
		"ACR": {Source{Kind: Registry, Path: "ACR", Address: "team.azurecr.io"}, everywhere(), acrUser + ":refresh",
			"api://AzureADTokenExchange"},
		"ACR of the US government": {Source{Kind: Registry, Path: "ACR", Address: "team.azurecr.us"}, everywhere(), acrUser + ":refresh",
			"api://AzureADTokenExchangeUSGov"},
		"GAR": {Source{Kind: Registry, Path: "GAR", Address: "europe-docker.pkg.dev"}, everywhere(), "oauth2accesstoken:federated",
			"https://iam.googleapis.com/" + provider},
		"GAR, by impersonation": {Source{Kind: Registry, Path: "GAR", Address: "europe-docker.pkg.dev"}, impersonates, "oauth2accesstoken:impersonated",
			"https://iam.googleapis.com/" + provider},
		"AWS KMS": {Source{Kind: KMS, Address: awsRelease}, named, "", "sts.amazonaws.com"},
		"AWS KMS, by an ARN": {Source{Kind: KMS, Address: "awskms:///arn:aws:kms:eu-central-1:123456789012:alias/release"}, everywhere(), "",
			"sts.amazonaws.com"},
		"Google Cloud KMS": {Source{Kind: KMS, Address: gcpRelease + "/versions/1"}, everywhere(), "", "https://iam.googleapis.com/" + provider},
		// fluxcd/flux2#5712
		"ECR, dual-stack": {Source{Kind: Registry, Path: "ECR", Address: "123456789012.dkr-ecr.eu-central-1.on.aws"}, everywhere(), "AWS:token", "sts.amazonaws.com"},
		"ECR, with a region of STS": {Source{Kind: Registry, Path: "ECR", Address: "123456789012.dkr.ecr.eu-central-1.amazonaws.com"}, named, "AWS:token",
			"sts.amazonaws.com"},
	} {
		t.Run(name, func(t *testing.T) {
			cloud, tokens := trusting(t), &issued{}
			cloud.tokens = tokens
			f := New(Options{Fetch: cloud.fetchers()}, time.Now)
			c.source.Owner, c.source.As = "team-a", puller(t, c.federation)
			got, err := f.fetch(t.Context(), c.source)
			require.NoError(t, err, cloud.requests())
			require.Equal(t, []string{"team-a/puller for " + c.audience}, tokens.all())
			if c.login != "" {
				require.Contains(t, string(got.Bytes), base64.StdEncoding.EncodeToString([]byte(c.login)))
				require.True(t, got.Ends.After(time.Now()) && got.Ends.Before(time.Now().Add(12*time.Hour)), got.Ends)
			}

			// The account of another team, which names the role of this one.
			as, err := ServiceAccount("team-b", "team-b", "puller", c.federation)
			require.NoError(t, err)
			c.source.Owner, c.source.As = "team-b", as
			_, err = f.fetch(t.Context(), c.source)
			require.ErrorContains(t, err, "token server")
			require.NotContains(t, err.Error(), canary)
			c.source.As = puller(t, c.federation) // past the constructor
			before := len(tokens.all())
			_, err = f.fetch(t.Context(), c.source)
			require.ErrorContains(t, err, "needs credentials of its own")
			require.Len(t, tokens.all(), before, "no token is asked for")
		})
	}
}

func TestAServiceAccountThatLacksWhatItIsForGetsNoToken(t *testing.T) {
	c, tokens := nobody(t), &issued{}
	c.tokens = tokens
	for says, source := range map[string]Source{
		"aws.roleARN is missing": {Kind: Registry, Path: "ECR", Address: "123456789012.dkr.ecr.eu-central-1.amazonaws.com",
			As: puller(t, Federation{})},
		"set serviceAccount.aws.region":   {Kind: KMS, Address: awsRelease, As: puller(t, everywhere())},
		`"evil.example/" is not a region`: {Kind: KMS, Address: awsRelease, As: puller(t, Federation{AWSRoleARN: teamRole, AWSRegion: "evil.example/"})},
		"google.provider is missing":      {Kind: Registry, Path: "GAR", Address: "gcr.io", As: puller(t, Federation{})},
		"is not the email": {Kind: Registry, Path: "GAR", Address: "gcr.io",
			As: puller(t, Federation{GoogleProvider: provider, GoogleServiceAccount: "../../x"})},
		"is not the email of a Google service": {Kind: Registry, Path: "GAR", Address: "eu.gcr.io",
			As: puller(t, Federation{GoogleProvider: provider, GoogleServiceAccount: "a@../x"})},
	} {
		_, err := c.fetcher()[source.Kind](t.Context(), source)
		require.ErrorContains(t, err, says)
	}
	for _, source := range []Source{
		{Kind: Registry, Path: "ACR", Address: "team.azurecr.io", As: puller(t, Federation{AzureTenantID: "../../evil"})},
		{Kind: KMS, Address: "azurekms://team.vault.azure.net/release", As: puller(t, Federation{AzureTenantID: "../../evil", AzureClientID: "c"})},
	} {
		_, err := c.fetcher()[source.Kind](t.Context(), source)
		require.ErrorContains(t, err, "azure.tenantID is not the identifier")
	}
	require.Empty(t, tokens.all(), "none is minted for a request that is refused")
}

func TestKeysOfAzureAreReadWithTheCredentialsOfANamespace(t *testing.T) {
	want, key, _ := released(t)
	public, ok := key.(*ecdsa.PublicKey)
	require.True(t, ok)
	point, err := public.Bytes()
	require.NoError(t, err)
	c := newCloud(t, func(w http.ResponseWriter, r *http.Request) {
		encode := base64.RawURLEncoding.EncodeToString
		form := r.PostFormValue
		switch {
		case r.Host == "login.microsoftonline.com" && form("scope") == "https://vault.azure.net/.default" &&
			(form("client_secret") == "s" || form("client_assertion") == ofTeamA+"api://AzureADTokenExchange"):
			fmt.Fprint(w, `{"access_token":"entra"}`)
		case r.Host == "team.vault.azure.net" && r.Header.Get("Authorization") == "Bearer entra":
			fmt.Fprintf(w, `{"key":{"kty":"EC","crv":"P-256","x":%q,"y":%q}}`, encode(point[1:33]), encode(point[33:]))
		default:
			http.Error(w, canary, http.StatusUnauthorized)
		}
	})
	c.tokens = &issued{}
	hostileEnvironment(t)
	f := New(Options{Fetch: c.fetchers()}, time.Now)
	secret := func(value string) Identity {
		as, err := Given(map[string]string{"tenantID": "t", "clientID": "c", "clientSecret": value})
		require.NoError(t, err)
		return as
	}
	source := Source{Owner: "team-a", Kind: KMS, Address: "azurekms://team.vault.azure.net/release"}
	for _, as := range []Identity{secret("s"), puller(t, everywhere())} {
		source.As = as
		got, err := f.fetch(t.Context(), source)
		require.NoError(t, err)
		requireKey(t, want, got.Bytes)
	}
	source.As = secret("wrong")
	_, err = f.fetch(t.Context(), source)
	require.ErrorContains(t, err, "Azure's token server refuses the credentials (401)")
	before := len(c.requests())
	for _, elsewhere := range []string{"azurekms://evil.example/release", "azurekms://169.254.169.254/release", "azurekms:///release",
		"azurekms://vault.azure.net.evil.example/release"} {
		source.As, source.Address = secret("s"), elsewhere
		_, err = f.fetch(t.Context(), source)
		require.ErrorContains(t, err, "the URI of an Azure key must have the form", elsewhere)
	}
	require.Len(t, c.requests(), before)
}
