//go:build e2e

package testenv_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/testenv"
)

func TestStarts(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	began := time.Now()
	c, err := testenv.Start(ctx, testenv.Options{Tools: os.Getenv("LANDWAITER_CLUSTER_TOOLS"), Dir: t.TempDir(), Progress: os.Stderr})
	require.NoError(t, err)
	t.Log(time.Since(began))
	require.NoError(t, c.Stop())
}
