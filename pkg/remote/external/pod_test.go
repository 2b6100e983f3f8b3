package external

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// On a person's machine, the identity of the process is the person's.
func TestOnAPersonsMachineNothingIsFetchedWithItsOwnIdentity(t *testing.T) {
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "planted", "AWS_SECRET_ACCESS_KEY": "planted", "AWS_REGION": "eu-central-1",
		"AZURE_CLIENT_SECRET": "planted", "GOOGLE_APPLICATION_CREDENTIALS": "/planted.json", "VAULT_TOKEN": "planted"} {
		t.Setenv(name, value)
	}
	own, err := Pod(verify.Cluster)
	require.NoError(t, err)
	theirs, err := Given(map[string]string{"accessKeyID": "a", "secretAccessKey": "b", "region": "eu-central-1"})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		pod   bool
		as    Identity
		asked int32
	}{
		"a person's, as the machine":     {false, own, 0},
		"a person's, as a Secret says":   {false, theirs, 1},
		"the cluster's, as its own pod":  {true, own, 1},
		"a person's, which needs nobody": {false, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			fetch := func(context.Context, Source) (Content, error) {
				asked.Add(1)
				return Content{Bytes: []byte("key")}, nil
			}
			f := New(Options{UnsafePod: c.pod, Wait: true, Fetch: map[Kind]Fetch{KMS: fetch, Registry: fetch}}, time.Now)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() { _ = f.Run(ctx) }()
			source := Source{Owner: verify.Cluster, Kind: KMS, Address: "awskms:///alias/release", As: c.as}
			f.Want(verify.Cluster, []Source{source})
			f.Await(ctx)
			known := f.Known([]Source{source})[source]
			require.Equal(t, c.asked, asked.Load())
			if c.asked == 0 {
				require.ErrorContains(t, known.Err, "its own is never used")
				_, err := f.AWSSigner(verify.Cluster, c.as)(ctx, AWSSignature{Region: "eu-central-1"})
				require.ErrorContains(t, err, "its own is never used", "AWS Signer is asked as nobody either")
			}
		})
	}
}
