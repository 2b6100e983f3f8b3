package sigstore

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"math/big"
	"net/url"
	"time"

	"github.com/digitorus/timestamp"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	"github.com/sigstore/sigstore-go/pkg/fulcio/certificate"
	"github.com/sigstore/sigstore-go/pkg/root"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// GitHubIssuer is the OIDC issuer of GitHub Actions.
const GitHubIssuer = "https://token.actions.githubusercontent.com"

// GitHub stands in for GitHub's own Sigstore instance, which signs the attestations of
// private repositories: P-384 certificate and timestamp authorities two levels below one
// root, timestamps without certificates, no log of either kind, and a new generation of
// authorities every few months.
type GitHub struct {
	root        *fixture.Authority
	generations []*generation
}

// generation is an authority of each kind. Nothing after end is signed by it; zero is open.
type generation struct {
	issuing, stamping *fixture.Authority
	stamper           *x509.Certificate
	stamperKey        *ecdsa.PrivateKey
	start, end        time.Time
}

// NewGitHub makes an instance with one generation.
func NewGitHub() (*GitHub, error) {
	made, err := fixture.NewAuthorityWith("Internal Services Root", longLived())
	if err != nil {
		return nil, err
	}
	g := &GitHub{root: made}
	return g, g.Rotate(time.Now().AddDate(0, -6, 0), time.Time{})
}

func longLived() fixture.CertificateOptions {
	now := time.Now()
	return fixture.CertificateOptions{Algorithm: fixture.ECDSAP384, NotBefore: now.AddDate(-3, 0, 0), NotAfter: now.AddDate(3, 0, 0)}
}

// Rotate adds a generation from start on. The one before it ends at end.
func (g *GitHub) Rotate(start, end time.Time) error {
	if n := len(g.generations); n > 0 {
		g.generations[n-1].end = end
	}
	upper, err := g.root.IssueAuthority("Fulcio Intermediate l1", longLived())
	if err != nil {
		return err
	}
	made := &generation{start: start}
	if made.issuing, err = upper.IssueAuthority("Fulcio Intermediate l2", longLived()); err != nil {
		return err
	}
	if made.stamping, err = g.root.IssueAuthority("TSA intermediate", longLived()); err != nil {
		return err
	}
	if made.stamperKey, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader); err != nil {
		return fmt.Errorf("make a key for timestamps: %w", err)
	}
	usage, err := asn1.Marshal([]asn1.ObjectIdentifier{{1, 3, 6, 1, 5, 5, 7, 3, 8}}) // id-kp-timeStamping
	if err != nil {
		return fmt.Errorf("encode key usage: %w", err)
	}
	limits := longLived()
	made.stamper, err = issued(made.stamping, &made.stamperKey.PublicKey, &x509.Certificate{Subject: pkix.Name{CommonName: "TSA Timestamping"},
		NotBefore: limits.NotBefore, NotAfter: limits.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 37}, Critical: true, Value: usage}}})
	if err != nil {
		return err
	}
	g.generations = append(g.generations, made)
	return nil
}

// Drop removes all generations but the newest, as after a compromise.
func (g *GitHub) Drop() { g.generations = g.generations[len(g.generations)-1:] }

// issued signs a certificate for key.
func issued(by *fixture.Authority, key crypto.PublicKey, template *x509.Certificate) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, by.Chain[0], key, by.Key)
	if err != nil {
		return nil, fmt.Errorf("issue a certificate: %w", err)
	}
	return x509.ParseCertificate(der)
}

// TrustedRoot returns the trusted_root.json of the instance.
func (g *GitHub) TrustedRoot() ([]byte, error) {
	var authorities []root.CertificateAuthority
	var stampers []root.TimestampingAuthority
	for _, each := range g.generations {
		authorities = append(authorities, &root.FulcioCertificateAuthority{Root: g.root.Chain[0], Intermediates: each.issuing.Chain[:2],
			ValidityPeriodStart: each.start, ValidityPeriodEnd: each.end, URI: "fulcio.githubapp.com"})
		stampers = append(stampers, &root.SigstoreTimestampingAuthority{Root: g.root.Chain[0], Intermediates: each.stamping.Chain[:1], Leaf: each.stamper,
			ValidityPeriodStart: each.start, ValidityPeriodEnd: each.end, URI: "timestamp.githubapp.com"})
	}
	made, err := root.NewTrustedRoot(root.TrustedRootMediaType01, authorities, nil, stampers, nil)
	if err != nil {
		return nil, fmt.Errorf("make a trusted root: %w", err)
	}
	text, err := made.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("write the trusted root: %w", err)
	}
	return text, nil
}

// Build is a run of a workflow.
type Build struct {
	// Owner, Repository and Workflow name the workflow, such as example, app and
	// build.yml. Ref is what it runs on, by default refs/heads/main.
	Owner, Repository, Workflow, Ref string
	// Time is when it signs; zero is now.
	Time time.Time
	// Generation is the number of the generation that signs, from 0.
	Generation int
	// Stamper is the instance whose authority timestamps; nil is the own. Without
	// WithoutTimestamp there always is a timestamp.
	Stamper          *GitHub
	WithoutTimestamp bool
}

