// Package intake bounds what strangers send, and reads it once, before any library parses
// it. Evidence is not signed until it is verified, so anyone who can push to a repository
// chooses its bytes. Scanning takes time in proportion to the bytes and memory in
// proportion to the allowed depth. The package is pure, and verifies no signature.
package intake

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Fault is the error of every function in this package. Its text quotes no evidence.
type Fault struct {
	limit bool
	text  string
}

// Error returns the fault as the end of a sentence that begins with "the …".
func (f *Fault) Error() string { return f.text }

// IsLimit reports whether err is about a limit. All other faults are malformed evidence.
func IsLimit(err error) bool {
	var fault *Fault
	return errors.As(err, &fault) && fault.limit
}

func malformed(format string, values ...any) error {
	return &Fault{text: fmt.Sprintf(format, values...)}
}

func pastLimit(format string, values ...any) error {
	return &Fault{limit: true, text: fmt.Sprintf(format, values...)}
}

// jsonLimits bound a JSON document. Zero means no limit, apart from depth.
type jsonLimits struct {
	depth, values int
	// members is the number of names that one object may have. If it is set, names must differ
	// in more than their case, because encoding/json ignores case.
	members int
	// expand is how many bytes of memory each byte may take as a tree of Go values.
	expand int
	// keep returns that tree for valid JSON. It refuses duplicate names in an object.
	keep bool
}

// JSON refuses a document that is not one JSON value, nests too deep, has too many values, or
// has an object with duplicate names, ignoring case.
func JSON(data []byte) error {
	return scanJSON(data, jsonLimits{depth: maxDepth, values: maxEnvelopeValues, members: maxMembers})
}

// Payload refuses a signed document that is not one JSON value, nests too deep or has too
// many values. Duplicate names are left to its parser.
func Payload(data []byte) error {
	return scanJSON(data, jsonLimits{depth: maxDepth, values: maxPayloadValues})
}

// List refuses a list of descriptors, such as a page of referrers (OCI distribution
// specification, "Listing Referrers"), that would take many times its size in memory.
func List(data []byte) error {
	return scanJSON(data, jsonLimits{depth: maxDepth, values: spareListValues + len(data)/minListValue})
}

// StatementMemory estimates the bytes of memory that a signed document would take as a tree of values. It
// refuses a document that would take many times its size.
func StatementMemory(data []byte) (int64, error) {
	s := newScanner(data, jsonLimits{depth: maxStatementDepth, expand: maxPredicate})
	most := s.budget
	_, err := s.document()
	return most - s.budget, err
}

func scanJSON(data []byte, limits jsonLimits) error {
	_, err := readJSON(data, limits)
	return err
}

func readJSON(data []byte, limits jsonLimits) (any, error) {
	return newScanner(data, limits).document()
}

func newScanner(data []byte, limits jsonLimits) *jsonScanner {
	return &jsonScanner{data: data, limits: limits, budget: int64(limits.expand)*int64(len(data)) + spare}
}

// document reads all data as one value.
func (s *jsonScanner) document() (any, error) {
	value, err := s.value(0)
	if err != nil {
		return nil, err
	}
	s.space()
	if s.at < len(s.data) {
		return nil, malformed("is not one JSON value")
	}
	return value, nil
}

// jsonScanner reads JSON (RFC 8259). Its values are nil unless they are kept.
type jsonScanner struct {
	data   []byte
	at     int
	values int
	budget int64
	limits jsonLimits
}

func notJSON() error { return malformed("is not JSON") }

// Memory that the values of [ParseObject] take, as measured: a slot in a list, which grows by
// doubling; a map with its first eight slots, and each further slot; the header of a string, and
// the decoding of one with escapes.
const slotBytes, mapBytes, memberBytes, headerBytes, escapeBytes = 80, 352, 96, 24, 256

func (s *jsonScanner) spend(bytes int) error {
	if s.limits.expand == 0 {
		return nil
	}
	if s.budget -= int64(bytes); s.budget < 0 {
		return pastLimit("would take more than %d times its size in memory", s.limits.expand)
	}
	return nil
}

func (s *jsonScanner) spendText(text []byte) error {
	if s.limits.expand > 0 && bytes.IndexByte(text, '\\') >= 0 {
		return s.spend(escapeBytes + 2*len(text))
	}
	return s.spend(headerBytes + len(text))
}

func (s *jsonScanner) value(depth int) (any, error) {
	s.values++
	switch {
	case depth > s.limits.depth:
		return nil, pastLimit("nests deeper than %d", s.limits.depth)
	case s.limits.values > 0 && s.values > s.limits.values:
		return nil, pastLimit("has more than %d values", s.limits.values)
	}
	s.space()
	if s.at == len(s.data) {
		return nil, notJSON()
	}
	switch c := s.data[s.at]; {
	case c == '{':
		return s.object(depth)
	case c == '[':
		return s.list(depth)
	case c == '"':
		token, err := s.text()
		if err != nil || !s.limits.keep {
			return nil, err
		}
		return decoded(token)
	case c == '-' || '0' <= c && c <= '9':
		return s.number()
	}
	return s.word()
}

