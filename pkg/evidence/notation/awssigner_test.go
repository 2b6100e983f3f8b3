package notation_test

import (
	"context"
	"crypto/sha512"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/notaryproject/notation-go/dir"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/evidence/notation"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

const (
	profile        = "arn:aws:signer:eu-west-1:123456789012:/signing-profiles/release"
	profileVersion = profile + "/AbCdEf1234"
	job            = "arn:aws:signer:eu-west-1:123456789012:/signing-jobs/e218ee67-5dd3-4dc4-8caf-224898b12493"
)

// awsHeaders are the signed attributes as AWS Signer writes them.
func awsHeaders() headers {
	return headers{
		"alg": "ES256", "cty": "application/vnd.cncf.notary.payload.v1+json",
		"crit":       []string{schemeHeader, authenticTimeHeader, expiryHeader, pluginHeader, profileHeader, jobHeader},
		schemeHeader: "notary.x509.signingAuthority", authenticTimeHeader: time.Now().Add(-time.Minute).UTC().Truncate(time.Second),
		expiryHeader: time.Now().Add(time.Hour).UTC().Truncate(time.Second), pluginHeader: "com.amazonaws.signer.notation.plugin",
		profileHeader: profileVersion, jobHeader: job,
	}
}

// trustingAWS returns a verifier of AWS Signer.
func trustingAWS(root *fixture.Authority, profiles ...string) notation.Options {
	if len(profiles) == 0 {
		profiles = []string{profile}
	}
	return notation.Options{Name: "Verifier team-a/release", SigningAuthorities: []*x509.Certificate{root.Chain[0]},
		AWSSigner: &notation.AWSSigner{Profiles: profiles}}
}

// inBoth runs a test with a JWS and a COSE envelope of the same headers.
func inBoth(t *testing.T, test func(t *testing.T, cose bool)) {
	t.Helper()
	t.Run("JWS", func(t *testing.T) { test(t, false) })
	t.Run("COSE", func(t *testing.T) { test(t, true) })
}

func mediaType(cose bool) string { return fixture.NotationOptions{COSE: cose}.MediaType() }

func TestAcceptsAWSSignersSignatureForATrustedProfile(t *testing.T) {
	root := authority(t, "root", fixture.CertificateOptions{})
	leaf := signer(t, root, "AWS Signer", fixture.CertificateOptions{})
	img := anImage(t, "image")
	for name, c := range map[string]struct {
		profile string
		change  func(headers)
	}{
		"any version of a profile":             {profile, func(headers) {}},
		"one version of a profile":             {profileVersion, func(headers) {}},
		"the profile of another account's job": {profile, func(h headers) { h[jobHeader] = strings.Replace(job, "123456789012", "210987654321", 1) }},
		"a plugin of at least 1.0.298":         {profile, func(h headers) { h[pluginMinHeader] = "1.0.298"; h.mark(pluginMinHeader) }},
		"attributes that are not critical":     {profile, func(h headers) { h["crit"] = []string{schemeHeader, authenticTimeHeader, expiryHeader, pluginHeader} }},
		"no expiry":                            {profile, func(h headers) { h.drop(expiryHeader) }},
	} {
		t.Run(name, func(t *testing.T) {
			inBoth(t, func(t *testing.T, cose bool) {
				envelope := rawEnvelope(t, img, leaf, awsHeaders().with(c.change), cose)
				finding := check(t, trustingAWS(root, c.profile), img, evidenceOf(mediaType(cose), envelope))
				require.Equal(t, policy.Valid, finding.Result(), finding.Message)
				require.Equal(t, profile, finding.Signer(), "all AWS customers share one subject")
				require.Equal(t, profileVersion, finding.Extensions["signingProfileVersion"])
				require.Contains(t, finding.Extensions["signingJob"], "/signing-jobs/")
				require.Contains(t, finding.Message, profileVersion)
			})
		})
	}
}

// Each case changes one signed attribute of an envelope that is otherwise accepted.
func TestEachChangedAttributeOfAWSSignerHasItsOwnReason(t *testing.T) {
	root := authority(t, "root", fixture.CertificateOptions{})
	leaf := signer(t, root, "AWS Signer", fixture.CertificateOptions{})
	img := anImage(t, "image")
	set := func(name string, value any) func(headers) { return func(h headers) { h[name] = value } }
	drop := func(name string) func(headers) { return func(h headers) { h.drop(name) } }
	inProfile := func(from, to string) func(headers) {
		return set(profileHeader, strings.Replace(profileVersion, from, to, 1))
	}
	for name, c := range map[string]struct {
		change func(headers)
		reason policy.Reason
		says   string
	}{
		"profile of another account": {inProfile("123456789012", "210987654321"), policy.ReasonUntrustedProfile, "210987654321"},
		"profile of another region": {func(h headers) {
			inProfile("eu-west-1", "eu-west-2")(h)
			h[jobHeader] = strings.Replace(job, "eu-west-1", "eu-west-2", 1)
		}, policy.ReasonUntrustedProfile, "eu-west-2"},
		"longer name of a profile":        {inProfile("/release/", "/release2/"), policy.ReasonUntrustedProfile, "release2"},
		"shorter name of a profile":       {inProfile("/release/", "/relea/"), policy.ReasonUntrustedProfile, "relea"},
		"profile in capitals":             {inProfile("/release/", "/Release/"), policy.ReasonUntrustedProfile, "Release"},
		"profile of another partition":    {inProfile("arn:aws:", "arn:aws-cn:"), policy.ReasonInvalidAttribute, profileHeader},
		"profile without a version":       {set(profileHeader, profile), policy.ReasonInvalidAttribute, profileHeader},
		"profile with a version too many": {set(profileHeader, profileVersion+"/AbCdEf1234"), policy.ReasonInvalidAttribute, profileHeader},
		"profile with a wildcard": {set(profileHeader, strings.Replace(profileVersion, "release", "*", 1)), policy.ReasonInvalidAttribute,
			profileHeader},
		"profile of another service": {inProfile(":signer:", ":kms:"), policy.ReasonInvalidAttribute, profileHeader},
		"profile that is very long":  {set(profileHeader, profileVersion+strings.Repeat("a", 5000)), policy.ReasonInvalidAttribute, profileHeader},
		"profile with a line end":    {set(profileHeader, profileVersion+"\n"), policy.ReasonInvalidAttribute, profileHeader},
		"profile that is no text":    {set(profileHeader, 7), policy.ReasonInvalidAttribute, profileHeader},
		"no profile":                 {drop(profileHeader), policy.ReasonInvalidAttribute, profileHeader},
		"no job":                     {drop(jobHeader), policy.ReasonInvalidAttribute, jobHeader},
		"job that is no ARN":         {set(jobHeader, "job"), policy.ReasonInvalidAttribute, jobHeader},
		"job of another region": {set(jobHeader, strings.Replace(job, "eu-west-1", "us-east-1", 1)), policy.ReasonInvalidAttribute,
			"another region"},
		"no plugin":      {drop(pluginHeader), policy.ReasonInvalidAttribute, pluginHeader},
		"another plugin": {set(pluginHeader, "com.example.plugin"), policy.ReasonPluginRequired, "plugins are not supported"},
		"plugin whose name only begins the same": {set(pluginHeader, "com.amazonaws.signer.notation.plugin2"), policy.ReasonPluginRequired,
			"plugins are not supported"},
		"plugin that is a path": {set(pluginHeader, "../../bin/sh"), policy.ReasonPluginRequired, "plugins are not supported"},
		"plugin that is not critical": {func(h headers) { h.drop(pluginHeader); h[pluginHeader] = "com.amazonaws.signer.notation.plugin" },
			policy.ReasonPluginRequired, "plugins are not supported"},
		"minimum version that is no version": {func(h headers) { h[pluginMinHeader] = "1.x"; h.mark(pluginMinHeader) }, policy.ReasonPluginRequired,
			"malformed or newer"},
		"minimum version of a later plugin": {func(h headers) { h[pluginMinHeader] = "2.0.0"; h.mark(pluginMinHeader) }, policy.ReasonPluginRequired,
			"malformed or newer"},
		"minimum version that is not critical": {set(pluginMinHeader, "1.0.0"), policy.ReasonPluginRequired, "malformed or newer"},
		"one more critical attribute": {func(h headers) { h["com.amazonaws.signer.other"] = "x"; h.mark("com.amazonaws.signer.other") },
			policy.ReasonUnknownCriticalAttribute, "critical attribute"},
		"no time": {drop(authenticTimeHeader), policy.ReasonMalformed, "does not state its time"},
		"the signer's time instead": {func(h headers) { h[signingTimeHeader] = h[authenticTimeHeader]; h.drop(authenticTimeHeader) },
			policy.ReasonMalformed, "does not state its time"},
		"time before the certificate": {set(authenticTimeHeader, time.Now().Add(-90*time.Minute).UTC().Truncate(time.Second)),
			policy.ReasonTimestampOutOfTime, "was not valid"},
		"time after the certificate": {set(authenticTimeHeader, time.Now().Add(-90*24*time.Hour).UTC().Truncate(time.Second)),
			policy.ReasonTimestampOutOfTime, "was not valid"},
		"time in the future": {func(h headers) {
			h.drop(expiryHeader)
			h[authenticTimeHeader] = time.Now().Add(time.Hour).UTC().Truncate(time.Second)
		}, policy.ReasonInvalidTimestamp, "in the future"},
		"expired": {set(expiryHeader, time.Now().Add(-time.Second).UTC().Truncate(time.Second)), policy.ReasonExpiredSignature, "expired"},
		"another scheme": {func(h headers) {
			h.drop(authenticTimeHeader)
			h[schemeHeader] = "notary.x509"
			h[signingTimeHeader] = time.Now().UTC().Truncate(time.Second)
		}, policy.ReasonUntrustedCertificate, "as a signing authority only"},
		"unknown scheme": {set(schemeHeader, "notary.x509.other"), policy.ReasonMalformed, "specification"},
	} {
		t.Run(name, func(t *testing.T) {
			inBoth(t, func(t *testing.T, cose bool) {
				envelope := rawEnvelope(t, img, leaf, awsHeaders().with(c.change), cose)
				finding := check(t, trustingAWS(root), img, evidenceOf(mediaType(cose), envelope))
				requireDenied(t, c.reason, finding)
				require.Contains(t, finding.Message, c.says)
				require.NotEmpty(t, finding.Remediation)
			})
		})
	}
}

func TestAProfileIsTrustedInItsOwnAccountRegionAndPartition(t *testing.T) {
	root := authority(t, "root", fixture.CertificateOptions{})
	leaf := signer(t, root, "AWS Signer", fixture.CertificateOptions{})
	img := anImage(t, "image")
	envelope := rawEnvelope(t, img, leaf, awsHeaders(), false)
	for name, trusted := range map[string]string{
		"another account":             strings.Replace(profile, "123456789012", "210987654321", 1),
		"another region":              strings.Replace(profile, "eu-west-1", "eu-west-2", 1),
		"another partition":           strings.Replace(strings.Replace(profile, "aws", "aws-us-gov", 1), "eu-west-1", "us-gov-west-1", 1),
		"a name that begins the same": profile + "2",
		"another version":             profile + "/ZZZZZZ1234",
	} {
		t.Run(name, func(t *testing.T) {
			requireDenied(t, policy.ReasonUntrustedProfile, check(t, trustingAWS(root, trusted), img, evidenceOf(notation.MediaTypeJWS, envelope)))
		})
	}
}

func TestAWSSignersSignaturesAreRefusedByVerifiersThatDoNotNameIt(t *testing.T) {
	root := authority(t, "root", fixture.CertificateOptions{})
	leaf := signer(t, root, "AWS Signer", fixture.CertificateOptions{})
	img := anImage(t, "image")
	generic := notation.Options{Name: "Verifier team-a/release", SigningAuthorities: root.Chain, TrustedIdentities: []string{"*"}}
	inBoth(t, func(t *testing.T, cose bool) {
		for name, h := range map[string]headers{"with its plugin": awsHeaders(), "with its attributes": awsHeaders().with(func(h headers) { h.drop(pluginHeader) })} {
			finding := check(t, generic, img, evidenceOf(mediaType(cose), rawEnvelope(t, img, leaf, h, cose)))
			requireDenied(t, policy.ReasonPluginRequired, finding)
			require.Contains(t, finding.Remediation, "spec.notation.awsSigner.profiles", name)
		}
	})
}

func TestAnAttributeThatIsThereTwiceIsRefused(t *testing.T) {
	root := authority(t, "root", fixture.CertificateOptions{})
	leaf := signer(t, root, "AWS Signer", fixture.CertificateOptions{})
	img := anImage(t, "image")
	payload, err := json.Marshal(map[string]any{"targetArtifact": img.Descriptor})
	require.NoError(t, err)
	foreign := strings.Replace(profileVersion, "123456789012", "210987654321", 1)
	protected, err := json.Marshal(awsHeaders())
	require.NoError(t, err)
	twice := strings.Replace(string(protected), "{", `{"`+profileHeader+`":"`+foreign+`",`, 1)
	finding := check(t, trustingAWS(root), img, evidenceOf(notation.MediaTypeJWS, rawJWS(t, leaf, payload, []byte(twice))))
	requireDenied(t, policy.ReasonMalformed, finding)
	envelope := rawCOSE(t, leaf, payload, awsHeaders(), func(encoded []byte) []byte {
		return twiceInCOSE(t, encoded, profileHeader, foreign)
	})
	requireDenied(t, policy.ReasonMalformed, check(t, trustingAWS(root), img, evidenceOf(notation.MediaTypeCOSE, envelope)))
}

// twiceInCOSE adds a pair to an encoded protected header: a byte string with a map of
// fewer than 23 pairs.
func twiceInCOSE(t *testing.T, encoded []byte, name, value string) []byte {
	t.Helper()
	require.EqualValues(t, 0x59, encoded[0], "a byte string of more than 255 bytes")
	body := append([]byte{encoded[3] + 1}, encoded[4:]...)
	for _, text := range []string{name, value} {
		require.Less(t, len(text), 256)
		body = append(append(body, 0x78, byte(len(text))), text...)
	}
	return append([]byte{0x59, byte(len(body) >> 8), byte(len(body))}, body...)
}

func TestRevokedSignaturesOfAWSSignerAreRefused(t *testing.T) {
	root := authority(t, "root", fixture.CertificateOptions{})
	leaf := signer(t, root, "AWS Signer", fixture.CertificateOptions{})
	img := anImage(t, "image")
	h := awsHeaders()
	e := evidenceOf(notation.MediaTypeJWS, rawEnvelope(t, img, leaf, h, false))
	for name, c := range map[string]struct {
		revoked []string
		err     error
		result  policy.Result
		reason  policy.Reason
		says    string
	}{
		"nothing":       {nil, nil, policy.Valid, "", "verified"},
		"the job":       {[]string{job}, nil, policy.Invalid, policy.ReasonRevokedSignature, "signing job " + job},
		"the profile":   {[]string{profileVersion}, nil, policy.Invalid, policy.ReasonRevokedSignature, "signing profile " + profileVersion},
		"a certificate": {[]string{"136eb9"}, nil, policy.Invalid, policy.ReasonRevokedSignature, "a certificate"},
		"not known yet": {nil, errors.New("it is being fetched, try again"), policy.Unknown, policy.ReasonRevocationUnknown, "being fetched"},
		"never known": {nil, verify.Permanent(policy.ReasonForbidden, errors.New("no credentials")), policy.Invalid, policy.ReasonRevocationUnknown,
			"no credentials"},
		"revoked and failed": {[]string{job}, errors.New("late"), policy.Unknown, policy.ReasonRevocationUnknown, "late"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []notation.AWSJob
			options := trustingAWS(root)
			options.AWSSigner.Revoked = func(_ context.Context, j notation.AWSJob) ([]string, error) {
				asked = append(asked, j)
				return c.revoked, c.err
			}
			finding := check(t, options, img, e)
			require.Equal(t, c.result, finding.Result(), finding.Message)
			require.Equal(t, c.reason, finding.Reason)
			require.Contains(t, finding.Message, c.says)
			tbs := func(certificate *x509.Certificate) string {
				sum := sha512.Sum384(certificate.RawTBSCertificate)
				return hex.EncodeToString(sum[:])
			}
			require.Len(t, asked, 1)
			require.True(t, asked[0].SignedAt.Equal(h[authenticTimeHeader].(time.Time)))
			asked[0].SignedAt = time.Time{}
			require.Equal(t, notation.AWSJob{Region: "eu-west-1", ProfileVersion: profileVersion, Job: job,
				Certificates: []string{tbs(leaf.Chain[0]) + tbs(root.Chain[0]), tbs(root.Chain[0]) + tbs(root.Chain[0])}}, asked[0])
		})
	}
	permissive := trustingAWS(root)
	permissive.Overrides.Revocation = notation.Log
	permissive.AWSSigner.Revoked = func(context.Context, notation.AWSJob) ([]string, error) { return []string{job}, nil }
	finding := check(t, permissive, img, e)
	require.Equal(t, policy.Valid, finding.Result())
	require.Contains(t, finding.Message, "has revoked")
}

