package provider

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/open-policy-agent/frameworks/constraint/pkg/externaldata"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// resultVersion is the version of Ratify's result; value is a superset of that.
const resultVersion = "0.2.0"

// value is the value of a verification item. It extends Ratify v1's result 0.2.0, so
// that constraint templates written for Ratify work unchanged.
type value struct {
	Version         string           `json:"version"`
	IsSuccess       bool             `json:"isSuccess"`
	Succeeded       bool             `json:"succeeded"` // isSuccess by its later name
	TraceID         string           `json:"traceID"`
	Timestamp       string           `json:"timestamp"` // RFC 3339, UTC
	VerifierReports []verifierReport `json:"verifierReports"`
	Digest          string           `json:"digest"`    // of the image; empty if it was not resolved
	Namespace       string           `json:"namespace"` // empty: cluster resources only
	Policy          policyRef        `json:"policy"`
	Reason          string           `json:"reason"`
	// Warning says why the image would be denied if its policy were enforced.
	Warning string `json:"warning,omitempty"`
	// Exception allows the image although its policy denies it.
	Exception *exceptionRef `json:"exception,omitempty"`
}

// exceptionRef names an exception, or the Namespace of a break-glass.
type exceptionRef struct {
	policyRef
	Until string `json:"until"` // RFC 3339, UTC
}

// policyRef names the policy that decided; it is empty if none did.
type policyRef struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// verifierReport is one finding. It has name and type twice, because Ratify renamed
// them and kept the old fields.
type verifierReport struct {
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

// newValue returns the value for a verification. The reason includes the fix, because templates print nothing
// else. It cuts the text of each denial, and the warning, to room bytes; the reports keep their full text, and
// there are no more than most of them.
func newValue(d *decision, traceID string, now time.Time, room, most int) value {
	result := &d.result
	v := value{
		Version: resultVersion, IsSuccess: d.answer.Allows(), Succeeded: d.answer.Allows(),
		TraceID: traceID, Timestamp: now.UTC().Format(time.RFC3339),
		VerifierReports: make([]verifierReport, 0, min(len(result.Findings), most)),
		Digest:          result.Digest.String(), Namespace: string(result.Namespace),
		Policy: policyRef(result.Verdict.Policy), Reason: policy.OneLine(result.Verdict.TextWithin(room)),
		Warning: policy.Shown(result.Verdict.Warning, room),
	}
	if x := result.Exception; x != (policy.ObjectRef{}) {
		v.Exception = &exceptionRef{policyRef(x), result.ExceptionEnds.UTC().Format(time.RFC3339)}
	}
	subject := result.Reference.WithDigest(result.Digest).String()
	for _, f := range reported(result.Findings, most) {
		v.VerifierReports = append(v.VerifierReports, newVerifierReport(f, subject))
	}
	return v
}

// reported returns at most so many findings to report. If there are too many, findings that count
// come first, so that strangers' evidence hides none of them, and then the missing evidence of
// each verifier. Half of the space is for that: a template may deny because of it.
func reported(findings []policy.Finding, most int) []*policy.Finding {
	few := len(findings) <= most
	var counting, others, rest []*policy.Finding
	missed := map[policy.ObjectRef]bool{}
	for i := range findings {
		switch f := &findings[i]; {
		case few || f.Proven():
			counting = append(counting, f)
		case !missed[f.Source]:
			missed[f.Source] = true
			others = append(others, f)
		default:
			rest = append(rest, f)
		}
	}
	others = append(others, rest...)
	counting = counting[:min(len(counting), most-min(len(others), most/2))]
	return append(counting, others...)[:min(len(findings), most)]
}

func newVerifierReport(f *policy.Finding, subject string) verifierReport {
	kind := strings.ToLower(f.Type)
	r := verifierReport{
		Subject: subject, IsSuccess: f.Proven(),
		Name: f.Verifier, VerifierName: f.Verifier, Type: kind, VerifierType: kind,
		ReferenceDigest: f.Digest, ArtifactType: f.ArtifactType, Message: f.Message, Extensions: f.Extensions,
	}
	if !r.IsSuccess {
		r.ErrorReason, r.Remediation = string(f.Reason), policy.Fix(f.Remediation, f.Command)
	}
	return r
}

// pinned returns the value of a mutation item: the image as the user wrote it, followed by
// the digest. It adds no host and no tag, so that users recognize their image. dropTag
// removes the tag. Without a digest, the image stays unchanged.
func pinned(key string, d *decision, dropTag bool) string {
	if d.result.Digest == "" {
		return key
	}
	name, _, _ := strings.Cut(key, "@")
	if dropTag {
		// A colon after the last slash begins the tag; an earlier one is a port.
		if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
			name = name[:colon]
		}
	}
	return name + "@" + d.result.Digest.String()
}

