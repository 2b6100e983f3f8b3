package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// former returns names that were replaced, as they would stand in code, resources, charts or
// pages.
func former() map[string]*regexp.Regexp {
	made := map[string]*regexp.Regexp{}
	for name, pattern := range map[string]string{
		"scope: Floor":                  `\bscope: Floor\b|PolicyScopeFloor`,
		"floor, of policies":            `(?i)\b(a|the|no|each|every) floors?\b`,
		"floors: true":                  `\bfloors: (true|false)\b`,
		"break-glass-floors":            `break-glass-floors`,
		"home of a Tenant":              `\bspec\.home\b|\bSpec\.Home\b`,
		"verification.decides":          `verification\.decides|verification: \{decides`,
		"people of a Tenant":            `\bspec\.people\b|\bSpec\.People\b|\bpeople: \{`,
		"onDelete":                      `\bonDelete\b|\bOnDelete\b|DeleteMade`,
		"annotation made":               `landwaiter\.dev/made\b`,
		"evidence.only":                 `evidence\.only\b`,
		"proxy.alsoFor":                 `\b[aA]lsoFor\b`,
		"looked, place":                 `looked\[\]`,
		"EndsSoon and others":           `\bEndsSoon\b|\bNeverEnds\b|\bEndUnknown\b|"Ended"`,
		"ClusterRole material":          `material-role|landwaiter-material|FULLNAME-material`,
		"tenantNamespaces, of charts":   `\.tenantNamespaces\b|` + "`tenantNamespaces`",
		"logTrustStoreRef, of Verifier": `\blogTrustStoreRef\b`,
		"PropertyPlace, Place":          `PropertyPlace|properties\.place\b|"place": "|verify\.Places?\b|workload\.Place|#who-reaches-a-place`,
		"label home":                    `landwaiter\\?\.dev/home([^-]|$)`,
	} {
		made[name] = regexp.MustCompile(pattern)
	}
	return made
}

// formerTerms returns terms that were replaced, as they would stand in messages or pages. Many are
// ordinary English in another sense, so a pattern has the words around it.
func formerTerms() map[string]*regexp.Regexp {
	made := map[string]*regexp.Regexp{}
	for name, pattern := range map[string]string{
		"home, for the home namespace": `(?i)\b(in|of|to|from|into|than|besides|its|a|the|Tenant's) home([^-N\s]| [^n])`,
		"account, for a quota owner":   `(?i)\bis one account\b|\baccount'?s? (has no more room|share of)|its account's share|(quotas?|shares?|limits?) of (an|the|each|every|its) account\b|#one-team-is-one-account`,
		"definition, for a CRD":        `\b([Ii]nstall (the|Landwaiter.s)|[Ll]andwaiter.s|(with|after) the) definitions\b|# Definitions (of|,)`,
		"equip, for provision":         `\b[Ee]quip(s|ped)? (the|a|home|namespaces|it)\b|\band equips?\b`,
		"place, for a repository":      `\b(more|other|evidence) places\b|reaches a place\b`,
		"headers of tenant list":       `NAME +HOME +NAMESPACES|"HOME", "NAMESPACES"|"DECIDES"`,
		"member of a Tenant":           `\b(a|each|every|one|all|its|the|of) members?\b|NamespaceMember|(?m:^ *- Member$)|"members": \[|\bmember-(rules|viewers)`,
	} {
		made[name] = regexp.MustCompile(pattern)
	}
	return made
}

// comment is one of Go. What is in strings after "//" is an address.
var comment = regexp.MustCompile(`(?m)(^|\s)// .*$`)

// Whoever reads a former name looks for something that is not there. Tables of old and new names
// and what translates them have them.
func TestFormerNamesAreGone(t *testing.T) {
	tables := []string{"CHANGELOG.md", "docs/upgrade.md", "pkg/lint/renamed.go", "pkg/lint/lint_test.go", "pkg/doctor/renamed.go", "pkg/doctor/renamed_test.go", "test/precedence/vectors_test.go", "test/docs/words_test.go"}
	names, terms := former(), formerTerms()
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		switch {
		case entry.IsDir() && (name == ".git" || name == "bin" || strings.Contains(name, "testdata/fuzz")):
			return filepath.SkipDir
		case entry.IsDir(), slices.Contains(tables, filepath.ToSlash(name)), !slices.Contains([]string{".go", ".md", ".yaml", ".json", ".tpl", ".txt", ".txtar", ".sh"}, filepath.Ext(name)):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for what, pattern := range names {
			if found := pattern.Find(text); found != nil {
				t.Errorf("%s has a former name (%s): %s", name, what, found)
			}
		}
		if filepath.Ext(name) == ".go" {
			text = comment.ReplaceAll(text, nil) // those of resources are in their CRDs
		}
		for what, pattern := range terms {
			if found := pattern.Find(text); found != nil {
				t.Errorf("%s has a former term (%s): %s", name, what, found)
			}
		}
		return nil
	}))
}
