//go:build !azure

package external

import (
	"context"
	"crypto"
)

func azureKey(context.Context, network, string, Identity) (crypto.PublicKey, error) {
	return nil, notInThisBuild("Azure", "azure")
}

func acrLogin(context.Context, network, string, Identity) (login, error) {
	return login{}, notInThisBuild("Azure", "azure")
}
