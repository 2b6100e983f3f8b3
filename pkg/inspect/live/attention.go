package live

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// attention returns the resources whose conditions need attention, by namespace.
func attention(o resource.Objects, now time.Time) map[verify.Namespace][]Attention {
	found := map[verify.Namespace][]Attention{}
	for _, object := range o.Resources {
		if until, over := endedAt(object, now); over { // the conditions may be an hour old
			at := verify.Namespace(object.GetNamespace())
			found[at] = append(found[at],
				Attention{Source: resource.RefOf(object), Condition: v1beta1.ConditionEffective, Reason: string(policy.ReasonExpired),
					Message: "it expired at " + until.UTC().Format(time.RFC3339) + " and allows nothing; delete it"})
			continue
		}
		broken := resource.Lacks(object, v1beta1.ConditionReady) != nil
		for _, c := range object.CommonStatus().Conditions {
			wanted := metav1.ConditionTrue
			if v1beta1.IsWarning(c.Type) {
				wanted = metav1.ConditionFalse
			}
			partly := c.Status == wanted && c.Reason == string(policy.ReasonMandatoryHolds)      // some of its images are denied
			if c.Status == wanted && !partly || broken && c.Type == v1beta1.ConditionEffective { // not Ready says more
				continue
			}
			at := verify.Namespace(object.GetNamespace())
			found[at] = append(found[at],
				Attention{Source: resource.RefOf(object), Condition: c.Type, Reason: shown(c.Reason), Message: shown(c.Message), Partly: partly})
		}
	}
	for _, list := range found {
		slices.SortFunc(list, func(a, b Attention) int {
			return cmp.Or(cmp.Compare(urgency(a.Condition), urgency(b.Condition)), cmp.Compare(a.Source.String(), b.Source.String()))
		})
	}
	return found
}

// ConditionShown says how people read the condition of an [Attention], such as "not Ready".
func ConditionShown(condition string, partly bool) string {
	switch {
	case partly:
		return "partly " + condition
	case v1beta1.IsWarning(condition):
		return condition
	}
	return "not " + condition
}

// urgency puts resources that deny first, and unused ones last.
func urgency(condition string) int {
	return slices.Index([]string{v1beta1.ConditionReady, v1beta1.ConditionProvisioned, v1beta1.ConditionExpiresSoon,
		v1beta1.ConditionNeedsReview, v1beta1.ConditionEffective}, condition)
}
