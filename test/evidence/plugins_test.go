//go:build !e2e && !nightly

package evidence

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// sample adds the resources of a sample of the library, with the named key in place of its own.
func (e *environment) sample(t *testing.T, file, signer string) func(*resource.Objects) {
	t.Helper()
	text, err := os.ReadFile("../../library/samples/" + file)
	require.NoError(t, err)
	return func(o *resource.Objects) {
		for _, document := range strings.Split(string(text), "\n---\n") {
			var kind struct{ Kind string }
			require.NoError(t, yaml.Unmarshal([]byte(document), &kind))
			object := map[string]v1beta1.Object{"TrustStore": &v1beta1.TrustStore{}, "Verifier": &v1beta1.Verifier{},
				"VerificationPolicy": &v1beta1.VerificationPolicy{}}[kind.Kind]
			require.NoError(t, yaml.UnmarshalStrict([]byte(document), object))
			if store, is := object.(*v1beta1.TrustStore); is {
				store.Spec.Source.Inline = string(e.signer(t, signer).PEM)
			}
			o.Resources = append(o.Resources, object)
		}
	}
}

// reported pushes an image with an attestation by the named key; with "", without one.
func (e *environment) reported(t *testing.T, signer, predicateType, predicate string) fixture.Image {
	t.Helper()
	img, err := e.registry.PushImage(t.Context(), "team-a/app", "v1")
	require.NoError(t, err)
	if signer == "" {
		return img
	}
	statement, err := json.Marshal(map[string]any{"_type": "https://in-toto.io/Statement/v1", "predicateType": predicateType,
		"predicate": json.RawMessage(predicate),
		"subject":   []any{map[string]any{"digest": map[string]any{"sha256": img.Descriptor.Digest.Encoded()}}}})
	require.NoError(t, err)
	_, err = e.registry.SignCosignBundle(t.Context(), img, e.signer(t, signer), fixture.CosignOptions{Payload: statement})
	require.NoError(t, err)
	return img
}

// report is a case of what an image has, and what becomes of it.
type report struct {
	signer, predicateType, predicate string
	want                             policy.Outcome
}

func (e *environment) judges(t *testing.T, sample string, cases map[string]report) {
	t.Helper()
	require.Empty(t, e.apply(t, e.sample(t, sample, "right")))
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			requireOutcome(t, c.want, e.outcome(t, "team-a", e.reported(t, c.signer, c.predicateType, c.predicate)))
		})
	}
}

func TestTheSampleForSBOMsChecksWhatRatifysPluginDoes(t *testing.T) {
	const spdx = "https://spdx.dev/Document"
	packages := func(more ...string) string {
		return `{"spdxVersion":"SPDX-2.3","packages":[` +
			strings.Join(append([]string{`{"name":"libc","versionInfo":"2.36","licenseConcluded":"NOASSERTION","licenseDeclared":"LGPL-2.1-or-later"}`}, more...), ",") +
			`]}`
	}
	newEnvironment(t, fixture.RegistryOptions{}).judges(t, "sbom.yaml", map[string]report{
		"an ordinary SBOM": {"right", spdx, packages(`{"name":"log4j-core","versionInfo":"2.24.0","licenseConcluded":"Apache-2.0"}`),
			policy.Allowed},
		"no SBOM":                          {"", "", "", policy.Denied},
		"by somebody else":                 {"wrong", spdx, packages(), policy.Denied},
		"of another type":                  {"right", "https://cyclonedx.org/bom", packages(), policy.Denied},
		"without packages":                 {"right", spdx, `{"spdxVersion":"SPDX-2.3","packages":[]}`, policy.Denied},
		"without a list of packages":       {"right", spdx, `{"spdxVersion":"SPDX-2.3"}`, policy.Denied},
		"a forbidden licence":              {"right", spdx, packages(`{"name":"x","licenseConcluded":"AGPL-3.0-only"}`), policy.Denied},
		"a forbidden licence among others": {"right", spdx, packages(`{"name":"x","licenseConcluded":"MIT AND SSPL-1.0"}`), policy.Denied},
		"a forbidden licence that is declared": {"right", spdx, packages(`{"name":"x","licenseConcluded":"NOASSERTION","licenseDeclared":"AGPL-3.0-or-later"}`),
			policy.Denied},
		"a forbidden package":              {"right", spdx, packages(`{"name":"event-stream","versionInfo":"3.3.6"}`), policy.Denied},
		"a forbidden version":              {"right", spdx, packages(`{"name":"log4j-core","versionInfo":"2.14.1"}`), policy.Denied},
		"a package that hides its version": {"right", spdx, packages(`{"name":"log4j-core"}`), policy.Denied},
		"a package without a name":         {"right", spdx, packages(`{"versionInfo":"1"}`), policy.Denied},
	})
}

