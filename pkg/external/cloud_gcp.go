//go:build gcp

package external

import (
	"context"
	"crypto"
	"errors"
	"fmt"

	"github.com/sigstore/sigstore/pkg/signature/kms/gcp"
	sigoptions "github.com/sigstore/sigstore/pkg/signature/options"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/option"
)

// gcpKey reads a key of Google Cloud KMS. Credentials are credentials.json, a
// service account's key; the default is the identity of this process.
func gcpKey(ctx context.Context, uri string, given map[string]string) (crypto.PublicKey, error) {
	options := []option.ClientOption{}
	if len(given) > 0 {
		if given["credentials.json"] == "" {
			return nil, errors.New("the credentials for Google Cloud need credentials.json")
		}
		options = append(options, option.WithAuthCredentialsJSON(option.ServiceAccount, []byte(given["credentials.json"])))
	}
	client, err := gcp.LoadSignerVerifier(ctx, uri, options...)
	if err != nil {
		return nil, fmt.Errorf("open the Google Cloud key: %w", err)
	}
	return client.PublicKey(sigoptions.WithContext(ctx))
}

// garLogin gets an access token, which Artifact Registry takes as a password. It is
// valid for an hour.
func garLogin(ctx context.Context, _ string, given map[string]string) (user, password string, err error) {
	const scope = "https://www.googleapis.com/auth/cloud-platform.read-only"
	var source oauth2.TokenSource
	if len(given) == 0 {
		source, err = google.DefaultTokenSource(ctx, scope)
	} else {
		var made *google.Credentials
		if made, err = google.CredentialsFromJSONWithType(ctx, []byte(given["credentials.json"]), google.ServiceAccount, scope); err == nil {
			source = made.TokenSource
		}
	}
	if err != nil {
		return "", "", fmt.Errorf("find the Google Cloud identity: %w", err)
	}
	token, err := source.Token()
	if err != nil {
		return "", "", fmt.Errorf("get an access token: %w", err)
	}
	return "oauth2accesstoken", token.AccessToken, nil
}
