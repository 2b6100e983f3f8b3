package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

func startRegistry(t *testing.T, options fixture.RegistryOptions) *fixture.Registry {
	t.Helper()
	r, err := fixture.StartRegistry(options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

func writeImage(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "image")
	require.NoError(t, newImage(t, newMaker(t)).writeFolder(folder))
	return folder
}

func TestPushesAnImageWithItsSBOMs(t *testing.T) {
	for name, options := range map[string]fixture.RegistryOptions{"referrers API": {}, "no referrers API": {NoReferrers: true}} {
		t.Run(name, func(t *testing.T) {
			r := startRegistry(t, options)
			t.Setenv("DOCKER_CONFIG", t.TempDir())
			var out strings.Builder
			args := []string{"push", "-layout", writeImage(t), "-tag", "dev", r.Host() + "/team/app:v1"}
			require.NoError(t, run(t.Context(), args, &out, &out), &out)
			repository, err := r.Repository(t.Context(), "team/app")
			require.NoError(t, err)
			pushed, err := repository.Resolve(t.Context(), "v1")
			require.NoError(t, err)
			require.Equal(t, "Pushed "+r.Host()+"/team/app:v1@"+pushed.Digest.String()+"\n", out.String())
			checkImage(t, repository, "v1")
			require.NoError(t, run(t.Context(), args, &out, &out), "it may be pushed again")
		})
	}
}

func TestPushesWithTheCredentialsOfDocker(t *testing.T) {
	r := startRegistry(t, fixture.RegistryOptions{})
	r.SetIntercept(func(w http.ResponseWriter, request *http.Request) bool {
		if user, password, _ := request.BasicAuth(); user == "ci" && password == "secret" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	folder := t.TempDir()
	t.Setenv("DOCKER_CONFIG", folder)
	args := []string{"push", "-layout", writeImage(t), "-tag", "dev", r.Host() + "/team/app:v1"}
	var out strings.Builder
	require.Error(t, run(t.Context(), args, &out, &out))
	login := `{"auths":{"` + r.Host() + `":{"auth":"Y2k6c2VjcmV0"}}}`
	require.NoError(t, os.WriteFile(filepath.Join(folder, "config.json"), []byte(login), 0o600))
	require.NoError(t, run(t.Context(), args, &out, &out))
	require.NotContains(t, out.String(), "secret")
}

func TestSpeaksPlainHTTPToThisMachineOnly(t *testing.T) {
	for host, plain := range map[string]bool{
		"127.0.0.1:5000": true, "127.9.9.9": true, "localhost:5000": true, "localhost": true, "[::1]:5000": true,
		"10.0.0.1:5000": false, "registry.example.com": false, "localhost.example.com": false, "127.0.0.1.example.com": false, "0.0.0.0:5000": false,
	} {
		t.Setenv("DOCKER_CONFIG", t.TempDir())
		ref, err := parseName(host + "/team/app:v1")
		if strings.HasPrefix(host, "[") {
			require.True(t, loopback(host))
			continue // oras-go knows no such names
		}
		require.NoError(t, err, host)
		repository, err := openRepository(ref)
		require.NoError(t, err)
		require.Equal(t, plain, repository.PlainHTTP, host)
	}
}

func TestRefusesNamesThatSayNotWhereToPush(t *testing.T) {
	for _, name := range []string{"", "landwaiter", "landwaiter:dev", "team/landwaiter:dev", "registry.example.com/app",
		"registry.example.com/App:dev", "registry.example.com/app@sha256:" + strings.Repeat("a", 64), "https://registry.example.com/app:dev"} {
		_, err := parseName(name)
		require.Error(t, err, name)
	}
	ref, err := parseName("registry.example.com:5000/team/app:dev")
	require.NoError(t, err)
	require.Equal(t, "dev", ref.Reference)
}

func TestReadsTheTagOfAName(t *testing.T) {
	for name, want := range map[string]string{"landwaiter:dev": "dev", "registry.example.com:5000/a/b:v1.2": "v1.2",
		"landwaiter": "", "registry.example.com:5000/app": "", "app:": "", "app:a b": ""} {
		tag, err := parseTag(name)
		require.Equal(t, want, tag, name)
		require.Equal(t, want == "", err != nil, name)
	}
}
