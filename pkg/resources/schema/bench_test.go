package schema_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
)

// large returns resources that fill their limits with what the schema takes longest for.
func large() map[string]v1beta1.Object {
	meta := metav1.ObjectMeta{Name: "x", Namespace: "team-a"}
	policy := &v1beta1.VerificationPolicy{ObjectMeta: meta}
	for range 64 {
		rule := v1beta1.PolicyRule{Images: []string{"r.example.com/a/**"}}
		for range 16 {
			rule.Require = append(rule.Require, v1beta1.Requirement{AnyOf: []string{"a", "b", "c"}})
		}
		policy.Spec.Rules = append(policy.Spec.Rules, rule)
	}
	store := &v1beta1.TrustStore{ObjectMeta: meta}
	store.Spec.Type, store.Spec.Source.Inline = v1beta1.TrustStoreTypePublicKeys, strings.Repeat("a", 65_000)
	verifier := &v1beta1.Verifier{ObjectMeta: meta}
	verifier.Spec.Type = v1beta1.VerifierTypeCosign
	verifier.Spec.Cosign = &v1beta1.CosignVerifier{Signers: v1beta1.Signers{Keyless: &v1beta1.Keyless{}}}
	for i := range 16 {
		verifier.Spec.Cosign.Keyless.Identities = append(verifier.Spec.Cosign.Keyless.Identities,
			v1beta1.Identity{Issuer: fmt.Sprintf("https://issuer/%d%s", i, strings.Repeat("x", 400)), SubjectRegExp: strings.Repeat("s", 400)})
	}
	exception := &v1beta1.Exception{ObjectMeta: meta}
	exception.Spec.Until = "2026-12-31T18:00:00Z"
	exception.Spec.Reason = strings.Repeat("ö", 500)
	return map[string]v1beta1.Object{"policy": policy, "trust store": store, "verifier": verifier, "exception": exception}
}

func BenchmarkRefuses(b *testing.B) {
	set := schema.Embedded()
	run := func(name string, object v1beta1.Object) {
		_ = set.Refuses(b.Context(), object)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				_ = set.Refuses(b.Context(), object)
			}
		})
	}
	seen := map[string]bool{}
	for _, s := range samples(b) {
		if !seen[s.kind] {
			seen[s.kind] = true
			run("typical/"+s.kind, s.typed(b))
		}
	}
	for name, object := range large() {
		if err := set.Refuses(b.Context(), object); err != nil {
			b.Log(name, err)
		}
		run("large/"+name, object)
	}
}

// BenchmarkPrepare reports what the schemas of all kinds take.
func BenchmarkPrepare(b *testing.B) {
	for range b.N {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		set := schema.NewSet()
		for _, kind := range v1beta1.Kinds() {
			_, err := set.Of(kind.Name)
			require.NoError(b, err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<10), "KiB")
		runtime.KeepAlive(set)
	}
}
