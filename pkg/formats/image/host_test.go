package image_test

import (
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

func TestEveryNameOfDockerHubIsOneHost(t *testing.T) {
	for _, host := range []string{"docker.io", "index.docker.io", "registry-1.docker.io", "registry.hub.docker.com"} {
		for _, spelled := range []string{host, host + ":443", strings.ToUpper(host), strings.ToUpper(host) + ":443"} {
			require.Equal(t, "docker.io/library/nginx:1", parse(t, spelled+"/nginx:1").String())
			require.Equal(t, "docker.io/library/nginx:1", parse(t, spelled+"/library/nginx:1").String())
			require.Equal(t, "docker.io/team/app:latest", parse(t, spelled+"/team/app").String())
			normalised, err := image.NormaliseHost(spelled)
			require.NoError(t, err)
			require.Equal(t, "docker.io", normalised)
			for _, written := range []string{"/nginx", "/library/nginx", "/library/*", "/**"} {
				pattern, err := image.ParsePattern(spelled + written)
				require.NoError(t, err)
				require.True(t, pattern.Match(parse(t, "nginx")), spelled+written)
			}
		}
	}
	require.Equal(t, "docker.io:5000/nginx:latest", parse(t, "docker.io:5000/nginx").String(), "another port is another registry")
	require.Equal(t, "evil.docker.io/nginx:latest", parse(t, "evil.docker.io/nginx").String())
}

// Each of these reaches the server of a host that has a plainer name, on some node or with
// some resolver: a rule for the plain name must not be walked around.
func TestRefusesOtherSpellingsOfAHost(t *testing.T) {
	for host, fix := range map[string]string{
		"registry.example.com:0443":  "without leading zeros",
		"registry.example.com:00443": "without leading zeros",
		"registry.example.com:+443":  "without leading zeros",
		"registry.example.com:0":     "from 1 to 65535",
		"registry.example.com:65536": "from 1 to 65535",
		"registry.example.com:65979": "from 1 to 65535", // 443 in 16 bits
		"registry.example.com:4 43":  "from 1 to 65535",
		"registry.example.com:":      "from 1 to 65535",
		"registry.example.com:1:2":   "from 1 to 65535",
		"registry:0443":              "without leading zeros",
		"localhost:05000":            "without leading zeros",
		"docker.io:0443":             "without leading zeros",
		"registry.example.com.":      "not a DNS name",
		"registry.example.com.:443":  "not a DNS name",
		"registry..example.com":      "not a DNS name",
		".registry.example.com":      "not a DNS name",
		"régistry.example.com":       "not a DNS name",
		"registry.example.\u212Aom":  "not a DNS name", // the Kelvin sign, lower case k
		"registry-1.doc\u212Aer.io":  "not a DNS name",
		"registry。example.com:443":   "not a DNS name", // an ideographic full stop, which IDNA maps to a dot
		"registry%2eexample.com":     "not a DNS name",
		"user@registry.example.com":  "not a DNS name",
		"127.1:5000":                 "four decimal numbers",
		"127.0.1":                    "four decimal numbers",
		"010.0.0.1":                  "four decimal numbers",
		"10.0.0.01":                  "four decimal numbers",
		"0x7f.0.0.1":                 "four decimal numbers",
		"0X7F.0.0.1":                 "four decimal numbers",
		"127.0.0.0x1":                "four decimal numbers",
		"0x7f000001:443":             "four decimal numbers",
		"2130706433:443":             "four decimal numbers",
		"017700000001:443":           "four decimal numbers",
		"10.0.0.256":                 "four decimal numbers",
		"1.2.3.4.5":                  "four decimal numbers",
		"0.0.0.0:5000":               "write 127.0.0.1",
		"127.0.0.2:5000":             "write 127.0.0.1",
		"127.255.255.254":            "write 127.0.0.1",
		"app.localhost":              "write localhost",
		"App.LocalHost:5000":         "write localhost",
		"localhost.localdomain:5000": "write localhost",
		"localhost6:5000":            "write localhost",
		"ip6-localhost:5000":         "write localhost",
	} {
		_, err := image.Parse(host + "/app:v1")
		require.ErrorContains(t, err, fix, host)
		_, err = image.NormaliseHost(host)
		require.ErrorContains(t, err, fix, host)
		_, err = image.ParsePattern(host + "/**")
		require.ErrorContains(t, err, fix, host)
	}
	for _, host := range []string{"[::1]", "[::1]:443", "[::ffff:10.0.0.1]:443", "[::ffff:a00:1]:443", "[0:0:0:0:0:0:0:1]:443", "::1", "fe80::1:443"} {
		_, err := image.Parse(host + "/app:v1")
		require.Error(t, err, host)
		_, err = image.NormaliseHost(host)
		require.Error(t, err, host)
		_, err = image.ParsePattern(host + "/**")
		require.Error(t, err, host)
	}
	for spelled, want := range map[string]string{
		"REGISTRY.example.COM:443": "registry.example.com", "XN--RGISTRY-BYA.example": "xn--rgistry-bya.example",
		"LOCALHOST": "localhost", "Localhost:443": "localhost", "10.0.0.1:443": "10.0.0.1", "registry.example.com:65535": "registry.example.com:65535",
		"REGISTRY:443": "registry:443", "1and1.example": "1and1.example", "4.example": "4.example", "0xcafe.example": "0xcafe.example",
	} {
		require.Equal(t, want, parse(t, spelled+"/app").Host)
	}
}

func TestAWildcardMatchesALabelOfADNSName(t *testing.T) {
	for _, pattern := range []string{"*.0.0.1/**", "*.10.0.0.1/**", "*.0x1:5000/**", "*.localhost/**", "*.example.com:0443/**", "*.doc\u212Aer.io/**", "*./**",
		"*.*.com/**", "*.com/**", "*.localhost.localdomain/**"} {
		_, err := image.ParsePattern(pattern)
		require.Error(t, err, pattern)
	}
	pattern, err := image.ParsePattern("*.Example.com:443/**")
	require.NoError(t, err)
	require.True(t, pattern.Match(parse(t, "eu.example.com/app")))
	pattern, err = image.ParsePattern("*.docker.io/**")
	require.NoError(t, err)
	require.False(t, pattern.Match(parse(t, "nginx")), "docker.io is not one of its own subdomains")
	require.True(t, pattern.Match(parse(t, "mirror.docker.io/nginx")))
}

// A reference that parses stays parseable: normalising adds a host, library/ and a tag.
func TestALongReferenceIsAFixedPoint(t *testing.T) {
	label := strings.Repeat("a", 62) + "."
	host := strings.Repeat(label, 4)[:252] + "a"
	require.Len(t, host, 253)
	long := host + ":65535/" + strings.Repeat("b", 255) + ":" + strings.Repeat("c", 128) + "@" + someDigest
	require.Equal(t, long, parse(t, long).String())
	_, err := image.Parse("a" + long)
	require.ErrorContains(t, err, "longer than 253")
	for _, hub := range []string{"", "docker.io/", "registry-1.docker.io:443/"} {
		ref := parse(t, hub+strings.Repeat("b", 247))
		require.Equal(t, ref, parse(t, ref.String()))
		_, err := image.Parse(hub + strings.Repeat("b", 248))
		require.Error(t, err)
	}
}

// Two spellings that dial the same address and port have the same Host, or one of them is
// refused; and two servers never share one.
func TestHostsAreEqualExactlyIfTheyDialTheSameServer(t *testing.T) {
	hosts, servers := map[string]string{}, map[string]string{} // by what is dialled, and by Host
	for _, spelled := range spellings() {
		ref, err := image.Parse(spelled + "/app:v1")
		if err != nil {
			continue
		}
		server := dialled(spelled)
		if earlier, ok := hosts[server]; ok {
			require.Equal(t, earlier, ref.Host, "%s dials %s", spelled, server)
		}
		if earlier, ok := servers[ref.Host]; ok {
			require.Equal(t, earlier, server, "%s is %s", spelled, ref.Host)
		}
		hosts[server], servers[ref.Host] = ref.Host, server
	}
	require.Len(t, hosts, 7*3+3*2+3, "seven hosts on three ports, three names of Docker Hub on two others, and registry, which needs one")
}

// spellings returns few servers in many spellings.
func spellings() []string {
	hosts := []string{
		"registry.example.com", "Registry.EXAMPLE.com", "other.example.com", "registry.example.com.", "registry", "REGISTRY",
		"docker.io", "index.docker.io", "registry-1.docker.io", "Registry.hub.docker.com", "app.docker.io",
	}
	for _, net := range []uint32{10, 127, 8} {
		all := net<<24 | 1
		hosts = append(hosts, fmt.Sprintf("%d.0.0.1", net), fmt.Sprintf("%d.1", net), fmt.Sprintf("%d.0.1", net), fmt.Sprintf("0%o.0.0.1", net),
			fmt.Sprintf("%d.0.0.01", net), fmt.Sprintf("%#x.0.0.1", net), fmt.Sprintf("%#X.0x0.0.1", net), fmt.Sprint(all), fmt.Sprintf("%#x", all),
			fmt.Sprintf("0%o", all))
	}
	var all []string
	for _, host := range hosts {
		for _, port := range []string{"", ":443", ":0443", ":000443", ":5000", ":05000", ":444", ":65979"} {
			all = append(all, host+port)
		}
	}
	return all
}

// dialled returns the address and port that a runtime reaches under a spelling, where
// inet_aton(3) reads numbers.
func dialled(spelled string) string {
	host, port, _ := strings.Cut(strings.ToLower(spelled), ":")
	if port == "" {
		if !strings.Contains(host, ".") {
			host = "docker.io" // the start of a path there
		}
		port = "443"
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return "nothing"
	}
	host = strings.TrimSuffix(host, ".")
	switch host {
	case "index.docker.io", "registry-1.docker.io", "registry.hub.docker.com":
		if number == 443 {
			host = "docker.io"
		}
	}
	if address, ok := inetAton(host); ok {
		host = address
	}
	return fmt.Sprintf("%s:%d", host, number)
}

func inetAton(host string) (string, bool) {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return "", false
	}
	var address uint64
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 0, 32)
		if err != nil {
			return "", false
		}
		if i == len(parts)-1 {
			address += n
		} else {
			address += n << (24 - 8*i)
		}
	}
	if address > math.MaxUint32 {
		return "", false
	}
	return netip.AddrFrom4([4]byte{byte(address >> 24), byte(address >> 16), byte(address >> 8), byte(address)}).String(), true
}

