package notation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/evidence/notation"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// Strict denies for these reasons of time. Permissive accepts and names them.
func TestTimeIsJudgedByTheLevel(t *testing.T) {
	now := time.Now()
	past := fixture.CertificateOptions{NotBefore: now.Add(-48 * time.Hour), NotAfter: now.Add(-time.Hour)}
	future := fixture.CertificateOptions{NotBefore: now.Add(time.Hour), NotAfter: now.Add(48 * time.Hour)}
	long := fixture.CertificateOptions{NotBefore: now.Add(-48 * time.Hour), NotAfter: now.Add(48 * time.Hour)}
	cases := map[string]struct {
		root, leaf fixture.CertificateOptions
		options    fixture.NotationOptions
		reason     policy.Reason
		says       string
	}{
		"expired signing certificate": {long, past, fixture.NotationOptions{}, policy.ReasonExpiredCertificate, `CN=release`},
		"expired root":                {past, long, fixture.NotationOptions{SigningTime: now.Add(-24 * time.Hour)}, policy.ReasonExpiredCertificate, `CN=root`},
		"signing certificate of the future": {fixture.CertificateOptions{NotAfter: now.Add(72 * time.Hour)}, future, fixture.NotationOptions{},
			policy.ReasonFutureCertificate, `CN=release`},
		"expired signature": {long, long, fixture.NotationOptions{SigningTime: now.Add(-24 * time.Hour), Expiry: now.Add(-time.Hour)},
			policy.ReasonExpiredSignature, "the signature expired"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			root := authority(t, "root", c.root)
			leaf := signer(t, root, "release", c.leaf)
			bothEnvelopes(t, func(t *testing.T, options fixture.NotationOptions) {
				c.options.COSE = options.COSE
				img := anImage(t, "image")
				e := signed(t, img, leaf, c.options)
				finding := check(t, trusting(root.Chain[0]), img, e)
				requireDenied(t, c.reason, finding)
				require.Contains(t, finding.Message, c.says)

				permissive := trusting(root.Chain[0])
				permissive.Level = notation.Permissive
				finding = check(t, permissive, img, e)
				require.Equal(t, policy.Valid, finding.Result(), finding.Message)
				require.Contains(t, finding.Message, "the verifier is permissive")
				require.Contains(t, finding.Message, c.says)
			})
		})
	}
}

// The library reads the system clock; the caller's time counts too.
func TestStrictJudgesByTheTimeOfTheCaller(t *testing.T) {
	root := authority(t, "root", fixture.CertificateOptions{})
	leaf := signer(t, root, "release", fixture.CertificateOptions{})
	img := anImage(t, "image")
	e := signed(t, img, leaf, fixture.NotationOptions{Expiry: time.Now().Add(time.Hour)})
	c := checker(t, trusting(root.Chain[0]))
	cases := map[string]struct {
		now    time.Time
		reason policy.Reason
	}{
		"a year later":         {time.Now().AddDate(1, 0, 0), policy.ReasonExpiredCertificate},
		"after the signature":  {time.Now().Add(2 * time.Hour), policy.ReasonExpiredSignature},
		"a year earlier":       {time.Now().AddDate(-1, 0, 0), policy.ReasonFutureCertificate},
		"no time at all given": {time.Time{}, policy.ReasonFutureCertificate},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			requireDenied(t, tc.reason, verify.Found(c.Check(t.Context(), subjectOf(img), e.signature, e.fetch, tc.now)))
		})
	}
	require.Equal(t, policy.Valid, verify.Found(c.Check(t.Context(), subjectOf(img), e.signature, e.fetch, time.Now())).Result())
}
