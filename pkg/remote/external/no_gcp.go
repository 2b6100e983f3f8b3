//go:build !gcp

package external

import (
	"context"
	"crypto"
)

func gcpKey(context.Context, network, string, Identity) (crypto.PublicKey, error) {
	return nil, notInThisBuild("Google Cloud", "gcp")
}

func garLogin(context.Context, network, string, Identity) (login, error) {
	return login{}, notInThisBuild("Google Cloud", "gcp")
}
