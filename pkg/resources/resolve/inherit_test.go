package resolve_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

// allowingAnd is the spec of a policy that allows one registry and has a default.
func allowingAnd(host, action string) string {
	return "defaultAction: " + action + "\n" + allowing(host)
}

func TestImagesThatNoRuleMatchesAreLeftToTheNextLevel(t *testing.T) {
	own := func(name, spec string) string { return written.Object("VerificationPolicy", "iris-web", name, spec) }
	home := func(spec string) string { return written.Object("VerificationPolicy", "iris", "home", spec) }
	cluster := func(spec string) string { return written.Object("ClusterVerificationPolicy", "", "cluster", spec) }
	inherits := own("own", allowingAnd("own.example.com", "Inherit"))
	const broken = "rules: [{images: []}]"
	for name, c := range map[string]struct {
		documents []string
		allowed   []string // of own, home, cluster and other
		says      string   // about other.example.com
	}{
		"to the home namespace, which denies by default": {[]string{inherits, home(allowing("home.example.com")), cluster("defaultAction: Allow")},
			[]string{"own", "home"}, "no rule of VerificationPolicy iris/home matches"},
		"through home to " +
			"the cluster": {[]string{inherits, home(allowingAnd("home.example.com", "Inherit")), cluster(allowing("cluster.example.com"))},
			[]string{"own", "home", "cluster"}, "no rule of ClusterVerificationPolicy cluster matches"},
		"to the cluster, which allows": {[]string{inherits, cluster("defaultAction: Allow")}, []string{"own", "home", "cluster", "other"},
			"its defaultAction is Allow"},
		"to nobody": {[]string{inherits}, []string{"own"},
			"its defaultAction is Inherit, but no further level has a policy, or a Verifier for it"},
		"to one that only warns": {[]string{inherits, cluster(written.Warn + "defaultAction: Allow")},
			[]string{"own", "home", "cluster", "other"}, "every other policy that applies only warn"},
		"to one that is broken": {[]string{inherits, home(broken), cluster("defaultAction: Allow")}, []string{"own"},
			"VerificationPolicy iris/home cannot be used"},
		"Deny in the same level prevails": {[]string{inherits, own("z", "defaultAction: Deny"), cluster("defaultAction: Allow")}, []string{"own"},
			"its defaultAction is Deny"},
		"Inherit prevails over Allow": {[]string{inherits, own("z", "defaultAction: Allow"), cluster(allowing("cluster.example.com"))},
			[]string{"own", "cluster"}, "no rule of ClusterVerificationPolicy cluster matches"},
		"Inherit first by name": {[]string{own("a", "defaultAction: Allow"), own("z", allowingAnd("own.example.com", "Inherit"))},
			[]string{"own"}, "no rule of VerificationPolicy iris-web/z matches"},
		"a broken one inherits nothing": {[]string{own("own", "defaultAction: Inherit\n"+broken), cluster("defaultAction: Allow")}, nil,
			"cannot be used"},
		"one that warns " +
			"decides nothing": {[]string{own("own", written.Warn+allowingAnd("own.example.com", "Inherit")), cluster(allowing("cluster.example.com"))},
			[]string{"cluster"}, "no rule of ClusterVerificationPolicy"},
		"a mandatory " +
			"policy holds": {[]string{inherits, cluster("defaultAction: Allow"),
			written.Object("ClusterVerificationPolicy", "", "mandatory", "scope: Mandatory\n"+allowing("own.example.com"))}, []string{"own"},
			"no rule of mandatory ClusterVerificationPolicy mandatory"},
		"not from the cluster": {[]string{cluster("defaultAction: Inherit")}, nil,
			"no rule of ClusterVerificationPolicy cluster matches other.example.com/app, and its defaultAction is Deny"},
		"not from a mandatory policy": {
			[]string{cluster("defaultAction: Allow"), written.Object("ClusterVerificationPolicy", "", "mandatory", "scope: Mandatory\ndefaultAction: Inherit")}, nil,
			"no rule of mandatory ClusterVerificationPolicy mandatory matches other.example.com/app, and its defaultAction is Deny"},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot, _ := written.Compiled(
				written.Objects(t,
					append(c.documents, written.Object("Tenant", "", "iris", written.Iris), written.Namespace("iris", "1"), written.Namespace("iris-web", "2"))...))
			var allowed []string
			for _, host := range []string{"own", "home", "cluster", "other"} {
				got := written.Verdict(t, snapshot, "iris-web", host+".example.com/app")
				if got.Outcome() == policy.Allowed {
					allowed = append(allowed, host)
				}
				if host == "other" {
					require.Contains(t, got.Reason, c.says)
				}
			}
			require.Equal(t, c.allowed, allowed)
		})
	}
}

