package cosign_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/evidence/cosign"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// Each statement is signed by the trusted key, so only its form is wrong.
func TestDeniesStatementsThatAreNotOneSignatureOfTheImage(t *testing.T) {
	key := newKey(t, fixture.ECDSAP256)
	img, other := newImage(t, "registry.example.com/team-a/app"), newImage(t, "registry.example.com/team-a/other")
	checker := newChecker(t, cosign.Options{Signers: signedBy(key)})
	sum := img.Descriptor.Digest.Encoded()
	subject := `{"digest":{"sha256":"` + sum + `"}}`
	const rest = `"predicateType":"https://sigstore.dev/cosign/sign/v1","predicate":{}`
	good := `{"_type":"https://in-toto.io/Statement/v1","subject":[` + subject + `],` + rest + `}`
	for name, tt := range map[string]struct {
		statement string
		reason    policy.Reason
	}{
		"good":                 {good, ""},
		"statement v0.1":       {strings.Replace(good, "Statement/v1", "Statement/v0.1", 1), ""},
		"another subject too":  {strings.Replace(good, subject, `{"digest":{"sha256":"`+other.Descriptor.Digest.Encoded()+`"}},`+subject, 1), ""},
		"statement v2":         {strings.Replace(good, "Statement/v1", "Statement/v2", 1), policy.ReasonMalformed},
		"no statement type":    {strings.Replace(good, `"_type":"https://in-toto.io/Statement/v1",`, "", 1), policy.ReasonMalformed},
		"no subjects":          {strings.Replace(good, subject, "", 1), policy.ReasonWrongDigest},
		"subjects are null":    {strings.Replace(good, "["+subject+"]", "null", 1), policy.ReasonMalformed},
		"subject is a string":  {strings.Replace(good, subject, `"`+sum+`"`, 1), policy.ReasonMalformed},
		"no digest":            {strings.Replace(good, subject, `{"name":"x"}`, 1), policy.ReasonMalformed},
		"empty digests":        {strings.Replace(good, subject, `{"digest":{}}`, 1), policy.ReasonWrongDigest},
		"digest under sha512":  {strings.Replace(good, "sha256", "sha512", 1), policy.ReasonWrongDigest},
		"digest under SHA256":  {strings.Replace(good, "sha256", "SHA256", 1), policy.ReasonWrongDigest},
		"digest in upper case": {strings.Replace(good, sum, strings.ToUpper(sum), 1), policy.ReasonWrongDigest},
		"digest is not hex":    {strings.Replace(good, sum, "zz", 1), policy.ReasonMalformed},
		"digest with prefix":   {strings.Replace(good, sum, "sha256:"+sum, 1), policy.ReasonMalformed},
		"no predicate type":    {strings.Replace(good, "predicateType", "predicate_type", 1), policy.ReasonWrongPredicate},
		"predicate type twice": {strings.Replace(good, `"predicateType"`, `"predicateType":"https://spdx.dev/Document","predicateType"`, 1),
			policy.ReasonMalformed},
		"predicate type, case": {strings.Replace(good, "predicateType", "PredicateType", 1), policy.ReasonWrongPredicate},
		"predicate type, two case": {strings.Replace(good, `"predicateType"`, `"predicateType":"https://spdx.dev/Document","PredicateType"`, 1),
			policy.ReasonWrongPredicate},
		"subject twice": {strings.Replace(good, `"subject"`, `"subject":[],"subject"`, 1), policy.ReasonMalformed},
		"predicate type is a list": {strings.Replace(good, `"https://sigstore.dev/cosign/sign/v1"`, `["https://sigstore.dev/cosign/sign/v1"]`, 1),
			policy.ReasonMalformed},
		"not JSON":      {"statement", policy.ReasonMalformed},
		"trailing data": {good + "{}", policy.ReasonMalformed},
		"large":         {strings.Replace(good, `{}}`, `{"a":"`+strings.Repeat("b", 64<<10)+`"}}`, 1), policy.ReasonLimitExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			finding := check(checker, img, bundled(t, img, key, fixture.CosignOptions{Payload: []byte(tt.statement)}))
			if tt.reason == "" {
				requireValid(t, finding, key)
				return
			}
			requireInvalid(t, finding, tt.reason)
		})
	}
}

func TestBundleCountsOnlyWhatItSaysOfThisImage(t *testing.T) {
	key := newKey(t, fixture.ECDSAP256)
	img, other := newImage(t, "registry.example.com/team-a/app"), newImage(t, "registry.example.com/team-a/other")
	type object = map[string]any
	subject := func(of fixture.Image, name string, annotations any) object {
		return object{"name": name, "digest": object{"sha256": of.Descriptor.Digest.Encoded()}, "annotations": annotations}
	}
	prod := object{"env": "prod"}
	for name, tt := range map[string]struct {
		subjects []object
		reason   policy.Reason
	}{
		"all of it":               {[]object{subject(img, img.Reference.Name(), prod)}, ""},
		"of one of two subjects":  {[]object{subject(img, "", nil), subject(img, img.Reference.Name(), prod)}, ""},
		"split over two subjects": {[]object{subject(img, img.Reference.Name(), nil), subject(img, "", prod)}, policy.ReasonWrongRepository},
		"annotations of another image": {[]object{subject(img, img.Reference.Name(), nil), subject(other, img.Reference.Name(), prod)},
			policy.ReasonWrongAnnotations},
		"name of another image":  {[]object{subject(img, "", prod), subject(other, img.Reference.Name(), prod)}, policy.ReasonWrongRepository},
		"other repository":       {[]object{subject(img, other.Reference.Name(), prod)}, policy.ReasonWrongRepository},
		"number for a string":    {[]object{subject(img, img.Reference.Name(), object{"env": 1})}, policy.ReasonWrongAnnotations},
		"annotations are a list": {[]object{subject(img, img.Reference.Name(), []any{"env", "prod"})}, policy.ReasonWrongAnnotations},
	} {
		t.Run(name, func(t *testing.T) {
			statement, err := json.Marshal(object{
				"_type": "https://in-toto.io/Statement/v1", "predicateType": cosign.PredicateTypeSignature, "subject": tt.subjects,
			})
			require.NoError(t, err)
			e := bundled(t, img, key, fixture.CosignOptions{Payload: statement})
			finding := check(newChecker(t, cosign.Options{Signers: signedBy(key), Annotations: map[string]string{"env": "prod"}, MatchRepository: true}), img, e)
			if tt.reason == "" {
				requireValid(t, finding, key)
				return
			}
			requireInvalid(t, finding, tt.reason)
		})
	}
}

func TestBundleAsCosignWritesItCannotProveItsRepository(t *testing.T) {
	key := newKey(t, fixture.ECDSAP256)
	img := newImage(t, "registry.example.com/team-a/app")
	finding := check(newChecker(t, cosign.Options{Signers: signedBy(key), MatchRepository: true}), img, bundled(t, img, key, fixture.CosignOptions{}))
	requireInvalid(t, finding, policy.ReasonWrongRepository)
	require.Contains(t, finding.Message, "names no repository")
	require.NotEmpty(t, finding.Remediation)
}