func TestTheSampleForVulnerabilityReportsChecksWhatRatifysPluginDoes(t *testing.T) {
	const vuln, sarif = "https://cosign.sigstore.dev/attestation/vuln/v1", "https://docs.oasis-open.org/sarif/sarif/v2.1.0"
	trivy := func(age time.Duration, severity, id string) string {
		at := time.Now().Add(-age).UTC().Format(time.RFC3339Nano)
		return fmt.Sprintf(
			`{"scanner":{"uri":"pkg:github/aquasecurity/trivy@0.60.0","version":"0.60.0","result":{"SchemaVersion":2,"Results":[{"Target":"app","Class":"lang-pkgs"},
			{"Target":"debian","Class":"os-pkgs","Vulnerabilities":[{"VulnerabilityID":%q,"PkgName":"libc6","Severity":%q}]}]}},"metadata":{"scanStartedOn":%q,"scanFinishedOn":%q}}`, id, severity, at, at)
	}
	inSARIF := func(rule, help, result string) string {
		return fmt.Sprintf(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"Trivy","rules":[{"id":%q,"help":{"text":%q}}]}},"results":[{"ruleId":%q,`+
			`"level":"note"}]}]}`, rule, help, result)
	}
	help := func(severity string) string {
		return "Vulnerability CVE-2024-1\nSeverity: " + severity + "\nPackage: libc6"
	}
	many := func(severity string) string { // as many as a large image has
		rules, results := make([]string, 100), make([]string, 100)
		for i := range rules {
			rules[i] = fmt.Sprintf(`{"id":"CVE-2024-%d","help":{"text":"Severity: %s"}}`, i, severity)
			results[i] = fmt.Sprintf(`{"ruleId":"CVE-2024-%d"}`, i)
		}
		return `{"runs":[{"tool":{"driver":{"rules":[` + strings.Join(rules, ",") + `]}},"results":[` + strings.Join(results, ",") + `]}]}`
	}
	newEnvironment(t, fixture.RegistryOptions{}).judges(t, "vulnerability-report.yaml", map[string]report{
		"nothing bad":            {"right", vuln, trivy(time.Hour, "MEDIUM", "CVE-2024-1"), policy.Allowed},
		"no report":              {"", "", "", policy.Denied},
		"by somebody else":       {"wrong", vuln, trivy(time.Hour, "LOW", "CVE-2024-1"), policy.Denied},
		"of two days ago":        {"right", vuln, trivy(48*time.Hour, "LOW", "CVE-2024-1"), policy.Denied},
		"of tomorrow":            {"right", vuln, trivy(-24*time.Hour, "LOW", "CVE-2024-1"), policy.Denied},
		"high":                   {"right", vuln, trivy(time.Hour, "HIGH", "CVE-2024-1"), policy.Denied},
		"critical":               {"right", vuln, trivy(time.Hour, "CRITICAL", "CVE-2024-1"), policy.Denied},
		"a severity of its own":  {"right", vuln, trivy(time.Hour, "BENIGN", "CVE-2024-1"), policy.Denied},
		"a listed vulnerability": {"right", vuln, trivy(time.Hour, "LOW", "CVE-2021-44228"), policy.Denied},
		"without a result": {"right", vuln, `{"scanner":{"result":{}},"metadata":{"scanFinishedOn":"` + time.Now().UTC().Format(time.RFC3339) +
			`"}}`, policy.Denied},
		"SARIF, nothing bad":                 {"right", sarif, inSARIF("CVE-2024-1", help("LOW"), "CVE-2024-1"), policy.Allowed},
		"SARIF, no results":                  {"right", sarif, `{"runs":[{"tool":{"driver":{"rules":[]}},"results":[]}]}`, policy.Allowed},
		"SARIF, a hundred results":           {"right", sarif, many("low"), policy.Allowed},
		"SARIF, a hundred high ones":         {"right", sarif, many("High"), policy.Denied},
		"SARIF, high":                        {"right", sarif, inSARIF("CVE-2024-1", help("HIGH"), "CVE-2024-1"), policy.Denied},
		"SARIF, no severity":                 {"right", sarif, inSARIF("CVE-2024-1", "Package: libc6", "CVE-2024-1"), policy.Denied},
		"SARIF, a listed vulnerability":      {"right", sarif, inSARIF("CVE-2021-44228", help("LOW"), "CVE-2021-44228"), policy.Denied},
		"SARIF, a result without a rule":     {"right", sarif, inSARIF("CVE-2024-1", help("LOW"), "CVE-2024-2"), policy.Denied},
		"SARIF, no runs":                     {"right", sarif, `{"runs":[]}`, policy.Denied},
		"SARIF under the type of the others": {"right", vuln, inSARIF("CVE-2024-1", help("LOW"), "CVE-2024-1"), policy.Denied},
	})
}
