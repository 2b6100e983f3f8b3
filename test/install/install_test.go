//go:build e2e

package install

import (
	"testing"

	"github.com/landwaiter/landwaiter/test/kit/cosign"
)

// The pages are docs/howto/install.md, docs/howto/hardening.md, docs/howto/install-without-helm.md,
// docs/howto/enforce.md, docs/howto/sign.md, docs/howto/self-service.md, docs/operate/rotate.md,
// docs/howto/trust.md, docs/reference/resources.md, docs/operate/upgrade.md, docs/operate/outage.md, docs/operate/uninstall.md
// and charts/landwaiter/README.md.
// A stand-in signs, because the real cosign takes minutes to build;
// TestThePagesWorkWithTheRealCosign has the real one.
func TestAnAdminInstallsUpgradesAndUninstallsWithThePagesAlone(t *testing.T) {
	newReader(t, cosign.Link).followPages(t)
}

// The page is docs/start/quickstart.md.
func TestANewcomerSeesADenialAndAnAdmissionWithTheQuickStartAlone(t *testing.T) {
	newReader(t, cosign.Link).followQuickStart(t)
}
