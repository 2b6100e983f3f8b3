package resolve_test

import (
	"cmp"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

// Every kind falls back on its own, and as a whole.
func TestEachKindFallsBackOnItsOwn(t *testing.T) {
	keys := written.InlineKey(string(written.NewKey(t).PEM))
	own := map[string]string{
		"Verifier":           written.Object("TrustStore", "team-a", "keys", keys) + "\n---\n" + written.Object("Verifier", "team-a", "own", written.CosignVerifier),
		"Store":              written.Object("Store", "team-a", "own", "registries: [own.example.com]"),
		"VerificationPolicy": written.Object("VerificationPolicy", "team-a", "own", written.PolicySpec("{types: [Cosign]}")),
	}
	cluster := map[string]string{
		"Verifier": written.Object("ClusterTrustStore", "", "keys", keys) + "\n---\n" +
			written.Object("ClusterVerifier", "", "shared", written.CosignVerifier),
		"Store":              written.Object("ClusterStore", "", "shared", "registries: [shared.example.com]"),
		"VerificationPolicy": written.Object("ClusterVerificationPolicy", "", "shared", written.PolicySpec("{types: [Cosign]}")),
	}
	for _, kind := range []string{"Verifier", "Store", "VerificationPolicy"} {
		for name, c := range map[string]struct {
			documents []string
			level     string
			applied   []policy.ObjectRef
		}{
			"namespace only": {[]string{own[kind]}, "namespace", []policy.ObjectRef{{Kind: kind, Namespace: "team-a", Name: "own"}}},
			"cluster only":   {[]string{cluster[kind]}, "cluster", []policy.ObjectRef{{Kind: "Cluster" + kind, Name: "shared"}}},
			"both": {[]string{own[kind], strings.ReplaceAll(cluster[kind], "shared.example.com", "own.example.com")}, "namespace",
				[]policy.ObjectRef{{Kind: kind, Namespace: "team-a", Name: "own"}}},
			"neither": {nil, "none", []policy.ObjectRef{}},
		} {
			t.Run(kind+", "+name, func(t *testing.T) {
				snapshot, problems := written.Compiled(written.Objects(t, append(c.documents, written.Namespace("team-a", "1"))...))
				require.Empty(t, problems)
				for _, choice := range snapshot.Explain("team-a") {
					if choice.Kind == kind {
						require.Equal(t, c.level, choice.Level)
						require.Equal(t, c.applied, choice.Applied)
						require.NotEmpty(t, choice.Why)
					} else {
						require.Equal(t, "none", choice.Level, "another kind is not touched")
					}
				}
				inConfig(t, snapshot.For("team-a"), kind, c.applied)
				// Another namespace, and the cluster itself, never see what is team-a's.
				for _, other := range []verify.Namespace{"team-b", verify.Cluster} {
					for _, choice := range snapshot.Explain(other) {
						for _, applied := range choice.Applied {
							require.Empty(t, applied.Namespace)
						}
					}
				}
			})
		}
	}
}

// inConfig checks that the engine gets what Explain says.
func inConfig(t *testing.T, config *verify.Config, kind string, applied []policy.ObjectRef) {
	t.Helper()
	tier := config.Tiers[0]
	got := []policy.ObjectRef{}
	switch kind {
	case "Verifier":
		for _, v := range tier.Verifiers {
			got = append(got, v.Source)
		}
	case "Store":
		for _, s := range tier.Registry.(*written.NoRegistry).Access.Stores {
			got = append(got, s.Source)
		}
	case "VerificationPolicy":
		require.Equal(t, len(applied) == 0, reflect.DeepEqual(tier.Judge, verify.ByVerifiers()))
		for _, r := range tier.Judge.Rules() {
			got = append(got, r.Source)
		}
	}
	require.Equal(t, applied, got)
}

func TestPoliciesAreConcatenatedByNameAndDenyPrevails(t *testing.T) {
	lax := "defaultAction: Allow\nrules: [{images: [\"r.example.com/z/**\"], require: [{types: [Cosign]}]}]"
	strict := written.PolicySpec("{types: [Cosign]}")
	snapshot, problems := written.Compiled(written.Objects(t, written.Object("VerificationPolicy", "team-a", "z-strict", strict),
		written.Object("VerificationPolicy", "team-a", "a-lax", lax)))
	require.Empty(t, problems)
	tier := snapshot.For("team-a").Tiers[0]
	require.Equal(t, "a-lax", tier.Judge.Rules()[0].Source.Name)
	require.Equal(t, "z-strict", tier.Judge.Rules()[1].Source.Name)
	require.Equal(t, verify.DefaultDeny, tier.Judge.Default(), "one policy that denies by default makes all do")

	both, _ := written.Compiled(written.Objects(t, written.Object("VerificationPolicy", "team-a", "b", lax),
		written.Object("VerificationPolicy", "team-a", "a", lax)))
	require.Equal(t, verify.DefaultAllow, both.For("team-a").Tiers[0].Judge.Default())
}

func TestMandatoryPoliciesApplyEverywhereWithClusterResources(t *testing.T) {
	keys := written.InlineKey(string(written.NewKey(t).PEM))
	snapshot, problems := written.Compiled(written.Objects(t,
		written.Object("ClusterTrustStore", "", "keys", keys), written.Object("ClusterVerifier", "", "base", written.CosignVerifier),
		written.Object("ClusterStore", "", "shared", "registries: [shared.example.com]"),
		written.Object("ClusterVerificationPolicy", "", "mandatory", "scope: Mandatory\n"+written.PolicySpec("{anyOf: [base]}")),
		written.Object("VerificationPolicy", "team-a", "lax", "defaultAction: Allow"),
		written.Object("TrustStore", "team-a", "keys", keys), written.Object("Verifier", "team-a", "base", written.CosignVerifier),
		written.Object("Store", "team-a", "own", "registries: [own.example.com]"),
	))
	require.Empty(t, problems)
	for _, ns := range []verify.Namespace{"team-a", "team-without-resources", verify.Cluster} {
		tiers := snapshot.For(ns).Tiers
		require.Len(t, tiers, 2, ns)
		mandatory := tiers[1]
		require.Equal(t, policy.ObjectRef{Kind: "ClusterVerificationPolicy", Name: "mandatory"}, mandatory.Source)
		require.Equal(t, "ClusterVerifier base", mandatory.Verifiers[0].Source.String(), "a tenant's verifier of the same name does not stand in")
		require.Equal(t, "shared", mandatory.Registry.(*written.NoRegistry).Access.Stores[0].Source.Name)
	}
	require.Equal(t, []string{"own", "shared"}, storesOf(snapshot.For("team-a").Tiers[0]), "the namespace's Store leaves the other hosts to the cluster's")
	require.Equal(t, verify.ByVerifiers(), snapshot.For("team-b").Tiers[0].Judge,
		"a mandatory policy only adds: without another policy all verifiers must still pass")
}

func TestBrokenResourcesDenyWhereTheyApplyAndNowhereElse(t *testing.T) {
	keys := written.InlineKey(string(written.NewKey(t).PEM))
	team := func(ns string) []string {
		return []string{
			written.Object("TrustStore", ns, "keys", keys), written.Object("Verifier", ns, "release", written.CosignVerifier),
			written.Object("Store", ns, "own", "registries: [own.example.com]"),
			written.Object("VerificationPolicy", ns, "strict", written.PolicySpec("{anyOf: [release]}")),
		}
	}
	healthy := append(team("team-b"), written.Object("ClusterTrustStore", "", "keys", keys),
		written.Object("ClusterVerifier", "", "release", written.CosignVerifier),
		written.Object("ClusterVerificationPolicy", "", "fallback", "defaultAction: Allow"))
	const refused = "this version's CRD refuses it"
	cases := map[string]struct {
		kind, name, spec, problem, reason string
	}{
		"missing Secret": {"TrustStore", "keys", "type: PublicKeys\nsource: {secretKeyRef: {name: gone, key: cosign.pub}}",
			"Secret team-a/gone does not exist", "TrustStore team-a/keys cannot be used"},
		"missing ConfigMap": {"TrustStore", "keys", "type: PublicKeys\nsource: {configMapKeyRef: {name: gone, key: cosign.pub}}",
			"ConfigMap team-a/gone does not exist", "TrustStore team-a/keys"},
		"no source": {"TrustStore", "keys", "type: PublicKeys\nsource: {}", refused, "TrustStore team-a/keys"},
		"two sources": {"TrustStore", "keys", "type: PublicKeys\nsource: {inline: x, secretKeyRef: {name: x, key: y}}", refused,
			"TrustStore team-a/keys"},
		"no key in it":          {"TrustStore", "keys", "type: PublicKeys\nsource: {inline: rubbish}", "PEM", "TrustStore team-a/keys"},
		"unknown type":          {"TrustStore", "keys", "type: Keys\nsource: {inline: x}", refused, "TrustStore team-a/keys"},
		"no type":               {"TrustStore", "keys", "source: {inline: x}", "spec.type", "TrustStore team-a/keys"},
		"wrong type for cosign": {"TrustStore", "keys", "type: Certificates\nsource: {inline: x}", "", "TrustStore team-a/keys"},
		"unknown hash":          {"TrustStore", "keys", "hash: MD5\n" + keys, refused, "TrustStore team-a/keys"},
		"vault": {"TrustStore", "keys", "type: PublicKeys\nsource: {vault: {address: x, path: p, tokenSecretKeyRef: {name: gone, key: t}}}",
			"Secret team-a/gone does not exist", "TrustStore team-a/keys"},
		"timestamp authorities": {"TrustStore", "keys", "type: TimestampAuthorities\nsource: {inline: x}", "text without a PEM block",
			"TrustStore team-a/keys"},
		"notation revocation": {"Verifier", "release", "type: Notation\nnotation: {trustStoreRefs: [{name: keys}], trustedIdentities: [\"*\"], " +
			"revocation: Maybe}", refused, "Verifier team-a/release"},
		"notation override": {"Verifier", "release", "type: Notation\nnotation: {trustStoreRefs: [{name: keys}], trustedIdentities: [\"*\"], " +
			"overrides: {expiry: Skip}}", refused, "Verifier team-a/release"},
		"notation level audit": {"Verifier", "release", "type: Notation\nnotation: {trustStoreRefs: [{name: keys}], trustedIdentities: [\"*\"], " +
			"level: Audit}", refused, "Verifier team-a/release"},
		"notation without trust": {"Verifier", "release", "type: Notation\nnotation: {trustedIdentities: [\"*\"]}", refused, "Verifier team-a/release"},
		"bad pattern":            {"Verifier", "release", "images: [nginx]\n" + written.CosignVerifier, "spec.images[0]", "Verifier team-a/release"},
		"trust store that " +
			"does not exist": {"Verifier", "release", "type: Cosign\ncosign: {keys: {trustStoreRefs: [{name: gone}], insecureIgnoreTransparencyLog: true}}",
			"TrustStore team-a/gone does not exist", "Verifier team-a/release"},
		"unknown trust store kind": {"Verifier", "release", "type: Cosign\ncosign: {keys: {trustStoreRefs: [{kind: Secret, name: keys}], " +
			"insecureIgnoreTransparencyLog: true}}", "must be TrustStore or ClusterTrustStore", "Verifier team-a/release"},
		"missing pull secret": {"Store", "own", "registries: [own.example.com]\nimagePullSecrets: [{name: gone}]", "Secret team-a/gone does not exist",
			"Store team-a/own cannot be used"},
		"bad CA":                 {"Store", "own", "registries: [own.example.com]\ncaBundle: {inline: rubbish}", "spec.caBundle", "Store team-a/own"},
		"CA without source":      {"Store", "own", "registries: [own.example.com]\ncaBundle: {}", refused, "Store team-a/own"},
		"no registry":            {"Store", "own", "registries: []", refused, "Store team-a/own"},
		"registry with a scheme": {"Store", "own", "registries: [\"http://own.example.com\"]", "not a host", "Store team-a/own"},
		"rule without images": {"VerificationPolicy", "strict", "rules: [{require: [{anyOf: [release]}]}]", "spec.rules[0].images is empty",
			"VerificationPolicy team-a/strict cannot be used"},
		"rule without requirements": {"VerificationPolicy", "strict", "rules: [{images: [\"**\"], require: []}]", refused, "VerificationPolicy team-a/strict"},
		"empty requirement":         {"VerificationPolicy", "strict", written.PolicySpec("{}"), refused, "VerificationPolicy team-a/strict"},
		"empty anyOf":               {"VerificationPolicy", "strict", written.PolicySpec("{anyOf: []}"), refused, "VerificationPolicy team-a/strict"},
		"anyOf and allOf": {"VerificationPolicy", "strict", written.PolicySpec("{anyOf: [a], allOf: [b]}"), refused,
			"VerificationPolicy team-a/strict"},
		"atLeast zero": {"VerificationPolicy", "strict", written.PolicySpec("{anyOf: [release], atLeast: 0}"), "atLeast is 0",
			"VerificationPolicy team-a/strict"},
		"atLeast negative": {"VerificationPolicy", "strict", written.PolicySpec("{anyOf: [release], atLeast: -1}"), "atLeast is -1",
			"VerificationPolicy team-a/strict"},
		"unknown verifier type": {"VerificationPolicy", "strict", written.PolicySpec("{types: [Pgp]}"), refused, "VerificationPolicy team-a/strict"},
		"unknown default":       {"VerificationPolicy", "strict", "defaultAction: Maybe", refused, "VerificationPolicy team-a/strict"},
		"unknown index mode": {"VerificationPolicy", "strict", "rules: [{images: [\"**\"], index: Any, require: [{anyOf: [release]}]}]", refused,
			"VerificationPolicy team-a/strict"},
		"expression that is no CEL": {"VerificationPolicy", "strict", written.PolicySpec("{expression: \"findings.\"}"),
			"spec.rules[0].require[0].expression: the expression is not valid CEL: line 1, column ", "VerificationPolicy team-a/strict"},
		"expression of something else": {"VerificationPolicy", "strict", written.PolicySpec("{expression: \"predicate.a == 1\"}"), "undeclared reference",
			"VerificationPolicy team-a/strict"},
		"expression that grows": {"VerificationPolicy", "strict", written.PolicySpec("{expression: \"[findings, findings].exists(a, true)\"}"),
			"a list of something else than constants", "VerificationPolicy team-a/strict"},
		"expression and anyOf": {"VerificationPolicy", "strict", written.PolicySpec("{anyOf: [release], expression: \"true\"}"), refused,
			"VerificationPolicy team-a/strict"},
		"kms": {"TrustStore", "keys", "type: PublicKeys\nsource: {kms: {uri: \"awskms:///x\", secretRef: {name: gone}}}",
			"Secret team-a/gone does not exist", "TrustStore team-a/keys"},
		"kms without credentials": {"TrustStore", "keys", "type: PublicKeys\nsource: {kms: {uri: \"awskms:///x\"}}",
			"spec.source.kms needs secretRef or serviceAccount", "TrustStore team-a/keys"},
		"kms by two ways": {"TrustStore", "keys", "type: PublicKeys\nsource: {kms: {uri: \"awskms:///x\", secretRef: {name: s}, serviceAccount: " +
			"{name: puller, aws: {roleARN: r}}}}", refused, "TrustStore team-a/keys"},
		"kms as nobody": {"TrustStore", "keys", "type: PublicKeys\nsource: {kms: {uri: \"awskms:///x\", serviceAccount: {name: '', aws: " +
			"{roleARN: r}}}}", "spec.source.kms.serviceAccount: the reference to a ServiceAccount has no name", "TrustStore team-a/keys"},
		"vault by no way": {"TrustStore", "keys", "type: PublicKeys\nsource: {vault: {address: \"https://v\", path: p}}", refused,
			"TrustStore team-a/keys"},
		"vault by two ways": {"TrustStore", "keys", "type: PublicKeys\nsource: {vault: {address: \"https://v\", path: p, tokenSecretKeyRef: {name: " +
			"s, key: k}, serviceAccount: {name: puller, role: r}}}", refused, "TrustStore team-a/keys"},
		"vault without a role": {"TrustStore", "keys", "type: PublicKeys\nsource: {vault: {address: \"https://v\", path: p, serviceAccount: " +
			"{name: puller}}}", refused, "TrustStore team-a/keys"},
		"ECR without a role": {"Store", "registry", "registries: [123456789012.dkr.ecr.eu-west-1.amazonaws.com]\nidentity: {provider: ECR, " +
			"serviceAccount: {name: puller}}", refused, "Store team-a/registry"},
		"ACR without a client": {"Store", "registry", "registries: [team.azurecr.io]\nidentity: {provider: ACR, serviceAccount: {name: puller, azure: " +
			"{tenantID: t}}}", refused, "Store team-a/registry"},
		"GAR without a provider": {"Store", "registry", "registries: [gcr.io]\nidentity: {provider: GAR, serviceAccount: {name: puller}}", refused,
			"Store team-a/registry"},
		"GHCR as a ServiceAccount": {"Store", "registry", "registries: [ghcr.io]\nidentity: {provider: GHCR, serviceAccount: {name: puller}}", refused,
			"Store team-a/registry"},
		"a login by two ways": {"Store", "registry", "registries: [gcr.io]\nidentity: {provider: GAR, secretRef: {name: s}, serviceAccount: {name: " +
			"puller, google: {provider: p}}}", refused, "Store team-a/registry"},
		"no type of verifier": {"Verifier", "release", "images: [\"**\"]", refused, "Verifier team-a/release cannot be used"},
		"unknown type of verifier": {"Verifier", "release", "type: Pgp\ncosign: {keys: {trustStoreRefs: [{name: keys}], insecureIgnoreTransparencyLog: true}}",
			refused, "Verifier team-a/release cannot be used"},
		"type without its field": {"Verifier", "release", "type: Cosign", refused, "Verifier team-a/release cannot be used"},
		"field of another type": {"Verifier", "release", "type: Notation\ncosign: {keys: {trustStoreRefs: [{name: keys}], " +
			"insecureIgnoreTransparencyLog: true}}", refused, "Verifier team-a/release cannot be used"},
		"two kinds of verifier": {"Verifier", "release", written.CosignVerifier + "\nnotation: {trustStoreRefs: [{name: keys}], " +
			"trustedIdentities: [\"*\"]}", refused, "Verifier team-a/release"},
		"no signers": {"Verifier", "release", "type: Cosign\ncosign: {}", refused, "Verifier team-a/release"},
		"no keys":    {"Verifier", "release", "type: Cosign\ncosign: {keys: {trustStoreRefs: []}}", refused, "Verifier team-a/release"},
		"keys in two places": {"Verifier", "release", "type: Cosign\ncosign: {keys: {inline: x, trustStoreRefs: [{name: keys}], " +
			"insecureIgnoreTransparencyLog: true}}", refused, "Verifier team-a/release"},
		"text that is no key": {"Verifier", "release", "type: Cosign\ncosign: {keys: {inline: x, insecureIgnoreTransparencyLog: true}}",
			"spec.cosign.keys.inline: parse public keys: found text without a PEM block", "Verifier team-a/release"},
		"a key that is cut off": {"Verifier", "release", "type: Attestation\nattestation: {predicateType: x, keys: {inline: \"-----BEGIN PUBLIC " +
			"KEY-----\\nMFk\", insecureIgnoreTransparencyLog: true}}", "spec.attestation.keys.inline: parse public keys: PEM block 1 is damaged",
			"Verifier team-a/release"},
		"keys without their log": {"Verifier", "release", "type: Cosign\ncosign: {keys: {trustStoreRefs: [{name: keys}]}}",
			"spec.cosign.keys.rootTrustStoreRef: signatures by keys must be in a transparency log; the default is Sigstore's public-good root, which cannot be used",
			"Verifier team-a/release"},
		"a log that is ignored": {"Verifier", "release", "type: Cosign\ncosign: {keys: {trustStoreRefs: [{name: keys}], rootTrustStoreRef: {name: keys}, " +
			"insecureIgnoreTransparencyLog: true}}", refused, "Verifier team-a/release"},
		"keyless": {"Verifier", "release", "type: Cosign\ncosign: {keyless: {identities: [{issuer: i, subject: s}]}}",
			"Sigstore's TUF repository is not fetched here", "Verifier team-a/release"},
		"identity without its root": {"Verifier", "release", "type: Cosign\ncosign: {keyless: {identities: [{issuer: i, subjectRegExp: \"([\"}]}}",
			"spec.cosign.keyless.identities[0].subjectRegExp: ", "Verifier team-a/release"},
		"expression without its keys": {"Verifier", "release", "type: Attestation\nattestation: {predicateType: x, keys: {trustStoreRefs: [{name: gone}], " +
			"insecureIgnoreTransparencyLog: true}, expression: \"unknown\"}", "spec.attestation.expression: ", "Verifier team-a/release"},
		"keys and keyless": {"Verifier", "release", "type: Cosign\ncosign: {keys: {trustStoreRefs: [{name: keys}], insecureIgnoreTransparencyLog: " +
			"true}, keyless: {identities: [{issuer: i, subject: s}]}}", refused, "Verifier team-a/release"},
		"log that is no root": {"Verifier", "release", "type: Cosign\ncosign: {keys: {trustStoreRefs: [{name: keys}], rootTrustStoreRef: {name: keys}}}",
			"spec.cosign.keys.rootTrustStoreRef: TrustStore team-a/keys is of type PublicKeys, it must be of type SigstoreRoot", "Verifier team-a/release"},
		"log that does not exist": {"Verifier", "release", "type: Attestation\nattestation: {predicateType: x, keys: {trustStoreRefs: [{name: keys}], " +
			"rootTrustStoreRef: {name: gone}}}", "spec.attestation.keys.rootTrustStoreRef: TrustStore team-a/gone does not exist", "Verifier team-a/release"},
		"attestation": {"Verifier", "release", "type: Attestation\nattestation: {predicateType: x}", refused, "Verifier team-a/release"},
		"notation timestamp mode": {"Verifier", "release", "type: Notation\nnotation: {trustStoreRefs: [{name: keys}], trustedIdentities: [\"*\"], " +
			"timestamps: {trustStoreRefs: [{name: keys}], verifyTimestamp: Never}}", refused, "Verifier team-a/release"},
		"notation timestamps of nobody": {"Verifier", "release", "type: Notation\nnotation: {trustStoreRefs: [{name: certificates}], trustedIdentities: [\"*\"], " +
			"timestamps: {trustStoreRefs: []}}", refused, "Verifier team-a/release"},
		"keys for notation": {"Verifier", "release", "type: Notation\nnotation: {trustStoreRefs: [{name: keys}], trustedIdentities: [\"*\"]}",
			"it must be of type Certificates", "Verifier team-a/release"},
		"trust store without a name": {"Verifier", "release", "type: Cosign\ncosign: {keys: {trustStoreRefs: [{}], insecureIgnoreTransparencyLog: true}}",
			"has no name", "Verifier team-a/release"},
		"unknown enforcement": {"VerificationPolicy", "strict", "enforcementAction: Audit\n" + written.PolicySpec("{anyOf: [release]}"), refused,
			"VerificationPolicy team-a/strict"},
		"unknown rule action": {"VerificationPolicy", "strict", "rules: [{images: [\"**\"], action: Skip}]", refused, "VerificationPolicy team-a/strict"},
		"allowing with requirements": {"VerificationPolicy", "strict", "rules: [{images: [\"**\"], action: Allow, require: [{anyOf: [release]}]}]", refused,
			"VerificationPolicy team-a/strict"},
		"signer's expression": {"Verifier", "release", "type: Attestation\nattestation: {predicateType: x, keys: {trustStoreRefs: [{name: keys}], " +
			"insecureIgnoreTransparencyLog: true}, expression: \"unknown\"}", "spec.attestation.expression: ", "Verifier team-a/release"},
		"a scope in a namespace": {"VerificationPolicy", "strict", "scope: Mandatory\n" + written.PolicySpec("{anyOf: [release]}"), refused,
			"VerificationPolicy team-a/strict"},
		"a proxy of a namespace": {"Store", "registry", "registries: [r.example.com]\nproxy: {url: 'http://proxy.example.com'}", refused,
			"Store team-a/registry"},
		"plain HTTP of a namespace": {"Store", "registry", "registries: [r.example.com]\ninsecurePlainHTTP: true", refused, "Store team-a/registry"},
		"two clouds": {"Store", "registry", "registries: [r.azurecr.io]\nidentity: {provider: ACR, serviceAccount: {name: s, aws: {roleARN: " +
			"r}, azure: {tenantID: t, clientID: c}}}", refused, "Store team-a/registry"},
		"a key of another cloud": {"TrustStore", "keys", "type: PublicKeys\nsource: {kms: {uri: \"gcpkms://k\", serviceAccount: {name: s, aws: " +
			"{roleARN: r}}}}", refused, "TrustStore team-a/keys"},
		"bad pattern in a rule": {"VerificationPolicy", "strict", "rules: [{images: [\"*\"], require: [{anyOf: [release]}]}]", "spec.rules[0].images[0]",
			"VerificationPolicy team-a/strict"},
	}
	good, problems := written.Compiled(written.Objects(t, append(healthy, team("team-a")...)...))
	require.Empty(t, problems)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var documents []string
			for _, document := range team("team-a") {
				if !strings.HasPrefix(document, "kind: "+c.kind+"\n") {
					documents = append(documents, document)
				}
			}
			objects := written.Objects(t, append(append(healthy, documents...), written.Object(c.kind, "team-a", c.name, c.spec))...)
			if c.problem == refused {
				objects = written.AsRead(t, objects)
			}
			snapshot, problems := written.Compiled(objects)
			require.NotEmpty(t, problems)
			require.Equal(t, policy.ObjectRef{Kind: c.kind, Namespace: "team-a", Name: c.name}, problems[0].Source)
			require.Contains(t, problems[0].Message, c.problem)
			require.Contains(t, written.WhyUnusable(snapshot.For("team-a")), c.reason)
			require.NotEqual(t, good.For("team-a").Generation, snapshot.For("team-a").Generation)
			for _, other := range []verify.Namespace{"team-b", "team-c", verify.Cluster} {
				require.Empty(t, written.WhyUnusable(snapshot.For(other)))
				require.Equal(t, good.For(other).Generation, snapshot.For(other).Generation)
			}
		})
	}
}

