package configdir

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

const patience = time.Minute // a deadline for tests, not an expectation

// change is one call of onChange.
type change struct {
	objects  resource.Objects
	problems []resource.Problem
}

// follow watches dir and returns the calls of onChange.
func follow(t *testing.T, dir string, rescan time.Duration) <-chan change {
	t.Helper()
	changes := make(chan change, 100)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- watch(ctx, dir, rescan, func(o resource.Objects, p []resource.Problem) { changes <- change{o, p} })
	}()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return changes
}

// await reads changes until one has these objects and problems.
func await(t *testing.T, changes <-chan change, objects, problems []string) change {
	t.Helper()
	deadline := time.After(patience)
	var last change
	for {
		select {
		case last = <-changes:
			if equal(names(last.objects), objects) && equal(reasons(last.problems), problems) {
				return last
			}
		case <-deadline:
			require.FailNow(t, "no such change", "wanted %v %v, last %v %v", objects, problems, names(last.objects), reasons(last.problems))
		}
	}
}

func equal(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestFollowsChanges(t *testing.T) {
	dir := writeTree(t, files{"a.yaml": verifier("team-a", "one")})
	changes := follow(t, dir, rescan)
	await(t, changes, []string{"Verifier team-a/one"}, nil)

	writeFile(t, dir, "new/b.yaml", verifier("team-b", "two"))
	await(t, changes, []string{"Verifier team-a/one", "Verifier team-b/two"}, nil)

	writeFile(t, dir, "new/b.yaml", verifier("team-b", "three"))
	await(t, changes, []string{"Verifier team-a/one", "Verifier team-b/three"}, nil)

	require.NoError(t, os.Remove(filepath.Join(dir, "a.yaml")))
	await(t, changes, []string{"Verifier team-b/three"}, nil)

	require.NoError(t, os.RemoveAll(filepath.Join(dir, "new")))
	await(t, changes, nil, nil)
}

func TestDoesNotReportAnUnchangedDirectory(t *testing.T) {
	dir := writeTree(t, files{"a.yaml": verifier("team-a", "one")})
	changes := follow(t, dir, time.Millisecond)
	await(t, changes, []string{"Verifier team-a/one"}, nil)
	writeFile(t, dir, "a.yaml", "# a comment\n"+verifier("team-a", "one"))
	writeFile(t, dir, "notes.txt", "text")
	writeFile(t, dir, "z.yaml", verifier("team-a", "two"))
	select {
	case c := <-changes: // the next call is about z.yaml already
		require.Equal(t, []string{"Verifier team-a/one", "Verifier team-a/two"}, names(c.objects))
	case <-time.After(patience):
		require.FailNow(t, "no change")
	}
}

func TestFindsChangesWithoutEvents(t *testing.T) {
	dir := writeTree(t, files{".real/a.yaml": verifier("team-a", "one")})
	link(t, dir, "a.yaml", ".real/a.yaml") // the hidden directory is not watched
	changes := follow(t, dir, 10*time.Millisecond)
	await(t, changes, []string{"Verifier team-a/one"}, nil)
	writeFile(t, dir, ".real/a.yaml", verifier("team-a", "two"))
	await(t, changes, []string{"Verifier team-a/two"}, nil)
}

func TestFollowsMountedVolumesAsTheyAreSwapped(t *testing.T) {
	dir := writeTree(t, files{"..1/v.yaml": verifier("team-a", "one"), "..1/sub/w.yaml": verifier("team-a", "sub-one")})
	link(t, dir, "..data", "..1")
	link(t, dir, "v.yaml", "..data/v.yaml")
	link(t, dir, "sub", "..data/sub")
	changes := follow(t, dir, rescan)
	await(t, changes, []string{"Verifier team-a/one", "Verifier team-a/sub-one"}, nil)
	for _, next := range []string{"two", "three"} {
		writeFile(t, dir, ".."+next+"/v.yaml", verifier("team-a", next))
		writeFile(t, dir, ".."+next+"/sub/w.yaml", verifier("team-a", "sub-"+next))
		link(t, dir, "..data_tmp", ".."+next)
		require.NoError(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
		await(t, changes, []string{"Verifier team-a/sub-" + next, "Verifier team-a/" + next}, nil)
	}
}

func TestBreaksObjectsOfAFileThatBecomesUnreadable(t *testing.T) {
	two := verifier("team-a", "one") + "---\n" + verifier("team-a", "two")
	for name, c := range map[string]struct {
		change   func(t *testing.T, dir string)
		objects  []string
		problems []string
	}{
		"not YAML any more": {
			func(t *testing.T, dir string) { writeFile(t, dir, "sub/x.yaml", garbage) },
			[]string{"Verifier team-b/other", "broken Verifier team-a/one", "broken Verifier team-a/two"},
			[]string{"Unreadable File sub/x.yaml", "Unreadable Verifier team-a/one", "Unreadable Verifier team-a/two"},
		},
		"one document of several": {
			func(t *testing.T, dir string) {
				writeFile(t, dir, "sub/x.yaml", verifier("team-a", "one")+"---\n"+garbage+"---\n"+verifier("team-a", "new"))
			},
			[]string{"Verifier team-a/new", "Verifier team-b/other", "broken Verifier team-a/one", "broken Verifier team-a/two"},
			[]string{"Unreadable File sub/x.yaml", "Unreadable Verifier team-a/one", "Unreadable Verifier team-a/two"},
		},
		"mistyped kind": {
			func(t *testing.T, dir string) {
				writeFile(t, dir, "sub/x.yaml", "apiVersion: landwaiter.dev/v1beta1\nkind: Verifer\nmetadata: {name: one, namespace: team-a}")
			},
			[]string{"Verifier team-b/other", "broken Verifier team-a/one", "broken Verifier team-a/two"},
			[]string{"Unreadable File sub/x.yaml", "Unreadable Verifier team-a/one", "Unreadable Verifier team-a/two"},
		},
		"too large": {
			func(t *testing.T, dir string) {
				writeFile(t, dir, "sub/x.yaml", two+string(make([]byte, maxFileBytes)))
			},
			[]string{"Verifier team-b/other", "broken Verifier team-a/one", "broken Verifier team-a/two"},
			[]string{"Unreadable File sub/x.yaml", "Unreadable Verifier team-a/one", "Unreadable Verifier team-a/two"},
		},
		"link to the outside": {
			func(t *testing.T, dir string) {
				require.NoError(t, os.Symlink("/etc/hostname", filepath.Join(dir, "sub/new")))
				require.NoError(t, os.Rename(filepath.Join(dir, "sub/new"), filepath.Join(dir, "sub/x.yaml")))
			},
			[]string{"Verifier team-b/other", "broken Verifier team-a/one", "broken Verifier team-a/two"},
			[]string{"Unreadable File sub/x.yaml", "Unreadable Verifier team-a/one", "Unreadable Verifier team-a/two"},
		},
		"directory that became a link to the outside": {
			func(t *testing.T, dir string) {
				require.NoError(t, os.Rename(filepath.Join(dir, "sub"), filepath.Join(dir, ".sub")))
				link(t, dir, "sub", "/etc")
			},
			[]string{"Verifier team-b/other", "broken Verifier team-a/one", "broken Verifier team-a/two"},
			[]string{"Unreadable File sub", "Unreadable Verifier team-a/one", "Unreadable Verifier team-a/two"},
		},
		"content of one object": {
			func(t *testing.T, dir string) {
				writeFile(t, dir, "sub/x.yaml", verifier("team-a", "one")+"---\n"+mistyped("team-a", "two"))
			},
			[]string{"Verifier team-a/one", "Verifier team-b/other", "broken Verifier team-a/two"},
			[]string{"Invalid Verifier team-a/two"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := writeTree(t, files{"sub/x.yaml": two, "other.yaml": verifier("team-b", "other")})
			whole := []string{"Verifier team-a/one", "Verifier team-a/two", "Verifier team-b/other"}
			changes := follow(t, dir, rescan)
			await(t, changes, whole, nil)
			c.change(t, dir)
			await(t, changes, c.objects, c.problems)

			require.NoError(t, os.RemoveAll(filepath.Join(dir, "sub"))) // and it recovers
			writeFile(t, dir, "sub/x.yaml", two)
			await(t, changes, whole, nil)
		})
	}
}

func TestRemembersObjectsOfAFileWhileItIsUnreadable(t *testing.T) {
	parse := func(tree files) map[string][]entry {
		d, err := newDecoder(false)
		require.NoError(t, err)
		s := scan{files: map[string][]byte{}}
		for name, content := range tree {
			s.files[name] = []byte(content)
		}
		return d.decodeAll(t.Context(), s)
	}
	broken := []string{"broken Verifier team-a/one"}
	_, m, err := initial(parse(files{"sub/x.yaml": verifier("team-a", "one")}))
	require.NoError(t, err)
	c, m := m.collect(parse(files{"sub/x.yaml": garbage}))
	require.Equal(t, broken, names(c.objects))
	c, m = m.collect(map[string][]entry{"sub": unreadable("sub", os.ErrPermission)})
	require.Equal(t, broken, names(c.objects))
	c, m = m.collect(parse(files{"sub/x.yaml": garbage + "---\n" + garbage}))
	require.Equal(t, broken, names(c.objects))
	c, m = m.collect(parse(files{"sub/x.yaml": garbage + "---\n" + verifier("team-a", "two")}))
	require.Equal(t, []string{"Verifier team-a/two", "broken Verifier team-a/one"}, names(c.objects))
	c, m = m.collect(parse(files{"sub/x.yaml": garbage}))
	require.Equal(t, []string{"broken Verifier team-a/one", "broken Verifier team-a/two"}, names(c.objects))
	c, m = m.collect(parse(files{"sub/x.yaml": verifier("team-a", "three")}))
	require.Equal(t, []string{"Verifier team-a/three"}, names(c.objects))
	require.Equal(t, fileIndex{"sub/x.yaml": {source("Verifier", "team-a", "three")}}, m)
	c, m = m.collect(parse(files{}))
	require.Empty(t, names(c.objects))
	require.Empty(t, m)
}

func TestReportsANewFileThatCannotBeRead(t *testing.T) {
	dir := writeTree(t, files{"a.yaml": verifier("team-a", "one")})
	changes := follow(t, dir, rescan)
	await(t, changes, []string{"Verifier team-a/one"}, nil)
	writeFile(t, dir, "b.yaml", garbage)
	c := await(t, changes, []string{"Verifier team-a/one"}, []string{"Unreadable File b.yaml"})
	require.Contains(t, c.problems[0].Message, "b.yaml, document 1 (line 1): ")
}

func TestKeepsTheLastObjectsWhileTheDirectoryIsGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "config")
	writeFile(t, dir, "a.yaml", verifier("team-a", "one"))
	changes := follow(t, dir, 10*time.Millisecond)
	await(t, changes, []string{"Verifier team-a/one"}, nil)

	require.NoError(t, os.Rename(dir, dir+".away"))
	c := await(t, changes, []string{"Verifier team-a/one"}, []string{"Unreadable File " + dir})
	require.Contains(t, c.problems[0].Message, "the last resources read stay in force")

	require.NoError(t, os.Rename(dir+".away", dir))
	await(t, changes, []string{"Verifier team-a/one"}, nil)
	writeFile(t, dir, "a.yaml", verifier("team-a", "two"))
	await(t, changes, []string{"Verifier team-a/two"}, nil)
}

