package docs

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/lint"
)

// former returns names that were replaced, as they would stand in code, resources, charts or
// pages.
func former(crds string) map[string]*regexp.Regexp {
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
		"fence of the operator":         `operator-fence|NoFence|no-fence|--fence|fence-tenants|fence-interval|fenceInterval|templates/fence|operator/fence\.go|landwaiter\.fence|TheFence|ItsFence|operator's fence|fence of the operator`,
		"serve of landwaiter":           `\blandwaiter (serve|operate|explain|resolve)\b`,
		"commands of teams":             `\btenant scaffold\b|\btenant redis-acl\b|--tenant-repo\b|--git-token-file\b|--github-org\b|--sops-age\b|--developer-group\b|--create-namespaces\b|--home-namespace\b|--app-version\b`,
		"flags of the server": `--pass-ttl\b|--deny-ttl\b|--tag-ttl\b|--cache-bytes\b|--evidence-bytes\b|--in-flight\b|--registry-connections\b|--registry-bytes-per-second\b|--registry-requests-per-second\b|` +
			`--verify-timeout\b|--mutate-timeout\b|--shutdown-grace\b|--drain-delay\b|--warm-up-interval\b|--redis-mode\b|--redis-ca\b|--redis-client-cert\b|--redis-client-key\b|--max-break-glass\b|` +
			`--client-ca-secret\b|--client-ca-overlap\b|--provider-roles\b|--reference-reader-role\b|--operated-tenants-role\b|--guardrail-tenants\b|--guardrail-interval\b|--mutation-limit\b|--provider-timeout-seconds\b`,
		"label home": `landwaiter\\?\.dev/home([^-]|$)`,
	} {
		made[name] = regexp.MustCompile(pattern)
	}
	for path := range lint.Renamed() { // what lint translates, unless a field still has the name
		if steps := strings.Split(path, "."); regexp.MustCompile(`\b` + steps[len(steps)-1] + `:`).MatchString(crds) {
			continue
		}
		made[path] = regexp.MustCompile(`\b` + regexp.QuoteMeta(path) + `\b`)
	}
	for annotation := range lint.RenamedAnnotations() {
		made[annotation] = regexp.MustCompile(regexp.QuoteMeta(annotation) + `\b`)
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
		"definition, for a CRD":        `\b([Ii]nstall (the|Landwaiter.s)|[Ll]andwaiter.s|(with|after) the) definitions\b|# Definitions (of|,)` + `|` + phrases("the definitions", "Landwaiter's definitions", "the definition of", "its definition", "no definition", "without definitions", "DefinitionsMissing"),
		"equip, for provision":         `\b[Ee]quip(s|ped)? (the|a|home|namespaces|it)\b|\band equips?\b` + `|` + phrases("equip a", "equips namespaces", "namespaces to equip"),
		"place, for a repository":      `\b(more|other|evidence) places\b|reaches a place\b`,
		"fence, for the guardrails":    `(?i)\b(the|a|its|this|behind) fence\b|\b(is|are|be) fenced\b`,
		"headers of tenant list":       `NAME +HOME +NAMESPACES|"HOME", "NAMESPACES"|"DECIDES"`,
		"right, for a permission": phrases("no rights", "missing rights", "the rights", "with rights", "own rights", "more rights", "your rights", "its rights", "their rights", "other rights", "all rights", "these rights", "new rights", "anybody rights", "have rights", "rights of", "rights to", "rights in", "rights by",
			"no right", "missing right", "which right", "any other right", "right to get", "right to list", "right to read", "right to watch", "right to write", "right to create", "right to delete", "other-rights", "cluster-rights", "RedisRights"),
		"authority, for a CA":          phrases("certificate authority", "certificate authorities", "client authority", "client authorities", "public authorities", "its authority", "own authority", "new authority", "logs and authorities", "authorities of clients", "authority of the certificate", "authority that signed", "ProviderAuthority", "WebhookAuthority"),
		"material, for trust material": phrases("the material is", "the material cannot", "the material was", "the same material", "Type of the material", "Source of the material", "replace the material", "Material in Secrets", "Material from elsewhere", "material-role", "namespace's material"),
		"member of a Tenant":           `\b(a|each|every|one|all|its|the|of) members?\b|NamespaceMember|(?m:^ *- Member$)|"members": \[|\bmember-(rules|viewers)`,
	} {
		made[name] = regexp.MustCompile(pattern)
	}
	return made
}

