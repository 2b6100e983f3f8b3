//go:build !aws || !azure || !gcp

package external

import (
	"context"
	"crypto"
)

// notInThisBuild returns an error that names the image and the build tag to use.
func notInThisBuild(what, tag string) error {
	return problemf("%s is not in this build: use an image whose tag ends in -full, or build with -tags %s", what, tag)
}

func absent(what, tag string) cloudAPI {
	return cloudAPI{
		key: func(context.Context, network, string, Identity) (crypto.PublicKey, error) {
			return nil, notInThisBuild(what, tag)
		},
		login: func(context.Context, network, string, Identity) (login, error) {
			return login{}, notInThisBuild(what, tag)
		},
	}
}
