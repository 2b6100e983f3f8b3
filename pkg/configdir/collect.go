package configdir

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/tenant"
)

// Reasons of problems.
const (
	reasonUnreadable = "Unreadable" // something is there that nobody can identify
	reasonInvalid    = "Invalid"    // an object whose content cannot be read
	reasonDuplicate  = "Duplicate"  // an object that is there more than once
	reasonIgnored    = "Ignored"    // an object of somebody else
	reasonUnwatched  = "Unwatched"  // changes are seen late
)

// memory is what each file gave when it was last whole.
type memory map[string][]policy.Source

// collection is everything that all files say.
type collection struct {
	objects  tenant.Objects
	problems []tenant.Problem
}

// collect joins the readings of all files, and returns the memory for the next
// time. Where a file holds something that nobody can identify, that may be any
// of the objects that the file gave before: all of them are broken then.
func (m memory) collect(readings map[string]reading) (collection, memory) {
	var c collection
	next := memory{}
	found := map[policy.Source][]entry{}
	lost := map[policy.Source]error{}
	for _, file := range slices.Sorted(maps.Keys(readings)) {
		r := readings[file]
		for _, e := range r.entries {
			found[e.source] = append(found[e.source], e)
			next[file] = append(next[file], e.source)
		}
		for _, i := range r.ignored {
			c.problem(i.source, reasonIgnored, fmt.Sprintf("%s: %s", i.document, i.why))
		}
		for _, err := range r.lost {
			c.problem(fileSource(file), reasonUnreadable, err.Error())
		}
		if len(r.lost) == 0 {
			continue
		}
		for before, given := range m.below(file) {
			for _, source := range given {
				lost[source] = fmt.Errorf("it was in %s, which cannot be read now: %w", before, r.lost[0])
			}
			next[before] = slices.Concat(next[before], given)
			slices.SortFunc(next[before], compareSources)
			next[before] = slices.Compact(next[before])
		}
	}
	for source := range lost {
		if _, ok := found[source]; !ok {
			found[source] = nil
		}
	}
	for _, source := range slices.SortedFunc(maps.Keys(found), compareSources) {
		c.add(source, found[source], lost[source])
	}
	return c, next
}

// below returns the part of the memory that is about a file, or about the files
// in a directory.
func (m memory) below(path string) memory {
	part := memory{}
	for file, given := range m {
		if file == path || strings.HasPrefix(file, path+"/") {
			part[file] = given
		}
	}
	return part
}

// add takes an object into the collection: broken if it is not exactly one, with
// content that could be read.
func (c *collection) add(source policy.Source, entries []entry, lost error) {
	broken := func(reason string, err error) {
		c.objects.Broken = append(c.objects.Broken, tenant.Broken{Source: source, Err: err})
		c.problem(source, reason, err.Error())
	}
	switch {
	case lost != nil:
		broken(reasonUnreadable, lost)
	case len(entries) > 1:
		var places []string
		for _, e := range entries {
			places = append(places, e.String())
		}
		broken(reasonDuplicate, fmt.Errorf("it is there %d times, remove all but one: %s", len(places), strings.Join(places, "; ")))
	case entries[0].err != nil:
		broken(reasonInvalid, fmt.Errorf("%s: %w", entries[0].document, entries[0].err))
	default:
		if err := c.objects.Add(entries[0].object); err != nil {
			broken(reasonInvalid, fmt.Errorf("%s: %w", entries[0].document, err))
		}
	}
}

func (c *collection) problem(source policy.Source, reason, message string) {
	c.problems = append(c.problems, tenant.Problem{Source: source, Reason: reason, Message: message})
}

func compareSources(a, b policy.Source) int { return strings.Compare(a.String(), b.String()) }

// fileSource stands for a file or directory where no resource can be named.
func fileSource(path string) policy.Source { return policy.Source{Kind: "File", Name: path} }
