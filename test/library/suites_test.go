package library

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
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
	for _, s := range allTemplates(t) {
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
				require.True(t, noticed(t, modules, cases), "no case of the suite fails without %s", removed)
			}
		})
	}
}

// A rule of a library is needed if the suite of some template that has it fails without it.
func TestEveryRuleOfTheLibrariesIsNoticedByASuite(t *testing.T) {
	having := map[string][]template{} // by the package of the library
	for _, s := range templates(t) {
		for _, module := range s.parse(t)[1:] {
			having[module.Package.String()] = append(having[module.Package.String()], s)
		}
	}
	require.NotEmpty(t, having)
	for library, users := range having {
		t.Run(library, func(t *testing.T) {
			t.Parallel()
			suites := map[string][]testCase{}
			for _, s := range users {
				suites[s.folder] = s.cases(t)
			}
			for n := 0; ; n++ {
				removed := ""
				by := slices.IndexFunc(users, func(s template) bool {
					modules := s.parse(t)
					at := slices.IndexFunc(modules, func(module *ast.Module) bool { return module.Package.String() == library })
					removed = remove(modules[at], n)
					return removed != "" && noticed(t, modules, suites[s.folder])
				})
				if removed == "" {
					require.Positive(t, n)
					return
				}
				require.GreaterOrEqual(t, by, 0, "no suite fails without %s", removed)
				users[0], users[by] = users[by], users[0] // it will likely notice the next one, too
			}
		})
	}
}

// noticed says whether a case fails with the modules, or whether they do not even compile.
func noticed(t *testing.T, modules []*ast.Module, cases []testCase) bool {
	t.Helper()
	e, err := newEvaluator(modules)
	return err != nil || slices.ContainsFunc(cases, func(c testCase) bool { return c.failure(t.Context(), e) != nil })
}
