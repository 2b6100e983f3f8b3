package scaffold

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Limits on what is checked. A repository is read before anybody has looked at it: a pull
// request's is a stranger's.
const (
	maxFiles     = 20_000
	maxFileBytes = 4 << 20   // the files of flux bootstrap are below 1 MiB
	maxTreeBytes = 128 << 20 // in memory in total
	maxPathDepth = 32
	maxNodes     = 1_000_000 // of one file, with every alias expanded
	maxBuilt     = 10_000    // objects of one build, counted as often as they are included: kustomize takes minutes
	maxBuilds    = 30_000    // as above, of all builds
	maxReplaced  = 64 << 20  // all builds after the replacement of variables
)

// checker collects findings about one tree.
type checker struct {
	files     map[string][]byte
	memory    *memory                  // the same files, for kustomize
	whole     map[string][]byte        // the files of the tree, if Flux does not get all of them
	ignored   map[string]ignorePattern // files that Flux does not get
	spec      string                   // spec.ignore of the files' source
	ignores   map[string]string        // spec.ignore of the platform's source, by file
	bad       map[string]bool          // files that must not be parsed
	findings  map[resource.Finding]bool
	places    map[string][]string // files by kind and name of the objects in them
	plain     map[string]bool     // files with a Secret in plain text, and names of Secrets that are generated from some
	virtual   map[string]bool     // kustomizations that Flux would generate
	builds    map[string]*built
	counts    map[string]int  // objects in files
	read      int             // objects that builds have read
	replaced  int             // bytes after the replacement of variables
	maxBuilt  int             // the limit with that name
	reached   map[string]bool // files that a kustomization names
	patched   map[string]bool // those of them that are patches
	instances []instance
	settings  *Platform // nil without a SettingsFile
	options   CheckOptions
	defined   map[string]bool // groups and kinds that the tree has a CRD of
	scheme    *runtime.Scheme // kinds of Kubernetes
	flavours  map[string]struct{ known, required []string }

	// changed are folders as transformed by Kustomizations of Flux, by transformation.
	changed map[string]map[string]*built
}

// find adds an error, once.
func (c *checker) find(id, file, format string, args ...any) {
	c.report(resource.Error, id, file, format, args...)
}

// report adds a finding, once.
func (c *checker) report(severity resource.Severity, id, file, format string, args ...any) {
	c.findings[resource.Finding{ID: id, Severity: severity, File: file, Message: fmt.Sprintf(format, args...)}] = true
}

// load reads the whole tree into memory, so that later steps do not touch a disk.
func (c *checker) load(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("%w; give the folder that landwaiter platform init wrote", err)
	}
	defer func() { _ = root.Close() }() // nothing was written
	count, total := 0, int64(0)
	return fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("read the tree: %w", err)
		case entry.IsDir() && entry.Name() == ".git":
			return fs.SkipDir
		case strings.Count(name, "/") > maxPathDepth:
			c.find("TooLarge", name, "it is more than %d folders deep and is not checked", maxPathDepth)
			return fs.SkipDir
		case entry.IsDir():
			return nil
		case entry.Type()&fs.ModeSymlink != 0:
			c.find("NotARegularFile", name, "it is a symbolic link, which Flux does not follow: replace it by a file, or by a resource of "+
				"a kustomization")
			return nil
		case !entry.Type().IsRegular():
			c.find("NotARegularFile", name, "it is no regular file: remove it")
			return nil
		}
		if count++; count > maxFiles {
			return fmt.Errorf("the tree has more than %d files: name the folder of the platform's repository", maxFiles)
		}
		info, err := entry.Info()
		if err != nil {
			return fmt.Errorf("look at %s: %w", name, err)
		}
		if info.Size() > maxFileBytes {
			c.find("TooLarge", name, "it has more than %d MiB and is not checked: keep it elsewhere", maxFileBytes>>20)
			return nil
		}
		if total += info.Size(); total > maxTreeBytes {
			return fmt.Errorf("the tree has more than %d MiB: name the folder of the platform's repository", maxTreeBytes>>20)
		}
		content, err := root.ReadFile(name)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		c.keep(name, string(content))
		return nil
	})
}

