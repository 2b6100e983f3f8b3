package external

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/remote/egress"
)

func TestAFailureThatNoResourceCausedSaysSo(t *testing.T) {
	public, mirror := Source{Kind: TUF}, Source{Kind: TUF, Address: "https://tuf.example.com", Owner: "team-a"}
	network := func(host string, cause egress.Cause) error { return &egress.Error{Host: host, Cause: cause} }
	for name, c := range map[string]struct {
		source Source
		err    error
		server string
	}{
		"the public root, whatever is wrong": {public, network(PublicGoodHost, egress.Lookup), PublicGoodHost},
		"the public root has expired":        {public, &RefusedError{"it has expired"}, PublicGoodHost},
		"a mirror is late":                   {mirror, network("tuf.example.com", egress.Late), "tuf.example.com"},
		"a mirror is in trouble":             {mirror, answered("the TUF repository", 503), "the server"},
		"it took too long":                   {mirror, context.DeadlineExceeded, "the server"},
		"the name may be wrong":              {mirror, network("tuf.example.com", egress.Lookup), ""},
		"the path may be wrong":              {mirror, answered("the TUF repository", 404), ""},
		"the root may be wrong":              {mirror, &RefusedError{"it is not signed"}, ""},
		"the CA bundle may be missing":       {mirror, network("tuf.example.com", egress.Untrusted), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var caused *UnansweredError
			err := c.source.failed(c.err)
			require.ErrorContains(t, err, "the root at ")
			require.Equal(t, c.server != "", errors.As(err, &caused))
			if caused != nil {
				require.Equal(t, c.server, caused.Server)
				require.Equal(t, c.server == PublicGoodHost, caused.Instead != "")
			}
		})
	}
}
