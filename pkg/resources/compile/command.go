package compile

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// plainWord matches a word that a shell does not interpret. Denials show the command to
// people who paste it, and a resource's owner chose the text.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9._:/@%+=-]{1,100}$`)

// command returns the command that creates the evidence that a verifier wants, without the
// image. Words in capitals are for the reader to fill in.
func command(spec v1beta1.VerifierSpec) string {
	var words []string
	switch {
	case spec.Notation != nil && spec.Notation.AWSSigner != nil:
		profile := "PROFILE"
		if profiles := spec.Notation.AWSSigner.Profiles; len(profiles) == 1 {
			profile = shellWord(profiles[0], profile)
		}
		words = []string{"notation sign --plugin com.amazonaws.signer.notation.plugin --id", profile}
	case spec.Notation != nil:
		words = []string{"notation sign --key KEY"}
		if spec.Notation.Timestamps != nil {
			words = append(words, "--timestamp-url URL --timestamp-root-cert FILE")
		}
	case spec.Attestation != nil:
		words = append([]string{"cosign attest"}, signerOptions(spec.Attestation.Signers)...)
		words = append(words, "--predicate FILE --type", shellWord(spec.Attestation.PredicateType, "TYPE"))
	case spec.Cosign != nil:
		words = append([]string{"cosign sign"}, signerOptions(spec.Cosign.Signers)...)
		if spec.Cosign.MatchRepository { // bundles of cosign 3 do not name it
			words = append(words, "--new-bundle-format=false")
			if !slices.Contains(words, withoutConfig) {
				words = append(words, withoutConfig)
			}
		}
		words = append(words, annotationOptions(spec.Cosign.Annotations)...)
	}
	return strings.Join(words, " ")
}

// withoutConfig keeps cosign from using Sigstore's signing config, which is for its public
// services.
const withoutConfig = "--use-signing-config=false"

// signerOptions returns the options that select the signer, and that keep the signature out
// of the public transparency log if the verifier does not require that log. Cosign 2.6 and 3
// have them.
func signerOptions(spec v1beta1.Signers) []string {
	var options []string
	if spec.Keyless == nil {
		options = append(options, "--key KEY")
	}
	switch {
	case wantsLog(spec) && spec.Keys != nil && spec.Keys.RootTrustStoreRef != nil: // not the public log
		return append(options, withoutConfig, "--rekor-url URL")
	case wantsLog(spec):
		return options
	}
	options = append(options, withoutConfig, "--tlog-upload=false")
	if spec.Keyless != nil {
		options = append(options, "--timestamp-server-url URL") // somebody has to vouch for the time
	}
	return options
}

// wantsLog reports whether signatures must be in a transparency log.
func wantsLog(spec v1beta1.Signers) bool { return !logOf(spec).InsecureIgnoreTransparencyLog }

// annotationOptions returns the options for a few annotations.
func annotationOptions(annotations map[string]string) []string {
	const most = 3
	var options []string
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		option := "-a " + shellWord(name+"="+annotations[name], "NAME=VALUE")
		if len(options) == most {
			return append(options, "-a …")
		}
		options = append(options, option)
	}
	return options
}

// shellWord returns text if it is one plain word of a shell, else a placeholder.
func shellWord(text, placeholder string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return placeholder
}
