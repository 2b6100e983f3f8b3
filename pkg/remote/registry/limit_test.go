package registry_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/test/kit/hostile"
)

func TestReferrersPastTheLimitAreNotReadAndTheErrorSaysSo(t *testing.T) {
	h := hostile.New()
	t.Cleanup(h.Close)
	h.Handle("", "/referrers/", hostile.EndlessPages(verify.MaxReferrers/2+1))
	s := session(t, registry.Options{}, registry.Access{Hosts: plain(h.Host())})
	found, err := s.Referrers(t.Context(), parse(t, h.Host()+"/app@"+someDigest.String()))
	require.Equal(t, policy.ReasonLimitExceeded, reason(t, err))
	require.Len(t, found, verify.MaxReferrers)
}
