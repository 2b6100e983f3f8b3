package library

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// failure says what is wrong with the outcome of a case.
func (c testCase) failure(ctx context.Context, e evaluator) error {
	messages, err := e.messages(ctx, c.parsed, c.inventory)
	if err != nil {
		return err
	}
	for _, a := range c.assertions {
		if !a.holds(messages) {
			return fmt.Errorf("%s: %q are not %v of %q", c.name, messages, a.Violations, a.Message)
		}
	}
	return nil
}

func TestEverySuitePassesWithoutGator(t *testing.T) {
	for _, s := range templates(t) {
		t.Run(s.folder, func(t *testing.T) {
			t.Parallel()
			e := s.evaluator(t)
			for _, c := range s.cases(t) {
				require.NotEmpty(t, c.assertions, c.name)
				require.NoError(t, c.failure(t.Context(), e))
			}
		})
	}
}

func TestEveryTemplateIsDocumentedAndCanBeTriedWithoutDenying(t *testing.T) {
	for _, s := range allTemplates(t) {
		t.Run(s.folder, func(t *testing.T) {
			readme, err := os.ReadFile(filepath.Join(root, s.folder, "README.md"))
			require.NoError(t, err)
			for name := range s.parameters {
				require.Contains(t, string(readme), "\n| `"+name+"` | ", "the table of parameters")
			}
			for _, link := range regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`).FindAllStringSubmatch(string(readme), -1) {
				require.FileExists(t, filepath.Join(root, s.folder, link[1]))
			}
			list, err := os.ReadFile(filepath.Join(root, "README.md"))
			require.NoError(t, err)
			require.Contains(t, string(list), "\n| ["+s.folder+"]("+s.folder+"/README.md) | ")
			var all struct{ Resources []string }
			load(t, filepath.Join(root, "kustomization.yaml"), &all)
			require.Contains(t, all.Resources, s.folder+"/template.yaml")
			samples, err := filepath.Glob(filepath.Join(root, s.folder, "samples/constraint*.yaml"))
			require.NoError(t, err)
			require.True(t, slices.ContainsFunc(samples, func(name string) bool {
				var constraint struct {
					Kind string
					Spec struct{ EnforcementAction string }
				}
				load(t, name, &constraint)
				return constraint.Kind == s.kind && constraint.Spec.EnforcementAction == "dryrun"
			}), "no sample has enforcementAction: dryrun")
		})
	}
}
