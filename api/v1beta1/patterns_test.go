package v1beta1_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"pgregory.net/rapid"

	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// grammar is how compile reads the fields at some paths, whose regular expression is one.
type grammar struct {
	paths   []string
	read    func(string) error
	letters []string // what texts are made of
	seeds   []string // texts that are near to right ones
	// beyond are what only compile refuses: no expression of a moderate length tells it.
	beyond map[string]*regexp.Regexp
	right  []string
	wrong  []string
}

func ofPattern(text string) error { _, err := image.ParsePattern(text); return err }

func ofSelection(text string) error { _, _, err := image.ParseSelection(text); return err }

func ofHosts(text string) error { _, err := image.ParseHostPattern(text); return err }

func ofHost(text string) error { _, err := image.NormaliseHost(text); return err }

func ofPath(text string) error { _, err := image.ParseTemplate("r.example.com", text); return err }

func ofLocation(text string) error {
	host, path, _ := strings.Cut(text, "/")
	_, err := image.ParseTemplate(host, path)
	return err
}

// beyondHosts is what only compile refuses in any host.
func beyondHosts(more map[string]string) map[string]*regexp.Regexp {
	all := map[string]*regexp.Regexp{
		"a port of more than 65535":      regexp.MustCompile(`:(6553[6-9]|655[4-9]|65[6-9]|6[6-9]|[7-9][0-9])[0-9]*`),
		"another spelling of an address": regexp.MustCompile(`^[^/]*(^|\.)(?i)([0-9]+|0x[0-9a-f]*)(:[0-9]+)?(/|$)`),
		"another name of " +
			"the local host": regexp.MustCompile(`(?i)^(.*\.localhost|(\S*\*\S*\.)?localhost[46]?(\.localdomain[46]?)?|ip6-(localhost|loopback))(:[0-9]+)?(/|$)`),
		"a host of more than 253 characters": regexp.MustCompile(`^[^/]{254,}`),
	}
	for name, text := range more {
		all[name] = regexp.MustCompile(text)
	}
	return all
}

// deep matches a pattern of more segments than compile accepts. To count them takes a regular
// expression ten times as long.
const deep = `^[^/@]*(/[^/@]*){33}`