func TestAWSSignerIsOnlyAskedAboutTrustedSignatures(t *testing.T) {
	root, stranger := authority(t, "root", fixture.CertificateOptions{}), authority(t, "root", fixture.CertificateOptions{})
	img := anImage(t, "image")
	leaf, foreign := signer(t, root, "AWS Signer", fixture.CertificateOptions{}), signer(t, stranger, "AWS Signer", fixture.CertificateOptions{})
	options := trustingAWS(root)
	options.AWSSigner.Revoked = func(context.Context, notation.AWSJob) ([]string, error) {
		t.Error("asked")
		return nil, nil
	}
	for name, envelope := range map[string][]byte{
		"of a stranger":    rawEnvelope(t, img, foreign, awsHeaders(), false),
		"of another image": rawEnvelope(t, anImage(t, "other"), leaf, awsHeaders(), false),
		"of another profile": rawEnvelope(t, img, leaf,
			awsHeaders().with(func(h headers) { h[profileHeader] = strings.Replace(profileVersion, "release", "other", 1) }), false),
		"expired": rawEnvelope(t, img, leaf, awsHeaders().with(func(h headers) { h[expiryHeader] = time.Now().Add(-time.Hour).UTC() }), false),
	} {
		require.Equal(t, policy.Invalid, check(t, options, img, evidenceOf(notation.MediaTypeJWS, envelope)).Result(), name)
	}
}

