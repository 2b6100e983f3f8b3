package conditions_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/external"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

func TestConditionsTellTheTruth(t *testing.T) {
	keys := written.InlineKey(string(written.NewKey(t).PEM))
	const broken = "type: PublicKeys\nsource: {inline: rubbish}"
	const spec = "rules: [{images: [\"**\"], require: [{anyOf: [release]}]}]"
	team := []string{written.Namespace("team-a", "1"), written.Object("TrustStore", "team-a", "keys", keys),
		written.Object("Verifier", "team-a", "release", written.CosignVerifier)}
	tenant := []string{written.Namespace("iris", "1"), written.Namespace("iris-web", "2"),
		written.Object("Tenant", "", "iris", "homeNamespace: iris\nnamespaces: [iris-web]")}
	deciding := []string{written.Namespace("iris", "1"), written.Namespace("iris-web", "2"),
		written.Object("Tenant", "", "iris", "homeNamespace: iris\nnamespaces: [iris-web]\nverification: {policyLevel: Tenant}")}
	shared := []string{written.Object("ClusterTrustStore", "", "keys", keys), written.Object("ClusterVerifier", "", "base", written.CosignVerifier)}
	half := slices.Clip(append(slices.Clone(team), written.Object("TrustStore", "team-a", "dull", broken),
		written.Object("Verifier", "team-a", "dull", strings.ReplaceAll(written.CosignVerifier, "keys}", "dull}"))))
	for name, c := range map[string]struct {
		documents        []string
		ref              string // KIND [NAMESPACE/]NAME
		ready, effective string // reasons; "!" in front of one of a condition that is False
		says             string // by Effective, else by Ready where that is False
	}{
		"a policy in force": {append(team, written.Object("VerificationPolicy", "team-a", "p", spec)), "VerificationPolicy team-a/p",
			"Valid", "InForce", "in force in its namespace"},
		"a verifier that a policy asks for": {append(team, written.Object("VerificationPolicy", "team-a", "p", spec)), "Verifier team-a/release",
			"Valid", "InForce", ""},
		"a trust store that a verifier names": {team, "TrustStore team-a/keys", "Valid", "InForce", ""},
		"a policy that " +
			"names nobody": {append(team, written.Object("VerificationPolicy", "team-a", "p", written.PolicySpec("{anyOf: [gone]}"))), "VerificationPolicy team-a/p",
			"!NotFound", "!Denies", "names Verifier gone, which does not exist"},
		"a policy that names a " +
			"broken verifier": {[]string{written.Namespace("team-a", "1"), written.Object("TrustStore", "team-a", "keys", broken),
			written.Object("Verifier", "team-a", "release", written.CosignVerifier), written.Object("VerificationPolicy", "team-a", "p", spec)},
			"VerificationPolicy team-a/p", "!ReferenceNotReady", "!Denies", "Verifier team-a/release cannot be used"},
		"a policy that names a broken verifier " +
			"among others": {append(half, written.Object("VerificationPolicy", "team-a", "p", written.PolicySpec("{anyOf: [dull, gone, release]}"))),
			"VerificationPolicy team-a/p", "!ReferenceNotReady", "!Denies", "Landwaiter cannot use Verifiers that the policy names (dull, gone), and denies images " +
				"that only these could verify; other Verifiers can still satisfy its requirements"},
		"a policy of which one rule needs a " +
			"broken verifier": {
			append(half,
				written.Object("VerificationPolicy", "team-a", "p", "rules: [{images: [r.example.com/a], require: [{anyOf: [release]}]}, {images: [r.example.com/b], "+
					"require: [{allOf: [release, dull]}]}]")), "VerificationPolicy team-a/p", "!ReferenceNotReady", "!Denies",
			"(dull), and denies the images of spec.rules[1]; its other rules still decide"},
		"a verifier of a broken " +
			"trust store": {[]string{written.Namespace("team-a", "1"), written.Object("TrustStore", "team-a", "keys", broken),
			written.Object("Verifier", "team-a", "release", written.CosignVerifier)}, "Verifier team-a/release", "!ReferenceNotReady", "!Denies",
			"TrustStore team-a/keys cannot be used"},
		"a verifier of no " +
			"trust store": {[]string{written.Namespace("team-a", "1"), written.Object("Verifier", "team-a", "release", written.CosignVerifier)},
			"Verifier team-a/release", "!NotFound", "!Denies", "TrustStore team-a/keys does not exist"},
		"a broken trust store": {[]string{written.Namespace("team-a", "1"), written.Object("TrustStore", "team-a", "keys", broken)},
			"TrustStore team-a/keys", "!Invalid", "!Unused", "no Verifier names it"},
		"more signers than " +
			"there are keys": {append(team, written.Object("VerificationPolicy", "team-a", "p", written.PolicySpec("{anyOf: [release], atLeast: 5}"))),
			"VerificationPolicy team-a/p", "Valid", "!Unsatisfiable", "asks for 5 different signers, and the Verifiers that it asks for trust 1"},
		"a type that " +
			"nobody checks": {append(team, written.Object("VerificationPolicy", "team-a", "p", written.PolicySpec("{types: [Notation]}"))),
			"VerificationPolicy team-a/p", "Valid", "!Unsatisfiable", "none of the Verifiers that it requires applies"},
		"a verifier that no " +
			"policy asks for": {append(team, written.Object("Verifier", "team-a", "idle", written.CosignVerifier),
			written.Object("VerificationPolicy", "team-a", "p", spec)), "Verifier team-a/idle", "Valid", "!Unused", "no policy that applies asks for it"},
		"verifiers without any policy": {team, "Verifier team-a/release", "Valid", "InForce", ""},
		"a trust store of nobody": {append(team, written.Object("TrustStore", "team-a", "idle", keys)), "TrustStore team-a/idle",
			"Valid", "!Unused", ""},
		"a policy that warns": {append(team, written.Object("VerificationPolicy", "team-a", "p", written.Warn+spec)),
			"VerificationPolicy team-a/p", "Valid", "OnlyWarns", "denies nothing until its enforcementAction is Deny"},
		"a broken policy that warns beside one " +
			"that decides": {append(team, written.Object("VerificationPolicy", "team-a", "p", spec),
			written.Object("VerificationPolicy", "team-a", "w", written.Warn+"rules: [{images: []}]")), "VerificationPolicy team-a/w", "!Invalid", "!OnlyWarns",
			"only adds a warning to every image"},
		"a broken policy that " +
			"warns alone": {append(team, written.Object("VerificationPolicy", "team-a", "w", written.Warn+"rules: [{images: []}]")), "VerificationPolicy team-a/w",
			"!Invalid", "!Denies", "Landwaiter cannot use the policy, and denies every image of the namespace; the condition Ready says why"},
		"a broken policy": {
			append(team, written.Object("VerificationPolicy", "team-a", "p", "rules: [{images: [acme/app], action: Allow}]")), "VerificationPolicy team-a/p", "!Invalid",
			"!Denies", `for Docker Hub write "docker.io/acme/app"; Landwaiter denies every image of the namespace`},
		"a policy beside " +
			"a broken one": {append(team, written.Object("VerificationPolicy", "team-a", "p", spec),
			written.Object("VerificationPolicy", "team-a", "w", "rules: [{images: []}]")), "VerificationPolicy team-a/p", "Valid", "!Denies",
			"Landwaiter denies every image of the namespace, because it cannot use VerificationPolicy team-a/w, which decides together with this policy; the " +
				"condition Ready of w says why"},
		"a policy that warns beside " +
			"a broken one": {append(team, written.Object("VerificationPolicy", "team-a", "p", written.Warn+spec),
			written.Object("VerificationPolicy", "team-a", "w", "rules: [{images: []}]")), "VerificationPolicy team-a/p", "Valid", "OnlyWarns", ""},
		"a policy beside one that " +
			"names nobody": {append(team, written.Object("VerificationPolicy", "team-a", "p", spec),
			written.Object("VerificationPolicy", "team-a", "w", written.PolicySpec("{anyOf: [gone]}"))), "VerificationPolicy team-a/p", "Valid", "InForce", ""},
		"a verifier that a broken policy may ask for": {append(team, written.Object("VerificationPolicy", "team-a", "p", "rules: [{images: []}]")),
			"Verifier team-a/release", "Valid", "!Unused", "as long as Landwaiter cannot use VerificationPolicy team-a/p, which may require it"},
		"a broken policy of a Tenant": {append(tenant, written.Object("VerificationPolicy", "iris", "p", "rules: [{images: []}]")),
			"VerificationPolicy iris/p", "!Invalid", "!Denies", "denies every image of the namespaces of Tenant iris without a VerificationPolicy of their own"},
		"a broken policy of a Tenant that decides alone": {append(deciding, written.Object("VerificationPolicy", "iris", "p", "rules: [{images: []}]")),
			"VerificationPolicy iris/p", "!Invalid", "!Denies", "; Landwaiter denies every image of the namespaces of Tenant iris"},
		"a broken policy of the cluster": {append(shared, written.Object("ClusterVerificationPolicy", "", "c", "rules: [{images: []}]")),
			"ClusterVerificationPolicy c", "!Invalid", "!Denies", "denies every image of the namespaces without a VerificationPolicy of their own, and every image " +
				"that other policies leave to the cluster"},
		"a policy of the cluster beside " +
			"a broken one": {append(shared, written.Object("ClusterVerificationPolicy", "", "b", "rules: [{images: []}]"),
			written.Object("ClusterVerificationPolicy", "", "c", written.PolicySpec("{anyOf: [base]}"))), "ClusterVerificationPolicy c", "Valid", "!Denies",
			"because it cannot use ClusterVerificationPolicy b"},
		"a broken mandatory policy": {
			append(shared, written.Object("ClusterVerificationPolicy", "", "f", "scope: Mandatory\nrules: [{images: []}]"),
				written.Object("ClusterVerificationPolicy", "", "c", written.PolicySpec("{anyOf: [base]}"))), "ClusterVerificationPolicy f", "!Invalid", "!Denies",
			"Landwaiter cannot use the policy, and denies every image of every namespace"},
		"a mandatory policy beside " +
			"a broken one": {append(shared, written.Object("ClusterVerificationPolicy", "", "f", "scope: Mandatory\n"+written.PolicySpec("{anyOf: [base]}")),
			written.Object("ClusterVerificationPolicy", "", "c", "rules: [{images: []}]")), "ClusterVerificationPolicy f", "Valid", "InForce", ""},
		"a policy that leaves images to " +
			"a broken one": {append(team, written.Object("VerificationPolicy", "team-a", "p", "defaultAction: Inherit\n"+spec),
			written.Object("ClusterVerificationPolicy", "", "c", "rules: [{images: []}]")), "VerificationPolicy team-a/p", "Valid", "InForce",
			"images that no rule matches are denied, because Landwaiter cannot use ClusterVerificationPolicy c"},
		"a broken mandatory " +
			"policy that warns": {append(shared, written.Object("ClusterVerificationPolicy", "", "f", "scope: Mandatory\n"+written.Warn+"rules: [{images: []}]")),
			"ClusterVerificationPolicy f", "!Invalid", "!OnlyWarns", "only adds a warning to every image"},
		"a type whose only " +
			"verifier is broken": {[]string{written.Namespace("team-a", "1"), written.Object("TrustStore", "team-a", "keys", broken),
			written.Object("Verifier", "team-a", "release", written.CosignVerifier),
			written.Object("VerificationPolicy", "team-a", "p", written.PolicySpec("{types: [Cosign]}"))}, "VerificationPolicy team-a/p", "Valid",
			"!Unsatisfiable", "can be used"},
		"a policy beside " +
			"one that warns": {append(team, written.Object("VerificationPolicy", "team-a", "p", spec),
			written.Object("VerificationPolicy", "team-a", "w", written.Warn+spec)), "VerificationPolicy team-a/p", "Valid", "InForce", "in force in its namespace"},
		"a mandatory " +
			"policy that warns": {
			append(shared, written.Object("ClusterVerificationPolicy", "", "f", "scope: Mandatory\n"+written.Warn+written.PolicySpec("{anyOf: [base]}"))),
			"ClusterVerificationPolicy f", "Valid", "OnlyWarns", "a mandatory policy that only warns"},
		"a mandatory policy": {
			append(shared, written.Object("ClusterVerificationPolicy", "", "f", "scope: Mandatory\n"+written.PolicySpec("{anyOf: [base]}"))),
			"ClusterVerificationPolicy f", "Valid", "InForce", "a mandatory policy: must hold in every namespace"},
		"a mandatory policy that " +
			"nobody can meet": {
			append(shared, written.Object("ClusterVerificationPolicy", "", "f", "scope: Mandatory\n"+written.PolicySpec("{anyOf: [base], atLeast: 2}"))),
			"ClusterVerificationPolicy f", "Valid", "!Unsatisfiable", ""},
		"a cluster policy that " +
			"all override": {append(append(team, shared...), written.Object("VerificationPolicy", "team-a", "p", spec),
			written.Object("ClusterVerificationPolicy", "", "c", written.PolicySpec("{anyOf: [base]}"))), "ClusterVerificationPolicy c", "Valid", "!Overridden",
			"every namespace has a VerificationPolicy of its own"},
		"a cluster policy that " +
			"some override": {append(append(team, shared...), written.Namespace("team-b", "2"), written.Object("VerificationPolicy", "team-a", "p", spec),
			written.Object("ClusterVerificationPolicy", "", "c", written.PolicySpec("{anyOf: [base]}"))), "ClusterVerificationPolicy c", "Valid", "InForce", ""},
		"a cluster verifier that all override": {append(team, shared...), "ClusterVerifier base", "Valid", "!Overridden", ""},
		"overridden, but a mandatory policy " +
			"asks for it": {
			append(append(team, shared...), written.Object("ClusterVerificationPolicy", "", "f", "scope: Mandatory\n"+written.PolicySpec("{anyOf: [base]}"))),
			"ClusterVerifier base", "Valid", "InForce", ""},
		"the first verifier of a namespace": {append(team, shared...), "Verifier team-a/release", "Valid", "InForce",
			"these no longer apply there: ClusterVerifier base"},
		"the first verifier under a policy of " +
			"the cluster": {append(append(team, shared...), written.Object("ClusterVerificationPolicy", "", "c", written.PolicySpec("{anyOf: [base]}"))),
			"Verifier team-a/release", "Valid", "!Unused", "no policy that applies asks for it; ClusterVerificationPolicy c requires base, which does not apply where " +
				"a namespace has Verifiers of its own, so images are denied: create a VerificationPolicy in the namespace"},
		"one that replaces the " +
			"cluster's by name": {append(append(team, shared...), written.Object("ClusterVerificationPolicy", "", "c", written.PolicySpec("{anyOf: [base, release]}"))),
			"Verifier team-a/release", "Valid", "InForce", "these no longer apply there: ClusterVerifier base"},
		"one that all of the cluster's " +
			"policy need": {append(append(team, shared...), written.Object("ClusterVerificationPolicy", "", "c", written.PolicySpec("{allOf: [release, base]}"))),
			"Verifier team-a/release", "Valid", "InForce", "ClusterVerifier base; ClusterVerificationPolicy c requires base, which does not apply"},
		"a policy that names a " +
			"hidden verifier": {append(append(team, shared...), written.Object("VerificationPolicy", "team-a", "p", written.PolicySpec("{anyOf: [base]}"))),
			"VerificationPolicy team-a/p", "!NotFound", "!Denies", "names Verifier base, which does not exist among the Verifiers that apply; the namespace has " +
				"Verifiers of its own, so those of further levels, its Tenant's home namespace and the cluster, do not apply there"},
		"a policy that warns before " +
			"the cluster's": {append(append(team, shared...), written.Object("VerificationPolicy", "team-a", "p", written.Warn+spec),
			written.Object("ClusterVerificationPolicy", "", "c", written.PolicySpec("{anyOf: [base]}"))), "VerificationPolicy team-a/p", "Valid", "OnlyWarns",
			"as if it did not exist, ClusterVerificationPolicy c decides; ClusterVerificationPolicy c requires base, which does not apply where a namespace has " +
				"Verifiers of its own, so images are denied: " +
				"create a VerificationPolicy in the namespace that requires its Verifiers, or set enforcementAction of VerificationPolicy team-a/p to Deny and loosen " +
				"its rules instead"},
		"a store that " +
			"comes second": {[]string{written.Namespace("team-a", "1"), written.Object("Store", "team-a", "a", "registries: [r.example.com]"),
			written.Object("Store", "team-a", "b", "registries: [r.example.com]")}, "Store team-a/b", "Valid", "!Overridden", "come first by name"},
		"a store with a " +
			"host of its own": {[]string{written.Namespace("team-a", "1"), written.Object("Store", "team-a", "a", "registries: [r.example.com]"),
			written.Object("Store", "team-a", "b", "registries: [r.example.com, s.example.com]")}, "Store team-a/b", "Valid", "InForce", ""},
		"a quota": {
			[]string{written.Namespace("team-a", "1"), written.Object("ClusterQuota", "", "q", "namespaces: [team-a]\nmaxInFlight: 70")}, "ClusterQuota q",
			"Valid", "InForce", ""},
		"a quota for nobody": {
			[]string{written.Namespace("team-a", "1"), written.Object("ClusterQuota", "", "q", "namespaces: [team-z]\nmaxInFlight: 70")}, "ClusterQuota q", "Valid",
			"!AppliesNowhere", ""},
		"a quota that cannot be used": {[]string{written.Namespace("team-a", "1"), written.Object("ClusterQuota", "", "q", "namespaces: [team-a]")},
			"ClusterQuota q", "!Invalid", "!AppliesNowhere", "default quota"},
		"a namespace's verifiers meet the shared": {append(team, written.Object("ClusterVerificationPolicy", "", "c", written.PolicySpec("{types: [Cosign]}"))),
			"ClusterVerificationPolicy c", "Valid", "InForce", ""},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot, _ := written.Compiled(written.AsRead(t, written.Objects(t, c.documents...)))
			report := written.ReportOn(t, snapshot, c.ref)
			require.Equal(t, c.ready, written.Short(report.Ready), report.Ready.Message)
			require.Equal(t, c.effective, written.Short(report.Effective), report.Effective.Message)
			require.False(t, !report.Ready.True && report.Effective.True, "what is not Ready is not Effective")
			require.NotEmpty(t, report.Ready.Message)
			require.NotEmpty(t, report.Effective.Message)
			require.Contains(t, report.Effective.Message+" "+report.Ready.Message, c.says)
		})
	}
}