func TestObjectsThatCouldNotBeReadKeepTheirPlace(t *testing.T) {
	unreadable := errors.New("line 3: unknown field spec.kyes")
	keys := written.InlineKey(string(written.NewKey(t).PEM))
	base := []string{written.Object("ClusterTrustStore", "", "keys", keys), written.Object("ClusterVerifier", "", "release", written.CosignVerifier),
		written.Object("ClusterVerificationPolicy", "", "fallback", written.PolicySpec("{anyOf: [release]}")), written.Object("TrustStore", "team-a", "keys", keys)}
	for kind, want := range map[string]string{
		"Verifier": "Verifier team-a/x cannot be used", "Store": "Store team-a/x cannot be used",
		"VerificationPolicy": "VerificationPolicy team-a/x cannot be used", "Namespace": "Namespace team-a cannot be read",
	} {
		t.Run(kind, func(t *testing.T) {
			o := written.Objects(t, base...)
			source := policy.ObjectRef{Kind: kind, Namespace: "team-a", Name: "x"}
			if kind == "Namespace" {
				source = policy.ObjectRef{Kind: kind, Name: "team-a"}
			}
			o.Broken = []resource.Broken{{Source: source, Err: unreadable}}
			snapshot, problems := written.Compiled(o)
			require.Equal(t, source, problems[0].Source)
			require.Contains(t, written.WhyUnusable(snapshot.For("team-a")), want)
			require.Contains(t, written.WhyUnusable(snapshot.For("team-a")), "spec.kyes")
			require.Empty(t, written.WhyUnusable(snapshot.For("team-b")))
		})
	}
	for _, kind := range []string{"Secret", "ConfigMap"} {
		t.Run(kind, func(t *testing.T) {
			field := strings.ToLower(kind[:1]) + kind[1:] + "KeyRef"
			o := written.Objects(t, written.Object("TrustStore", "team-a", "keys", "type: PublicKeys\nsource: {"+field+": {name: x, key: k}}"),
				written.Object("Verifier", "team-a", "v", written.CosignVerifier))
			o.Broken = []resource.Broken{{Source: policy.ObjectRef{Kind: kind, Namespace: "team-a", Name: "x"}, Err: unreadable}}
			snapshot, _ := written.Compiled(o)
			require.Contains(t, written.WhyUnusable(snapshot.For("team-a")), kind+" team-a/x cannot be read")
		})
	}
	t.Run("a cluster policy may have been a mandatory policy", func(t *testing.T) {
		o := written.Objects(t, written.Object("VerificationPolicy", "team-a", "lax", "defaultAction: Allow"))
		o.Broken = []resource.Broken{{Source: policy.ObjectRef{Kind: "ClusterVerificationPolicy", Name: "x"}, Err: unreadable}}
		snapshot, _ := written.Compiled(o)
		for _, ns := range []verify.Namespace{"team-a", "team-b", verify.Cluster} {
			require.Contains(t, written.WhyUnusable(snapshot.For(ns)), "ClusterVerificationPolicy x cannot be used")
		}
	})
}

