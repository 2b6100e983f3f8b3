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
	newReader(t, linkReal(t)).followPages(t)
}

// The flags of docs/start/quickstart.md are those of cosign 3.
func TestTheQuickStartWorksWithTheRealCosign(t *testing.T) {
	newReader(t, linkReal(t)).followQuickStart(t)
}

// linkReal puts both versions of the real cosign into a folder.
func linkReal(t *testing.T) func(folder string) error {
	t.Helper()
	v2, v3 := suite.MustTool(t, suite.CosignV2), suite.MustTool(t, suite.CosignV3)
	return func(folder string) error {
		return errors.Join(os.Symlink(v2, filepath.Join(folder, cosign.V2)), os.Symlink(v3, filepath.Join(folder, cosign.V3)))
	}
}
