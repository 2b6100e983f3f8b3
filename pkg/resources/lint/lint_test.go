package lint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/lint"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

const samples = "../../../config/samples"

// check returns the findings about text as "line severity field reason".
func check(t *testing.T, text string) []string {
	t.Helper()
	report, err := lint.Check(t.Context(), "", []string{"-"}, strings.NewReader(text), conditions.Check)
	require.NoError(t, err)
	found := []string{}
	for _, f := range report.Findings {
		if f.ID != string(policy.ReasonPublishedKey) && f.ID != string(policy.ReasonPlaceholder) { // these tests use keys and names of the documentation
			found = append(found, fmt.Sprintf("%d %s %s %s", f.Line, f.Severity, f.Field, f.ID))
		}
	}
	return found
}

func tenant(spec string) string {
	return "apiVersion: landwaiter.dev/v1beta1\nkind: Tenant\nmetadata: {name: iris}\nspec: " + spec + "\n---\n"
}

func object(kind, spec string) string {
	return "apiVersion: landwaiter.dev/v1beta1\nkind: " + kind + "\nmetadata: {name: x, namespace: team-a}\nspec: " + spec + "\n---\n"
}

// findingsOf checks text, and returns its findings, also one a line.
func findingsOf(t *testing.T, text string) (lint.Report, string) {
	t.Helper()
	report, err := lint.Check(t.Context(), "", []string{"-"}, strings.NewReader(text), conditions.Check)
	require.NoError(t, err)
	var found []string
	for _, f := range report.Findings {
		found = append(found, fmt.Sprintf("%s: %s; %s", f.Field, f.Message, f.Fix))
	}
	return report, strings.Join(found, "\n")
}

const (
	inline = "|\n      -----BEGIN PUBLIC KEY-----\n      MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEq+5PKTQ4Fmtm/FPqVASrsITmOQCB\n      " +
		"UIu7srUuYFr0LnANA+p7O4CmKTb2PGMseZiizsuqxMNdlgSXCZLHYlXu4w==\n      -----END PUBLIC KEY-----\n"
	keysSpec  = "\n  type: PublicKeys\n  source:\n    inline: " + inline
	fromKeys  = "{type: Cosign, cosign: {keys: {trustStoreRefs: [{name: x}], insecureIgnoreTransparencyLog: true}}}"
	notSigned = "{rules: [{images: ['**'], require: [{anyOf: [x]}]}]}"
)

func TestSamplesAreCorrect(t *testing.T) {
	for folder, resources := range map[string]int{samples: 18, written.Samples(t, samples, time.Now().Add(time.Hour)): 21} {
		report, err := lint.Check(t.Context(), "", []string{folder}, nil, conditions.Check)
		require.NoError(t, err)
		for _, f := range report.Findings {
			require.Contains(t, []string{string(policy.ReasonPublishedKey), string(policy.ReasonPlaceholder)}, f.ID, f.String())
			require.Equal(t, resource.Note, f.Severity)
		}
		require.Equal(t, resources, report.Resources)
	}
}

func TestANamespaceInAReferenceOfTheClusterIsExplained(t *testing.T) {
	for spec, field := range map[string]string{
		"{registries: [r.example.com], imagePullSecrets: [{name: p, namespace: n}]}":               "spec.imagePullSecrets[0].namespace",
		"{registries: [r.example.com], caBundle: {secretKeyRef: {name: p, namespace: n, key: k}}}": "spec.caBundle.secretKeyRef.namespace",
	} {
		_, found := findingsOf(t, object("ClusterStore", spec))
		require.Contains(t, found, field+": references have no namespace: what cluster resources name is in the one of --cluster-resource-namespace, by default "+
			"Landwaiter's own; remove it, ")
	}
}

// A key is whatever somebody wrote: it is no path.
func TestAKeyThatLooksLikeAPathIsAFieldThatIsNotThere(t *testing.T) {
	for _, key := range []string{"''", "'.'", "'[]'", "'[0]'", "'spec.[0].home'", "'rules.-1.serviceAccount'"} {
		_, found := findingsOf(t, tenant("{homeNamespace: iris}\n"+key+": 1"))
		require.Contains(t, found, "there is no such field; ", key)
		require.NotContains(t, found, "is missing", key)
	}
}

