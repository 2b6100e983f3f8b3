package v1beta1_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// object writes a resource with the specification spec in YAML flow style.
func object(kind, spec string) string {
	return named("x", kind, spec)
}

func named(name, kind, spec string) string {
	metadata := "{name: " + name
	if row, _ := v1beta1.KindNamed(kind); row.Namespaced {
		metadata += ", namespace: team-a"
	}
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: %s}\nspec: %s\n", v1beta1.GroupVersion, kind, metadata, spec)
}

// rule is one CEL rule: where it stands, what it says, specifications that keep
// it and specifications that break it and nothing else.
type rule struct {
	kinds    []string
	path     string
	field    string // that the error names, if it is another
	message  string
	accepted []string
	rejected []string
	// before is the specification that is updated, for a rule about changes.
	before string
	// names of objects are accepted and rejected, instead of specifications.
	names bool
}

// text writes the object that a row of the rule is about.
func (r rule) text(kind, row string) string {
	if r.names {
		return named(row, kind, minimal()[kind])
	}
	return object(kind, row)
}

func both(kind string) []string { return []string{kind, "Cluster" + kind} }

// in puts fragments into a specification at the place of %s.
func in(frame string, fragments ...string) []string {
	list := make([]string, len(fragments))
	for i, fragment := range fragments {
		list[i] = fmt.Sprintf(frame, fragment)
	}
	return list
}

// exactlyOne is the message of a rule that controller-gen writes.
func exactlyOne(fields ...string) string {
	return fmt.Sprintf("exactly one of the fields in %v must be set", fields)
}

// atMostOne is the message of a rule that controller-gen writes.
func atMostOne(fields ...string) string {
	return fmt.Sprintf("at most one of the fields in %v may be set", fields)
}

func rules() []rule {
	return slices.Concat(verifierRules(), authorityRules(), signerRules(), policyRules(), storeRules(), identityRules(), sourceRules(), quotaRules(),
		tenantRules(), exceptionRules(), durationRules(), contactRules(), sizeRules())
}

// Specifications of verifiers without what a test is about.
const (
	keys       = "keys: {trustStoreRefs: [{name: k}], insecureIgnoreTransparencyLog: true}"
	keyless    = "keyless: {identities: [{issuer: i, subject: s}]}"
	cosign     = "cosign: {" + keys + "}"
	notation   = "notation: {trustStoreRefs: [{name: c}], trustedIdentities: ['*']}"
	attested   = "attestation: {predicateType: p, " + keys + "}"
	notationOf = "{type: Notation, notation: {trustStoreRefs: [{name: c}], trustedIdentities: ['*'], %s}}"
)

func verifierRules() []rule {
	const identities = "{type: Notation, notation: {trustStoreRefs: [{name: c}], trustedIdentities: [%s]}}"
	list := []rule{{
		kinds: both("Verifier"), path: "spec.notation.trustedIdentities", message: `"*" trusts every identity, so it must be the only entry of trustedIdentities`,
		accepted: in(identities, "'*'", "'x509.subject: C=DE'", "'x509.subject: C=DE', 'x509.subject: C=FR'"),
		rejected: in(identities, "'*', 'x509.subject: C=DE'", "'x509.subject: C=DE', '*'"),
	}}
	fields := map[string]string{"Cosign": cosign, "Notation": notation, "Attestation": attested}
	for kind, field := range fields {
		name := strings.ToLower(kind)
		wanted := rule{
			kinds: both("Verifier"), path: "spec", message: fmt.Sprintf("spec.type %s needs spec.%s, and no other type may have it", kind, name),
			accepted: []string{fmt.Sprintf("{type: %s, %s}", kind, field)}, rejected: []string{fmt.Sprintf("{type: %s}", kind)},
		}
		for other, beside := range fields {
			if other != kind {
				wanted.rejected = append(wanted.rejected, fmt.Sprintf("{type: %s, %s, %s}", other, beside, field))
			}
		}
		list = append(list, wanted)
	}
	return list
}

