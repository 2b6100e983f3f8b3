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

// Unknown is the answer of a preview about objects that the person may not read or reach.
const Unknown verify.Answer = "unknown"

// AnswerOf returns the answer of a preview, which does not tell why an image is allowed: that is in
// the verdict. A warning about unreadable evidence is unknown, as a denial would be.
func AnswerOf(r verify.Result) verify.Answer {
	switch answer := r.Answer(); {
	case answer == verify.AnswerUndecided, r.Verdict.Doubtful:
		return Unknown
	case !answer.Allows():
		return verify.AnswerDenied
	case r.Verdict.Warning != "":
		return verify.AnswerWarned
	}
	return verify.AnswerAllowed
}

// Row is one image of a namespace with its current and its previewed answer.
type Row struct {
	Use
	Before, After verify.Result
	Lost          []Loss // rules that judge the image now and would not
}

// Changes reports whether the answer would change, or is unknown.
func (r Row) Changes() bool {
	return r.From() != r.To() || r.Unknown()
}

// Shows reports whether to show the row: something changes, or an exception names the image.
func (r Row) Shows() bool { return r.Named || r.Changes() }

// From returns the current answer.
func (r Row) From() verify.Answer { return AnswerOf(r.Before) }

// To returns the previewed answer.
func (r Row) To() verify.Answer { return AnswerOf(r.After) }

// Unknown reports whether either answer is unknown.
func (r Row) Unknown() bool { return r.From() == Unknown || r.To() == Unknown }

// Breaks reports whether the image would be denied and is not known to be denied now. If its
// current answer is unknown, the row is.
func (r Row) Breaks() bool {
	return r.To() == verify.AnswerDenied && r.From() != verify.AnswerDenied && r.From() != Unknown
}

// Judge decides about the parsed image of a use.
type Judge func(ctx context.Context, use Use, ref image.Reference) verify.Result

// Preview judges images with the current and the previewed rules, a few at a time. It calls
// done after each, one call at a time.
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

// ask judges one image. Invalid references are denied, as by the server.
func ask(ctx context.Context, judge Judge, use Use) verify.Result {
	ref, err := image.Parse(use.Image)
	if err != nil {
		return verify.Unanswered(use.Namespace, image.Reference{}, verify.Permanent(policy.ReasonInvalid, err))
	}
	return judge(ctx, use, ref)
}

// Total counts the images of one namespace.
type Total struct {
	Namespace verify.Namespace      `json:"namespace"`
	Images    int                   `json:"images"`
	Before    map[verify.Answer]int `json:"from"`
	After     map[verify.Answer]int `json:"to"`
	// Breaks counts the images that would be denied and are not known to be denied now.
	Breaks int `json:"breaks"`
}

// Totals returns the totals of each namespace, sorted.
func Totals(rows []Row) []Total {
	all := []Total{}
	for _, row := range rows {
		i := slices.IndexFunc(all, func(t Total) bool { return t.Namespace == row.Namespace })
		if i < 0 {
			i, all = len(all), append(all, Total{Namespace: row.Namespace, Before: map[verify.Answer]int{}, After: map[verify.Answer]int{}})
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