func TestSaysWhichFieldIsWrongAndWhere(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"a Tenant with a home namespace elsewhere": {tenant("{homeNamespace: iris, namespacePrefix: iris-}"), []string{"1 note  NotFound"}},
		"keys in the Verifier": {
			object("Verifier", "\n  type: Cosign\n  cosign:\n   keys:\n    insecureIgnoreTransparencyLog: true\n    inline: "+inline), []string{}},
		"a broken key in the Verifier": {object("Verifier", "{type: Cosign, cosign: {keys: {inline: x, insecureIgnoreTransparencyLog: true}}}"),
			[]string{"4 error spec.cosign.keys.inline Invalid"}},
		"keys in two places": {object("TrustStore", keysSpec) +
			object("Verifier", "{type: Cosign, cosign: {keys: {inline: x, trustStoreRefs: [{name: x}], insecureIgnoreTransparencyLog: true}}}"),
			[]string{"17 error spec.cosign.keys Invalid"}},
		"a Tenant without a home namespace":        {tenant("{namespaces: [iris]}"), []string{"4 error spec.homeNamespace Invalid"}},
		"a Tenant with a prefix that is no prefix": {tenant("\n  homeNamespace: iris\n  namespacePrefix: iris"), []string{"6 error spec.namespacePrefix Invalid"}},
		"a Tenant of the system":                   {tenant("{homeNamespace: kube-system}"), []string{"4 error spec Invalid"}},
		"nothing": {object("TrustStore", keysSpec) + object("Verifier", fromKeys) + object("VerificationPolicy", notSigned),
			[]string{}},
		"a field that does not exist": {object("Store", "{registries: [r.example.com], registry: r}"), []string{"4 error spec.registry Invalid"}},
		"a field of metadata that is none": {strings.Replace(object("Store", "{registries: [r.example.com]}"), "name: x", "name: x, label: y", 1),
			[]string{"3 error metadata.label Invalid"}},
		"a wrong type": {object("Store", "\n  registries: 5"), []string{"5 error spec.registries Invalid"}},
		"an object in place of a list": {object("VerificationPolicy", "\n  rules:\n  - images: ['**']\n    require:\n      anyOf: [x]"),
			[]string{"7 error spec.rules[0].require Invalid"}},
		"a list in place of an object": {object("Verifier", "{type: Cosign, cosign: {keys: [{inline: x}]}}"),
			[]string{"4 error spec.cosign.keys Invalid"}},
		"the field of another type": {object("Verifier", "{type: Notation, cosign: {keys: {inline: x, insecureIgnoreTransparencyLog: true}}}"),
			[]string{"4 error spec Invalid", "4 error spec Invalid"}},
		"a missing field": {object("Verifier", "{images: ['**']}"), []string{"4 error spec.type Invalid"}},
		"a value that is none": {object("VerificationPolicy", "\n  rules:\n  - images: ['**']\n    action: Permit"),
			[]string{"7 error spec.rules[0].action Invalid"}},
		"a rule in CEL": {object("Verifier", "{type: Cosign, cosign: {}}"), []string{"4 error spec.cosign Invalid"}},
		"a label that is none": {strings.Replace(object("Store", "{registries: [r.example.com]}"), "name: x", "name: x, labels: {a: 'b c'}", 1),
			[]string{"3 error metadata.labels Invalid"}},
		"what only compiling knows": {object("TrustStore", "\n  type: PublicKeys\n  source: {inline: text}"),
			[]string{"6 error spec.source.inline Invalid"}},
		"an Exception with " +
			"several faults": {object("Exception", "\n  images: ['r.example.com/worker:v1', 'r.example.com/A']\n  until: \"2099-11-27T18:00:00Z\"\n  reason: why"),
			[]string{"5 error spec.images[0] Invalid", "5 error spec.images[1] Invalid", "6 error spec.until TooLong"}},
		"an Exception that is over": {object("Exception", "\n  images: ['r.example.com/worker']\n  until: \"2020-11-27T18:00:00Z\"\n  reason: why"),
			[]string{"1 note  Expired", "1 note  NotDelegated"}},
		"an Exception that ends on a date": {object("Exception", "\n  images: ['r.example.com/worker']\n  until: \"2027-11-27\"\n  reason: why"),
			[]string{"6 error spec.until Invalid"}},
		"a Store with several faults": {object("Store", "\n  registries: ['https://r.example.com', 'r.example.com/app']"),
			[]string{"5 error spec.registries[0] Invalid", "5 error spec.registries[1] Invalid"}},
		"a key twice": {object("Store", "\n  registries: [a.example.com]\n  registries: [b.example.com]"), []string{"6 error  Invalid"}},
		"an expression without its root": {object("Verifier", "{type: Cosign, cosign: {keyless: {identities: [{issuer: i, subject: s}], expression: unknown}}}"),
			[]string{"4 error spec.cosign.keyless.expression Invalid"}},
		"keys whose log's root the " +
			"server fetches": {object("Verifier", "\n  type: Cosign\n  cosign:\n    keys:\n      inline: "+strings.ReplaceAll(inline, "\n      ", "\n        ")) +
			object("VerificationPolicy", notSigned), []string{}},
		"an identity " +
			"for everyone": {object("Verifier", "{type: Cosign, cosign: {keyless: {identities: [{issuer: 'https://token.actions.githubusercontent.com', "+
			"subjectRegExp: '.*'}]}}}"), []string{"4 error spec.cosign.keyless.identities[0] Invalid"}},
		"an identity for " +
			"everyone, on purpose": {
			object("Verifier", "{type: Cosign, cosign: {keyless: {identities: [{issuer: 'https://token.actions.githubusercontent.com', subjectRegExp: '.*', "+
				"insecureAllowAnySubject: true}]}}}"), []string{"4 error spec.cosign.keyless.identities[0] IdentityForAnyone"}},
		"an identity for " +
			"a repository": {object("Verifier", "{type: Cosign, cosign: {keyless: {identities: [{issuer: 'https://token.actions.githubusercontent.com', "+
			"subjectRegExp: 'https://github.com/acme/app/.*'}]}}}"), []string{"4 warning spec.cosign.keyless.identities[0] IdentityTooBroad"}},
		"an identity that " +
			"cannot be read": {object("Verifier", "{type: Cosign, cosign: {keyless: {identities: [{issuer: 'https://token.actions.githubusercontent.com', "+
			"subjectRegExp: '('}]}}}"), []string{"4 error spec.cosign.keyless.identities[0] Invalid"}},
		"text without quotes": {object("Store", "{registries: [on]}"), []string{"4 error spec.registries[0] Invalid"}},
		"an object twice": {object("TrustStore", keysSpec) + object("TrustStore", keysSpec),
			[]string{"1 error  Duplicate", "14 error  Duplicate"}},
		"a document that is none": {object("Store", "{registries: [r.example.com]}") + "kind: Verifier\n", []string{"5 error  Invalid"}},
		"a Verifier that the files " +
			"do not have": {object("TrustStore", keysSpec) + object("Verifier", fromKeys) +
			object("VerificationPolicy", strings.Replace(notSigned, "[x]", "[other]", 1)), []string{"14 note  Unused", "22 note spec.rules[0].require[0] NotFound"}},
		"a name that is nearly one in the files": {strings.ReplaceAll(object("TrustStore", keysSpec)+object("Verifier", fromKeys), "name: x", "name: release") +
			object("VerificationPolicy", strings.Replace(notSigned, "[x]", "[relaese]", 1)),
			[]string{"14 note  Unused", "22 warning spec.rules[0].require[0] NotFound"}},
		"more signers than there are": {object("TrustStore", keysSpec) + object("Verifier", fromKeys) +
			object("VerificationPolicy", strings.Replace(notSigned, "[x]", "[x], atLeast: 2", 1)), []string{"22 error spec.rules[0].require[0] Unsatisfiable"}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, check(t, c.text)) })
	}
}

