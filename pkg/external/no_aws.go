//go:build !aws

package external

import (
	"context"
	"crypto"
)

func awsKey(context.Context, string, map[string]string) (crypto.PublicKey, error) {
	return nil, notInThisBuild("AWS", "aws")
}

func ecrLogin(context.Context, string, map[string]string) (user, password string, err error) {
	return "", "", notInThisBuild("AWS", "aws")
}
