package configdir

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/resource"
)

// memory is what each file gave when it was last whole.
type memory map[string][]policy.ObjectRef

// collection is everything that all files say.
type collection struct {
	objects  resource.Objects
	problems []resource.Problem
}

// collect joins the readings of all files, and returns the memory for the next
// time. Where a file holds something that nobody can identify, that may be any
// of the objects that the file gave before: all of them are broken then.
func (m memory) collect(readings map[string]reading) (collection, memory) {
	var c collection
	next := memory{}
	found := map[policy.ObjectRef][]entry{}
	lost := map[policy.ObjectRef]error{}
	for _, file := range slices.Sorted(maps.Keys(readings)) {
		r := readings[file]
		for _, e := range r.entries {
			found[e.source] = append(found[e.source], e)
			next[file] = append(next[file], e.source)
		}
		for _, i := range r.ignored {
			c.problem(i.source, policy.ReasonIgnored, fmt.Sprintf("%s: %s", i.document, i.why))
		}
		for _, err := range r.lost {
			c.problem(fileSource(file), policy.ReasonUnreadable, err.Error())
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
func (c *collection) add(source policy.ObjectRef, entries []entry, lost error) {
	broken := func(reason policy.Reason, err error) {
		c.objects.Broken = append(c.objects.Broken, resource.Broken{Source: source, Err: err})
		c.problem(source, reason, err.Error())
	}
	switch {
	case lost != nil:
		broken(policy.ReasonUnreadable, lost)
	case len(entries) > 1:
		var places []string
		for _, e := range entries {
			places = append(places, e.String())
		}
		broken(policy.ReasonDuplicate, fmt.Errorf("it is there %d times, remove all but one: %s", len(places), strings.Join(places, "; ")))
	case entries[0].err != nil:
		broken(policy.ReasonInvalid, fmt.Errorf("%s: %w", entries[0].document, entries[0].err))
	default:
		if err := c.objects.Add(entries[0].object); err != nil {
			broken(policy.ReasonInvalid, fmt.Errorf("%s: %w", entries[0].document, err))
		}
	}
}

func (c *collection) problem(source policy.ObjectRef, reason policy.Reason, message string) {
	c.problems = append(c.problems, resource.Problem{Source: source, Reason: reason, Message: message})
}

func compareSources(a, b policy.ObjectRef) int { return strings.Compare(a.String(), b.String()) }

// fileSource stands for a file or directory where no resource can be named.
func fileSource(path string) policy.ObjectRef { return policy.ObjectRef{Kind: "File", Name: path} }
