package scaffold

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rewrite replaces text of a file, which must have it.
func rewrite(t *testing.T, dir, name, old, replacement string) {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(name))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), old)
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(text), old, replacement)), 0o600))
}

func put1(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o750))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
}

func content(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	require.NoError(t, err)
	return string(text)
}

func result(outcomes []Outcome, name string) Result {
	for _, o := range outcomes {
		if o.Path == name {
			return o.Result
		}
	}
	return ""
}

func TestNeverOverwritesWhatAPersonEdited(t *testing.T) {
	const edited, untouched = "clusters/staging/infrastructure.yaml", "infrastructure/policies/kustomization.yaml"
	dir := examples()["flux"].write(t)
	rewrite(t, dir, edited, "timeout: 5m", "timeout: 9m")
	tree, err := NewPlatform(Platform{Constraints: []string{imagesSet}, Operator: true, Enforcement: "deny"})
	require.NoError(t, err)

	_, err = Write(dir, tree, WriteOptions{})
	var refused *EditedError
	require.ErrorAs(t, err, &refused)
	require.Len(t, refused.Files, 1)
	require.Equal(t, edited, refused.Files[0].Path)
	require.Contains(t, refused.Files[0].Undone, "-   timeout: 9m")
	require.Contains(t, refused.Files[0].Undone, "+   timeout: 5m")
	require.Equal(t, 1, strings.Count(err.Error(), edited), "%v", err)
	require.ErrorContains(t, err, "--force")
	require.Contains(t, content(t, dir, edited), "timeout: 9m")
	require.Contains(t, content(t, dir, untouched), "value: dryrun", "half of the tree was written")

	outcomes, err := Write(dir, tree, WriteOptions{Force: true})
	require.NoError(t, err)
	require.Equal(t, Changed, result(outcomes, edited))
	require.NotContains(t, content(t, dir, edited), "timeout: 9m")
	require.Contains(t, content(t, dir, untouched), "value: deny")
}

func TestAnEditStaysWhileThereIsNothingNewForItsFile(t *testing.T) {
	const edited, other = "clusters/staging/infrastructure.yaml", "infrastructure/policies/kustomization.yaml"
	dir := examples()["flux"].write(t)
	rewrite(t, dir, edited, "timeout: 5m", "timeout: 9m")
	before := content(t, dir, other)
	rewrite(t, dir, other, "value: dryrun", "value: warn")

	outcomes, err := Write(dir, examples()["flux"].trees(t)[0], WriteOptions{})
	require.NoError(t, err)
	require.Equal(t, Edited, result(outcomes, edited))
	require.Equal(t, Edited, result(outcomes, other))
	require.Contains(t, content(t, dir, edited), "timeout: 9m")

	outcomes, err = Write(dir, examples()["flux"].trees(t)[0], WriteOptions{Force: true})
	require.NoError(t, err)
	require.Equal(t, Changed, result(outcomes, edited))
	require.Equal(t, before, content(t, dir, other))
}

func TestLineEndsOfWindowsAreNoEdit(t *testing.T) {
	const list, changed = "tenants/staging/kustomization.yaml", "infrastructure/policies/kustomization.yaml"
	dir := examples()["flux"].write(t)
	require.NoError(t, filepath.WalkDir(dir, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(dir, name)
		require.NoError(t, err)
		rewrite(t, dir, relative, "\n", "\r\n")
		return nil
	}))
	for _, tree := range examples()["flux"].trees(t) {
		outcomes, err := Write(dir, tree, WriteOptions{})
		require.NoError(t, err)
		for _, o := range outcomes {
			require.Equal(t, Unchanged, o.Result, o.Path)
		}
	}
	require.Contains(t, content(t, dir, list), "\r\n", "it was written for its line ends alone")

	tree, err := NewPlatform(Platform{Constraints: []string{imagesSet}, Enforcement: "deny"})
	require.NoError(t, err)
	outcomes, err := Write(dir, tree, WriteOptions{})
	require.NoError(t, err)
	require.Equal(t, Changed, result(outcomes, changed))
	require.Contains(t, content(t, dir, changed), "value: deny\n")
}

