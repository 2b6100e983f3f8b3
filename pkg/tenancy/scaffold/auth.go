package scaffold

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// AuthFile is the file of a Tenant's encrypted Git credentials.
const AuthFile = "auth.yaml"

// Login is what Flux needs to read a team's repository.
type Login struct {
	// Namespace and Name of the Secret.
	Namespace, Name string
	// Host is the Git host that an SSH key is for.
	Host string
	// Token is the token of an account at the Git host, or USER:TOKEN; empty means a new SSH
	// key.
	Token []byte
	// KnownHosts are the public keys of the Git host, for SSH.
	KnownHosts []byte
}

// NewLogin returns a Secret with the login, in plain text, and the public key to give to the
// Git host, which a token does not have.
func NewLogin(l Login) (secret []byte, deployKey string, err error) {
	content := object{}
	if len(l.Token) > 0 {
		token := strings.TrimSpace(string(l.Token))
		if token == "" || strings.ContainsAny(token, " \n\t") {
			return nil, "", errors.New("the token is empty, or more than one word: give the token alone, or USER:TOKEN")
		}
		user, password, named := strings.Cut(token, ":")
		switch {
		case !named:
			user, password = "git", token // most hosts accept any name
		case user == "" || password == "":
			return nil, "", errors.New("the user or the token is empty: give USER:TOKEN, or the token alone")
		}
		content["username"], content["password"] = user, password
	} else {
		// Without a key, anybody could impersonate the Git host.
		if _, _, _, _, _, err := ssh.ParseKnownHosts(l.KnownHosts); err != nil {
			return nil, "",
				fmt.Errorf("--git-auth: the file has no public key of a host; write one with ssh-keyscan HOST, and compare it with what the host "+
					"publishes: %w", err)
		}
		private, public, err := newKey(l.Host, l.Namespace+"/"+l.Name)
		if err != nil {
			return nil, "", err
		}
		content["identity"], content["identity.pub"], content["known_hosts"] = private, public, string(l.KnownHosts)
		deployKey = strings.TrimSpace(public)
	}
	return []byte(encode(object{"apiVersion": "v1", "kind": "Secret", "metadata": named(l.Namespace, l.Name), "stringData": content})),
		deployKey, nil
}

// KnowsHost refuses a file of known hosts without a key of a repository's host.
func KnowsHost(file, repository string) error {
	parsed, err := url.Parse(repository)
	if err != nil {
		return fmt.Errorf("read the URL of the repository: %w", err)
	}
	address := net.JoinHostPort(parsed.Hostname(), cmp.Or(parsed.Port(), "22"))
	check, err := knownhosts.New(file)
	if err != nil {
		return fmt.Errorf("read the file of --git-auth: %w", err)
	}
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	stranger, err := ssh.NewPublicKey(public)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	// The error distinguishes an unsupported key from a missing host.
	var unknown *knownhosts.KeyError
	if err := check(address, &net.TCPAddr{}, stranger); errors.As(err, &unknown) && len(unknown.Want) > 0 {
		return nil
	}
	host := knownhosts.Normalize(address)
	return fmt.Errorf("%s has no key of %s, so Flux could not read %s: add what ssh-keyscan prints for this host, and compare it with what "+
		"the host publishes", file, host, repository)
}

// onlyRSA matches the hosts of Azure DevOps and AWS CodeCommit, which take no other keys.
var onlyRSA = regexp.MustCompile(`^(ssh\.dev\.azure\.com|([a-z0-9-]+\.)?vs-ssh\.visualstudio\.com|` +
	`git-codecommit(-fips)?\.[a-z0-9-]+\.amazonaws\.com(\.cn)?)$`)

