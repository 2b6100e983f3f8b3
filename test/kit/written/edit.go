package written

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// Edit changes one value at or below object: what it is, or whether and how often it is there.
func Edit(d *rand.Rand, object map[string]any) {
	keys := slices.Sorted(maps.Keys(object))
	if len(keys) == 0 {
		return
	}
	key := keys[d.IntN(len(keys))]
	switch value := object[key].(type) {
	case map[string]any:
		if d.IntN(4) > 0 {
			Edit(d, value)
			return
		}
		object[key] = map[string]any{}
	case []any:
		object[key] = editList(d, value)
	default:
		if d.IntN(5) == 0 {
			delete(object, key)
			return
		}
		object[key] = otherScalar(d, value)
	}
}

func editList(d *rand.Rand, list []any) []any {
	if len(list) == 0 || d.IntN(4) == 0 {
		return []any{}
	}
	i := d.IntN(len(list))
	if d.IntN(4) == 0 {
		return append(list, slices.Repeat(list[i:i+1], 300)...)
	}
	if inner, ok := list[i].(map[string]any); ok {
		Edit(d, inner)
	} else {
		list[i] = otherScalar(d, list[i])
	}
	return list
}

func otherScalar(d *rand.Rand, was any) any {
	switch was := was.(type) {
	case string:
		texts := []any{"", "Perhaps", "x y", "UPPER", was + "*", "*", "-1h", "ftp://x", strings.Repeat("x", 70), strings.Repeat("x", 5000), was + "\n", "system:x"}
		return texts[d.IntN(len(texts))]
	case bool:
		return !was
	default:
		return []any{-1, 0, 1 << 30, 101}[d.IntN(4)]
	}
}
