package scaffold

import (
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

func TestSecretsAreEncryptedForTheKeyThatTheClusterCanUse(t *testing.T) {
	const aws, google, azure = "arn:aws:kms:eu-central-1:111122223333:key/0d9d8d8e-0000-4000-8000-000000000000", "projects/p/locations/global/keyRings/fleet/cryptoKeys/sops", "https://fleet.vault.azure.net/keys/sops/0123456789abcdef0123456789abcdef"
	for about, c := range map[string]struct {
		platform          Platform
		rule, flag, value string
		secret            string
	}{
		"age":    {Platform{SOPSAge: recipient}, "age", "--age", recipient, "sops-age"},
		"PGP":    {Platform{SOPSPGP: fingerprint}, "pgp", "--pgp", fingerprint, "sops-gpg"},
		"AWS":    {Platform{SOPSKMS: aws}, "kms", "--kms", aws, ""},
		"Google": {Platform{SOPSKMS: google}, "gcp_kms", "--gcp-kms", google, ""},
		"Azure":  {Platform{SOPSKMS: azure}, "azure_keyvault", "--azure-kv", azure, ""},
	} {
		t.Run(about, func(t *testing.T) {
			c.platform.Constraints, c.platform.Environments = []string{imagesSet}, []string{"prod"}
			dir := example{platform: &c.platform}.write(t)
			var rules struct {
				Rules []map[string]string `json:"creation_rules"`
			}
			require.NoError(t, yaml.Unmarshal([]byte(content(t, dir, ".sops.yaml")), &rules))
			require.Equal(t, []map[string]string{{"path_regex": `.*\.ya?ml$`, "encrypted_regex": encryptedFields, c.rule: c.value}}, rules.Rules)
			var tenants struct {
				Spec struct {
					Decryption map[string]any `json:"decryption"`
				} `json:"spec"`
			}
			require.NoError(t, yaml.Unmarshal([]byte(content(t, dir, "clusters/prod/tenants.yaml")), &tenants))
			want := map[string]any{"provider": "sops"}
			if c.secret != "" {
				want["secretRef"] = map[string]any{"name": c.secret}
			} else {
				want["serviceAccountName"] = "kustomize-controller"
			}
			require.Equal(t, want, tenants.Spec.Decryption)

			calls := fakeSOPS(t, "echo \"$@\" >DIR/args\ncat >/dev/null\ncat <<EOF\n"+sealedSecret(sealedValue, sealedValue)+"EOF\n")
			command, err := FindSOPS()
			require.NoError(t, err)
			_, err = c.platform.Encrypt(t.Context(), command, []byte(plainSecret))
			require.NoError(t, err)
			require.Contains(t, content(t, calls, "args"), "--config /dev/null --encrypt "+c.flag+" "+c.value+" ", "whatever folder it is run in")
		})
	}
}

func TestNothingIsEncryptedForNobody(t *testing.T) {
	fakeSOPS(t, "cat <<EOF\n"+sealedSecret(sealedValue, sealedValue)+"EOF\n")
	command, err := FindSOPS()
	require.NoError(t, err)
	for about, platform := range map[string]Platform{"no key": {}, "two keys": {SOPSAge: recipient, SOPSPGP: fingerprint}, "what is no key": {SOPSPGP: "--decrypt"}} {
		_, err = platform.Encrypt(t.Context(), command, []byte(plainSecret))
		require.Error(t, err, about)
	}
}
