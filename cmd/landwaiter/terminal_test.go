package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestErrorsCannotControlATerminal(t *testing.T) {
	file := filepath.Join(t.TempDir(), "evil.yaml")
	require.NoError(t, os.WriteFile(file, []byte("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: \"\\e]0;owned\\a\\e[2J\"}\nspec: bad\n"), 0o600))
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"verify", "--config-dir", t.TempDir(), "-f", file}, &out, &errs)
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs.String(), "]0;owned")
	require.NotContains(t, errs.String()+out.String(), "\x1b")
	require.NotContains(t, errs.String()+out.String(), "\a")
	require.Equal(t, "one\n    two\n\uFFFD", plainLines("one\n\ttwo\n\x1b"), "lines stay")
}

func TestAnAPIServerThatHangsEndsVerifyAtItsTimeout(t *testing.T) {
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
	require.NoError(t, os.WriteFile(file, []byte("apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: \""+server.URL+"\"}}]\n"+
		"users: [{name: u, user: {}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"), 0o600))
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"verify", "--kubeconfig", file, "--timeout", "200ms", "registry.example.com/app:v1"}, &out, &errs)
	require.Equal(t, exitUnavailable, code, errs.String())
	require.Contains(t, errs.String(), "imeout")
}
