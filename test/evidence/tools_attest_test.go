//go:build !e2e

package evidence

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// Predicates as people attest them, with cosign's short name of the type, the
// type itself, and an expression that says true and one that says false.
var predicates = map[string]struct{ kind, predicateType, predicate, yes, no string }{
	"SLSA provenance": {"slsaprovenance1", "https://slsa.dev/provenance/v1",
		`{"buildDefinition":{"buildType":"t","externalParameters":{}},"runDetails":{"builder":{"id":"https://ci.example.com"}}}`,
		`predicate.runDetails.builder.id == "https://ci.example.com"`, `predicate.runDetails.builder.id == "https://other.example.com"`},
	"SPDX": {"spdxjson", "https://spdx.dev/Document", `{"spdxVersion":"SPDX-2.3","packages":[{"name":"a","licenseConcluded":"MIT"}]}`,
		`predicate.packages.all(p, p.licenseConcluded != "AGPL-3.0-only")`, `predicate.packages.all(p, p.licenseConcluded != "MIT")`},
	"CycloneDX": {"cyclonedx", "https://cyclonedx.org/bom", `{"bomFormat":"CycloneDX","specVersion":"1.5","components":[{"name":"a"}]}`,
		`predicate.components.exists(c, c.name == "a")`, `predicate.components.exists(c, c.name == "b")`},
	"vulnerabilities": {"vuln", "https://cosign.sigstore.dev/attestation/vuln/v1",
		`{"scanner":{"uri":"u","version":"1","db":{"uri":"u","version":"1"},"result":{"matches":[]}},"metadata":{"scanStartedOn":"2026-01-01T00:00:00Z",` +
			`"scanFinishedOn":"2026-01-01T00:00:00Z"}}`,
		`predicate.scanner.result.matches.size() == 0`, `predicate.scanner.result.matches.size() > 0`},
	"OpenVEX": {"openvex", "https://openvex.dev/ns", `{"@context":"https://openvex.dev/ns/v0.2.0","@id":"x","author":"a","timestamp":"2026-01-01T00:00:00Z","version":1,"statements":[]}`,
		`predicate.statements.all(s, s.status == "fixed")`, `predicate.statements.size() > 0`},
	"SARIF": {"https://docs.oasis-open.org/sarif/sarif/v2.1.0", "https://docs.oasis-open.org/sarif/sarif/v2.1.0",
		`{"version":"2.1.0","runs":[{"results":[{"level":"error","ruleId":"CVE-2024-0001"},{"level":"note","ruleId":"x"}]}]}`,
		`predicate.runs.all(r, r.results.all(x, x.level != "error" || x.ruleId in ["CVE-2024-0001"]))`,
		`predicate.runs.all(r, r.results.all(x, x.level != "error"))`},
	"own type": {"https://example.com/reviewed/v1", "https://example.com/reviewed/v1", `{"by":"alice"}`, `predicate.by == "alice"`, `predicate.by == "bob"`},
}

// attesters are the ways in which cosign attaches attestations.
func attesters() map[string]func(*testing.T) (tool, []string) {
	return map[string]func(*testing.T) (tool, []string){
		"v2, its tag": func(t *testing.T) (tool, []string) { return cosignV2(t), []string{"--tlog-upload=false"} },
		"v3, bundle": func(t *testing.T) (tool, []string) {
			c := cosignV3(t)
			return c, []string{"--signing-config", c.noServices(t)}
		},
	}
}

func attesting(predicateType, expression string) v1beta1.VerifierSpec {
	return v1beta1.VerifierSpec{Type: v1beta1.VerifierTypeAttestation, Attestation: &v1beta1.AttestationVerifier{
		Signers: byKey(trusted).Cosign.Signers, PredicateType: predicateType, Expression: expression}}
}

func TestAcceptsWhatCosignAttestsAndDeniesItsTwin(t *testing.T) {
	for how, attester := range attesters() {
		for what, p := range predicates {
			t.Run(how+", "+what, func(t *testing.T) {
				registry := start(t, fixture.RegistryOptions{})
				command, args := attester(t)
				key := command.generate(t)
				img, unattested := push(t, registry, repository, "v1"), push(t, registry, repository, "v2")
				file := filepath.Join(command.home, "predicate.json")
				require.NoError(t, os.WriteFile(file, []byte(p.predicate), 0o600))
				command.run(t, nil, append(append([]string{"attest", "--yes", "--key", key.file, "--type", p.kind, "--predicate", file, "--allow-http-registry"}, args...),
					img.Reference.Name()+"@"+img.Descriptor.Digest.String())...)

				result := decide(t, registry, attesting(p.predicateType, p.yes), key.public, img.Reference)
				require.Equal(t, "allowed", result.Verdict.Outcome().String(), result.Verdict.Reason)
				requireDenied(t, "Predicate", decide(t, registry, attesting(p.predicateType, p.no), key.public, img.Reference))
				requireDenied(t, "WrongPredicate", decide(t, registry, attesting(p.predicateType+"x", p.yes), key.public, img.Reference))
				stranger := command.generateAs(t, "stranger")
				requireDenied(t, "WrongKey", decide(t, registry, attesting(p.predicateType, p.yes), stranger.public, img.Reference))
				require.NotEqual(t, "allowed", decide(t, registry, attesting(p.predicateType, ""), key.public, unattested.Reference).Verdict.Outcome().String())
				// An attestation is no signature.
				require.NotEqual(t, "allowed", decide(t, registry, byKey(trusted), key.public, img.Reference).Verdict.Outcome().String())
			})
		}
	}
}

// generateAs makes another key pair beside the first.
func (c tool) generateAs(t *testing.T, prefix string) keyPair {
	t.Helper()
	c.run(t, nil, "generate-key-pair", "--output-key-prefix", prefix)
	return c.pair(t, prefix)
}