// Parse is a function onto normalised references: of each it makes the same one again, and
// no two have one string.
func TestParseIsIdempotentAndInjective(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) (string, image.Reference) {
			s := rapid.OneOf(rapid.SampledFrom(spellings()), rapid.StringMatching(`[a-zA-Z0-9][a-zA-Z0-9.-]{0,8}(:[0-9]{1,6})?`)).Draw(t, label+" host") +
				rapid.SampledFrom([]string{"/app", "/library/app", "/team/app", "/app/app"}).Draw(t, label+" path") +
				rapid.SampledFrom([]string{"", ":latest", ":v1", "@" + someDigest, ":v1@" + someDigest}).Draw(t, label+" tag")
			ref, err := image.Parse(s)
			if err != nil {
				return s, image.Reference{}
			}
			again, err := image.Parse(ref.String())
			if err != nil || again != ref {
				t.Fatalf("%s is %s and then %s: %v", s, ref, again, err)
			}
			if host, err := image.NormaliseHost(ref.Host); err != nil || host != ref.Host {
				t.Fatalf("host %s of %s is normalised to %s: %v", ref.Host, s, host, err)
			}
			return s, ref
		}
		a, first := draw("a")
		b, second := draw("b")
		if (first == second) != (first.String() == second.String()) {
			t.Fatalf("%s is %#v, %s is %#v", a, first, b, second)
		}
	})
}
