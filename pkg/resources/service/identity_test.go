package service

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/remote/external"
)

// The files of a directory are often another's, such as those of a pull request.
func TestFilesAreNeverReadWithTheCloudIdentityOfTheMachine(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "trust.yaml"), []byte(`apiVersion: landwaiter.dev/v1beta1
kind: ClusterTrustStore
metadata: {name: release}
spec: {type: PublicKeys, source: {kms: {uri: 'awskms:///alias/release'}}}
`), 0o600))
	var asked atomic.Int32
	fetch := func(context.Context, external.Source) (external.Content, error) {
		asked.Add(1)
		return external.Content{Bytes: []byte("key")}, nil
	}
	s, loaded, err := Load(t.Context(), dir, Options{External: external.Options{Fetch: map[external.Kind]external.Fetch{external.KMS: fetch}}})
	require.NoError(t, err)
	defer s.Close()
	require.Zero(t, asked.Load(), "it was asked with the identity of this machine")
	require.Len(t, loaded.Problems, 1)
	require.Contains(t, loaded.Problems[0].Message, "its own is never used")
}
