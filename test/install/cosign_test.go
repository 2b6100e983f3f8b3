//go:build nightly

package install

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/landwaiter/landwaiter/test/kit/cosign"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// The commands that pages show are those of cosign 2 and 3, for which make e2e has a stand-in.
func TestThePagesWorkWithTheRealCosign(t *testing.T) {
	v2, v3 := suite.MustTool(t, suite.CosignV2), suite.MustTool(t, suite.CosignV3)
	newReader(t, func(folder string) error {
		return errors.Join(os.Symlink(v2, filepath.Join(folder, cosign.V2)), os.Symlink(v3, filepath.Join(folder, cosign.V3)))
	}).followPages(t)
}
