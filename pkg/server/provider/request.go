package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"os"
	"sync/atomic"

	"github.com/open-policy-agent/frameworks/constraint/pkg/externaldata"

	"github.com/landwaiter/landwaiter/pkg/decide/fair"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// apiVersion is the only version of the protocol that Gatekeeper speaks.
const apiVersion = "externaldata.gatekeeper.sh/v1beta1"

// refusal is the error of a request that gets no items.
type refusal struct {
	status int // HTTP status; Gatekeeper reads the body regardless
	text   string
}

// Error returns the text of the system error.
func (r *refusal) Error() string { return r.text }

// Each line of a system error begins with one of these, or with "image" for a denied image. An
// audit reports each line as a violation, so its start must distinguish undecided from denied.
const (
	undecidedHead = "undecided: "
	deniedHead    = "denied: "
)

// refuse returns a refusal that leaves the images undecided.
func refuse(status int, format string, arguments ...any) *refusal {
	return &refusal{status: status, text: undecidedHead + fmt.Sprintf(format, arguments...)}
}

// deny returns a refusal that a retry does not change.
func deny(status int, fix, format string, arguments ...any) *refusal {
	return &refusal{status: status, text: deniedHead + policy.Verdict{Reason: fmt.Sprintf(format, arguments...), Remediation: fix}.Text()}
}

// fewerImages is the fix for an object with too many images.
const fewerImages = "split the object into several with fewer different images each"

// readKeys returns the keys of a request, which must be a POST of JSON within the limits, of
// the version and kind that Gatekeeper sends. It ignores unknown fields, because a later
// Gatekeeper may add some, and refuses anything after the JSON value. A request without keys
// is valid: Gatekeeper omits an empty list.
func readKeys(w http.ResponseWriter, r *http.Request, buffer *bytes.Buffer) ([]string, *refusal) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return nil, refuse(http.StatusMethodNotAllowed, "the method is %s, it must be POST", shown(r.Method))
	}
	if !isJSON(r.Header.Get("Content-Type")) {
		return nil, refuse(http.StatusUnsupportedMediaType, "the content type is not application/json")
	}
	if _, err := buffer.ReadFrom(http.MaxBytesReader(w, r.Body, maxBodyBytes)); err != nil {
		return nil, refuseBody(err)
	}
	return decodeKeys(buffer.Bytes())
}

func isJSON(contentType string) bool {
	if contentType == "application/json" {
		return true
	}
	mediaType, _, err := mime.ParseMediaType(contentType)
	return err == nil && mediaType == "application/json"
}

func refuseBody(err error) *refusal {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return deny(http.StatusRequestEntityTooLarge, fewerImages, "the request about the images is larger than %d bytes", maxBodyBytes)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refuse(http.StatusRequestTimeout, "the request did not arrive in time")
	}
	return refuse(http.StatusBadRequest, "the request could not be read to its end")
}

// The bytes of a request before and after its keys, as Gatekeeper's encoder writes them.
const (
	requestHead = `{"apiVersion":"` + apiVersion + `","kind":"` + string(externaldata.ProviderRequestKind) + `","request":{"keys":["`
	requestTail = `"]}}`
)

// usualKeys returns the keys of a body in the form that Gatekeeper writes for images: without
// escapes. Any other body is for encoding/json, which takes five times as long.
func usualKeys(body []byte) (keys []string, usual bool) {
	body, usual = bytes.CutPrefix(bytes.TrimSuffix(body, []byte("\n")), []byte(requestHead))
	if !usual {
		return nil, false
	}
	if body, usual = bytes.CutSuffix(body, []byte(requestTail)); !usual {
		return nil, false
	}
	for key := range bytes.SplitSeq(body, []byte(`","`)) {
		if !unescaped(key) {
			return nil, false
		}
		keys = append(keys, string(key))
	}
	return keys, true
}

// decodeKeys parses the body of a request.
func decodeKeys(body []byte) ([]string, *refusal) {
	keys, usual := usualKeys(body)
	var request externaldata.ProviderRequest
	var err error
	if usual {
		request.APIVersion, request.Kind = apiVersion, externaldata.ProviderRequestKind
	} else {
		err = json.Unmarshal(body, &request)
		keys = request.Request.Keys
	}
	switch {
	case err != nil:
		return nil, refuse(http.StatusBadRequest, "the request is not one JSON object as Gatekeeper sends it: %s",
			policy.Cut(err.Error(), maxReasonBytes))
	case request.APIVersion != apiVersion:
		return nil, refuse(http.StatusBadRequest, "the request's apiVersion is %s, only %s is supported", shown(request.APIVersion), apiVersion)
	case request.Kind != externaldata.ProviderRequestKind:
		return nil, refuse(http.StatusBadRequest, "the request's kind is %s, it must be %s", shown(string(request.Kind)),
			externaldata.ProviderRequestKind)
	case len(keys) > maxKeys:
		return nil, deny(http.StatusRequestEntityTooLarge, fewerImages, "the request is about %d images, the limit is %d", len(keys), maxKeys)
	}
	for _, key := range keys {
		if len(key) > maxKeyBytes {
			return nil,
				deny(http.StatusRequestEntityTooLarge, "use a shorter name", "an image and its namespace are %d bytes long, the limit is %d: %s",
					len(key), maxKeyBytes, shown(key))
		}
	}
	return keys, nil
}

