package cosign

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/fulcio/certificate"
	bundleverify "github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/landwaiter/landwaiter/pkg/decide/cel"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// Identity matches the issuer and subject of a signing certificate. Exactly one field about
// each is set. Regular expressions are RE2 and must match the whole value.
type Identity struct {
	Issuer, IssuerRegExp string
	// InsecureIgnoreIssuer accepts every issuer, and certificates without Fulcio's issuer extension.
	InsecureIgnoreIssuer   bool
	Subject, SubjectRegExp string
}

// regexpSizes are the instructions of the regular expressions of an identity, 0 without one.
type regexpSizes struct{ issuer, subject int }

// sizes returns the sizes of the regular expressions, 0 for those that New refuses.
func (i Identity) sizes() (s regexpSizes) {
	if i.IssuerRegExp != "" {
		s.issuer, _ = cel.RegexpSize(i.IssuerRegExp)
	}
	if i.SubjectRegExp != "" {
		s.subject, _ = cel.RegexpSize(i.SubjectRegExp)
	}
	return s
}

// Bytes returns an upper bound on the memory of the identity's regular expressions. Those
// that New refuses keep none.
func (i Identity) Bytes() (size int) {
	sizes := i.sizes()
	for _, n := range []int{sizes.issuer, sizes.subject} {
		if n > 0 {
			size += cel.RegexpBytes(n)
		}
	}
	return size
}

// policy returns the library's option that demands the identity.
func (i Identity) policy() (bundleverify.PolicyOption, error) {
	identity, err := i.compiled()
	if err != nil {
		return nil, err
	}
	return bundleverify.WithCertificateIdentity(identity), nil
}

// Matcher returns a function that reports whether a certificate with an issuer and a subject has the identity,
// with the same code that decides about signatures. It returns an error if the identity cannot be used.
func (i Identity) Matcher() (func(issuer, subject string) bool, error) {
	identity, err := i.compiled()
	if err != nil {
		return nil, err
	}
	return func(issuer, subject string) bool {
		return identity.Verify(certificate.Summary{SubjectAlternativeName: subject, Extensions: certificate.Extensions{Issuer: issuer}}) == nil
	}, nil
}

// compiled returns the library's matcher for the identity.
func (i Identity) compiled() (identity bundleverify.CertificateIdentity, err error) {
	issuer := whole(i.IssuerRegExp)
	switch given := []bool{i.Issuer != "", i.IssuerRegExp != "", i.InsecureIgnoreIssuer}; {
	case len(slices.DeleteFunc(given, func(is bool) bool { return !is })) != 1:
		return identity, errors.New("exactly one of issuer, issuerRegExp and insecureIgnoreIssuer must be set")
	case i.InsecureIgnoreIssuer:
		issuer = anyIssuer
	}
	if (i.Subject == "") == (i.SubjectRegExp == "") {
		return identity, errors.New("exactly one of subject and subjectRegExp must be set")
	}
	// The library compiles any expression.
	if _, err := cel.RegexpSize(i.IssuerRegExp); err != nil {
		return identity, &FieldError{"issuerRegExp", err}
	}
	if _, err := cel.RegexpSize(i.SubjectRegExp); err != nil {
		return identity, &FieldError{"subjectRegExp", err}
	}
	identity, err = bundleverify.NewShortCertificateIdentity(i.Issuer, issuer, i.Subject, whole(i.SubjectRegExp))
	if err != nil {
		return identity, fmt.Errorf("the regular expression cannot be read: %w", err)
	}
	return identity, nil
}

// anyIssuer matches every issuer, and none. Unlike users' expressions, it is not anchored.
const anyIssuer = "(?s).*"

// whole anchors a regular expression, so that it must match the whole value.
func whole(expression string) string {
	if expression == "" {
		return ""
	}
	return "^(?:" + expression + ")$"
}

// wrongIdentity names the subject and the issuer of a certificate that the library has verified.
func wrongIdentity(parsed *bundle.Bundle, ignores bool) error {
	summary, err := summaryOf(parsed)
	subject := fmt.Sprintf("%q", Excerpt(summary.SubjectAlternativeName))
	if n := names(parsed); n > 1 {
		subject += fmt.Sprintf(" (the first of %d names of the certificate, which alone counts)", n)
	}
	switch {
	case err != nil:
		return malformed("the certificate of the signature cannot be read")
	case summary.Issuer != "":
		subject += fmt.Sprintf(", certified by %q", Excerpt(summary.Issuer))
	case !ignores:
		return verify.Refuse(policy.ReasonWrongIdentity,
			fmt.Sprintf("the signature is by %s, whose certificate names no issuer: Fulcio did not issue it", subject),
			"if your own CA certified the signer, set insecureIgnoreIssuer in keyless.identities of the Verifier instead of issuer")
	}
	return verify.Refuse(policy.ReasonWrongIdentity,
		fmt.Sprintf("the signature is by %s, an identity that the Verifier does not trust", subject),
		"only if you know the signer, have it added to keyless.identities of the Verifier")
}

// names counts the names of a bundle's certificate that can be a subject.
func names(parsed *bundle.Bundle) int {
	content, err := parsed.VerificationContent()
	if err != nil || content.Certificate() == nil {
		return 0
	}
	return len(content.Certificate().URIs) + len(content.Certificate().EmailAddresses)
}

// summaryOf returns a summary of a bundle's certificate, empty if the bundle has none.
func summaryOf(parsed *bundle.Bundle) (summary certificate.Summary, err error) {
	err = guard(func() error {
		content, err := parsed.VerificationContent()
		if err == nil && content.Certificate() != nil {
			summary, err = certificate.SummarizeCertificate(content.Certificate())
		}
		return err
	})
	return summary, err
}