func TestTrustStoreReferencesStayWithinTheirReach(t *testing.T) {
	keys := written.InlineKey(string(written.NewKey(t).PEM))
	stores := []string{written.Object("TrustStore", "team-a", "keys", keys), written.Object("TrustStore", "team-b", "only-b", keys),
		written.Object("ClusterTrustStore", "", "corp", keys)}
	for name, c := range map[string]struct{ kind, namespace, ref, want string }{
		"own by default":           {"Verifier", "team-a", "{name: keys}", ""},
		"own spelt out":            {"Verifier", "team-a", "{kind: TrustStore, name: keys}", ""},
		"the cluster's":            {"Verifier", "team-a", "{kind: ClusterTrustStore, name: corp}", ""},
		"the cluster's by name":    {"Verifier", "team-a", "{name: corp}", "TrustStore team-a/corp does not exist"},
		"another namespace's":      {"Verifier", "team-a", "{name: only-b}", "TrustStore team-a/only-b does not exist"},
		"a path to another":        {"Verifier", "team-a", "{name: ../team-b/only-b}", "does not exist"},
		"cluster's own":            {"ClusterVerifier", "", "{name: corp}", ""},
		"cluster's own spelt out":  {"ClusterVerifier", "", "{kind: ClusterTrustStore, name: corp}", ""},
		"a tenant's from above":    {"ClusterVerifier", "", "{kind: TrustStore, name: keys}", "belongs to a namespace"},
		"a tenant's name, cluster": {"ClusterVerifier", "", "{name: keys}", "ClusterTrustStore keys does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := written.Compiled(
				written.Objects(t,
					append(stores,
						written.Object(c.kind, c.namespace, "v", "type: Cosign\ncosign: {keys: {trustStoreRefs: ["+c.ref+"], insecureIgnoreTransparencyLog: true}}"))...))
			if c.want == "" {
				require.Empty(t, problems)
				return
			}
			require.Len(t, problems, 1)
			require.Contains(t, problems[0].Message, c.want)
		})
	}
}