func TestImagesThatAreLeftToTheNextLevelAreJudgedAsInANamespaceWithoutResources(t *testing.T) {
	keys := written.InlineKey(string(written.NewKey(t).PEM))
	own := []string{written.Object("TrustStore", "iris-web", "keys", keys), written.Object("Verifier", "iris-web", "release", written.CosignVerifier),
		written.Object("VerificationPolicy", "iris-web", "own", allowingAnd("own.example.com", "Inherit"))}
	home := []string{written.Object("TrustStore", "iris", "keys", keys), written.Object("Verifier", "iris", "home", written.CosignVerifier)}
	cluster := []string{written.Object("ClusterTrustStore", "", "keys", keys), written.Object("ClusterVerifier", "", "company", written.CosignVerifier)}
	named := func(kind, namespace, verifier string) string {
		return written.Object(kind, namespace, "rules", written.PolicySpec("{anyOf: ["+verifier+"]}"))
	}
	for name, documents := range map[string][]string{
		"a policy that names a Verifier": append(cluster, named("ClusterVerificationPolicy", "", "company")),
		"a policy that asks for a type": append(cluster,
			written.Object("ClusterVerificationPolicy", "", "rules", written.PolicySpec("{types: [Cosign]}"))),
		"a policy of the home namespace":                      append(append(home, cluster...), named("VerificationPolicy", "iris", "home")),
		"the home namespace's Verifiers, the cluster's rules": append(append(home, cluster...), named("ClusterVerificationPolicy", "", "home")),
		"Verifiers without a policy":                          cluster,
		"a policy that only warns": append(cluster,
			written.Object("ClusterVerificationPolicy", "", "rules", written.Warn+written.PolicySpec("{anyOf: [company]}"))),
		"a policy that cannot be used": append(cluster, written.Object("ClusterVerificationPolicy", "", "rules", "rules: [{images: []}]")),
		"nothing":                      nil,
	} {
		t.Run(name, func(t *testing.T) {
			documents := append([]string{written.Object("Tenant", "", "iris", "{homeNamespace: iris, namespaces: [iris-web, iris-bare]}"),
				written.Namespace("iris", "1"), written.Namespace("iris-web", "2"), written.Namespace("iris-bare", "2")}, documents...)
			snapshot, _ := written.Compiled(written.Objects(t, append(documents, own...)...))
			require.NotNil(t, snapshot.For("iris-web").Tiers[0].Next)
			next, bare := *snapshot.For("iris-web").Tiers[0].Next, snapshot.For("iris-bare").Tiers[0]
			next.Registry, bare.Registry = nil, nil
			require.Equal(t, bare, next)
		})
	}
}

func TestInheritedRulesUseTheVerifiersOfTheirLevel(t *testing.T) {
	keys := written.InlineKey(string(written.NewKey(t).PEM))
	documents := []string{written.Namespace("team-a", "1"), written.Object("TrustStore", "team-a", "keys", keys),
		written.Object("Verifier", "team-a", "release", written.CosignVerifier),
		written.Object("VerificationPolicy", "team-a", "own", allowingAnd("own.example.com", "Inherit")),
		written.Object("ClusterTrustStore", "", "keys", keys), written.Object("ClusterVerifier", "", "company", written.CosignVerifier),
		written.Object("ClusterVerificationPolicy", "", "cluster", written.PolicySpec("{anyOf: [company]}"))}
	snapshot, problems := written.Compiled(written.Objects(t, documents...))
	require.Empty(t, problems)
	require.Len(t, conditions.Ineffective(snapshot), 1, "the namespace's own Verifier, which no policy asks for")
	for source, want := range map[string]string{
		"Verifier team-a/release":       "no policy that applies asks for it",
		"VerificationPolicy team-a/own": "in force in its namespace; images that no rule matches are judged by ClusterVerificationPolicy cluster",
		"ClusterVerifier company":       "in force in namespaces without a Verifier of their own, and for images that their policies leave to the next level",
		"ClusterVerificationPolicy cluster": "in force in namespaces without a VerificationPolicy of their own, and for images that their policies leave to " +
			"the next level",
	} {
		require.Equal(t, want, written.ReportOn(t, snapshot, source).Effective.Message)
	}

	// What is inherited is part of the generation, and a change of it links the namespace again.
	was, last := snapshot.For("team-a").Generation, len(documents)-1
	changed, _ := snapshot.Next(
		resolve.Group(written.Objects(t, append(documents[:last:last], written.Object("ClusterVerificationPolicy", "", "cluster", "defaultAction: Allow"))...)).
			Only(verify.Cluster), nil)
	require.NotEqual(t, was, changed.For("team-a").Generation)
	require.Equal(t, policy.Allowed, written.Verdict(t, changed, "team-a", "r.example.com/app").Outcome())
	changed, _ = snapshot.Next(
		resolve.Group(
			written.Objects(t,
				append(documents[:last-1:last-1], written.Object("ClusterVerifier", "", "company", written.CosignVerifier+"\nimages: [\"r.example.com/**\"]"),
					documents[last])...)).Only(verify.Cluster), nil)
	require.NotEqual(t, was, changed.For("team-a").Generation)
	require.NotEqual(t, snapshot.For("team-a").Tiers[0].Next.Verifiers, changed.For("team-a").Tiers[0].Next.Verifiers)
	gone, _ := snapshot.Next(resolve.Group(resource.Objects{}).Only(verify.Cluster), nil)
	require.Equal(t, policy.Denied, written.Verdict(t, gone, "team-a", "r.example.com/app").Outcome())
	require.Contains(t, written.ReportOn(t, gone, "VerificationPolicy team-a/own").Effective.Message,
		"images that no rule matches are denied: its defaultAction is Inherit, and no further level has a policy that denies or a Verifier")
}

