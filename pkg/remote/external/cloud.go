package external

import (
	"context"
	"crypto"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// keyOf fetches the public key that a URI of one service names.
type keyOf func(ctx context.Context, n network, uri string, as Identity) (crypto.PublicKey, error)

// loginOf fetches a login for a registry host.
type loginOf func(ctx context.Context, n network, host string, as Identity) (login, error)

// cloudAPI is what we ask a cloud for. A build without it has one that fails.
type cloudAPI struct {
	key   keyOf
	login loginOf
}

// login is a user and password, and when they end.
type login struct {
	user, password string
	ends           time.Time
}

// lasts returns the login with its end, some time early because clocks differ.
func (l login) lasts(until time.Time) login {
	l.ends = until.Add(-loginMargin)
	return l
}

// fetchKMS fetches a public key from a key management service.
func (n network) fetchKMS(ctx context.Context, source Source) ([]byte, error) {
	scheme, _, _ := strings.Cut(source.Address, "://")
	ask, ok := map[string]keyOf{"awskms": aws().key, "azurekms": entra().key, "gcpkms": gcp().key}[scheme]
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
func (n network) fetchRegistry(ctx context.Context, source Source) (Content, error) {
	logIn, ok := map[string]loginOf{"ECR": aws().login, "ACR": entra().login, "GAR": gcp().login, "GHCR": ghcrLogin}[source.Path]
	if !ok {
		return Content{}, problemf("the identity of a registry must be ECR, ACR, GAR or GHCR, not %.20q", source.Path)
	}
	if !Serves(source.Path, source.Address) {
		return Content{}, problemf("%.253s is not a host of %s, so its credentials are not sent there", source.Address, source.Path)
	}
	got, err := logIn(ctx, n, source.Address, source.As)
	if err != nil {
		return Content{}, err
	}
	auth := base64.StdEncoding.EncodeToString([]byte(got.user + ":" + got.password))
	text, err := json.Marshal(map[string]any{"auths": map[string]any{source.Address: map[string]string{"auth": auth}}})
	return Content{Bytes: text, Ends: got.ends}, err
}
