package compile_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/external"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
)

var errUnreadable = errors.New("line 3: unknown field spec.kyes")

func TestConditionsTellTheTruth(t *testing.T) {
	keys := inlineKey(string(newKey(t).PEM))
	const broken = "type: PublicKeys\nsource: {inline: rubbish}"
	const spec = "rules: [{images: [\"**\"], require: [{anyOf: [release]}]}]"
	team := []string{namespace("team-a", "1"), object("TrustStore", "team-a", "keys", keys), object("Verifier", "team-a", "release", cosignVerifier)}
	shared := []string{object("ClusterTrustStore", "", "keys", keys), object("ClusterVerifier", "", "base", cosignVerifier)}
	for name, c := range map[string]struct {
		documents        []string
		ref              string // KIND [NAMESPACE/]NAME
		ready, effective string // reasons; "!" in front of one of a condition that is False
		says             string // by Effective, else by Ready where that is False
	}{
		"a policy in force":                                  {append(team, object("VerificationPolicy", "team-a", "p", spec)), "VerificationPolicy team-a/p", "Valid", "InForce", "in force in its namespace"},
		"a verifier that a policy asks for":                  {append(team, object("VerificationPolicy", "team-a", "p", spec)), "Verifier team-a/release", "Valid", "InForce", ""},
		"a trust store that a verifier names":                {team, "TrustStore team-a/keys", "Valid", "InForce", ""},
		"a policy that names nobody":                         {append(team, object("VerificationPolicy", "team-a", "p", policySpec("{anyOf: [gone]}"))), "VerificationPolicy team-a/p", "!NotFound", "Denies", "names Verifier gone, which does not exist"},
		"a policy that names a broken verifier":              {[]string{namespace("team-a", "1"), object("TrustStore", "team-a", "keys", broken), object("Verifier", "team-a", "release", cosignVerifier), object("VerificationPolicy", "team-a", "p", spec)}, "VerificationPolicy team-a/p", "!ReferenceNotReady", "Denies", "Verifier team-a/release cannot be used"},
		"a verifier of a broken trust store":                 {[]string{namespace("team-a", "1"), object("TrustStore", "team-a", "keys", broken), object("Verifier", "team-a", "release", cosignVerifier)}, "Verifier team-a/release", "!ReferenceNotReady", "Denies", "TrustStore team-a/keys cannot be used"},
		"a verifier of no trust store":                       {[]string{namespace("team-a", "1"), object("Verifier", "team-a", "release", cosignVerifier)}, "Verifier team-a/release", "!NotFound", "Denies", "TrustStore team-a/keys does not exist"},
		"a broken trust store":                               {[]string{namespace("team-a", "1"), object("TrustStore", "team-a", "keys", broken)}, "TrustStore team-a/keys", "!Invalid", "!Unused", "no Verifier names it"},
		"more signers than there are keys":                   {append(team, object("VerificationPolicy", "team-a", "p", policySpec("{anyOf: [release], atLeast: 5}"))), "VerificationPolicy team-a/p", "Valid", "!Unsatisfiable", "asks for 5 different signers, and the Verifiers that it asks for trust 1"},
		"a type that nobody checks":                          {append(team, object("VerificationPolicy", "team-a", "p", policySpec("{types: [Notation]}"))), "VerificationPolicy team-a/p", "Valid", "!Unsatisfiable", "none of the Verifiers that it requires applies"},
		"a verifier that no policy asks for":                 {append(team, object("Verifier", "team-a", "idle", cosignVerifier), object("VerificationPolicy", "team-a", "p", spec)), "Verifier team-a/idle", "Valid", "!Unused", "no policy that applies asks for it"},
		"verifiers without any policy":                       {team, "Verifier team-a/release", "Valid", "InForce", ""},
		"a trust store of nobody":                            {append(team, object("TrustStore", "team-a", "idle", keys)), "TrustStore team-a/idle", "Valid", "!Unused", ""},
		"a policy that warns":                                {append(team, object("VerificationPolicy", "team-a", "p", warn+spec)), "VerificationPolicy team-a/p", "Valid", "OnlyWarns", "denies nothing until its enforcementAction is Deny"},
		"a broken policy that warns beside one that decides": {append(team, object("VerificationPolicy", "team-a", "p", spec), object("VerificationPolicy", "team-a", "w", warn+"rules: [{images: []}]")), "VerificationPolicy team-a/w", "!Invalid", "OnlyWarns", "adds a warning for every image and denies nothing"},
		"a broken policy that warns alone":                   {append(team, object("VerificationPolicy", "team-a", "w", warn+"rules: [{images: []}]")), "VerificationPolicy team-a/w", "!Invalid", "Denies", "what depends on it is denied"},
		"a broken mandatory policy that warns":               {append(shared, object("ClusterVerificationPolicy", "", "f", "scope: Mandatory\n"+warn+"rules: [{images: []}]")), "ClusterVerificationPolicy f", "!Invalid", "OnlyWarns", "denies nothing"},
		"a type whose only verifier is broken":               {[]string{namespace("team-a", "1"), object("TrustStore", "team-a", "keys", broken), object("Verifier", "team-a", "release", cosignVerifier), object("VerificationPolicy", "team-a", "p", policySpec("{types: [Cosign]}"))}, "VerificationPolicy team-a/p", "Valid", "!Unsatisfiable", "can be used"},
		"a policy beside one that warns":                     {append(team, object("VerificationPolicy", "team-a", "p", spec), object("VerificationPolicy", "team-a", "w", warn+spec)), "VerificationPolicy team-a/p", "Valid", "InForce", "in force in its namespace"},
		"a mandatory policy that warns":                      {append(shared, object("ClusterVerificationPolicy", "", "f", "scope: Mandatory\n"+warn+policySpec("{anyOf: [base]}"))), "ClusterVerificationPolicy f", "Valid", "OnlyWarns", "a mandatory policy that only warns"},
		"a mandatory policy":                                 {append(shared, object("ClusterVerificationPolicy", "", "f", "scope: Mandatory\n"+policySpec("{anyOf: [base]}"))), "ClusterVerificationPolicy f", "Valid", "InForce", "a mandatory policy: must hold in every namespace"},
		"a mandatory policy that nobody can meet":            {append(shared, object("ClusterVerificationPolicy", "", "f", "scope: Mandatory\n"+policySpec("{anyOf: [base], atLeast: 2}"))), "ClusterVerificationPolicy f", "Valid", "!Unsatisfiable", ""},
		"a cluster policy that all override":                 {append(append(team, shared...), object("VerificationPolicy", "team-a", "p", spec), object("ClusterVerificationPolicy", "", "c", policySpec("{anyOf: [base]}"))), "ClusterVerificationPolicy c", "Valid", "!Overridden", "every namespace has a VerificationPolicy of its own"},
		"a cluster policy that some override":                {append(append(team, shared...), namespace("team-b", "2"), object("VerificationPolicy", "team-a", "p", spec), object("ClusterVerificationPolicy", "", "c", policySpec("{anyOf: [base]}"))), "ClusterVerificationPolicy c", "Valid", "InForce", ""},
		"a cluster verifier that all override":               {append(team, shared...), "ClusterVerifier base", "Valid", "!Overridden", ""},
		"overridden, but a mandatory policy asks for it":     {append(append(team, shared...), object("ClusterVerificationPolicy", "", "f", "scope: Mandatory\n"+policySpec("{anyOf: [base]}"))), "ClusterVerifier base", "Valid", "InForce", ""},
		"the first verifier of a namespace":                  {append(team, shared...), "Verifier team-a/release", "Valid", "InForce", "these no longer apply there: ClusterVerifier base"},
		"the first verifier under a policy of the cluster":   {append(append(team, shared...), object("ClusterVerificationPolicy", "", "c", policySpec("{anyOf: [base]}"))), "Verifier team-a/release", "Valid", "!Unused", "no policy that applies asks for it; ClusterVerificationPolicy c requires base, which does not apply where a namespace has Verifiers of its own, so images are denied: create a VerificationPolicy in the namespace"},
		"one that replaces the cluster's by name":            {append(append(team, shared...), object("ClusterVerificationPolicy", "", "c", policySpec("{anyOf: [base, release]}"))), "Verifier team-a/release", "Valid", "InForce", "these no longer apply there: ClusterVerifier base"},
		"one that all of the cluster's policy need":          {append(append(team, shared...), object("ClusterVerificationPolicy", "", "c", policySpec("{allOf: [release, base]}"))), "Verifier team-a/release", "Valid", "InForce", "ClusterVerifier base; ClusterVerificationPolicy c requires base, which does not apply"},
		"a policy that names a hidden verifier":              {append(append(team, shared...), object("VerificationPolicy", "team-a", "p", policySpec("{anyOf: [base]}"))), "VerificationPolicy team-a/p", "!NotFound", "Denies", "names Verifier base, which does not exist among the Verifiers that apply; the namespace has Verifiers of its own, so those of further levels, its Tenant's home namespace and the cluster, do not apply there"},
		"a policy that warns before the cluster's": {append(append(team, shared...), object("VerificationPolicy", "team-a", "p", warn+spec), object("ClusterVerificationPolicy", "", "c", policySpec("{anyOf: [base]}"))), "VerificationPolicy team-a/p", "Valid", "OnlyWarns",
			"as if it did not exist, ClusterVerificationPolicy c decides; ClusterVerificationPolicy c requires base, which does not apply where a namespace has Verifiers of its own, so images are denied: " +
				"create a VerificationPolicy in the namespace that requires its Verifiers, or set enforcementAction of VerificationPolicy team-a/p to Deny and loosen its rules instead"},
		"a store that comes second":               {[]string{namespace("team-a", "1"), object("Store", "team-a", "a", "registries: [r.example.com]"), object("Store", "team-a", "b", "registries: [r.example.com]")}, "Store team-a/b", "Valid", "!Overridden", "come first by name"},
		"a store with a host of its own":          {[]string{namespace("team-a", "1"), object("Store", "team-a", "a", "registries: [r.example.com]"), object("Store", "team-a", "b", "registries: [r.example.com, s.example.com]")}, "Store team-a/b", "Valid", "InForce", ""},
		"a quota":                                 {[]string{namespace("team-a", "1"), object("ClusterQuota", "", "q", "namespaces: [team-a]\nmaxInFlight: 70")}, "ClusterQuota q", "Valid", "InForce", ""},
		"a quota for nobody":                      {[]string{namespace("team-a", "1"), object("ClusterQuota", "", "q", "namespaces: [team-z]\nmaxInFlight: 70")}, "ClusterQuota q", "Valid", "!AppliesNowhere", ""},
		"a quota that cannot be used":             {[]string{namespace("team-a", "1"), object("ClusterQuota", "", "q", "namespaces: [team-a]")}, "ClusterQuota q", "!Invalid", "!AppliesNowhere", "default quota"},
		"a namespace's verifiers meet the shared": {append(team, object("ClusterVerificationPolicy", "", "c", policySpec("{types: [Cosign]}"))), "ClusterVerificationPolicy c", "Valid", "InForce", ""},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot, _ := compiled(objects(t, c.documents...))
			report := reportOn(t, snapshot, c.ref)
			require.Equal(t, c.ready, short(report.Ready), report.Ready.Message)
			require.Equal(t, c.effective, short(report.Effective), report.Effective.Message)
			require.NotEmpty(t, report.Ready.Message)
			require.NotEmpty(t, report.Effective.Message)
			require.Contains(t, report.Effective.Message+" "+report.Ready.Message, c.says)
		})
	}
}

