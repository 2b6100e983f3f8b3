package scaffold_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/tenancy/scaffold"
)

func carried() scaffold.Trust {
	return scaffold.Trust{Namespace: "landwaiter-system", Name: "company", Source: "a TUF repository", Root: []byte("{\n \"mediaType\": \"x\"\n}\n"),
		Roles:                `[{"role":"root","version":14,"expires":"2027-05-31T23:00:00Z"}]`,
		TimestampAuthorities: []byte("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"),
		RevocationLists:      []byte("-----BEGIN X509 CRL-----\nAA==\n-----END X509 CRL-----\n"), Ends: []string{"2027-05-31T23:00:00Z TUF role root,\nversion 14"}}
}

func TestCarriedTrustIsAlwaysTheSameText(t *testing.T) {
	want, err := os.ReadFile("testdata/trust.yaml")
	require.NoError(t, err)
	for range 3 {
		text, err := carried().Manifest()
		require.NoError(t, err)
		require.Equal(t, string(want), string(text))
	}
}

func TestWhatIsNotCarriedHasNoResource(t *testing.T) {
	made := carried()
	made.Root, made.Roles, made.TimestampAuthorities = nil, "", nil
	text, err := made.Manifest()
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(text), "kind: ClusterTrustStore"))
	require.NotContains(t, string(text), "annotations")
	made.ConfigMapOnly = true
	text, err = made.Manifest()
	require.NoError(t, err)
	require.NotContains(t, string(text), "ClusterTrustStore")
}

func TestMoreThanAConfigMapHoldsIsRefused(t *testing.T) {
	made := carried()
	made.RevocationLists = []byte(strings.Repeat("x", 1<<20))
	_, err := made.Manifest()
	require.ErrorContains(t, err, "under another --name")
}
