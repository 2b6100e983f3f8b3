package support

import (
	"regexp"
	"strings"
)

// redacted replaces removed text.
const redacted = "(redacted)"

// secretName is the end of the name of a secret: password=x, "refreshToken": "x", X-Amz-Signature=x. Longer
// names, such as password-file and tokenAudience, are not secret.
const secretName = `(?:password|passwd|passphrase|pwd|[a-z][_-]pass|token|credentials?|api[_-]?key|access[_-]?key|account[_-]?key|` +
	`shared[_-]?key|client[_-]?secret|secret[_-]?(?:access[_-]?)?key|\b_?auth|registry-auth|x-(?:amz|goog)-signature|private[_-]?key|` +
	`(?:\b|\\u0026)sig)`

// value is the value after a name: in quotes, which JSON in JSON escapes, or up to the end of a value in
// a query, in a list and in the connection strings of clouds.
const value = `(?:\\"(?:\\\\\\"|[^\\]|\\[^"])*\\"|"(?:[^"\\]|\\.)*(?:"|$)|'[^']*(?:'|$)|[^\s"'\\,;&]+)`

// Patterns of credentials. The first group of each stays.
var (
	// privateKey may be in JSON, and truncated.
	privateKey = regexp.MustCompile(`(?s)()-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`)
	// header is an HTTP header; all of these are secret to the end of the line.
	header = regexp.MustCompile(`(?i)((?:authorization|cookie|[\w-]*token|` +
		`registry-auth)\s*:\s+)(?:[^\s"\\][^\n"\\]*(?:\\?"[^"\n\\]*\\?"[^\n"\\]*)*)`)
	scheme = regexp.MustCompile(`(?i)((?:bearer|basic)\s+)[\w.~+/=-]{8,}`)
	// line is a field of YAML, whose value may contain spaces without quotes.
	line = regexp.MustCompile(`(?im)((?:^|\\n|"|: )[ \t]*(?:- +)?[\w.-]*` + secretName + `:[ \t]+)[^\s"'\\][^\n"\\]*`)
	// named is a value with a secret name.
	named = regexp.MustCompile(`(?i)(` + secretName + `\\?["']?\s*[:=]\s*)` + value)
	// flag is followed by its value, and user by a name and a password.
	flag = regexp.MustCompile(`(?i)((?:^|[\s"']|\\[nt])--?[\w-]*` + secretName + `\s+)` + value)
	user = regexp.MustCompile(`((?:^|[\s"']|\\[nt])(?:-u|--user)[\s=]+["']?[^\s:"']+:)[^\s"']+`)
	// token is recognized by its form: JWT, AWS, Vault, GitHub, GitLab, age. In JSON a line break before
	// it is \n.
	token = regexp.MustCompile(`(^|\W|\\[nt])(?:eyJ[\w-]+\.[\w-]+\.[\w-]*|(?:AKIA|ASIA)[A-Z0-9]{16}|hv[sbr]\.[\w-]{8,}|(?:gh[pousr]_|` +
		`github_pat_|glpat-|dckr_[po]at_)[\w-]{8,}|AGE-SECRET-KEY-1\w+)`)

	// called is the name of a field, a variable or a flag whose value is secret.
	called = regexp.MustCompile(`(?i)(?:` + secretName + `|^authorization|^cookie)$`)
	// address is a URL, up to where every parser ends it.
	address = regexp.MustCompile(`://[^\s"]+`)
	// parameter is text between two parameters of a query, also in JSON.
	parameter = regexp.MustCompile(`[&;?#]|\\u0026`)
	// escape is a JSON escape, which ends the URL in it.
	escape = regexp.MustCompile(`\\[^u]`)
	// port is text after a colon that is not the beginning of a password.
	port = regexp.MustCompile(`^[^/?#:@]+(?::\d*)?(?:[/?#]|$)`)
)

// redact replaces text that looks like a credential. It is for text that should have none.
func redact(text string) string {
	text = address.ReplaceAllStringFunc(text, func(text string) string { return withoutQuery(withoutUser(text)) })
	for _, secret := range []*regexp.Regexp{privateKey, header, scheme, line, named, flag, user, token} {
		text = secret.ReplaceAllString(text, "${1}"+redacted)
	}
	return text
}

// withoutUser replaces the user and password of a URL, which begins with "://": everything before the last at sign of
// the authority (RFC 3986 section 3.2). For a parser, a password with a slash ends the authority, which leaves an
// invalid port; then it uses the last at sign of the URL.
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

// withoutQuery replaces the values in the query and the fragment of a URL: stores sign addresses under any name, and
// a registry's errors quote them.
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

// redactAll redacts each text in a decoded value, which it changes in place and returns. A secret is recognized by
// its form, or by its name.
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
		secret := false // the value of the previous flag
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