func TestClusterResourcesReferenceObjectsOfOneNamespace(t *testing.T) {
	keys := written.Object("ClusterTrustStore", "", "keys", "type: PublicKeys\nsource: {secretKeyRef: {name: pub, key: cosign.pub}}")
	for _, chosen := range []string{"", "ops"} {
		in := cmp.Or(chosen, resource.DefaultClusterResourceNamespace)
		o := written.Objects(t, written.Secret(in, "pub", "cosign.pub", string(written.NewKey(t).PEM)), keys)
		o.ClusterResourceNamespace = chosen
		_, problems := written.Compiled(o)
		require.Empty(t, problems)
		o.ClusterResourceNamespace = "elsewhere"
		_, problems = written.Compiled(o)
		require.Contains(t, problems[0].Message, "Secret elsewhere/pub does not exist")
		o.ClusterResourceNamespace = "../team-a"
		_, problems = written.Compiled(o)
		require.Contains(t, problems[0].Message, "cannot be the name of one")
	}
}

func TestOnlyClusterStoresOpenPrivateAndPlainHosts(t *testing.T) {
	snapshot, problems := written.Compiled(written.Objects(t,
		written.Object("ClusterStore", "", "a", "registries: [\"10.0.0.1:5000\"]\ninsecurePlainHTTP: true"),
		written.Object("ClusterStore", "", "b", "registries: [registry.internal]"),
		written.Object("Store", "team-a", "own", "registries: [\"10.0.0.2:5000\", registry.internal]")))
	require.Empty(t, problems)
	hosts := snapshot.For("team-a").Tiers[0].Registry.(*written.NoRegistry).Access.Hosts
	require.True(t, hosts["10.0.0.1:5000"].PlainHTTP)
	require.True(t, hosts["10.0.0.1:5000"].Private)
	require.True(t, hosts["registry.internal"].Private)
	require.False(t, hosts["registry.internal"].PlainHTTP)
	require.NotContains(t, hosts, "10.0.0.2:5000")
}

