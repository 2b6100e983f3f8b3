package configdir

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// files maps paths to content.
type files map[string]string

func writeTree(t *testing.T, tree files) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range tree {
		writeFile(t, dir, name, content)
	}
	return dir
}

// writeFile replaces a file atomically.
func writeFile(t *testing.T, dir, name, content string) {
	t.Helper()
	target := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(target), 0o750))
	temporary := filepath.Join(filepath.Dir(target), ".new-"+filepath.Base(name))
	require.NoError(t, os.WriteFile(temporary, []byte(content), 0o600))
	require.NoError(t, os.Rename(temporary, target))
}

func link(t *testing.T, dir, name, target string) {
	t.Helper()
	require.NoError(t, os.Symlink(target, filepath.Join(dir, name)))
}

func verifier(namespace, name string) string {
	return fmt.Sprintf("apiVersion: landwaiter.dev/v1beta1\nkind: Verifier\nmetadata: {name: %s, namespace: %s}\n"+
		"spec: {type: Cosign, cosign: {keys: {trustStoreRefs: [{name: keys}], insecureIgnoreTransparencyLog: true}}}\n", name, namespace)
}

func mistyped(namespace, name string) string {
	return strings.Replace(verifier(namespace, name), "keys: {", "kees: {", 1)
}

const garbage = "kind: [unclosed\n"

// names lists the objects of o; broken ones have the prefix "broken".
func names(o resource.Objects) []string {
	list := []string{}
	for _, object := range o.Resources {
		list = append(list, resource.RefOf(object).String())
	}
	for _, n := range o.Namespaces {
		list = append(list, "Namespace "+n.Name)
	}
	for _, s := range o.Secrets {
		list = append(list, "Secret "+s.Namespace+"/"+s.Name)
	}
	for _, c := range o.ConfigMaps {
		list = append(list, "ConfigMap "+c.Namespace+"/"+c.Name)
	}
	for _, b := range o.Broken {
		list = append(list, "broken "+b.Source.String())
	}
	slices.Sort(list)
	return list
}

func reasons(problems []resource.Problem) []string {
	list := []string{}
	for _, p := range problems {
		list = append(list, string(p.Reason)+" "+p.Source.String())
	}
	slices.Sort(list)
	return list
}

func source(kind, namespace, name string) policy.ObjectRef {
	return policy.ObjectRef{Kind: kind, Namespace: namespace, Name: name}
}
