package cosign

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/fulcio/certificate"
	"github.com/sigstore/sigstore-go/pkg/root"
	bundleverify "github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/cryptoutils"

	"github.com/landwaiter/landwaiter/pkg/decide/cel"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// Keyless trusts identities: certificates that chain to a Sigstore root and were valid at a
// time for which a log or a timestamp authority vouches.
type Keyless struct {
	// Identities are 1 to 16 identities; a signer must match one of them.
	Identities []Identity
	// Root holds CAs, logs and timestamp authorities. Name is its
	// source in messages.
	Root root.TrustedMaterial
	Name string
	// InsecureIgnoreSCT accepts certificates without proof that they are in a certificate
	// transparency log.
	InsecureIgnoreSCT bool
	// Thresholds say how many different logs and timestamp authorities must vouch.
	Thresholds Thresholds
	// Expression is an optional CEL condition over issuer, subject and claims: the
	// extensions of the certificate by their names in Fulcio's certificate
	// specification, such as sourceRepositoryURI.
	Expression string
}

// Thresholds are minimum numbers of different logs and timestamp authorities. Zero means one; for
// Timestamps of logged signatures, the time of a log counts too.
type Thresholds struct {
	Log, SCT, Timestamps int
}

// identities verifies signatures by certificates.
type identities struct {
	name       string
	root       root.TrustedMaterial
	logged     bool // signatures must be in a log
	bundles    *bundleverify.Verifier
	policies   []bundleverify.PolicyOption
	ignores    bool            // some identity ignores the issuer
	sizes      []regexpSizes   // of the identities
	expression *cel.Expression // may be nil
}

func newIdentities(k Keyless, logged bool) (*identities, error) {
	switch {
	case len(k.Identities) == 0:
		return nil, &FieldError{"keyless.identities", errors.New("there are none, so everybody would be trusted")}
	case len(k.Identities) > maxIdentities:
		return nil, &FieldError{"keyless.identities", fmt.Errorf("there are %d, the limit is %d", len(k.Identities), maxIdentities)}
	}
	made := &identities{name: k.Name, root: k.Root, logged: logged}
	if k.Expression != "" {
		var err error
		if made.expression, err = CompileKeyless(k.Expression); err != nil {
			return nil, &FieldError{Field: "keyless.expression", Err: err}
		}
	}
	for i, identity := range k.Identities {
		option, err := identity.policy()
		if err != nil {
			return nil, at(fmt.Sprintf("keyless.identities[%d]", i), err)
		}
		made.ignores = made.ignores || identity.InsecureIgnoreIssuer
		if made.sizes = append(made.sizes, identity.sizes()); identity.InsecureIgnoreIssuer {
			made.policies = slices.Insert(made.policies, 0, option) // the library returns the first match
		} else {
			made.policies = append(made.policies, option)
		}
	}
	if k.Root == nil {
		return nil, errors.New("a keyless verifier needs a root of trust")
	}
	atLeast := func(n int) int { return max(n, 1) }
	options := []bundleverify.VerifierOption{bundleverify.WithoutStatementPredicate()}
	if !k.InsecureIgnoreSCT {
		options = append(options, bundleverify.WithSignedCertificateTimestamps(atLeast(k.Thresholds.SCT)))
	}
	if logged {
		options = append(options, bundleverify.WithTransparencyLog(atLeast(k.Thresholds.Log)),
			bundleverify.WithObserverTimestamps(atLeast(k.Thresholds.Timestamps)))
	} else {
		options = append(options, bundleverify.WithSignedTimestamps(atLeast(k.Thresholds.Timestamps)))
	}
	var err error
	if made.bundles, err = bundleverify.NewVerifier(k.Root, options...); err != nil {
		return nil, fmt.Errorf("make a bundle verifier: %w", err)
	}
	return made, nil
}