// signerRules are about what cosign signatures and attestations share.
func signerRules() []rule {
	var list []rule
	for field, frame := range map[string]string{"cosign": "{type: Cosign, cosign: {%s}}",
		"attestation": "{type: Attestation, attestation: {predicateType: p, %s}}"} {
		list = append(list, rule{
			kinds: both("Verifier"), path: "spec." + field, message: exactlyOne("keys", "keyless"),
			accepted: in(frame, keys, keyless), rejected: in(frame, "", keys+", "+keyless),
		})
		list = append(list, rule{
			kinds: both("Verifier"), path: "spec." + field + ".keys", message: exactlyOne("inline", "trustStoreRefs"),
			accepted: in(frame, "keys: {inline: x}", "keys: {trustStoreRefs: [{name: k}]}"),
			rejected: in(frame, "keys: {}", "keys: {insecureIgnoreTransparencyLog: true}", "keys: {inline: x, trustStoreRefs: [{name: k}]}"),
		}, rule{
			kinds: both("Verifier"), path: "spec." + field + ".keys", message: "rootTrustStoreRef names the transparency logs, and insecureIgnoreTransparencyLog " +
				"ignores them; remove one",
			accepted: in(frame, "keys: {inline: x, insecureIgnoreTransparencyLog: true}", "keys: {inline: x, rootTrustStoreRef: {name: r}}",
				"keys: {inline: x, rootTrustStoreRef: {name: r}, insecureIgnoreTransparencyLog: false}"),
			rejected: in(frame, "keys: {inline: x, rootTrustStoreRef: {name: r}, insecureIgnoreTransparencyLog: true}"),
		})
		for _, name := range []string{"issuer", "subject"} {
			other := map[string]string{"issuer": "subject: s", "subject": "issuer: i"}[name]
			identity := fmt.Sprintf(frame, "keyless: {identities: [{"+other+"%s}]}")
			list = append(list, rule{
				kinds: both("Verifier"), path: "spec." + field + ".keyless.identities[]",
				message: map[string]string{"issuer": exactlyOne("issuer", "issuerRegExp", "insecureIgnoreIssuer"),
					"subject": exactlyOne("subject", "subjectRegExp")}[name],
				accepted: in(identity, fmt.Sprintf(", %s: x", name), fmt.Sprintf(", %sRegExp: x", name)),
				rejected: in(identity, "", fmt.Sprintf(", %s: x, %sRegExp: x", name, name)),
			})
		}
		identity := fmt.Sprintf(frame, "keyless: {identities: [{%s}]}")
		list = append(list, rule{
			kinds: both("Verifier"), path: "spec." + field + ".keyless.identities[]",
			message: "subjectRegExp matches signers who have nothing in common with you, of an identity provider where anyone can get an account: write your own signer instead, such as subject https://github.com/OWNER/REPOSITORY/.github/workflows/release.yml@refs/heads/main on GitHub, https://gitlab.com/GROUP/PROJECT//.gitlab-ci.yml@refs/heads/main on GitLab, or one e-mail address; only if keyless.expression narrows it, set insecureAllowAnySubject to true",
			accepted: in(identity, "issuer: 'https://token.actions.githubusercontent.com', subjectRegExp: 'https://github.com/acme/.*'",
				"issuer: 'https://idp.acme.example', subjectRegExp: '.*'",
				"issuer: 'https://token.actions.githubusercontent.com', subjectRegExp: '.*', insecureAllowAnySubject: true",
				"issuerRegExp: 'https://idp.*', subjectRegExp: '.*'",
				"issuer: 'https://token.actions.githubusercontent.com', subjectRegExp: '.*@refs/heads/main'"),
			rejected: in(identity, "issuer: 'https://token.actions.githubusercontent.com', subjectRegExp: '.*'",
				`issuer: 'https://token.actions.githubusercontent.com', subjectRegExp: 'https://github\.com/.+/.+@.+'`,
				"issuer: 'https://token.actions.githubusercontent.com', subjectRegExp: '.*/.github/workflows/.*'",
				"issuer: 'https://gitlab.com', subjectRegExp: 'https://gitlab.com/.+'",
				"issuer: 'https://agent.buildkite.com', subjectRegExp: '.*'", "issuer: 'https://accounts.google.com', subjectRegExp: '.*@gmail[.]com'",
				"issuer: 'https://github.com/login/oauth', subjectRegExp: '.+'",
				"issuerRegExp: '.*', subjectRegExp: '.*'", "issuerRegExp: 'https://.*', subjectRegExp: '.*@.*'",
				"issuer: 'https://gitlab.com', subjectRegExp: '.*', insecureAllowAnySubject: false"),
		})
		list = append(list, rule{
			kinds: both("Verifier"), path: "spec." + field + ".keyless",
			message: "insecureIgnoreIssuer requires rootTrustStoreRef: anyone can get a certificate of Sigstore's public CA; remove insecureIgnoreIssuer, or set " +
				"rootTrustStoreRef to your CA's root",
			accepted: in(frame, "keyless: {identities: [{issuer: i, subject: s}, {insecureIgnoreIssuer: true, subject: s}], rootTrustStoreRef: {name: r}}",
				"keyless: {identities: [{insecureIgnoreIssuer: false, subject: s}]}"),
			rejected: in(frame, "keyless: {identities: [{insecureIgnoreIssuer: true, subject: s}]}",
				"keyless: {identities: [{issuer: i, subject: s}, {insecureIgnoreIssuer: true, subjectRegExp: s}]}"),
		})
	}
	return list
}

