package scaffold

import (
	"strings"
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
		"age": {Platform{SOPSAge: recipient}, "age", "--age", recipient, "sops-age"},
		"PGP": {Platform{SOPSPGP: fingerprint}, "pgp", "--pgp", fingerprint, "sops-gpg"},
		"two of PGP, in a rotation": {Platform{SOPSPGP: fingerprint + ", " + strings.Repeat("A", 40)}, "pgp", "--pgp",
			fingerprint + "," + strings.Repeat("A", 40), "sops-gpg"},
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
	for about, platform := range map[string]Platform{"no key": {}, "two keys": {SOPSAge: recipient, SOPSPGP: fingerprint},
		"what is no key": {SOPSPGP: "--decrypt"}} {
		_, err = platform.Encrypt(t.Context(), command, []byte(plainSecret))
		require.Error(t, err, about)
	}
}

func TestATreeHasSeveralRecipients(t *testing.T) {
	other := "age1" + strings.Repeat("q", 58)
	quantum := "age1pq1" + strings.Repeat("z", 1952)
	for value, want := range map[string]string{
		recipient + "," + other:              recipient + "," + other,
		recipient + ", " + quantum:           recipient + "," + quantum,
		recipient + "\n" + other + "\n":      recipient + "," + other, // age-keygen -y of two keys
		strings.Repeat(recipient+",", 32):    strings.TrimSuffix(strings.Repeat(recipient+",", 32), ","),
		strings.Repeat(recipient+",", 33):    "",
		recipient + "q":                      "",
		quantum + "z":                        "",
		recipient + ",age1yubikey1" + "qqqq": "",
		recipient + " --decrypt":             "",
		", ":                                 "",
	} {
		p := Platform{SOPSAge: value, Environments: []string{"prod"}, Constraints: []string{imagesSet}}
		tree, err := NewPlatform(p)
		if want == "" {
			require.ErrorContains(t, err, "sopsAge", value)
			require.Less(t, len(err.Error()), 600)
			continue
		}
		require.NoError(t, err)
		require.Contains(t, textOfFile(t, tree, ".sops.yaml"), want)
		calls := fakeSOPS(t, "echo \"$@\" >DIR/args\ncat >/dev/null\ncat <<EOF\n"+sealedSecret(sealedValue, sealedValue)+"EOF\n")
		command, err := FindSOPS()
		require.NoError(t, err)
		_, err = p.Encrypt(t.Context(), command, []byte(plainSecret))
		require.NoError(t, err)
		require.Contains(t, content(t, calls, "args"), "--age "+want+" ")
	}
}

func TestRecipientsOfAnOwnFileOfRulesAreNotLost(t *testing.T) {
	other := "age1" + strings.Repeat("q", 58)
	p := Platform{SOPSAge: recipient, Environments: []string{"prod"}, Constraints: []string{imagesSet}}
	tree, err := NewPlatform(p)
	require.NoError(t, err)
	for about, c := range map[string]struct{ file, says string }{
		"none":                    {"", ""},
		"that of an earlier run":  {File{Path: ".sops.yaml", Text: "creation_rules: [{age: " + other + "}]\n"}.Stamped("platform init"), ""},
		"the same recipient":      {"creation_rules:\n- {path_regex: x, age: " + recipient + "}\n# once " + other + "\n", ""},
		"a further recipient":     {"creation_rules:\n- age: >-\n    " + recipient + ",\n    " + other + "\n", other},
		"in a group":              {"creation_rules:\n- key_groups: [{age: [" + recipient + ", " + other + "]}]\n", other},
		"a further key of PGP":    {"creation_rules:\n- {age: " + recipient + ", pgp: " + fingerprint + "}\n", fingerprint},
		"a further key of Amazon": {"creation_rules:\n- {kms: 'arn:aws:kms:eu-central-1:1:key/x'}\n", "arn:aws:kms:eu-central-1:1:key/x"},
		"a further key of Azure":  {"creation_rules:\n- {azure_keyvault: \"https://a.vault.azure.net/keys/b/c\"}\n", "https://a.vault.azure.net/keys/b/c"},
		"a further key of Google": {"creation_rules:\n- {gcp_kms: projects/p/locations/l/keyRings/r/cryptoKeys/k}\n",
			"projects/p/locations/l/keyRings/r/cryptoKeys/k"},
		"one that is no text file": {"\x00", ""},
	} {
		dir := folder(t)
		if c.file != "" {
			put1(t, dir, ".sops.yaml", c.file)
		}
		err := p.KeepsRecipients(dir, tree)
		if c.says == "" {
			require.NoError(t, err, about)
			continue
		}
		var refused *RefusedError
		require.ErrorAs(t, err, &refused, about)
		require.Contains(t, err.Error(), c.says)
	}
}
