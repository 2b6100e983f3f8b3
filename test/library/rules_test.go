//go:build e2e

package library

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/stretchr/testify/require"
)

// Each test here compiles a template once for each of its rules. Nothing in that runs at once, so
// these tests do without the race detector, which takes ten times as long.

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
			for n := 0; ; n++ {
				removed := ""
				by := slices.IndexFunc(users, func(s template) bool {
					modules := s.parse(t)
					at := slices.IndexFunc(modules, func(module *ast.Module) bool { return module.Package.String() == library })
					removed = remove(modules[at], n)
					return removed != "" && noticed(t, modules, s.cases(t))
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

// Every rule, and every "else" of one, is taken out on its own.
func TestEveryRuleOfTheTemplateIsNeeded(t *testing.T) {
	text := source(t, "verified-images")
	cases := scenarios()
	slices.SortFunc(cases, func(a, b scenario) int { return strings.Compare(a.name, b.name) })
	for n := 0; ; n++ {
		module, err := ast.ParseModuleWithOpts("template.rego", text, ast.ParserOptions{RegoVersion: ast.RegoV1})
		require.NoError(t, err)
		removed := remove(module, n)
		if removed == "" {
			require.Greater(t, n, 20, "the template has more rules than that")
			return
		}
		query, err := compile(t.Context(), rego.ParsedModule(module))
		if err != nil {
			t.Logf("does not compile without %s: %v", removed, err)
			continue
		}
		noticed := slices.ContainsFunc(cases, func(s scenario) bool {
			messages, asked, err := review(t.Context(), query, s.input, s.answer)
			return s.failure(messages, asked, err) != nil
		})
		if strings.HasSuffix(removed, "messages := []") { // it saves time, and must change nothing
			require.False(t, noticed, "something fails without %s", removed)
			continue
		}
		require.True(t, noticed, "nothing fails without %s", removed)
	}
}

// remove takes the nth rule out of a module, counting each "else" as one, and
// returns where it stood, or nothing if there are fewer.
func remove(module *ast.Module, n int) string {
	for i := range module.Rules {
		for at := &module.Rules[i]; *at != nil; at = &(*at).Else {
			if n--; n >= 0 {
				continue
			}
			removed := *at
			if *at = removed.Else; *at == nil && at == &module.Rules[i] {
				module.Rules = slices.Delete(module.Rules, i, i+1)
			}
			return fmt.Sprintf("line %d: %s", removed.Location.Row, removed.Head)
		}
	}
	return ""
}

// Every rule, and every "else" of one, is taken out on its own.
func TestEveryRuleAboutArtifactsIsNeeded(t *testing.T) {
	cases := artifactScenarios()
	slices.SortFunc(cases, func(a, b scenario) int { return strings.Compare(a.name, b.name) })
	for n := 0; ; n++ {
		modules := artifactModules(t)
		removed := remove(modules[0], n)
		if removed == "" {
			require.Greater(t, n, 15, "the template has more rules than that")
			return
		}
		query, err := prepareArtifacts(t.Context(), modules)
		if err != nil {
			t.Logf("does not compile without %s: %v", removed, err)
			continue
		}
		noticed := slices.ContainsFunc(cases, func(s scenario) bool {
			messages, asked, err := review(t.Context(), query, s.input, s.answer)
			return s.failure(messages, asked, err) != nil
		})
		require.True(t, noticed, "nothing fails without %s", removed)
	}
}