// decoded returns the text of a string with its quotes.
func decoded(token []byte) (string, error) {
	if bytes.IndexByte(token, '\\') < 0 {
		return string(token[1 : len(token)-1]), nil
	}
	var text string
	if err := json.Unmarshal(token, &text); err != nil {
		return "", notJSON()
	}
	return text, nil
}

func (s *jsonScanner) object(depth int) (any, error) {
	var object map[string]any
	if s.limits.keep {
		object = map[string]any{}
	}
	s.at++
	if s.skip('}') {
		return object, s.spend(headerBytes)
	}
	if err := s.spend(mapBytes); err != nil {
		return nil, err
	}
	var names []string
	for count := 0; ; count++ {
		s.space()
		if s.at == len(s.data) || s.data[s.at] != '"' {
			return nil, notJSON()
		}
		token, err := s.text()
		if err != nil {
			return nil, err
		}
		if count >= 8 {
			if err := s.spend(memberBytes); err != nil {
				return nil, err
			}
		}
		if s.limits.members > 0 {
			if names, err = s.member(names, token); err != nil {
				return nil, err
			}
		}
		if !s.skip(':') {
			return nil, notJSON()
		}
		value, err := s.value(depth + 1)
		if err == nil && s.limits.keep {
			err = put(object, token, value)
		}
		if err != nil {
			return nil, err
		}
		switch {
		case s.skip('}'):
			return object, nil
		case !s.skip(','):
			return nil, notJSON()
		}
	}
}

// put adds a member to an object that is kept.
func put(object map[string]any, token []byte, value any) error {
	name, err := decoded(token)
	if err != nil {
		return err
	}
	if _, twice := object[name]; twice {
		return malformed("has a name twice")
	}
	object[name] = value
	return nil
}

// member adds a name to the names of its object.
func (s *jsonScanner) member(names []string, token []byte) ([]string, error) {
	name, err := decoded(token)
	if err != nil {
		return nil, err
	}
	if name = fold(name); len(names) >= s.limits.members {
		return nil, pastLimit("has an object with more than %d names", s.limits.members)
	}
	if slices.Contains(names, name) {
		return nil, malformed("has a name twice")
	}
	return append(names, name), nil
}

// fold maps names that encoding/json considers equal to the same text.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		return least
	}, name)
}

func (s *jsonScanner) list(depth int) (any, error) {
	var list []any
	s.at++
	if s.skip(']') {
		return list, nil
	}
	for {
		if err := s.spend(slotBytes); err != nil {
			return nil, err
		}
		value, err := s.value(depth + 1)
		if err != nil {
			return nil, err
		}
		if s.limits.keep {
			list = append(list, value)
		}
		switch {
		case s.skip(']'):
			return list, nil
		case !s.skip(','):
			return nil, notJSON()
		}
	}
}

// text reads a string and returns it with its quotes.
func (s *jsonScanner) text() ([]byte, error) {
	start := s.at
	for s.at++; s.at < len(s.data); s.at++ {
		switch c := s.data[s.at]; {
		case c == '"':
			s.at++
			if !utf8.Valid(s.data[start:s.at]) {
				return nil, malformed("is not UTF-8")
			}
			return s.data[start:s.at], s.spendText(s.data[start:s.at])
		case c < ' ':
			return nil, notJSON()
		case c == '\\':
			s.at++ // the parser judges the escape; here it only must not end the string
		}
	}
	return nil, notJSON()
}

func (s *jsonScanner) number() (any, error) {
	start := s.at
	for s.at < len(s.data) && strings.IndexByte("+-.0123456789Ee", s.data[s.at]) >= 0 {
		s.at++
	}
	if err := s.spend(headerBytes + s.at - start); err != nil || !s.limits.keep {
		return nil, err
	}
	return json.Number(s.data[start:s.at]), nil
}

func (s *jsonScanner) word() (any, error) {
	for _, word := range []struct {
		text  string
		value any
	}{{"true", true}, {"false", false}, {"null", nil}} {
		if bytes.HasPrefix(s.data[s.at:], []byte(word.text)) {
			s.at += len(word.text)
			return word.value, nil
		}
	}
	return nil, notJSON()
}

// skip skips c, after white space.
func (s *jsonScanner) skip(c byte) bool {
	s.space()
	if s.at < len(s.data) && s.data[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *jsonScanner) space() {
	for s.at < len(s.data) && (s.data[s.at] == ' ' || s.data[s.at] == '\n' || s.data[s.at] == '\t' || s.data[s.at] == '\r') {
		s.at++
	}
}
