//go:build e2e

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// make nightly measures the other scenarios too.
func TestShortScenariosRunWithoutAWrongAnswer(t *testing.T) {
	require.Len(t, measured(t, "^(redis paused|batch)$"), 1+2*2)
}
