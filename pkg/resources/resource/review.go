package resource

import (
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// ReviewReasons returns the reasons of the condition NeedsReview. Findings have them as IDs.
func ReviewReasons() []string {
	return []string{string(policy.ReasonIdentityForAnyone), string(policy.ReasonIdentityTooBroad), string(policy.ReasonIdentityMatchesNobody),
		string(policy.ReasonRuleTooBroad), string(policy.ReasonRuleNeverReached), string(policy.ReasonPublishedKey),
		string(policy.ReasonPlaceholder)}
}

// NeedsReview reports whether a reason is one of [ReviewReasons]: the resource works, but probably
// does not do what its author meant.
func NeedsReview(reason policy.Reason) bool { return slices.Contains(ReviewReasons(), string(reason)) }

// ReviewSeverity returns the severity of a reason of the condition NeedsReview of a resource.
func ReviewSeverity(source policy.ObjectRef, reason policy.Reason) Severity {
	switch {
	case reason == policy.ReasonIdentityForAnyone:
		return Error
	case reason == policy.ReasonPlaceholder:
		return Note // it admits nobody
	case reason == policy.ReasonRuleTooBroad && source.Kind == v1beta1.KindVerificationPolicy:
		return Note // the team may have intended it
	}
	return Warning
}

// inReview separates the advice from the cause in the message of the condition NeedsReview.
const inReview = ". Why: "

// ReviewMessage returns the message of the condition NeedsReview. The advice comes first, because long messages are
// cut.
func ReviewMessage(fix, why string) string { return fix + inReview + why }

// SplitReview splits a message of [ReviewMessage]. Any other message is all cause.
func SplitReview(message string) (fix, why string) {
	if fix, why, ok := strings.Cut(message, inReview); ok {
		return fix, why
	}
	return "", message
}