func policyRules() []rule {
	const rules = "{rules: [{images: ['**'], %s}]}"
	return []rule{{
		kinds: both("VerificationPolicy"), path: "spec.rules[].require[]", message: exactlyOne("anyOf", "allOf", "types", "expression"),
		accepted: in("{rules: [{images: ['**'], require: [{%s}]}]}", "anyOf: [v]", "allOf: [v, w]", "types: [Cosign]", "expression: 'true'",
			"anyOf: [v], atLeast: 2"),
		rejected: in("{rules: [{images: ['**'], require: [{%s}]}]}", "", "atLeast: 2", "anyOf: [v], allOf: [v]", "anyOf: [v], types: [Cosign]",
			"types: [Cosign], expression: 'true'", "allOf: [v], types: [Cosign]"),
	}, {
		kinds: both("VerificationPolicy"), path: "spec.rules[]", message: "action Require needs require, and no other action may have it",
		accepted: in(rules, "require: [{anyOf: [v]}]", "action: Require, require: [{anyOf: [v]}]", "action: Allow", "action: Deny"),
		rejected: append(in(rules, "action: Require", "action: Allow, require: [{anyOf: [v]}]", "action: Deny, require: [{anyOf: [v]}]"),
			"{rules: [{images: ['**']}]}"),
	}, {
		kinds: []string{"ClusterVerificationPolicy"}, field: "spec.defaultAction", message: "no level comes after the cluster's: set Deny or Allow",
		accepted: []string{"{}", "{defaultAction: Allow}", "{scope: Mandatory, defaultAction: Deny}"},
		rejected: []string{"{defaultAction: Inherit}", "{scope: Mandatory, defaultAction: Inherit}"},
	}, {
		kinds: []string{"VerificationPolicy"}, field: "spec.scope", message: "only a ClusterVerificationPolicy has a scope",
		accepted: []string{"{}", "{defaultAction: Inherit}"}, rejected: []string{"{scope: Mandatory}", "{scope: Fallback}"},
	}}
}

// References to a Secret or ServiceAccount, and to a key.
const (
	secret = "{name: s}"
	key    = "{name: s, key: k}"
)

func sourceRules() []rule {
	const (
		secretKey, configMapKey = "secretKeyRef: " + key, "configMapKeyRef: " + key
		kms                     = "kms: {uri: 'awskms:///k', secretRef: " + secret + "}"
		vault                   = "vault: {address: 'https://v', path: p, vaultNamespace: eu, tokenSecretKeyRef: " + key + "}"
	)
	kinds := both("TrustStore")
	list := []rule{{
		kinds: kinds, path: "spec.source", message: exactlyOne("inline", "secretKeyRef", "configMapKeyRef", "kms", "vault", "tuf"),
		accepted: in("{type: PublicKeys, source: {%s}}", "inline: x", secretKey, configMapKey, kms, vault),
		rejected: in("{type: PublicKeys, source: {%s}}", "", "inline: x, "+secretKey, secretKey+", "+configMapKey, kms+", "+vault, "inline: x, "+kms),
	}, {
		kinds: kinds, path: "spec", message: "spec.source.kms is only for spec.type PublicKeys",
		accepted: []string{"{type: PublicKeys, source: {" + kms + "}}"},
		rejected: in("{type: %s, source: {"+kms+"}}", "Certificates", "SigningAuthorities", "TimestampAuthorities", "SigstoreRoot", "RevocationLists"),
	}, {
		kinds: kinds, path: "spec", message: "spec.source.vault is not for spec.type SigstoreRoot or RevocationLists",
		accepted: in("{type: %s, source: {"+vault+"}}", "PublicKeys", "Certificates", "SigningAuthorities", "TimestampAuthorities"),
		rejected: in("{type: %s, source: {"+vault+"}}", "SigstoreRoot", "RevocationLists"),
	}, {
		kinds: kinds, path: "spec", message: "spec.source.tuf is only for spec.type SigstoreRoot",
		accepted: []string{"{type: SigstoreRoot, source: {tuf: {}}}"},
		rejected: in("{type: %s, source: {tuf: {}}}", "PublicKeys", "Certificates", "SigningAuthorities", "TimestampAuthorities", "RevocationLists"),
	}, {
		kinds: kinds, path: "spec.source.tuf", message: "mirror and root go together; leave out both for the public-good repository",
		accepted: in("{type: SigstoreRoot, source: {tuf: {%s}}}", "", "mirror: 'https://m', root: '{}'"),
		rejected: in("{type: SigstoreRoot, source: {tuf: {%s}}}", "mirror: 'https://m'", "root: '{}'"),
	}, {
		kinds: kinds, path: "spec", message: "spec.hash is only for spec.type PublicKeys; remove it",
		accepted: []string{"{type: PublicKeys, hash: SHA256, source: {inline: x}}", "{type: Certificates, source: {inline: x}}"},
		rejected: in("{type: %s, hash: SHA256, source: {inline: x}}", "Certificates", "SigningAuthorities", "TimestampAuthorities", "SigstoreRoot",
			"RevocationLists"),
	}}
	return append(list,
		bundleRule(kinds, "spec.source.vault.caBundle", "{type: PublicKeys, source: {vault: {address: 'https://v', path: p, tokenSecretKeyRef: "+key+
			", caBundle: {%s}}}}"),
		bundleRule(kinds, "spec.source.tuf.caBundle", "{type: SigstoreRoot, source: {tuf: {caBundle: {%s}}}}"))
}