func TestGenerationsFollowWhatApplies(t *testing.T) {
	one, two := string(written.NewKey(t).PEM), string(written.NewKey(t).PEM)
	documents := func(pem string) []string {
		return []string{written.Secret("team-a", "pub", "cosign.pub", pem),
			written.Object("TrustStore", "team-a", "keys", "type: PublicKeys\nsource: {secretKeyRef: {name: pub, key: cosign.pub}}"),
			written.Object("Verifier", "team-a", "release", written.CosignVerifier), written.Object("ClusterTrustStore", "", "keys", written.InlineKey(one)),
			written.Object("ClusterVerifier", "", "release", written.CosignVerifier)}
	}
	generation := func(ns verify.Namespace, documents ...string) string {
		o := written.Objects(t, documents...)
		slices.Reverse(o.Secrets)
		snapshot, _ := written.Compiled(o)
		return snapshot.For(ns).Generation
	}
	before := generation("team-a", documents(one)...)
	require.NotEqual(t, before, generation("team-a", documents(two)...), "another key in the Secret")
	require.Equal(t, before, generation("team-a", documents(one)...), "an edit back")
	require.Equal(t, before, generation("team-a", append(documents(one), written.Secret("team-a", "other", "k", "v"))...), "a Secret that nothing uses")
	require.Equal(t, before, generation("team-a", append(documents(one), written.Object("ClusterVerifier", "", "more", written.CosignVerifier))...),
		"a cluster verifier that does not apply")
	require.NotEqual(t, generation("team-b", documents(one)...),
		generation("team-b", append(documents(one), written.Object("ClusterVerifier", "", "more", written.CosignVerifier))...))
	require.NotEqual(t, before,
		generation("team-a", append(documents(one), written.Object("ClusterVerificationPolicy", "", "f", "scope: Mandatory\ndefaultAction: Allow"))...),
		"a mandatory policy")
	require.NotEqual(t, before, generation("team-a", append(documents(one), written.Object("Store", "team-a", "s", "registries: [r.example.com]"))...), "a store")
}