func newKey(host, comment string) (private, public string, err error) {
	var privateKey crypto.Signer
	if onlyRSA.MatchString(strings.ToLower(host)) {
		privateKey, err = rsa.GenerateKey(rand.Reader, 4096)
	} else {
		_, privateKey, err = ed25519.GenerateKey(rand.Reader)
	}
	if err != nil {
		return "", "", fmt.Errorf("make a key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(privateKey, comment)
	if err != nil {
		return "", "", fmt.Errorf("write the private key: %w", err)
	}
	sshKey, err := ssh.NewPublicKey(privateKey.Public())
	if err != nil {
		return "", "", fmt.Errorf("write the public key: %w", err)
	}
	return string(pem.EncodeToMemory(block)), string(ssh.MarshalAuthorizedKey(sshKey)), nil
}

// ReadEncrypted returns a Secret of the tree in dir. It refuses one that is not completely
// encrypted, and a link, because the result is written elsewhere in the tree.
func ReadEncrypted(dir, name string) (string, error) {
	text, err := readExisting(dir, name)
	if err != nil {
		return "", err
	}
	if err := encrypted([]byte(text)); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}

// encrypted refuses text that is not one completely encrypted Secret.
func encrypted(text []byte) error {
	documents, err := parse(text)
	if err != nil {
		return fmt.Errorf("it is not YAML: %w", err)
	}
	if len(documents) != 1 || textOf(documents[0], "kind") != "Secret" || field(documents[0], "stringData") == nil {
		return errors.New("it is not the encrypted Secret")
	}
	c := checker{findings: map[resource.Finding]bool{}, plain: map[string]bool{}}
	c.secrets(AuthFile, documents[0], 0)
	for finding := range c.findings {
		return errors.New(finding.Message)
	}
	return nil
}

// privateKey matches keys outside of Secrets, such as a forgotten file.
var privateKey = regexp.MustCompile(`-----BEGIN ([A-Z]+ )*PRIVATE KEY( BLOCK)?-----|AGE-SECRET-KEY-(PQ-)?1[02-9AC-HJ-NP-Z]{20}`)

// sealed matches a value that sops encrypted.
var sealed = regexp.MustCompile(`^ENC\[[A-Z0-9_]+,data:[^\]]*,iv:[^\]]+,tag:[^\]]+,type:[a-z]+\]$`)

// keys finds private keys in files of any kind.
func (c *checker) keys(name string, content []byte) {
	// Most files have neither word, and searching for words is much faster.
	if (bytes.Contains(content, []byte("PRIVATE KEY")) || bytes.Contains(content, []byte("AGE-SECRET-KEY-"))) && privateKey.Match(content) {
		c.find("PlainTextKey", name, "it has a private key in plain text: take it out of the tree and its history, and make a new one")
	}
}

// secrets finds Secrets that are not completely encrypted. Encrypting some values only does
// not count, nor does a file without the MAC that sops adds.
func (c *checker) secrets(name string, node *yaml.Node, depth int) {
	if items := field(node, "items"); items != nil && depth < maxPathDepth*4 {
		for _, item := range items.Content {
			c.secrets(name, item, depth+1)
		}
	}
	if textOf(node, "kind") != "Secret" {
		return
	}
	if textOf(node, "apiVersion") != "v1" && textOf(node, "apiVersion") != "" {
		return
	}
	values := 0
	for _, part := range []string{"data", "stringData"} {
		content := field(node, part)
		if content == nil {
			continue
		}
		count, plain := plainText(content, 0)
		values += count
		if plain {
			c.plain[name] = true
			c.find("PlainTextSecret", name, "a Secret in plain text: encrypt it with sops, or keep it out of the tree")
			return
		}
	}
	if mac := field(node, "sops"); values > 0 && (mac == nil || !sealed.MatchString(textOf(mac, "mac"))) {
		c.find("PlainTextSecret", name, "a Secret without the sum of sops, so anybody can exchange its values: encrypt it with sops")
	}
}

// isKubeconfig reports whether a document is the configuration of kubectl, which is not an object.
func isKubeconfig(document *yaml.Node) bool {
	return textOf(document, "kind") == "Config" && textOf(document, "apiVersion") == "v1"
}

// kubeconfig finds logins in the configuration of kubectl, including one in a ConfigMap.
func (c *checker) kubeconfig(name string, document *yaml.Node) {
	if data := field(document, "data"); data != nil && textOf(document, "kind") == "ConfigMap" {
		for _, value := range data.Content {
			if inner, err := parse([]byte(value.Value)); err == nil && strings.Contains(value.Value, "Config") {
				for _, document := range inner {
					c.kubeconfig(name, document)
				}
			}
		}
	}
	users := field(document, "users")
	if !isKubeconfig(document) || users == nil {
		return
	}
	for _, entry := range users.Content {
		user := field(entry, "user")
		if user == nil {
			continue
		}
		logins := []*yaml.Node{user}
		if provider := field(user, "auth-provider"); provider != nil && field(provider, "config") != nil {
			logins = append(logins, field(provider, "config"))
		}
		for _, login := range logins {
			for _, secret := range []string{"token", "password", "client-key-data", "access-token", "id-token", "refresh-token", "client-secret"} {
				if value := textOf(login, secret); value != "" && !sealed.MatchString(value) {
					c.find("PlainTextKey", name, "it is a kubeconfig with the %s of %s in plain text: take it out of the tree and its history, and "+
						"make a new one", secret, cmp.Or(textOf(entry, "name"), "a user"))
				}
			}
		}
	}
}

// plainText counts the values below a node, and reports whether one is not encrypted.
func plainText(node *yaml.Node, depth int) (values int, plain bool) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if depth > 8 {
		return 1, true
	}
	switch {
	case node.Kind == yaml.MappingNode:
		for i := 1; i < len(node.Content); i += 2 {
			count, found := plainText(node.Content[i], depth+1)
			values, plain = values+count, plain || found
			if node.Content[i-1].Value == "<<" {
				plain = true // a merged mapping is not what sops writes
			}
		}
		return values, plain
	case node.Kind == yaml.SequenceNode:
		for _, entry := range node.Content {
			count, found := plainText(entry, depth+1)
			values, plain = values+count, plain || found
		}
		return values, plain
	case node.Value == "" || node.Tag == "!!null":
		return 0, false
	}
	return 1, !sealed.MatchString(node.Value)
}

// generated finds Secrets that a kustomization generates from unencrypted data.
func (c *checker) generated(file, folder string, k types.Kustomization) {
	for _, generator := range k.SecretGenerator {
		plain := len(generator.LiteralSources) > 0
		for _, name := range references(types.Kustomization{SecretGenerator: []types.SecretArgs{generator}}) {
			source := path.Join(folder, name)
			plain = plain || c.bad[source] || !sealedFile(c.files[source])
		}
		if plain {
			c.plain[generator.Name] = true
			c.find("PlainTextSecret", file, "secretGenerator makes a Secret in plain text: encrypt its files with sops, or keep them "+
				"out of the tree")
		}
	}
}

// sealedFile reports whether sops encrypted a file completely: every value, with a MAC.
func sealedFile(content []byte) bool {
	documents, err := parse(content)
	if err != nil || len(documents) == 0 || documents[0].Kind != yaml.MappingNode {
		return sealedLines(string(content))
	}
	for _, document := range documents {
		mac := field(document, "sops")
		if document.Kind != yaml.MappingNode || mac == nil || !sealed.MatchString(textOf(mac, "mac")) {
			return false
		}
		for i := 0; i+1 < len(document.Content); i += 2 {
			if _, plain := plainText(document.Content[i+1], 0); plain && document.Content[i].Value != "sops" {
				return false
			}
		}
	}
	return true
}

// sealedLines is sealedFile for the formats dotenv and INI.
func sealedLines(text string) bool {
	section, sum := "", false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if line[0] == '[' {
			section = line
			continue
		}
		key, value, pair := strings.Cut(line, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		sum = sum || (key == "sops_mac" || section == "[sops]" && key == "mac") && sealed.MatchString(value)
		if !pair || value != "" && !sealed.MatchString(value) && section != "[sops]" && !strings.HasPrefix(key, "sops_") {
			return false
		}
	}
	return sum
}

// opened finds Secrets that are in plain text after the build, although no file contains
// them: a patch can add a value, or turn another object into a Secret.
func (c *checker) opened(folder string, objects []*unstructured.Unstructured) {
	for _, o := range objects {
		if o.GetKind() != "Secret" || o.GroupVersionKind().Group != "" || c.known(o.GetName()) {
			continue
		}
		for _, part := range []string{"data", "stringData"} {
			values, _ := o.Object[part].(map[string]any)
			for key, value := range values {
				if !concealed(key, value) {
					c.find("PlainTextSecret", c.at(folder), "%s: what it builds is a Secret in plain text: encrypt the value %s with sops in the file "+
						"of the Secret", identity(o), key)
				}
			}
		}
	}
}

// known reports whether a Secret with the name was already found.
func (c *checker) known(name string) bool {
	for generated := range c.plain {
		if name == generated || strings.HasPrefix(name, generated+"-") {
			return true
		}
	}
	return slices.ContainsFunc(c.places["Secret "+name], func(file string) bool { return c.plain[file] })
}

// concealed reports whether a value of a built Secret is encrypted, or generated from
// encrypted data.
func concealed(key string, value any) bool {
	text, ok := value.(string)
	if !ok || text == "" || sealed.MatchString(text) {
		return value == nil || ok
	}
	content, err := base64.StdEncoding.DecodeString(text)
	return err == nil && (len(content) == 0 || sealed.Match(content) || sealedFile(content) || strings.HasPrefix(key, "sops_"))
}