// terms are what every exception has.
const terms = "until: '2026-12-31T18:00:00Z', reason: r"

func exceptionRules() []rule {
	const (
		images    = "images: [r.example.com/a]"
		delegate  = "delegate: {images: [r.example.com/**], namespaces: [team-a]}"
		cluster   = "{" + terms + ", %s}"
		delegates = "{" + terms + ", delegate: {images: [r.example.com/**], %s}}"
	)
	kinds, own := []string{"ClusterException"}, []string{"Exception"}
	var list []rule
	for kind, where := range map[string]string{"Exception": "", "ClusterException": ", namespaces: [team-a]"} {
		for field, other := range map[string]string{"reason": "", "ticket": ", reason: r"} {
			frame := "{until: '2026-12-31T18:00:00Z', images: [r.example.com/a]" + where + other + ", " + field + ": %s}"
			list = append(list, rule{
				kinds: []string{kind}, path: "spec." + field, message: "spec." + field + " must be one line of printable characters",
				accepted: in(frame, "'Hotfix für #4711 (日本)'"),
				rejected: in(frame, `"a\nb"`, `"a\tb"`, `"\e]52;c;aGk=\a"`, `"\u009b2J"`, `"\u202eb"`),
			})
		}
	}
	return append(list, []rule{{
		kinds: kinds, path: "spec", message: exactlyOne("images", "delegate"),
		accepted: in(cluster, images+", namespaces: [team-a]", delegate), rejected: in(cluster, images+", namespaces: [team-a], "+delegate),
	}, {
		kinds: own, path: "spec", message: exactlyOne("images", "delegate"), accepted: in(cluster, images), rejected: in(cluster, "ticket: t"),
	}, {
		kinds: own, field: "spec.namespaces", message: "only a ClusterException names namespaces: this is for its own",
		accepted: in(cluster, images), rejected: in(cluster, images+", namespaces: [team-a]", images+", namespaces: ['*']"),
	}, {
		kinds: own, field: "spec.overrideMandatory", message: "only a ClusterException can override mandatory policies",
		accepted: in(cluster, images), rejected: in(cluster, images+", overrideMandatory: true", images+", overrideMandatory: false"),
	}, {
		kinds: own, field: "spec.delegate", message: "only a ClusterException can delegate", accepted: in(cluster, images), rejected: in(cluster, delegate),
	}, {
		kinds: kinds, field: "spec.namespaces", message: `images need spec.namespaces ("*" for every namespace), and a delegation names its namespaces ` +
			`in spec.delegate`,
		accepted: in(cluster, images+", namespaces: ['*']"), rejected: in(cluster, images, delegate+", namespaces: [team-a]"),
	}, {
		kinds: kinds, path: "spec", message: "overrideMandatory: true is for images: nobody can delegate what mandatory policies deny",
		accepted: in(cluster, images+", namespaces: [team-a], overrideMandatory: true", delegate+", overrideMandatory: false"),
		rejected: in(cluster, delegate+", overrideMandatory: true"),
	}, {
		kinds: kinds, path: "spec", message: `"*" is every namespace, so it must be the only entry of spec.namespaces`,
		accepted: in(cluster, images+", namespaces: [team-a, team-b]"), rejected: in(cluster, images+", namespaces: ['*', team-a]"),
	}, {
		kinds: kinds, path: "spec.delegate", message: "set namespaces, tenants or both: otherwise the delegation is for nobody",
		accepted: in(delegates, "namespaces: [team-a]", "tenants: [iris]", "namespaces: [team-a], tenants: [iris], maxDuration: 168h"),
		rejected: in(delegates, "maxDuration: 1h"),
	}}...)
}

