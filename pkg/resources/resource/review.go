package resource

import (
	"slices"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// ReviewReasons returns the reasons of the condition NeedsReview. Findings have them as IDs.
func ReviewReasons() []string {
	return []string{string(policy.ReasonIdentityForAnyone), string(policy.ReasonIdentityTooBroad), string(policy.ReasonIdentityMatchesNobody),
		string(policy.ReasonRuleTooBroad), string(policy.ReasonPublishedKey)}
}

// NeedsReview reports whether a reason is one of [ReviewReasons]: the resource works, but may allow too much.
func NeedsReview(reason policy.Reason) bool { return slices.Contains(ReviewReasons(), string(reason)) }
