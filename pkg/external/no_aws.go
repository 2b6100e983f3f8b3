//go:build !aws

package external

import (
	"context"
	"crypto"
)

func awsKey(context.Context, network, string, Identity) (crypto.PublicKey, error) {
	return nil, notInThisBuild("AWS", "aws")
}

func ecrLogin(context.Context, network, string, Identity) (login, error) {
	return login{}, notInThisBuild("AWS", "aws")
}