const digest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func grammars() map[string]grammar {
	hosts := []string{"r.example.com", "r.example.com:5000", "localhost", "LocalHost", "localhost:443", "r:5000", "R-1.Example.com", "10.0.0.1", "127.0.0.1:5000",
		"a--b.example.com", "index.docker.io", "example.com:65535"}
	noHosts := []string{"", "r", "team-a", "R", "https://r.example.com", "r.example.com:", "r.example.com:0443", "r.example.com:http", ".example.com",
		"r..example.com", "r.example.com.", "-r.example.com",
		"r-.example.com", "r_1.example.com", "[::1]:5000", "r.example.com:5000:1", " r.example.com", "r.example.com\n", "ü.example.com", "\u212Aube.example.com"}
	patterns := []string{"**", "r.example.com/**", "r.example.com/a", "*.example.com/**", "*.a.b.example.com/a", "*.example.com:5000/a", "r.example.com/*",
		"r.example.com/a*b*c", "r.example.com/**/x/**", "r.example.com/*.*", "r.example.com/*-a_b.c",
		"docker.io/nginx", "r.example.com/a..b", "r.example.com/a--b", "GHCR.io/acme/app", "r.example.com" + strings.Repeat("/a", 32)}
	noPatterns := []string{"*", "nginx", "acme/app", "https://ghcr.io/x", "http://ghcr.io/x", "ghcr.io", "ghcr.io/", "ghcr.io/acme/", "/acme", "ghcr.io//acme",
		"ghcr.io/Acme", "ghcr.io/acme/App", "Acme/app", "ghcr.io/acme**", "ghcr.io/**acme", "ghcr.io/***", "ghcr.io/a/**b/c",
		"**/acme", "*/acme", "*ghcr.io/acme", "ghcr.*/acme", "*.*.io/acme", "a.*.io/acme", "*:5000/acme", "*./acme", "*.com/acme", "*.com:5000/acme",
		"ghcr.io/acme:v1", "ghcr.io/acme/app:v1", "ghcr.io/_acme", "ghcr.io/acme-", "ghcr.io/.acme/app", "ghcr.io/a b",
		"ghcr.io/[a-z]", `ghcr.io/a\*`, "ghcr.io/acmé", "ghcr.io/acme\n"}
	for _, host := range hosts {
		patterns = append(patterns, host+"/a")
	}
	for _, host := range noHosts {
		noPatterns = append(noPatterns, host+"/a")
	}
	exceptions := grammar{
		paths: []string{"Exception spec.images[]", "Exception spec.delegate.images[]", "ClusterException spec.images[]", "ClusterException spec.delegate.images[]"},
		read:  ofSelection, letters: []string{"a", "B", "9", ".", "-", "_", "*", "**", "/", ":", "@", "localhost", ".example.com", digest, "sha256", ":v1"},
		seeds: []string{"r.example.com/a" + digest, "nginx" + digest, "r.example.com/**"},
		beyond: beyondHosts(map[string]string{
			"more than 32 segments": deep,
			"what is no host before the first slash of an image with a digest": `^([A-Za-z0-9-]*[A-Z][A-Za-z0-9-]*|[a-z0-9._-]*[._][a-z0-9._-]*)/.*@`,
			"64 hexadecimal digits as a name":                                  `^(docker\.io/)?[a-f0-9]{64}@`,
			"a repository of more than 255 characters":                         `/.{240,}@`,
		}),
		right: append(slices.Clip(patterns), "nginx"+digest, "acme/app"+digest, "r.example.com/a__b/c.d-e"+digest, "r:5000/a"+digest, "team-a/a_b"+digest,
			"Localhost/a"+digest, "index.docker.io/nginx"+digest),
		wrong: append(slices.Clip(noPatterns), "r.example.com/a:v1"+digest, "r.example.com/a@sha256:0", "r.example.com/a@sha512:"+strings.Repeat("0", 128),
			"r.example.com/a@sha256:"+strings.Repeat("A", 64), "r.example.com/*"+digest, "*.example.com/a"+digest, "r.example.com"+digest[1:], digest, "/a"+digest,
			"r.example.com/a"+digest+digest, "r.example.com/a___b"+digest, "r.example.com/A"+digest, "-r.example.com/a"+digest, "r.example.com:0/a"+digest,
			"r.example.com/a/"+digest, "**"+digest),
	}
	stars := append([]string{"*.example.com", "*.dkr.ecr.*.amazonaws.com", "*-docker.pkg.dev", "r*y.example.com:5000", "a*b*c.example.com", "*.*.example.com"},
		hosts...)
	return map[string]grammar{
		"patterns": {
			paths: []string{"Verifier spec.images[]", "ClusterVerifier spec.images[]", "VerificationPolicy spec.rules[].images[]",
				"ClusterVerificationPolicy spec.rules[].images[]"},
			read:    ofPattern,
			letters: []string{"a", "B", "9", ".", "-", "_", "*", "**", "/", ":", "@", "localhost", ".example.com", ":5000", "r.example.com/", "https://"},
			seeds:   []string{"r.example.com/a/b", "*.example.com/**", "**"},
			beyond:  beyondHosts(map[string]string{"more than 32 segments": deep}), right: patterns,
			wrong: append(slices.Clip(noPatterns), "r.example.com/a"+digest, "nginx"+digest),
		},
		"exceptions": exceptions,
		"registries": {
			paths: []string{"Store spec.registries[]", "ClusterStore spec.registries[]", "Store spec.proxy.additionalHosts[]",
				"ClusterStore spec.proxy.additionalHosts[]"},
			read: ofHosts, letters: []string{"a", "B", "9", ".", "-", "_", "*", "/", ":", "localhost", ".example.com", ":5000"},
			seeds:  []string{"r.example.com", "*.example.com"},
			beyond: beyondHosts(nil), right: stars,
			wrong: append(slices.Clip(noHosts), "*", "*.com", "*.*.com", "*.example.*", "r.ex*mple.com", "**.example.com", "a**.example.com", "*.example.com/a",
				"-*.example.com", "*-.example.com", "*:5000", "*.example.com:*"),
		},
		"mirrors": {
			paths: []string{"Store spec.mirrors[].host", "ClusterStore spec.mirrors[].host"},
			read:  ofHost, letters: []string{"a", "B", "9", ".", "-", "_", "*", "/", ":", "localhost", ".example.com", ":5000", "{registry}"},
			seeds:  []string{"r.example.com"},
			beyond: beyondHosts(nil), right: hosts, wrong: append(slices.Clip(noHosts), "*.example.com", "{registry}", "r.example.com/a"),
		},
		"paths of mirrors": {
			paths: []string{"Store spec.mirrors[].path", "ClusterStore spec.mirrors[].path"},
			read:  ofPath, letters: []string{"a", "B", "9", ".", "-", "_", "/", ":", "{repository}", "{registry}", "{", "}"},
			seeds:  []string{"{repository}", "hub/{registry}/a"},
			beyond: map[string]*regexp.Regexp{"a repository of more than 255 characters": regexp.MustCompile(`^.{100,}`)},
			right:  []string{"{repository}", "hub/{repository}", "{registry}/{repository}", "a.b_c__d---e/{repository}-sigs", "{registry}{repository}", "a"},
			wrong:  []string{"", "/a", "a/", "a//b", "A", "a:v1", "{tag}", "{repository", "a___b", "a..b", "../a", "a b"},
		},
		"evidence": {
			paths: []string{"Store spec.evidence.repositories[].repository", "ClusterStore spec.evidence.repositories[].repository"},
			read:  ofLocation, letters: []string{"a", "B", "9", ".", "-", "_", "/", ":", "{repository}", "{registry}", ".example.com", "localhost"},
			seeds:  []string{"r.example.com/{repository}", "r.example.com/sigs"},
			beyond: beyondHosts(map[string]string{"a repository of more than 255 characters": `/.{100,}`}),
			right:  []string{"r.example.com/sigs", "r:5000/{registry}/{repository}", "localhost/a"},
			wrong: []string{"r.example.com", "r.example.com/", "{registry}/sigs", "https://r.example.com/a", "acme/sigs", "r.example.com/Sigs", "r.example.com/a:v1",
				"r.example.com/a" + digest},
		},
	}
}

