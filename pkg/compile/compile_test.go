package compile_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/image"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/resource"
	"github.com/landwaiter/landwaiter/pkg/tenant"
	"github.com/landwaiter/landwaiter/pkg/verify"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

func newKey(t *testing.T) *fixture.CosignKey {
	t.Helper()
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	return key
}

// Every kind falls back on its own, and as a whole.
func TestEachKindFallsBackOnItsOwn(t *testing.T) {
	keys := inlineKey(string(newKey(t).PEM))
	own := map[string]string{
		"Verifier":           object("TrustStore", "team-a", "keys", keys) + "\n---\n" + object("Verifier", "team-a", "own", cosignVerifier),
		"Store":              object("Store", "team-a", "own", "registries: [own.example.com]"),
		"VerificationPolicy": object("VerificationPolicy", "team-a", "own", policySpec("{types: [Cosign]}")),
	}
	cluster := map[string]string{
		"Verifier":           object("ClusterTrustStore", "", "keys", keys) + "\n---\n" + object("ClusterVerifier", "", "shared", cosignVerifier),
		"Store":              object("ClusterStore", "", "shared", "registries: [shared.example.com]"),
		"VerificationPolicy": object("ClusterVerificationPolicy", "", "shared", policySpec("{types: [Cosign]}")),
	}
	for _, kind := range []string{"Verifier", "Store", "VerificationPolicy"} {
		for name, c := range map[string]struct {
			documents []string
			level     string
			applied   []policy.ObjectRef
		}{
			"namespace only": {[]string{own[kind]}, "namespace", []policy.ObjectRef{{Kind: kind, Namespace: "team-a", Name: "own"}}},
			"cluster only":   {[]string{cluster[kind]}, "cluster", []policy.ObjectRef{{Kind: "Cluster" + kind, Name: "shared"}}},
			"both":           {[]string{own[kind], cluster[kind]}, "namespace", []policy.ObjectRef{{Kind: kind, Namespace: "team-a", Name: "own"}}},
			"neither":        {nil, "none", []policy.ObjectRef{}},
		} {
			t.Run(kind+", "+name, func(t *testing.T) {
				snapshot, problems := compiled(objects(t, append(c.documents, namespace("team-a", "1"))...))
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
	layer := config.Layers[0]
	got := []policy.ObjectRef{}
	switch kind {
	case "Verifier":
		for _, v := range layer.Verifiers {
			got = append(got, v.Source)
		}
	case "Store":
		for _, s := range layer.Registry.(*noRegistry).access.Stores {
			got = append(got, s.Source)
		}
	case "VerificationPolicy":
		require.Equal(t, len(applied) == 0, layer.RequireMatching)
		for _, r := range layer.Rules {
			got = append(got, r.Source)
		}
	}
	require.Equal(t, applied, got)
}

func TestPoliciesAreConcatenatedByNameAndDenyPrevails(t *testing.T) {
	lax := "default: Allow\nrules: [{images: [\"r.example.com/z/**\"], require: [{anyOf: [x]}]}]"
	strict := policySpec("{anyOf: [y]}")
	snapshot, problems := compiled(objects(t, object("VerificationPolicy", "team-a", "z-strict", strict), object("VerificationPolicy", "team-a", "a-lax", lax)))
	require.Empty(t, problems)
	layer := snapshot.For("team-a").Layers[0]
	require.Equal(t, "a-lax", layer.Rules[0].Source.Name)
	require.Equal(t, "z-strict", layer.Rules[1].Source.Name)
	require.Equal(t, policy.Denied, layer.Default, "one policy that denies by default makes all do")

	both, _ := compiled(objects(t, object("VerificationPolicy", "team-a", "b", lax), object("VerificationPolicy", "team-a", "a", lax)))
	require.Equal(t, policy.Allowed, both.For("team-a").Layers[0].Default)
}

func TestFloorsApplyEverywhereWithClusterResources(t *testing.T) {
	keys := inlineKey(string(newKey(t).PEM))
	snapshot, problems := compiled(objects(t,
		object("ClusterTrustStore", "", "keys", keys), object("ClusterVerifier", "", "base", cosignVerifier),
		object("ClusterStore", "", "shared", "registries: [shared.example.com]"),
		object("ClusterVerificationPolicy", "", "floor", "enforcement: Floor\n"+policySpec("{anyOf: [base]}")),
		object("VerificationPolicy", "team-a", "lax", "default: Allow"),
		object("TrustStore", "team-a", "keys", keys), object("Verifier", "team-a", "base", cosignVerifier),
		object("Store", "team-a", "own", "registries: [own.example.com]"),
	))
	require.Empty(t, problems)
	for _, ns := range []verify.Namespace{"team-a", "team-without-resources", verify.Cluster} {
		layers := snapshot.For(ns).Layers
		require.Len(t, layers, 2, ns)
		floor := layers[1]
		require.Equal(t, policy.ObjectRef{Kind: "ClusterVerificationPolicy", Name: "floor"}, floor.Source)
		require.Equal(t, "ClusterVerifier base", floor.Verifiers[0].Source.String(), "a tenant's verifier of the same name does not stand in")
		require.Equal(t, "shared", floor.Registry.(*noRegistry).access.Stores[0].Source.Name)
	}
	require.Len(t, snapshot.For("team-a").Layers[0].Registry.(*noRegistry).access.Stores, 1)
	require.Equal(t, "own", snapshot.For("team-a").Layers[0].Registry.(*noRegistry).access.Stores[0].Source.Name)
	require.True(t, snapshot.For("team-b").Layers[0].RequireMatching, "a floor only adds: without another policy all verifiers must still pass")
}

func TestBrokenResourcesDenyWhereTheyApplyAndNowhereElse(t *testing.T) {
	keys := inlineKey(string(newKey(t).PEM))
	team := func(ns string) []string {
		return []string{
			object("TrustStore", ns, "keys", keys), object("Verifier", ns, "release", cosignVerifier),
			object("Store", ns, "own", "registries: [own.example.com]"),
			object("VerificationPolicy", ns, "strict", policySpec("{anyOf: [release]}")),
		}
	}
	healthy := append(team("team-b"), object("ClusterTrustStore", "", "keys", keys), object("ClusterVerifier", "", "release", cosignVerifier),
		object("ClusterVerificationPolicy", "", "fallback", "default: Allow"))
	cases := map[string]struct {
		kind, name, spec, problem string
		reason                    policy.Reason
	}{
		"missing Secret":                 {"TrustStore", "keys", "type: PublicKeys\nsource: {secretRef: {name: gone, key: cosign.pub}}", "Secret team-a/gone is not there", "TrustStore team-a/keys cannot be used"},
		"missing ConfigMap":              {"TrustStore", "keys", "type: PublicKeys\nsource: {configMapRef: {name: gone, key: cosign.pub}}", "ConfigMap team-a/gone is not there", "TrustStore team-a/keys"},
		"no source":                      {"TrustStore", "keys", "type: PublicKeys\nsource: {}", "exactly one of", "TrustStore team-a/keys"},
		"two sources":                    {"TrustStore", "keys", "type: PublicKeys\nsource: {inline: x, secretRef: {name: x, key: y}}", "exactly one of", "TrustStore team-a/keys"},
		"no key in it":                   {"TrustStore", "keys", "type: PublicKeys\nsource: {inline: rubbish}", "PEM", "TrustStore team-a/keys"},
		"unknown type":                   {"TrustStore", "keys", "type: Keys\nsource: {inline: x}", "spec.type is \"Keys\"", "TrustStore team-a/keys"},
		"no type":                        {"TrustStore", "keys", "source: {inline: x}", "spec.type", "TrustStore team-a/keys"},
		"wrong type for cosign":          {"TrustStore", "keys", "type: Certificates\nsource: {inline: x}", "", "TrustStore team-a/keys"},
		"unknown hash":                   {"TrustStore", "keys", "hash: MD5\n" + keys, "spec.hash is \"MD5\"", "TrustStore team-a/keys"},
		"kms":                            {"TrustStore", "keys", "type: PublicKeys\nsource: {kms: {uri: \"awskms:///x\"}}", "KMS awskms:///x is not fetched here", "TrustStore team-a/keys"},
		"vault":                          {"TrustStore", "keys", "type: PublicKeys\nsource: {vault: {address: x, path: y, token: {name: gone, key: t}}}", "Secret team-a/gone is not there", "TrustStore team-a/keys"},
		"timestamp authorities":          {"TrustStore", "keys", "type: TimestampAuthorities\nsource: {inline: x}", "not PEM", "TrustStore team-a/keys"},
		"Secret of another namespace":    {"TrustStore", "keys", "type: PublicKeys\nsource: {secretRef: {namespace: team-b, name: pub, key: cosign.pub}}", "leave the namespace out", "TrustStore team-a/keys"},
		"ConfigMap of another namespace": {"TrustStore", "keys", "type: PublicKeys\nsource: {configMapRef: {namespace: team-b, name: pub, key: cosign.pub}}", "leave the namespace out", "TrustStore team-a/keys"},
		"no kind of verifier":            {"Verifier", "release", "images: [\"**\"]", "exactly one of cosign, notation, attestation", "Verifier team-a/release cannot be used"},
		"two kinds of verifier":          {"Verifier", "release", cosignVerifier + "\nnotation: {trustStores: [{trustStore: keys}], trustedIdentities: [\"*\"]}", "exactly one of", "Verifier team-a/release"},
		"no keys":                        {"Verifier", "release", "cosign: {}", "spec.cosign.keys is empty", "Verifier team-a/release"},
		"keyless":                        {"Verifier", "release", "cosign: {keyless: {identities: [{issuer: i, subject: s}]}}", "Sigstore's TUF repository is not fetched here", "Verifier team-a/release"},
		"keys and keyless":               {"Verifier", "release", "cosign: {keys: [{trustStore: keys}], keyless: {identities: [{issuer: i, subject: s}]}}", "exactly one of keys, keyless", "Verifier team-a/release"},
		"transparency log":               {"Verifier", "release", "cosign: {keys: [{trustStore: keys}], transparencyLog: Required}", "spec.cosign.transparencyLog is Required, so spec.cosign.logTrustStore must name", "Verifier team-a/release"},
		"unknown log mode":               {"Verifier", "release", "cosign: {keys: [{trustStore: keys}], transparencyLog: Maybe}", "must be Required or Ignore", "Verifier team-a/release"},
		"attestation":                    {"Verifier", "release", "attestation: {predicateType: x}", "spec.attestation.keys is empty", "Verifier team-a/release"},
		"notation revocation":            {"Verifier", "release", "notation: {trustStores: [{trustStore: keys}], trustedIdentities: [\"*\"], revocation: Maybe}", "must be Ignore or Check", "Verifier team-a/release"},
		"notation timestamp mode":        {"Verifier", "release", "notation: {trustStores: [{trustStore: keys}], trustedIdentities: [\"*\"], timestampAuthorities: [{trustStore: keys}], verifyTimestamp: Never}", "must be Always or AfterCertificateExpiry", "Verifier team-a/release"},
		"notation timestamp of nobody":   {"Verifier", "release", "notation: {trustStores: [{trustStore: keys}], trustedIdentities: [\"*\"], verifyTimestamp: Always}", "name authorities", "Verifier team-a/release"},
		"notation override":              {"Verifier", "release", "notation: {trustStores: [{trustStore: keys}], trustedIdentities: [\"*\"], overrides: {expiry: Skip}}", "must be Enforce or Log", "Verifier team-a/release"},
		"notation level audit":           {"Verifier", "release", "notation: {trustStores: [{trustStore: keys}], trustedIdentities: [\"*\"], level: Audit}", "must be Strict or Permissive", "Verifier team-a/release"},
		"notation without trust":         {"Verifier", "release", "notation: {trustedIdentities: [\"*\"]}", "trustStores is empty", "Verifier team-a/release"},
		"keys for notation":              {"Verifier", "release", "notation: {trustStores: [{trustStore: keys}], trustedIdentities: [\"*\"]}", "here it must be Certificates", "Verifier team-a/release"},
		"bad pattern":                    {"Verifier", "release", "images: [nginx]\n" + cosignVerifier, "spec.images[0]", "Verifier team-a/release"},
		"trust store that is not there":  {"Verifier", "release", "cosign: {keys: [{trustStore: gone}]}", "TrustStore team-a/gone is not there", "Verifier team-a/release"},
		"unknown trust store kind":       {"Verifier", "release", "cosign: {keys: [{kind: Secret, name: keys}]}", "must be TrustStore or ClusterTrustStore", "Verifier team-a/release"},
		"trust store named twice":        {"Verifier", "release", "cosign: {keys: [{trustStore: keys, kind: ClusterTrustStore, name: keys}]}", "either by trustStore or by kind and name", "Verifier team-a/release"},
		"trust store without a name":     {"Verifier", "release", "cosign: {keys: [{}]}", "either by trustStore or by kind and name", "Verifier team-a/release"},
		"missing pull secret":            {"Store", "own", "registries: [own.example.com]\nimagePullSecrets: [{name: gone}]", "Secret team-a/gone is not there", "Store team-a/own cannot be used"},
		"pull secret of another":         {"Store", "own", "registries: [own.example.com]\nimagePullSecrets: [{namespace: team-b, name: pull}]", "leave the namespace out", "Store team-a/own"},
		"bad CA":                         {"Store", "own", "registries: [own.example.com]\ncaBundle: {inline: rubbish}", "spec.caBundle.inline", "Store team-a/own"},
		"CA without source":              {"Store", "own", "registries: [own.example.com]\ncaBundle: {}", "exactly one of", "Store team-a/own"},
		"no registry":                    {"Store", "own", "registries: []", "spec.registries is empty", "Store team-a/own"},
		"registry with a scheme":         {"Store", "own", "registries: [\"http://own.example.com\"]", "not a host", "Store team-a/own"},
		"rule without images":            {"VerificationPolicy", "strict", "rules: [{require: [{anyOf: [release]}]}]", "spec.rules[0].images is empty", "VerificationPolicy team-a/strict cannot be used"},
		"rule without requirements":      {"VerificationPolicy", "strict", "rules: [{images: [\"**\"], require: []}]", "spec.rules[0].require is empty", "VerificationPolicy team-a/strict"},
		"empty requirement":              {"VerificationPolicy", "strict", policySpec("{}"), "exactly one of anyOf, allOf, types", "VerificationPolicy team-a/strict"},
		"empty anyOf":                    {"VerificationPolicy", "strict", policySpec("{anyOf: []}"), "exactly one of anyOf, allOf, types", "VerificationPolicy team-a/strict"},
		"anyOf and allOf":                {"VerificationPolicy", "strict", policySpec("{anyOf: [a], allOf: [b]}"), "exactly one of", "VerificationPolicy team-a/strict"},
		"atLeast zero":                   {"VerificationPolicy", "strict", policySpec("{anyOf: [release], atLeast: 0}"), "atLeast is 0", "VerificationPolicy team-a/strict"},
		"atLeast negative":               {"VerificationPolicy", "strict", policySpec("{anyOf: [release], atLeast: -1}"), "atLeast is -1", "VerificationPolicy team-a/strict"},
		"unknown verifier type":          {"VerificationPolicy", "strict", policySpec("{types: [Pgp]}"), "must be one of", "VerificationPolicy team-a/strict"},
		"unknown default":                {"VerificationPolicy", "strict", "default: Maybe", "must be Deny or Allow", "VerificationPolicy team-a/strict"},
		"unknown mode":                   {"VerificationPolicy", "strict", "mode: Audit\n" + policySpec("{anyOf: [release]}"), "must be Enforce or Warn", "VerificationPolicy team-a/strict"},
		"unknown index mode":             {"VerificationPolicy", "strict", "rules: [{images: [\"**\"], index: Any, require: [{anyOf: [release]}]}]", "must be Itself or ItselfOrEveryManifest", "VerificationPolicy team-a/strict"},
		"expression that is no CEL":      {"VerificationPolicy", "strict", policySpec("{expression: \"findings.\"}"), "spec.rules[0].require[0]: expression: ", "VerificationPolicy team-a/strict"},
		"expression of something else":   {"VerificationPolicy", "strict", policySpec("{expression: \"predicate.a == 1\"}"), "undeclared reference", "VerificationPolicy team-a/strict"},
		"expression that grows":          {"VerificationPolicy", "strict", policySpec("{expression: \"[findings, findings].exists(a, true)\"}"), "something else than constants", "VerificationPolicy team-a/strict"},
		"expression and anyOf":           {"VerificationPolicy", "strict", policySpec("{anyOf: [release], expression: \"true\"}"), "exactly one of", "VerificationPolicy team-a/strict"},
		"signer's expression":            {"Verifier", "release", "attestation: {predicateType: x, keys: [{trustStore: keys}], expression: \"unknown\"}", "expression: ", "Verifier team-a/release"},
		"log of attestations":            {"Verifier", "release", "attestation: {predicateType: x, keys: [{trustStore: keys}], transparencyLog: Required}", "spec.attestation.logTrustStore must name", "Verifier team-a/release"},
		"bad pattern in a rule":          {"VerificationPolicy", "strict", "rules: [{images: [\"*\"], require: [{anyOf: [release]}]}]", "spec.rules[0].images[0]", "VerificationPolicy team-a/strict"},
	}
	good, problems := compiled(objects(t, append(healthy, team("team-a")...)...))
	require.Empty(t, problems)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var documents []string
			for _, document := range team("team-a") {
				if !strings.HasPrefix(document, "kind: "+c.kind+"\n") {
					documents = append(documents, document)
				}
			}
			snapshot, problems := compiled(objects(t, append(append(healthy, documents...), object(c.kind, "team-a", c.name, c.spec))...))
			require.NotEmpty(t, problems)
			require.Equal(t, policy.ObjectRef{Kind: c.kind, Namespace: "team-a", Name: c.name}, problems[0].Source)
			require.Contains(t, problems[0].Message, c.problem)
			require.Contains(t, whyUnusable(snapshot.For("team-a")), c.reason)
			require.NotEqual(t, good.For("team-a").Generation, snapshot.For("team-a").Generation)
			for _, other := range []verify.Namespace{"team-b", "team-c", verify.Cluster} {
				require.Empty(t, whyUnusable(snapshot.For(other)))
				require.Equal(t, good.For(other).Generation, snapshot.For(other).Generation)
			}
		})
	}
}

// whyUnusable returns what a configuration says is broken.
func whyUnusable(config *verify.Config) string {
	var why []string
	for _, layer := range config.Layers {
		why = append(why, layer.Broken)
		for _, v := range layer.Verifiers {
			why = append(why, v.Broken)
		}
		for _, s := range layer.Registry.(*noRegistry).access.Stores {
			why = append(why, s.Broken)
		}
	}
	return strings.TrimSpace(strings.Join(why, " "))
}

func TestObjectsThatCouldNotBeReadKeepTheirPlace(t *testing.T) {
	unreadable := errors.New("line 3: unknown field spec.kyes")
	keys := inlineKey(string(newKey(t).PEM))
	base := []string{object("ClusterTrustStore", "", "keys", keys), object("ClusterVerifier", "", "release", cosignVerifier),
		object("ClusterVerificationPolicy", "", "fallback", policySpec("{anyOf: [release]}")), object("TrustStore", "team-a", "keys", keys)}
	for kind, want := range map[string]string{
		"Verifier": "Verifier team-a/x cannot be used", "Store": "Store team-a/x cannot be used",
		"VerificationPolicy": "VerificationPolicy team-a/x cannot be used", "Namespace": "Namespace team-a cannot be read",
	} {
		t.Run(kind, func(t *testing.T) {
			o := objects(t, base...)
			source := policy.ObjectRef{Kind: kind, Namespace: "team-a", Name: "x"}
			if kind == "Namespace" {
				source = policy.ObjectRef{Kind: kind, Name: "team-a"}
			}
			o.Broken = []resource.Broken{{Source: source, Err: unreadable}}
			snapshot, problems := compiled(o)
			require.Equal(t, source, problems[0].Source)
			require.Contains(t, whyUnusable(snapshot.For("team-a")), want)
			require.Contains(t, whyUnusable(snapshot.For("team-a")), "spec.kyes")
			require.Empty(t, whyUnusable(snapshot.For("team-b")))
		})
	}
	for _, kind := range []string{"Secret", "ConfigMap"} {
		t.Run(kind, func(t *testing.T) {
			field := strings.ToLower(kind[:1]) + kind[1:] + "Ref"
			o := objects(t, object("TrustStore", "team-a", "keys", "type: PublicKeys\nsource: {"+field+": {name: x, key: k}}"), object("Verifier", "team-a", "v", cosignVerifier))
			o.Broken = []resource.Broken{{Source: policy.ObjectRef{Kind: kind, Namespace: "team-a", Name: "x"}, Err: unreadable}}
			snapshot, _ := compiled(o)
			require.Contains(t, whyUnusable(snapshot.For("team-a")), kind+" team-a/x cannot be read")
		})
	}
	t.Run("a cluster policy may have been a floor", func(t *testing.T) {
		o := objects(t, object("VerificationPolicy", "team-a", "lax", "default: Allow"))
		o.Broken = []resource.Broken{{Source: policy.ObjectRef{Kind: "ClusterVerificationPolicy", Name: "x"}, Err: unreadable}}
		snapshot, _ := compiled(o)
		for _, ns := range []verify.Namespace{"team-a", "team-b", verify.Cluster} {
			require.Contains(t, whyUnusable(snapshot.For(ns)), "ClusterVerificationPolicy x cannot be used")
		}
	})
}

func TestTrustStoreReferencesStayWithinTheirReach(t *testing.T) {
	keys := inlineKey(string(newKey(t).PEM))
	stores := []string{object("TrustStore", "team-a", "keys", keys), object("TrustStore", "team-b", "only-b", keys), object("ClusterTrustStore", "", "corp", keys)}
	for name, c := range map[string]struct{ kind, namespace, ref, want string }{
		"own by name":              {"Verifier", "team-a", "{trustStore: keys}", ""},
		"own spelt out":            {"Verifier", "team-a", "{kind: TrustStore, name: keys}", ""},
		"the cluster's":            {"Verifier", "team-a", "{kind: ClusterTrustStore, name: corp}", ""},
		"the cluster's by name":    {"Verifier", "team-a", "{trustStore: corp}", "TrustStore team-a/corp is not there"},
		"another namespace's":      {"Verifier", "team-a", "{trustStore: only-b}", "TrustStore team-a/only-b is not there"},
		"a path to another":        {"Verifier", "team-a", "{trustStore: ../team-b/only-b}", "is not there"},
		"cluster's own":            {"ClusterVerifier", "", "{trustStore: corp}", ""},
		"cluster's own spelt out":  {"ClusterVerifier", "", "{kind: ClusterTrustStore, name: corp}", ""},
		"a tenant's from above":    {"ClusterVerifier", "", "{kind: TrustStore, name: keys}", "belongs to a namespace"},
		"a tenant's name, cluster": {"ClusterVerifier", "", "{trustStore: keys}", "ClusterTrustStore keys is not there"},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := compiled(objects(t, append(stores, object(c.kind, c.namespace, "v", "cosign: {keys: ["+c.ref+"]}"))...))
			if c.want == "" {
				require.Empty(t, problems)
				return
			}
			require.Len(t, problems, 1)
			require.Contains(t, problems[0].Message, c.want)
		})
	}
}

