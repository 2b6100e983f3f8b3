// Package slip makes a Tier that allows every image by setting a field, without a Judge.
package slip

import (
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

func allowing(l verify.Tier) (verify.Tier, verify.Tier, verify.Judge) {
	l.OnlyWarnings = true                       // want "l.OnlyWarnings undefined"
	lax := verify.Tier{Default: policy.Allowed} // want "unknown field Default in struct literal of type verify.Tier"
	judge := verify.Judge{rest: 1}              // want "cannot refer to unexported field rest in struct literal of type verify.Judge"
	return l, lax, judge
}
