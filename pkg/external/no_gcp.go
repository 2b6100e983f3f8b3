//go:build !gcp

package external

import (
	"context"
	"crypto"
)

func gcpKey(context.Context, string, map[string]string) (crypto.PublicKey, error) {
	return nil, notInThisBuild("Google Cloud", "gcp")
}

func garLogin(context.Context, string, map[string]string) (user, password string, err error) {
	return "", "", notInThisBuild("Google Cloud", "gcp")
}