func TestClusterResourcesNameTheNamespaceOfWhatTheyUse(t *testing.T) {
	pem := string(newKey(t).PEM)
	pub := secret("ops", "pub", "cosign.pub", pem)
	_, problems := compiled(objects(t, pub, object("ClusterTrustStore", "", "keys", "type: PublicKeys\nsource: {secretRef: {namespace: ops, name: pub, key: cosign.pub}}")))
	require.Empty(t, problems)
	_, problems = compiled(objects(t, pub, object("ClusterTrustStore", "", "keys", "type: PublicKeys\nsource: {secretRef: {name: pub, key: cosign.pub}}")))
	require.Contains(t, problems[0].Message, "needs a namespace")
	_, problems = compiled(objects(t, object("ClusterStore", "", "s", "registries: [r.example.com]\nimagePullSecrets: [{name: pull}]")))
	require.Contains(t, problems[0].Message, "needs a namespace")
}

func TestOnlyClusterStoresOpenPrivateAndPlainHosts(t *testing.T) {
	snapshot, problems := compiled(objects(t,
		object("ClusterStore", "", "a", "registries: [\"10.0.0.1:5000\"]\ninsecurePlainHTTP: true"),
		object("ClusterStore", "", "b", "registries: [registry.internal]"),
		object("Store", "team-a", "own", "registries: [\"10.0.0.2:5000\", registry.internal]")))
	require.Empty(t, problems)
	hosts := snapshot.For("team-a").Layers[0].Registry.(*noRegistry).access.Hosts
	require.True(t, hosts["10.0.0.1:5000"].PlainHTTP)
	require.True(t, hosts["10.0.0.1:5000"].Private)
	require.True(t, hosts["registry.internal"].Private)
	require.False(t, hosts["registry.internal"].PlainHTTP)
	require.NotContains(t, hosts, "10.0.0.2:5000")
}

