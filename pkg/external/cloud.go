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
type keyOf func(ctx context.Context, n network, uri string, as Identity) (crypto.PublicKey, error)

// loginOf fetches a user and password for a registry host.
type loginOf func(ctx context.Context, n network, host string, as Identity) (user, password string, err error)

// fetchKMS fetches a public key from a key management service.
func (n network) fetchKMS(ctx context.Context, source Source) ([]byte, error) {
	scheme, _, _ := strings.Cut(source.Address, "://")
	ask, ok := map[string]keyOf{"awskms": awsKey, "azurekms": azureKey, "gcpkms": gcpKey}[scheme]
	if !ok {
		return nil, problemf("the URI of a key must begin with awskms://, azurekms:// or gcpkms://, not %.20q", scheme)
	}
	key, err := ask(ctx, n, source.Address, source.As)
	if err != nil {
		return nil, err
	}
	text, err := pemOf(key)
	return []byte(text), err
}

// fetchRegistry logs in at a registry and returns a .dockerconfigjson.
func (n network) fetchRegistry(ctx context.Context, source Source) ([]byte, error) {
	login, ok := map[string]loginOf{"ECR": ecrLogin, "ACR": acrLogin, "GAR": garLogin}[source.Path]
	if !ok {
		return nil, problemf("the identity of a registry must be ECR, ACR or GAR, not %.20q", source.Path)
	}
	if !registryOf(source.Path, source.Address) {
		return nil, problemf("%.253s is not a host of %s, so its credentials are not sent there", source.Address, source.Path)
	}
	user, password, err := login(ctx, n, source.Address, source.As)
	if err != nil {
		return nil, err
	}
	auth := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	return json.Marshal(map[string]any{"auths": map[string]any{source.Address: map[string]string{"auth": auth}}})
}

// notInThisBuild returns an error that names the image and the build tag to use.
func notInThisBuild(what, tag string) error {
	return problem(fmt.Sprintf("%s is not in this build: use the image landwaiter:full, or build with -tags %s", what, tag))
}
