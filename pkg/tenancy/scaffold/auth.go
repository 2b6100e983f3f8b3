package scaffold

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// AuthFile is the file of a Tenant's encrypted Git credentials.
const AuthFile = "auth.yaml"

// Login is what Flux needs to read a team's repository.
type Login struct {
	// Namespace and Name of the Secret.
	Namespace, Name string
	// Token is that of an account at the Git host; empty means a new SSH key.
	Token []byte
	// KnownHosts are the public keys of the Git host, for SSH.
	KnownHosts []byte
}

// NewLogin returns a Secret with the login, in plain text, and the public key to give to
// the Git host, which a token does not have.
func NewLogin(l Login) (secret []byte, deployKey string, err error) {
	content := object{}
	if len(l.Token) > 0 {
		token := strings.TrimSpace(string(l.Token))
		if token == "" || strings.ContainsAny(token, " \n\t") {
			return nil, "", errors.New("the token is empty, or more than one word: give the token alone")
		}
		content["username"], content["password"] = "git", token
	} else {
		// Without a key, anybody could answer in the place of the Git host.
		if _, _, _, _, _, err := ssh.ParseKnownHosts(l.KnownHosts); err != nil {
			return nil, "", fmt.Errorf("--known-hosts has no public key of a host; write one with ssh-keyscan HOST, and compare it with what the host publishes: %w", err)
		}
		private, public, err := newKey(l.Namespace + "/" + l.Name)
		if err != nil {
			return nil, "", err
		}
		content["identity"], content["identity.pub"], content["known_hosts"] = private, public, string(l.KnownHosts)
		deployKey = strings.TrimSpace(public)
	}
	return []byte(encode(object{"apiVersion": "v1", "kind": "Secret", "metadata": named(l.Namespace, l.Name), "stringData": content})), deployKey, nil
}

// KnowsHost refuses a file of known hosts that has no key of the host of a repository.
func KnowsHost(file, repository string) error {
	parsed, err := url.Parse(repository)
	if err != nil {
		return fmt.Errorf("read the URL of the repository: %w", err)
	}
	address := net.JoinHostPort(parsed.Hostname(), cmp.Or(parsed.Port(), "22"))
	check, err := knownhosts.New(file)
	if err != nil {
		return fmt.Errorf("read --known-hosts: %w", err)
	}
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	stranger, err := ssh.NewPublicKey(public)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	// A key that nobody has is told apart from a host that the file does not have.
	var unknown *knownhosts.KeyError
	if err := check(address, &net.TCPAddr{}, stranger); errors.As(err, &unknown) && len(unknown.Want) > 0 {
		return nil
	}
	host := knownhosts.Normalize(address)
	return fmt.Errorf("%s has no key of %s, so Flux could not read %s: add what ssh-keyscan prints for this host, and compare it with what the host publishes", file, host, repository)
}

func newKey(comment string) (private, public string, err error) {
	publicKey, privateKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", "", fmt.Errorf("make a key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(privateKey, comment)
	if err != nil {
		return "", "", fmt.Errorf("write the private key: %w", err)
	}
	sshKey, err := ssh.NewPublicKey(publicKey)
	if err != nil {
		return "", "", fmt.Errorf("write the public key: %w", err)
	}
	return string(pem.EncodeToMemory(block)), string(ssh.MarshalAuthorizedKey(sshKey)), nil
}

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

// Encrypt lets the command sops encrypt a Secret for an age recipient. The plain text is
// only ever in memory. What the command returns is believed only if every value in it is
// encrypted.
func Encrypt(ctx context.Context, sops string, secret []byte, recipient string) (string, error) {
	command := exec.CommandContext(ctx, sops, "--encrypt", "--age", recipient, "--encrypted-regex", encryptedFields, //nolint:gosec // found in PATH, and no shell reads the arguments
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

// ReadEncrypted returns a Secret of the tree in dir. It refuses one that is not wholly
// encrypted, and a link, because what it returns is written elsewhere in the tree.
func ReadEncrypted(dir, name string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", fmt.Errorf("open the folder of the tree: %w", err)
	}
	defer func() { _ = root.Close() }() // files are closed by themselves
	text, err := readExisting(root, name)
	if err != nil {
		return "", err
	}
	if err := encrypted([]byte(text)); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}

// encrypted refuses text that is not one wholly encrypted Secret.
func encrypted(text []byte) error {
	documents, err := parse(text)
	if err != nil {
		return fmt.Errorf("it is not YAML: %w", err)
	}
	if len(documents) != 1 || textOf(documents[0], "kind") != "Secret" || field(documents[0], "stringData") == nil {
		return errors.New("it is not the encrypted Secret")
	}
	c := checker{findings: map[Finding]bool{}, plain: map[string]bool{}}
	c.secrets(AuthFile, documents[0], 0)
	for finding := range c.findings {
		return errors.New(finding.Message)
	}
	return nil
}
