package notation_test

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/evidence/notation"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

func TestAcceptsSignaturesOfEveryEnvelopeAndKey(t *testing.T) {
	for name, algorithm := range map[string]fixture.Algorithm{
		"ECDSA P-256": fixture.ECDSAP256, "ECDSA P-384": fixture.ECDSAP384, "RSA 2048": fixture.RSA2048, "RSA 3072": fixture.RSA3072,
	} {
		root := authority(t, "root", fixture.CertificateOptions{Algorithm: algorithm})
		leaf := signer(t, root, "release", fixture.CertificateOptions{Algorithm: algorithm})
		for envelope, cose := range map[string]bool{"JWS": false, "COSE": true} {
			t.Run(name+" in "+envelope, func(t *testing.T) {
				img := anImage(t, "image")
				finding := check(t, trusting(root.Chain[0]), img, signed(t, img, leaf, fixture.NotationOptions{COSE: cose}))
				require.Equal(t, policy.Valid, finding.Result(), finding.Message)
				key, err := x509.MarshalPKIXPublicKey(leaf.Key.Public())
				require.NoError(t, err)
				sum := sha256.Sum256(key)
				require.Equal(t, "x509.subject:C=US,CN=release,O=Landwaiter Fixtures,ST=WA", finding.Signer())
				require.Equal(t, map[string]any{
					"Issuer":         "CN=root,O=Landwaiter Fixtures,ST=WA,C=US",
					"SN":             "CN=release,O=Landwaiter Fixtures,ST=WA,C=US",
					"keyFingerprint": "sha256:" + hex.EncodeToString(sum[:]),
				}, finding.Extensions)
			})
		}
	}
}

func TestAcceptsWhatTheTrustStoreAndIdentitiesName(t *testing.T) {
	root := authority(t, "root", fixture.CertificateOptions{})
	issuing, err := root.IssueAuthority("issuing", fixture.CertificateOptions{})
	require.NoError(t, err)
	below := signer(t, issuing, "release", fixture.CertificateOptions{})
	alone, err := fixture.NewSigner("alone", fixture.CertificateOptions{})
	require.NoError(t, err)
	other := authority(t, "other", fixture.CertificateOptions{})
	cases := map[string]struct {
		anchors    []*x509.Certificate
		identities []string
		signer     *fixture.Certificate
	}{
		"the root of a longer chain":  {[]*x509.Certificate{root.Chain[0]}, nil, below},
		"the intermediate of a chain": {[]*x509.Certificate{issuing.Chain[0]}, nil, below},
		"one anchor of several":       {[]*x509.Certificate{other.Chain[0], root.Chain[0]}, nil, below},
		"a self-signed signer":        {[]*x509.Certificate{alone.Chain[0]}, nil, alone},
		"any identity":                {[]*x509.Certificate{root.Chain[0]}, []string{"*"}, below},
		"one identity of several": {[]*x509.Certificate{root.Chain[0]},
			[]string{"x509.subject:CN=x,O=Y,ST=Z,C=US", "x509.subject:CN=release,O=Landwaiter Fixtures,ST=WA,C=US"}, below},
		"the state in its short spelling": {[]*x509.Certificate{root.Chain[0]}, []string{"x509.subject: C=US, S=WA, O=Landwaiter Fixtures"}, below},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			options := trusting(c.anchors...)
			if c.identities != nil {
				options.TrustedIdentities = c.identities
			}
			img := anImage(t, "image")
			finding := check(t, options, img, signed(t, img, c.signer, fixture.NotationOptions{}))
			require.Equal(t, policy.Valid, finding.Result(), finding.Message)
		})
	}
}

func TestAcceptsDecidesByMediaTypesAlone(t *testing.T) {
	c := checker(t, trusting(authority(t, "root", fixture.CertificateOptions{}).Chain[0]))
	cases := map[string]struct {
		config, artifact, layer string
		want                    bool
	}{
		"type of the config":        {notation.ArtifactType, "", notation.MediaTypeJWS, true},
		"type of the manifest":      {ocispec.MediaTypeEmptyJSON, notation.ArtifactType, notation.MediaTypeCOSE, true},
		"no notation type":          {ocispec.MediaTypeImageConfig, "", notation.MediaTypeJWS, false},
		"layer of another kind":     {notation.ArtifactType, notation.ArtifactType, "application/json", false},
		"cosign bundle":             {ocispec.MediaTypeEmptyJSON, "", "application/vnd.dev.sigstore.bundle.v0.3+json", false},
		"nothing":                   {"", "", "", false},
		"type of the config's case": {strings.ToUpper(notation.ArtifactType), "", notation.MediaTypeJWS, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var s verify.Signature
			s.Manifest.Config.MediaType, s.Manifest.ArtifactType, s.Layer.MediaType = tc.config, tc.artifact, tc.layer
			require.Equal(t, tc.want, c.Accepts(s))
		})
	}
}