// phrases returns a pattern of whole words.
func phrases(words ...string) string {
	return `\b` + strings.Join(words, `\b|\b`) + `\b`
}

// comment is one of Go. What is in strings after "//" is an address.
var comment = regexp.MustCompile(`(?m)(^|\s)// .*$`)

// Whoever reads a former name looks for something that is not there. Tables of old and new names
// and what translates them have them.
func TestFormerNamesAreGone(t *testing.T) {
	tables := []string{"CHANGELOG.md", "docs/operate/prerelease.md", "docs/reference/old-flags.md", "pkg/resources/lint/former.go", "pkg/resources/lint/former_test.go", "pkg/resources/lint/lint_test.go", "cmd/landwaiter/testdata/check.txtar", "pkg/inspect/check/install.go", "pkg/inspect/check/renamed_test.go", "test/precedence/vectors_test.go", "test/docs/words_test.go"}
	crds := ""
	for _, kind := range v1beta1.Kinds() {
		crds += read(t, "config/crd/landwaiter.dev_"+kind.Plural+".yaml")
	}
	names, terms, needles := former(crds), formerTerms(), map[string][]string{}
	for _, patterns := range []map[string]*regexp.Regexp{names, terms} {
		for what, pattern := range patterns {
			needles[what] = literals(pattern.String())
		}
	}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		switch {
		case entry.IsDir() && (name == ".git" || name == "bin" || entry.Name() == "node_modules" || strings.Contains(name, "testdata/fuzz") || strings.Contains(name, "testdata/v1alpha1")):
			return filepath.SkipDir
		case entry.IsDir(), slices.Contains(tables, filepath.ToSlash(name)), !slices.Contains([]string{".go", ".md", ".yaml", ".json", ".tpl", ".txt", ".txtar", ".sh"}, filepath.Ext(name)):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for what, pattern := range names {
			if !mayMatch(text, needles[what]) {
				continue
			}
			if found := pattern.Find(text); found != nil {
				t.Errorf("%s has a former name (%s): %s", name, what, found)
			}
		}
		if filepath.Ext(name) == ".go" {
			text = comment.ReplaceAll(text, nil) // those of resources are in their CRDs
		}
		for what, pattern := range terms {
			if !mayMatch(text, needles[what]) {
				continue
			}
			if found := pattern.Find(text); found != nil {
				t.Errorf("%s has a former term (%s): %s", name, what, found)
			}
		}
		return nil
	}))
}

// literals returns texts of which one is in whatever a pattern matches, or nil if it is not plain
// which. Looking for them first takes a tenth of the time.
func literals(pattern string) (found []string) {
	if strings.ContainsAny(pattern, "(") {
		return nil
	}
	for _, branch := range strings.Split(pattern, "|") {
		text, _ := regexp.MustCompile(strings.TrimPrefix(branch, `\b`)).LiteralPrefix()
		if text == "" {
			return nil
		}
		found = append(found, text)
	}
	return found
}

func mayMatch(text []byte, literals []string) bool {
	return literals == nil || slices.ContainsFunc(literals, func(l string) bool { return bytes.Contains(text, []byte(l)) })
}

func TestALiteralIsInWhateverItsPatternMatches(t *testing.T) {
	require.Equal(t, []string{"scope: Floor", "PolicyScopeFloor"}, literals(`\bscope: Floor\b|PolicyScopeFloor`))
	require.Equal(t, []string{"spec.home"}, literals(`\bspec\.home\b`))
	require.Nil(t, literals(`\b[aA]lsoFor\b`))
	require.Nil(t, literals(`floors: (true|false)`))
	require.True(t, mayMatch([]byte("x"), nil))
	require.False(t, mayMatch([]byte("spec.homeNamespac"), []string{"spec.people"}))
}