func TestSaysWhatToDoAboutWhatIsMistaken(t *testing.T) {
	for text, want := range map[string]string{
		object("Verifer", fromKeys): " Verifer team-a/x: landwaiter.dev/v1beta1 has no " +
			"kind Verifer; did you mean Verifier?",
		object("ClusterVerfier", fromKeys): " ClusterVerfier team-a/x: landwaiter.dev/v1beta1 " +
			"has no kind ClusterVerfier; did you mean ClusterVerifier?",
		object("Other", fromKeys): "Other team-a/x: landwaiter.dev/v1beta1 has no " +
			"kind Other; use one of Verifier, ",
		strings.Replace(object("Verifier", fromKeys), "v1beta1", "v1", 1): " Verifier team-a/x: apiVersion landwaiter.dev/v1 " +
			"is not known to this version of Landwaiter; use landwaiter.dev/v1beta1",
		"apiVersion: landwaiter.dev/v1\nkind: Verifier\n": " Verifier without a name: apiVersion " +
			"landwaiter.dev/v1 is not known",
		object("Verifier", "\n\ttype: Cosign"): "YAML must not be indented with tabs; use spaces",
		object("ClusterVerificationPolicy", "{defaultAction: Allow}"): "metadata.namespace: this kind is cluster-scoped " +
			"and has no namespace; remove it",
		object("Verifier", "{type: Notation, cosign: {}}"): "spec: spec.type Cosign needs spec.cosign, and no " +
			"other type may have it",
		object("Verifier", "{type: Notation, cosign: {}, attestation: {predicateType: p, keys: {inline: x}}}"): "spec: spec.type Notation needs spec.notation, and " +
			"no other type may have it",
		object("VerificationPolicy", "{rules: [{images: [nginx], action: Allow}]}"): `needs a host and a repository, such as ` +
			`"docker.io/library/nginx"`,
		object("VerificationPolicy", "{rules: [{images: ['**'], require: []}]}"): "spec.rules[0].require: must have at least 1 " +
			"entry; add one, or for images that need no check write action: Allow",
	} {
		report, found := findingsOf(t, text)
		require.Contains(t, found, want, text)
		require.Equal(t, resource.Error, report.Findings[0].Severity)
	}
}

