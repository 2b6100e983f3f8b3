package cosign

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// parseObject reads one JSON object. Unlike encoding/json it refuses duplicate
// names, invalid UTF-8 and deep nesting, and names keep their case: two readers
// must not see two documents in the same signed bytes (RFC 8259 section 4).
func parseObject(data []byte) (map[string]any, error) {
	if !utf8.Valid(data) || !json.Valid(data) {
		return nil, errors.New("is not JSON")
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	value, err := parseValue(decoder, 0)
	if err != nil {
		return nil, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("is not a JSON object")
	}
	return object, nil
}

func parseValue(decoder *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nests deeper than %d", maxDepth)
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
			value, err := parseValue(decoder, depth+1)
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
		if object[name], err = parseValue(decoder, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := decoder.Token()
	return object, err
}

// only reports whether object has no names but these.
func only(object map[string]any, names ...string) bool {
	known := 0
	for _, name := range names {
		if _, ok := object[name]; ok {
			known++
		}
	}
	return known == len(object)
}
