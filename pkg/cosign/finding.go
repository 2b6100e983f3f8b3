package cosign

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/landwaiter/landwaiter/pkg/image"
	"github.com/landwaiter/landwaiter/pkg/policy"
)

func valid(by signer, layer digest.Digest) policy.Finding {
	facts := map[string]any{"signatureDigest": layer.String(), "isSuccess": true}
	maps.Copy(facts, by.facts)
	return policy.Finding{Result: policy.Valid, Signer: by.id, Message: by.message,
		Extensions: map[string]any{"signatures": []map[string]any{facts}}}
}

func malformed(message string) policy.Finding {
	return policy.Finding{
		Reason: policy.ReasonMalformed, Message: message,
		Remediation: "sign the image again with an unmodified cosign",
	}
}

func limitExceeded(what string, limit int) policy.Finding {
	return policy.Finding{
		Reason:  policy.ReasonLimitExceeded,
		Message: fmt.Sprintf("the %s is larger than the limit of %d bytes", what, limit),
	}
}

func noSignature() policy.Finding {
	return policy.Finding{
		Reason:      policy.ReasonNoSignature,
		Message:     "the cosign payload comes without a signature annotation",
		Remediation: "sign the image again, and copy signatures with cosign copy or another tool that keeps annotations",
	}
}

func (c *Checker) wrongKey() policy.Finding {
	stores := c.stores()
	return policy.Finding{
		Reason:      policy.ReasonWrongKey,
		Message:     fmt.Sprintf("no key of %s verifies the signature%s", stores, c.orLog()),
		Remediation: fmt.Sprintf("sign the image with a key of %s, or have the signer's public key added there", stores),
	}
}

// orLog adds to a message what else may be wrong where a log is demanded.
func (c *Checker) orLog() string {
	if c.logged {
		return ", or it is not in a trusted transparency log"
	}
	return ""
}

func tampered(message string) policy.Finding {
	return policy.Finding{
		Reason: policy.ReasonTamperedPayload, Message: message,
		Remediation: "sign the image again, and find out who changed the signature in the registry",
	}
}

// wrongDigest does not repeat what the signature says unless it is a digest.
func wrongDigest(want digest.Digest, signed ...string) policy.Finding {
	other := "another image"
	if len(signed) > 0 {
		if d, err := digest.Parse(signed[0]); err == nil {
			other = "another image, " + d.String()
		}
	}
	return policy.Finding{
		Reason:      policy.ReasonWrongDigest,
		Message:     fmt.Sprintf("the signature is for %s, not for %s", other, want),
		Remediation: "sign this image by its digest: signatures of other images or platforms do not carry over",
	}
}

// wrongRepository returns an empty finding if signed names ref's repository,
// both normalised.
func wrongRepository(ref image.Reference, signed string) policy.Finding {
	finding := policy.Finding{Reason: policy.ReasonWrongRepository}
	named, err := image.Parse(signed)
	switch {
	case signed == "":
		finding.Message = fmt.Sprintf("the signature names no repository, so it is not proven to be for %s", ref.Name())
		finding.Remediation = "sign with cosign's legacy format (--new-bundle-format=false), which names the repository, or drop matchRepository from the verifier"
	case err != nil:
		finding.Message = fmt.Sprintf("the signature names a repository that is not an image reference, want %s", ref.Name())
		finding.Remediation = "sign the image again where it is used"
	case named.Name() != ref.Name():
		finding.Message = fmt.Sprintf("the signature is for repository %s, not for %s", named.Name(), ref.Name())
		finding.Remediation = "sign the image again where it is used, or drop matchRepository from the verifier"
	default:
		return policy.Finding{}
	}
	return finding
}

func wrongAnnotations(name, value string) policy.Finding {
	return policy.Finding{
		Reason:      policy.ReasonWrongAnnotations,
		Message:     fmt.Sprintf("the signature does not carry the annotation %s=%s", name, value),
		Remediation: fmt.Sprintf("sign with: cosign sign -a %s=%s", name, value),
	}
}

func wrongPredicate() policy.Finding {
	return policy.Finding{
		Reason:      policy.ReasonWrongPredicate,
		Message:     "the bundle is an attestation, not an image signature (predicate type " + PredicateTypeSignature + ")",
		Remediation: "sign the image itself with cosign sign; attestations do not count as signatures",
	}
}

func keyless() policy.Finding {
	return policy.Finding{
		Reason:      policy.ReasonKeyless,
		Message:     "the bundle is signed with a certificate, the verifier wants one of its keys",
		Remediation: "sign with cosign sign --key, or use a keyless verifier",
	}
}

func keyed() policy.Finding {
	return policy.Finding{
		Reason:      policy.ReasonKeyed,
		Message:     "the signature is made with a key, the verifier wants an identity",
		Remediation: "sign keyless with cosign sign, or use a verifier with keys",
	}
}

func unsupported() policy.Finding {
	return policy.Finding{
		Reason:      policy.ReasonUnsupported,
		Message:     "the bundle signs the image's bytes in a way that cannot be checked from its sha256 digest",
		Remediation: "sign the image with cosign sign",
	}
}

// stores names where the keys come from, each once.
func (c *Checker) stores() string {
	var names []string
	for _, key := range c.keys {
		if !slices.Contains(names, key.Name) {
			names = append(names, key.Name)
		}
	}
	return strings.Join(names, " or ")
}