// Whoever corrects one fault wants to know of the next one before another run.
func TestReportsAllFaultsOfAResource(t *testing.T) {
	rules := "{defaultAction: Allow, rules: [{images: ['r.example.com/a b', 'r.example.com/**', 'r.example.com/c d'], require: [{expression: 'findings['}, " +
		"{anyOf: [x, gone, lost]}]}, {images: ['r.example.com/e f'], action: Allow}]}"
	stores := "{trustStoreRefs: [{name: gone}, {name: x}, {name: lost}]}"
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"what only compiling knows": {object("TrustStore", keysSpec) + object("Verifier", fromKeys) + object("VerificationPolicy", rules), []string{
			"22 error spec.rules[0].images[0] Invalid", "22 error spec.rules[0].images[2] Invalid", "22 error spec.rules[0].require[0].expression Invalid",
			"22 note spec.rules[0].require[1] NotFound", "22 note spec.rules[0].require[1] NotFound", "22 error spec.rules[1].images[0] Invalid"}},
		"references": {object("TrustStore", keysSpec) + object("Verifier", "{type: Cosign, images: ['r.example.com/a b'], cosign: {keys: "+stores+"}}"), []string{
			"17 note spec.cosign.keys.trustStoreRefs[0] NotFound", "17 note spec.cosign.keys.trustStoreRefs[2] NotFound", "17 error spec.images[0] Invalid"}},
		"what the CRD knows, and what only " +
			"compiling does": {object("VerificationPolicy", "{defaultAction: Permit, rules: [{images: ['r.example.com/a b'], require: [{types: [Cosign]}]}]}"), []string{
			"4 error spec.defaultAction Invalid", "4 error spec.rules[0].images[0] Invalid"}},
		"an unknown field, and what only " +
			"compiling knows": {object("VerificationPolicy", "{rule: [], rules: [{images: ['r.example.com/a b'], require: [{types: [Cosign]}]}]}"), []string{
			"4 error spec.rule Invalid", "4 error spec.rules[0].images[0] Invalid"}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, check(t, c.text)) })
	}
}

