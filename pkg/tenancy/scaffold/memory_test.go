package scaffold

import (
	"os"
	"path"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// odd are names that git can hold and that kustomize's own file system in memory refuses.
func odd() []string {
	return []string{"two words", "Übersicht", "[draft] (1)", "a@b", "c++", "x,y", "a..b", "#1", "- a", "a: b", "$HOME", "'quoted'", `back\slash`, "tab\there", "🔐",
		"*", "~", "100%", "a=b", "&a", "!b", "%41", "?"}
}

func TestACheckReadsEveryNameThatGitCanHold(t *testing.T) {
	dir := small(t)
	for _, name := range odd() {
		put1(t, dir, "docs/"+name+".md", "text\n")
		put1(t, dir, ".github/"+name+"/"+name+".md", "text\n")
	}
	report, err := Check(t.Context(), dir, CheckOptions{})
	require.NoError(t, err)
	require.Empty(t, report.Findings)
	// They are looked at as all others are.
	put1(t, dir, "docs/two words/secret.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: x, namespace: y}\nstringData: {a: b}\n")
	report, err = Check(t.Context(), dir, CheckOptions{})
	require.NoError(t, err)
	require.Len(t, report.Findings, 2, "in plain text, and named by no kustomization")
	require.Equal(t, "docs/two words/secret.yaml", report.Findings[0].File)
	require.Equal(t, "PlainTextSecret", report.Findings[0].ID)
}

func TestABuildReadsEveryNameThatGitCanHold(t *testing.T) {
	for _, name := range odd() {
		if name == "a@b" {
			continue // a user at a host, to kustomize
		}
		t.Run(name, func(t *testing.T) {
			dir := folder(t)
			put1(t, dir, "top/kustomization.yaml", kustomization("", []string{name + ".yaml"}, nil))
			put1(t, dir, "top/"+name+".yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
			put1(t, dir, "whole/"+name+"/x.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n")
			c := loaded(t, dir)
			require.False(t, c.build("top").failed, "%v", c.findings)
			require.Len(t, c.build("top").objects, 1)
			require.False(t, c.build("whole").failed, "Flux lists what a folder without a kustomization.yaml has: %v", c.findings)
			require.Len(t, c.build("whole").objects, 1)
		})
	}
}

// kustomize would fetch or clone these, although a file has the name: an option in ref runs a program.
func TestANameThatIsARepositoryIsNeverBuilt(t *testing.T) {
	bin := t.TempDir()
	marker := filepath.Join(bin, "ran")
	require.NoError(t, os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\ntouch "+marker+"\nexit 1\n"), 0o700))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	for _, name := range []string{"https:/127.0.0.1:1/x.yaml", "https://127.0.0.1:1/x.yaml", "http:x.yaml", "HTTPS:/127.0.0.1:1/x.yaml", "https://h/o/r%zz",
		"git@127.0.0.1:org/repo", "me@h/o/r",
		"ssh://h/o/r", "git::https://h/o/r", "git::file:///x", "file:///tmp/x", "file:/tmp/x", "file:///x?ref=--upload-pack=touch%20x%3B", "github.com/o/r",
		"GitHub.com:o/r", "a@b"} {
		for _, field := range []string{"resources", "components", "bases"} {
			for _, content := range []string{"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", "a: b\n"} {
				dir := folder(t)
				put1(t, dir, "kustomization.yaml", kustomize(field+": ["+strconv.Quote(name)+"]\n"))
				put1(t, dir, path.Join("/", name)[1:], content)
				c := loaded(t, dir)
				require.True(t, c.build(".").failed, "%s %s", field, name)
				require.True(t, c.findings[resource.Finding{ID: "RemoteBase", Severity: resource.Error, File: "kustomization.yaml",
					Message: name + " is fetched from elsewhere: copy it into the tree, or make it a Flux source"}], "%s %s: %v", field, name, c.findings)
			}
		}
	}
	require.NoFileExists(t, marker)
}

func TestTheFileSystemOfABuildHasFilesAndFolders(t *testing.T) {
	m := newMemory()
	m.put("a/b c/d.yaml", []byte("x"))
	m.put("empty", []byte{})
	for _, folder := range []string{"/", "a", "/a/", "/a/b c", "/a/x/../b c"} {
		require.True(t, m.IsDir(folder), folder)
		require.True(t, m.Exists(folder), folder)
		_, name, err := m.CleanedAbs(folder)
		require.NoError(t, err)
		require.Empty(t, name)
		_, err = m.ReadFile(folder)
		require.Error(t, err, folder)
	}
	in, name, err := m.CleanedAbs("/a/b c/d.yaml")
	require.NoError(t, err)
	require.Equal(t, []string{"/a/b c", "d.yaml"}, []string{in.String(), name})
	text, err := m.ReadFile("/a/b c/d.yaml")
	require.NoError(t, err)
	text[0] = 'y'
	text, err = m.ReadFile("a/b c/d.yaml")
	require.NoError(t, err)
	require.Equal(t, "x", string(text), "whoever reads cannot change it")
	for _, missing := range []string{"/b", "/a/b", "../../etc/passwd", "/etc/passwd"} {
		require.False(t, m.Exists(missing), missing)
		_, err := m.ReadFile(missing)
		require.ErrorIs(t, err, os.ErrNotExist, missing)
		_, _, err = m.CleanedAbs(missing)
		require.ErrorIs(t, err, os.ErrNotExist, missing)
	}
	require.True(t, m.Exists("empty"))
	require.Error(t, m.WriteFile("x", nil))
}
