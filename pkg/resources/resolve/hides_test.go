package resolve_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/written"
)

func TestADenialNamesWhatHidesAVerifier(t *testing.T) {
	keys := written.InlineKey(string(written.NewKey(t).PEM))
	verifiers := func(namespace, name string) []string {
		return []string{written.Object("TrustStore", namespace, "keys", keys), written.Object("Verifier", namespace, name, written.CosignVerifier)}
	}
	requires := func(namespace, spec, verifier string) string {
		kind := "VerificationPolicy"
		if namespace == "" {
			kind = "Cluster" + kind
		}
		return written.Object(kind, namespace, "p", spec+written.PolicySpec("{anyOf: ["+verifier+"]}"))
	}
	for name, c := range map[string]struct {
		documents []string
		says      string
	}{
		"home's, by those of the namespace": {append(verifiers("iris", "release"), append(verifiers("iris-web", "own"), requires("iris-web", "", "release"))...),
			"iris-web has no Verifier release, and because it has others, neither the Verifiers of iris, its Tenant's home namespace, nor ClusterVerifiers apply there"},
		"nobody's, by those of the namespace": {append(verifiers("iris-web", "own"), requires("iris-web", "", "release")),
			"iris-web has no Verifier release, and because it has others, no ClusterVerifier applies there"},
		"nobody's, by those of the home namespace": {append(verifiers("iris", "own"), requires("iris-web", "", "release")),
			"neither iris-web nor iris, its Tenant's home namespace, has a Verifier release, and because iris has others, no ClusterVerifier applies there"},
		"home's, and its policy is asked": {append(verifiers("iris", "release"), append(verifiers("iris-web", "own"), requires("iris", "", "release"))...),
			"iris-web has Verifiers of its own, so Verifier release of iris does not apply there"},
		"the cluster's, and the namespace's " +
			"policy only warns": {append(verifiers("iris-web", "own"), requires("iris-web", written.Warn, "own"), requires("", "", "company")),
			"iris-web has Verifiers of its own, so ClusterVerifier company does not apply there; VerificationPolicy iris-web/p only warns, so " +
				"ClusterVerificationPolicy p decides"},
		"the cluster's, and home's policy only warns": {append(verifiers("iris", "own"), requires("iris", written.Warn, "own"), requires("", "", "company")),
			"iris has Verifiers of its own, so ClusterVerifier company does not apply there; VerificationPolicy iris/p only warns, so " +
				"ClusterVerificationPolicy p decides"},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot, _ := written.Compiled(
				written.Objects(t,
					append(c.documents, written.Object("Tenant", "", "iris", written.Iris), written.Namespace("iris", "1"), written.Namespace("iris-web", "2"))...))
			require.Contains(t, written.Verdict(t, snapshot, "iris-web", "r.example.com/app").Text(),
				c.says+"; signatures were not checked yet, so more can follow. To fix: ")
		})
	}
}