func TestGenerationsFollowWhatApplies(t *testing.T) {
	one, two := string(newKey(t).PEM), string(newKey(t).PEM)
	documents := func(pem string) []string {
		return []string{secret("team-a", "pub", "cosign.pub", pem),
			object("TrustStore", "team-a", "keys", "type: PublicKeys\nsource: {secretRef: {name: pub, key: cosign.pub}}"),
			object("Verifier", "team-a", "release", cosignVerifier), object("ClusterTrustStore", "", "keys", inlineKey(one)),
			object("ClusterVerifier", "", "release", cosignVerifier)}
	}
	generation := func(ns verify.Namespace, documents ...string) string {
		o := objects(t, documents...)
		slices.Reverse(o.Secrets)
		snapshot, _ := compiled(o)
		return snapshot.For(ns).Generation
	}
	before := generation("team-a", documents(one)...)
	require.NotEqual(t, before, generation("team-a", documents(two)...), "another key in the Secret")
	require.Equal(t, before, generation("team-a", documents(one)...), "an edit back")
	require.Equal(t, before, generation("team-a", append(documents(one), secret("team-a", "other", "k", "v"))...), "a Secret that nothing uses")
	require.Equal(t, before, generation("team-a", append(documents(one), object("ClusterVerifier", "", "more", cosignVerifier))...), "a cluster verifier that does not apply")
	require.NotEqual(t, generation("team-b", documents(one)...), generation("team-b", append(documents(one), object("ClusterVerifier", "", "more", cosignVerifier))...))
	require.NotEqual(t, before, generation("team-a", append(documents(one), object("ClusterVerificationPolicy", "", "f", "enforcement: Floor\ndefault: Allow"))...), "a floor")
	require.NotEqual(t, before, generation("team-a", append(documents(one), object("Store", "team-a", "s", "registries: [r.example.com]"))...), "a store")
}

