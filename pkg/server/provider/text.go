package provider

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// shown quotes what a client sent for messages and logs: short, on one line, ASCII.
func shown(s string) string { return strconv.QuoteToASCII(policy.Cut(s, maxShownKeyBytes)) }

// reasonRoom returns the limit in bytes for each reason of an answer with that many
// denied images, so that the whole text stays readable.
func reasonRoom(denied int) int {
	return max(minReasonBytes, min(maxReasonBytes, maxReasonsBytes/max(denied, 1)))
}

// undecidedText returns the system error of a request with undecided keys: a line
// that says to try again, then a line per undecided key and per denied key, as many
// as fit. It sorts the lines, because templates do too.
func undecidedText(p plan, decisions []decision, e endpoint) string {
	var undecided, denied []string
	for _, k := range p.keys {
		switch outcome, reason := k.outcome(decisions); outcome {
		case KeyAllowed, KeyUnverified, KeyWarned, KeyExcepted:
		case KeyUndecided:
			undecided = append(undecided, k.about("could not be decided", p.targets[k.target].namespace, e)+decisions[k.target].text(maxReasonBytes))
		case KeyDenied:
			denied = append(denied, k.about("is denied", p.targets[k.target].namespace, e)+decisions[k.target].text(maxReasonBytes))
		case KeyInvalid:
			denied = append(denied, policy.Shown(reason, maxReasonBytes))
		}
	}
	head := fmt.Sprintf("%d of %d images could not be decided, try again", len(undecided), len(p.keys))
	const more = "… and %d more" // sorts behind every other line
	room := maxSystemErrorBytes - len(head) - len(more) - len("\n")
	entries := append(undecided, denied...)
	fit := 0
	for fit < len(entries) && len("\n")+len(entries[fit]) <= room {
		room -= len("\n") + len(entries[fit])
		fit++
	}
	lines := append([]string{head}, slices.Sorted(slices.Values(entries[:fit]))...)
	if fit < len(entries) {
		lines = append(lines, fmt.Sprintf(more, len(entries)-fit))
	}
	return strings.Join(lines, "\n")
}

// about returns the start of a sentence about the image of a key that was parsed, as the user
// wrote it.
func (k distinctKey) about(what string, namespace verify.Namespace, e endpoint) string {
	image := k.key
	if e.tagged && namespace != verify.Cluster {
		image = strings.TrimPrefix(image, "["+string(namespace)+"]")
	}
	where := ""
	if namespace != verify.Cluster {
		where = " in " + namespace.Describe()
	}
	return fmt.Sprintf("image %s %s%s: ", policy.Shown(image, maxShownKeyBytes), what, where)
}