func TestImagesThatAreLeftToTheNextLevelAreFoundAsItSays(t *testing.T) {
	store := func(kind, namespace, name, hosts, more string) string {
		return written.Object(kind, namespace, name, "registries: ["+hosts+"]"+more)
	}
	const elsewhere = "\nmirrors: [{host: mirror.example.com, path: \"{registry}/{repository}\"}]\nevidence: {exclusive: true, repositories: [{repository: " +
		"\"evidence.example.com/{registry}/{repository}\"}]}"
	documents := []string{written.Object("Tenant", "", "iris", written.Iris), written.Namespace("iris", "1"), written.Namespace("iris-web", "2"),
		written.Object("VerificationPolicy", "iris-web", "own", allowingAnd("own.example.com", "Inherit")),
		store("Store", "iris-web", "own", "both.example.com, own.example.com, mid.example.com", elsewhere),
		store("Store", "iris-web", "unknown", "\"\"", ""),
		store("Store", "iris", "home", "mid.example.com, home.example.com", elsewhere),
		store("ClusterStore", "", "company", "both.example.com, company.example.com", elsewhere)}
	from := func(snapshot *resolve.Snapshot, host string) string {
		s := snapshot.For("iris-web").Tiers[0].Next.Registry.(*written.NoRegistry).Access.StoreFor(host)
		return fmt.Sprintf("%s, %d mirrors, %d repositories of evidence, only these: %t", s.Source, len(s.Mirrors), len(s.Evidence), s.EvidenceExclusive)
	}
	const whole, bare = ", 1 mirrors, 1 repositories of evidence, only these: true", ", 0 mirrors, 0 repositories of evidence, only these: false"
	snapshot, problems := written.Compiled(written.Objects(t, append(documents, written.Object("VerificationPolicy", "iris", "home", "defaultAction: Allow"))...))
	require.Len(t, problems, 1, "of the Store whose registries are unknown")
	for host, want := range map[string]string{
		"both.example.com":    "ClusterStore company" + whole, // which the namespace's would hide
		"company.example.com": "ClusterStore company" + whole,
		"mid.example.com":     "Store iris/home" + whole,
		"home.example.com":    "Store iris/home" + whole,
		"own.example.com":     "Store iris-web/own" + bare, // lends its login
		"other.example.com":   "Store iris-web/unknown" + bare,
	} {
		require.Equal(t, want, from(snapshot, host), host)
	}
	require.Error(t, snapshot.For("iris-web").Tiers[0].Next.Registry.(*written.NoRegistry).Access.StoreFor("other.example.com").Broken,
		"it may be for any host that the next level does not list")
	// Past the home namespace, its Stores lend as well, after those of the namespace.
	snapshot, _ = written.Compiled(written.Objects(t, append(documents, written.Object("VerificationPolicy", "iris", "home", "defaultAction: Inherit"))...))
	further := snapshot.For("iris-web").Tiers[0].Next.Next.Registry.(*written.NoRegistry).Access
	require.Equal(t, "ClusterStore company", further.StoreFor("both.example.com").Source.String())
	require.Equal(t, "Store iris-web/own", further.StoreFor("mid.example.com").Source.String())
	require.Empty(t, further.StoreFor("mid.example.com").Mirrors)
}