func TestRefusesVerifiersThatCouldProveNothingOrAnything(t *testing.T) {
	root := authority(t, "root", fixture.CertificateOptions{})
	leaf := signer(t, root, "release", fixture.CertificateOptions{})
	good := trusting(root.Chain[0])
	cases := map[string]struct {
		change func(*notation.Options)
		want   string
	}{
		"no certificates":              {func(o *notation.Options) { o.Certificates = nil }, "without certificates"},
		"a nil certificate":            {func(o *notation.Options) { o.Certificates = []*x509.Certificate{nil} }, "nil"},
		"too many certificates":        {func(o *notation.Options) { o.Certificates = make([]*x509.Certificate, 257) }, "limit is 256"},
		"a leaf as anchor":             {func(o *notation.Options) { o.Certificates = leaf.Chain[:1] }, "not a CA certificate"},
		"no identities":                {func(o *notation.Options) { o.TrustedIdentities = nil }, "without trusted identities"},
		"an empty identity":            {func(o *notation.Options) { o.TrustedIdentities = []string{""} }, "neither"},
		"an identity of another kind":  {func(o *notation.Options) { o.TrustedIdentities = []string{"x509.san:a"} }, "neither"},
		"a name without organization":  {func(o *notation.Options) { o.TrustedIdentities = []string{"x509.subject:C=US,ST=WA"} }, `"O"`},
		"a name that is none":          {func(o *notation.Options) { o.TrustedIdentities = []string{"x509.subject:=,"} }, "identity"},
		"a wildcard beside a name":     {func(o *notation.Options) { o.TrustedIdentities = append([]string{"*"}, o.TrustedIdentities...) }, "wildcard"},
		"identities within each other": {func(o *notation.Options) { o.TrustedIdentities = append(o.TrustedIdentities, o.TrustedIdentities[0]) }, "overlap"},
		"too many identities":          {func(o *notation.Options) { o.TrustedIdentities = make([]string, 65) }, "limit is 64"},
		"an identity that is too long": {func(o *notation.Options) { o.TrustedIdentities = []string{strings.Repeat("x", 2000)} }, "limit is 1024"},
		"an unknown level":             {func(o *notation.Options) { o.Level = 2 }, "neither strict nor permissive"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			options := good
			options.TrustedIdentities = append([]string(nil), good.TrustedIdentities...)
			c.change(&options)
			made, err := notation.New(options)
			require.ErrorContains(t, err, c.want)
			require.Nil(t, made)
		})
	}
}

func TestUnreachableEnvelopeIsUnknownAndMissingOneIsInvalid(t *testing.T) {
	root := authority(t, "root", fixture.CertificateOptions{})
	leaf := signer(t, root, "release", fixture.CertificateOptions{})
	img := anImage(t, "image")
	cases := map[string]struct {
		err    error
		result policy.Result
		reason policy.Reason
	}{
		"registry is down":          {errors.New("503"), policy.Unknown, "Unreachable"},
		"blob is gone":              {verify.Permanent(policy.ReasonNotFound, errors.New("404")), policy.Invalid, "NotFound"},
		"blob is not its digest":    {verify.Permanent(policy.ReasonContentMismatch, errors.New("other bytes")), policy.Invalid, policy.ReasonContentMismatch},
		"blob is larger than it is": {verify.Permanent(policy.ReasonLimitExceeded, errors.New("too large")), policy.Invalid, policy.ReasonLimitExceeded},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := signed(t, img, leaf, fixture.NotationOptions{})
			e.err = c.err
			finding := check(t, trusting(root.Chain[0]), img, e)
			require.Equal(t, c.result, finding.Result())
			require.Equal(t, c.reason, finding.Reason)
		})
	}
}

func TestOneCheckerServesManyAtOnce(t *testing.T) {
	root := authority(t, "root", fixture.CertificateOptions{})
	leaf := signer(t, root, "release", fixture.CertificateOptions{})
	c := checker(t, trusting(root.Chain[0]))
	signedImage, otherImage := anImage(t, "signed"), anImage(t, "other")
	e := signed(t, signedImage, leaf, fixture.NotationOptions{COSE: true})
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			img, want := signedImage, policy.Valid
			if i%2 == 0 {
				img, want = otherImage, policy.Invalid
			}
			finding := verify.Found(c.Check(t.Context(), subjectOf(img), e.signature, e.fetch, time.Now()))
			if finding.Result() != want {
				t.Errorf("got %s, want %s: %s", finding.Result(), want, finding.Message)
			}
		})
	}
	all.Wait()
}
