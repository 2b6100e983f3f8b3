package image_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

func TestTemplatesMakeOneRepositoryOfAnImagesName(t *testing.T) {
	cases := map[string]struct{ host, path, image, want string }{
		"the same path":                        {"harbor.internal", "{repository}", "ghcr.io/org/app:v1", "harbor.internal/org/app"},
		"a project for a proxy":                {"harbor.internal", "hub/{repository}", "nginx", "harbor.internal/hub/library/nginx"},
		"one mirror for many hosts":            {"harbor.internal:8443", "{registry}/{repository}", "a.azurecr.io/app", "harbor.internal:8443/a.azurecr.io/app"},
		"a port becomes a legal part":          {"harbor.internal", "{registry}/{repository}", "r.example.com:5000/app", "harbor.internal/r.example.com_5000/app"},
		"one flat repository":                  {"r.example.com", "signatures", "ghcr.io/org/app", "r.example.com/signatures"},
		"a suffix":                             {"r.example.com", "{repository}-sigs", "ghcr.io/org/app", "r.example.com/org/app-sigs"},
		"a digest is not of the repository":    {"r.example.com", "{repository}", "ghcr.io/org/app@sha256:" + strings.Repeat("a", 64), "r.example.com/org/app"},
		"the host is normalised":               {"Harbor.Internal:443", "{repository}", "ghcr.io/app", "harbor.internal/app"},
		"Docker Hub's own names":               {"index.docker.io", "sigs", "ghcr.io/app", "docker.io/library/sigs"},
		"a name that looks like a placeholder": {"r.example.com", "{registry}/{repository}", "localhost:5000/registry", "r.example.com/localhost_5000/registry"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			template, err := image.ParseTemplate(c.host, c.path)
			require.NoError(t, err)
			ref, err := image.Parse(c.image)
			require.NoError(t, err)
			made, err := template.For(ref)
			require.NoError(t, err)
			require.Equal(t, c.want, made.Name())
			require.Empty(t, made.Tag+made.Digest.String())
			require.Equal(t, made.Host, template.Host())
		})
	}
}

func TestTemplatesThatMakeNoRepositoryAreRefused(t *testing.T) {
	cases := map[string]struct{ host, path, why string }{
		"a host by placeholder":      {"{registry}", "{repository}", "can only be in the path"},
		"part of a host":             {"{registry}.example.com", "{repository}", "can only be in the path"},
		"a scheme":                   {"https://r.example.com", "{repository}", "leave out https://"},
		"a path in the host":         {"r.example.com/team", "{repository}", "is not a host"},
		"no path":                    {"r.example.com", "", "is missing"},
		"another placeholder":        {"r.example.com", "{tag}", "other than {repository} and {registry}"},
		"a brace that is not closed": {"r.example.com", "{repository", "other than"},
		"a tag":                      {"r.example.com", "{repository}:v1", "does not make a repository"},
		"a digest":                   {"r.example.com", "x@sha256:" + strings.Repeat("a", 64), "does not make a repository"},
		"capital letters":            {"r.example.com", "Team/{repository}", "does not make a repository"},
		"an empty segment":           {"r.example.com", "a//{repository}", "does not make a repository"},
		"a slash at the end":         {"r.example.com", "{repository}/", "does not make a repository"},
		"a way up":                   {"r.example.com", "../{repository}", "does not make a repository"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := image.ParseTemplate(c.host, c.path)
			require.ErrorContains(t, err, c.why)
		})
	}
	_, err := image.Template{}.For(image.Reference{})
	require.Error(t, err)
}

func TestARepositoryThatIsTooLongIsAnErrorAndNoOtherName(t *testing.T) {
	template, err := image.ParseTemplate("r.example.com", "{registry}/{repository}/{repository}")
	require.NoError(t, err)
	_, err = template.For(image.Reference{Host: "a.example.com", Repository: strings.Repeat("a", 200)})
	require.ErrorContains(t, err, "does not make a repository")
}
