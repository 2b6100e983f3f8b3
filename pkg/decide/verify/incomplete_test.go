package verify_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// A negated expression must not hold because the list of evidence could not be read for
// good: a registry may refuse the list and still serve the signature tag.
func TestNoExpressionHoldsWithoutTheWholeList(t *testing.T) {
	for name, err := range map[string]error{
		"refused": verify.Permanent(policy.ReasonAccessDenied, errors.New("list referrers: refused")),
		"mixed": errors.Join(verify.Permanent(policy.ReasonContentMismatch, errors.New("read tag: mismatch")),
			verify.Permanent(policy.ReasonLimitExceeded, errors.New("more than 64 referrers"))),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry()
			r.list = func(context.Context) error { return err }
			r.manifest(t, true, "k1:"+appDigest.String())
			demand := verify.Requirement{AtLeast: 1, Condition: func(_ func() error, proven []policy.Finding) (bool, error) {
				for _, f := range proven {
					if f.Signer() == "revoker" {
						return false, nil
					}
				}
				return true, nil
			}}
			got := engine(newCache(), verify.Options{}).Verify(t.Context(), config(tier(t, r, demand, verifier(t, "v", "k1", "revoker"))),
				ref(t, "registry.example.com/app@"+appDigest.String()))
			require.Equal(t, policy.Denied, got.Verdict.Outcome(), got.Verdict.Reason)
		})
	}
}

// panicking panics at a layer of another type.
type panicking struct{ ended *atomic.Bool }

func (p *panicking) Accepts(s verify.Signature) bool {
	if s.Layer.MediaType != fakeLayer {
		panic("unexpected layer")
	}
	return true
}

func (p *panicking) Check(context.Context, verify.Subject, verify.Signature, verify.Fetch, time.Time) (policy.Proof, error) {
	time.Sleep(time.Second) // virtual time
	p.ended.Store(true)
	return policy.Proof{}, nil
}

func TestWorkEndsWithItsLastCheckEvenAfterAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegistry()
		r.manifest(t, true, "k1")
		content := []byte(`{"schemaVersion":2,"layers":[{"mediaType":"x","digest":"` + appDigest.String() + `","size":1}]}`)
		r.listed = append(r.listed, r.put("application/vnd.oci.image.manifest.v1+json", content))
		v, ended := verifier(t, "v"), &atomic.Bool{}
		v.Checker = &panicking{ended: ended}
		got := engine(newCache(), verify.Options{}).Verify(t.Context(), config(tier(t, r, verify.Requirement{AnyOf: []string{"v"}, AtLeast: 1}, v)),
			ref(t, "registry.example.com/app@"+appDigest.String()))
		require.Equal(t, policy.Undecided, got.Verdict.Outcome(), got.Verdict.Reason)
		require.True(t, ended.Load(), "the memory of its evidence was given back before")
	})
}