func TestDeletingTheLastOneReturnsToTheClusters(t *testing.T) {
	keys := inlineKey(string(newKey(t).PEM))
	cluster := []string{object("ClusterTrustStore", "", "keys", keys), object("ClusterVerifier", "", "shared", cosignVerifier)}
	own := []string{object("TrustStore", "team-a", "keys", keys), object("Verifier", "team-a", "own", cosignVerifier)}
	without, _ := compiled(objects(t, cluster...))
	with, _ := compiled(objects(t, append(cluster, own...)...))
	require.Equal(t, "own", with.For("team-a").Layers[0].Verifiers[0].Source.Name)
	require.Equal(t, "shared", without.For("team-a").Layers[0].Verifiers[0].Source.Name)
}

func TestNothingIsDecidedBeforeTheFirstSnapshot(t *testing.T) {
	set := &tenant.Set{}
	_, err := set.For("team-a")
	require.ErrorIs(t, err, tenant.ErrNotReady)
	require.ErrorIs(t, set.Ready(), tenant.ErrNotReady)
	service := tenant.NewService(set, verify.NewEngine(nil, nil, verify.Options{}), nil)
	ref, err := image.Parse("r.example.com/app:v1")
	require.NoError(t, err)
	require.Equal(t, policy.Undecided, service.Verify(t.Context(), "team-a", ref).Verdict.Outcome)
	_, known := service.Recall("team-a", ref)
	require.False(t, known)
	_, err = service.Resolve(t.Context(), "team-a", ref)
	require.ErrorIs(t, err, tenant.ErrNotReady)
	snapshot, _ := compiled(resource.Objects{})
	set.Swap(snapshot)
	require.NoError(t, set.Ready())
}

func TestUnknownNamespacesHaveTheClustersResources(t *testing.T) {
	snapshot, _ := compiled(objects(t, namespace("team-a", "uid-1")))
	require.Equal(t, "uid-1", snapshot.For("team-a").UID)
	config := snapshot.For("never-declared")
	require.EqualValues(t, "never-declared", config.Namespace)
	require.Same(t, config, snapshot.For("never-declared"))
	require.Equal(t, verify.Cluster, snapshot.For(verify.Cluster).Namespace)
}
