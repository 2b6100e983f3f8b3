package provider

import (
	"strconv"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// brief has the fields of a [value] that Landwaiter's own templates read. Gatekeeper converts each answer for Rego,
// which takes longer than evaluating the template if the answer has all reports. A template that iterates over
// reports finds none here, so only [verdictPath] answers with it.
type brief struct {
	IsSuccess bool   `json:"isSuccess"`
	Reason    string `json:"reason,omitempty"`  // set if IsSuccess is false
	Warning   string `json:"warning,omitempty"` // as of [value]
	TraceID   string `json:"traceID,omitempty"` // set with a reason or a warning, which it follows
}

// newBrief returns the value for a verification, with the texts of [newValue].
func newBrief(d *decision, traceID string, room int) brief {
	v := brief{IsSuccess: d.answer.Allows(), Warning: policy.Shown(d.result.Verdict.Warning, room)}
	if !v.IsSuccess {
		v.Reason = d.text(room)
	}
	if !v.IsSuccess || v.Warning != "" {
		v.TraceID = traceID
	}
	return v
}

// appendJSON appends v as encoding/json would write it.
func (v brief) appendJSON(b []byte) []byte {
	b = strconv.AppendBool(append(b, `{"isSuccess":`...), v.IsSuccess)
	if v.Reason != "" {
		b = appendString(append(b, `,"reason":`...), v.Reason)
	}
	if v.Warning != "" {
		b = appendString(append(b, `,"warning":`...), v.Warning)
	}
	if v.TraceID != "" {
		b = appendString(append(b, `,"traceID":`...), v.TraceID)
	}
	return append(b, '}')
}