// distinctKey is a key and its target. A plan holds each key once.
type distinctKey struct {
	key    string
	target int   // index into plan.targets; -1 if err is set
	err    error // set if the key is malformed
	// namespace is the namespace of a malformed key, unless its tag is the error.
	namespace verify.Namespace
	contact   string // the contact for a malformed key
}

// plan holds the distinct keys and the distinct targets of a request, in the order
// of their first appearance.
type plan struct {
	keys    []distinctKey
	targets []target
}

// plan parses keys, and stops at the first image past maxImages.
func (e endpoint) plan(keys []string, parse parser) (plan, *refusal) {
	usual := min(len(keys), maxImages)
	p := plan{keys: make([]distinctKey, 0, usual), targets: make([]target, 0, usual)}
	seen := make(map[string]struct{}, usual)
	numbers := make(map[target]int, usual)
	malformed := 0
	for _, key := range keys {
		if _, again := seen[key]; again {
			continue
		}
		seen[key] = struct{}{}
		t, err := e.parseKey(key, parse)
		if err != nil {
			malformed++
			p.keys = append(p.keys, distinctKey{key: key, target: -1, err: err, namespace: t.namespace})
		} else {
			p.keys = append(p.keys, distinctKey{key: key, target: p.number(t, numbers)})
		}
		if malformed+len(p.targets) > maxImages {
			return plan{}, deny(http.StatusRequestEntityTooLarge, fewerImages, "the request is about more than %d different images", maxImages)
		}
	}
	return p, nil
}

// number returns the index of a target, and adds the target if it is new. A verdict is about a
// digest, so targets that only differ in the tag before it are merged into one without a tag.
func (p *plan) number(t target, numbers map[target]int) int {
	canonical := t
	if t.ref.Digest != "" {
		canonical.ref.Tag = ""
	}
	number, known := numbers[canonical]
	switch {
	case !known:
		number = len(p.targets)
		numbers[canonical] = number
		p.targets = append(p.targets, t)
	case p.targets[number] != t:
		p.targets[number] = canonical
	}
	return number
}

// places are the places that one request holds: one for each of its distinct keys, in its
// account. They are returned when the request is answered and all of its workers have
// finished, so that work that ignores its deadline stays counted.
type places struct {
	gate *fair.Gate[verify.Account]
	held []verify.Account // one for each place
	// payer is the account of the first key. It pays for the request's own processor time.
	payer verify.Account
	refs  atomic.Int64
}

// enter takes the places of a request, one by one, so that a few large requests of different
// accounts leave room, too. Malformed keys belong to nobody, but stay in memory as long as the
// others, so the account of the first key pays for them. If an account has too many keys, enter
// returns that account and holds no places.
func (h *handler) enter(plan plan) (*places, verify.Account, bool) {
	p := &places{gate: h.door, held: make([]verify.Account, 0, len(plan.keys))}
	p.refs.Store(1)
	malformed := 0
	for _, key := range plan.keys {
		if key.err != nil {
			malformed++
			continue
		}
		account := h.decider.Account(plan.targets[key.target].namespace)
		if len(p.held) == 0 {
			p.payer = account
		}
		if !p.take(account) {
			return nil, account, false
		}
	}
	if len(p.held) == 0 {
		malformed = 0 // the answer is known
	}
	for range malformed {
		if !p.take(p.payer) {
			return nil, p.payer, false
		}
	}
	return p, "", true
}

// take takes one place, or returns all.
func (p *places) take(account verify.Account) bool {
	if !p.gate.Take(account, 1, 0) {
		p.leave()
		return false
	}
	p.held = append(p.held, account)
	return true
}

// join shares the places with a worker, which must leave. It reports false if they were
// already returned.
func (p *places) join() bool {
	for {
		n := p.refs.Load()
		if n <= 0 {
			return false
		}
		if p.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// leave returns the places if nobody else shares them.
func (p *places) leave() {
	if p.refs.Add(-1) > 0 {
		return
	}
	for _, account := range p.held {
		p.gate.Return(account, 1)
	}
}
