package isolation

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// answerKind says what an answer of the API server shows.
type answerKind int

const (
	// unanswered shows nothing: no permission to ask, no such kind, no answer.
	unanswered answerKind = iota
	// accepted means that the request would have been done.
	accepted
	// refused means that permissions or a guardrail refused it.
	refused
	// refusedOtherwise means that permissions let it pass, and something else was in its way.
	refusedOtherwise
)

// What refuses, besides guardrails and webhooks.
const (
	byRights    = "RBAC"
	byQuota     = "a quota"
	bySecurity  = "Pod Security"
	bySchema    = "the schema"
	byGuardrail = "guardrail "
	byConflict  = "another object of the name"
)

// answer is what the API server said to a request.
type answer struct {
	kind answerKind
	by   string // what refused
	text string // what it said
	fix  string // what to do about no answer
	// named is the one object that a permission is about.
	named string
}

// refusedRightly reports whether what refused is what a request must be refused by.
func (a answer) refusedRightly(r request) bool {
	return a.kind == refused || a.kind == refusedOtherwise && slices.Contains(r.also, a.by)
}

// Texts of Kubernetes. The API server has no other way to tell who refused.
var (
	policyText  = regexp.MustCompile(`^[a-z0-9./-]+(?: "[^"]*")? is forbidden: ValidatingAdmissionPolicy '([^']+)' with binding '[^']*' denied request`)
	webhookText = regexp.MustCompile(`^(?:[^:]* is forbidden: )?admission webhook "([^"]+)" denied the request`)
	rightsText  = regexp.MustCompile(`^[^:]* is forbidden: User ".*" cannot [a-z]+ resource`)
	grantText   = regexp.MustCompile(`^[^:]* is forbidden: user ".*" \(groups=.*\) is attempting to grant RBAC permissions not currently held`)
)

// classify reads the answer to a dry run. Whatever it does not know shows nothing.
func classify(err error) answer {
	if err == nil {
		return answer{kind: accepted}
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return answer{kind: unanswered, text: shown(err.Error()), fix: "try again"}
	}
	message := status.Status().Message
	text := shown(message)
	switch {
	case strings.Contains(message, " cannot impersonate"):
		return answer{kind: unanswered, text: text, fix: "bind a role with the verb impersonate for users, groups and serviceaccounts to yourself, or ask a cluster admin to run this"}
	case apierrors.IsForbidden(err):
		return forbidden(message, text)
	case apierrors.IsAlreadyExists(err):
		return answer{kind: refusedOtherwise, by: byConflict, text: text}
	case apierrors.IsInvalid(err):
		return answer{kind: refusedOtherwise, by: bySchema, text: text}
	case apierrors.IsNotFound(err):
		return answer{kind: unanswered, text: text, fix: "the object, or its kind, went away: try again"}
	case apierrors.IsBadRequest(err):
		if match := webhookText.FindStringSubmatch(message); match != nil {
			return answer{kind: refusedOtherwise, by: "webhook " + match[1], text: text}
		}
		return answer{kind: unanswered, text: text, fix: "a webhook that answers no dry runs, or another version of Kubernetes: see the message"}
	case apierrors.IsConflict(err):
		return answer{kind: unanswered, text: text, fix: "try again"}
	}
	return answer{kind: unanswered, text: text, fix: "try again when the API server and its webhooks answer"}
}

// forbidden says who answered 403.
func forbidden(message, text string) answer {
	switch {
	case policyText.MatchString(message):
		return answer{kind: refused, by: byGuardrail + policyText.FindStringSubmatch(message)[1], text: text}
	case webhookText.MatchString(message):
		return answer{kind: refusedOtherwise, by: "webhook " + webhookText.FindStringSubmatch(message)[1], text: text}
	case strings.Contains(message, "exceeded quota:"), strings.Contains(message, "failed quota:"):
		return answer{kind: refusedOtherwise, by: byQuota, text: text}
	case strings.Contains(message, "violates PodSecurity"):
		return answer{kind: refusedOtherwise, by: bySecurity, text: text}
	case rightsText.MatchString(message), grantText.MatchString(message):
		return answer{kind: refused, by: byRights, text: text}
	}
	// Another admission plugin: permissions let the request pass.
	return answer{kind: refusedOtherwise, by: "admission", text: text}
}

// notReadable describes what the person who runs this may not read.
func notReadable(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Reason == metav1.StatusReasonForbidden {
		return "missing permission: " + shown(status.Status().Message)
	}
	return shown(err.Error())
}

// shown makes text of strangers fit for one line of a terminal.
func shown(text string) string { return policy.Shown(text, maxText) }