// answer is a ProviderResponse before encoding.
type answer interface {
	// appendJSON appends the ProviderResponse to b.
	appendJSON(b []byte) ([]byte, error)
	// size estimates the bytes of a long answer: many reports have a megabyte.
	size() (bytes int)
}

// verified is the answer to a verification whose every target is decided.
type verified struct {
	brief     bool // with a [brief] for each image
	plan      plan
	decisions []decision
	traceID   string
	now       time.Time
}

func (v verified) size() (bytes int) {
	if v.brief {
		return 0 // it is short
	}
	most := reportRoom(len(v.plan.keys))
	for _, d := range v.decisions {
		bytes += valueBytes
		for _, f := range d.result.Findings[:min(len(d.result.Findings), most)] {
			bytes += reportBytes + len(f.Message) + len(f.Remediation) + len(f.Command)
		}
	}
	return bytes
}

func (v verified) appendJSON(b []byte) ([]byte, error) {
	explained := 0 // denials and warnings to show
	for i := range v.decisions {
		if verdict := &v.decisions[i].result.Verdict; !v.decisions[i].answer.Allows() || verdict.Warning != "" {
			explained += 1 + len(verdict.Others)
		}
	}
	room, most := reasonRoom(explained), reportRoom(len(v.plan.keys))
	type span struct{ from, to int }
	values := make([]span, len(v.decisions)) // keys of one image share a value
	var err error
	b = append(b, responseHead...)
	b = strconv.AppendBool(b, v.plan.pinned())
	for i, k := range v.plan.keys {
		if len(b) > maxAnswerBytes {
			return b, errAnswerTooLarge // the rest would only take memory
		}
		if i == 0 {
			b = append(b, `,"items":[`...)
		} else {
			b = append(b, ',')
		}
		b = append(appendString(append(b, `{"key":`...), k.key), ',')
		if k.err != nil {
			b = appendString(append(b, `"error":`...), k.malformed()+traced(v.traceID))
			b = append(b, '}')
			continue
		}
		b = append(b, `"value":`...)
		if known := values[k.target]; known.to > 0 {
			b = append(b, b[known.from:known.to]...)
		} else {
			from := len(b)
			if d := &v.decisions[k.target]; v.brief {
				b = newBrief(d, v.traceID, room).appendJSON(b)
			} else {
				full := newValue(d, v.traceID, v.now, room, most)
				if b, err = full.appendJSON(b); err != nil {
					return b, err
				}
			}
			values[k.target] = span{from, len(b)}
		}
		b = append(b, '}')
	}
	if len(v.plan.keys) > 0 {
		b = append(b, ']')
	}
	return append(b, "}}\n"...), nil
}

// responseHead is the beginning of a ProviderResponse, up to the value of idempotent.
const responseHead = `{"apiVersion":"` + apiVersion + `","kind":"` + string(externaldata.ProviderResponseKind) +
	`","response":{"idempotent":`

// pinned reports whether all images have a digest. A verdict about a tag is not idempotent:
// the tag may be another image next time.
func (p plan) pinned() bool {
	return !slices.ContainsFunc(p.targets, func(t target) bool { return t.ref.Digest == "" })
}

// mutated returns the items of a mutation whose every target is decided.
func (p plan) mutated(decisions []decision, dropTag bool, traceID string) []externaldata.Item {
	items := make([]externaldata.Item, len(p.keys))
	for i, k := range p.keys {
		items[i].Key = k.key
		switch answer, _ := k.answer(decisions); {
		case answer.Allows():
			items[i].Value = pinned(k.key, &decisions[k.target], dropTag)
		case answer == verify.AnswerInvalid:
			items[i].Error = k.malformed() + traced(traceID)
		default:
			items[i].Error = decisions[k.target].text(maxReasonBytes) + traced(traceID)
		}
	}
	return items
}

