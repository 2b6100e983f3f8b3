package provider

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// Answers to verifications are encoded field by field, in half the time of
// encoding/json (`go test ./pkg/server/provider -bench Encode`): encoding is the largest
// part of a warm request's own cost. A fuzz test compares both.

// appendJSON appends v as encoding/json would write it.
func (v *value) appendJSON(b []byte) ([]byte, error) {
	b = appendString(append(b, `{"version":`...), v.Version)
	b = strconv.AppendBool(append(b, `,"isSuccess":`...), v.IsSuccess)
	b = strconv.AppendBool(append(b, `,"succeeded":`...), v.Succeeded)
	b = appendString(append(b, `,"traceID":`...), v.TraceID)
	b = appendString(append(b, `,"timestamp":`...), v.Timestamp)
	b = append(b, `,"verifierReports":[`...)
	var err error
	for i := range v.VerifierReports {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = v.VerifierReports[i].appendJSON(b); err != nil {
			return b, err
		}
	}
	b = appendString(append(b, `],"digest":`...), v.Digest)
	b = appendString(append(b, `,"namespace":`...), v.Namespace)
	b = v.Policy.appendJSON(append(b, `,"policy":{`...))
	b = appendString(append(b, `},"reason":`...), v.Reason)
	if v.Warning != "" {
		b = appendString(append(b, `,"warning":`...), v.Warning)
	}
	if v.Exception != nil {
		b = v.Exception.appendJSON(append(b, `,"exception":{`...))
		b = append(appendString(append(b, `,"until":`...), v.Exception.Until), '}')
	}
	return append(b, '}'), nil
}

// appendJSON appends the fields of p.
func (p policyRef) appendJSON(b []byte) []byte {
	b = appendString(append(b, `"kind":`...), p.Kind)
	if p.Namespace != "" {
		b = appendString(append(b, `,"namespace":`...), p.Namespace)
	}
	return appendString(append(b, `,"name":`...), p.Name)
}

func (r *verifierReport) appendJSON(b []byte) ([]byte, error) {
	b = appendString(append(b, `{"subject":`...), r.Subject)
	b = strconv.AppendBool(append(b, `,"isSuccess":`...), r.IsSuccess)
	b = appendString(append(b, `,"name":`...), r.Name)
	b = appendString(append(b, `,"verifierName":`...), r.VerifierName)
	b = appendString(append(b, `,"type":`...), r.Type)
	b = appendString(append(b, `,"verifierType":`...), r.VerifierType)
	b = appendString(append(b, `,"referenceDigest":`...), r.ReferenceDigest)
	b = appendString(append(b, `,"artifactType":`...), r.ArtifactType)
	b = appendString(append(b, `,"message":`...), r.Message)
	if r.ErrorReason != "" {
		b = appendString(append(b, `,"errorReason":`...), r.ErrorReason)
	}
	if r.Remediation != "" {
		b = appendString(append(b, `,"remediation":`...), r.Remediation)
	}
	if len(r.Extensions) > 0 {
		var err error
		if b, err = appendValue(append(b, `,"extensions":`...), r.Extensions); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}

// appendValue appends v, a value of extensions, as encoding/json would write it.
func appendValue(b []byte, v any) (_ []byte, err error) {
	switch v := v.(type) {
	case string:
		return appendString(b, v), nil
	case map[string]any:
		if v == nil {
			break
		}
		keys := make([]string, 0, 16) // stays on the stack
		for key := range v {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		b = append(b, '{')
		for i, key := range keys {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendValue(append(appendString(b, key), ':'), v[key]); err != nil {
				return b, err
			}
		}
		return append(b, '}'), nil
	case []string:
		return appendList(b, v)
	case []map[string]any:
		return appendList(b, v)
	}
	return appendAny(b, v)
}

func appendList[T any](b []byte, list []T) (_ []byte, err error) {
	if list == nil {
		return append(b, "null"...), nil
	}
	b = append(b, '[')
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendValue(b, list[i]); err != nil {
			return b, err
		}
	}
	return append(b, ']'), nil
}

// appendString appends s as a JSON string.
func appendString(b []byte, s string) []byte {
	from := len(b) + 1
	if b = append(append(append(b, '"'), s...), '"'); unescaped(b[from : from+len(s)]) {
		return b
	}
	escaped, err := appendAny(b[:from-1], s)
	if err != nil {
		return append(b[:from-1], `""`...) // never happens: every string can be encoded
	}
	return escaped
}

// unescaped reports whether text only has ASCII characters that JSON does not escape. It checks eight bytes at a
// time: for each, subtraction sets the highest bit of a byte that is too small.
func unescaped(text []byte) bool {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	for ; len(text) >= 8; text = text[8:] {
		word := binary.LittleEndian.Uint64(text)
		quote, backslash, del := word^(ones*'"'), word^(ones*'\\'), word^(ones*0x7f)
		if (word|(word-ones*' ')|(quote-ones)|(backslash-ones)|(del-ones))&high != 0 {
			return false
		}
	}
	return !slices.ContainsFunc(text, func(c byte) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' })
}

// appendAny appends v as encoding/json does, without escapes for HTML.
func appendAny(b []byte, v any) ([]byte, error) {
	buffer := bytes.NewBuffer(b)
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return b, fmt.Errorf("encode %T: %w", v, err)
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), nil
}
