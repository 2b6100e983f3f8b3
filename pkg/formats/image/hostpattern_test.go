package image_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

func TestAHostPatternMatchesWithinLabels(t *testing.T) {
	for _, c := range []struct {
		pattern string
		yes, no []string
	}{
		{"*.dkr.ecr.*.amazonaws.com", []string{"123456789012.dkr.ecr.eu-west-1.amazonaws.com"},
			[]string{"dkr.ecr.eu-west-1.amazonaws.com", "1.dkr.ecr.eu-west-1.amazonaws.com.cn", "1.2.dkr.ecr.eu-west-1.amazonaws.com", "1.dkr.ecr.a.b.amazonaws.com",
				"1.dkr.ecr.eu-west-1.amazonaws.com:5000", "1.dkr.ecr.eu-west-1.amazonaws.com.example.com", "1xdkr.ecr.eu-west-1.amazonaws.com"}},
		{"*-docker.pkg.dev", []string{"europe-docker.pkg.dev", "us-west1-docker.pkg.dev"},
			[]string{"-docker.pkg.dev", "docker.pkg.dev", "europe-docker.pkg.dev.example.com", "europe.docker.pkg.dev"}},
		{"r*y.example.com:5000", []string{"registry.example.com:5000", "ray.example.com:5000"},
			[]string{"ry.example.com:5000", "registry.example.com", "registry.example.com:5001"}},
		{"a*b*c.example.com", []string{"a1b2c.example.com", "axbbc.example.com"},
			[]string{"abc.example.com", "a1bc.example.com", "a1b2cd.example.com", "abbc.example.com"}},
		{"*.Example.com:443", []string{"a.example.com"}, []string{"a.example.com:443", "example.com"}},
		{"registry.example.com", []string{"registry.example.com"}, []string{"registryxexample.com", "a.registry.example.com"}},
	} {
		p, err := image.ParseHostPattern(c.pattern)
		require.NoError(t, err, c.pattern)
		for _, host := range c.yes {
			require.True(t, p.Match(host), "%s matches %s", p, host)
		}
		for _, host := range c.no {
			require.False(t, p.Match(host), "%s matches %s", p, host)
		}
	}
	require.False(t, image.HostPattern{}.Match(""), "the zero value matches nothing")
}

func TestHostPatternsAreRefusedThatAreTooWideOrNoHost(t *testing.T) {
	for pattern, why := range map[string]string{
		"*": "last two labels", "*.com": "last two labels", "*.*.com": "last two labels", "*.example.*": "last two labels", "registry.ex*mple.com": "last two labels",
		"**.example.com": "within one label", "10.0.0.*": "last two labels", "*.0.0.1": "address", "https://*.example.com": "scheme", "*.example.com/team": "path",
		"*.example.com:*": "not a port", "*.example.com:0443": "not a port", "[*]:5000": "IPv6", "*_.example.com": "not a DNS name",
		"-*.example.com": "not a DNS name",
		"*.a.localhost":  "another name for the local host", "*.localhost.localdomain": "another name for the local host", "*.0x7f.1": "address",
		"example": "needs a dot",
	} {
		_, err := image.ParseHostPattern(pattern)
		require.ErrorContains(t, err, why, pattern)
	}
}

func TestAHostPatternHasOneSpelling(t *testing.T) {
	for text, want := range map[string]string{"*.Example.COM:443": "*.example.com", "index.docker.io": "docker.io", "*.example.com:5000": "*.example.com:5000"} {
		p, err := image.ParseHostPattern(text)
		require.NoError(t, err)
		require.Equal(t, want, p.String())
	}
}
