package lint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/pkg/lint"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/service"
)

// within returns what holds a field of an object, and the last step to it.
func within(t *testing.T, object map[string]any, field string) (map[string]any, string) {
	t.Helper()
	steps := strings.FieldsFunc(field, func(r rune) bool { return strings.ContainsRune(".[]", r) })
	var at any = object
	for _, step := range steps[:len(steps)-1] {
		switch node := at.(type) {
		case map[string]any:
			at = node[step]
		case []any:
			i, err := strconv.Atoi(step)
			require.NoError(t, err, field)
			at = node[i]
		}
	}
	parent, ok := at.(map[string]any)
	require.True(t, ok, field)
	return parent, steps[len(steps)-1]
}

var (
	renames = regexp.MustCompile(`^it is called (\S+) now(?:, and (\S+) is (\S+))?$`)
	sets    = regexp.MustCompile(`^set (\w+): (\w+)`)
)

// follow does to an object what a finding says. It reports whether that is about an earlier version.
func follow(t *testing.T, object map[string]any, f lint.Finding) bool {
	t.Helper()
	parent, name := within(t, object, f.Field)
	renamed, set := renames.FindStringSubmatch(f.Fix), sets.FindStringSubmatch(f.Fix)
	switch {
	case f.Field == "apiVersion":
		parent[name] = strings.TrimPrefix(f.Fix, "write apiVersion: ")
	case renamed != nil && strings.HasPrefix(f.Message, `"`):
		parent[name] = renamed[1]
	case renamed != nil:
		value := parent[name]
		if renamed[2] != "" {
			require.Equal(t, renamed[2], value)
			value = renamed[3]
		}
		delete(parent, name)
		steps := strings.Split(renamed[1], ".")
		for _, step := range steps[:len(steps)-1] {
			if parent[step] == nil {
				parent[step] = map[string]any{}
			}
			parent, _ = parent[step].(map[string]any)
		}
		parent[steps[len(steps)-1]] = value
	case strings.HasPrefix(f.Fix, "remove it, "):
		delete(parent, name)
	case set != nil && f.Severity == lint.Warning:
		whole, ok := parent[name].(map[string]any)
		require.True(t, ok, f.Field)
		whole[set[1]] = map[string]any{"true": true}[set[2]]
		if whole[set[1]] == nil {
			whole[set[1]] = set[2]
		}
	default:
		return false
	}
	return true
}

// The files are those that the repository had when it had v1alpha1: its samples, and the
// examples of its page on resources.
func TestAFileOfAnEarlierVersionIsRightOnceTheFixesAreApplied(t *testing.T) {
	files, err := filepath.Glob("testdata/v1alpha1/*.yaml")
	require.NoError(t, err)
	require.Len(t, files, 5)
	followed := 0
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			report, err := lint.Check(t.Context(), []string{name}, nil, service.Check)
			require.NoError(t, err)
			objects := map[string]map[string]any{}
			for _, document := range regexp.MustCompile(`(?m)^---\n`).Split(string(text), -1) {
				var object map[string]any
				require.NoError(t, yaml.Unmarshal([]byte(document), &object))
				metadata, _ := object["metadata"].(map[string]any)
				objects[fmt.Sprint(object["kind"], metadata["namespace"], metadata["name"])] = object
			}
			require.Equal(t, strings.Count(string(text), "apiVersion: landwaiter.dev/v1alpha1"), report.Resources, "resources that were checked")
			for _, f := range report.Findings {
				require.True(t, f.Fix != "" || f.Reason == policy.ReasonExpired || f.Reason == policy.ReasonUnused, "nothing says what to do about %v", f)
				var namespace any
				if f.Resource.Namespace != "" {
					namespace = f.Resource.Namespace
				}
				object := objects[fmt.Sprint(f.Resource.Kind, namespace, f.Resource.Name)]
				require.NotNil(t, object, "%v", f)
				if f.Field != "" && follow(t, object, f) {
					followed++
					continue
				}
				require.Equal(t, lint.Warning, f.Severity, "%v", f)
			}
			var mended []string
			for _, object := range objects {
				document, err := yaml.Marshal(object)
				require.NoError(t, err)
				mended = append(mended, string(document))
			}
			now, err := lint.Check(t.Context(), []string{"-"}, strings.NewReader(strings.Join(mended, "---\n")), service.Check)
			require.NoError(t, err)
			require.Zero(t, now.Count(lint.Error), "%v", now.Findings)
			require.Equal(t, report.Resources, now.Resources)
			if filepath.Base(name) != "resources.yaml" { // which names Secrets
				require.Empty(t, slices.DeleteFunc(now.Findings, func(f lint.Finding) bool { return f.Reason == policy.ReasonExpired }), "time passes")
			}
		})
	}
	require.Greater(t, followed, 50)
}