func TestAMessageNamesAFewFilesAndCountsTheRest(t *testing.T) {
	var files []EditedFile
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		files = append(files, EditedFile{name, []string{"- " + name}})
	}
	text := (&EditedError{Files: files}).Error()
	require.True(t, strings.HasPrefix(text, "nothing was written: "), text)
	require.Contains(t, text, "\na, edited:\n- a\nb, edited:\n- b\n")
	require.True(t, strings.HasSuffix(text, "\nh, edited:\n- h\n2 more files, edited"), text)
	require.True(t, strings.HasSuffix((&EditedError{Files: files[:8]}).Error(), "\nh, edited:\n- h"))
}

func TestReplacesWhatNobodyEditedAndNamesWhatIsStale(t *testing.T) {
	dir := examples()["flux"].write(t)
	tree, err := NewPlatform(Platform{Constraints: []string{imagesSet}, Operator: true})
	require.NoError(t, err)
	outcomes, err := Write(dir, tree, WriteOptions{})
	require.NoError(t, err)
	require.Equal(t, Changed, result(outcomes, "infrastructure/landwaiter/release.yaml"))
	require.Equal(t, Stale, result(outcomes, "infrastructure/guardrails/guardrails.yaml"))
	require.FileExists(t, filepath.Join(dir, "infrastructure/guardrails/guardrails.yaml"))
	require.Empty(t, result(outcomes, "tenants/base/iris-red/tenant.yaml"), "it is of another command")
}

func TestAFileOfAPersonIsNotReplaced(t *testing.T) {
	dir := folder(t)
	put1(t, dir, ".github/workflows/check.yaml", "name: mine\n")
	_, err := Write(dir, examples()["flux"].trees(t)[0], WriteOptions{})
	require.ErrorContains(t, err, ".github/workflows/check.yaml")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

func TestFilesOfFluxBootstrapAreOnlyCreated(t *testing.T) {
	const name = "clusters/staging/flux-system/gotk-sync.yaml"
	dir := examples()["flux"].write(t)
	put1(t, dir, name, "# of flux bootstrap\n")
	outcomes, err := Write(dir, examples()["flux"].trees(t)[0], WriteOptions{Force: true})
	require.NoError(t, err)
	require.Equal(t, Unchanged, result(outcomes, name))
	require.Equal(t, "# of flux bootstrap\n", content(t, dir, name))
}

func TestADryRunWritesNothing(t *testing.T) {
	dir := filepath.Join(folder(t), "new")
	outcomes, err := Write(dir, examples()["flux"].trees(t)[0], WriteOptions{DryRun: true})
	require.NoError(t, err)
	require.Equal(t, Created, result(outcomes, "clusters/staging/tenants.yaml"))
	require.NoDirExists(t, dir)
	require.NoError(t, os.Mkdir(dir, 0o750))
	_, err = Write(dir, examples()["flux"].trees(t)[0], WriteOptions{DryRun: true})
	require.NoError(t, err)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestWritesNothingOutsideOfTheTree(t *testing.T) {
	for name, link := range map[string]string{"folder": "infrastructure", "file": ".landwaiter.yaml", "folder within": "clusters/staging"} {
		t.Run(name, func(t *testing.T) {
			dir, elsewhere := folder(t), folder(t)
			target := elsewhere
			if name == "file" {
				target = filepath.Join(elsewhere, "file")
				put1(t, elsewhere, "file", "theirs\n")
			}
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, link)), 0o750))
			require.NoError(t, os.Symlink(target, filepath.Join(dir, link)))
			_, err := Write(dir, examples()["flux"].trees(t)[0], WriteOptions{Force: true})
			require.Error(t, err)
			entries, err := os.ReadDir(elsewhere)
			require.NoError(t, err)
			if name == "file" {
				require.Equal(t, "theirs\n", content(t, elsewhere, "file"))
			} else {
				require.Empty(t, entries)
			}
		})
	}
}

func TestRefusesPathsThatLeaveTheTree(t *testing.T) {
	parent := folder(t)
	dir := filepath.Join(parent, "tree")
	_, err := Write(dir, Tree{By: "x", Files: []File{{Path: "../outside", Text: "x\n"}}}, WriteOptions{})
	require.Error(t, err)
	require.NoFileExists(t, filepath.Join(parent, "outside"))
}

