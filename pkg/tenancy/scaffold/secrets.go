package scaffold

import (
	"bytes"
	"encoding/base64"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/types"
)

// privateKey matches keys that are in no Secret, such as a file that somebody forgot.
var privateKey = regexp.MustCompile(`-----BEGIN ([A-Z]+ )*PRIVATE KEY( BLOCK)?-----|AGE-SECRET-KEY-(PQ-)?1[02-9AC-HJ-NP-Z]{20}`)

// sealed matches a value that sops encrypted.
var sealed = regexp.MustCompile(`^ENC\[[A-Z0-9_]+,data:[^\]]*,iv:[^\]]+,tag:[^\]]+,type:[a-z]+\]$`)

// keys finds private keys in files of any kind.
func (c *checker) keys(name string, content []byte) {
	// Most files have neither word, and looking for words is much faster.
	if (bytes.Contains(content, []byte("PRIVATE KEY")) || bytes.Contains(content, []byte("AGE-SECRET-KEY-"))) && privateKey.Match(content) {
		c.find(name, "it has a private key in plain text: take it out of the tree and its history, and make a new one")
	}
}

// secrets finds Secrets that are not encrypted as a whole. Encrypting some values only
// does not count, nor does a file without the sum that sops adds.
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
			c.find(name, "a Secret in plain text: encrypt it with sops, or keep it out of the tree")
			return
		}
	}
	if mac := field(node, "sops"); values > 0 && (mac == nil || !sealed.MatchString(textOf(mac, "mac"))) {
		c.find(name, "a Secret without the sum of sops, so anybody can exchange its values: encrypt it with sops")
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

// generated finds Secrets that a kustomization makes from what is not encrypted.
func (c *checker) generated(file, folder string, k types.Kustomization) {
	for _, generator := range k.SecretGenerator {
		plain := len(generator.LiteralSources) > 0
		for _, name := range references(types.Kustomization{SecretGenerator: []types.SecretArgs{generator}}) {
			source := path.Join(folder, name)
			plain = plain || c.bad[source] || !sealedFile(c.files[source])
		}
		if plain {
			c.plain[generator.Name] = true
			c.find(file, "secretGenerator makes a Secret in plain text: encrypt its files with sops, or keep them out of the tree")
		}
	}
}

// sealedFile reports whether sops encrypted a file as a whole: every value, and a sum over them.
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

// sealedLines does the same for the formats dotenv and INI.
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

// opened finds Secrets that are in plain text once they are built, although no file says
// so: a patch can add a value, or make a Secret of something else.
func (c *checker) opened(folder string, objects []*unstructured.Unstructured) {
	for _, o := range objects {
		if o.GetKind() != "Secret" || o.GroupVersionKind().Group != "" || c.known(o.GetName()) {
			continue
		}
		for _, part := range []string{"data", "stringData"} {
			values, _ := o.Object[part].(map[string]any)
			for key, value := range values {
				if !concealed(key, value) {
					c.find(c.at(folder), "%s: what it builds is a Secret in plain text: encrypt the value %s with sops in the file of the Secret", identity(o), key)
				}
			}
		}
	}
}

// known reports whether a Secret of the name was found before.
func (c *checker) known(name string) bool {
	for generated := range c.plain {
		if name == generated || strings.HasPrefix(name, generated+"-") {
			return true
		}
	}
	return slices.ContainsFunc(c.places["Secret "+name], func(file string) bool { return c.plain[file] })
}

// concealed reports whether a value of a built Secret is encrypted, or generated from
// what is.
func concealed(key string, value any) bool {
	text, ok := value.(string)
	if !ok || text == "" || sealed.MatchString(text) {
		return value == nil || ok
	}
	content, err := base64.StdEncoding.DecodeString(text)
	return err == nil && (len(content) == 0 || sealed.Match(content) || sealedFile(content) || strings.HasPrefix(key, "sops_"))
}
