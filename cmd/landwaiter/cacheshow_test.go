package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/remote/cache"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/test/kit/example"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// commanded runs a command line and returns what it printed.
func commanded(t *testing.T, want int, args ...string) string {
	t.Helper()
	var out, complaints bytes.Buffer
	require.Equal(t, want, run(t.Context(), args, &out, &complaints), complaints.String())
	return out.String() + complaints.String()
}

func TestACacheThatAServerFilledIsShownToWhoeverHasItsKeys(t *testing.T) {
	redis := miniredis.RunT(t)
	keys, other := filepath.Join(t.TempDir(), "keys"), filepath.Join(t.TempDir(), "other")
	require.NoError(t, os.WriteFile(keys, fixture.NewSealKey(), 0o600))
	require.NoError(t, os.WriteFile(other, fixture.NewSealKey(), 0o600))
	resources := filepath.Join(t.TempDir(), "resources")
	e, err := example.Start(t.Context(), resources)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Registry.Close()) })
	sealed, err := os.ReadFile(keys)
	require.NoError(t, err)
	server, _, err := service.Load(t.Context(), resources,
		service.Options{Redis: &service.Redis{Connection: cache.Connection{URL: "redis://" + redis.Addr()}, Keys: sealed}})
	require.NoError(t, err)
	t.Cleanup(server.Close)
	for name, want := range map[string]policy.Outcome{"[team-a]shared/app:v1": policy.Allowed, "[team-a]shared/base:v1": policy.Denied,
		"[team-b]shared/web:v1": policy.Allowed} {
		namespace, name, _ := strings.Cut(strings.TrimPrefix(name, "["), "]")
		ref, err := image.Parse(e.Registry.Host() + "/" + name)
		require.NoError(t, err)
		result := server.Verify(t.Context(), verify.Namespace(namespace), ref)
		require.Equal(t, want, result.Verdict.Outcome(), result.Verdict.Reason)
	}
	require.Eventually(t, func() bool { return len(redis.Keys()) == 6 }, time.Minute, time.Millisecond)

	show := func(keyFile string, args ...string) printedListing {
		args = append([]string{"cache", "show", "--redis-url", "redis://" + redis.Addr(), "--redis-key-file", keyFile, "-o", "json"}, args...)
		var listing printedListing
		require.NoError(t, json.Unmarshal([]byte(commanded(t, program.ExitOK, args...)), &listing))
		return listing
	}
	listing := show(keys, "--namespace", "team-a")
	require.Equal(t, 4, listing.Keys, "with the evidence, which is not listed")
	require.Len(t, listing.Entries, 2)
	require.Zero(t, listing.Unopened)
	app := slices.IndexFunc(listing.Entries, func(e printedEntry) bool { return strings.Contains(e.Image, "/shared/app@sha256:") })
	require.Equal(t, "allowed", listing.Entries[app].Verdict)
	require.Equal(t, "VerificationPolicy team-a/strict", listing.Entries[app].Policy)
	require.NotEmpty(t, listing.Entries[app].Generation)
	require.Equal(t, "denied", listing.Entries[1-app].Verdict)
	require.NotEmpty(t, listing.Entries[1-app].Reason)
	written, err := time.Parse(time.RFC3339, listing.Entries[app].Written)
	require.NoError(t, err)
	expires, err := time.Parse(time.RFC3339, listing.Entries[app].Expires)
	require.NoError(t, err)
	require.True(t, expires.After(written))
	require.Len(t, show(keys, "-n", "team-a", "--image", e.Registry.Host()+"/shared/app").Entries, 1)
	require.Len(t, show(keys, "-n", "team-a", "--image", listing.Entries[app].Image).Entries, 1)
	require.Equal(t, 1, show(keys, "-n", "team-a", "--limit", "1").LeftOff)
	require.Empty(t, show(keys, "--cluster-scope").Entries)

	require.Equal(t, 2, show(other, "-n", "team-a").Unopened)
	table := commanded(t, program.ExitOK, "cache", "show", "--redis-url", "redis://"+redis.Addr(), "--redis-key-file", other, "-n", "team-a")
	require.Contains(t, table, "UNOPENED")
	require.NotContains(t, table, e.Registry.Host(), "nothing is known about a value that does not open")
	table = commanded(t, program.ExitOK, "cache", "show", "--redis-url", "redis://"+redis.Addr(), "--redis-key-file", keys, "-n", "team-a")
	require.Contains(t, table, "DENIED")
	require.Contains(t, table, "4 keys of team-a, 0 did not open, 0 left out by --limit")
	require.NotContains(t, table, strings.TrimSpace(string(sealed)))
}

func TestShowRefusesWhatItCannotAnswer(t *testing.T) {
	server := miniredis.RunT(t)
	keys := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, os.WriteFile(keys, fixture.NewSealKey(), 0o600))
	url := "redis://" + server.Addr()
	for says, args := range map[string][]string{
		"--image requires":                   {"--image", "r.example.com/app"},
		"--cluster-scope":                    {"-n", "team-a", "--cluster-scope"},
		"not a DNS-1123 label":               {"-n", "*"},
		"--redis-key-file":                   {"-n", "team-a"},
		"--limit is 0":                       {"-n", "team-a", "--redis-key-file", keys, "--limit", "0"},
		"omit the tag":                       {"-n", "team-a", "--redis-key-file", keys, "--image", "r.example.com:5000/app:v1"},
		"--image: image reference":           {"-n", "team-a", "--redis-key-file", keys, "--image", "[x"},
		"is not 32 bytes":                    {"-n", "team-a", "--redis-key-file", "cacheshow_test.go"},
		"--redis-key-file: open no-such-key": {"-n", "team-a", "--redis-key-file", "no-such-key"},
	} {
		require.Contains(t, commanded(t, program.ExitUsage, append([]string{"cache", "show", "--redis-url", url}, args...)...), says)
	}
	require.Contains(t, commanded(t, program.ExitUsage, "cache", "show", "-n", "team-a", "--redis-key-file", keys), "no Redis is given")
	require.Contains(t,
		commanded(t, program.ExitOK, "cache", "show", "-n", "team-a", "--redis-key-file", keys, "--redis-url", url, "--image", "r.example.com:5000/app"),
		"0 keys of team-a")
	server.Close()
	require.Contains(t, commanded(t, program.ExitUnavailable, "cache", "show", "-n", "team-a", "--redis-key-file", keys, "--redis-url", url), "find keys")
}