func TestWatchFailsAsLoadDoes(t *testing.T) {
	for name, dir := range map[string]string{
		"no directory":    filepath.Join(t.TempDir(), "gone"),
		"unreadable file": writeTree(t, files{"x.yaml": garbage}),
	} {
		t.Run(name, func(t *testing.T) {
			_, _, want := Load(t.Context(), dir)
			err := Watch(t.Context(), dir, func(resource.Objects, []resource.Problem) { t.Error("called although nothing was loaded") })
			require.EqualError(t, err, want.Error())
		})
	}
}

func TestNoticesAVolumeSwappedDuringAScan(t *testing.T) {
	dir := writeTree(t, files{"..1/v.yaml": verifier("team-a", "one"), "..2/v.yaml": verifier("team-a", "two"), "z/x.yaml": verifier("team-z", "z")})
	link(t, dir, "..data", "..1")
	link(t, dir, "v.yaml", "..data/v.yaml")
	swaps := 0
	s, err := scanDir(dir, func(path string) {
		if path == "z" && swaps == 0 { // v.yaml was read already
			swaps++
			link(t, dir, "..tmp", "..2")
			require.NoError(t, os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")))
		}
	})
	require.NoError(t, err)
	require.Equal(t, verifier("team-a", "two"), string(s.files["v.yaml"]))

	swaps = 0
	_, err = scanDir(dir, func(path string) { // one that never settles
		if path == "z" {
			target := []string{"..1", "..2"}[swaps%2]
			swaps++
			link(t, dir, "..tmp", target)
			require.NoError(t, os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")))
		}
	})
	require.ErrorIs(t, err, errChanging)
}
