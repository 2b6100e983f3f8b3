package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/open-policy-agent/frameworks/constraint/pkg/externaldata"

	"github.com/landwaiter/landwaiter/pkg/policy"
)

// resultVersion is the version of Ratify's result that value is a superset of.
const resultVersion = "0.2.0"

// value is the value of a verification item: Ratify v1's result 0.2.0, so that
// constraint templates written for it work as they are, and what decided.
type value struct {
	Version         string        `json:"version"`
	IsSuccess       bool          `json:"isSuccess"`
	Succeeded       bool          `json:"succeeded"` // the same, by its later name
	TraceID         string        `json:"traceID"`
	Timestamp       string        `json:"timestamp"` // RFC 3339, UTC
	VerifierReports []report      `json:"verifierReports"`
	Digest          string        `json:"digest"`    // what the verdict is about; empty if it was not needed
	Namespace       string        `json:"namespace"` // empty: cluster resources only
	Policy          policy.Source `json:"policy"`
	Reason          string        `json:"reason"`
	// Warning is why the image would be denied if its policy were enforced.
	Warning string `json:"warning,omitempty"`
}

// report is one finding. Ratify renamed name and type and kept both.
type report struct {
	Subject         string         `json:"subject"`
	IsSuccess       bool           `json:"isSuccess"`
	Name            string         `json:"name"`
	VerifierName    string         `json:"verifierName"`
	Type            string         `json:"type"` // lower case, as templates compare it
	VerifierType    string         `json:"verifierType"`
	ReferenceDigest string         `json:"referenceDigest"`
	ArtifactType    string         `json:"artifactType"`
	Message         string         `json:"message"`
	ErrorReason     string         `json:"errorReason,omitempty"`
	Remediation     string         `json:"remediation,omitempty"`
	Extensions      map[string]any `json:"extensions,omitempty"`
}

// newValue writes down a decision of verification, whose reason and warning have
// room bytes each; the reports have them in full.
func newValue(d *decision, traceID string, now time.Time, room int) *value {
	result := &d.result
	v := &value{
		Version: resultVersion, IsSuccess: d.allow, Succeeded: d.allow,
		TraceID: traceID, Timestamp: now.UTC().Format(time.RFC3339),
		VerifierReports: make([]report, 0, len(result.Findings)),
		Digest:          result.Digest.String(), Namespace: string(result.Namespace),
		Policy: result.Verdict.Policy, Reason: cut(oneLine(result.Verdict.Reason), room), Warning: cut(oneLine(result.Verdict.Warning), room),
	}
	subject := result.Reference.WithDigest(result.Digest).String()
	for i := range result.Findings {
		v.VerifierReports = append(v.VerifierReports, newReport(&result.Findings[i], subject))
	}
	return v
}

func newReport(f *policy.Finding, subject string) report {
	kind := strings.ToLower(f.Type)
	r := report{
		Subject: subject, IsSuccess: f.Proven(),
		Name: f.Verifier, VerifierName: f.Verifier, Type: kind, VerifierType: kind,
		ReferenceDigest: f.Digest, ArtifactType: f.ArtifactType, Message: f.Message, Extensions: f.Extensions,
	}
	if !r.IsSuccess {
		r.ErrorReason, r.Remediation = f.Reason, f.Remediation
	}
	return r
}

// pinned is the value of a mutation item: what the user wrote, followed by the
// digest. A missing host or tag stays missing, so that people recognise their
// own image; dropTag takes the tag away.
func pinned(key string, d *decision, dropTag bool) string {
	name, _, _ := strings.Cut(key, "@")
	if dropTag {
		// A colon after the last slash begins the tag; an earlier one is a port.
		if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
			name = name[:colon]
		}
	}
	return name + "@" + d.digest.String()
}

// verified makes the items of a verification that is decided in whole.
func (p plan) verified(decisions []decision, traceID string, now time.Time) []externaldata.Item {
	silent := 0 // images that nothing has to be said about
	for i := range decisions {
		if decisions[i].allow && decisions[i].result.Verdict.Warning == "" {
			silent++
		}
	}
	room := reasonRoom(len(decisions) - silent)
	values := make([]*value, len(decisions)) // keys of one image share a value
	for i := range decisions {
		values[i] = newValue(&decisions[i], traceID, now, room)
	}
	items := make([]externaldata.Item, len(p.questions))
	for i, q := range p.questions {
		items[i].Key = q.key
		if q.err != nil {
			items[i].Error = fmt.Sprintf("%s (traceID %s)", oneLine(q.err.Error()), traceID)
			continue
		}
		items[i].Value = values[q.target]
	}
	return items
}

// mutated makes the items of a mutation that is decided in whole.
func (p plan) mutated(decisions []decision, dropTag bool) []externaldata.Item {
	items := make([]externaldata.Item, len(p.questions))
	for i, q := range p.questions {
		items[i].Key = q.key
		switch outcome, reason := q.outcome(decisions); outcome {
		case keyAllowed, keyWarned:
			items[i].Value = pinned(q.key, &decisions[q.target], dropTag)
		case keyDenied, keyInvalid, keyUndecided:
			items[i].Error = orUnknown(reason)
		}
	}
	return items
}

// orUnknown keeps an item's error from being empty: an empty one is no error.
func orUnknown(reason string) string {
	if reason == "" {
		return "refused without a reason"
	}
	return reason
}

// encode writes the response: items or a system error, never both. idempotent is
// true for both, since the same question has the same answer; Gatekeeper refuses
// a mutation without it.
func encode(buffer *bytes.Buffer, items []externaldata.Item, systemError string) error {
	response := externaldata.ProviderResponse{
		APIVersion: apiVersion, Kind: externaldata.ProviderResponseKind,
		Response: externaldata.Response{Idempotent: true, Items: items, SystemError: systemError},
	}
	if systemError != "" {
		response.Response.Items = nil
	}
	buffer.Reset()
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(&response); err != nil {
		return fmt.Errorf("encode the response: %w", err)
	}
	if buffer.Len() > maxAnswerBytes {
		return refuse(http.StatusInternalServerError, "the answer is larger than %d bytes: ask for fewer images at a time", maxAnswerBytes)
	}
	return nil
}
