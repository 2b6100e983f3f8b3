package resolve

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/evidence/breadth"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
)

// maxSubject, maxPattern and maxIssuer bound the text of an identity in a denial, and maxIdentities the number of
// identities: the reason needs space, too. stepsOfWho steps are enough for several usual identities, and take a few
// milliseconds.
const (
	maxSubject    = 160
	maxPattern    = 64
	maxIssuer     = 80
	maxIdentities = 2
	stepsOfWho    = 8 << 10
)

// addSigner adds to an identity verifier who has to sign. It removes the command if people cannot sign: a person's
// identity is an address, and a workflow signs by itself. It does so even if the trust material is missing: a machine that
// cannot fetch it still reports that an image has no signature.
func addSigner(v *verify.Verifier, spec v1beta1.VerifierSpec) {
	signers := compile.SignersOf(spec)
	if v.Command == "" || signers == nil || signers.Keyless == nil {
		return
	}
	var people bool
	v.SignAs, people = signAs(v.Source, signers.Keyless.Identities)
	if signers.Keyless.RootTrustStoreRef != nil && people {
		v.SignAs += ", with the Sigstore instance that the Verifier's rootTrustStoreRef trusts"
		people = false // the command publishes the person's address in the public log, and its signature may not count
	}
	if !people {
		v.Command = ""
	}
}

// signAs names the identities, and reports whether people have one of them.
func signAs(source policy.ObjectRef, list []v1beta1.Identity) (said string, people bool) {
	steps := stepsOfWho
	var can, nobody []string
	for _, identity := range list {
		anybody, byHand := breadth.Who(compile.SignerIdentity(identity), &steps)
		if anybody {
			people = people || byHand
			can = append(can, named(identity))
		} else {
			nobody = append(nobody, named(identity))
		}
	}
	if len(can) == 0 {
		return source.Owner("correct keyless.identities of "+source.String()) + " first: nobody can sign " + firstOf(nobody), false
	}
	return "sign " + firstOf(can), people
}

// firstOf joins the first identities.
func firstOf(list []string) string {
	if more := len(list) - maxIdentities; more > 0 {
		list = append(list[:maxIdentities:maxIdentities], fmt.Sprintf("as one of %d more", more))
	}
	return strings.Join(list, " or ")
}

// publicGitHub is the issuer of workflows on github.com, which messages need not mention.
const publicGitHub = "https://token.actions.githubusercontent.com"

// named says in which workflow, or with which identity, to sign.
func named(identity v1beta1.Identity) string {
	subject, pattern := policy.Shown(identity.Subject, maxSubject), policy.Shown(identity.SubjectRegExp, maxPattern)
	switch exact := subject != ""; {
	case exact && strings.Contains(identity.Subject, "github/workflows/"):
		subject = "in the workflow " + subject
	case !exact && strings.Contains(identity.SubjectRegExp, "github/workflows/"):
		subject = "in a workflow that matches " + pattern
	case exact:
		subject = "as " + subject
	default:
		subject = "as a subject that matches " + pattern
	}
	if issuer := cmp.Or(identity.Issuer, identity.IssuerRegExp); issuer != "" &&
		(issuer != publicGitHub || !strings.HasPrefix(subject, "in ")) {
		return subject + " (issuer " + policy.Shown(issuer, maxIssuer) + ")"
	}
	return subject
}
