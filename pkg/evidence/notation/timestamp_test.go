package notation_test

import (
	"crypto/x509"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/evidence/notation"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

func timestamps(t testing.TB, name string, options fixture.CertificateOptions) *fixture.TimestampAuthority {
	t.Helper()
	made, err := fixture.NewTimestampAuthority(name, options)
	require.NoError(t, err)
	return made
}

// The certificate was valid a year ago, when the signature was made.
func TestTimestampsProveThatASignatureIsFromWhenTheCertificateWasValid(t *testing.T) {
	now := time.Now()
	then := now.AddDate(-1, 0, 0)
	long := fixture.CertificateOptions{NotBefore: now.AddDate(-3, 0, 0), NotAfter: now.AddDate(3, 0, 0)}
	root := authority(t, "root", long)
	expired := signer(t, root, "release", fixture.CertificateOptions{NotBefore: then.Add(-time.Hour), NotAfter: then.Add(time.Hour)})
	valid := signer(t, root, "release", fixture.CertificateOptions{})
	at := func(name string, when time.Time) *fixture.TimestampAuthority {
		made := timestamps(t, name, fixture.CertificateOptions{})
		made.Time = when
		return made
	}
	trusted, stranger := at("trusted", then), at("stranger", then)
	late := *trusted
	late.Time = now.Add(-time.Minute)
	recent := *trusted
	recent.Time = time.Time{}
	cases := map[string]struct {
		leaf        *fixture.Certificate
		stamp       *fixture.TimestampAuthority
		afterExpiry bool
		trust       bool
		reason      policy.Reason
	}{
		"stamped in time":                        {expired, trusted, false, true, ""},
		"stamped in time, asked only if expired": {expired, trusted, true, true, ""},
		"no timestamp":                           {expired, nil, false, true, policy.ReasonNoTimestamp},
		"no timestamp, asked only if expired":    {expired, nil, true, true, policy.ReasonNoTimestamp},
		"stamped after the certificate expired":  {expired, &late, false, true, policy.ReasonTimestampOutOfTime},
		"stamped by a stranger":                  {expired, stranger, false, true, policy.ReasonInvalidTimestamp},
		"authorities are not trusted at all":     {expired, trusted, false, false, policy.ReasonExpiredCertificate},
		"a valid certificate, stamped":           {valid, &recent, false, true, ""},
		"a valid certificate, not stamped":       {valid, nil, false, true, policy.ReasonNoTimestamp},
		"a valid certificate, not asked":         {valid, nil, true, true, ""},
		"stamped before the certificate":         {valid, trusted, false, true, policy.ReasonTimestampOutOfTime},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			bothEnvelopes(t, func(t *testing.T, options fixture.NotationOptions) {
				options.Timestamps = c.stamp
				img := anImage(t, "image")
				e := signed(t, img, c.leaf, options)
				asked := trusting(root.Chain[0])
				asked.TimestampAfterExpiry = c.afterExpiry
				if c.trust {
					asked.TimestampAuthorities = []*x509.Certificate{trusted.Root.Chain[0]}
				}
				finding := check(t, asked, img, e)
				if c.reason == "" {
					require.Equal(t, policy.Valid, finding.Result(), finding.Message)
					return
				}
				requireDenied(t, c.reason, finding)

				asked.Level = notation.Permissive
				finding = check(t, asked, img, e)
				require.Equal(t, policy.Valid, finding.Result(), finding.Message)
				require.Contains(t, finding.Message, "the verifier is permissive")
				asked.Overrides.AuthenticTimestamp = notation.Enforce
				requireDenied(t, c.reason, check(t, asked, img, e))
				asked.Level, asked.Overrides.AuthenticTimestamp = notation.Strict, notation.Log
				require.Equal(t, policy.Valid, check(t, asked, img, e).Result())
			})
		})
	}
}

func TestDeniesATimestampOfAnotherSignature(t *testing.T) {
	root := authority(t, "root", fixture.CertificateOptions{})
	leaf := signer(t, root, "release", fixture.CertificateOptions{})
	trusted := timestamps(t, "trusted", fixture.CertificateOptions{})
	img, other := anImage(t, "image"), anImage(t, "other")
	donor, err := fixture.NotationEnvelope(other, leaf, fixture.NotationOptions{Timestamps: trusted})
	require.NoError(t, err)
	mine, err := fixture.NotationEnvelope(img, leaf, fixture.NotationOptions{})
	require.NoError(t, err)
	asked := trusting(root.Chain[0])
	asked.TimestampAuthorities = trusted.Root.Chain
	finding := check(t, asked, img, evidenceOf(notation.MediaTypeJWS, stapled(t, mine, donor)))
	requireDenied(t, policy.ReasonInvalidTimestamp, finding)
}

func TestDeniesATimestampThatIsTooLargeToRead(t *testing.T) {
	root := authority(t, "root", fixture.CertificateOptions{})
	leaf := signer(t, root, "release", fixture.CertificateOptions{})
	img := anImage(t, "image")
	envelope, err := fixture.NotationEnvelope(img, leaf, fixture.NotationOptions{})
	require.NoError(t, err)
	asked := trusting(root.Chain[0])
	asked.TimestampAuthorities = timestamps(t, "trusted", fixture.CertificateOptions{}).Root.Chain
	for size, reason := range map[int]policy.Reason{16 << 10: policy.ReasonInvalidTimestamp, 16<<10 + 1: policy.ReasonLimitExceeded} {
		requireDenied(t, reason, check(t, asked, img, evidenceOf(notation.MediaTypeJWS, withTimestamp(t, envelope, make([]byte, size)))))
	}
}

func TestRefusesTimestampAuthoritiesThatAreNoRoots(t *testing.T) {
	root := authority(t, "root", fixture.CertificateOptions{})
	below, err := root.IssueAuthority("below", fixture.CertificateOptions{})
	require.NoError(t, err)
	options := trusting(root.Chain[0])
	options.TimestampAuthorities = below.Chain[:1]
	_, err = notation.New(options)
	require.ErrorContains(t, err, "not a root certificate")
	options.TimestampAuthorities = make([]*x509.Certificate, 257)
	_, err = notation.New(options)
	require.ErrorContains(t, err, "limit is 256")
}