func TestDeletingTheLastOneReturnsToTheClusters(t *testing.T) {
	keys := written.InlineKey(string(written.NewKey(t).PEM))
	cluster := []string{written.Object("ClusterTrustStore", "", "keys", keys), written.Object("ClusterVerifier", "", "shared", written.CosignVerifier)}
	own := []string{written.Object("TrustStore", "team-a", "keys", keys), written.Object("Verifier", "team-a", "own", written.CosignVerifier)}
	without, _ := written.Compiled(written.Objects(t, cluster...))
	with, _ := written.Compiled(written.Objects(t, append(cluster, own...)...))
	require.Equal(t, "own", with.For("team-a").Tiers[0].Verifiers[0].Source.Name)
	require.Equal(t, "shared", without.For("team-a").Tiers[0].Verifiers[0].Source.Name)
}

func TestUnknownNamespacesHaveTheClustersResources(t *testing.T) {
	snapshot, _ := written.Compiled(written.Objects(t, written.Namespace("team-a", "uid-1")))
	require.Equal(t, "uid-1", snapshot.For("team-a").UID)
	config := snapshot.For("never-declared")
	require.EqualValues(t, "never-declared", config.Namespace)
	require.Same(t, config, snapshot.For("never-declared"))
	require.Equal(t, verify.Cluster, snapshot.For(verify.Cluster).Namespace)
}

