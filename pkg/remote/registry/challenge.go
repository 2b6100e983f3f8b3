package registry

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// challenge is one way to authenticate that a server offers (RFC 9110 section 11.3).
type challenge struct {
	scheme     string            // in lower case
	parameters map[string]string // by names in lower case
}

const headerChallenge = "WWW-Authenticate"

// parseChallenges reads the challenges of all headers of that name: a header may have several, with commas between
// them and between the parameters of each (RFC 9110 section 11.6.1). It skips anything that it does not
// understand.
func parseChallenges(headers []string) (all []challenge) {
	for _, text := range headers {
		first := len(all) // a parameter belongs to a challenge of its own header
		for text = strings.TrimLeft(text, " \t,"); text != "" && len(all) < maxChallenges; text = strings.TrimLeft(text, " \t,") {
			name, rest := token(text)
			after := strings.TrimLeft(rest, " \t")
			switch {
			case name == "":
				text = skipped(text)
			case strings.HasPrefix(after, "=") && len(all) > first:
				var value string
				value, text = parameterValue(strings.TrimLeft(after[1:], " \t"))
				latest := all[len(all)-1].parameters
				if name = strings.ToLower(name); len(latest) < maxChallengeParameters {
					if _, twice := latest[name]; !twice {
						latest[name] = value
					}
				}
			case strings.HasPrefix(after, "="):
				text = skipped(after)
			default:
				all = append(all, challenge{strings.ToLower(name), map[string]string{}})
				text = rest
			}
		}
	}
	return all
}

// token splits text after its first token (RFC 9110 section 5.6.2).
func token(text string) (first, rest string) {
	end := strings.IndexFunc(text, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
	if end < 0 {
		return text, ""
	}
	return text[:end], text[end:]
}

// parameterValue reads a value, which is quoted or ends at the next comma.
func parameterValue(text string) (value, rest string) {
	if !strings.HasPrefix(text, `"`) {
		value, rest, _ = strings.Cut(text, ",")
		return strings.TrimSpace(value), rest
	}
	var unquoted strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return unquoted.String(), text[i+1:]
		case c == '\\' && i+1 < len(text):
			i++
			unquoted.WriteByte(text[i])
		default:
			unquoted.WriteByte(c)
		}
	}
	return unquoted.String(), "" // it does not end
}

// skipped returns text after its next unquoted comma.
func skipped(text string) string {
	quoted := false
	for i := range len(text) {
		switch text[i] {
		case '"':
			quoted = !quoted
		case ',':
			if !quoted {
				return text[i+1:]
			}
		}
	}
	return ""
}

// String returns the challenge as a header.
func (c challenge) String() string {
	text := c.scheme
	if text != "" {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	separator := " "
	for _, name := range []string{"realm", "service", "scope", "error"} {
		if value, there := c.parameters[name]; there {
			text, separator = text+separator+name+"="+strconv.Quote(value), ","
		}
	}
	return text
}

// choose returns the challenge that suits a credential: the one of a permitted token server, else Basic for a
// password. Without either it returns one of a forbidden token server, whose error says what to do, or the first one.
func choose(all []challenge, credential Credential, trusted func(realm string) bool) (challenge, bool) {
	for _, suits := range []func(challenge) bool{
		func(c challenge) bool { return c.scheme == "bearer" && trusted(c.parameters["realm"]) },
		func(c challenge) bool { return c.scheme == "basic" && credential.Username+credential.Password != "" },
		func(c challenge) bool { return c.scheme == "bearer" && c.parameters["realm"] != "" },
		func(challenge) bool { return true },
	} {
		if i := slices.IndexFunc(all, suits); i >= 0 {
			return all[i], true
		}
	}
	return challenge{}, false
}

// answerOne leaves one challenge in an answer, because oras-go only reads the first one.
func answerOne(resp *http.Response, credential Credential, trusted func(realm string) bool) (challenge, bool) {
	chosen, there := choose(parseChallenges(resp.Header.Values(headerChallenge)), credential, trusted)
	if there {
		resp.Header.Set(headerChallenge, chosen.String())
	}
	return chosen, there
}
