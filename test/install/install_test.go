//go:build e2e

package install

import (
	"testing"

	"github.com/landwaiter/landwaiter/test/kit/cosign"
)

// The pages are docs/howto/install.md, docs/reference/resources.md, docs/howto/trust.md, docs/operate/upgrade.md and charts/landwaiter/README.md.
// A stand-in signs, because the real cosign takes minutes to build;
// TestThePagesWorkWithTheRealCosign has the real one.
func TestAnAdminInstallsUpgradesAndUninstallsWithThePagesAlone(t *testing.T) {
	newReader(t, cosign.Link).followPages(t)
}
