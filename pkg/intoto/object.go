package intoto

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"
)

// ParseObject parses one JSON object that nests at most maxDepth deep. Unlike
// encoding/json it refuses duplicate names, invalid UTF-8 and deep nesting, and it
// distinguishes the case of names: two parsers must not see two documents in the same
// signed bytes. RFC 8259 section 4 does not ensure that ("The names within an object
// SHOULD be unique"). Numbers are [json.Number].
func ParseObject(data []byte, maxDepth int) (map[string]any, error) {
	if !utf8.Valid(data) || !json.Valid(data) {
		return nil, errors.New("is not JSON")
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	value, err := parseValue(decoder, maxDepth)
	if err != nil {
		return nil, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("is not a JSON object")
	}
	return object, nil
}

// parseValue parses a value that nests at most depth deep.
func parseValue(decoder *json.Decoder, depth int) (any, error) {
	if depth < 0 {
		return nil, errors.New("nests too deep")
	}
	token, err := decoder.Token()
	if err != nil {
		return nil, errors.New("is not JSON")
	}
	switch token {
	case json.Delim('{'):
		return parseMembers(decoder, depth)
	case json.Delim('['):
		var list []any
		for decoder.More() {
			value, err := parseValue(decoder, depth-1)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		_, err := decoder.Token()
		return list, err
	}
	return token, nil
}

func parseMembers(decoder *json.Decoder, depth int) (any, error) {
	object := map[string]any{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, errors.New("is not JSON")
		}
		name, ok := token.(string)
		if !ok {
			return nil, errors.New("is not JSON")
		}
		if _, twice := object[name]; twice {
			return nil, errors.New("has a name twice")
		}
		if object[name], err = parseValue(decoder, depth-1); err != nil {
			return nil, err
		}
	}
	_, err := decoder.Token()
	return object, err
}
