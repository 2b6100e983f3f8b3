//go:build !aws && !azure && !gcp

package external

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestABuildWithoutCloudsSaysWhatToRunInstead(t *testing.T) {
	for uri, tag := range map[string]string{"awskms:///x": "aws", "azurekms://v.vault.azure.net/k": "azure", "gcpkms://projects/p": "gcp"} {
		_, err := network{}.fetchKMS(t.Context(), Source{Kind: KMS, Address: uri})
		require.ErrorContains(t, err, "is not in this build: use an image whose tag ends in -full, or build with -tags "+tag)
	}
	for path, host := range map[string]string{"ECR": "123456789012.dkr.ecr.eu-central-1.amazonaws.com", "ACR": "team.azurecr.io", "GAR": "europe-docker.pkg.dev"} {
		_, err := network{}.fetchRegistry(t.Context(), Source{Kind: Registry, Path: path, Address: host})
		require.ErrorContains(t, err, "use an image whose tag ends in -full")
	}
}
