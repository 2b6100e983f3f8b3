package configdir

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// fileIndex maps each file to the objects that it declared when it was last completely
// readable.
type fileIndex map[string][]policy.ObjectRef

// collection is the merged content of all files.
type collection struct {
	objects  resource.Objects
	problems []resource.Problem
}

// collect merges all files and returns the index for the next load. If a file
// contains a document that cannot be identified, every object previously read from
// that file is marked broken: any of them may be the one.
func (x fileIndex) collect(parsed map[string][]entry) (collection, fileIndex) {
	var c collection
	next := fileIndex{}
	found := map[policy.ObjectRef][]entry{}
	unreadable := map[policy.ObjectRef]error{}
	for _, file := range slices.Sorted(maps.Keys(parsed)) {
		var lost error // the first document that cannot be identified
		for _, e := range parsed[file] {
			switch {
			case e.ignored:
				c.problem(e.source, policy.ReasonIgnored, e.said().Error())
			case e.lost():
				c.problem(fileRef(file), policy.ReasonUnreadable, e.said().Error())
				lost = cmp.Or(lost, e.said())
			default:
				found[e.source] = append(found[e.source], e)
				next[file] = append(next[file], e.source)
			}
		}
		if lost == nil {
			continue
		}
		for known, refs := range x.under(file) {
			for _, source := range refs {
				unreadable[source] = fmt.Errorf("it was in %s, which cannot be read now: %w", known, lost)
			}
			next[known] = slices.Concat(next[known], refs)
			slices.SortFunc(next[known], compareRefs)
			next[known] = slices.Compact(next[known])
		}
	}
	for source := range unreadable {
		if _, ok := found[source]; !ok {
			found[source] = nil
		}
	}
	for _, source := range slices.SortedFunc(maps.Keys(found), compareRefs) {
		c.add(source, found[source], unreadable[source])
	}
	return c, next
}

// under returns the entries of a file, or of all files in a directory.
func (x fileIndex) under(path string) fileIndex {
	part := fileIndex{}
	for file, refs := range x {
		if file == path || strings.HasPrefix(file, path+"/") {
			part[file] = refs
		}
	}
	return part
}

// add adds an object to the collection. The object is broken unless it is declared
// exactly once and its content could be read. unreadable is set if the object was
// in a file that can no longer be read.
func (c *collection) add(source policy.ObjectRef, entries []entry, unreadable error) {
	broken := func(reason policy.Reason, err error) {
		c.objects.Broken = append(c.objects.Broken, resource.Broken{Source: source, Err: err})
		c.problem(source, reason, err.Error())
	}
	switch {
	case unreadable != nil:
		broken(policy.ReasonUnreadable, unreadable)
	case len(entries) > 1:
		var places []string
		for _, e := range entries {
			places = append(places, e.String())
		}
		broken(policy.ReasonDuplicate, fmt.Errorf("it is declared %d times; remove all but one: %s", len(places), strings.Join(places, "; ")))
	case entries[0].object == nil:
		broken(policy.ReasonInvalid, entries[0].said())
	default:
		if entries[0].err != nil {
			c.problem(source, policy.ReasonInvalid, entries[0].said().Error())
		}
		if err := c.objects.Add(entries[0].object); err != nil {
			broken(policy.ReasonInvalid, entries[0].at(err))
		}
	}
}

func (c *collection) problem(source policy.ObjectRef, reason policy.Reason, message string) {
	c.problems = append(c.problems, resource.Problem{Source: source, Reason: reason, Message: message})
}

func compareRefs(a, b policy.ObjectRef) int { return strings.Compare(a.String(), b.String()) }

// KindFile is the kind of a Problem's source if that is a whole file.
const KindFile = "File"

// fileRef names a file or directory in a problem that belongs to no resource.
func fileRef(path string) policy.ObjectRef { return policy.ObjectRef{Kind: KindFile, Name: path} }
