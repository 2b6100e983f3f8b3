package compile

import (
	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/evidence/notation"
)

// OverrideOf returns what an override of a notation verifier does.
func OverrideOf(action v1beta1.OverrideAction) notation.Action { return overrideOf(action) }
