package registry_test

import (
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/remote/registry"
)

func TestAPullSecretNamesAHostInAnySpelling(t *testing.T) {
	entry := func(host, password string) string {
		return fmt.Sprintf(`%q: {"auth": %q}`, host, base64.StdEncoding.EncodeToString([]byte("user:"+password)))
	}
	for _, host := range []string{"docker.io", "https://index.docker.io/v1/", "registry-1.docker.io", "https://registry.hub.docker.com/v2/", "DOCKER.io:443"} {
		found, err := registry.ParseDockerConfig([]byte(`{"auths": {` + entry(host, "secret") + `}}`))
		require.NoError(t, err, host)
		require.Equal(t, map[string]registry.Credential{"docker.io": {Username: "user", Password: "secret"}}, found)
	}
	found, err := registry.ParseDockerConfig([]byte(`{"auths": {` + entry("docker.io", "secret") + "," + entry("registry.hub.docker.com", "secret") + `}}`))
	require.NoError(t, err, "the same credential twice")
	require.Len(t, found, 1)
	_, err = registry.ParseDockerConfig([]byte(`{"auths": {` + entry("docker.io", "secret") + "," + entry("registry.hub.docker.com", "other") + `}}`))
	require.ErrorContains(t, err, "two different entries for docker.io")
	require.NotContains(t, err.Error(), "secret")
	_, err = registry.ParseDockerConfig([]byte(`{"auths": {` + entry("registry.example.com:0443", "secret") + `}}`))
	require.ErrorContains(t, err, "is not for a registry host")
}
