package trust_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/formats/trust"
	"github.com/landwaiter/landwaiter/test/kit/sigstore"
)

func TestSigstoreRootsAreReadWhole(t *testing.T) {
	instance, err := sigstore.New()
	require.NoError(t, err)
	text, err := instance.TrustedRoot()
	require.NoError(t, err)
	parsed, err := trust.ParseSigstoreRoot(text)
	require.NoError(t, err)
	require.NotEmpty(t, parsed.FulcioCertificateAuthorities())
	require.NotEmpty(t, parsed.RekorLogs())
	require.NotEmpty(t, parsed.TimestampingAuthorities())
	for name, wrong := range map[string]string{
		"nothing": "", "no JSON": "x", "empty": "{}", "another kind": `{"mediaType":"application/json"}`, "a list": "[]",
		"vouches for nothing": `{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}`,
		"cut short":           string(text[:len(text)/2]), "too large": strings.Repeat(" ", 256<<10) + string(text),
	} {
		_, err := trust.ParseSigstoreRoot([]byte(wrong))
		require.Error(t, err, name)
	}
}

func FuzzParseSigstoreRoot(f *testing.F) {
	instance, err := sigstore.New()
	require.NoError(f, err)
	text, err := instance.TrustedRoot()
	require.NoError(f, err)
	f.Add(text)
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		parsed, err := trust.ParseSigstoreRoot(text)
		require.Equal(t, err != nil, parsed == nil)
	})
}