// short is a condition's reason, with "!" in front of one that is False.
func short(c compile.Condition) string {
	if c.True {
		return string(c.Reason)
	}
	return "!" + string(c.Reason)
}

func reportOn(t *testing.T, s *compile.Snapshot, ref string) compile.Report {
	t.Helper()
	for _, namespace := range s.Namespaces() {
		for source, report := range s.Reports(namespace) {
			if source.String() == ref {
				require.Equal(t, string(namespace), source.Namespace)
				return report
			}
		}
	}
	require.FailNow(t, "no report on "+ref)
	return compile.Report{}
}

func TestAChangeOfTheClusterLeavesNamespacesThatItDoesNotConcern(t *testing.T) {
	keys, others := inlineKey(string(newKey(t).PEM)), inlineKey(string(newKey(t).PEM))
	full := func(ns string) []string {
		return []string{namespace(ns, ns), object("TrustStore", ns, "keys", keys), object("Verifier", ns, "own", cosignVerifier),
			object("Store", ns, "own", "registries: [own.example.com]"), object("VerificationPolicy", ns, "own", policySpec("{anyOf: [own]}"))}
	}
	teams := append(full("team-full"), namespace("team-empty", "2"), namespace("team-ref", "3"),
		object("Verifier", "team-ref", "corp", "type: Cosign\ncosign: {keys: {trustStoreRefs: [{kind: ClusterTrustStore, name: corp}], insecureIgnoreTransparencyLog: true}}"))
	cluster := func(more ...string) []string {
		return append(more, object("ClusterTrustStore", "", "keys", keys), object("ClusterVerifier", "", "shared", cosignVerifier))
	}
	corp := object("ClusterTrustStore", "", "corp", keys)
	for name, c := range map[string]struct {
		before, after []string
		concerned     []verify.Namespace
	}{
		"another trust store that one names": {cluster(corp), cluster(object("ClusterTrustStore", "", "corp", others)), []verify.Namespace{"team-ref"}},
		"a trust store that is deleted":      {cluster(corp), cluster(), []verify.Namespace{"team-ref"}},
		"a verifier":                         {cluster(corp), cluster(corp, object("ClusterVerifier", "", "more", cosignVerifier)), []verify.Namespace{"team-empty"}},
		"a policy":                           {cluster(corp), cluster(corp, object("ClusterVerificationPolicy", "", "c", policySpec("{types: [Cosign]}"))), []verify.Namespace{"team-empty", "team-ref"}},
		"a mandatory policy":                 {cluster(corp), cluster(corp, object("ClusterVerificationPolicy", "", "f", "scope: Mandatory\n"+policySpec("{types: [Cosign]}"))), []verify.Namespace{"team-empty", "team-full", "team-ref"}},
		"a store":                            {cluster(corp), cluster(corp, object("ClusterStore", "", "s", "registries: [r.example.com]")), []verify.Namespace{"team-empty", "team-full", "team-ref"}},
		"a quota":                            {cluster(corp), cluster(corp, object("ClusterQuota", "", "q", "namespaces: [team-full]\nmaxInFlight: 70")), []verify.Namespace{"team-full"}},
		"nothing":                            {cluster(corp), cluster(corp), nil},
	} {
		t.Run(name, func(t *testing.T) {
			was, _ := compiled(objects(t, append(c.before, teams...)...))
			whole, _ := compiled(objects(t, append(c.after, teams...)...))
			got, _ := was.WithCluster(compile.Group(objects(t, c.after...)), nil)
			var changed []verify.Namespace
			for _, n := range []verify.Namespace{"team-empty", "team-full", "team-ref"} {
				require.Equal(t, whole.For(n).Generation, got.For(n).Generation, n)
				require.Equal(t, whole.For(n).Limits, got.For(n).Limits, n)
				require.Equal(t, whole.Explain(n), got.Explain(n), n)
				require.Equal(t, whole.Reports(n), got.Reports(n), n)
				if was.For(n) != got.For(n) {
					changed = append(changed, n)
				}
			}
			require.Equal(t, whole.For(verify.Cluster).Generation, got.For(verify.Cluster).Generation)
			require.Equal(t, whole.Reports(verify.Cluster), got.Reports(verify.Cluster))
			require.Equal(t, c.concerned, changed)
		})
	}
}

