package report

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/workload"
)

// little is the room of a namespace whose account has many.
var little = room{images: 10, running: 4 * minBytes, denied: minBytes}

// manyPods returns pods without an owner that have containers of an image, each as often as
// asked for, while watching what is kept of them.
func manyPods(t *testing.T, s *space, pods, containers, times int, image string) iter.Seq[workload.Running] {
	t.Helper()
	return func(yield func(workload.Running) bool) {
		for range times {
			for p := range pods {
				for c := range containers {
					if !yield(runs(workload.Ref{Kind: "Pod", Name: fmt.Sprintf("pod-%05d", p)}, fmt.Sprintf("container-%02d", c), image)) {
						return
					}
				}
			}
			require.LessOrEqual(t, len(s.rows), 2*little.running/minResultBytes)
		}
	}
}

// shown adds up the results of the reports on what runs, and how many they leave out.
func shown(t *testing.T, reports []*openreports.Report) (rows, out int) {
	t.Helper()
	for _, r := range reports {
		for _, result := range r.Results {
			if left := result.Properties[v1beta1.PropertyLeftOut]; left != "" {
				n, err := strconv.Atoi(left)
				require.NoError(t, err)
				out += n
				continue
			}
			rows++
		}
	}
	return rows, out
}

func TestWhatIsKeptOfManyPodsIsBoundedAndTheRestIsCountedOnce(t *testing.T) {
	s := newSpace()
	const pods, containers = 20, 64
	known := findings{images: map[string]finding{imageOne: {result: allowed, at: began}, imageTwo: {result: allowed, at: began}}}
	last := runs(workload.Ref{Kind: "Pod", Name: "zzz"}, "main", imageTwo)
	running := func(yield func(workload.Running) bool) {
		for row := range manyPods(t, s, pods, containers, 2, imageOne) {
			if !yield(row) {
				return
			}
		}
		yield(last)
	}
	for minute := range 3 {
		s.images, _ = s.refresh(running, known, little, at(minute))
		size := 0
		for row := range s.rows {
			size += sizeOf(row)
		}
		require.LessOrEqual(t, size, little.running)
		rows, out := shown(t, s.render("team-a", nobody, little))
		require.Greater(t, rows, 100)
		require.Equal(t, pods*containers+1, rows+out)
		require.NotContains(t, s.rows, last)
	}
	known.images[imageTwo] = finding{result: denied, at: at(5)}
	next, revoked := s.refresh(running, known, little, at(5))
	s.images = next
	require.Len(t, revoked, 1, "the image was known, though not its row")
	require.EqualValues(t, "fail", s.render("team-a", nobody, little)[0].Results[0].Result, "the worst is kept")
	require.Equal(t, "zzz", s.render("team-a", nobody, little)[0].Results[0].Subjects[0].Name)
	rows, out := shown(t, s.render("team-a", nobody, little))
	require.Equal(t, pods*containers+1, rows+out)

	none := func(func(workload.Running) bool) {}
	s.images, _ = s.refresh(none, known, little, at(60))
	require.Empty(t, s.render("team-a", nobody, little))
	require.True(t, len(s.rows) == 0 && s.rowsOut == 0)
}

func TestStatesOfImagesAreBoundedHoweverTheyComeAndGo(t *testing.T) {
	s := newSpace()
	var running []workload.Running
	for i := range 50 {
		known := findings{images: map[string]finding{}, full: true}
		for n := range 4 { // what was known before has made room
			image := fmt.Sprintf("r.example.com/app:%d", 4*i+n)
			running = append(running, runs(web, image, image))
			known.images[image] = finding{result: allowed, at: began}
			if n == 0 {
				known.images[image] = finding{result: denied, at: began}
			}
		}
		s.images, _ = s.refresh(slices.Values(running), known, little, at(1))
		require.LessOrEqual(t, len(s.images), 2*little.images+4)
		rows, out := shown(t, s.all())
		require.Equal(t, len(running), rows+out, "the rest is counted")
	}
	require.GreaterOrEqual(t, s.counts()["fail"], little.images, "the bad ones stay")
}

func TestImagesWithoutAVerdictAreNotKept(t *testing.T) {
	s := newSpace()
	s.images, _ = s.refresh(manyPods(t, s, 10, 10, 1, imageOne), findings{}, alone, began)
	require.True(t, s.empty())
	require.Empty(t, s.all(), "they are not verified yet, so nothing is left out")
}

func TestWhatIsKnownOfAnAccountIsBoundedAndNobodyElseLosesAnything(t *testing.T) {
	k := newKnown()
	name := func(i int) string { return fmt.Sprintf("r.example.com/app:%d", i) }
	k.set("other", "b", imageOne, finding{result: allowed, at: began})
	for i := range maxImages + 10 {
		k.set("team-a", "a", name(i), finding{result: allowed, at: began})
	}
	require.Equal(t, map[verify.Account]int{"a": maxImages, "b": 1}, k.each)
	require.True(t, k.get("team-a").full)
	k.set("team-b", "a", imageTwo, finding{result: denied, at: began})
	require.Equal(t, map[verify.Account]int{"a": maxImages, "b": 1}, k.each)
	require.Contains(t, k.get("team-b").images, imageTwo, "what is bad takes the place of what is not")
	require.Len(t, k.get("team-a").images, maxImages-1)
	require.Len(t, k.get("other").images, 1)
	require.False(t, k.get("other").full)

	for i := range maxImages + 10 {
		k.set("team-a", "a", name(i), finding{result: denied, at: began})
	}
	require.Equal(t, maxImages, k.each["a"])
	before, had := k.set("team-b", "a", imageTwo, finding{result: allowed, at: at(1)})
	require.True(t, had && before.bad(), "what is known is brought up to date")

	k.keep("team-a", map[string]bool{name(1): true})
	require.False(t, k.get("team-a").full, "there is room again")
	require.Equal(t, 2, k.each["a"])
	k.set("team-b", "b", imageOne, finding{result: allowed, at: began}) // another Tenant has it now
	require.Equal(t, map[verify.Account]int{"a": 1, "b": 3}, k.each)
	for _, namespace := range []verify.Namespace{"team-a", "team-b", "other"} {
		k.forget(namespace)
	}
	require.Empty(t, k.each)
	require.Empty(t, k.of)
}

