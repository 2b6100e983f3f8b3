package notation

import (
	"context"
	"crypto/sha512"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/notaryproject/notation-core-go/signature"
	"github.com/notaryproject/notation-go/plugin"
	"github.com/notaryproject/notation-go/verifier"
	framework "github.com/notaryproject/notation-plugin-framework-go/plugin"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// Signed attributes of AWS Signer, as its plugin for notation reads them
// (https://github.com/aws/aws-signer-notation-plugin).
const (
	awsPrefix           = "com.amazonaws.signer."
	awsPlugin           = "com.amazonaws.signer.notation.plugin"
	awsProfileAttribute = "com.amazonaws.signer.signingProfileVersion"
	awsJobAttribute     = "com.amazonaws.signer.signingJob"
)

// AWSSigner selects signatures of AWS Signer.
type AWSSigner struct {
	// Profiles are 1 to 64 ARNs of signing profiles, with or without a version. There are no
	// wildcards, because AWS's root certifies the signatures of every customer.
	Profiles []string
	// Revoked returns the revocations of a job, nil if there are none. It never blocks on a
	// network: an error says that there is no answer yet. If it is nil, revocation is not
	// checked.
	Revoked func(ctx context.Context, job AWSJob) ([]string, error)
}

// AWSJob identifies one signature of AWS Signer to its API (GetRevocationStatus).
type AWSJob struct {
	Region, ProfileVersion, Job string
	// Certificates has the hash of each certificate combined with the hash of its issuer.
	Certificates []string
	SignedAt     time.Time
}

// awsARN matches the ARNs of signing profiles, of their versions and of signing jobs. It
// matches no wildcards, because its matches may become part of a host name.
type awsARN struct{ partition, region, account, name, version string }

var (
	profileARN = regexp.MustCompile(`^arn:(aws|aws-cn|aws-us-gov):signer:([a-z]{2}(?:-[a-z]{1,16}){1,3}-[0-9]{1,` +
		`2}):([0-9]{12}):/signing-profiles/([a-zA-Z0-9_]{2,64})(?:/([a-zA-Z0-9]{10}))?$`)
	jobARN = regexp.MustCompile(`^arn:(aws|aws-cn|aws-us-gov):signer:([a-z]{2}(?:-[a-z]{1,16}){1,3}-[0-9]{1,` +
		`2}):([0-9]{12}):/signing-jobs/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})()$`)
)

func parseARN(pattern *regexp.Regexp, s string) (awsARN, bool) {
	if len(s) > maxARN {
		return awsARN{}, false
	}
	parts := pattern.FindStringSubmatch(s)
	if parts == nil {
		return awsARN{}, false
	}
	a := awsARN{partition: parts[1], region: parts[2], account: parts[3], name: parts[4], version: parts[5]}
	return a, a.partition == partitionOf(a.region)
}

// partitionOf returns the partition of a region.
func partitionOf(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}

func checkProfiles(profiles []string) error {
	switch n := len(profiles); {
	case n == 0:
		return errors.New("a verifier of AWS Signer without profiles would trust every AWS customer")
	case n > maxIdentities:
		return fmt.Errorf("a verifier of AWS Signer has %d profiles, the limit is %d", n, maxIdentities)
	}
	for _, profile := range profiles {
		if _, ok := parseARN(profileARN, profile); !ok {
			return fmt.Errorf("profile %.200q is not the full ARN of a signing profile, such as "+
				"arn:aws:signer:eu-west-1:123456789012:/signing-profiles/release; wildcards are not supported", profile)
		}
	}
	return nil
}

// signerJob describes the job that created a signature. The zero value is for a signature
// that AWS Signer did not create.
type signerJob struct{ profile, profileVersion, job, region string }

// checkAttributes refuses critical attributes that are not understood, and a signature
// that AWS Signer made for another profile: "unknown critical attributes MUST cause
// signature verification to fail" (signature specification, "Extended attributes"). The
// library lets them pass.
func (c *Checker) checkAttributes(signer signature.SignerInfo) (signerJob, error) {
	values := map[string]any{}
	for _, attribute := range signer.SignedAttributes.ExtendedAttributes {
		name, isText := attribute.Key.(string)
		switch known := isText && slices.Contains(understood(), name); {
		case known && c.profiles != nil:
			values[name] = attribute.Value
		case attribute.Critical && strings.HasPrefix(name, awsPrefix) && c.profiles == nil:
			return signerJob{}, c.awsSignerNotTrusted()
		case attribute.Critical:
			return signerJob{}, unknownCritical()
		}
	}
	if c.profiles == nil {
		return signerJob{}, nil
	}
	// The library refuses another plugin's name, and accepts this one.
	if values[pluginHeader] != awsPlugin {
		return signerJob{}, invalidAttribute(pluginHeader, "is missing, so AWS Signer did not make the signature")
	}
	version, ok := values[awsProfileAttribute].(string)
	profile, wellFormed := parseARN(profileARN, version)
	if !ok || !wellFormed || profile.version == "" {
		return signerJob{}, invalidAttribute(awsProfileAttribute, "is missing, or not the ARN of a signing profile's version")
	}
	text, ok := values[awsJobAttribute].(string)
	job, wellFormed := parseARN(jobARN, text)
	switch {
	case !ok || !wellFormed:
		return signerJob{}, invalidAttribute(awsJobAttribute, "is missing, or not the ARN of a signing job")
	case job.partition != profile.partition || job.region != profile.region:
		return signerJob{}, invalidAttribute(awsJobAttribute, "is of another region than the signing profile")
	}
	found := signerJob{profile: strings.TrimSuffix(version, "/"+profile.version), profileVersion: version, job: text, region: profile.region}
	if !slices.Contains(c.profiles, found.profile) && !slices.Contains(c.profiles, version) {
		return signerJob{}, c.untrustedProfile(found.profile)
	}
	return found, nil
}

// understood returns the attributes of AWS Signer and those that require its plugin.
func understood() []string {
	return []string{pluginHeader, pluginVersionHeader, awsProfileAttribute, awsJobAttribute}
}

// checkAWSRevocation refuses a signature that AWS Signer has revoked.
func (c *Checker) checkAWSRevocation(ctx context.Context, job signerJob, signer signature.SignerInfo) error {
	asked := AWSJob{Region: job.region, ProfileVersion: job.profileVersion, Job: job.job,
		Certificates: awsHashes(signer.CertificateChain), SignedAt: signer.SignedAttributes.SigningTime}
	revoked, err := c.revoked(ctx, asked)
	switch {
	case verify.IsPermanent(err):
		return verify.Refuse(policy.ReasonRevocationUnknown, "it is not known whether AWS Signer has revoked the signature: "+err.Error(),
			"correct spec.awsSigner of the trust store, or set spec.notation.awsSigner.revocation of the Verifier to Ignore")
	case err != nil:
		return verify.Inconclusive(policy.ReasonRevocationUnknown, "it is not known whether AWS Signer has revoked the signature: "+err.Error())
	case len(revoked) == 0:
		return nil
	}
	what := "a certificate of the signature"
	switch {
	case slices.Contains(revoked, job.job):
		what = "signing job " + job.job
	case slices.Contains(revoked, job.profileVersion), slices.Contains(revoked, job.profile):
		what = "signing profile " + job.profileVersion
	}
	return verify.Refuse(policy.ReasonRevokedSignature, "AWS Signer has revoked "+what,
		"sign the image again with a profile that is valid, and find out why this signature was revoked")
}

// awsHashes identifies certificates to GetRevocationStatus: "a certificate identifier
// consists of a subject certificate TBS hash combined with a parent CA TBS hash. Root
// certificates are defined as their own CA" (AWS Signer API reference).
func awsHashes(chain []*x509.Certificate) []string {
	hashes := make([]string, 0, len(chain))
	for i, certificate := range chain {
		own, issuer := sha512.Sum384(certificate.RawTBSCertificate), sha512.Sum384(chain[min(i+1, len(chain)-1)].RawTBSCertificate)
		hashes = append(hashes, hex.EncodeToString(own[:])+hex.EncodeToString(issuer[:]))
	}
	return hashes
}

// Attributes that require a verification plugin (signature specification, "Extended
// attributes").
const (
	pluginHeader        = verifier.HeaderVerificationPlugin
	pluginVersionHeader = verifier.HeaderVerificationPluginMinVersion
)

// awsPluginVersion is above every 1.x version of AWS's plugin: this package implements their
// checks. A signature that requires 2.0.0 is refused.
const awsPluginVersion = "1.999999.999999"

// inProcess replaces the programs that the library would start. It knows one plugin and runs
// nothing.
type inProcess struct{}

var _ plugin.Manager = inProcess{}

// Get returns the replacement for AWS Signer's plugin and an error for every other name.
func (inProcess) Get(_ context.Context, name string) (framework.Plugin, error) {
	if name != awsPlugin {
		return nil, errors.New("there are no plugins")
	}
	return awsVerifier{}, nil
}

// List returns the name of the one plugin.
func (inProcess) List(context.Context) ([]string, error) { return []string{awsPlugin}, nil }

// awsVerifier tells the library that the plugin exists. checkAttributes and
// checkAWSRevocation do its work. Any other call of the plugin panics, which refuses the
// signature.
type awsVerifier struct{ framework.Plugin }

// GetMetadata returns one capability, because the library refuses a plugin without any. It is
// revocation, which the policy skips: so the library never uses it, and still checks the
// trusted identities.
func (awsVerifier) GetMetadata(context.Context, *framework.GetMetadataRequest) (*framework.GetMetadataResponse, error) {
	return &framework.GetMetadataResponse{Name: awsPlugin, Version: awsPluginVersion,
		Capabilities: []framework.Capability{framework.CapabilityRevocationCheckVerifier}}, nil
}
