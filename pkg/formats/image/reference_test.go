package image_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

const someDigest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func TestParseNormalisesTheSpellingsOfOneImage(t *testing.T) {
	cases := map[string]struct{ in, want string }{
		"one word is a Docker Hub library image": {"nginx", "docker.io/library/nginx:latest"},
		"tag is kept":                            {"nginx:1.27", "docker.io/library/nginx:1.27"},
		"Docker Hub user":                        {"bitnami/redis", "docker.io/bitnami/redis:latest"},
		"old Docker Hub host":                    {"index.docker.io/library/nginx", "docker.io/library/nginx:latest"},
		"host in capitals":                       {"Registry.Example.COM/app:v1", "registry.example.com/app:v1"},
		"default HTTPS port":                     {"registry.example.com:443/app:v1", "registry.example.com/app:v1"},
		"other port is another registry":         {"registry.example.com:8443/app", "registry.example.com:8443/app:latest"},
		"localhost":                              {"localhost/app", "localhost/app:latest"},
		"digest alone has no tag":                {"r.example.com/a/b@" + someDigest, "r.example.com/a/b@" + someDigest},
		"tag and digest both stay":               {"r.example.com/a:v1@" + someDigest, "r.example.com/a:v1@" + someDigest},
		"deep path":                              {"r.example.com/a/b/c/d/e:v1", "r.example.com/a/b/c/d/e:v1"},
		"capital tag":                            {"r.example.com/a:V1.0_RC-1", "r.example.com/a:V1.0_RC-1"},
		"a host of one word keeps its port":      {"registry:443/app", "registry:443/app:latest"},
		"host of the old Docker Hub with port":   {"index.docker.io:443/library/nginx:1", "docker.io/library/nginx:1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			ref, err := image.Parse(c.in)
			require.NoError(t, err)
			require.Equal(t, c.want, ref.String())
			again, err := image.Parse(ref.String())
			require.NoError(t, err)
			require.Equal(t, ref, again, "a normalised reference is a fixed point")
		})
	}
}

func TestParseRefusesWhatIsNotExactlyOneReference(t *testing.T) {
	cases := map[string]struct{ in, want string }{
		"empty":                       {"", "empty"},
		"namespace tag":               {"[team-b]registry.example.com/app", "reserved for the namespace tag"},
		"IPv6 host":                   {"[::1]:5000/app", "reserved for the namespace tag"},
		"space":                       {"registry.example.com/app v1", "is not valid"},
		"leading space":               {" nginx", "is not valid"},
		"new line":                    {"nginx\n", "is not valid"},
		"scheme":                      {"https://registry.example.com/app", "leave out https://"},
		"capital repository":          {"registry.example.com/App", "is not valid"},
		"escaped slash":               {"registry.example.com/team-a%2fapp", "is not valid"},
		"user in host":                {"user@registry.example.com/app", "is not valid"},
		"dot dot":                     {"registry.example.com/a/../b", "is not valid"},
		"trailing dot of the host":    {"registry.example.com./app", "is not valid"},
		"non-ASCII host":              {"régistry.example.com/app", "is not valid"},
		"an image ID":                 {"sha256:" + strings.Repeat("a", 64), "is an image ID, which names no registry"},
		"the start of an image ID":    {"sha256:a", "is an image ID"},
		"an image ID in capitals":     {"SHA256:a", "is an image ID"},
		"an ID of another hash":       {"sha512:" + strings.Repeat("a", 128), "is an image ID"},
		"an ID of SHA-384":            {"sha384:abc", "is an image ID"},
		"an ID that is no hash":       {"sha256:latest", "is an image ID"},
		"an ID with a digest":         {"sha256:a@" + someDigest, "is an image ID"},
		"a bare hash":                 {strings.Repeat("a", 64), "is not valid"},
		"sha512":                      {"r.example.com/a@sha512:" + strings.Repeat("a", 128), "only sha256"},
		"short digest":                {"r.example.com/a@sha256:abcd", "is not valid"},
		"capital digest":              {"r.example.com/a@sha256:" + strings.Repeat("A", 64), "is not valid"},
		"two digests":                 {"r.example.com/a@" + someDigest + "@" + someDigest, "is not valid"},
		"empty tag":                   {"nginx:", "is not valid"},
		"longer than any reference":   {"r.example.com/" + strings.Repeat("a/", 600) + "a", "the limit is 1024"},
		"repository over 255":         {"r.example.com/" + strings.Repeat("a", 256), "is not valid"},
		"NUL byte":                    {"nginx\x00", "is not valid"},
		"bracket in the middle":       {"nginx[team-b]", "is not valid"},
		"tag of 129 characters":       {"nginx:" + strings.Repeat("a", 129), "is not valid"},
		"a path in capitals":          {"Team/app", "neither dot nor port"},
		"two slashes":                 {"registry.example.com//app", "is not valid"},
		"trailing slash":              {"registry.example.com/app/", "is not valid"},
		"namespace tag after a space": {" [team-b]nginx", "is not valid"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			ref, err := image.Parse(c.in)
			require.ErrorContains(t, err, c.want)
			require.Zero(t, ref)
		})
	}
}

func TestNormaliseHost(t *testing.T) {
	for in, want := range map[string]string{
		"registry.example.com": "registry.example.com", "Registry.Example.com:443": "registry.example.com",
		"127.0.0.1:5000": "127.0.0.1:5000", "index.docker.io": "docker.io", "docker.io": "docker.io", "localhost": "localhost",
	} {
		got, err := image.NormaliseHost(in)
		require.NoError(t, err, in)
		require.Equal(t, want, got)
	}
	for _, in := range []string{"", "https://r.example.com", "r.example.com/team", "team", "r.example.com@x", "*.example.com", "[::1]:5000", "a b.c"} {
		_, err := image.NormaliseHost(in)
		require.Error(t, err, in)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"nginx", "r.example.com:443/a/b:v1@" + someDigest, "[x]y", "a@sha256:", "%2f", "é", ":443/a",
		"r.example.com:0443/a", "REGISTRY-1.docker.io:443/nginx", "registry.hub.docker.com/a/b", "127.1/a", "0x7f.0.0.1:5000/a", "doc\u212Aer.io/a", "a.localhost/a",
		"registry:443/a"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ref, err := image.Parse(s)
		if err != nil {
			require.Zero(t, ref)
			return
		}
		again, err := image.Parse(ref.String())
		require.NoError(t, err)
		require.Equal(t, ref, again)
		require.NotContains(t, ref.Repository, "..")
		require.NotContains(t, ref.Host, "/")
		require.LessOrEqual(t, len(ref.String()), image.MaxLength)
		host, err := image.NormaliseHost(ref.Host)
		require.NoError(t, err)
		require.Equal(t, ref.Host, host)
		pattern, err := image.ParsePattern(ref.Host + "/**")
		require.NoError(t, err, "every image can be named by a pattern")
		require.True(t, pattern.Match(ref))
		if written, _, found := strings.Cut(s, "/"); found && strings.ContainsAny(written, ".:") {
			host, err := image.NormaliseHost(written)
			require.NoError(t, err, "a Store can list the host of every image")
			require.Equal(t, ref.Host, host)
		}
	})
}
