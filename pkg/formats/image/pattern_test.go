package image_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

func TestPatternMatchesHostAndPathApart(t *testing.T) {
	cases := map[string]struct {
		pattern  string
		match    []string
		mismatch []string
	}{
		"everything": {"**", []string{"nginx", "evil.example/x/y/z"}, nil},
		"a team's repositories": {"registry.example.com/team-a/**",
			[]string{"registry.example.com/team-a/app", "registry.example.com/team-a/x/y:v1", "REGISTRY.example.com:443/team-a/app"},
			[]string{"registry.example.com/team-a", "registry.example.com/team-ab/app", "registry.example.com/x/team-a/app",
				"evil.example.com/registry.example.com/team-a/app", "registry.example.com:8443/team-a/app"}},
		"one exact repository": {"registry.example.com/team-a/app",
			[]string{"registry.example.com/team-a/app", "registry.example.com/team-a/app:v2"},
			[]string{"registry.example.com/team-a/app2", "registry.example.com/team-a/app/sub"}},
		"star stays in its segment": {"registry.example.com/*/app",
			[]string{"registry.example.com/a/app"}, []string{"registry.example.com/a/b/app", "registry.example.com/app"}},
		"star in a word": {"registry.example.com/team-*/app",
			[]string{"registry.example.com/team-x/app"}, []string{"registry.example.com/teams/app"}},
		"double star in the middle": {"registry.example.com/a/**/z",
			[]string{"registry.example.com/a/b/z", "registry.example.com/a/b/c/z"}, []string{"registry.example.com/a/z", "registry.example.com/a/b"}},
		"one label of the host": {"*.example.com/**",
			[]string{"eu.example.com/app"},
			[]string{"example.com/app", "a.b.example.com/app", "evil.test/eu.example.com/app", "evilexample.com/app", "eu.example.com:5000/app"}},
		"Docker Hub short name":    {"docker.io/nginx", []string{"nginx", "docker.io/library/nginx:1"}, []string{"docker.io/evil/nginx"}},
		"Docker Hub official ones": {"docker.io/*", []string{"nginx", "redis"}, []string{"evil/nginx"}},
		"old Docker Hub host":      {"index.docker.io/library/*", []string{"nginx"}, []string{"evil/nginx"}},
		"host and port":            {"127.0.0.1:5000/**", []string{"127.0.0.1:5000/a"}, []string{"127.0.0.1:5001/a"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pattern, err := image.ParsePattern(c.pattern)
			require.NoError(t, err)
			for _, s := range c.match {
				require.True(t, pattern.Match(parse(t, s)), s)
			}
			for _, s := range c.mismatch {
				require.False(t, pattern.Match(parse(t, s)), s)
			}
		})
	}
}

func TestParsePatternRefusesWhatCouldNeverMatchAndSaysTheFix(t *testing.T) {
	cases := map[string]struct{ in, want string }{
		"empty":                  {"", `use "**" for every image`},
		"no path":                {"registry.example.com", `"registry.example.com/**"`},
		"bare Docker Hub name":   {"nginx", `a repository, such as "docker.io/library/nginx"`},
		"Docker Hub and a tag":   {"nginx:1.25", `a repository, such as "docker.io/library/nginx"`},
		"Docker Hub and digest":  {"nginx@" + someDigest, `a repository, such as "docker.io/library/nginx"`},
		"capitals and no path":   {"Nginx", `a repository, such as "docker.io/library/nginx"`},
		"a port and no path":     {"localhost:5000", `a repository, such as "localhost:5000/**"`},
		"this host and no path":  {"localhost", `a repository, such as "localhost/**"`},
		"hosts and no path":      {"*.example.com", `a repository, such as "*.example.com/**"`},
		"one star":               {"*", `use "**" for every image`},
		"Docker Hub user":        {"bitnami/*", `"docker.io/bitnami/*"`},
		"wildcard inside a host": {"registry.*.com/**", "first label"},
		"wildcard host":          {"*/app", "first label"},
		"host of double stars":   {"**/app", "first label"},
		"star glued to a host":   {"*example.com/app", "first label"},
		"tag":                    {"registry.example.com/app:v1", "tags and digests"},
		"digest":                 {"registry.example.com/app@" + someDigest, "tags and digests"},
		"capitals in the path":   {"registry.example.com/App", "lower case"},
		"double star in a word":  {"registry.example.com/a**", "must stand alone"},
		"character class":        {"registry.example.com/[a-z]", "path segment"},
		"backslash":              {`registry.example.com/a\*`, "path segment"},
		"empty segment":          {"registry.example.com//a", "path segment"},
		"trailing slash":         {"registry.example.com/a/", "path segment"},
		"too deep":               {"registry.example.com/" + strings.Repeat("a/", 40) + "a", "path segments"},
		"too long":               {"registry.example.com/" + strings.Repeat("a", 2000), "the limit is 1024"},
		"dots in the host":       {"registry..com/a", `host "registry..com": it is not a DNS name`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := image.ParsePattern(c.in)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestZeroPatternMatchesNothing(t *testing.T) {
	require.False(t, image.Pattern{}.Match(parse(t, "nginx")))
	everything, err := image.ParsePattern("**")
	require.NoError(t, err)
	require.False(t, everything.Match(image.Reference{}), "no image is not an image")
}

// A pattern with a plain host never selects an image of another host, whatever their
// paths.
func TestPatternNeverMatchesAnotherHost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		host := rapid.StringMatching(`[a-z]{1,5}\.[a-z]{2,3}`)
		segment := rapid.StringMatching(`[a-z]{1,4}|\*\*|\*|[a-z]\*`)
		patternHost, otherHost := host.Draw(t, "pattern host"), host.Draw(t, "host")
		path := strings.Join(rapid.SliceOfN(segment, 1, 4).Draw(t, "pattern path"), "/")
		pattern, err := image.ParsePattern(patternHost + "/" + path)
		if err != nil {
			t.Fatal(err)
		}
		name := rapid.StringMatching(`[a-z]{1,4}(/[a-z]{1,4}){0,3}`).Draw(t, "repository")
		for _, repository := range []string{name, patternHost + "/" + name} {
			ref, err := image.Parse(otherHost + "/" + repository)
			if err != nil {
				t.Fatal(err)
			}
			if pattern.Match(ref) && patternHost != otherHost {
				t.Fatalf("%s/%s matched %s", patternHost, path, ref)
			}
		}
	})
}

func parse(t *testing.T, s string) image.Reference {
	t.Helper()
	ref, err := image.Parse(s)
	require.NoError(t, err)
	return ref
}
