package library

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/stretchr/testify/require"
)

// failure says what is wrong with the outcome of a case.
func (c testCase) failure(ctx context.Context, e evaluator) error {
	messages, err := e.messages(ctx, c.input, c.inventory)
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
			e, err := newEvaluator(s.parse(t))
			require.NoError(t, err)
			for _, c := range s.cases(t) {
				require.NotEmpty(t, c.assertions, c.name)
				require.NoError(t, c.failure(t.Context(), e))
			}
		})
	}
}

func TestEveryTemplateIsDocumentedAndCanBeTriedWithoutDenying(t *testing.T) {
	for _, s := range templates(t) {
		t.Run(s.folder, func(t *testing.T) {
			readme, err := os.ReadFile(filepath.Join(root, s.folder, "README.md"))
			require.NoError(t, err)
			for name := range s.parameters {
				require.Contains(t, string(readme), "\n| `"+name+"` | ", "the table of parameters")
			}
			list, err := os.ReadFile(filepath.Join(root, "README.md"))
			require.NoError(t, err)
			require.Contains(t, string(list), "\n| ["+s.folder+"]("+s.folder+"/README.md) | ")
			var all struct{ Resources []string }
			load(t, filepath.Join(root, "kustomization.yaml"), &all)
			require.Contains(t, all.Resources, s.folder+"/template.yaml")
			var constraint struct {
				Kind string
				Spec struct{ EnforcementAction string }
			}
			load(t, filepath.Join(root, s.folder, "samples/constraint.yaml"), &constraint)
			require.Equal(t, s.kind, constraint.Kind)
			require.Equal(t, "dryrun", constraint.Spec.EnforcementAction)
		})
	}
}

// Every rule of a template, and every "else" of one, is taken out on its own.
func TestEveryRuleOfEveryTemplateIsNoticedByItsSuite(t *testing.T) {
	for _, s := range templates(t) {
		t.Run(s.folder, func(t *testing.T) {
			t.Parallel()
			cases := s.cases(t)
			for n := 0; ; n++ {
				modules := s.parse(t)
				removed := remove(modules[0], n)
				if removed == "" {
					require.Positive(t, n)
					return
				}
				noticed(t, modules, cases, removed)
			}
		})
	}
}

// A rule of a library is needed if the suite of some template that uses it fails without it.
func noticed(t *testing.T, modules []*ast.Module, cases []testCase, removed string) {
	t.Helper()
	e, err := newEvaluator(modules)
	if err != nil {
		t.Logf("does not compile without %s: %v", removed, err)
		return
	}
	for _, c := range cases {
		if c.failure(t.Context(), e) != nil {
			return
		}
	}
	t.Errorf("no case of the suite fails without %s", removed)
}
