package breadth

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// misspelt judges an identity whose provider is unknown because its name, or the signer's, is not spelled as in
// certificates.
func (j *judge) misspelt() Judgement {
	if j.identity.Issuer == loginPage {
		narrower := j.identity
		narrower.Issuer = "https://github.com/login/oauth"
		return Judgement{Nobody: "certificates name the provider behind it: https://github.com/login/oauth, https://accounts.google.com or " +
			"https://login.microsoftonline.com", Narrower: narrower}
	}
	if near, ok := nearIssuer(j.identity.Issuer); ok {
		narrower := j.identity
		narrower.Issuer = near
		return Judgement{Nobody: "Fulcio writes the issuer " + near, Narrower: narrower}
	}
	if f, issuer, ok := j.related(); ok {
		narrower := j.identity
		narrower.Issuer = issuer
		return Judgement{Nobody: "Fulcio writes the issuer " + issuer + " for subjects of " + f.name, Narrower: narrower}
	}
	if strings.Contains(j.identity.Subject, "*") {
		narrower := j.identity
		narrower.Subject, narrower.SubjectRegExp = "", strings.ReplaceAll(regexp.QuoteMeta(j.identity.Subject), `\*`, `[^/]+`)
		return Judgement{Nobody: "subject is compared as it is, and a * in it stands for itself", Narrower: narrower}
	}
	return Judgement{}
}

// loginPage is the issuer of Sigstore's own login page.
const loginPage = "https://oauth2.sigstore.dev/auth"

// nearIssuer returns the intended issuer of a public provider.
func nearIssuer(issuer string) (string, bool) {
	for _, near := range []string{issuer, strings.ToLower(issuer)} {
		near = strings.TrimSuffix(strings.TrimRight(strings.TrimSpace(near), "/"), "/.well-known/openid-configuration")
		near = "https://" + strings.TrimPrefix(strings.TrimPrefix(near, "http://"), "https://")
		if near != issuer && issuer != "" && slices.ContainsFunc(forms(), func(f form) bool { return f.issued.MatchString(near) }) {
			return near, true
		}
	}
	return "", false
}

// maxEdits is the largest edit distance of a misspelt issuer. If the right one is shorter than shortIssuer, the
// subject must begin like the provider's subjects: https://gitlab.co may be somebody else's issuer.
const (
	maxEdits    = 2
	shortIssuer = 20
)

// related returns the public provider whose subject an identity names with an address of the provider that is not an
// issuer, or with a misspelt issuer.
func (j *judge) related() (form, string, bool) {
	for _, f := range forms() {
		known := unquoted(f.issuers)
		if f.issuers != regexp.QuoteMeta(known) || !j.names(f) {
			continue // each customer has its own issuer
		}
		misspelt := levenshtein.ComputeDistance(j.identity.Issuer, known) <= maxEdits &&
			(len(known) >= shortIssuer || f.begins(cmp.Or(j.identity.Subject, written(j.identity.SubjectRegExp))))
		if misspelt || addressOf(f, known, j.identity.Issuer) {
			return f, known, true
		}
	}
	return form{}, "", false
}

// names reports whether the subject of an identity may be one of a form.
func (j *judge) names(f form) bool {
	if given := cmp.Or(j.identity.Subject, written(j.identity.SubjectRegExp)); f.begins(given) || j.identity.SubjectRegExp == "" {
		return f.begins(given) || f.valid(given)
	}
	_, ok := j.subject.Common(f.whole, j.steps)
	return ok
}

// addressOf reports whether an issuer is a host in a domain of a provider: the domain of its issuer or of its
// subjects. An issuer with a path may be a customer's.
func addressOf(f form, known, issuer string) bool {
	host := strings.TrimSuffix(strings.TrimPrefix(issuer, "https://"), "/")
	for _, address := range []string{known, unquoted(f.parts[0].values)} {
		name, ok := strings.CutPrefix(address, "https://")
		name, _, _ = strings.Cut(name, "/")
		labels := strings.Split(name, ".")
		if !ok || len(labels) < 2 {
			continue
		}
		if domain := strings.Join(labels[len(labels)-2:], "."); host == domain || strings.HasSuffix(host, "."+domain) &&
			!strings.Contains(host, "/") {
			return true
		}
	}
	return false
}