// traced is the end of every text that refers to the log.
func traced(traceID string) string { return " (traceID " + traceID + ")" }

// plain is an answer with items or a system error, never both. Its idempotent field
// is always true, even for tags: Gatekeeper refuses a mutation without it.
type plain struct {
	list        []externaldata.Item
	systemError string
}

func (plain) size() int { return 0 }

func (r plain) appendJSON(b []byte) ([]byte, error) {
	response := externaldata.ProviderResponse{
		APIVersion: apiVersion, Kind: externaldata.ProviderResponseKind,
		Response: externaldata.Response{Idempotent: true, Items: r.list, SystemError: r.systemError},
	}
	if r.systemError != "" {
		response.Response.Items = nil
	}
	return appendAny(b, &response)
}

var errAnswerTooLarge = errors.New("the answer is too large")

// encode replaces the content of buffer by an answer.
func encode(buffer *bytes.Buffer, a answer) error {
	buffer.Reset()
	buffer.Grow(a.size())
	text, err := a.appendJSON(buffer.AvailableBuffer())
	if errors.Is(err, errAnswerTooLarge) || len(text) > maxAnswerBytes {
		return deny(http.StatusInternalServerError, fewerImages, "the answer about the images is larger than %d bytes", maxAnswerBytes)
	}
	if err != nil {
		return fmt.Errorf("encode the response: %w", err)
	}
	*buffer = *bytes.NewBuffer(text) // no copy in the common case
	return nil
}

// shown quotes a client's text for messages and logs: short, on one line, ASCII.
func shown(s string) string { return strconv.QuoteToASCII(policy.Cut(s, maxShownKeyBytes)) }

// reasonRoom returns the limit in bytes for each reason of an answer with that many
// denials, so that the whole text stays readable.
func reasonRoom(denied int) int {
	return max(minReasonBytes, min(maxReasonBytes, maxReasonsBytes/max(denied, 1)))
}

// reportRoom returns the limit for the reports in each of so many items.
func reportRoom(items int) int {
	return max(minReports, min(maxReports, maxAnswerReports/max(items, 1)))
}

// tryAgain is the end of the text about undecided images, once for all of them.
const tryAgain = "try again"

// undecidedText returns the system error of a request with undecided keys: a line per denied
// key and per undecided key, as many as fit. It sorts the lines, because templates do too.
// Denied keys come first: a retry does not change them.
func undecidedText(p plan, decisions []decision, e endpoint) string {
	var undecided, denied []string
	for _, k := range p.keys {
		switch answer, _ := k.answer(decisions); answer {
		case verify.AnswerAllowed, verify.AnswerUnverified, verify.AnswerWarned, verify.AnswerByException:
		case verify.AnswerUndecided:
			undecided = append(undecided, undecidedHead+k.about("could not be decided", p.targets[k.target].namespace, e)+
				decisions[k.target].text(maxReasonBytes))
		case verify.AnswerDenied:
			denied = append(denied, k.about("is denied", p.targets[k.target].namespace, e)+decisions[k.target].text(maxReasonBytes))
		case verify.AnswerInvalid:
			denied = append(denied, k.malformed())
		}
	}
	more := "… and %d more" // with or without the head, it sorts after every other line
	room := maxSystemErrorBytes - len(undecidedHead) - len(more) - len("\n; "+tryAgain)
	entries := append(denied, undecided...)
	fit := 0
	for fit < len(entries) && len("\n")+len(entries[fit]) <= room {
		room -= len("\n") + len(entries[fit])
		fit++
	}
	lines := slices.Sorted(slices.Values(entries[:fit]))
	if fit >= len(denied) {
		more = undecidedHead + more // all of them
	}
	if fit < len(entries) {
		lines = append(lines, fmt.Sprintf(more, len(entries)-fit))
	}
	text := strings.Join(lines, "\n")
	if !strings.Contains(text, tryAgain) {
		text += "; " + tryAgain
	}
	return text
}

// about returns the start of a sentence about the image of a parsed key, as the user wrote
// it.
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