func TestAChangeOfTheClusterLeavesNamespacesThatItDoesNotConcern(t *testing.T) {
	keys, others := written.InlineKey(string(written.NewKey(t).PEM)), written.InlineKey(string(written.NewKey(t).PEM))
	full := func(ns string) []string {
		return []string{written.Namespace(ns, ns), written.Object("TrustStore", ns, "keys", keys), written.Object("Verifier", ns, "own", written.CosignVerifier),
			written.Object("Store", ns, "own", "registries: [own.example.com]"), written.Object("VerificationPolicy", ns, "own", written.PolicySpec("{anyOf: [own]}"))}
	}
	teams := append(full("team-full"), written.Namespace("team-empty", "2"), written.Namespace("team-ref", "3"),
		written.Object("Verifier", "team-ref", "corp", "type: Cosign\ncosign: {keys: {trustStoreRefs: [{kind: ClusterTrustStore, name: corp}], "+
			"insecureIgnoreTransparencyLog: true}}"))
	cluster := func(more ...string) []string {
		return append(more, written.Object("ClusterTrustStore", "", "keys", keys), written.Object("ClusterVerifier", "", "shared", written.CosignVerifier))
	}
	corp := written.Object("ClusterTrustStore", "", "corp", keys)
	for name, c := range map[string]struct {
		before, after []string
		concerned     []verify.Namespace
	}{
		"another trust store that one names": {cluster(corp), cluster(written.Object("ClusterTrustStore", "", "corp", others)), []verify.Namespace{"team-ref"}},
		"a trust store that is deleted":      {cluster(corp), cluster(), []verify.Namespace{"team-ref"}},
		"a verifier": {cluster(corp), cluster(corp, written.Object("ClusterVerifier", "", "more", written.CosignVerifier)),
			[]verify.Namespace{"team-empty"}},
		"a policy": {cluster(corp),
			cluster(corp, written.Object("ClusterVerificationPolicy", "", "c", written.PolicySpec("{types: [Cosign]}"))), []verify.Namespace{"team-empty", "team-ref"}},
		"a mandatory policy": {cluster(corp),
			cluster(corp, written.Object("ClusterVerificationPolicy", "", "f", "scope: Mandatory\n"+written.PolicySpec("{types: [Cosign]}"))),
			[]verify.Namespace{"team-empty", "team-full", "team-ref"}},
		"a store": {cluster(corp), cluster(corp, written.Object("ClusterStore", "", "s", "registries: [r.example.com]")),
			[]verify.Namespace{"team-empty", "team-full", "team-ref"}},
		"a quota": {cluster(corp), cluster(corp, written.Object("ClusterQuota", "", "q", "namespaces: [team-full]\nmaxInFlight: 70")),
			[]verify.Namespace{"team-full"}},
		"nothing": {cluster(corp), cluster(corp), nil},
	} {
		t.Run(name, func(t *testing.T) {
			was, _ := written.Compiled(written.Objects(t, append(c.before, teams...)...))
			whole, _ := written.Compiled(written.Objects(t, append(c.after, teams...)...))
			got, _ := was.Next(resolve.Group(written.Objects(t, c.after...)).Only(verify.Cluster), nil)
			var changed []verify.Namespace
			for _, n := range []verify.Namespace{"team-empty", "team-full", "team-ref"} {
				require.Equal(t, whole.For(n).Generation, got.For(n).Generation, n)
				require.Equal(t, whole.For(n).Limits, got.For(n).Limits, n)
				require.Equal(t, whole.Explain(n), got.Explain(n), n)
				require.Equal(t, conditions.Reports(whole, n), conditions.Reports(got, n), n)
				if was.For(n) != got.For(n) {
					changed = append(changed, n)
				}
			}
			require.Equal(t, whole.For(verify.Cluster).Generation, got.For(verify.Cluster).Generation)
			require.Equal(t, conditions.Reports(whole, verify.Cluster), conditions.Reports(got, verify.Cluster))
			require.Equal(t, c.concerned, changed)
		})
	}
}

