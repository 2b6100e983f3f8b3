package report

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func noteAt(counter string, count int, last time.Time) note {
	return note{Counter: counter, Image: "r.example.com/app:1", Policy: "ClusterVerifier release", Reason: "it is not signed", TraceID: "t", First: began,
		Last: last, Count: count}
}

// Replicas repeat notes, the watch repeats and reorders them, and terms of the lease begin
// with what earlier ones have written: the sum is the same.
func TestDenialsAreCountedOnceHoweverNotesArrive(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var notes []note
		want := 0
		for replica := range 3 {
			total := 1 + random.IntN(20)
			want += total
			for n := 1; n <= total; n++ {
				if n == total || random.IntN(3) == 0 {
					notes = append(notes, noteAt(fmt.Sprintf("r%d-1", replica), n, at(n)))
				}
			}
		}
		notes = append(notes, notes...)
		random.Shuffle(len(notes), func(i, j int) { notes[i], notes[j] = notes[j], notes[i] })
		d := &denial{}
		for _, n := range notes {
			d.fold(n, at(30))
			if random.IntN(5) == 0 { // another term begins with what this one has written
				next := &denial{first: d.first, last: d.last}
				require.True(t, next.restore(d.store()))
				d = next
			}
		}
		require.Equal(t, want, d.count())
	}
}

func TestCountersThatEndedAreAddedUpOnce(t *testing.T) {
	d := &denial{}
	require.True(t, d.fold(noteAt("r0-1", 5, began), at(1)))
	later := began.Add(endedCounter + time.Minute)
	require.True(t, d.fold(noteAt("r1-1", 2, later), later))
	require.Len(t, d.counters, 1)
	require.Equal(t, 7, d.count())
	require.False(t, d.fold(noteAt("r0-1", 5, began), later), "its Event is read again")
	require.Equal(t, 7, d.count())
}

func TestTooManyCountersAreAddedUp(t *testing.T) {
	d := &denial{}
	for i := range 3 * maxCounters {
		d.fold(noteAt(fmt.Sprintf("r%d-1", i), 1, began.Add(time.Duration(i)*time.Second)), at(10))
	}
	require.Len(t, d.counters, maxCounters)
	require.Equal(t, 3*maxCounters, d.count())
}

func TestTheLastDenialIsTheOneShown(t *testing.T) {
	d := &denial{}
	last, first := noteAt("r0-1", 1, at(5)), noteAt("r1-1", 1, at(1))
	last.Reason, last.TraceID = "the key was revoked", "u"
	first.First = at(-3)
	d.fold(last, at(6))
	d.fold(first, at(6))
	require.Equal(t, "the key was revoked", d.reason)
	require.Equal(t, "u", d.traceID)
	require.Equal(t, at(5), d.last)
	require.Equal(t, at(-3), d.first)
}

func TestWhatAnotherTermHasReportedIsMerged(t *testing.T) {
	one, other := &denial{}, &denial{}
	for _, n := range []note{noteAt("r0-1", 5, at(1)), noteAt("r1-1", 2, at(2))} {
		one.fold(n, at(3))
	}
	for _, n := range []note{noteAt("r0-1", 7, at(4)), noteAt("r2-1", 1, at(2))} {
		other.fold(n, at(4))
	}
	one.merge(other, at(5))
	require.Equal(t, 7+2+1, one.count())
	one.merge(other, at(5))
	require.Equal(t, 10, one.count())
	require.Equal(t, at(4), one.last)

	late := began.Add(3 * endedCounter)
	apart, added := &denial{}, &denial{}
	apart.fold(noteAt("r0-1", 5, began), began)
	added.fold(noteAt("r0-1", 5, began), began)
	added.compact(late)
	apart.merge(added, late)
	require.Equal(t, 5, apart.count(), "one has added up what the other has apart")
}

func TestForgedNotesAreRefusedOrBounded(t *testing.T) {
	good := noteAt("r0-1", 3, at(1))
	parse := func(change func(n *note)) (note, bool) {
		n := good
		change(&n)
		text, err := json.Marshal(n)
		require.NoError(t, err)
		return parseNote(string(text), at(2))
	}
	n, ok := parse(func(*note) {})
	require.True(t, ok)
	require.Equal(t, good, n)
	for name, change := range map[string]func(n *note){
		"no counter":           func(n *note) { n.Counter = "" },
		"a strange counter":    func(n *note) { n.Counter = "a\nb" },
		"a long counter":       func(n *note) { n.Counter = strings.Repeat("a", 41) },
		"a strange trace":      func(n *note) { n.TraceID = "\x1b[31m" },
		"nothing denied":       func(n *note) { n.Count = 0 },
		"less than nothing":    func(n *note) { n.Count = -1 },
		"more than there is":   func(n *note) { n.Count = maxCount + 1 },
		"ends before it began": func(n *note) { n.First = at(2) },
		"no beginning":         func(n *note) { n.First = time.Time{} },
		"in the future":        func(n *note) { n.Last = at(2).Add(2 * maxAhead) },
		"long ago":             func(n *note) { n.First, n.Last = n.First.Add(-2*keepDenials), n.Last.Add(-2*keepDenials) },
		"large":                func(n *note) { n.Reason = strings.Repeat("x", maxNoteBytes) },
	} {
		_, ok := parse(change)
		require.False(t, ok, name)
	}
	n, ok = parse(func(n *note) { n.Image, n.Reason = "a\x1bb", strings.Repeat("x", 2*maxReasonBytes) })
	require.True(t, ok)
	require.Equal(t, "a b", n.Image)
	require.LessOrEqual(t, len(n.Reason), maxReasonBytes)
	_, ok = parseNote("{", began)
	require.False(t, ok)
}

func TestForgedCountersOfAReportAreNotBelieved(t *testing.T) {
	many := storedCounters{Counters: map[string]counter{}}
	for i := range maxCounters + 1 {
		many.Counters[fmt.Sprintf("r%d-1", i)] = counter{1, 1}
	}
	tooMany, err := json.Marshal(many)
	require.NoError(t, err)
	for name, text := range map[string]string{
		"nothing":       "",
		"no JSON":       "{",
		"no count":      "{}",
		"negative":      `{"ended":-5}`,
		"huge":          `{"ended":9000000000000000}`,
		"a zero":        `{"by":{"a":{"n":0,"t":1}}}`,
		"a strange one": `{"by":{"A B":{"n":1,"t":1}}}`,
		"too many":      string(tooMany),
		"large":         `{"ended":1,"x":"` + strings.Repeat("x", maxNoteBytes) + `"}`,
	} {
		require.False(t, (&denial{}).restore(text), name)
	}
}
