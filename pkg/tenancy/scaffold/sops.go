package scaffold

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

// sopsKey is the key that Secrets of a tree are encrypted for. The zero value encrypts none.
type sopsKey struct {
	// setting is the field of [Platform] that names the key, and value its text.
	setting, value string
	// flag is the option of the command sops, and rule the field of a creation rule.
	flag, rule string
	// secret in flux-system has the private key; empty if Flux asks a service.
	secret string
}

// sops returns the key of a platform. If more than one is set, its check fails.
func (p Platform) sops() sopsKey {
	var found sopsKey
	for _, key := range []sopsKey{
		{"sopsAge", p.SOPSAge, "--age", "age", "sops-age"},
		{"sopsPGP", p.SOPSPGP, "--pgp", "pgp", "sops-gpg"},
		kmsKey(p.SOPSKMS),
	} {
		switch {
		case key.value == "":
		case found != (sopsKey{}):
			return sopsKey{setting: found.setting + " and " + key.setting}
		default:
			found = key
		}
	}
	return found
}

// kmsKey tells the services apart by how they name a key.
func kmsKey(value string) sopsKey {
	key := sopsKey{setting: "sopsKMS", value: value}
	switch {
	case strings.HasPrefix(value, "arn:"):
		key.flag, key.rule = "--kms", "kms"
	case strings.HasPrefix(value, "projects/"):
		key.flag, key.rule = "--gcp-kms", "gcp_kms"
	default:
		key.flag, key.rule = "--azure-kv", "azure_keyvault"
	}
	return key
}

// check refuses two keys, and what is no public name of one.
func (k sopsKey) check() error {
	patterns := map[string]struct{ pattern, example string }{
		"":               {`^$`, ""},
		"age":            {`^age1[02-9ac-hj-np-z]{58}$`, "age1 and 58 characters, as age-keygen prints"},
		"pgp":            {`^[0-9A-F]{40}$`, "the 40 hexadecimal digits of a fingerprint, as gpg --list-keys prints"},
		"kms":            {`^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:(key|alias)/[A-Za-z0-9/_-]{1,256}$`, kmsExamples},
		"gcp_kms":        {`^projects/[a-z0-9:.-]+/locations/[a-z0-9-]+/keyRings/[A-Za-z0-9_-]+/cryptoKeys/[A-Za-z0-9_-]+$`, kmsExamples},
		"azure_keyvault": {`^https://[A-Za-z0-9.-]+/keys/[A-Za-z0-9-]+/[0-9a-f]{32}$`, kmsExamples},
	}
	want, ok := patterns[k.rule]
	switch {
	case k.setting != "" && k.value == "":
		return fmt.Errorf("%s name two keys, and Flux uses one: set one of sopsAge, sopsPGP and sopsKMS", k.setting)
	case !ok || !regexp.MustCompile(want.pattern).MatchString(k.value):
		return fmt.Errorf("%s: %q cannot be used; give %s", k.setting, k.value, want.example)
	}
	return nil
}

const kmsExamples = "arn:aws:kms:eu-central-1:111122223333:key/ID, projects/P/locations/L/keyRings/R/cryptoKeys/K, or https://VAULT.vault.azure.net/keys/NAME/VERSION"

// rules tell sops what to encrypt in this tree, and for whom.
func (k sopsKey) rules() string {
	where := "Flux asks the service, with the identity of kustomize-controller."
	if k.secret != "" {
		where = "the cluster has its private half in the Secret " + fluxNamespace + "/" + k.secret + "."
	}
	return document("Secrets are encrypted for this key; "+where,
		object{"creation_rules": []object{{"path_regex": `.*\.ya?ml$`, "encrypted_regex": encryptedFields, k.rule: k.value}}})
}

// decryption is the field of that name of a Flux Kustomization.
func (k sopsKey) decryption() object {
	decryption := object{"provider": "sops"}
	if k.secret != "" {
		decryption["secretRef"] = object{"name": k.secret}
	}
	return decryption
}

// encryptedFields are the fields of a Secret that are not public.
const encryptedFields = "^(data|stringData)$"

// FindSOPS returns the path of the command sops.
func FindSOPS() (string, error) {
	found, err := exec.LookPath("sops")
	if err != nil {
		return "", fmt.Errorf("the command sops is missing, and nothing was written: install it from https://github.com/getsops/sops/releases (version 3.8 or newer): %w", err)
	}
	return found, nil
}

// maxEncrypted bounds what is taken from the command.
const maxEncrypted = 1 << 20

// Encrypt lets the command sops encrypt a Secret for the key of a platform. The plain text is
// only ever in memory. What the command returns is believed only if every value in it is
// encrypted.
func (p Platform) Encrypt(ctx context.Context, sops string, secret []byte) (string, error) {
	key := p.sops()
	if err := key.check(); err != nil {
		return "", err
	}
	if key == (sopsKey{}) {
		return "", errors.New("encrypt with sops: the tree names no key: set sopsAge, sopsPGP or sopsKMS")
	}
	// A .sops.yaml of the current folder, such as the tree's own, has no rule for standard input, and
	// sops would then encrypt nothing, whatever its arguments say.
	command := exec.CommandContext(ctx, sops, "--config", os.DevNull, "--encrypt", key.flag, key.value, "--encrypted-regex", encryptedFields, //nolint:gosec // found in PATH, and no shell reads the arguments
		"--input-type", "yaml", "--output-type", "yaml", "/dev/stdin")
	command.Stdin = bytes.NewReader(secret)
	var out, failed bytes.Buffer
	command.Stdout, command.Stderr = &out, &failed
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("encrypt with sops: %w: %s", err, firstLine(errors.New(strings.TrimSpace(failed.String()))))
	}
	if out.Len() > maxEncrypted {
		return "", fmt.Errorf("encrypt with sops: it wrote more than %d bytes", maxEncrypted)
	}
	if err := encrypted(out.Bytes()); err != nil {
		return "", fmt.Errorf("encrypt with sops: %w", err)
	}
	return out.String(), nil
}
