package live

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// Answer is what a preview says of an image: that of the engine, with warnings apart.
type Answer string

// The answers, of which only the first lets an image in without a word.
const (
	Allowed Answer = "allowed"
	Warned  Answer = "warned"  // allowed, and a policy that only warns would deny
	Denied  Answer = "denied"  // as a server would deny it
	Unknown Answer = "unknown" // it depends on what the person may not read or reach
)

// AnswerOf returns the answer of a verdict. A warning about evidence that could not be read
// is unknown, as a denial would be.
func AnswerOf(v policy.Verdict) Answer {
	switch {
	case v.Outcome == policy.Denied:
		return Denied
	case v.Outcome != policy.Allowed, v.Doubtful:
		return Unknown
	case v.Warning != "":
		return Warned
	}
	return Allowed
}

// Row is one image of a namespace as it is judged now and as it would be.
type Row struct {
	Use
	Before, After verify.Result
}

// Changes reports whether the answer would be another one, or is not known.
func (r Row) Changes() bool {
	return r.From() != r.To() || r.Unknown()
}

// From returns what is answered now.
func (r Row) From() Answer { return AnswerOf(r.Before.Verdict) }

// To returns what would be answered.
func (r Row) To() Answer { return AnswerOf(r.After.Verdict) }

// Unknown reports whether either answer is unknown.
func (r Row) Unknown() bool { return r.From() == Unknown || r.To() == Unknown }

// Breaks reports whether the image would be denied and is known not to be already. If what
// it is now is unknown, the row is.
func (r Row) Breaks() bool { return r.To() == Denied && r.From() != Denied && r.From() != Unknown }

// Judge decides about an image in a namespace.
type Judge func(ctx context.Context, namespace verify.Namespace, ref image.Reference) verify.Result

// Preview judges images as they are and as they would be, a few at a time. It calls done
// after each, never twice at a time.
func Preview(ctx context.Context, uses []Use, before, after Judge, done func()) []Row {
	rows := make([]Row, len(uses))
	var group errgroup.Group
	group.SetLimit(maxParallel)
	var mu sync.Mutex
	for i, use := range uses {
		group.Go(func() error {
			rows[i] = Row{Use: use, Before: ask(ctx, before, use), After: ask(ctx, after, use)}
			mu.Lock()
			defer mu.Unlock()
			done()
			return nil
		})
	}
	_ = group.Wait() // no task returns an error
	return rows
}

// ask judges one image. Text that is no reference is denied, as the server does.
func ask(ctx context.Context, judge Judge, use Use) verify.Result {
	ref, err := image.Parse(use.Image)
	if err != nil {
		return verify.Unanswered(use.Namespace, image.Reference{}, verify.Permanent(policy.ReasonInvalid, err))
	}
	return judge(ctx, use.Namespace, ref)
}

// Total counts the images of one namespace.
type Total struct {
	Namespace verify.Namespace
	Images    int
	Before    map[Answer]int
	After     map[Answer]int
	// Breaks counts the images that would be denied and are known not to be already.
	Breaks int
}

// Totals returns the totals of each namespace, sorted.
func Totals(rows []Row) []Total {
	var all []Total
	for _, row := range rows {
		i := slices.IndexFunc(all, func(t Total) bool { return t.Namespace == row.Namespace })
		if i < 0 {
			i, all = len(all), append(all, Total{Namespace: row.Namespace, Before: map[Answer]int{}, After: map[Answer]int{}})
		}
		all[i].Images++
		all[i].Before[row.From()]++
		all[i].After[row.To()]++
		if row.Breaks() {
			all[i].Breaks++
		}
	}
	slices.SortFunc(all, func(a, b Total) int { return cmp.Compare(a.Namespace, b.Namespace) })
	return all
}
