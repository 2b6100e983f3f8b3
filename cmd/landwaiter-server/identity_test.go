package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/server/serving"
)

func TestClientCAsAreFilesOrKeysOfSecrets(t *testing.T) {
	flags := identityFlags{tlsDir: "/tls", clientCAs: []string{"ca.crt", "/etc/secret/ca.crt", "./secret/ca.crt", "secret/a/b", "secret/a/b/tls.ca"}}
	got, err := flags.options()
	require.NoError(t, err)
	require.Equal(t, serving.Options{CertificateFile: "/tls/tls.crt", KeyFile: "/tls/tls.key", ClientCAOverlap: clientCAOverlap,
		ClientCAFiles:   []string{"ca.crt", "/etc/secret/ca.crt", "./secret/ca.crt"},
		ClientCASecrets: []serving.SecretKey{{Namespace: "a", Name: "b", Key: "ca.crt"}, {Namespace: "a", Name: "b", Key: "tls.ca"}}}, got)
	for _, wrong := range []string{"secret/", "secret/a", "secret/a/", "secret//b", "secret/a/b/", "secret/a/b/c/d"} {
		_, err := (&identityFlags{clientCAs: []string{wrong}}).options()
		require.ErrorContains(t, err, "it must be secret/NAMESPACE/NAME or secret/NAMESPACE/NAME/KEY", wrong)
	}
}
