package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/stretchr/testify/require"
)

func TestErrorsCannotControlATerminal(t *testing.T) {
	file := filepath.Join(t.TempDir(), "evil.yaml")
	require.NoError(t, os.WriteFile(file, []byte("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: \"\\e]0;owned\\a\\e[2J\"}\nspec: bad\n"), 0o600))
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"verify", "--config-dir", t.TempDir(), "-f", file}, &out, &errs)
	require.Equal(t, program.ExitUsage, code)
	require.Contains(t, errs.String(), "]0;owned")
	require.NotContains(t, errs.String()+out.String(), "\x1b")
	require.NotContains(t, errs.String()+out.String(), "\a")

	var lines bytes.Buffer
	program.SayLines(&lines, "one\n\ttwo\n\x1b")
	require.Equal(t, "one\n   two\n  \uFFFD\n", lines.String(), "lines stay, and those after the first are indented")
}

func TestAnAPIServerThatHangsEndsCommandsAtTheirTimeout(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t,
		os.WriteFile(file, []byte("apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: \""+server.URL+"\"}}]\n"+
			"users: [{name: u, user: {}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"), 0o600))
	change := filepath.Join(t.TempDir(), "change.yaml")
	require.NoError(t,
		os.WriteFile(change, []byte("{apiVersion: landwaiter.dev/v1beta1, kind: ClusterVerificationPolicy, metadata: {name: p}, spec: {defaultAction: Deny}}"),
			0o600))
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"verify":    {[]string{"verify", "registry.example.com/app:v1"}, "list deployments.apps"},
		"preview":   {[]string{"preview", "-f", change}, "list deployments.apps"},
		"status":    {[]string{"status"}, "list deployments.apps"},
		"check":     {[]string{"check"}, "list validatingwebhookconfigurations"},
		"isolation": {[]string{"check", "--isolation"}, "list "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Discovery does not obey a context: without a bound of its own this takes half a minute a kind.
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			var out, errs bytes.Buffer
			code := run(ctx, append(c.args, "--kubeconfig", file, "--timeout", "200ms"), &out, &errs)
			require.Equal(t, program.ExitUnavailable, code, errs.String())
			require.Contains(t, errs.String(), "the cluster was not read in 200ms (--timeout)")
			require.Contains(t, errs.String(), c.says)
			require.NoError(t, ctx.Err(), "it took 20 s")
		})
	}
}