// The library would start a program of this name from the user's configuration.
func TestTheLibraryNeverLooksForAProgram(t *testing.T) {
	home := t.TempDir()
	before := dir.UserLibexecDir
	t.Cleanup(func() { dir.UserLibexecDir = before })
	dir.UserLibexecDir = home
	root := authority(t, "root", fixture.CertificateOptions{})
	leaf := signer(t, root, "AWS Signer", fixture.CertificateOptions{})
	img := anImage(t, "image")
	ran := filepath.Join(home, "ran")
	for _, name := range []string{"com.amazonaws.signer.notation.plugin", "com.example.plugin"} {
		program := filepath.Join(home, dir.PathPlugins, name, "notation-"+name)
		require.NoError(t, os.MkdirAll(filepath.Dir(program), 0o700))
		require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho ran > "+ran+"\n"), 0o700))
		for _, options := range []notation.Options{trustingAWS(root), {Name: "v", SigningAuthorities: root.Chain, TrustedIdentities: []string{"*"}}} {
			envelope := rawEnvelope(t, img, leaf, awsHeaders().with(func(h headers) { h[pluginHeader] = name }), false)
			check(t, options, img, evidenceOf(notation.MediaTypeJWS, envelope))
		}
	}
	require.NoFileExists(t, ran)
}

