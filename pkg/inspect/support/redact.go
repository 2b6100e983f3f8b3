package support

import (
	"regexp"
	"strings"
)

// redacted stands for what was taken out.
const redacted = "(redacted)"

// secretName ends the name of what is secret: password=x, "refreshToken": "x", X-Amz-Signature=x. Names that go
// on, such as password-file and tokenAudience, are of something else.
const secretName = `(?:password|passwd|passphrase|pwd|[a-z][_-]pass|token|credentials?|api[_-]?key|access[_-]?key|account[_-]?key|shared[_-]?key|client[_-]?secret|secret[_-]?(?:access[_-]?)?key|\b_?auth|registry-auth|x-(?:amz|goog)-signature|private[_-]?key|(?:\b|\\u0026)sig)`

// value is all of what a name is followed by: in quotes, which JSON in JSON escapes, or up to what ends a
// value in a query, in a list and in the connection strings of clouds.
const value = `(?:\\"(?:\\\\\\"|[^\\]|\\[^"])*\\"|"(?:[^"\\]|\\.)*(?:"|$)|'[^']*(?:'|$)|[^\s"'\\,;&]+)`

// What looks like a credential. The first group of each stays.
var (
	// privateKey may be in JSON, and cut off.
	privateKey = regexp.MustCompile(`(?s)()-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`)
	// header is of HTTP; all of these are secret to the end of their line.
	header = regexp.MustCompile(`(?i)((?:authorization|cookie|[\w-]*token|registry-auth)\s*:\s+)(?:[^\s"\\][^\n"\\]*(?:\\?"[^"\n\\]*\\?"[^\n"\\]*)*)`)
	scheme = regexp.MustCompile(`(?i)((?:bearer|basic)\s+)[\w.~+/=-]{8,}`)
	// line is a field of YAML, which needs no quotes around spaces.
	line = regexp.MustCompile(`(?im)((?:^|\\n|"|: )[ \t]*(?:- +)?[\w.-]*` + secretName + `:[ \t]+)[^\s"'\\][^\n"\\]*`)
	// named is a value that is called so.
	named = regexp.MustCompile(`(?i)(` + secretName + `\\?["']?\s*[:=]\s*)` + value)
	// flag is followed by its value, and user by a name and a password.
	flag = regexp.MustCompile(`(?i)((?:^|[\s"']|\\[nt])--?[\w-]*` + secretName + `\s+)` + value)
	user = regexp.MustCompile(`((?:^|[\s"']|\\[nt])(?:-u|--user)[\s=]+["']?[^\s:"']+:)[^\s"']+`)
	// token tells by its form: JWT, AWS, Vault, GitHub, GitLab, age. In JSON a line break before it is \n.
	token = regexp.MustCompile(`(^|\W|\\[nt])(?:eyJ[\w-]+\.[\w-]+\.[\w-]*|(?:AKIA|ASIA)[A-Z0-9]{16}|hv[sbr]\.[\w-]{8,}|(?:gh[pousr]_|github_pat_|glpat-|dckr_[po]at_)[\w-]{8,}|AGE-SECRET-KEY-1\w+)`)

	// called is the name of a field, a variable or a flag whose value is secret.
	called = regexp.MustCompile(`(?i)(?:` + secretName + `|^authorization|^cookie)$`)
	// address is a URL, as far as no parser ends it.
	address = regexp.MustCompile(`://[^\s"]+`)
	// parameter is between two of a query, also in JSON.
	parameter = regexp.MustCompile(`[&;?#]|\\u0026`)
	// escape is of JSON, and ends the URL in it.
	escape = regexp.MustCompile(`\\[^u]`)
	// port is what a colon is followed by that begins no password.
	port = regexp.MustCompile(`^[^/?#:@]+(?::\d*)?(?:[/?#]|$)`)
)

// redact replaces what looks like a credential. It is for text that should have none.
func redact(text string) string {
	text = address.ReplaceAllStringFunc(text, func(text string) string { return withoutQuery(withoutUser(text)) })
	for _, secret := range []*regexp.Regexp{privateKey, header, scheme, line, named, flag, user, token} {
		text = secret.ReplaceAllString(text, "${1}"+redacted)
	}
	return text
}

// withoutUser replaces the user and password of a URL, which begins with "://": what is before the last at sign of
// the authority (RFC 3986 section 3.2). A password with a slash ends the authority for a parser, which leaves what looks like
// a port and is none; then it is the last at sign of all.
func withoutUser(text string) string {
	rest := strings.TrimPrefix(text, "://")
	end := strings.IndexAny(rest, "/?#")
	if end < 0 || !port.MatchString(rest) && !strings.Contains(rest[:end], "@") {
		end = len(rest)
	}
	at := strings.LastIndex(rest[:end], "@")
	if at < 0 {
		return text
	}
	return "://" + redacted + rest[at+1:]
}

// withoutQuery replaces the values in the query and the fragment of a URL: stores sign addresses under any name, and a
// registry's errors repeat them.
func withoutQuery(text string) string {
	start := strings.IndexAny(text, "?#")
	if start < 0 {
		return text
	}
	query := text[start+1:]
	if found := escape.FindStringIndex(query); found != nil {
		query = query[:found[0]]
	}
	end := strings.TrimRight(query, `\,.;:)]}'`) // of the sentence around it
	rest := text[start+1+len(end):]
	parts := parameter.Split(end, -1)
	for i, part := range parts {
		name, assigned, _ := strings.Cut(part, "=")
		switch {
		case strings.Trim(assigned, "=") != "":
			parts[i] = name + "=" + redacted
		case part != "":
			parts[i] = redacted
		}
	}
	return text[:start+1] + strings.Join(parts, "&") + rest
}

// redactAll redacts each text in a decoded value, which it changes in place and returns. A secret is known by its own
// form, or by the name beside it.
func redactAll(value any) any {
	switch value := value.(type) {
	case map[string]any:
		name, _ := value["name"].(string)
		for field := range value {
			if called.MatchString(field) || field == "value" && called.MatchString(name) {
				switch of := value[field].(type) {
				case float64, []any:
					value[field] = redacted
					continue
				case string:
					if of != "" {
						value[field] = redacted
					}
					continue
				}
			}
			value[field] = redactAll(value[field])
		}
	case []any:
		secret := false // the value of the flag before
		for i := range value {
			text, ok := value[i].(string)
			name, _, assigned := strings.Cut(text, "=")
			switch {
			case ok && secret:
				value[i] = redacted
			case assigned && called.MatchString(name):
				value[i] = name + "=" + redacted
			default:
				value[i] = redactAll(value[i])
			}
			secret = ok && strings.HasPrefix(text, "-") && called.MatchString(text)
		}
	case string:
		return redact(value)
	}
	return value
}