func TestReportsShowWhatATrustStoreHolds(t *testing.T) {
	key := written.NewKey(t)
	snapshot, _ := written.Compiled(written.Objects(t, written.Namespace("team-a", "1"),
		written.Object("TrustStore", "team-a", "keys", written.InlineKey(string(key.PEM)))))
	report := written.ReportOn(t, snapshot, "TrustStore team-a/keys")
	require.Len(t, report.Fingerprints, 1)
	require.Contains(t, report.Fingerprints[0], "sha256:")
	require.True(t, report.FetchedAt.IsZero())
	require.Empty(t, conditions.Reports(snapshot, "team-b"))
	require.Equal(t, policy.ReasonValid, report.Ready.Reason)
}

func TestATokenOfTheClusterThatIsFetchedAgainReachesEveryNamespace(t *testing.T) {
	cluster := written.Object("ClusterStore", "", "ecr", "registries: [123456789012.dkr.ecr.eu-west-1.amazonaws.com]\nidentity: {provider: ECR}")
	source := resolve.Group(written.Objects(t, cluster)).Externals()[verify.Cluster][0]
	token := func(value string) external.Fetched {
		login := fmt.Sprintf(`{"auths":{"123456789012.dkr.ecr.eu-west-1.amazonaws.com":{"username":"AWS","password":%q}}}`, value)
		return external.Fetched{source: external.Value{Content: []byte(login), FetchedAt: time.Now()}}
	}
	outside := resolve.Outside{Registry: func(a registry.Access) verify.Registry { return &written.NoRegistry{Access: a} }}
	password := func(s *resolve.Snapshot) any {
		stores := s.For("team-a").Tiers[0].Registry.(*written.NoRegistry).Access.Stores
		credentials, _ := stores[len(stores)-1].Logins.For("123456789012.dkr.ecr.eu-west-1.amazonaws.com", "app", true)
		return credentials
	}
	was, problems := resolve.Empty(outside).
		Next(resolve.Group(written.Objects(t, cluster, written.Namespace("team-a", "1"), written.Store("team-a", "own", "own.example.com"))), token("one"))
	require.Empty(t, problems)
	got, problems := was.Next(resolve.Group(written.Objects(t, cluster)).Only(verify.Cluster), token("two"))
	require.Empty(t, problems)
	require.NotEqual(t, password(was), password(got))
	require.Equal(t, was.For("team-a").Generation, got.For("team-a").Generation, "a token changes no verdict")
}