// CompileKeyless compiles the expression of [Keyless]: its variables are issuer and subject, texts, and claims.
func CompileKeyless(expression string) (*cel.Expression, error) {
	return cel.Compile(expression, KeylessVariables(), cel.Fields{Of: map[string][]string{"claims": claimNames()}, Nearest: policy.Nearest})
}

// KeylessVariables returns the variables of such an expression.
func KeylessVariables() cel.Variables {
	return cel.Variables{"issuer": cel.Text, "subject": cel.Text, "claims": cel.Any}
}

// verify verifies a bundle against an artifact and returns its signer. Its errors are the
// library's: see refusal.
func (k *identities) verify(ctx context.Context, parsed *bundle.Bundle, artifact bundleverify.ArtifactPolicyOption) (signer, error) {
	var by signer
	err := guard(func() error {
		result, err := k.bundles.Verify(parsed, bundleverify.NewPolicy(artifact, k.policies...))
		if err != nil {
			return err
		}
		if result.VerifiedIdentity == nil || result.Signature == nil || result.Signature.Certificate == nil {
			return errors.New("the library names no verified identity")
		}
		summary := result.Signature.Certificate
		switch {
		case summary.SubjectAlternativeName == "":
			return errors.New("the certificate names no subject")
		case summary.Issuer == "" && result.VerifiedIdentity.Issuer.Regexp.String() != anyIssuer:
			return &bundleverify.ErrNoMatchingCertificateIdentity{}
		}
		if err := k.checkTimestamps(ctx, parsed); err != nil {
			return err
		}
		id := summary.Issuer + " " + summary.SubjectAlternativeName
		if result.VerifiedIdentity.Issuer.Regexp.String() == anyIssuer {
			id = summary.SubjectAlternativeName // one person, regardless of the issuer
		}
		by = signer{id: id,
			message: fmt.Sprintf("signature verified for %s, certified by %s, under %s", summary.SubjectAlternativeName,
				cmp.Or(summary.Issuer, "no issuer"), k.name),
			facts: map[string]any{"issuer": summary.Issuer, "subject": summary.SubjectAlternativeName, "claims": claimsOf(summary.Extensions)}}
		return nil
	})
	return by, err
}

// claimNames are the names of all claims.
func claimNames() (names []string) {
	for field := range reflect.TypeFor[certificate.Extensions]().Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// claimsOf returns the extensions of a certificate by their names in Fulcio's
// certificate specification ("Extension values").
func claimsOf(extensions certificate.Extensions) map[string]any {
	found := map[string]any{}
	text, err := json.Marshal(extensions)
	if err == nil {
		err = json.Unmarshal(text, &found)
	}
	if err != nil {
		return map[string]any{}
	}
	maps.DeleteFunc(found, func(_ string, value any) bool { return value == "" || value == nil })
	return found
}

// checkExpression refuses a signer that does not satisfy the expression.
func (k *identities) checkExpression(ctx context.Context, by signer) error {
	if k.expression == nil {
		return nil
	}
	matched, err := k.expression.Match(func() error { return verify.Step(ctx) }, by.facts)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, cel.ErrLimit):
		return verify.Refuse(policy.ReasonLimitExceeded,
			fmt.Sprintf("the keyless expression cannot be evaluated for the signer's certificate: %.*s", maxQuote, err.Error()),
			"make keyless.expression of the Verifier simpler")
	case err != nil:
		return verify.Refuse(policy.ReasonWrongIdentity,
			fmt.Sprintf("the keyless expression cannot be evaluated for the signer's certificate: %.*s", maxQuote, err.Error()),
			"guard claims that may be missing with has(…) in keyless.expression of the Verifier")
	case !matched:
		return verify.Refuse(policy.ReasonWrongIdentity, "the signer's certificate does not meet the keyless expression of the Verifier",
			"sign as keyless.expression of the Verifier requires: from its repository, workflow or runner")
	}
	return nil
}

