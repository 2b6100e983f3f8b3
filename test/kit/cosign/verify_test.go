package cosign

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

func TestASignatureIsVerifiedWithItsKeyOnly(t *testing.T) {
	registry, err := fixture.StartRegistry(fixture.RegistryOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, registry.Close()) })
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	other, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	dir := t.TempDir()
	for name, k := range map[string]*fixture.CosignKey{"key.pub": key, "other.pub": other} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), k.PEM, 0o600))
	}
	img, err := registry.PushImage(t.Context(), "team/app", "v1")
	require.NoError(t, err)
	name := registry.Host() + "/team/app:v1"
	run := func(key string) error {
		return run(t.Context(), V3, []string{"verify", "--key", filepath.Join(dir, key), "--insecure-ignore-tlog", name})
	}
	require.ErrorContains(t, run("key.pub"), "no signature")
	_, err = registry.SignCosign(t.Context(), img, key, fixture.CosignOptions{})
	require.NoError(t, err)
	require.NoError(t, run("key.pub"))
	require.ErrorContains(t, run("other.pub"), "no signature")
	target, err := registry.Repository(t.Context(), "team/app")
	require.NoError(t, err)
	_, err = fixture.PushCosignBundle(t.Context(), target, img, other, fixture.CosignOptions{})
	require.NoError(t, err)
	require.NoError(t, run("other.pub"))
}
