package egress

import (
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

func TestEndpointsAreHostsAtAddressesWithAPort(t *testing.T) {
	made, err := ParseEndpoints([]string{"STS.eu-central-1.amazonaws.com=10.0.0.5:443", "registry.example.com:5000=private.internal:8443",
		"v6.example.com=[fd00::1]:443"})
	require.NoError(t, err)
	for address, want := range map[string]string{
		"sts.eu-central-1.amazonaws.com:443": "10.0.0.5:443", "STS.eu-central-1.amazonaws.com:443": "10.0.0.5:443",
		"registry.example.com:5000": "private.internal:8443",
		"v6.example.com:443":        "[fd00::1]:443", "registry.example.com:443": "", "sts.eu-central-1.amazonaws.com:80": "",
		"x.sts.eu-central-1.amazonaws.com:443": "",
	} {
		got, found := made.of(address)
		require.Equal(t, want, got, address)
		require.Equal(t, want != "", found, address)
	}
	for entry, says := range map[string]string{
		"": "must have the form HOST=ADDRESS:PORT", "a.example.com": "must have the form", "a.example.com=": "must have the form",
		"=10.0.0.5:443":          "must have the form",
		"a.example.com=10.0.0.5": "the address has no port", "a.example.com=10.0.0.5:0": "is not a host", "*.example.com=10.0.0.5:443": "is not a host",
		"https://a.example.com=10.0.0.5:443": "is not a host", "a.example.com=https://10.0.0.5:443": "is not a host", "a.example.com=10.0.0.5:443/x": "is not a host",
	} {
		_, err := ParseEndpoints([]string{entry})
		require.ErrorContains(t, err, says, entry)
	}
	_, err = ParseEndpoints([]string{"a.example.com=10.0.0.5:443", "A.example.com:443=10.0.0.6:443"})
	require.ErrorContains(t, err, "a second time")
}

// Whoever answers at the address still has to prove that it is the host.
func TestAnEndpointMustProveToBeTheHost(t *testing.T) {
	ca, err := fixture.NewAuthority("cloud")
	require.NoError(t, err)
	serve := func(name string) string {
		issued, err := ca.IssueServer(name)
		require.NoError(t, err)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(r.Host)) }))
		server.TLS = &tls.Config{Certificates: []tls.Certificate{issued.TLS}, MinVersion: tls.VersionTLS12}
		server.StartTLS()
		t.Cleanup(server.Close)
		return strings.TrimPrefix(server.URL, "https://")
	}
	endpoints, err := ParseEndpoints([]string{"sts.example.com=" + serve("sts.example.com"), "ecr.example.com=" + serve("other.example.com"),
		"imds.example.com=169.254.169.254:443"})
	require.NoError(t, err)
	for _, reach := range []Reach{Public, Private} {
		client, err := New(t.Context(),
			Options{Hosts: []string{"sts.example.com", "ecr.example.com", "imds.example.com"}, Reach: reach, Roots: ca.CertificatePEM, Endpoints: endpoints})
		require.NoError(t, err)
		t.Cleanup(client.Close)
		status, body, err := client.Get(t.Context(), "https://sts.example.com/", nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, "sts.example.com", string(body))
		var refused *Error
		_, _, err = client.Get(t.Context(), "https://ecr.example.com/", nil)
		require.True(t, errors.As(err, &refused) && refused.Cause == Untrusted, err)
		_, _, err = client.Get(t.Context(), "https://imds.example.com/", nil)
		require.ErrorIs(t, err, ErrMetadata, "not even an admin makes it reach a metadata service")
	}
}
