package verify_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

func TestFindingOfAnErrorIsNeverValidAndNeverWithoutReason(t *testing.T) {
	var noRefusal *verify.Refusal
	outage := errors.New("503")
	for name, c := range map[string]struct {
		err     error
		result  policy.Result
		reason  policy.Reason
		message string
	}{
		"no error": {nil, policy.Invalid, policy.ReasonInternalError, "internal error: the evidence was neither verified nor refused"},
		"refusal":  {verify.Refuse(policy.ReasonWrongKey, "no key", "sign"), policy.Invalid, policy.ReasonWrongKey, "no key"},
		"wrapped refusal": {fmt.Errorf("library: %w", verify.Refuse(policy.ReasonWrongKey, "no key", "sign")), policy.Invalid,
			policy.ReasonWrongKey, "no key"},
		"refusal without reason": {verify.Refuse("", "no key", ""), policy.Invalid, policy.ReasonMalformed, "no key"},
		"refusal without words":  {verify.Refuse("", "", ""), policy.Invalid, policy.ReasonMalformed, "the evidence does not count"},
		"zero refusal":           {&verify.Refusal{}, policy.Invalid, policy.ReasonMalformed, "the evidence does not count"},
		"nil refusal":            {noRefusal, policy.Invalid, policy.ReasonMalformed, "the evidence does not count"},
		"permanent":              {verify.Permanent(policy.ReasonForbidden, outage), policy.Invalid, policy.ReasonForbidden, "503"},
		"wrapped permanent": {fmt.Errorf("fetch: %w", verify.Permanent(policy.ReasonForbidden, outage)), policy.Invalid,
			policy.ReasonForbidden, "fetch: 503"},
		"permanent without reason":    {verify.Permanent("", outage), policy.Invalid, policy.ReasonInternalError, "503"},
		"inconclusive":                {verify.Inconclusive(policy.ReasonRevocationUnknown, "later"), policy.Unknown, policy.ReasonRevocationUnknown, "later"},
		"inconclusive without reason": {verify.Inconclusive("", "later"), policy.Unknown, policy.ReasonUnreachable, "later"},
		"transient":                   {outage, policy.Unknown, policy.ReasonUnreachable, "503"},
		"deadline":                    {context.DeadlineExceeded, policy.Unknown, policy.ReasonUnreachable, "context deadline exceeded"},
		"canceled":                    {fmt.Errorf("fetch: %w", context.Canceled), policy.Unknown, policy.ReasonUnfinished, "fetch: context canceled"},
		"unfinished":                  {fmt.Errorf("fetch: %w", verify.Unfinished(outage)), policy.Unknown, policy.ReasonUnfinished, "fetch: 503"},
	} {
		t.Run(name, func(t *testing.T) {
			finding := verify.FindingOf(c.err)
			require.Equal(t, c.result, finding.Result())
			require.NotEqual(t, policy.Valid, finding.Result())
			require.Equal(t, c.reason, finding.Reason)
			require.Equal(t, c.message, finding.Message)
			require.Empty(t, finding.Signer())
			require.False(t, finding.Proven())
			require.Equal(t, c.err != nil, verify.HasReason(c.err, c.reason), "nil has no reason")
		})
	}
}

func TestFindingOfARefusalKeepsItsRemediation(t *testing.T) {
	require.Equal(t, "sign", verify.FindingOf(verify.Refuse(policy.ReasonWrongKey, "no key", "sign")).Remediation)
	require.EqualError(t, verify.Refuse(policy.ReasonWrongKey, "no key", "sign"), "no key")
}