func TestAPolicyThatWarnsWarnsAsItWouldInherit(t *testing.T) {
	documents := []string{written.Namespace("team-a", "1"),
		written.Object("VerificationPolicy", "team-a", "w", written.Warn+allowingAnd("own.example.com", "Inherit")),
		written.Object("VerificationPolicy", "team-a", "z", "defaultAction: Allow"),
		written.Object("ClusterVerificationPolicy", "", "cluster", allowing("cluster.example.com"))}
	snapshot, problems := written.Compiled(written.Objects(t, documents...))
	require.Empty(t, problems)
	for image, warnings := range map[string]int{"own.example.com/app": 0, "cluster.example.com/app": 0, "other.example.com/app": 1} {
		got := written.Verdict(t, snapshot, "team-a", image)
		require.Equal(t, policy.Allowed, got.Outcome(), image)
		require.Equal(t, warnings == 1, got.Warning != "", image)
	}
	changed, _ := snapshot.Next(resolve.Group(written.Objects(t, written.Object("ClusterVerificationPolicy", "", "cluster", allowing("other.example.com")))).
		Only(verify.Cluster), nil)
	require.NotEqual(t, snapshot.For("team-a").Generation, changed.For("team-a").Generation, "cached warnings would be wrong")
	require.Empty(t, written.Verdict(t, changed, "team-a", "other.example.com/app").Warning)
}

func TestTagsArePinnedAsTheNearestLevelSays(t *testing.T) {
	for name, c := range map[string]struct {
		decides, own, home, cluster, mandatory string
		want                                   v1beta1.TagAction
	}{
		"nobody says":                     {"Namespace", "", "", "", "", "Leave"},
		"the namespace pins":              {"Namespace", "Pin", "", "", "", "Pin"},
		"the namespace pins, home leaves": {"Namespace", "Pin", "Leave", "Leave", "", "Pin"},
		"the namespace leaves":            {"Namespace", "Leave", "Pin", "Pin", "", "Leave"},
		"home pins":                       {"Namespace", "", "Pin", "Leave", "", "Pin"},
		"home leaves":                     {"Namespace", "", "Leave", "Pin", "", "Leave"},
		"the cluster pins":                {"Namespace", "", "", "Pin", "", "Pin"},
		"a mandatory policy pins, and nobody leaves":  {"Namespace", "Leave", "Leave", "Leave", "Pin", "Pin"},
		"a mandatory policy leaves":                   {"Namespace", "", "", "", "Leave", "Leave"},
		"a mandatory policy leaves, others pin":       {"Namespace", "Pin", "", "", "Leave", "Pin"},
		"a mandatory policy leaves, the cluster pins": {"Namespace", "", "", "Pin", "Leave", "Pin"},
		"only home and the cluster count":             {"Tenant", "Leave", "Pin", "", "", "Pin"},
		"the home namespace does not say":             {"Tenant", "Pin", "", "Leave", "", "Leave"},
		"only the cluster counts":                     {"Cluster", "Pin", "Pin", "Leave", "", "Leave"},
		"the cluster does not say":                    {"Cluster", "Pin", "Pin", "", "", "Leave"},
	} {
		t.Run(name, func(t *testing.T) {
			documents := []string{written.Object("Tenant", "", "iris", written.Iris+"\nverification: {policyLevel: "+c.decides+"}"), written.Namespace("iris", "1"),
				written.Namespace("iris-web", "2")}
			add := func(kind, namespace, name, tags, more string) {
				if tags != "" {
					documents = append(documents, written.Object(kind, namespace, name, "tags: "+tags+"\ndefaultAction: Allow"+more))
				}
			}
			add("VerificationPolicy", "iris-web", "own", c.own, "")
			add("VerificationPolicy", "iris", "home", c.home, "")
			add("ClusterVerificationPolicy", "", "cluster", c.cluster, "")
			add("ClusterVerificationPolicy", "", "mandatory", c.mandatory, "\nscope: Mandatory")
			snapshot, problems := written.Compiled(written.Objects(t, documents...))
			require.Empty(t, problems)
			require.Equal(t, c.want, snapshot.Tags("iris-web"))
		})
	}
	snapshot, problems := written.Compiled(written.Objects(t, written.Object("VerificationPolicy", "team-a", "a", "tags: Leave"),
		written.Object("VerificationPolicy", "team-a", "b", "tags: Pin\nrules: [{images: []}]"),
		written.Object("VerificationPolicy", "team-c", "a", "tags: Keep")))
	require.Equal(t, v1beta1.TagActionPin, snapshot.Tags("team-a"), "Pin wins, also of one that is broken otherwise")
	require.Len(t, problems, 1)
	require.Equal(t, v1beta1.TagActionPin, snapshot.Tags("team-c"), "a word that is not known")
	require.Equal(t, v1beta1.TagActionLeave, snapshot.Tags(verify.Cluster))
	pinned, _ := snapshot.Next(resolve.Group(written.Objects(t, written.Object("ClusterVerificationPolicy", "", "c", "tags: Pin"))).Only(verify.Cluster), nil)
	require.Equal(t, v1beta1.TagActionPin, pinned.Tags("team-b"), "of the cluster as it is, whatever the namespace's policies are linked to")
}
