package conditions

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

func object(t *testing.T, kind, text string) v1beta1.Object {
	t.Helper()
	o := map[string]v1beta1.Object{
		"Verifier": &v1beta1.Verifier{}, "ClusterVerifier": &v1beta1.ClusterVerifier{}, "TrustStore": &v1beta1.TrustStore{},
		"ClusterTrustStore":  &v1beta1.ClusterTrustStore{},
		"VerificationPolicy": &v1beta1.VerificationPolicy{}, "ClusterVerificationPolicy": &v1beta1.ClusterVerificationPolicy{},
		"Store": &v1beta1.Store{}, "ClusterStore": &v1beta1.ClusterStore{}, "Exception": &v1beta1.Exception{}, "ClusterException": &v1beta1.ClusterException{},
		"Tenant": &v1beta1.Tenant{},
	}[kind]
	require.NoError(t, yaml.UnmarshalStrict([]byte("spec:\n  "+strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")), o))
	return o
}

const keyless = "type: Cosign\ncosign: {keyless: {identities: ["

func TestRulesThatAllowTooMuchAreFound(t *testing.T) {
	for name, c := range map[string]struct{ kind, spec, want string }{
		"a narrow identity": {"Verifier", keyless + `{issuer: https://accounts.google.com, subject: a@acme.example}]}}`, ""},
		"everyone's identity": {"Verifier", keyless + `{issuer: https://accounts.google.com, subjectRegExp: .*}]}}`,
			"IdentityForAnyone spec.cosign.keyless.identities[0]"},
		"the second identity": {"ClusterVerifier", keyless + `{issuer: https://accounts.google.com, subject: a@acme.example}, {issuer: ` +
			`https://accounts.google.com, subjectRegExp: .*acme.example}]}}`, "IdentityForAnyone spec.cosign.keyless.identities[1]"},
		"insiders": {"Verifier", strings.ReplaceAll(strings.ToLower(keyless), "cosign", "attestation") +
			`{issuer: https://gitlab.com, subjectRegExp: https://gitlab.com/acme/app//.gitlab-ci.yml@.*}]}}`, "IdentityTooBroad spec.attestation.keyless.identities[0]"},
		"nobody's identity": {"Verifier", keyless + `{issuer: https://accounts.google.com, subject: "*@acme.example"}]}}`,
			"IdentityMatchesNobody spec.cosign.keyless.identities[0]"},
		"an expression narrows": {"Verifier", keyless + `{issuer: https://accounts.google.com, subjectRegExp: .*}], expression: "subject == 'a@acme.example'"}}`, ""},
		"notation":              {"Verifier", "type: Notation\nnotation: {trustStoreRefs: [{name: a}]}", ""},

		"everything allowed by default": {"ClusterVerificationPolicy", "defaultAction: Allow", "RuleTooBroad spec.defaultAction"},
		"everything allowed by a rule": {"ClusterVerificationPolicy",
			`rules: [{images: ["a/**"], require: [{anyOf: [x]}]}, {images: ["**"], action: Allow}]`, "RuleTooBroad spec.rules[1]"},
		"a requirement that every image meets": {"ClusterVerificationPolicy", `rules: [{images: ["**"], require: [{expression: "true"}]}]`,
			"RuleTooBroad spec.rules[0].require"},
		"allowed after everything " +
			"was required": {"ClusterVerificationPolicy", `rules: [{images: ["**"], require: [{anyOf: [x]}]}, {images: ["**"], action: Allow}]`, ""},
		"some images allowed":            {"ClusterVerificationPolicy", `rules: [{images: ["a/**"], action: Allow}]`, ""},
		"a policy that only warns":       {"ClusterVerificationPolicy", "defaultAction: Allow\nenforcementAction: Warn", ""},
		"a team that allows by default":  {"VerificationPolicy", "defaultAction: Allow", "RuleTooBroad spec.defaultAction"},
		"a team that allows every image": {"VerificationPolicy", `rules: [{images: ["**"], action: Allow}]`, "RuleTooBroad spec.rules[0]"},
		"a team that only warns":         {"VerificationPolicy", "defaultAction: Allow\nenforcementAction: Warn", ""},
		"a team that leaves the rest":    {"VerificationPolicy", "defaultAction: Inherit", ""},
		"mandatory and without a requirement": {"ClusterVerificationPolicy", `{scope: Mandatory, defaultAction: Allow, rules: [{images: ["a/**"], action: Allow}]}`,
			"RuleTooBroad spec"},
		"mandatory for some images": {"ClusterVerificationPolicy",
			`{scope: Mandatory, defaultAction: Allow, rules: [{images: ["a/**"], require: [{anyOf: [x]}]}]}`, ""},
		"mandatory and denying":       {"ClusterVerificationPolicy", `{scope: Mandatory, rules: [{images: ["a/**"], action: Allow}]}`, ""},
		"mandatory, but allows first": {"ClusterVerificationPolicy", `{scope: Mandatory, rules: [{images: ["**"], action: Allow}]}`, "RuleTooBroad spec"},

		"a placeholder of a suggestion": {"Verifier", keyless + `{issuer: https://token.actions.githubusercontent.com, subject: https://github.com/OWNER/app/.github/workflows/release.yml@refs/heads/main}]}}`, "Placeholder spec.cosign.keyless.identities[0]"},
		"a placeholder and anyone": {"Verifier", keyless + `{issuer: https://token.actions.githubusercontent.com, subjectRegExp: ` +
			`"https://github.com/OWNER.*"}]}}`, "IdentityForAnyone spec.cosign.keyless.identities[0], Placeholder spec.cosign.keyless.identities[0]"},
		"images of our pages": {"ClusterVerifier", "type: Notation\nimages: [r.io/a, registry.example.com/**]\nnotation: {trustStoreRefs: " +
			"[{name: a}]}", "Placeholder spec.images[1]"},
		"rules of our pages": {"VerificationPolicy", `rules: [{images: [r.io/a], action: Deny}, {images: [registry.example.com/a, ` +
			`registry.example.com/b], action: Deny}, {images: [example.com/a], action: Deny}]`, "Placeholder spec.rules[1].images[0]"},
		"registries of our pages":     {"Store", "registries: [r.io, registry.example.com]", "Placeholder spec.registries[1]"},
		"the cluster's, of our pages": {"ClusterStore", "registries: ['*.example.com']", "Placeholder spec.registries[0]"},
		"an exception for an image of ours": {"Exception", `{until: "2030-01-01T00:00:00Z", reason: x, images: ["registry.example.com/a"]}`,
			"Placeholder spec.images[0]"},
		"a registry whose name only ends so": {"Store", "registries: [myexample.com, registry.acme.example]", ""},

		"an exception for everything": {"Exception", `{until: "2030-01-01T00:00:00Z", reason: x, images: ["**"]}`, "RuleTooBroad spec.images"},
		"an exception for a path":     {"ClusterException", `{until: "2030-01-01T00:00:00Z", reason: x, images: ["a/**"], namespaces: ["*"]}`, ""},
		"a delegation of everything":  {"ClusterException", `{until: "2030-01-01T00:00:00Z", reason: x, delegate: {images: ["**"], namespaces: [a]}}`, ""},
		"everyone of a domain":        {"Verifier", keyless + `{issuer: https://accounts.google.com, subjectRegExp: '.*@acme\.example'}]}}`, ""},
		"everyone with a mailbox": {"Verifier", keyless + `{issuer: https://accounts.google.com, subjectRegExp: '.*@gmail\.com'}]}}`,
			"IdentityForAnyone spec.cosign.keyless.identities[0]"},
		"a delegation of a repository": {"ClusterException", `{until: "2030-01-01T00:00:00Z", reason: x, delegate: {images: ["a/b"], namespaces: [a]}}`, ""},
		"a tenant":                     {"Tenant", "homeNamespace: a", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var said []string
			for _, p := range Review(object(t, c.kind, c.spec)) {
				field, rest, _ := strings.Cut(p.Message, ": ")
				said = append(said, string(p.Reason)+" "+field)
				require.Regexp(t, `; (add|set|write) [^;]+$`, rest)
				require.Equal(t, c.kind, p.Source.Kind)
			}
			require.Equal(t, c.want, strings.Join(said, ", "))
		})
	}
}

func TestAKeyOfOurPagesIsNobodys(t *testing.T) {
	for _, file := range []string{"team-a.yaml", "team-b.yaml"} {
		text, err := os.ReadFile("../../../config/samples/" + file)
		require.NoError(t, err)
		found := 0
		for _, document := range strings.Split(string(text), "\n---\n") {
			store := &v1beta1.TrustStore{}
			require.NoError(t, yaml.Unmarshal([]byte(document), store))
			if store.Kind != v1beta1.KindTrustStore {
				continue
			}
			for _, p := range Review(store) {
				require.Equal(t, policy.ReasonPublishedKey, p.Reason)
				require.Contains(t, p.Message, "spec.source.inline: ")
				found++
			}
			store.Status.Fingerprints, store.Spec.Source.Inline = compile.FingerprintsOf(store.Spec.Source.Inline), ""
			for _, p := range Review(store) {
				require.Contains(t, p.Message, "spec.source: ")
				found++
			}
		}
		require.Equal(t, 2, found, file)
	}
}

func TestAReviewNamesTheNarrowerFormAsYAML(t *testing.T) {
	found := Review(object(t, "Verifier", keyless+`{issuer: https://token.actions.githubusercontent.com, subjectRegExp: "https://github.com/acme.*/.github/workflows/release.yml@refs/tags/v.*"}]}}`))
	require.Len(t, found, 1)
	_, fix, _ := strings.Cut(found[0].Message, "; write ")
	written, _, ok := strings.Cut(fix, ", with your own names")
	require.True(t, ok, found[0].Message)
	again := Review(object(t, "Verifier", keyless+written+"]}}"))
	require.Len(t, again, 1, written)
	require.Equal(t, policy.ReasonPlaceholder, again[0].Reason, "the reader has to write names of one's own")
}

func TestTheConditionSaysWhatToDoFirst(t *testing.T) {
	one := `{issuer: https://token.actions.githubusercontent.com, subjectRegExp: "https://github.com/acme.*/.github/workflows/release.yml@refs/tags/v.*"}`
	said := Reviewed(object(t, "Verifier", keyless+one+"]}}"), Report{}).Message
	require.Regexp(t, `^spec\.cosign\.keyless\.identities\[0\]: write \{issuer: .*\}, with your own names\. Why: it also accepts an owner with a `+
		`similar name`, said)
	several := Reviewed(object(t, "Verifier", keyless+one+","+one+","+one+"]}}"), Report{}).Message
	fix, why := resource.SplitReview(several)
	require.Equal(t, 3, strings.Count(fix, "with your own names"), several)
	require.Contains(t, why, "spec.cosign.keyless.identities[0]: it also accepts")
	require.LessOrEqual(t, len(several), 2<<10)
}

func TestTheConditionHasTheWorstReason(t *testing.T) {
	o := object(t, "VerificationPolicy", "defaultAction: Allow")
	require.Equal(t, policy.ReasonRuleTooBroad, Reviewed(o, Report{}).Reason)
	unreached := Report{unreached: []concern{{policy.ReasonRuleNeverReached, "spec.rules[1]", "no image reaches the rule", "move it"}}}
	require.Equal(t, policy.ReasonRuleNeverReached, Reviewed(o, unreached).Reason)
}