// contactRules are those of every contact.
func contactRules() []rule {
	const message = "spec.contact must be one line of printable characters"
	good, bad := []string{"'#team-a on chat.example.com'", "Zoë <zoe@example.com>", "'https://wiki.example.com/signing?a=b'"},
		[]string{`"two\nlines"`, `"\e[2J"`, `"\u202e"`, `"\t"`}
	return []rule{
		{kinds: both("VerificationPolicy"), path: "spec.contact", message: message, accepted: in("{contact: %s}", good...), rejected: in("{contact: %s}", bad...)},
		{kinds: []string{"Tenant"}, path: "spec.contact", message: message, accepted: in("{homeNamespace: a, contact: %s}", good...),
			rejected: in("{homeNamespace: a, contact: %s}", bad...)},
	}
}

// durationRules are those of every length of time.
func durationRules() []rule {
	const delegation = "{" + terms + ", delegate: {images: [r.example.com/**], tenants: [iris], maxDuration: %s}}"
	const message = "it must be more than 0, such as 168h"
	good, bad := []string{"1s", "168h", "1h30m", "0.5h", "999999h"}, []string{"0s", "0h0m"}
	return []rule{
		{kinds: []string{"ClusterException"}, path: "spec.delegate.maxDuration", message: message, accepted: in(delegation, good...),
			rejected: in(delegation, bad...)},
		{kinds: []string{"Tenant"}, path: "spec.reconciler.source.interval", message: message,
			accepted: in("{homeNamespace: a, reconciler: {source: {url: 'https://g', interval: %s}}}", good...),
			rejected: in("{homeNamespace: a, reconciler: {source: {url: 'https://g', interval: %s}}}", bad...)},
	}
}

func quotaRules() []rule {
	const frame = "{namespaces: [team-a], %s}"
	return []rule{{
		kinds: []string{"ClusterQuota"}, path: "spec", message: "set at least one of maxInFlight, registryRequestsPerSecond and cacheSharePercent in spec",
		accepted: in(frame, "maxInFlight: 32", "registryRequestsPerSecond: 1", "cacheSharePercent: 100",
			"maxInFlight: 32, registryRequestsPerSecond: 1, cacheSharePercent: 1"),
		rejected: []string{"{namespaces: [team-a]}", "{tenants: [iris]}"},
	}, {
		kinds: []string{"ClusterQuota"}, path: "spec", message: "set spec.namespaces, spec.tenants or both: otherwise the quota is for nobody",
		accepted: in("{%s, maxInFlight: 32}", "namespaces: [team-a]", "tenants: [iris]", "namespaces: [team-a], tenants: [iris]"),
		rejected: []string{"{maxInFlight: 32}", "{namespaces: [], maxInFlight: 32}", "{namespaces: [], tenants: [], maxInFlight: 32}"},
	}}
}

func TestRulesAcceptAndReject(t *testing.T) {
	all := crds(t)
	covered := map[string]bool{}
	for _, r := range rules() {
		for _, kind := range r.kinds {
			t.Run(kind+" "+r.path+" "+r.message, func(t *testing.T) {
				covered[kind+" "+r.path+" "+r.message] = true
				var before []string
				if r.before != "" {
					before = []string{object(kind, r.before)}
				}
				for _, spec := range r.accepted {
					require.Empty(t, all[kind].check(t, r.text(kind, spec), before...), spec)
				}
				require.NotEmpty(t, r.accepted)
				require.NotEmpty(t, r.rejected)
				for _, spec := range r.rejected {
					errs := all[kind].check(t, r.text(kind, spec), before...)
					require.Len(t, errs, 1, spec)
					require.Equal(t, cmp.Or(r.field, r.path), at(errs[0]), spec)
					require.Equal(t, r.message, errs[0].Detail, spec)
				}
			})
		}
	}
	for kind, c := range all {
		walk("", c.schema, func(path string, s *apiextensions.JSONSchemaProps) {
			for _, declared := range s.XValidations {
				// Twins have the same specification, and some fields only one of them can use.
				require.True(t, covered[kind+" "+path+" "+declared.Message] || path != "" && covered["Cluster"+kind+" "+path+" "+declared.Message],
					"no test for the rule of %s at %q: %s", kind, path, declared.Message)
			}
		})
	}
}

