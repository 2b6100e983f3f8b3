package provider

import (
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// denials remembers the traceID of the first of denials that are the same, for answers to
// those that follow. Kubernetes counts Events with the same text, and the pods of a ReplicaSet
// are denied for ever: with a traceID of its own, each denial would be an Event of its own. If
// one account is denied more images than are remembered, others' denials get new traceIDs,
// which does no harm.
type denials struct {
	known *otter.Cache[denial, firstDenial]
}

// denial is what makes a denial the same as another.
type denial struct {
	namespace verify.Namespace
	line      line
}

// firstDenial is the request whose traceID is shown.
type firstDenial struct {
	traceID string
	at      time.Time
}

func newDenials() denials {
	return denials{otter.Must(&otter.Options[denial, firstDenial]{MaximumSize: maxDenials})}
}

// traceID returns the traceID for the answer to x: its own, or that of the first denial that
// is the same as the first one in x.
func (d denials) traceID(x *exchange) string {
	for _, k := range x.plan.keys {
		answer, reason := k.answer(x.decisions)
		if answer != verify.AnswerDenied && answer != verify.AnswerInvalid {
			continue
		}
		same := denial{namespace: k.namespace, line: lineOf(k.key, reason)}
		if k.err == nil {
			same = denial{x.plan.targets[k.target].namespace, lineOf(k.key, reason, x.decisions[k.target].result.Digest.String())}
		}
		if first, ok := d.known.GetIfPresent(same); ok && x.began.Sub(first.at) < denialWindow {
			return first.traceID
		}
		d.known.Set(same, firstDenial{x.traceID, x.began})
		break
	}
	return x.traceID
}