// What a registry said is used as long as the same Stores, with the same logins, ask it.
func TestTheGenerationOfRegistriesFollowsStoresAndTheirLogins(t *testing.T) {
	login := func(password string) string {
		return written.Secret("team-a", "login", ".dockerconfigjson", `{"auths":{"r.example.com":{"username":"u","password":"`+password+`"}}}`)
	}
	store := written.Object("Store", "team-a", "s", "registries: [r.example.com]\nimagePullSecrets: [{name: login}]")
	generation := func(ns verify.Namespace, documents ...string) string {
		snapshot, _ := written.Compiled(written.Objects(t, append(documents, written.Namespace("team-a", "1"), written.Namespace("team-b", "2"))...))
		return snapshot.For(ns).Tiers[0].Registry.(*written.NoRegistry).Access.Generation
	}
	rules := []string{written.Object("TrustStore", "team-a", "keys", written.InlineKey(string(written.NewKey(t).PEM))),
		written.Object("Verifier", "team-a", "release", written.CosignVerifier),
		written.Object("VerificationPolicy", "team-a", "p", written.PolicySpec("{anyOf: [release]}"))}
	before := generation("team-a", store, login("one"))
	require.NotEmpty(t, before)
	require.Equal(t, before, generation("team-a", append(rules, store, login("one"))...), "rules")
	require.NotEqual(t, before, generation("team-a", store, login("two")), "another password")
	require.NotEqual(t, before, generation("team-a", store), "no login")
	require.NotEqual(t, before, generation("team-a", login("one")), "no Store")
	require.NotEqual(t, before,
		generation("team-a", store, login("one"), written.Object("ClusterStore", "", "c", "registries: [r.example.com]\ninsecurePlainHTTP: true")),
		"what the cluster says of the host")
	other := generation("team-b", store, login("one"))
	require.NotEqual(t, before, other)
	require.Equal(t, other, generation("team-b", store, login("two")), "another namespace's login")
}