func TestWhatFilesDoNotDecideIsANote(t *testing.T) {
	secret := "\n  type: PublicKeys\n  source: {secretKeyRef: {name: s, key: k}}"
	ofCluster := "{type: Cosign, cosign: {keys: {trustStoreRefs: [{kind: ClusterTrustStore, name: x}], insecureIgnoreTransparencyLog: true}}}"
	cluster := strings.Replace(object("ClusterTrustStore", keysSpec), ", namespace: team-a", "", 1)
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"a Secret, and what depends on it": {object("TrustStore", secret) + object("Verifier", fromKeys),
			[]string{"6 note spec.source.secretKeyRef NotFound", "6 note spec.source.secretKeyRef TrustWithinReach",
				"11 note spec.cosign.keys.trustStoreRefs[0] ReferenceNotReady"}},
		"a trust store of the cluster": {object("Verifier", ofCluster), []string{"4 note spec.cosign.keys.trustStoreRefs[0] NotFound"}},
		"and not among those of the files": {strings.Replace(cluster, "name: x", "name: other", 1) + object("Verifier", ofCluster),
			[]string{"17 note spec.cosign.keys.trustStoreRefs[0] NotFound"}},
		"a Verifier of the cluster":        {object("VerificationPolicy", notSigned), []string{"4 note spec.rules[0].require[0] NotFound"}},
		"a trust store that nothing names": {object("TrustStore", keysSpec), []string{"1 note  Unused"}},
		"a key that the server fetches " +
			"from a vault": {object("TrustStore", "\n  type: PublicKeys\n  source:\n    vault: {address: 'https://vault.example.com', path: transit/keys/x, "+
			"tokenSecretKeyRef: {name: t, key: k}}"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			found := check(t, c.text)
			if c.want != nil {
				require.Subset(t, found, c.want)
			}
			for _, f := range found {
				require.True(t, strings.Contains(f, " note ") || strings.Contains(fmt.Sprint(c.want), f), f)
			}
			require.NotEmpty(t, found)
		})
	}
}

func TestWhatAClusterLacksIsAnError(t *testing.T) {
	ofCluster := "{type: Cosign, cosign: {keys: {trustStoreRefs: [{kind: ClusterTrustStore, name: x}], insecureIgnoreTransparencyLog: true}}}"
	cluster := func(kind, spec string) string {
		return strings.Replace(object(kind, spec), ", namespace: team-a", "", 1)
	}
	held := tenant("{homeNamespace: team-a}")
	for name, c := range map[string]struct {
		text string
		want resource.Severity
	}{
		"a Verifier of the cluster": {cluster("ClusterVerificationPolicy", notSigned), resource.Error},
		"a Verifier of any name": {cluster("ClusterVerificationPolicy", "{rules: [{images: ['**'], require: [{types: [Cosign]}]}]}"),
			resource.Error},
		"a trust store of the cluster": {cluster("ClusterVerifier", fromKeys), resource.Error},
		"a Secret": {cluster("ClusterTrustStore", "\n  type: PublicKeys\n  source: {secretKeyRef: {name: s, key: k}}"),
			resource.Note},
		"a Verifier of a namespace":                 {object("VerificationPolicy", notSigned), resource.Error},
		"a trust store, named by a namespace":       {object("Verifier", ofCluster), resource.Error},
		"a Verifier of a team":                      {held + object("VerificationPolicy", notSigned), resource.Error},
		"a trust store, named by a team's Verifier": {held + object("Verifier", ofCluster), resource.Error},
		"a trust store of a team":                   {held + object("Verifier", fromKeys), resource.Error},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := lint.CheckCluster(t.Context(), c.text, conditions.Check)
			require.NoError(t, err)
			require.NotEmpty(t, report.Findings)
			require.Equal(t, c.want == resource.Error, errorsOf(report) > 0, "%v", report.Findings)
			report, err = lint.Check(t.Context(), "", []string{"-"}, strings.NewReader(c.text), conditions.Check)
			require.NoError(t, err)
			require.Zero(t, errorsOf(report), "files need not be all: %v", report.Findings)
		})
	}
}

