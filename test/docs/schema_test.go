package docs

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// quoted returns words as code, with commas.
func quoted(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return "`" + strings.Join(words, "`, `") + "`"
}

// typeOf returns the type of a field with its bounds, in words.
func typeOf(s *schema) string {
	switch {
	case s.Items != nil && s.Items.Schema != nil:
		text := "list of " + plural(typeOf(s.Items.Schema)) + bounded(s.MinItems, s.MaxItems, "entry", "entries")
		if s.XListType != nil && *s.XListType == "set" {
			text += ", each once"
		}
		if len(s.XListMapKeys) > 0 {
			text += ", one for each " + strings.Join(s.XListMapKeys, " and ")
		}
		return text
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return "map of " + plural(typeOf(s.AdditionalProperties.Schema)) + bounded(s.MinProperties, s.MaxProperties, "key", "keys")
	case s.XIntOrString:
		return "integer or string"
	case len(s.Enum) > 0:
		var values []string
		for _, value := range s.Enum {
			values = append(values, strings.Trim(string(value.Raw), `"`))
		}
		return "one of " + quoted(values)
	case s.Type == "integer", s.Type == "number":
		return s.Type + between(s)
	}
	text := s.Type
	if s.Format == "date-time" {
		text = "time (RFC 3339)"
	}
	text += bounded(s.MinLength, s.MaxLength, "character", "characters")
	if s.Pattern != "" {
		text += ", " + inWords(s.Pattern)
	}
	return text
}

// plural makes the first word of a type plural.
func plural(text string) string {
	word, rest, found := strings.Cut(text, ",")
	switch word {
	case "string", "object", "integer", "boolean":
		word += "s"
	default:
		return text
	}
	if !found {
		return word
	}
	return word + " (" + strings.TrimSpace(rest) + ")"
}

// bounded returns how many there may be.
func bounded(low, high *int64, one, many string) string {
	switch {
	case low != nil && high != nil && *low == *high:
		return fmt.Sprintf(", %d %s", *high, many)
	case low != nil && high != nil && *low > 0:
		return fmt.Sprintf(", %d to %d %s", *low, *high, many)
	case high != nil:
		return fmt.Sprintf(", at most %d %s", *high, many)
	case low != nil && *low == 1:
		return ", at least 1 " + one
	case low != nil && *low > 1:
		return fmt.Sprintf(", at least %d %s", *low, many)
	}
	return ""
}

func between(s *schema) string {
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		return fmt.Sprintf(", %g to %g", *s.Minimum, *s.Maximum)
	case s.Minimum != nil:
		return fmt.Sprintf(", at least %g", *s.Minimum)
	case s.Maximum != nil:
		return fmt.Sprintf(", at most %g", *s.Maximum)
	}
	return ""
}

// inWords says what a pattern demands. One that has no words here is printed.
func inWords(pattern string) string {
	switch pattern {
	case "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$":
		return "lower-case letters, digits and dashes, with a letter or digit at both ends"
	case "^https://":
		return "begins with `https://`"
	case "^[a-z0-9][-a-z0-9]*-$":
		return "lower-case letters, digits and dashes, with a dash at the end"
	case `^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$`:
		return "`*`, or lower-case letters, digits and dashes"
	case `^(\*|\+)$`:
		return "`*` or `+`"
	case `^(\*$|x509\.subject:)`:
		return "`*`, or begins with `x509.subject:`"
	}
	hosts := strings.Contains(pattern, "[Ll][Oo][Cc][Aa][Ll][Hh][Oo][Ss][Tt]") // longer than any cell
	switch {
	case hosts && strings.HasPrefix(pattern, `^(\*\*|`) && strings.HasSuffix(pattern, "@sha256:[a-f0-9]{64})$"):
		return "an image pattern, or one digest"
	case hosts && strings.HasPrefix(pattern, `^(\*\*|`):
		return "an image pattern"
	case hosts && strings.Contains(pattern, `\{(repository|registry)\}`):
		return "a host and a path in lower case"
	case hosts && strings.Contains(pattern, `\*`):
		return "a host, `host:port`, or a pattern of these"
	case hosts:
		return "a host or `host:port`"
	case strings.Contains(pattern, `\{(repository|registry)\}`):
		return "a path in lower case"
	}
	if strings.HasPrefix(pattern, "^([0-9]") && strings.Contains(pattern, "|m|h)") {
		return "a duration such as `90m` or `24h`"
	}
	if strings.HasPrefix(pattern, "^[0-9]{4}-[0-9]{2}-[0-9]{2}T") {
		return "a time in RFC 3339, of the form `YYYY-MM-DDThh:mm:ssZ`"
	}
	return "matches `" + pattern + "`"
}

