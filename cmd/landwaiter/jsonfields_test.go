package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/generated"
)

// promised has every field of the JSON that commands print, a line each.
const promised = "testdata/jsonfields.list"

// jsonFields returns the fields of the types that commands print as JSON.
func jsonFields(t *testing.T) []string {
	t.Helper()
	var fields []string
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(node ast.Node) bool {
			spec, ok := node.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if shape := structOf(t, file, spec); shape != nil && strings.HasPrefix(spec.Name.Name, "printed") {
				for _, field := range shape.Fields.List {
					if field.Tag == nil {
						continue
					}
					tag, err := strconv.Unquote(field.Tag.Value)
					require.NoError(t, err)
					key, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
					if key == "-" {
						continue // it is not printed
					}
					fields = append(fields, fmt.Sprintf("%s.%s", spec.Name.Name, key))
				}
			}
			return true
		})
	}
	slices.Sort(fields)
	require.Greater(t, len(fields), 100)
	return fields
}

// structOf returns the fields of a type, which may be another room's.
func structOf(t *testing.T, file *ast.File, spec *ast.TypeSpec) *ast.StructType {
	t.Helper()
	name, ok := spec.Type.(*ast.SelectorExpr)
	if !ok {
		shape, _ := spec.Type.(*ast.StructType)
		return shape
	}
	for _, imported := range file.Imports {
		folder, ours := strings.CutPrefix(strings.Trim(imported.Path.Value, `"`), "github.com/landwaiter/landwaiter/")
		if !ours || filepath.Base(folder) != fmt.Sprint(name.X) {
			continue
		}
		names, err := filepath.Glob(filepath.Join("../..", folder, "*.go"))
		require.NoError(t, err)
		for _, other := range names {
			parsed, err := parser.ParseFile(token.NewFileSet(), other, nil, 0)
			require.NoError(t, err)
			if found := parsed.Scope.Lookup(name.Sel.Name); found != nil {
				shape, _ := found.Decl.(*ast.TypeSpec).Type.(*ast.StructType)
				return shape
			}
		}
	}
	return nil
}

// docs/reference/api-promise.md says that fields may be added, and never renamed or removed. What is in the
// file was printed once; make generate adds what is new and takes nothing away.
func TestNoFieldOfJSONIsRenamedOrRemovedAndTheListIsUpToDate(t *testing.T) {
	text, err := os.ReadFile(promised)
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	now := jsonFields(t)
	for _, field := range strings.Fields(string(text)) {
		require.Contains(t, now, field, "%s has a field that is gone: the promise forbids that within a version of the API; before the first release, "+
			"delete the line", promised)
	}
	require.NoError(t, generated.Check(promised, "", "", strings.Join(slices.Compact(now), "\n")+"\n"))
}
