//go:build !aws || !azure || !gcp

package external

import "fmt"

// notInThisBuild returns an error that names the image and the build tag to use.
func notInThisBuild(what, tag string) error {
	return problem(fmt.Sprintf("%s is not in this build: use the image landwaiter:full, or build with -tags %s", what, tag))
}