func TestRefusesVerifiersOfAWSSignerThatWouldTrustEveryCustomer(t *testing.T) {
	root := authority(t, "root", fixture.CertificateOptions{})
	for name, c := range map[string]struct {
		change func(*notation.Options)
		want   string
	}{
		"no profile": {func(o *notation.Options) { o.AWSSigner.Profiles = nil }, "every AWS customer"},
		"everything": {func(o *notation.Options) { o.AWSSigner.Profiles = []string{"*"} }, "full ARN"},
		"a wildcard for the account": {func(o *notation.Options) {
			o.AWSSigner.Profiles = []string{strings.Replace(profile, "123456789012", "*", 1)}
		}, "full ARN"},
		"a wildcard for the region": {func(o *notation.Options) {
			o.AWSSigner.Profiles = []string{strings.Replace(profile, "eu-west-1", "*", 1)}
		}, "full ARN"},
		"a wildcard in the name": {func(o *notation.Options) { o.AWSSigner.Profiles = []string{profile + "*"} }, "full ARN"},
		"a name alone":           {func(o *notation.Options) { o.AWSSigner.Profiles = []string{"release"} }, "full ARN"},
		"a slash at the end":     {func(o *notation.Options) { o.AWSSigner.Profiles = []string{profile + "/"} }, "full ARN"},
		"a job":                  {func(o *notation.Options) { o.AWSSigner.Profiles = []string{job} }, "full ARN"},
		"another partition's region": {func(o *notation.Options) {
			o.AWSSigner.Profiles = []string{strings.Replace(profile, "arn:aws:", "arn:aws-cn:", 1)}
		}, "full ARN"},
		"too many profiles":    {func(o *notation.Options) { o.AWSSigner.Profiles = make([]string, 65) }, "limit is 64"},
		"no root":              {func(o *notation.Options) { o.SigningAuthorities = nil }, "without certificates"},
		"certificates as well": {func(o *notation.Options) { o.Certificates = root.Chain }, "no other certificates"},
		"only certificates":    {func(o *notation.Options) { o.Certificates, o.SigningAuthorities = root.Chain, nil }, "signing authority"},
	} {
		t.Run(name, func(t *testing.T) {
			options := trustingAWS(root)
			c.change(&options)
			made, err := notation.New(options)
			require.ErrorContains(t, err, c.want)
			require.Nil(t, made)
		})
	}
}
