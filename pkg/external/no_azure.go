//go:build !azure

package external

import (
	"context"
	"crypto"
)

func azureKey(context.Context, string, map[string]string) (crypto.PublicKey, error) {
	return nil, notInThisBuild("Azure", "azure")
}

func acrLogin(context.Context, string, map[string]string) (user, password string, err error) {
	return "", "", notInThisBuild("Azure", "azure")
}
