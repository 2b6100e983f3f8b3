package support

import "regexp"

// redacted stands for what was taken out.
const redacted = "(redacted)"

// What looks like a credential. The first group of each stays.
var (
	// userOfURL is in redis://user:password@host.
	userOfURL = regexp.MustCompile(`(://)[^/@\s"]+@`)
	// privateKey may be in JSON, and cut off.
	privateKey = regexp.MustCompile(`(?s)()-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`)
	// header is of HTTP.
	header = regexp.MustCompile(`(?i)((?:bearer|basic)\s+)[\w.~+/=-]{8,}`)
	// named is a value that is called so: password=x, "token": "x", --api-key=x.
	named = regexp.MustCompile(`(?i)((?:password|passwd|token|api[_-]?key|client[_-]?secret|secret[_-]?(?:access[_-]?)?key)\\?["']?\s*[:=]\s*\\?["']?)[^\s"'\\,;&]+`)
	// token tells by its form: JWT, AWS, Vault, GitHub, GitLab. In JSON a line break before it is \n.
	token = regexp.MustCompile(`(^|\W|\\[nt])(?:eyJ[\w-]+\.[\w-]+\.[\w-]*|(?:AKIA|ASIA)[A-Z0-9]{16}|hv[sbr]\.[\w-]{8,}|(?:gh[pousr]_|github_pat_|glpat-)[\w-]{8,})`)
)

// redact replaces what looks like a credential. It is for text that should have none.
func redact(text string) string {
	for _, secret := range []*regexp.Regexp{userOfURL, privateKey, header, named, token} {
		text = secret.ReplaceAllString(text, "${1}"+redacted)
	}
	return text
}

// redactAll redacts each text in a decoded value, which it changes in place and returns.
func redactAll(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name := range value {
			value[name] = redactAll(value[name])
		}
	case []any:
		for i := range value {
			value[i] = redactAll(value[i])
		}
	case string:
		return redact(value)
	}
	return value
}