// expressions returns the regular expression of a grammar, as the CRDs have it.
func (g grammar) expression(t *testing.T) *regexp.Regexp {
	t.Helper()
	found := map[string]string{}
	for kind, c := range crds(t) {
		spec := c.schema.Properties["spec"]
		walk("spec", &spec, func(path string, s *apiextensions.JSONSchemaProps) { found[kind+" "+path] = s.Pattern })
	}
	text := found[g.paths[0]]
	require.NotEmpty(t, text, g.paths[0])
	for _, path := range g.paths {
		require.Equal(t, text, found[path], "%s and %s are read by one function", g.paths[0], path)
	}
	require.Less(t, len(text), 400, "kubectl prints it")
	return regexp.MustCompile(text)
}

// compare says what is wrong if schema and compile disagree about a text, "" if they do not.
func (g grammar) compare(schema *regexp.Regexp, text string) string {
	err := g.read(text)
	switch accepted := schema.MatchString(text); {
	case err == nil && !accepted:
		return "the schema refuses what compile accepts"
	case err != nil && accepted:
		for _, only := range g.beyond {
			if only.MatchString(text) {
				return ""
			}
		}
		return "the schema accepts what compile refuses: " + err.Error()
	}
	return ""
}

func TestTheSchemaRefusesImagesAndHostsThatCompileRefuses(t *testing.T) {
	for name, g := range grammars() {
		t.Run(name, func(t *testing.T) {
			schema := g.expression(t)
			for _, text := range g.right {
				require.NoError(t, g.read(text))
				require.Regexp(t, schema, text)
			}
			for _, text := range g.wrong {
				require.Error(t, g.read(text), "%q", text)
				require.NotRegexp(t, schema, text)
			}
		})
	}
}

func TestTheSchemaAndCompileReadImagesAndHostsAlike(t *testing.T) {
	for name, g := range grammars() {
		schema := g.expression(t)
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				text := g.draw(t)
				if wrong := g.compare(schema, text); wrong != "" {
					t.Fatalf("%q: %s", text, wrong)
				}
			})
		})
	}
}

// draw makes a text of the letters, or of a right one that is changed somewhere.
func (g grammar) draw(t *rapid.T) string {
	letters := rapid.SliceOfN(rapid.SampledFrom(g.letters), 1, 9).Draw(t, "letters")
	text := strings.Join(letters, "")
	if rapid.Bool().Draw(t, "near a right one") {
		seed := rapid.SampledFrom(slices.Concat(g.seeds, g.right)).Draw(t, "right")
		from := rapid.IntRange(0, len(seed)).Draw(t, "from")
		to := rapid.IntRange(from, len(seed)).Draw(t, "to")
		text = seed[:from] + strings.Join(letters[:min(len(letters), 2)], "") + seed[to:]
	}
	return text
}
