package resolve_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

// FuzzCompile compiles whatever a tenant or an admin could write, as an older CRD could have
// let it in. It must not panic, allow
// only where a policy says Allow or Warn, and be bounded in patterns.
func FuzzCompile(f *testing.F) {
	for _, document := range samples(f) {
		f.Add(document)
	}
	for _, document := range []string{
		written.Object("VerificationPolicy", "team-a", "p", "rules: [{images: [\"**\"], require: [{expression: \"findings.exists(f, f.verifier == 'a')\"}, {allOf: "+
			"[a], atLeast: 2}]}]\ndefaultAction: Allow"),
		written.Object("ClusterVerificationPolicy", "", "p", "scope: Mandatory\nenforcementAction: Warn\nrules: [{images: [\"r.io/**/a*\"], action: Allow}]"),
		written.Object("Verifier", "team-a", "a", "type: Cosign\ncosign: {keyless: {identities: [{issuerRegExp: \"a{1000}\", subject: b}], expression: "+
			"\"issuer.matches('x')\"}}"),
		written.Object("Verifier", "team-a", "a", "type: Cosign\ncosign: {keys: {inline: \"-----BEGIN PUBLIC KEY-----\\nMFk\", trustStoreRefs: [{name: x}], "+
			"rootTrustStoreRef: {name: x}, insecureIgnoreTransparencyLog: true}}"),
		written.Object("Store", "team-a", "s", "registries: [r.io]\ncaBundle: {inline: x}\nimagePullSecrets: [{name: x}]"),
		written.Object("ClusterQuota", "", "q", "namespaces: [team-a]\nmaxInFlight: 70"),
	} {
		f.Add("apiVersion: landwaiter.dev/v1beta1\n" + document)
	}
	f.Fuzz(func(t *testing.T, text string) {
		lenient := strings.Contains(text, "Allow") || strings.Contains(text, "Warn") || strings.Contains(text, `\`)
		checkCompiled(t, unvalidated(text), lenient)
	})
}

// unvalidated returns the objects in text as an API server with an older CRD could hold them:
// whatever the types take, without a look at the schema.
func unvalidated(text string) (o resource.Objects) {
	core := map[string]func() runtime.Object{
		"Namespace": func() runtime.Object { return &corev1.Namespace{} }, "Secret": func() runtime.Object { return &corev1.Secret{} },
		"ConfigMap": func() runtime.Object { return &corev1.ConfigMap{} }, "ServiceAccount": func() runtime.Object { return &corev1.ServiceAccount{} },
	}
	for _, document := range strings.Split(text, "---\n") {
		var head struct{ Kind string }
		if yaml.Unmarshal([]byte(document), &head) != nil {
			continue
		}
		var object runtime.Object
		if kind, ok := v1beta1.KindNamed(head.Kind); ok {
			object = kind.New()
		} else if made := core[head.Kind]; made != nil {
			object = made()
		}
		if object == nil || yaml.Unmarshal([]byte(document), object) != nil {
			continue
		}
		if kind, ours := v1beta1.KindNamed(head.Kind); ours {
			if at, ok := object.(v1beta1.Object); !ok || (at.GetNamespace() != "") != kind.Namespaced {
				continue // no API server has it
			}
		}
		_ = o.Add(object) // of a kind that is read
	}
	return o
}

func checkCompiled(t *testing.T, o resource.Objects, lenient bool) {
	t.Helper()
	snapshot, _ := written.Compiled(o)
	for _, namespace := range append(snapshot.Namespaces(), "undeclared") {
		config := snapshot.For(namespace)
		require.False(t, config.Tiers[0].Warns, "one tier decides")
		for _, tier := range config.Tiers {
			checkTier(t, tier, lenient)
		}
		for source, report := range conditions.Reports(snapshot, namespace) {
			require.Less(t, len(report.Ready.Message)+len(report.Effective.Message), 8<<10, source)
		}
	}
}

// checkTier checks that a tier denies unless a policy says otherwise.
func checkTier(t *testing.T, tier verify.Tier, lenient bool) {
	t.Helper()
	if tier.Judge.Why() != "" {
		return // it denies
	}
	steps := 0
	require.True(t, lenient || tier.Judge.Default() != verify.DefaultAllow && !reflect.DeepEqual(tier.Judge, verify.OnlyWarnings()) && !tier.Warns)
	for _, rule := range tier.Judge.Rules() {
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
	for _, v := range tier.Verifiers {
		require.Equal(t, v.Broken == nil, v.Checker != nil, v.Source)
		require.True(t, v.Broken != nil || len(v.Images) > 0)
	}
}

// samples are the documents that users begin with.
func samples(f *testing.F) []string {
	files, err := filepath.Glob(filepath.Join(written.Samples(f, "../../../config/samples", time.Now().Add(time.Hour)), "*.yaml"))
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
