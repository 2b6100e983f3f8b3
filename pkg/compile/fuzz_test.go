package compile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/configdir"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// FuzzCompile compiles whatever a tenant or an admin could write. It must not panic, allow
// only where a policy says Allow or Warn, and be bounded in patterns.
func FuzzCompile(f *testing.F) {
	for _, document := range samples(f) {
		f.Add(document)
	}
	for _, document := range []string{
		object("VerificationPolicy", "team-a", "p", "rules: [{images: [\"**\"], require: [{expression: \"findings.exists(f, f.verifier == 'a')\"}, {allOf: [a], atLeast: 2}]}]\ndefaultAction: Allow"),
		object("ClusterVerificationPolicy", "", "p", "scope: Mandatory\nenforcementAction: Warn\nrules: [{images: [\"r.io/**/a*\"], action: Allow}]"),
		object("Verifier", "team-a", "a", "type: Cosign\ncosign: {keyless: {identities: [{issuerRegExp: \"a{1000}\", subject: b}], expression: \"issuer.matches('x')\"}}"),
		object("Verifier", "team-a", "a", "type: Cosign\ncosign: {keys: {inline: \"-----BEGIN PUBLIC KEY-----\\nMFk\", trustStoreRefs: [{name: x}], rootTrustStoreRef: {name: x}, insecureIgnoreTransparencyLog: true}}"),
		object("Store", "team-a", "s", "registries: [r.io]\ncaBundle: {inline: x}\nimagePullSecrets: [{name: x}]"),
		object("ClusterQuota", "", "q", "namespaces: [team-a]\nmaxInFlight: 70"),
	} {
		f.Add("apiVersion: landwaiter.dev/v1beta1\n" + document)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		file := filepath.Join(dir, "x.yaml")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		o, _, err := configdir.Load(dir)
		if err != nil {
			return
		}
		snapshot, _ := compiled(o)
		lenient := strings.Contains(text, "Allow") || strings.Contains(text, "Warn") || strings.Contains(text, `\`)
		for _, namespace := range append(snapshot.Namespaces(), "undeclared") {
			config := snapshot.For(namespace)
			require.False(t, config.Layers[0].Warns, "one layer decides")
			for _, layer := range config.Layers {
				checkLayer(t, layer, lenient)
			}
			for source, report := range snapshot.Reports(namespace) {
				require.Less(t, len(report.Ready.Message)+len(report.Effective.Message), 8<<10, source)
			}
		}
	})
}

// checkLayer checks that a layer denies unless a policy says otherwise.
func checkLayer(t *testing.T, layer verify.Layer, lenient bool) {
	t.Helper()
	if layer.Broken != "" {
		return // it denies
	}
	steps := 0
	require.True(t, lenient || layer.Default != policy.Allowed && !layer.OnlyWarnings && !layer.Warns)
	for _, rule := range layer.Rules {
		require.True(t, lenient || rule.Action != verify.Allow)
		require.Equal(t, rule.Action == verify.Require, len(rule.Require) > 0)
		require.NotEmpty(t, rule.Images)
		for _, pattern := range rule.Images {
			steps += pattern.Cost()
		}
		for _, r := range rule.Require {
			require.Positive(t, r.AtLeast)
			require.True(t, len(r.AnyOf)+len(r.AllOf)+len(r.Types) > 0 || r.Condition != nil)
		}
	}
	require.LessOrEqual(t, steps, 50_000)
	for _, v := range layer.Verifiers {
		require.Equal(t, v.Broken == "", v.Checker != nil, v.Source)
		require.True(t, v.Broken != "" || len(v.Images) > 0)
	}
}

// samples are the documents that users begin with.
func samples(f *testing.F) []string {
	files, err := filepath.Glob("../../config/samples/*.yaml")
	require.NoError(f, err)
	require.NotEmpty(f, files)
	var all []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		all = append(all, string(text))
	}
	return all
}