// checkIdentity verifies a bundle as a signature of want and returns its signer. The
// caller checks that the statement, if there is one, is about want.
func (k *identities) checkIdentity(ctx context.Context, parsed parsedBundle, want digest.Digest) (signer, error) {
	// Given only a digest, the library verifies a plain Ed25519 signature over no bytes
	// at all.
	if parsed.message && parsed.ed25519 {
		return signer{}, unsupported()
	}
	content, artifact, err := parsed.target(want)
	if err != nil {
		return signer{}, malformed("the image to check has a damaged digest")
	}
	return k.signerOf(ctx, content, artifact)
}

// signerOf verifies a bundle against an artifact and returns its signer if the verifier
// trusts that identity.
func (k *identities) signerOf(ctx context.Context, parsed *bundle.Bundle, artifact bundleverify.ArtifactPolicyOption) (signer, error) {
	if err := verify.Step(ctx); err != nil {
		return signer{}, err
	}
	if err := k.checkLengths(parsed); err != nil {
		return signer{}, err
	}
	by, err := k.verify(ctx, parsed, artifact)
	switch {
	case ctx.Err() != nil:
		return signer{}, ctx.Err()
	case err != nil:
		return signer{}, k.refusal(parsed, err)
	}
	if err := k.checkExpression(ctx, by); err != nil {
		return signer{}, err
	}
	return by, nil
}

// checkLengths refuses a certificate whose issuer or subject is too long, in itself or for the
// regular expressions of the identities: the library matches all of them in one step, which
// cannot be interrupted. The signer chooses the subject.
func (k *identities) checkLengths(parsed *bundle.Bundle) error {
	summary, err := summaryOf(parsed)
	if err != nil {
		return nil //nolint:nilerr // the library reads it again, and says what is wrong
	}
	if issuer, subject := len(summary.Issuer), len(summary.SubjectAlternativeName); max(issuer, subject) > maxIdentity {
		return verify.Refuse(policy.ReasonLimitExceeded,
			fmt.Sprintf("the issuer of the signer's certificate is %d bytes long and its subject %d, the limit is %d", issuer, subject, maxIdentity),
			"sign with a shorter identity")
	}
	steps := 0
	for _, size := range k.sizes {
		steps += size.issuer*(1+len(summary.Issuer)) + size.subject*(1+len(summary.SubjectAlternativeName))
	}
	if steps > maxIdentitySteps {
		return verify.Refuse(policy.ReasonLimitExceeded,
			fmt.Sprintf("the signer's certificate has an issuer of %d bytes and a subject of %d, which is too long for the regular expressions of "+
				"the Verifier: they take up to %d steps, the limit is %d",
				len(summary.Issuer), len(summary.SubjectAlternativeName), steps, maxIdentitySteps),
			"use fewer or shorter regular expressions in keyless.identities of the Verifier, or several Verifiers")
	}
	return nil
}

// refusal explains in our words why the library did not accept a bundle.
func (k *identities) refusal(parsed *bundle.Bundle, err error) error {
	var nobody *bundleverify.ErrNoMatchingCertificateIdentity
	switch {
	case errors.Is(err, errPanic):
		return malformed("the bundle is malformed")
	case errors.As(err, &nobody): // the last thing that the library checks
		return wrongIdentity(parsed, k.ignores)
	}
	if _, unnamed := summaryOf(parsed); unnamed != nil {
		return verify.Refuse(policy.ReasonUnsupported, "the certificate of the signature names neither an e-mail address nor a URI, so it has "+
			"no subject to compare",
			"sign with a certificate that names an e-mail address or a URI")
	}
	if missing := k.lacks(parsed); missing != nil {
		return missing
	}
	return verify.Refuse(policy.ReasonUntrusted,
		fmt.Sprintf("the certificate, log entry or timestamp of the signature does not hold under %s: %s", k.name, quote(err)),
		"sign with the services that the Verifier's trust store names, or have its trusted root updated")
}

// quote returns the library's error in one line of bounded length. If there are too few timestamps,
// the library also prints the errors of the others, even if there are none.
func quote(err error) string {
	text := strings.ReplaceAll(strings.ToValidUTF8(err.Error(), ""), "; error: %!w(<nil>)", "")
	return Excerpt(strings.Join(strings.Fields(text), " "))
}

