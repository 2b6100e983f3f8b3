package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
)

// kubeconfig writes a file that leads to a host.
func kubeconfig(t *testing.T, path, host string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t,
		os.WriteFile(path,
			[]byte("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"https://"+host+
				"\"}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"), 0o600))
	return path
}

func TestOnlyKUBECONFIGOrThePodsAccountSaysWhichClusterIsMeant(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("HOME", dir)
	before := clientcmd.RecommendedHomeFile
	t.Cleanup(func() { clientcmd.RecommendedHomeFile = before })
	clientcmd.RecommendedHomeFile = kubeconfig(t, filepath.Join(dir, ".kube", "config"), "home")
	first, missing := kubeconfig(t, filepath.Join(dir, "first"), "first"), filepath.Join(dir, "missing")
	second := kubeconfig(t, filepath.Join(dir, "second"), "second")
	for name, c := range map[string]struct{ variable, host, says string }{
		"nothing, although $HOME has a file": {"", "", "outside a cluster, set KUBECONFIG to a file"},
		"a file":                             {first, "https://first", ""},
		"several, of which the first counts": {missing + string(os.PathListSeparator) + second + string(os.PathListSeparator) + first, "https://second", ""},
		"a file that does not exist":         {missing, "", "no file in KUBECONFIG exists"},
		"something else":                     {dir, "", "is a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", c.variable)
			config, err := ownConfig()
			if c.says != "" {
				require.ErrorContains(t, err, c.says)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.host, config.Host)
			require.Contains(t, config.UserAgent, "landwaiter/")
		})
	}
}