func TestANamespaceReadsNothingOfOthersInWhatTheClusterBroke(t *testing.T) {
	snapshot, problems := written.Compiled(written.Objects(t, written.Namespace("team-a", "1"),
		written.Object("ClusterTrustStore", "", "keys", "type: PublicKeys\nsource: {secretKeyRef: {name: merger, key: k}}"),
		written.Object("ClusterVerifier", "", "base", written.CosignVerifier),
		written.Object("ClusterStore", "", "s", "registries: [r.example.com]\nimagePullSecrets: [{name: merger}]"),
		written.Object("Verifier", "team-a", "v", "type: Cosign\ncosign: {keys: {trustStoreRefs: [{kind: ClusterTrustStore, name: keys}], "+
			"insecureIgnoreTransparencyLog: true}}")))
	require.Contains(t, problems[0].Message, "Secret landwaiter-system/merger does not exist", "cluster admins read why")
	report := written.ReportOn(t, snapshot, "Verifier team-a/v")
	require.Contains(t, report.Ready.Message, "ClusterTrustStore keys cannot be used; its condition Ready says why")
	for _, text := range []string{report.Ready.Message, written.WhyUnusable(snapshot.For("team-a")), written.WhyUnusable(snapshot.For("team-b"))} {
		require.NotContains(t, text, "merger")
	}
}

