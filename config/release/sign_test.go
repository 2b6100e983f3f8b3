//go:build nightly

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

func TestSignsTheSumsSoThatCosignVerifiesThem(t *testing.T) {
	cosign := suite.MustTool(t, suite.CosignV3)
	keys, folder := t.TempDir(), t.TempDir()
	t.Setenv("COSIGN_PASSWORD", "secret")
	generate := exec.CommandContext(t.Context(), cosign, "generate-key-pair", "--output-key-prefix", filepath.Join(keys, "cosign"))
	output, err := generate.CombinedOutput()
	require.NoError(t, err, "%s", output)

	all := files{"a": {content: []byte("x")}}
	all[sumsFile] = file{content: sums(all)}
	require.NoError(t, all.write(folder))
	require.NoError(t, signer{cosign: cosign, key: filepath.Join(keys, "cosign.key")}.sign(t.Context(), folder))
	verify := func() error {
		return exec.CommandContext(t.Context(), cosign, "verify-blob", "--key", filepath.Join(keys, "cosign.pub"), "--insecure-ignore-tlog",
			"--bundle", filepath.Join(folder, signatureFile), filepath.Join(folder, sumsFile)).Run()
	}
	require.NoError(t, verify())
	require.NoError(t, os.WriteFile(filepath.Join(folder, sumsFile), []byte("changed"), 0o600))
	require.Error(t, verify())

	t.Setenv("COSIGN_PASSWORD", "wrong")
	require.Error(t, signer{cosign: cosign, key: filepath.Join(keys, "cosign.key")}.sign(t.Context(), folder))
}