func (b Build) at() time.Time {
	if b.Time.IsZero() {
		return time.Now()
	}
	return b.Time
}

// Subject is the URI that certifies the workflow.
func (b Build) Subject() string {
	return b.repository() + "/.github/workflows/" + b.Workflow + "@" + b.ref()
}

func (b Build) ref() string        { return cmp.Or(b.Ref, "refs/heads/main") }
func (b Build) owner() string      { return "https://github.com/" + b.Owner }
func (b Build) repository() string { return b.owner() + "/" + b.Repository }

// Provenance is the predicate that actions/attest-build-provenance signs, in part.
func (b Build) Provenance() map[string]any {
	return map[string]any{
		"buildDefinition": map[string]any{"buildType": "https://actions.github.io/buildtypes/workflow/v1",
			"externalParameters": map[string]any{"workflow": map[string]any{"ref": b.ref(), "repository": b.repository(), "path": ".github/workflows/" + b.Workflow}}},
		"runDetails": map[string]any{"builder": map[string]any{"id": b.Subject()}},
	}
}

// Attest signs a statement in a run of a workflow and returns a Sigstore bundle v0.3.
func (g *GitHub) Attest(b Build, statement []byte) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	leaf, err := g.certify(b, &key.PublicKey)
	if err != nil {
		return nil, err
	}
	const payloadType = "application/vnd.in-toto+json"
	sum := sha256.Sum256(fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(statement), statement))
	signature, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	if err != nil {
		return nil, fmt.Errorf("sign the statement: %w", err)
	}
	e := &entity{certificate: leaf.Raw}
	if !b.WithoutTimestamp {
		stamper := g
		if b.Stamper != nil {
			stamper = b.Stamper
		}
		stamped, err := stamper.stamp(b, signature)
		if err != nil {
			return nil, err
		}
		e.timestamps = [][]byte{stamped}
	}
	text, err := protojson.Marshal(&protobundle.Bundle{
		MediaType:            "application/vnd.dev.sigstore.bundle.v0.3+json",
		VerificationMaterial: e.material(SignOptions{WithoutLog: true}),
		Content: &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{Payload: statement, PayloadType: payloadType,
			Signatures: []*protodsse.Signature{{Sig: signature}}}},
	})
	if err != nil {
		return nil, fmt.Errorf("write the bundle: %w", err)
	}
	return text, nil
}

// certify issues a certificate for the workflow, for ten minutes.
func (g *GitHub) certify(b Build, key *ecdsa.PublicKey) (*x509.Certificate, error) {
	subject, err := url.Parse(b.Subject())
	if err != nil {
		return nil, fmt.Errorf("name the workflow: %w", err)
	}
	template := &x509.Certificate{URIs: []*url.URL{subject}, NotBefore: b.at().Add(-time.Minute), NotAfter: b.at().Add(9 * time.Minute),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
		ExtraExtensions: []pkix.Extension{{Id: certificate.OIDIssuer, Value: []byte(GitHubIssuer)}}} //nolint:staticcheck // GitHub writes both
	for _, claim := range []struct {
		id    asn1.ObjectIdentifier
		value string
	}{
		{certificate.OIDIssuerV2, GitHubIssuer}, {certificate.OIDBuildSignerURI, b.Subject()}, {certificate.OIDRunnerEnvironment, "github-hosted"},
		{certificate.OIDSourceRepositoryURI, b.repository()}, {certificate.OIDSourceRepositoryRef, b.ref()},
		{certificate.OIDSourceRepositoryOwnerURI, b.owner()}, {certificate.OIDSourceRepositoryVisibilityAtSigning, "private"},
	} {
		value, err := asn1.MarshalWithParams(claim.value, "utf8")
		if err != nil {
			return nil, fmt.Errorf("encode a claim: %w", err)
		}
		template.ExtraExtensions = append(template.ExtraExtensions, pkix.Extension{Id: claim.id, Value: value})
	}
	return issued(g.generations[b.Generation].issuing, key, template)
}

// stamp returns an RFC 3161 response without certificates.
func (g *GitHub) stamp(b Build, signature []byte) ([]byte, error) {
	sum := sha256.Sum256(signature)
	by := g.generations[min(b.Generation, len(g.generations)-1)]
	made := timestamp.Timestamp{HashedMessage: sum[:], HashAlgorithm: crypto.SHA256, Time: b.at(), Accuracy: time.Second,
		Policy: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 2}}
	text, err := made.CreateResponseWithOpts(by.stamper, by.stamperKey, crypto.SHA384)
	if err != nil {
		return nil, fmt.Errorf("make a timestamp: %w", err)
	}
	return text, nil
}
