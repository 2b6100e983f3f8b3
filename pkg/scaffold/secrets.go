package scaffold

import (
	"bytes"
	"path"
	"regexp"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"
)

// privateKey matches keys that are in no Secret, such as a file that somebody forgot.
var privateKey = regexp.MustCompile(`(?m)-----BEGIN ([A-Z]+ )*PRIVATE KEY-----|^\s*AGE-SECRET-KEY-1[02-9AC-HJ-NP-Z]{20}`)

// sealed matches a value that sops encrypted.
var sealed = regexp.MustCompile(`^ENC\[[A-Z0-9_]+,data:[^\]]*,iv:[^\]]+,tag:[^\]]+,type:[a-z]+\]$`)

// keys finds private keys in files of any kind.
func (c *checker) keys(name string, content []byte) {
	if privateKey.Match(content) {
		c.find(name, "it has a private key in plain text: take it out of the tree and its history, and make a new one")
	}
}

// secrets finds Secrets that are not encrypted as a whole. Encrypting some values only
// does not count, nor does a file without the sum that sops adds.
func (c *checker) secrets(name string, node *yaml.Node, depth int) {
	if items := field(node, "items"); items != nil && depth < 4 {
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
			plain = plain || !bytes.Contains(c.files[path.Join(folder, name)], []byte("ENC[AES256_GCM,data:"))
		}
		if plain {
			c.find(file, "secretGenerator makes a Secret in plain text: encrypt its files with sops, or keep them out of the tree")
		}
	}
}