// Ratify's kinds are called as Landwaiter's are, so a file of them must not look like one that is in force.
func TestResourcesOfRatifyAreNamed(t *testing.T) {
	for kind, instead := range map[string]string{
		"Verifier": "a ClusterVerifier", "NamespacedVerifier": "a Verifier", "Store": "a ClusterStore", "KeyManagementProvider": "a ClusterTrustStore",
		"CertificateStore": "a TrustStore", "Policy": "a ClusterVerificationPolicy",
	} {
		text := "apiVersion: config.ratify.deislabs.io/v1beta1\nkind: " + kind + "\nmetadata: {name: x}\nspec: {}\n"
		report, err := lint.Check(t.Context(), "", []string{"-"}, strings.NewReader(text), conditions.Check)
		require.NoError(t, err)
		require.Len(t, report.Findings, 1)
		f := report.Findings[0]
		require.Equal(t, lint.OfRatify, f.ID)
		require.Equal(t, resource.Warning, f.Severity)
		require.Equal(t, 1, f.Line)
		require.Contains(t, f.Message, kind+" is a kind of Ratify")
		require.Contains(t, f.Fix, "write "+instead+" of landwaiter.dev")
		require.FileExists(t, "../../../docs/compare/ratify.md")
	}
	report, err := lint.Check(t.Context(), "", []string{"-"}, strings.NewReader("apiVersion: config.ratify.dev/v2alpha1\nkind: Executor\nmetadata: {name: x}\n"),
		conditions.Check)
	require.NoError(t, err)
	require.Contains(t, report.Findings[0].Fix, "ClusterVerificationPolicy")
}

func TestAQuotaForNobodyIsNoted(t *testing.T) {
	quota := func(spec string) string {
		return "apiVersion: landwaiter.dev/v1beta1\nkind: ClusterQuota\nmetadata: {name: q}\nspec: " + spec +
			"\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: team-a}\n"
	}
	for name, c := range map[string]struct{ text, says, id string }{
		"of nobody": {quota("{namespaces: [team-z], tenants: [gone], maxInFlight: 64}"), "none of its namespaces and Tenants exists",
			"AppliesNowhere"},
		"of nobody in the files": {strings.TrimSuffix(quota("{namespaces: [team-z], tenants: [gone], maxInFlight: 64}"),
			"---\napiVersion: v1\nkind: Namespace\nmetadata: {name: team-a}\n"), "", ""},
		"of somebody": {quota("{namespaces: [team-a, team-z], maxInFlight: 256}"), "", ""},
		"more than anybody can get": {quota("{namespaces: [team-a], maxInFlight: 257}"),
			"a quota owner gets at most half of --limit in-flight, which is 512 by default", "NeverReached"},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := lint.Check(t.Context(), "", []string{"-"}, strings.NewReader(c.text), conditions.Check)
			require.NoError(t, err)
			if c.says == "" {
				require.Empty(t, report.Findings)
				return
			}
			require.Len(t, report.Findings, 1)
			require.Equal(t, c.id, report.Findings[0].ID)
			require.Equal(t, resource.Note, report.Findings[0].Severity)
			require.Contains(t, report.Findings[0].Message, c.says)
			require.NotEmpty(t, report.Findings[0].Fix)
		})
	}
}

func TestNothingToCheckIsNeverCorrect(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n",
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n"} {
		_, err := lint.Check(t.Context(), "", []string{"-"}, strings.NewReader(text), conditions.Check)
		require.ErrorContains(t, err, "nothing to check", text)
	}
}

