package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/cache"
	"github.com/landwaiter/landwaiter/test/kit/example"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/generated"
	"github.com/landwaiter/landwaiter/test/kit/judged"
)

const misspelt = `apiVersion: landwaiter.dev/v1beta1
kind: Verifier
metadata: {name: release, namespace: team-a}
spec:
  type: Cosign
  cosign:
    key: {trustStoreRefs: [{name: team-keys}]}
`

// replaced is what differs from run to run, and what stands for it on the page.
var replaced = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "registry.example.com"},
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
	{regexp.MustCompile(`"[0-9.]+ms"`), `"12.5ms"`},
	{regexp.MustCompile(`"(written|expires)": ".*"`), `"$1": "2026-11-22T18:00:00Z"`},
	{regexp.MustCompile(`"(version|go|platform)": ".*"`), `"$1": "…"`},
}

func stable(text string) string {
	for _, r := range replaced {
		text = r.pattern.ReplaceAllString(text, r.by)
	}
	return text
}

// examplePages are the pages in docs/reference/commands with the examples of JSON, by their names there.
var examplePages = map[string]string{
	"verify": "verify", "verify --explain": "verify", "verify --digest": "verify", "check": "check",
	"cache show, of all": "cache", "cache show": "cache", "cache purge": "cache", "version": "version",
}

// pageExamples returns what the commands of [examplePages] print in JSON, by the name in the page, as
// Markdown. They are the golden files of the formats.
func pageExamples(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	e, err := example.Start(t.Context(), "rules")
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Registry.Close() })
	require.NoError(t, os.WriteFile("verifier.yaml", []byte(misspelt), 0o600))
	redis := miniredis.RunT(t)
	require.NoError(t, redis.Set("landwaiter:team-a:verdict:1", "12345"))
	require.NoError(t, os.WriteFile("redis-key", fixture.NewSealKey(), 0o600))
	filled := miniredis.RunT(t)
	cached(t, filled.Addr(), "redis-key")
	image := e.Registry.Host() + "/shared/app:v1"
	examples := map[string]string{}
	for name, args := range map[string][]string{
		"verify":             {"verify", "--config-dir", "rules", "-n", "team-a", image},
		"verify --explain":   {"verify", "--explain", "--config-dir", "rules", "-n", "team-a", image},
		"verify --digest":    {"verify", "--digest", "--config-dir", "rules", "-n", "team-a", image},
		"check":              {"check", "verifier.yaml"},
		"cache show, of all": {"cache", "show", "--redis-url", "redis://" + redis.Addr()},
		"cache show":         {"cache", "show", "-n", "team-c", "--redis-key-file", "redis-key", "--redis-url", "redis://" + filled.Addr()},
		"cache purge":        {"cache", "purge", "-n", "team-b", "--redis-url", "redis://" + redis.Addr()},
		"version":            {"version"},
	} {
		var out, complaints bytes.Buffer
		code := run(t.Context(), append(args, "-o", "json"), &out, &complaints)
		require.Contains(t, []int{program.ExitOK, program.ExitDenied}, code, complaints.String())
		var any map[string]any
		require.NoError(t, json.Unmarshal(out.Bytes(), &any), "the top of every result is an object, which may get more fields")
		command := strings.NewReplacer(redis.Addr(), "redis.example.com:6379", filled.Addr(), "redis.example.com:6379").
			Replace(strings.Join(append(args, "-o", "json"), " "))
		examples[name] = fmt.Sprintf("\n```json\n$ landwaiter %s\n%s```\n\n", stable(command), stable(out.String()))
	}
	return examples
}

// cached puts one verdict of team-c into Redis.
func cached(t *testing.T, address, keyFile string) {
	t.Helper()
	keys, err := os.ReadFile(keyFile)
	require.NoError(t, err)
	seal, err := cache.ParseSeal(keys)
	require.NoError(t, err)
	client, err := cache.Connect(cache.Connection{URL: "redis://" + address})
	require.NoError(t, err)
	memory, err := cache.NewMemory(1<<20, time.Now)
	require.NoError(t, err)
	shared := cache.NewRedis(client, seal, program.Version(), time.Now)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- shared.Run(ctx) }()
	digest := strings.Repeat("0", 64)
	cache.Chain{Memory: memory, Redis: shared}.Put(t.Context(),
		verify.Key{Namespace: "team-c", Kind: verify.KindVerdict, UID: "0d7a1c52-2c0f-4a44-9f0b-6c1f2b6d3e10", Generation: digest,
			Image: "registry.example.com/team-c/app@sha256:" + digest},
		verify.Entry{
			Verdict: judged.As(policy.Denied,
				policy.Verdict{Policy: policy.ObjectRef{Kind: "ClusterVerificationPolicy", Name: "default"}, Reason: "no signature was found"})}, time.Hour)
	require.Eventually(t, func() bool { listed, err := client.DBSize(ctx).Result(); return err == nil && listed == 1 }, time.Minute, time.Millisecond)
	stop()
	require.NoError(t, <-ended)
}

func TestTheExamplesOfJSONAreUpToDate(t *testing.T) {
	folder, err := filepath.Abs("../../docs/reference/commands")
	require.NoError(t, err)
	examples := pageExamples(t)
	require.Len(t, examplePages, len(examples))
	for name, text := range examples {
		page := filepath.Join(folder, examplePages[name]+".md")
		require.NoError(t, generated.Check(page, "<!-- generated by make generate: "+name+" -->", "<!-- end of generated text -->", text))
	}
}