// Excerpt returns the part that a message quotes of a text that a signer can choose.
func Excerpt(text string) string { return policy.Cut(text, maxQuote) }

// lacks returns a refusal if a rejected bundle has no evidence of its signing time. The library
// only counts valid evidence, so its message is the same as for forged evidence.
func (k *identities) lacks(parsed *bundle.Bundle) error {
	if k.logged {
		if entries, err := parsed.TlogEntries(); err == nil && len(entries) == 0 {
			return verify.Refuse(policy.ReasonUntrusted,
				fmt.Sprintf("the signature is in no transparency log, and the Verifier demands an entry in a log of %s", k.name),
				"sign with a transparency log; if the signing service has none and its timestamp authority vouches for the time, as for GitHub's "+
					"attestations of private repositories, use a Verifier with keyless.insecureIgnoreTransparencyLog")
		}
		return k.withoutTime(parsed)
	}
	if timestamps, err := parsed.Timestamps(); err == nil && len(timestamps) == 0 {
		return verify.Refuse(policy.ReasonUntrusted,
			fmt.Sprintf("the signature has no trusted time: without a transparency log, it needs a timestamp of an authority of %s", k.name),
			"sign with a timestamp authority that is in the Verifier's trust store")
	}
	return nil
}

// withoutTime returns a refusal if a bundle has log entries without a time, as the newer logs write them, and no timestamp.
func (k *identities) withoutTime(parsed *bundle.Bundle) error {
	timestamps, err := parsed.Timestamps()
	if err != nil || len(timestamps) > 0 ||
		slices.ContainsFunc(parsed.GetVerificationMaterial().GetTlogEntries(), func(e *protorekor.TransparencyLogEntry) bool {
			return e.GetIntegratedTime() > 0
		}) {
		return nil //nolint:nilerr // the library says what is wrong
	}
	return verify.Refuse(policy.ReasonUntrusted, "the signature has no trusted time: nobody vouches for the time of signing, because the "+
		"log entry has none and there is no timestamp",
		fmt.Sprintf("sign with a timestamp authority of %s", k.name))
}

// isEd25519 reports whether the certificate has an Ed25519 key.
func isEd25519(content bundleverify.VerificationContent) bool {
	certificate := content.Certificate()
	if certificate == nil {
		return false
	}
	_, is := certificate.PublicKey.(ed25519.PublicKey)
	return is
}

// checkTimestamps fails if any trusted timestamp falls outside the validity of the
// certificate chain. sigstore-go checks only the first timestamp of each authority. It
// ignores timestamps of untrusted authorities.
func (k *identities) checkTimestamps(ctx context.Context, parsed *bundle.Bundle) error {
	timestamps, err := parsed.Timestamps()
	if err != nil || len(timestamps) < 2 {
		return err
	}
	content, err := parsed.VerificationContent()
	if err != nil {
		return err
	}
	signed, err := parsed.SignatureContent()
	if err != nil {
		return err
	}
	leaf := content.Certificate()
	// crypto/x509 does not support every kind of subject alternative name, but the library has
	// read them.
	leaf.UnhandledCriticalExtensions = slices.DeleteFunc(leaf.UnhandledCriticalExtensions, cryptoutils.SANOID.Equal)
	for _, timestamp := range timestamps {
		for _, authority := range k.root.TimestampingAuthorities() {
			if err := verify.Step(ctx); err != nil {
				return err
			}
			at, err := authority.Verify(timestamp, signed.Signature())
			if err != nil {
				continue // of another authority
			}
			if _, err := bundleverify.VerifyLeafCertificate(at.Time, leaf, k.root); err != nil {
				return fmt.Errorf("the certificate does not hold at %s, the time of one of the timestamps: %w", at.Time.UTC().Format(time.RFC3339), err)
			}
		}
	}
	return nil
}