func TestRejectsUnknownFieldsAndWrongSizes(t *testing.T) {
	all := crds(t)
	for name, c := range map[string]struct{ kind, spec, path, message string }{
		"unknown field":                  {"Store", "{registries: [r.example.com], registry: r}", "spec.registry", "unknown field"},
		"tenant without TLS":             {"Store", "{registries: [r.example.com], insecurePlainHTTP: true}", "spec.insecurePlainHTTP", "only a ClusterStore"},
		"tenant with a mandatory policy": {"VerificationPolicy", "{scope: Mandatory}", "spec.scope", "only a ClusterVerificationPolicy"},
		"no registry":                    {"Store", "{registries: []}", "spec.registries", "at least 1"},
		"registries left out":            {"Store", "{}", "spec.registries", "Required value"},
		"registry twice":                 {"ClusterStore", "{registries: [r.example.com, r.example.com]}", "spec.registries[]", "Duplicate value"},
		"mirror by placeholder":          {"ClusterStore", "{registries: [r.example.com], mirrors: [{host: '{registry}'}]}", "spec.mirrors[].host", "should match"},
		"mirror with a path":             {"Store", "{registries: [r.example.com], mirrors: [{host: 'm.example.com/hub'}]}", "spec.mirrors[].host", "should match"},
		"five mirrors": {"Store", "{registries: [r.example.com], mirrors: [{host: a.example.com}, {host: b.example.com}, {host: c.example.com}, " +
			"{host: d.example.com}, {host: e.example.com}]}", "spec.mirrors", "at most 4"},
		"evidence nowhere": {"Store", "{registries: [r.example.com], evidence: {repositories: [], exclusive: true}}",
			"spec.evidence.repositories", "at least 1"},
		"evidence at a host": {"Store", "{registries: [r.example.com], evidence: {repositories: [{repository: e.example.com}]}}",
			"spec.evidence.repositories[].repository", "should match"},
		"evidence host by placeholder": {"Store", "{registries: [r.example.com], evidence: {repositories: [{repository: '{registry}/sigs'}]}}",
			"spec.evidence.repositories[].repository", "should match"},
		"rule without images": {"VerificationPolicy", "{rules: [{images: [], require: [{anyOf: [v]}]}]}", "spec.rules[].images", "at least 1"},
		"rule for a tag": {"VerificationPolicy", "{rules: [{images: ['r.example.com/app:v1'], require: [{anyOf: [v]}]}]}", "spec.rules[].images[]",
			"should match"},
		"rule for a digest": {"ClusterVerificationPolicy", "{rules: [{images: ['r.example.com/app@sha256:0'], require: [{anyOf: [v]}]}]}",
			"spec.rules[].images[]", "should match"},
		"verifier for a tag": {"Verifier", "{images: ['r.example.com:5000/app:v1'], type: Cosign, cosign: {keys: {trustStoreRefs: [{name: k}]}}}",
			"spec.images[]", "should match"},
		"image without a host": {"ClusterVerifier", "{images: [nginx], type: Cosign, cosign: {keys: {trustStoreRefs: [{name: k}]}}}", "spec.images[]",
			"should match"},
		"exception for a tag": {"Exception", "{until: '2026-12-31T18:00:00Z', reason: r, ticket: t, images: ['r.example.com/app:v1']}", "spec.images[]",
			"should match"},
		"exception for a tag and digest": {"Exception", "{until: '2026-12-31T18:00:00Z', reason: r, ticket: t, images: ['r.example.com/app:v1@sha256:0']}",
			"spec.images[]", "should match"},
		"delegation for a tag": {"ClusterException", "{until: '2026-12-31T18:00:00Z', reason: r, delegate: {images: ['r.example.com/app:v1'], " +
			"namespaces: [a]}}", "spec.delegate.images[]", "should match"},
		"rule without a demand": {"VerificationPolicy", "{rules: [{images: ['**'], require: []}]}", "spec.rules[].require", "at least 1"},
		"nobody needs to sign": {"VerificationPolicy", "{rules: [{images: ['**'], require: [{anyOf: [v], atLeast: 0}]}]}", "spec.rules[].require[].atLeast",
			"greater than or equal to 1"},
		"no type": {"Verifier", "{" + cosign + "}", "spec.type", "Required value"},
		"no identity": {"Verifier", "{type: Notation, notation: {trustStoreRefs: [{name: c}], trustedIdentities: []}}",
			"spec.notation.trustedIdentities", "at least 1"},
		"no key": {"Verifier", "{type: Cosign, cosign: {keys: {trustStoreRefs: []}}}", "spec.cosign.keys.trustStoreRefs", "at least 1"},
		"keys without end": {"Verifier", "{type: Cosign, cosign: {keys: {inline: '" + strings.Repeat("x", 32769) + "'}}}", "spec.cosign.keys.inline",
			"may not be more than 32768 bytes"},
		"timestamps of nobody": {"Verifier", fmt.Sprintf(notationOf, "timestamps: {verifyTimestamp: Always}"), "spec.notation.timestamps.trustStoreRefs",
			"Required value"},
		"reference to nothing": {"Verifier", "{type: Cosign, cosign: {keys: {trustStoreRefs: [{kind: TrustStore}], insecureIgnoreTransparencyLog: true}}}",
			"spec.cosign.keys.trustStoreRefs[].name", "Required value"},
		"empty identity": {"Verifier", "{type: Cosign, cosign: {keyless: {identities: [{issuer: '', subject: s}]}}}",
			"spec.cosign.keyless.identities[].issuer", "at least 1 chars"},
		"quota for no Tenant": {"ClusterQuota", "{tenants: [Iris_Green], cacheSharePercent: 1}", "spec.tenants[]", "should match"},
		"quota for a pattern": {"ClusterQuota", "{namespaces: ['team-*'], cacheSharePercent: 1}", "spec.namespaces[]", "should match"},
		"more than all":       {"ClusterQuota", "{namespaces: [a], cacheSharePercent: 101}", "spec.cacheSharePercent", "less than or equal to 100"},
		"no image in flight":  {"ClusterQuota", "{namespaces: [a], maxInFlight: 31}", "spec.maxInFlight", "greater than or equal to 32"},
		"no request at all": {"ClusterQuota", "{namespaces: [a], registryRequestsPerSecond: 0}", "spec.registryRequestsPerSecond",
			"greater than or equal to 1"},
		"no source": {"TrustStore", "{type: PublicKeys}", "spec.source", "Required value"},

		// A namespaced resource uses what its own namespace has, a cluster resource what one
		// namespace has.
		"Secret that says whose": {"ClusterTrustStore", "{type: PublicKeys, source: {secretKeyRef: {namespace: other, name: s, key: k}}}",
			"spec.source.secretKeyRef.namespace", "unknown field"},
		"pull secret that says whose": {"ClusterStore", "{registries: [r.example.com], imagePullSecrets: [{namespace: other, name: s}]}",
			"spec.imagePullSecrets[].namespace", "unknown field"},
		"Secret of another namespace": {"TrustStore", "{type: PublicKeys, source: {secretKeyRef: {namespace: other, name: s, key: k}}}",
			"spec.source.secretKeyRef.namespace", "unknown field"},
		"pull secret of another namespace": {"Store", "{registries: [r.example.com], imagePullSecrets: [{namespace: other, name: s}]}",
			"spec.imagePullSecrets[].namespace", "unknown field"},
		"account of another namespace": {"Store", "{registries: [r.example.com], imagePullSecretsFrom: {serviceAccount: {namespace: other, name: s}}}",
			"spec.imagePullSecretsFrom.serviceAccount.namespace", "unknown field"},
		"login as another's account": {"Store", "{registries: [r.example.com], identity: {provider: ECR, serviceAccount: {namespace: other, name: s, " + inAWS +
			"}}}", "spec.identity.serviceAccount.namespace", "unknown field"},
		"key as another's account": {"TrustStore", "{type: PublicKeys, source: {kms: {uri: 'awskms:///k', serviceAccount: {namespace: other, name: s}}}}",
			"spec.source.kms.serviceAccount.namespace", "unknown field"},
		"Vault as another's account": {"TrustStore", "{type: PublicKeys, source: {vault: {address: 'https://v', path: p, serviceAccount: {namespace: other, " +
			"name: s, role: r}}}}", "spec.source.vault.serviceAccount.namespace", "unknown field"},
		"Vault without a role": {"TrustStore", "{type: PublicKeys, source: {vault: {address: 'https://v', path: p, serviceAccount: {name: s}}}}",
			"spec.source.vault.serviceAccount.role", "Required value"},
		"AWS Signer as another's account": {"TrustStore", "{type: SigningAuthorities, source: {inline: x}, awsSigner: {serviceAccount: {namespace: " +
			"other, name: s}}}", "spec.awsSigner.serviceAccount.namespace", "unknown field"},
		"certificate of another namespace": {"Store", "{registries: [r.example.com], clientCertificate: {secretRef: {namespace: other, name: s}}}",
			"spec.clientCertificate.secretRef.namespace", "unknown field"},
		"certificate of nobody": {"Store", "{registries: [r.example.com], clientCertificate: {}}", "spec.clientCertificate.secretRef", "Required value"},
		"tenant with a proxy":   {"Store", "{registries: [r.example.com], proxy: {url: 'http://p:3128'}}", "spec.proxy", "only a ClusterStore"},
		"proxy with a password": {"ClusterStore", "{registries: [r.example.com], proxy: {url: 'http://me:secret@p:3128'}}", "spec.proxy.url",
			"should match"},
		"proxy that is no HTTP proxy": {"ClusterStore", "{registries: [r.example.com], proxy: {url: 'socks5://p:1080'}}", "spec.proxy.url", "should match"},
		"role that is a user": {"Store", "{registries: [r.example.com], identity: {provider: ECR, serviceAccount: {name: s, aws: {roleARN: " +
			"'arn:aws:iam::123456789012:user/u'}}}}", "spec.identity.serviceAccount.aws.roleARN", "should match"},
		"role left empty": {"Store", "{registries: [r.example.com], identity: {provider: ECR, serviceAccount: {name: s, aws: {roleARN: ''}}}}",
			"spec.identity.serviceAccount.aws.roleARN", "at least 1 chars"},
		"Entra tenant left empty": {"Store", "{registries: [r.example.com], identity: {provider: ACR, serviceAccount: {name: s, azure: {tenantID: '', " +
			"clientID: c}}}}", "spec.identity.serviceAccount.azure.tenantID", "at least 1 chars"},
		"Entra client left empty": {"Store", "{registries: [r.example.com], identity: {provider: ACR, serviceAccount: {name: s, azure: {tenantID: t, " +
			"clientID: ''}}}}", "spec.identity.serviceAccount.azure.clientID", "at least 1 chars"},
		"region left empty": {"Store", "{registries: [r.example.com], identity: {provider: ECR, serviceAccount: {name: s, aws: {roleARN: '" + role +
			"', region: ''}}}}", "spec.identity.serviceAccount.aws.region", "at least 1 chars"},
		"pool by another name": {"Store", "{registries: [r.example.com], identity: {provider: GAR, serviceAccount: {name: s, google: {provider: pool}}}}",
			"spec.identity.serviceAccount.google.provider", "should match"},
		"nine more bundles": {"Store", "{registries: [r.example.com], additionalCABundles: [" + strings.Repeat("{inline: x}, ", 9) + "]}",
			"spec.additionalCABundles", "at most 8"},
		"revocation lists of nobody": {"Verifier", fmt.Sprintf(notationOf, "revocation: Check, revocationListTrustStoreRefs: []"),
			"spec.notation.revocationListTrustStoreRefs", "at least 1"},
		"key with the pod's identity": {"TrustStore", "{type: PublicKeys, source: {kms: {uri: 'awskms:///k'}}}", "spec.source.kms",
			"set secretRef or serviceAccount"},
		"login with the pod's identity": {"Store", "{registries: [r.example.com], identity: {provider: ECR}}", "spec.identity", "set secretRef or serviceAccount"},
		"AWS Signer with the pod's": {"TrustStore", "{type: SigningAuthorities, source: {inline: x}, awsSigner: {}}", "spec.awsSigner",
			"set secretRef or serviceAccount"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := all[c.kind].check(t, object(c.kind, c.spec))
			require.NotEmpty(t, errs)
			require.Equal(t, c.path, at(errs[0]))
			require.Contains(t, errs[0].Error(), c.message)
		})
	}
}

func TestSpecificationIsRequired(t *testing.T) {
	for kind, c := range crds(t) {
		text := strings.Replace(object(kind, "{}"), "spec: {}", "", 1)
		require.Contains(t, c.check(t, text).ToAggregate().Error(), "spec: Required value", kind)
	}
}
