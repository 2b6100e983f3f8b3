package provider

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

func endpointOf(t testing.TB, path string) endpoint {
	t.Helper()
	e, err := parsePath(path)
	require.NoError(t, err)
	return e
}

func TestTaggedKeyNamesItsNamespace(t *testing.T) {
	for name, c := range map[string]struct {
		path, key string
		namespace verify.Namespace
		image     string
	}{
		"tag":                        {"/v1/verify", "[team-a]r.example.com/app:v1", "team-a", "r.example.com/app:v1"},
		"no tag is the cluster":      {"/v1/verify", "nginx", verify.Cluster, "docker.io/library/nginx:latest"},
		"tag for Ratify's path":      {"/ratify/gatekeeper/v1/verify", "[team-a]nginx", "team-a", "docker.io/library/nginx:latest"},
		"tag for our templates":      {"/v1/verdict", "[team-a]nginx", "team-a", "docker.io/library/nginx:latest"},
		"tag for audits":             {"/v1/audit/verify", "[team-a]nginx", "team-a", "docker.io/library/nginx:latest"},
		"path":                       {"/v1/namespaces/team-b/verify", "nginx:1", "team-b", "docker.io/library/nginx:1"},
		"path for mutation":          {"/v1/namespaces/team-b/mutate", "nginx:1", "team-b", "docker.io/library/nginx:1"},
		"mutation is the cluster":    {"/v1/mutate", "nginx:1", verify.Cluster, "docker.io/library/nginx:1"},
		"namespace of one character": {"/v1/verify", "[a]nginx", "a", "docker.io/library/nginx:latest"},
		"namespace of 63 characters": {"/v1/verify", "[" + strings.Repeat("a", 63) + "]nginx", verify.Namespace(strings.Repeat("a", 63)),
			"docker.io/library/nginx:latest"},
		"namespace that looks a port": {"/v1/verify", "[5000]nginx", "5000", "docker.io/library/nginx:latest"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := endpointOf(t, c.path).parseKey(c.key, image.Parse)
			require.NoError(t, err)
			require.Equal(t, c.namespace, got.namespace)
			require.Equal(t, c.image, got.ref.String())
		})
	}
}

func TestRefusesImagesThatBringATagOfTheirOwn(t *testing.T) {
	everywhere := []string{"/v1/verdict", "/v1/verify", "/v1/mutate", "/v1/namespaces/team-a/verify", "/v1/namespaces/team-a/mutate",
		"/ratify/gatekeeper/v1/verify", "/ratify/gatekeeper/v1/mutate", "/v1/audit/verify"}
	for _, path := range everywhere {
		for _, key := range []string{"[team-a][team-b]nginx", "[team-a] [team-b]nginx", "nginx[team-b]", "r.example.com/[team-b]/x", "nginx:[team-b]",
			" [team-b]nginx",
			"[]nginx", "[team-b", "[[team-b]]nginx", "[Team-B]nginx", "[team.b]nginx", "[team-b\n]nginx", "[-b]nginx", "[team-b]", "[*]nginx", "[team-a]\x00nginx",
			"[" + strings.Repeat("a", 64) + "]nginx", "", "[", "]", "[::1]:5000/app", "[team-a][::1]:5000/app", "team-b]nginx"} {
			if key == "" && endpointOf(t, path).operation == OperationMutate {
				continue // it is left to whoever fills it in
			}
			_, err := endpointOf(t, path).parseKey(key, image.Parse)
			require.Error(t, err, "%s %q", path, key)
		}
	}
	for _, path := range everywhere {
		if e := endpointOf(t, path); !e.tagged {
			_, err := e.parseKey("[team-b]nginx", image.Parse)
			require.ErrorContains(t, err, "without a namespace tag", path)
		}
	}
}

func TestRefusesPathsThatAreNotExactlyAnEndpoint(t *testing.T) {
	for _, path := range []string{"", "/", "*", "/v1", "/v1/verify/", "//v1/verify", "/v1//verify", "/v1/./verify", "/v1/../v1/verify",
		"/V1/verify", "/v1/%76erify",
		"/v1/namespaces/team-a", "/v1/namespaces/team-a/", "/v1/namespaces//verify", "/v1/namespaces/team-a/verify/", "/v1/namespaces/team-a/x",
		"/v1/namespaces/Team-A/verify", "/v1/namespaces/team-a%2fteam-b/verify", "/v1/namespaces/team-a/team-b/verify", "/v1/namespaces/[team-a]/verify",
		"/v1/namespaces/../verify", "/ratify/gatekeeper", "/ratify/gatekeeper/v1", "/ratify/gatekeeper/v1/namespaces/team-a/verify",
		"/v1/audit", "/v1/audit/", "/v1/verdict/", "/v1/audit/verdict", "/v1/namespaces/team-a/verdict", "/ratify/gatekeeper/v1/verdict", "/v1/audit/mutate",
		"/v1/audit/verify/", "/ratify/gatekeeper/v1/audit/verify", "/v1/namespaces/team-a/audit/verify",
		"/ratify/gatekeeper/ratify/gatekeeper/v1/verify", "/ratify/gatekeeperv1/verify", "/v1/namespaces/" + strings.Repeat("a", 64) + "/verify"} {
		_, err := parsePath(path)
		require.Error(t, err, path)
	}
}

// Whatever a key is, a namespace comes out only if the key has that one tag at
// its very front, and what follows it is one well-formed image.
func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{"[a]nginx", "nginx", "[a][b]nginx", "[]x", "[a", "a]b", "[a]r.example.com:443/x@" + someDigest.String(), "[\xff]x", "[a]\x00"} {
		f.Add(seed)
	}
	tagged, plain := endpointOf(f, "/v1/verify"), endpointOf(f, "/v1/namespaces/team-a/mutate")
	f.Fuzz(func(t *testing.T, key string) {
		if got, err := plain.parseKey(key, image.Parse); err == nil {
			require.Equal(t, verify.Namespace("team-a"), got.namespace)
			require.NotContains(t, key, "[")
			require.Equal(t, filledInLater(key), got.ref.Host == "")
		}
		got, err := tagged.parseKey(key, image.Parse)
		if err != nil {
			return
		}
		rest := key
		if got.namespace != verify.Cluster {
			_, err := verify.ParseNamespace(string(got.namespace))
			require.NoError(t, err)
			rest = strings.TrimPrefix(key, "["+string(got.namespace)+"]")
			require.NotEqual(t, key, rest)
		}
		require.NotContains(t, rest, "[")
		ref, err := image.Parse(rest)
		require.NoError(t, err)
		require.Equal(t, ref, got.ref)
	})
}