func TestAnErrorIsNeverOnlyANoteForTheServer(t *testing.T) {
	for _, name := range []string{"cluster.yaml", "team-a.yaml", "team-b.yaml"} {
		text, err := os.ReadFile(filepath.Join(samples, name))
		require.NoError(t, err)
		found := check(t, strings.ReplaceAll(string(text), "  type: ", "  type: X"))
		require.Contains(t, strings.Join(found, "\n"), "error spec.type Invalid", name)
	}
}

func TestSuggestsTheNameThatWasMeant(t *testing.T) {
	text := strings.Replace(object("TrustStore", keysSpec), "name: x", "name: team-keys", 1) +
		object("Verifier", strings.Replace(fromKeys, "name: x", "name: team-kyes", 1))
	_, found := findingsOf(t, text)
	require.Contains(t, found, "did you mean team-keys?")
}

func TestATenantAloneSaysWhoCreatesItsHomeNamespace(t *testing.T) {
	_, found := findingsOf(t, tenant("{homeNamespace: iris, namespacePrefix: iris-}"))
	require.Contains(t, found, "landwaiter tenant add creates it; ")
	require.NotContains(t, found, "the cluster must have it")
}

// errorsOf counts what is wrong whatever a cluster has.
func errorsOf(report lint.Report) (n int) {
	for _, f := range report.Findings {
		if f.Severity == resource.Error {
			n++
		}
	}
	return n
}

func TestATeamsPolicyForEveryImageIsAWarningWhereThePlatformKeepsIt(t *testing.T) {
	text := object("VerificationPolicy", "{rules: [{images: ['**'], action: Allow}]}")
	for want, report := range map[resource.Severity]func() (lint.Report, error){
		resource.Warning: func() (lint.Report, error) { return lint.CheckCluster(t.Context(), text, conditions.Check) },
		resource.Note: func() (lint.Report, error) {
			return lint.Check(t.Context(), "", []string{"-"}, strings.NewReader(text), conditions.Check)
		},
	} {
		got, err := report()
		require.NoError(t, err)
		require.Len(t, got.Findings, 1)
		require.Equal(t, "RuleTooBroad", got.Findings[0].ID)
		require.Equal(t, want, got.Findings[0].Severity)
	}
}

// The levels of a Tenant are resolved as Landwaiter does.
func TestWhatATeamNamesMayBeInItsHomeNamespaceOrTheCluster(t *testing.T) {
	home := tenant("{homeNamespace: home, namespaces: [team-a]}") + object("VerificationPolicy", notSigned)
	for name, c := range map[string]struct {
		text  string
		wrong int
	}{
		"of its home namespace": {home + strings.ReplaceAll(object("TrustStore", keysSpec)+object("Verifier", fromKeys), "namespace: team-a", "namespace: home"), 0},
		"of the cluster": {home +
			strings.ReplaceAll(object("ClusterTrustStore", keysSpec)+
				object("ClusterVerifier", strings.Replace(fromKeys, "{name: x}", "{kind: ClusterTrustStore, name: x}", 1)), ", namespace: team-a", ""), 0},
		"of another namespace": {home + strings.ReplaceAll(object("TrustStore", keysSpec)+object("Verifier", fromKeys), "namespace: team-a", "namespace: team-b"),
			1},
		"nearly of its own name": {home + strings.ReplaceAll(object("TrustStore", keysSpec)+object("Verifier", fromKeys), "name: x", "name: xy"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := lint.CheckCluster(t.Context(), c.text, conditions.Check)
			require.NoError(t, err)
			require.Equal(t, c.wrong, errorsOf(report), "%v", report.Findings)
		})
	}
}

