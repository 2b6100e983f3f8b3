package external

import (
	"context"
	"crypto"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

// keyOf fetches the public key that a URI of one service names.
type keyOf func(ctx context.Context, uri string, credentials map[string]string) (crypto.PublicKey, error)

// loginOf fetches a user and password for a registry host. It uses the identity of
// this process if there are no credentials.
type loginOf func(ctx context.Context, host string, credentials map[string]string) (user, password string, err error)

// fetchKMS fetches a public key from a key management service.
func fetchKMS(ctx context.Context, source Source) ([]byte, error) {
	given, err := source.credentials()
	if err != nil {
		return nil, err
	}
	scheme, _, _ := strings.Cut(source.Address, "://")
	ask, ok := map[string]keyOf{"awskms": awsKey, "azurekms": azureKey, "gcpkms": gcpKey}[scheme]
	if !ok {
		return nil, fmt.Errorf("the URI of a key must begin with awskms://, azurekms:// or gcpkms://, not %.20q", scheme)
	}
	key, err := ask(ctx, source.Address, given)
	if err != nil {
		return nil, err
	}
	text, err := pemOf(key)
	return []byte(text), err
}

// fetchRegistry logs in at a registry and returns a .dockerconfigjson.
func fetchRegistry(ctx context.Context, source Source) ([]byte, error) {
	login, ok := map[string]loginOf{"ECR": ecrLogin, "ACR": acrLogin, "GAR": garLogin}[source.Path]
	if !ok {
		return nil, fmt.Errorf("the identity of a registry must be ECR, ACR or GAR, not %.20q", source.Path)
	}
	if err := checkHost(source.Path, source.Address); err != nil {
		return nil, err
	}
	given, err := source.credentials()
	if err != nil {
		return nil, err
	}
	user, password, err := login(ctx, source.Address, given)
	if err != nil {
		return nil, err
	}
	auth := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	return json.Marshal(map[string]any{"auths": map[string]any{source.Address: map[string]string{"auth": auth}}})
}

// checkHost refuses to send a cloud's credentials to a host that is not the cloud's.
func checkHost(identity, host string) error {
	suffixes := map[string][]string{
		"ECR": {".amazonaws.com", ".amazonaws.com.cn"},
		"ACR": {".azurecr.io", ".azurecr.cn", ".azurecr.us"},
		"GAR": {".pkg.dev", ".gcr.io"},
	}[identity]
	for _, suffix := range suffixes {
		if strings.HasSuffix("."+host, suffix) && (identity != "ECR" || strings.Contains(host, ".dkr.ecr.")) {
			return nil
		}
	}
	return fmt.Errorf("%s is not a host of %s, so its credentials are not sent there", host, identity)
}

// notInThisBuild returns an error that names the image and the build tag to use.
func notInThisBuild(what, tag string) error {
	return fmt.Errorf("%s is not in this build: use the image landwaiter:full, or build with -tags %s", what, tag)
}