func TestOfForgedReportsNoMoreIsTakenOverThanFits(t *testing.T) {
	first := newSpace()
	known := map[string]finding{}
	var running []workload.Running
	for i := range 200 {
		image := fmt.Sprintf("r.example.com/app:%d", i)
		known[image], running = finding{result: denied, at: began}, append(running, runs(web, "main", image))
	}
	first.renew(running, known, began)
	r := stored(first.all())[0]
	next := newSpace()
	taken := next.load(r, at(1), minBytes)
	require.LessOrEqual(t, taken, minBytes)
	require.NotEmpty(t, next.images)
	require.Less(t, len(next.images), 200)
	require.LessOrEqual(t, newSpace().load(r, at(1), runningBytes), runningBytes)
	whole := newSpace()
	whole.load(r, at(1), 200*sizeOfResult(t, r))
	require.Equal(t, slices.Sorted(maps.Keys(first.images)), slices.Sorted(maps.Keys(whole.images)))
}

// sizeOfResult returns the size of the first result as it is stored.
func sizeOfResult(t *testing.T, r *openreports.Report) int {
	t.Helper()
	require.GreaterOrEqual(t, len(marshalled(t, r.Results[0])), weight(&r.Results[0]), "what we write is taken over whole")
	return len(marshalled(t, r.Results[0])) + 10
}

func marshalled(t *testing.T, object any) []byte {
	t.Helper()
	text, err := json.Marshal(object)
	require.NoError(t, err)
	return text
}

func TestAnAccountWithManyPodsTakesNoRoomOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, server, runs, _ := newReporter(t)
		const rowsOfA = 1500
		long := "r.example.com/" + strings.Repeat("a/", 500) + "app:1" // so that few rows fill a report
		for i := range rowsOfA {
			runs.runs["team-a"] = append(runs.runs["team-a"], runs1(long))
			runs.runs["team-a"][i].Of.Name = fmt.Sprintf("web-%d", i)
		}
		runs.runs["team-b"] = []workload.Running{runs1(imageOne)}
		lead(t, r)
		r.Verified("team-a", long, allowed)
		r.Verified("team-b", imageOne, denied)
		pass(10 * time.Second)
		server.mu.Lock()
		defer server.mu.Unlock()
		require.Len(t, server.reports["team-b/landwaiter-running"].Results, 1)
		var theirs []*openreports.Report
		for _, stored := range server.reports {
			if stored.Namespace == "team-a" {
				theirs = append(theirs, stored)
			}
		}
		rows, out := shown(t, theirs)
		require.Equal(t, rowsOfA, rows+out)
		require.Positive(t, out)
	})
}

// The rules denied an image for seconds, in which what runs was not verified: a reader of the denial is told that it is
// allowed since.
func TestAnImageThatIsVerifiedAgainAfterADenialIsAllowedSinceThen(t *testing.T) {
	for name, c := range map[string]struct {
		image    string
		denied   note
		verified time.Time
		result   verify.Result
		since    time.Time
	}{
		"verified after the denial":          {imageOne, note{Image: imageOne, Digest: "sha256:1", Last: at(5)}, at(6), allowed, at(6)},
		"of an unknown digest":               {imageOne, note{Image: imageOne, Last: at(5)}, at(6), allowed, at(6)},
		"written in another way":             {"app:1", note{Image: "docker.io/library/app:1", Last: at(5)}, at(6), allowed, at(6)},
		"verified before the denial":         {imageOne, note{Image: imageOne, Last: at(5)}, at(4), allowed, at(0)},
		"verified in the second of it":       {imageOne, note{Image: imageOne, Last: at(5)}, at(5).Add(time.Second / 2), allowed, at(0)},
		"another digest of the tag":          {imageOne, note{Image: imageOne, Digest: "sha256:2", Last: at(5)}, at(6), allowed, at(0)},
		"another image":                      {imageOne, note{Image: imageTwo, Last: at(5)}, at(6), allowed, at(0)},
		"the registry does not answer since": {imageOne, note{Image: imageOne, Last: at(5)}, at(6), undecided, at(0)},
		"denied ever since":                  {imageOne, note{Image: imageOne, Last: at(5)}, at(6), denied, at(7)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSpace()
			running := []workload.Running{runs(web, "main", c.image)}
			s.renew(running, map[string]finding{c.image: {result: allowed, at: at(0)}}, at(0))
			c.denied.Counter, c.denied.First, c.denied.Count = "a", c.denied.Last, 1
			s.fold(c.denied, at(6))
			for range 2 { // it stays so
				s.renew(running, map[string]finding{c.image: {result: c.result, at: c.verified}}, at(7))
				require.Equal(t, c.since, s.images[c.image].since)
			}
		})
	}
}