// As platform scaffold writes a team for an environment: patches are no Tenant of the same name, without a home namespace.
func TestPatchesOfKustomizationsAreNoObjects(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		".landwaiter.yaml":                  "layout: flux\n",
		"tenants/base/a/tenant.yaml":        tenant("{homeNamespace: a, namespaces: [a-web]}"),
		"tenants/base/a/kustomization.yaml": "resources: [tenant.yaml]\n",
		"tenants/prod/kustomization.yaml": "resources: [../base/a]\npatches: [{path: a-patch.yaml}, {path: sub/b.yaml}, {patch: '- {op: " +
			"remove}'}]\npatchesStrategicMerge: [c.yaml]\n",
		"tenants/prod/a-patch.yaml":        tenant("{reconciler: {path: ./prod}}"),
		"tenants/prod/sub/b.yaml":          "- {op: add, path: /spec/x, value: y}\n",
		"tenants/prod/c.yaml":              tenant("{}"),
		"tenants/prod/sub/deep/keys.yaml":  object("TrustStore", keysSpec),
		"tenants/other/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\npatches: {a: b}\n",
		"tenants/other/a-patch.yaml":       "kind: Deployment\napiVersion: apps/v1\nmetadata: {name: x}\n",
	} {
		file := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o750))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	checked := func(path string) (lint.Report, error) {
		return lint.Check(t.Context(), "", []string{filepath.Join(root, filepath.FromSlash(path))}, strings.NewReader(""), conditions.Check)
	}
	for _, path := range []string{"tenants", "tenants/prod"} {
		report, err := checked(path)
		require.NoError(t, err)
		var notes []resource.Finding
		for _, f := range report.Findings {
			require.Equal(t, resource.Note, f.Severity, f)
			if f.ID == lint.NoObject {
				notes = append(notes, f)
			}
		}
		require.Len(t, notes, 1)
		require.Equal(t, filepath.Join(root, "tenants", "prod", "a-patch.yaml"), notes[0].File)
		require.Contains(t, notes[0].Message, "kustomization.yaml, so what it contains is no object; 2 other files are patches too")
		require.Contains(t, notes[0].Fix, "run landwaiter platform check "+root)
	}
	_, err := checked("tenants/prod/sub/b.yaml")
	require.ErrorContains(t, err, "nothing to check: ")
	require.ErrorContains(t, err, "b.yaml: it is a patch of ")
	require.ErrorContains(t, err, "run landwaiter platform check "+root)
	_, err = checked("tenants/other/a-patch.yaml")
	require.ErrorContains(t, err, "no resource of landwaiter.dev", "its kustomization cannot be read")
	t.Chdir(filepath.Join(root, "tenants"))
	_, err = lint.Check(t.Context(), "", []string{"prod/c.yaml"}, strings.NewReader(""), conditions.Check)
	require.ErrorContains(t, err, "prod/c.yaml: it is a patch of prod/kustomization.yaml, so what it contains is no object; to check what kustomizations build, "+
		"run landwaiter platform check ..")
}

// A policy of the cluster names ClusterVerifiers as "Verifier", and so does a team without Verifiers.
func TestATypoInTheNameOfAClusterVerifierIsAWarning(t *testing.T) {
	clusterVerifier := "apiVersion: landwaiter.dev/v1beta1\nkind: ClusterVerifier\nmetadata: {name: acme-platform}\nspec: {type: Cosign, cosign: {keys: " +
		"{inline: x, insecureIgnoreTransparencyLog: true}}}\n---\n"
	const rules = "{rules: [{images: ['**'], require: [{anyOf: [acme-plattform]}]}]}"
	for name, text := range map[string]string{
		"in a policy of the cluster":              clusterVerifier + strings.Replace(object("ClusterVerificationPolicy", rules), ", namespace: team-a", "", 1),
		"in a policy of a team without Verifiers": clusterVerifier + object("VerificationPolicy", rules),
	} {
		report, _ := findingsOf(t, text)
		i := slices.IndexFunc(report.Findings, func(f resource.Finding) bool { return f.ID == string(policy.ReasonNotFound) })
		require.GreaterOrEqual(t, i, 0, name)
		require.Equal(t, resource.Warning, report.Findings[i].Severity, name)
		require.Equal(t, "did you mean acme-platform?", report.Findings[i].Fix, name)
	}
	hidden := clusterVerifier + object("TrustStore", keysSpec) + object("Verifier", fromKeys) + object("VerificationPolicy", rules)
	_, found := findingsOf(t, hidden)
	require.NotContains(t, found, "did you mean acme-platform?", "no ClusterVerifier applies beside the team's")
}