// defaultOf returns the default of a field.
func defaultOf(s *schema) string {
	switch {
	case s.Default == nil:
		return "optional"
	case strings.HasPrefix(string(s.Default.Raw), "["): // conditions
		var conditions []struct{ Type, Status, Reason string }
		if err := json.Unmarshal(s.Default.Raw, &conditions); err != nil || len(conditions) == 0 {
			break
		}
		var first []string
		for _, c := range conditions {
			first = append(first, fmt.Sprintf("`%s`: `%s`, `%s`", c.Type, c.Status, c.Reason))
		}
		return strings.Join(first, "; ")
	}
	return "`" + strings.Trim(string(s.Default.Raw), `"`) + "`"
}

var oneOf = regexp.MustCompile(`^(exactly|at most|at least) one of the fields in \[([\w ]+)\] (?:must|may) be set$`)

var lowerCase = regexp.MustCompile(`^[a-z]+$`)

// sentence returns the message of a rule as a sentence.
func sentence(rule apiextensionsv1.ValidationRule) string {
	text := strings.Join(strings.Fields(rule.Message), " ")
	if text == "" {
		text = "`" + rule.Rule + "`"
	}
	if found := oneOf.FindStringSubmatch(text); found != nil {
		names := strings.Fields(found[2])
		last := len(names) - 1
		verb := map[string]string{"exactly": "must", "at most": "may", "at least": "must"}[found[1]]
		text = found[1] + " one of `" + strings.Join(names[:last], "`, `") + "` and `" + names[last] + "` " + verb + " be set"
	}
	if first, _, _ := strings.Cut(text, " "); lowerCase.MatchString(first) { // not the name of a field
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	return text + "."
}

func TestTypesAndRulesAreSaidInWords(t *testing.T) {
	number := func(n int64) *int64 { return &n }
	low, high, set := 1.0, 8.0, "set"
	for want, s := range map[string]schema{
		"string, 1 to 253 characters": {Type: "string", MinLength: number(1), MaxLength: number(253)},
		"integer, 1 to 8":             {Type: "integer", Minimum: &low, Maximum: &high},
		"integer, at least 1":         {Type: "integer", Minimum: &low},
		"one of `A`, `B`":             {Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`"A"`)}, {Raw: []byte(`"B"`)}}},
		"list of strings (at most 9 characters), 1 to 4 entries, each once": {Type: "array", MinItems: number(1), MaxItems: number(4), XListType: &set,
			Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &schema{Type: "string", MaxLength: number(9)}}},
		"map of strings, at most 3 keys": {Type: "object", MaxProperties: number(3),
			AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &schema{Type: "string"}}},
		"string, begins with `https://`":    {Type: "string", Pattern: "^https://"},
		"string, matches `^[^{}/]+$`":       {Type: "string", Pattern: "^[^{}/]+$"},
		"integer or string":                 {XIntOrString: true},
		"boolean":                           {Type: "boolean"},
		"time (RFC 3339)":                   {Type: "string", Format: "date-time"},
		"list of objects, at least 1 entry": {Type: "array", MinItems: number(1), Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &schema{Type: "object"}}},
	} {
		require.Equal(t, want, typeOf(&s))
	}
	require.Equal(t, "Exactly one of `a`, `b` and `c` must be set.",
		sentence(apiextensionsv1.ValidationRule{Message: "exactly one of the fields in [a b c] must be set"}))
	require.Equal(t, "Use one.", sentence(apiextensionsv1.ValidationRule{Message: "use one"}))
}
