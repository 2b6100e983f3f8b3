package breadth

import (
	"regexp"

	"github.com/landwaiter/landwaiter/pkg/evidence/cosign"
)

// placeholders matches the names in identities of our suggestions and pages that readers should replace.
var placeholders = regexp.MustCompile(`\b(?:OWNER|REPOSITORY|ORGANIZATION|GROUP|PROJECT|PIPELINE|WORKSPACE|ACCOUNT|NAMESPACE|NAME|` +
	`your-namespace|your-account|trust-domain\.example|0{16}|0{40})\b` +
	`|^https://github\.com/example/|(?:^|[@/.])example\.com\b`)

// Placeholder returns such a name in an identity or its expression, "" if there is none.
func Placeholder(identity cosign.Identity, expression string) string {
	for _, text := range []string{identity.Issuer, identity.Subject, written(identity.IssuerRegExp),
		written(identity.SubjectRegExp), expression} {
		if found := placeholders.FindString(text); found != "" {
			return regexp.MustCompile(`^[@/.]`).ReplaceAllString(found, "")
		}
	}
	return ""
}