// manifest reports whether kustomize reads a file as objects.
func manifest(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}

// parse returns the documents of a file.
func parse(content []byte) ([]*yaml.Node, error) {
	var documents []*yaml.Node
	for decoder := yaml.NewDecoder(bytes.NewReader(content)); ; {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, err
		}
		if len(document.Content) == 1 {
			documents = append(documents, document.Content[0])
		}
	}
}

// inspect checks each file individually, even if no kustomization names it: syntax, size with
// all aliases, and Secrets.
func (c *checker) inspect() {
	for name, content := range c.files {
		c.keys(name, content)
		documents, err := parse(content)
		if err != nil {
			if !manifest(name) {
				continue // kustomize refuses it as a resource, and takes it as the file of a ConfigMap
			}
			c.bad[name] = true
			c.find("NotYAML", name, "it is not YAML: %v", err)
			continue
		}
		c.counts[name] = len(documents)
		sizes := map[*yaml.Node]int{}
		for _, document := range documents {
			if expanded(document, sizes, 0) > maxNodes {
				c.bad[name] = true
				c.find("TooLarge", name, "it has more than %d values once its aliases are expanded: write it without them", maxNodes)
				break
			}
			switch textOf(document, "kind") {
			case "FluxInstance":
				c.instance(name, document)
			case "CustomResourceDefinition":
				c.defined[textAt(document, "spec", "group")+" "+textAt(document, "spec", "names", "kind")] = true
			}
			if strings.HasPrefix(textOf(document, "kind"), "ENC[") {
				c.find("NotApplicable", name, "its apiVersion and kind are encrypted too, so nothing can apply it: decrypt it, and encrypt it with "+
					"sops and the rules of .sops.yaml, which encrypt data and stringData alone")
			}
			if ofHelmOperator(document) {
				c.find("ObjectInvalid", name, "%s", helmOperator(name, document))
			}
			if ignore := specIgnore(document); ignore != "" {
				c.ignores[name] = ignore
			}
			c.secrets(name, document, 0)
			c.kubeconfig(name, document)
			if metadata := field(document, "metadata"); metadata != nil {
				id := textOf(document, "kind") + " " + textOf(metadata, "name")
				if !slices.Contains(c.places[id], name) {
					c.places[id] = append(c.places[id], name)
				}
			}
		}
	}
}

// expanded counts the nodes below a node, those of an alias as often as it is used. It stops
// at the limit, so its time depends on the length of the text only.
func expanded(node *yaml.Node, sizes map[*yaml.Node]int, depth int) int {
	if depth > maxPathDepth*4 {
		return maxNodes + 1
	}
	if size, known := sizes[node]; known {
		return size
	}
	sizes[node] = maxNodes + 1 // an alias within its own anchor
	size := 1
	if node.Kind == yaml.AliasNode {
		size = expanded(node.Alias, sizes, depth+1)
	}
	for _, child := range node.Content {
		size = min(size+expanded(child, sizes, depth+1), maxNodes+1)
	}
	sizes[node] = size
	return size
}

// field returns the value of a key of a mapping, including merged ones, nil if there is none.
func field(node *yaml.Node, key string) *yaml.Node {
	return lookup(node, key, map[*yaml.Node]bool{})
}

// lookup looks into each mapping once, however often and deeply it is merged.
func lookup(node *yaml.Node, key string, seen map[*yaml.Node]bool) *yaml.Node {
	node = target(node)
	if seen[node] || node.Kind != yaml.MappingNode {
		return nil
	}
	seen[node] = true
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return target(node.Content[i+1])
		}
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value != "<<" {
			continue
		}
		merged := []*yaml.Node{target(node.Content[i+1])}
		if merged[0].Kind == yaml.SequenceNode {
			merged = merged[0].Content
		}
		for _, from := range merged {
			if value := lookup(from, key, seen); value != nil {
				return value
			}
		}
	}
	return nil
}

// target is the node of an alias, or the node itself.
func target(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

func textOf(node *yaml.Node, key string) string {
	if value := field(node, key); value != nil {
		return value.Value
	}
	return ""
}