func TestReportsShowWhatATrustStoreHolds(t *testing.T) {
	key := newKey(t)
	snapshot, _ := compiled(objects(t, namespace("team-a", "1"), object("TrustStore", "team-a", "keys", inlineKey(string(key.PEM)))))
	report := reportOn(t, snapshot, "TrustStore team-a/keys")
	require.Len(t, report.Fingerprints, 1)
	require.Contains(t, report.Fingerprints[0], "sha256:")
	require.True(t, report.FetchedAt.IsZero())
	require.Empty(t, snapshot.Reports("team-b"))
	require.Equal(t, policy.ReasonValid, report.Ready.Reason)
}

func TestATokenOfTheClusterThatIsFetchedAgainReachesEveryNamespace(t *testing.T) {
	cluster := object("ClusterStore", "", "ecr", "registries: [123456789012.dkr.ecr.eu-west-1.amazonaws.com]\nidentity: {provider: ECR}")
	source := compile.Group(objects(t, cluster)).Externals()[verify.Cluster][0]
	token := func(value string) compile.Fetched {
		login := fmt.Sprintf(`{"auths":{"123456789012.dkr.ecr.eu-west-1.amazonaws.com":{"username":"AWS","password":%q}}}`, value)
		return compile.Fetched{source: external.Value{Content: []byte(login), FetchedAt: time.Now()}}
	}
	outside := compile.Outside{Registry: func(a registry.Access) verify.Registry { return &noRegistry{access: a} }}
	password := func(s *compile.Snapshot) any {
		stores := s.For("team-a").Layers[0].Registry.(*noRegistry).access.Stores
		return stores[len(stores)-1].Credentials["123456789012.dkr.ecr.eu-west-1.amazonaws.com"]
	}
	was, problems := compile.New(objects(t, cluster, namespace("team-a", "1"), store("team-a", "own", "own.example.com")), token("one"), outside)
	require.Empty(t, problems)
	got, problems := was.WithCluster(compile.Group(objects(t, cluster)), token("two"))
	require.Empty(t, problems)
	require.NotEqual(t, password(was), password(got))
	require.Equal(t, was.For("team-a").Generation, got.For("team-a").Generation, "a token changes no verdict")
}

func TestANamespaceReadsNothingOfOthersInWhatTheClusterBroke(t *testing.T) {
	snapshot, problems := compiled(objects(t, namespace("team-a", "1"),
		object("ClusterTrustStore", "", "keys", "type: PublicKeys\nsource: {secretKeyRef: {name: merger, key: k}}"),
		object("ClusterVerifier", "", "base", cosignVerifier),
		object("ClusterStore", "", "s", "registries: [r.example.com]\nimagePullSecrets: [{name: merger}]"),
		object("Verifier", "team-a", "v", "type: Cosign\ncosign: {keys: {trustStoreRefs: [{kind: ClusterTrustStore, name: keys}], insecureIgnoreTransparencyLog: true}}")))
	require.Contains(t, problems[0].Message, "Secret landwaiter-system/merger does not exist", "cluster admins read why")
	report := reportOn(t, snapshot, "Verifier team-a/v")
	require.Contains(t, report.Ready.Message, "ClusterTrustStore keys cannot be used; its condition Ready says why")
	for _, text := range []string{report.Ready.Message, whyUnusable(snapshot.For("team-a")), whyUnusable(snapshot.For("team-b"))} {
		require.NotContains(t, text, "merger")
	}
}
