//go:build e2e || nightly

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// The program starts itself as the bare handler, which is this test binary here.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "-bare" {
		if err := serveBare(context.Background(), os.Args[2]); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// measured runs small scenarios, in which no answer may be wrong, and returns their
// figures by name.
func measured(t *testing.T, only string) map[string]figure {
	t.Helper()
	file := filepath.Join(t.TempDir(), "load.json")
	var table, progress bytes.Buffer
	err := run(t.Context(), options{root: "../../..", clients: []int{1, 10}, binary: suite.MustTool(t, suite.LandwaiterServer), only: only, jsonFile: file,
		duration: 500 * time.Millisecond, connections: 10, images: 20, cold: 50, pods: 300, rounds: 2}, &table, &progress)
	require.NoError(t, err, table.String())
	t.Log("\n" + table.String())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var r report
	require.NoError(t, json.Unmarshal(text, &r))
	byName := map[string]figure{}
	for _, f := range r.Scenarios {
		require.Positive(t, f.Requests, f.Name)
		byName[f.Name] = f
	}
	return byName
}