func TestAScriptCanRun(t *testing.T) {
	dir := examples()["arc"].write(t)
	info, err := os.Stat(filepath.Join(dir, "scripts/scaffold-tenant.sh"))
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&0o100)
	require.True(t, strings.HasPrefix(content(t, dir, "scripts/scaffold-tenant.sh"), "#!/bin/sh\n# Generated by landwaiter platform init; sha256:"))
}

func TestListsKeepWhatPeopleWrote(t *testing.T) {
	edit := Edit{Path: "k.yaml", Resources: []string{"../base/red"}, Patches: []string{"red-patch.yaml"}}
	for name, c := range map[string]struct{ before, after string }{
		"no lists yet": {
			"kind: Kustomization\nnamespace: x\n",
			"kind: Kustomization\nnamespace: x\nresources:\n- ../base/red\npatches:\n- path: red-patch.yaml\n"},
		"comments, other entries and indentation": {
			"# ours\nresources:\n  # the first team\n  - ../base/green # since May\n  - extra.yaml\npatches:\n  # a fix\n  - path: green-patch.yaml\n    target: " +
				"{kind: X}\n# end\n",
			"# ours\nresources:\n  # the first team\n  - ../base/green # since May\n  - extra.yaml\n  - ../base/red\npatches:\n  # a fix\n  - path: " +
				"green-patch.yaml\n    target: {kind: X}\n  - path: red-patch.yaml\n# end\n"},
		"inline patch with a block": {
			"resources: \n- a\npatches:\n- patch: |\n    - op: add\n      path: /a\n  target: {kind: X}\n",
			"resources: \n- a\n- ../base/red\npatches:\n- patch: |\n    - op: add\n      path: /a\n  target: {kind: X}\n- path: red-patch.yaml\n"},
		"patch with an empty line in it": {
			"resources:\n- a\npatches:\n- patch: |\n    - op: add\n\n      path: /a\n  target: {kind: X}\nlabels: []\n",
			"resources:\n- a\n- ../base/red\npatches:\n- patch: |\n    - op: add\n\n      path: /a\n  target: {kind: X}\n- path: red-patch.yaml\nlabels: []\n"},
		"empty lists":                 {"resources: []\n", "resources:\n- ../base/red\npatches:\n- path: red-patch.yaml\n"},
		"lists that somebody emptied": {"resources:\npatches:\n# end\n", "resources:\n- ../base/red\npatches:\n- path: red-patch.yaml\n# end\n"},
		"no newline at the end":       {"resources:\n- a", "resources:\n- a\n- ../base/red\npatches:\n- path: red-patch.yaml\n"},
		"there already": {"resources:\n- ../base/red\npatches:\n- path: red-patch.yaml\n",
			"resources:\n- ../base/red\npatches:\n- path: red-patch.yaml\n"},
	} {
		t.Run(name, func(t *testing.T) {
			after, err := edit.apply(c.before)
			require.NoError(t, err)
			require.Equal(t, c.after, after)
			again, err := edit.apply(after)
			require.NoError(t, err)
			require.Equal(t, after, again)
		})
	}
	for name, before := range map[string]string{"flow list": "resources: [a]\n", "no list": "resources: a\n", "not YAML": "resources: [\n", "a list": "- a\n"} {
		t.Run(name, func(t *testing.T) {
			_, err := edit.apply(before)
			require.Error(t, err)
		})
	}
}

func TestAListOfAPersonIsAddedTo(t *testing.T) {
	const name = "tenants/staging/kustomization.yaml"
	dir := examples()["flux"].write(t)
	text := content(t, dir, name) + "# a note\nlabels:\n- pairs: {a: b}\n"
	put1(t, dir, name, text)
	tree, err := NewTeam(Platform{Constraints: []string{imagesSet}}, Team{Tenant: team("violet", nil)})
	require.NoError(t, err)
	_, err = Write(dir, tree, WriteOptions{})
	require.NoError(t, err)
	require.Equal(t, strings.ReplaceAll(strings.ReplaceAll(text, "- ../base/iris-blue\n", "- ../base/iris-blue\n- ../base/violet\n"),
		"- path: iris-blue-patch.yaml\n", "- path: iris-blue-patch.yaml\n- path: violet-patch.yaml\n"), content(t, dir, name))
}
