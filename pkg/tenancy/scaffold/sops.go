package scaffold

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// sopsKey is the key for which a tree's Secrets are encrypted. The zero value encrypts none.
type sopsKey struct {
	// setting is the field of [Platform] that names the key, and value its text.
	setting, value string
	// flag is the option of the command sops, and rule the field of a creation rule.
	flag, rule string
	// secret in flux-system has the private key; empty if Flux uses a service.
	secret string
}

// sops returns the key of a platform. If more than one is set, its check fails.
func (p Platform) sops() sopsKey {
	var found sopsKey
	for _, key := range []sopsKey{
		{"sopsAge", recipients(p.SOPSAge), "--age", "age", "sops-age"},
		{"sopsPGP", recipients(p.SOPSPGP), "--pgp", "pgp", "sops-gpg"},
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

// recipients returns the recipients of a setting, separated by commas. They may also be lines, as age-keygen -y
// prints them.
func recipients(value string) string {
	return cmp.Or(strings.Join(strings.FieldsFunc(value, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }), ","), value)
}

// ageRecipient matches the kinds of recipients, which have one length each.
const ageRecipient = `age1(pq1)?[02-9ac-hj-np-z]+`

// maxRecipients bounds those of one tree: every file is encrypted for each.
const maxRecipients = 32

// kmsKey distinguishes the services by the form of a key's name.
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

// check refuses two keys, and invalid public names of one.
func (k sopsKey) check() error {
	patterns := map[string]struct{ pattern, example string }{
		"": {`^$`, ""},
		"age": {`^(` + ageRecipient + `,)*` + ageRecipient + `$`,
			"age1 and 58 characters, or age1pq1 and 1952, as age-keygen prints; several with commas between them"},
		"pgp": {`^([0-9A-F]{40},)*[0-9A-F]{40}$`, "the 40 hexadecimal digits of a fingerprint, as gpg --list-keys prints; several " +
			"with commas between them"},
		"kms":            {`^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:(key|alias)/[A-Za-z0-9/_-]{1,256}$`, kmsExamples},
		"gcp_kms":        {`^projects/[a-z0-9:.-]+/locations/[a-z0-9-]+/keyRings/[A-Za-z0-9_-]+/cryptoKeys/[A-Za-z0-9_-]+$`, kmsExamples},
		"azure_keyvault": {`^https://[A-Za-z0-9.-]+/keys/[A-Za-z0-9-]+/[0-9a-f]{32}$`, kmsExamples},
	}
	want, ok := patterns[k.rule]
	switch {
	case k.setting != "" && k.value == "":
		return fmt.Errorf("%s name two keys, and Flux uses one: set one of sopsAge, sopsPGP and sopsKMS", k.setting)
	case (k.rule == "age" || k.rule == "pgp") && strings.Count(k.value, ",") >= maxRecipients:
		return fmt.Errorf("%s has more than %d recipients: name fewer", k.setting, maxRecipients)
	case !ok || k.rule == "age" &&
		slices.ContainsFunc(strings.Split(k.value, ","), func(r string) bool { return len(r) != 62 && len(r) != 1959 }),
		!regexp.MustCompile(want.pattern).MatchString(k.value):
		return fmt.Errorf("%s: %.200q cannot be used; give %s", k.setting, k.value, want.example)
	}
	return nil
}

const kmsExamples = "arn:aws:kms:eu-central-1:111122223333:key/ID, projects/P/locations/L/keyRings/R/cryptoKeys/K, or " +
	"https://VAULT.vault.azure.net/keys/NAME/VERSION"

// rules tell sops what to encrypt in this tree, and for which recipients.
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
		return "",
			fmt.Errorf("the command sops is missing, and nothing was written: install it from https://github.com/getsops/sops/releases (version "+
				"3.8 or newer): %w", err)
	}
	return found, nil
}

// maxEncrypted bounds the output of the command.
const maxEncrypted = 1 << 20

// Encrypt lets the command sops encrypt a Secret for the key of a platform. The plain text is
// only ever in memory. Encrypt only accepts output in which every value is encrypted.
func (p Platform) Encrypt(ctx context.Context, sops string, secret []byte) (string, error) {
	key := p.sops()
	if err := key.check(); err != nil {
		return "", err
	}
	if key == (sopsKey{}) {
		return "", errors.New("encrypt with sops: the tree names no key: set sopsAge, sopsPGP or sopsKMS")
	}
	// A .sops.yaml of the current folder, such as the tree's own, has no rule for standard input:
	// sops would then encrypt nothing, regardless of its arguments.
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

// KeepsRecipients returns a [RefusedError] if the file of rules in dir was edited, and has recipients that the
// one of tree lacks.
func (p Platform) KeepsRecipients(dir string, tree Tree) error {
	at := slices.IndexFunc(tree.Files, func(f File) bool { return f.Path == sopsRules })
	if at < 0 {
		return nil
	}
	present, err := readExisting(dir, sopsRules)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case readStamp(present).intact:
		return nil
	}
	for line := range strings.Lines(present) {
		rule, _, _ := strings.Cut(line, "#")
		for _, recipient := range anyRecipient.FindAllString(rule, -1) {
			if !strings.Contains(tree.Files[at].Text, recipient) {
				return &RefusedError{fmt.Sprintf("%s encrypts for %s, and would not any more: %sremove it from the file first", sopsRules, recipient,
					p.sops().orName())}
			}
		}
	}
	return nil
}

// orName says how to name several recipients, if several are possible.
func (k sopsKey) orName() string {
	if k.rule != "age" && k.rule != "pgp" {
		return ""
	}
	return fmt.Sprintf("add it to %[1]s, as in --set %[1]s=RECIPIENT,RECIPIENT, or ", k.setting)
}

// inCluster says how Flux decrypts for a recipient that the tree does not name yet, if several are possible.
func (k sopsKey) inCluster() string {
	if k.secret == "" {
		return ""
	}
	return fmt.Sprintf(", or name its recipient too, as in --set %s=RECIPIENT,RECIPIENT, if Secret %s/%s has its key", k.setting,
		fluxNamespace, k.secret)
}

// sopsRules is the file that tells sops what to encrypt, and for which recipients.
const sopsRules = ".sops.yaml"

// anyRecipient matches the keys in a file of rules: of age, PGP and services.
var anyRecipient = regexp.MustCompile(`\bage1[0-9a-z]{50,}|\b[0-9A-F]{40}\b|\barn:aws[^\s,"']+|\bprojects/[^\s,"']+|\bhttps://[^\s,"']+`)
