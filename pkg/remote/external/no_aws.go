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

// KnowsAWS reports whether this build can ask AWS.
func KnowsAWS() bool { return false }

func (network) askAWSSigner(context.Context, awsQuestion) ([]string, error) {
	return nil, notInThisBuild("AWS", "aws")
}