func TestAPolicyNamesAllVerifiersThatItCannotUse(t *testing.T) {
	key := written.NewKey(t)
	s, _ := written.Compiled(written.Objects(t, written.Namespace("team-a", "1"),
		written.Object("TrustStore", "team-a", "keys", written.InlineKey(string(key.PEM))), written.Object("Verifier", "team-a", "release", written.CosignVerifier),
		written.Object("VerificationPolicy", "team-a", "p", "rules: [{images: [r.example.com/a], require: [{anyOf: [one, two, release]}]}, {images: ['**'], "+
			"require: [{anyOf: [one, x1, x2, x3, x4, x5, release]}]}]")))
	report := written.ReportOn(t, s, "VerificationPolicy team-a/p")
	require.Contains(t, report.Ready.Message, "spec.rules[0].require[0] names Verifier one, which does not exist")
	require.Contains(t, report.Ready.Message, "; other Verifiers can still satisfy its requirements")
	require.Contains(t, report.Effective.Message, "Landwaiter cannot use Verifiers that the policy names (one, two, x1, x2, x3, x4, x5), and denies ")
}

// Nobody should search a resource for a mistake that is none.
func TestWhatSomethingOutsideCausedIsNotToBeCorrected(t *testing.T) {
	const keyless = "type: Cosign\ncosign: {keyless: {identities: [{issuer: \"https://token.actions.githubusercontent.com\", subject: \"https://github.com/acme/app/.github/workflows/r.yml@refs/heads/main\"}]%s}}"
	lost := func(source external.Source) external.Value {
		return external.Value{Err: &external.UnansweredError{Err: errors.New("the root could not be fetched"), Server: "tuf.example.com", Instead: "; or use a copy"}}
	}
	mirror := external.Source{Kind: external.TUF, Address: "https://tuf.example.com", Root: "{}", Owner: "team-a"}
	const store = "type: SigstoreRoot\nsource: {tuf: {mirror: \"https://tuf.example.com\", root: \"{}\"}}"
	own := []string{written.Namespace("team-a", "1"), written.Object("TrustStore", "team-a", "root", store),
		written.Object("Verifier", "team-a", "v", fmt.Sprintf(keyless, ", rootTrustStoreRef: {name: root}"))}
	for name, c := range map[string]struct {
		documents []string
		source    external.Source
		refs      []string
		denial    string
	}{
		"the public-good root": {[]string{written.Namespace("team-a", "1"), written.Object("Verifier", "team-a", "v", fmt.Sprintf(keyless, ""))},
			external.Source{Kind: external.TUF, Owner: "team-a"}, []string{"Verifier team-a/v"},
			"check that tuf.example.com answers, and that Landwaiter's pods can reach it; or use a copy"},
		"the root of a mirror": {own, mirror, []string{"TrustStore team-a/root", "Verifier team-a/v"},
			"check that tuf.example.com answers, and that Landwaiter's pods can reach it; or use a copy"},
		"the root of a cluster's Verifier": {[]string{written.Namespace("team-a", "1"), written.Object("ClusterVerifier", "", "v", fmt.Sprintf(keyless, ""))},
			external.Source{Kind: external.TUF}, []string{"ClusterVerifier v"}, "ask a cluster admin to read that condition"},
	} {
		t.Run(name, func(t *testing.T) {
			s, problems := resolve.Empty(resolve.Outside{Registry: func(a registry.Access) verify.Registry { return &written.NoRegistry{Access: a} }}).
				Next(resolve.Group(written.Objects(t, c.documents...)), external.Fetched{c.source: lost(c.source)})
			require.NotEmpty(t, problems)
			for _, ref := range c.refs {
				report := written.ReportOn(t, s, ref)
				require.Equal(t, "!Unreadable", written.Short(report.Ready))
				require.Contains(t, report.Ready.Message, "nothing in the resource needs correcting: Landwaiter tries again by itself; if it lasts, check that "+
					"tuf.example.com answers, and that Landwaiter's pods can reach it; or use a copy")
			}
			v := written.Verdict(t, s, "team-a", "registry.example.com/app")
			require.Equal(t, policy.Denied, v.Outcome(), "it admits nothing")
			require.Equal(t, policy.Outside(c.denial), v.Remediation)
			require.NotContains(t, v.Text(), "correct ")
		})
	}
}
