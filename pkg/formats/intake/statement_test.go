package intake_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/formats/intake"
)

const sum = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func statement(predicate string) string {
	return `{"_type":"https://in-toto.io/Statement/v1","predicateType":"t","subject":[{"digest":{"sha256":"` + sum + `"}}],"predicate":` + predicate + `}`
}

func TestStatementsAreReadStrictly(t *testing.T) {
	s, err := intake.ParseStatement([]byte(statement(`{"a":1}`)))
	require.NoError(t, err)
	require.Equal(t, "t", s.PredicateType)
	require.Equal(t, []string{sum}, s.Digests)
	require.Equal(t, map[string]any{"a": json.Number("1")}, s.Predicate)
	for name, text := range map[string]string{
		"no JSON": "x", "a list": "[]", "empty": "{}",
		"another version":         strings.Replace(statement("{}"), "/v1", "/v2", 1),
		"no predicate type":       strings.Replace(statement("{}"), `"predicateType":"t",`, "", 1),
		"predicate type, no text": strings.Replace(statement("{}"), `"t"`, "7", 1),
		"another case":            strings.Replace(statement("{}"), "predicateType", "PredicateType", 1),
		"twice":                   strings.Replace(statement("{}"), `"predicateType":"t",`, `"predicateType":"t","predicateType":"u",`, 1),
		"no subject":              strings.Replace(statement("{}"), "subject", "object", 1),
		"other digests":           strings.Replace(statement("{}"), "sha256", "sha512", 1),
		"damaged digest":          strings.Replace(statement("{}"), "0123", "zzzz", 1),
		"upper case":              strings.Replace(statement("{}"), "abcdef", "ABCDEF", 1),
		"short digest":            strings.Replace(statement("{}"), "0123", "", 1),
		"a digest that is none":   strings.Replace(statement("{}"), `{"sha256"`, `{"size":1,"sha256"`, 1),
		"a subject that is none":  strings.Replace(statement("{}"), `"subject":[`, `"subject":[1,`, 1),
		"a subject without any":   strings.Replace(statement("{}"), `"subject":[`, `"subject":[{"name":"x"},`, 1),
		"too deep":                statement(strings.Repeat("[", 80) + strings.Repeat("]", 80)),
		"trailing":                statement("{}") + "{}",
	} {
		_, err := intake.ParseStatement([]byte(text))
		require.Error(t, err, name)
	}
}

func FuzzParseStatement(f *testing.F) {
	f.Add([]byte(statement(`{"a":[1,{"b":null}]}`)))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := intake.ParseStatement(data)
		if err != nil {
			return
		}
		require.NotEmpty(t, s.Digests)
		require.NotEmpty(t, s.PredicateType)
	})
}
