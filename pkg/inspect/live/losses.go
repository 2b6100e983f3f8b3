package live

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// Rules are the compiled rules of each namespace.
type Rules interface {
	For(namespace verify.Namespace) *verify.Config
}

// Loss is a rule that would no longer judge some running images that it judges now.
type Loss struct {
	Policy policy.ObjectRef `json:"policy"`
	Rule   int              `json:"rule"` // counted from 1 in the policy
	// Then is the rule of the policy that would judge the images, 0 if none would.
	Then int `json:"then,omitempty"`
	// OnlyWarns says that the rule would still match the images, but no longer deny any.
	OnlyWarns bool `json:"onlyWarns,omitempty"`
	Images    int  `json:"images"`
	// Some are the first of the images, as "NAMESPACE IMAGE".
	Some []string `json:"some"`
}

// String says what is lost, and by which images.
func (l Loss) String() string {
	images, verb, match, them := fmt.Sprintf("%d images", l.Images), "are", "match", "them"
	if l.Images == 1 {
		images, verb, match, them = "1 image", "is", "matches", "it"
	}
	some := strings.Join(l.Some, ", ")
	if more := l.Images - len(l.Some); more > 0 {
		some += fmt.Sprintf(" and %d more", more)
	}
	switch {
	case l.OnlyWarns:
		return fmt.Sprintf("%s %s no longer denied by rule %d of %s, which would only warn about %s: %s", images, verb, l.Rule,
			l.Policy, them, some)
	case l.Then > 0:
		return fmt.Sprintf("%s %s no longer judged by rule %d of %s, and would %s its rule %d, which requires something else: %s", images, verb,
			l.Rule, l.Policy, strings.TrimSuffix(match, "es"), l.Then, some)
	}
	return fmt.Sprintf("%s %s no longer judged by rule %d of %s, which matched %s: %s", images, verb, l.Rule, l.Policy, them, some)
}

// Lose adds to rows the rules that judge an image before and would not judge it after. A newly denied image needs no
// such note.
func Lose(rows []Row, before, after Rules) {
	for i := range rows {
		ref, err := image.Parse(rows[i].Image)
		if err != nil || rows[i].Breaks() {
			continue
		}
		then := after.For(rows[i].Namespace).Judging(ref)
		for _, now := range before.For(rows[i].Namespace).Judging(ref) {
			if loss, lost := lossOf(now, then); lost {
				rows[i].Lost = append(rows[i].Lost, loss)
			}
		}
	}
}

// lossOf compares a rule that judges an image now with all rules that would.
func lossOf(now verify.Judging, then []verify.Judging) (Loss, bool) {
	loss := Loss{Policy: now.Policy, Rule: now.Rule}
	for _, j := range then {
		switch {
		case j.Policy != now.Policy:
		case j.SameDemands(now) && (now.Warns || !j.Warns):
			return Loss{}, false
		case j.Warns && !now.Warns:
			loss.OnlyWarns = true
		case j.Rule == now.Rule: // someone changed its requirements, and it is still for these images
			return Loss{}, false
		default:
			loss.Then = j.Rule
		}
	}
	return loss, true
}

// Losses sums the losses of rows, most images first, at most [maxLosses] rules, and returns the number of
// further ones.
func Losses(rows []Row) (losses []Loss, more int) {
	losses = []Loss{}
	for _, row := range rows {
		for _, lost := range row.Lost {
			i := slices.IndexFunc(losses, func(l Loss) bool {
				return l.Policy == lost.Policy && l.Rule == lost.Rule && l.Then == lost.Then && l.OnlyWarns == lost.OnlyWarns
			})
			if i < 0 {
				i, losses = len(losses), append(losses, lost)
			}
			losses[i].Images++
			if len(losses[i].Some) < maxLostImages {
				losses[i].Some = append(losses[i].Some, string(row.Namespace)+" "+row.Image)
			}
		}
	}
	slices.SortStableFunc(losses, func(a, b Loss) int { return cmp.Compare(b.Images, a.Images) })
	shown := min(len(losses), maxLosses)
	return losses[:shown], len(losses) - shown
}
