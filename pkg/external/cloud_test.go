//go:build aws && azure && gcp

package external

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/trust"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// A server that answers GetPublicKey as AWS KMS does, to the credentials given.
func TestKeysOfAWSAreReadWithTheCredentialsGiven(t *testing.T) {
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	block, _ := pem.Decode(key.PEM)
	_, err = x509.ParsePKIXPublicKey(block.Bytes)
	require.NoError(t, err)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		if !strings.Contains(r.Header.Get("Authorization"), "Credential=AKIDEXAMPLE/") {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"__type":"UnrecognizedClientException"}`))
			return
		}
		const id = "1234abcd-12ab-34cd-56ef-1234567890ab"
		answer := map[string]any{"KeyId": id, "PublicKey": base64.StdEncoding.EncodeToString(block.Bytes),
			"KeySpec": "ECC_NIST_P256", "KeyUsage": "SIGN_VERIFY", "SigningAlgorithms": []string{"ECDSA_SHA_256"}}
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), "DescribeKey") {
			answer = map[string]any{"KeyMetadata": map[string]any{"KeyId": id, "KeySpec": "ECC_NIST_P256", "CustomerMasterKeySpec": "ECC_NIST_P256",
				"SigningAlgorithms": []string{"ECDSA_SHA_256"}, "KeyUsage": "SIGN_VERIFY"}}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	defer server.Close()
	bundle := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(bundle, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	t.Setenv("AWS_CA_BUNDLE", bundle) // the SDK has no other way to trust a test
	uri := "awskms://" + strings.TrimPrefix(server.URL, "https://") + "/1234abcd-12ab-34cd-56ef-1234567890ab"
	read := func(credentials string) ([]byte, error) {
		return fetchKMS(t.Context(), Source{Kind: KMS, Address: uri, Credentials: Secret(credentials)})
	}
	text, err := read(`{"accessKeyID":"AKIDEXAMPLE","secretAccessKey":"x","region":"eu-central-1"}`)
	require.NoError(t, err)
	want, err := trust.ParsePublicKeys(key.PEM)
	require.NoError(t, err)
	got, err := trust.ParsePublicKeys(text)
	require.NoError(t, err)
	require.Equal(t, want, got)
	for _, wrong := range []string{`{"accessKeyID":"AKIDOTHER","secretAccessKey":"x","region":"eu-central-1"}`, `{"accessKeyID":"AKIDEXAMPLE"}`,
		`{"accessKeyID":"AKIDEXAMPLE","secretAccessKey":"x"}`, `{"other":"x"}`} {
		_, err := read(wrong)
		require.Error(t, err, wrong)
	}
}

func TestIncompleteCredentialsOfCloudsAreRefused(t *testing.T) {
	for _, s := range []Source{
		{Kind: KMS, Address: "gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k", Credentials: `{"x":"y"}`},
		{Kind: KMS, Address: "gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k", Credentials: `{"credentials.json":"x"}`},
		{Kind: KMS, Address: "azurekms://v.vault.azure.net/key", Credentials: `{"x":"y"}`},
	} {
		_, err := fetchKMS(t.Context(), s)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "not in this build")
	}
	for path, host := range map[string]string{"ECR": "1.dkr.ecr.eu-central-1.amazonaws.com", "ACR": "team.azurecr.io", "GAR": "europe-docker.pkg.dev"} {
		_, err := fetchRegistry(t.Context(), Source{Kind: Registry, Path: path, Address: host, Credentials: `{"x":"y"}`})
		require.Error(t, err)
		require.NotContains(t, err.Error(), "not in this build")
	}
}
