package resolve_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

// allowing is the spec of a policy that allows the images of one registry only.
func allowing(host string) string {
	return fmt.Sprintf("rules: [{images: [%q], action: Allow}]", host+"/**")
}

// verdict decides about an image whose policies ask for no evidence.
func storesOf(l verify.Tier) []string {
	names := []string{}
	for _, s := range l.Registry.(*written.NoRegistry).Access.Stores {
		names = append(names, s.Source.Name)
	}
	return names
}

// ending is a namespace that is being deleted.
func ending(name string) corev1.Namespace {
	return corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "9", DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)}}}
}

func TestRulesOfHomeHoldInEveryMemberAndNowhereElse(t *testing.T) {
	keys := written.InlineKey(string(written.NewKey(t).PEM))
	snapshot, problems := written.Compiled(written.Objects(t, written.Object("Tenant", "", "iris", written.Iris),
		written.Namespace("iris", "1"), written.Namespace("iris-web", "2"), written.Namespace("iris-dev-a", "3"), written.Namespace("rose", "4"),
		written.Object("VerificationPolicy", "iris", "team", allowing("team.example.com")),
		written.Object("TrustStore", "iris", "keys", keys), written.Object("Verifier", "iris", "release", written.CosignVerifier),
		written.Object("Store", "iris", "team", "registries: [team.example.com]"),
		written.Object("ClusterVerificationPolicy", "", "lax", allowing("lax.example.com")), written.Object("ClusterTrustStore", "", "keys", keys),
		written.Object("TrustStore", "iris-web", "keys", keys), written.Object("Verifier", "iris-web", "own", written.CosignVerifier),
	))
	require.Empty(t, problems)
	for namespace, verifier := range map[verify.Namespace]string{"iris": "release", "iris-web": "own", "iris-dev-a": "release", "iris-dev-new": "release"} {
		require.Equal(t, policy.Allowed, written.Verdict(t, snapshot, namespace, "team.example.com/app").Outcome(), namespace)
		require.Equal(t, policy.Denied, written.Verdict(t, snapshot, namespace, "lax.example.com/app").Outcome(),
			"%s: the team's policy replaces the cluster's", namespace)
		tier := snapshot.For(namespace).Tiers[0]
		require.Equal(t, []string{"team"}, storesOf(tier), namespace)
		require.Len(t, tier.Verifiers, 1)
		require.Equal(t, verifier, tier.Verifiers[0].Source.Name, "each kind on its own, in %s", namespace)
		require.Equal(t, "iris", snapshot.Tenant(namespace))
	}
	for _, namespace := range []verify.Namespace{"rose", "iris-development", "iris-dev", verify.Cluster} {
		require.Equal(t, policy.Denied, written.Verdict(t, snapshot, namespace, "team.example.com/app").Outcome(), namespace)
		require.Equal(t, policy.Allowed, written.Verdict(t, snapshot, namespace, "lax.example.com/app").Outcome(), namespace)
		require.Empty(t, storesOf(snapshot.For(namespace).Tiers[0]), namespace)
		require.Empty(t, snapshot.Tenant(namespace))
	}
	require.Same(t, snapshot.For("iris").Tiers[0].Verifiers[0], snapshot.For("iris-dev-a").Tiers[0].Verifiers[0], "the home namespace is compiled once")
}

func TestTrustStoresAreFoundFromWhereTheirVerifierIs(t *testing.T) {
	keys := written.InlineKey(string(written.NewKey(t).PEM))
	const clusters = "type: Cosign\ncosign: {keys: {trustStoreRefs: [{kind: ClusterTrustStore, name: shared}], insecureIgnoreTransparencyLog: true}}"
	snapshot, problems := written.Compiled(written.Objects(t, written.Object("Tenant", "", "iris", written.Iris), written.Namespace("iris", "1"),
		written.Namespace("iris-web", "2"),
		written.Object("ClusterTrustStore", "", "shared", keys), written.Object("TrustStore", "iris", "keys", keys),
		written.Object("Verifier", "iris", "of-home", written.CosignVerifier), written.Object("Verifier", "iris", "of-cluster", clusters),
		written.Object("Verifier", "iris-web", "of-home", written.CosignVerifier), written.Object("Verifier", "iris-web", "of-cluster", clusters)))
	require.Len(t, problems, 1)
	require.Equal(t, "TrustStore iris-web/keys does not exist", strings.TrimPrefix(problems[0].Message, "spec.cosign.keys.trustStoreRefs[0]: "))
	for _, v := range snapshot.For("iris-dev-x").Tiers[0].Verifiers {
		require.NoError(t, v.Broken, "a Verifier of the home namespace reaches the home namespace and the cluster")
	}
	require.ErrorContains(t, snapshot.For("iris-web").Tiers[0].Verifiers[1].Broken, "TrustStore iris-web/keys does not exist",
		"a tenant namespace's own does not reach the home namespace")
}

func TestTheNearestLevelThatCountsDecides(t *testing.T) {
	type level struct{ name, namespace string }
	levels := []level{{"own", "iris-web"}, {"home", "iris"}, {"cluster", ""}}
	skipped := map[string]int{"Namespace": 0, "Tenant": 1, "Cluster": 2}
	for decides, skip := range skipped {
		for combination := range 27 {
			states := []int{combination % 3, combination / 3 % 3, combination / 9} // absent, present, broken
			documents := []string{written.Object("Tenant", "", "iris", written.Iris+"\nverification: {policyLevel: "+decides+"}"), written.Namespace("iris", "1"),
				written.Namespace("iris-web", "2")}
			want, name := "none", decides
			for i, l := range levels {
				kind := "VerificationPolicy"
				if l.namespace == "" {
					kind = "ClusterVerificationPolicy"
				}
				state := "absent"
				switch states[i] {
				case 1:
					state = "present"
					documents = append(documents, written.Object(kind, l.namespace, l.name, allowing(l.name+".example.com")))
				case 2:
					state = "broken"
					documents = append(documents, written.Object(kind, l.namespace, l.name, "rules: [{images: []}]"))
				}
				if i >= skip && want == "none" && states[i] > 0 {
					want = state + " " + l.name
				}
				name += ", " + l.name + " " + state
			}
			t.Run(name, func(t *testing.T) {
				snapshot, _ := written.Compiled(written.Objects(t, documents...))
				for _, l := range levels {
					got := written.Verdict(t, snapshot, "iris-web", l.name+".example.com/app")
					require.Equal(t, want == "present "+l.name, got.Outcome() == policy.Allowed, "%s: %s", l.name, got.Reason)
					if broken, ok := strings.CutPrefix(want, "broken "); ok {
						require.Contains(t, got.Reason, broken+" cannot be used")
					}
				}
				for _, c := range snapshot.Explain("iris-web") {
					require.NotEmpty(t, c.Why)
					require.Equal(t, c.Level == resolve.LevelTenant, c.Tenant == "iris")
				}
				for namespace, skips := range map[string]int{"iris-web": 0, "iris": 1} {
					for source, report := range conditions.Reports(snapshot, verify.Namespace(namespace)) {
						overridden := report.Effective.Reason == policy.ReasonOverridden && strings.Contains(report.Effective.Message, "Tenant iris leaves decisions to")
						require.Equal(t, skip > skips, overridden, "%s: %s", source, report.Effective.Message)
					}
				}
			})
		}
	}
}

func TestHomeThatCannotBeUsedDeniesInEveryMember(t *testing.T) {
	tooMany := written.Objects(t, written.Namespace("iris", "1"))
	for i := range 257 {
		p := &v1beta1.VerificationPolicy{}
		p.Namespace, p.Name = "iris", fmt.Sprintf("p%03d", i)
		require.NoError(t, tooMany.Add(p))
	}
	for name, c := range map[string]struct {
		home resource.Objects
		says string
	}{
		"missing":       {resource.Objects{}, "the home namespace iris of Tenant iris does not exist"},
		"being deleted": {resource.Objects{Namespaces: []corev1.Namespace{ending("iris")}}, "the home namespace iris of Tenant iris is being deleted"},
		"unreadable": {resource.Objects{Broken: []resource.Broken{{Source: policy.ObjectRef{Kind: "Namespace", Name: "iris"}, Err: errUnreadable}}},
			"the home namespace iris of Tenant iris cannot be used: Namespace iris cannot be read"},
		"over its limit": {tooMany, "the home namespace iris of Tenant iris cannot be used: namespace iris has 257 resources"},
		"of an older Tenant": {written.Objects(t, written.Namespace("iris", "1"), written.Object("Tenant", "", "a-older", "homeNamespace: other\nnamespaces: [iris]"),
			written.Namespace("other", "4")), "the home namespace iris of Tenant iris belongs to another Tenant"},
	} {
		for _, decides := range []string{"Namespace", "Tenant", "Cluster"} {
			t.Run(name+", decides "+decides, func(t *testing.T) {
				o := written.Objects(t, written.Object("Tenant", "", "iris", written.Iris+"\nverification: {policyLevel: "+decides+"}"), written.Namespace("iris-web", "2"),
					written.Namespace("rose", "3"),
					written.Object("ClusterVerificationPolicy", "", "lax", "defaultAction: Allow"),
					written.Object("VerificationPolicy", "iris-web", "own", "defaultAction: Allow"))
				o.Namespaces, o.Resources, o.Broken = append(o.Namespaces, c.home.Namespaces...), append(o.Resources, c.home.Resources...), c.home.Broken
				snapshot, _ := written.Compiled(o)
				members := []verify.Namespace{"iris-web", "iris-dev-a"}
				if name != "of an older Tenant" {
					members = append(members, "iris")
				}
				for _, member := range members {
					got := written.Verdict(t, snapshot, member, "r.example.com/app")
					switch {
					case decides != "Cluster":
						require.Equal(t, policy.Denied, got.Outcome(), member)
						if member != "iris" || !strings.Contains(c.says, "cannot be used") {
							require.Contains(t, got.Reason, c.says, member)
						}
					case member != "iris" || name != "unreadable":
						require.Equal(t, policy.Allowed, got.Outcome(), "the home namespace does not count, so it cannot deny: %s", got.Reason)
					}
				}
				require.Equal(t, policy.Allowed, written.Verdict(t, snapshot, "rose", "r.example.com/app").Outcome(), "others are untouched")
				report := conditions.Reports(snapshot, verify.Cluster)[policy.ObjectRef{Kind: "Tenant", Name: "iris"}]
				require.False(t, report.Ready.True)
				require.Contains(t, report.Ready.Message+report.Effective.Message, " iris")
			})
		}
	}
}

func TestAnUnreadableTenantDeniesWhereNoOtherTenantListsTheNamespace(t *testing.T) {
	for name, broken := range map[string]func(*resource.Objects){
		"unreadable": func(o *resource.Objects) {
			o.Broken = []resource.Broken{{Source: policy.ObjectRef{Kind: "Tenant", Name: "hidden"}, Err: errors.New("unknown field")}}
		},
		"a prefix without a dash": func(o *resource.Objects) {
			o.Resources = append(o.Resources, written.Objects(t, written.Object("Tenant", "", "hidden", "homeNamespace: h\nnamespacePrefix: team")).Resources...)
		},
		"no home namespace": func(o *resource.Objects) {
			o.Resources = append(o.Resources, written.Objects(t, written.Object("Tenant", "", "hidden", "namespacePrefix: team-")).Resources...)
		},
		"no namespace": func(o *resource.Objects) {
			o.Resources = append(o.Resources, written.Objects(t, written.Object("Tenant", "", "hidden", "homeNamespace: h\nnamespaces: ['team-*']")).Resources...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := written.Objects(t, written.Object("Tenant", "", "iris", written.Iris), written.Namespace("iris", "1"), written.Namespace("rose", "3"),
				written.Object("ClusterVerificationPolicy", "", "lax", "defaultAction: Allow"))
			broken(&o)
			snapshot, problems := written.Compiled(o)
			require.Len(t, problems, 1)
			require.Equal(t, policy.ObjectRef{Kind: "Tenant", Name: "hidden"}, problems[0].Source)
			for _, namespace := range []verify.Namespace{"rose", "undeclared", "iris-dev-a"} {
				got := written.Verdict(t, snapshot, namespace, "r.example.com/app")
				require.Equal(t, policy.Denied, got.Outcome())
				require.Contains(t, got.Reason, "a Tenant cannot be read, so it is unknown whether namespace "+string(namespace)+" belongs to it")
				require.NotContains(t, got.Reason, "hidden", "it may be another team's")
			}
			for _, namespace := range []verify.Namespace{"iris", "iris-web", verify.Cluster} {
				require.Equal(t, policy.Allowed, written.Verdict(t, snapshot, namespace, "r.example.com/app").Outcome(), namespace)
			}
			report := conditions.Reports(snapshot, verify.Cluster)[problems[0].Source]
			require.Equal(t, policy.ReasonDenies, report.Effective.Reason)
		})
	}
	snapshot, problems := written.Compiled(
		written.AsRead(t,
			written.Objects(t, written.Object("Tenant", "", "iris", written.Iris+"\nverification: {policyLevel: Everyone}"), written.Namespace("iris", "1"),
				written.Namespace("rose", "3"),
				written.Object("ClusterVerificationPolicy", "", "lax", "defaultAction: Allow"))))
	require.Contains(t, problems[0].Message, `spec.verification.policyLevel: "Everyone" is not supported`)
	require.Equal(t, policy.Denied, written.Verdict(t, snapshot, "iris-web", "r.example.com/app").Outcome())
	require.Equal(t, policy.Allowed, written.Verdict(t, snapshot, "rose", "r.example.com/app").Outcome(), "its namespaces are known, so others are untouched")
}

func TestNoTenantMayHaveTheNamespaceOfWhatTheClusterReferences(t *testing.T) {
	for spec, field := range map[string]string{
		"homeNamespace: keys-of-all":                     "spec.homeNamespace is keys-of-all",
		"homeNamespace: iris\nnamespaces: [keys-of-all]": "spec.namespaces has keys-of-all",
		"homeNamespace: iris\nnamespacePrefix: keys-":    "spec.namespacePrefix covers keys-of-all",
	} {
		o := written.Objects(t, written.Object("Tenant", "", "iris", spec), written.Namespace("iris", "1"), written.Namespace("keys-of-all", "2"),
			written.Object("ClusterVerificationPolicy", "", "lax", "defaultAction: Allow"))
		_, problems := written.Compiled(o)
		require.Empty(t, problems, "only the cluster resource namespace is taken")
		o.ClusterResourceNamespace = "keys-of-all"
		s, problems := written.Compiled(o)
		require.NotEmpty(t, problems, spec)
		require.Equal(t, policy.ObjectRef{Kind: "Tenant", Name: "iris"}, problems[0].Source)
		require.Contains(t, problems[0].Message, field)
		require.Equal(t, policy.Denied, written.Verdict(t, s, "keys-of-all", "r.example.com/app").Outcome(),
			"%s: what it claims is not judged by the cluster's laxer rules", spec)
	}
}

func TestAnOlderTenantKeepsAContestedNamespace(t *testing.T) {
	at := func(name, spec string, year int) v1beta1.Object {
		tenant := written.Objects(t, written.Object("Tenant", "", name, spec)).Resources[0]
		tenant.SetCreationTimestamp(metav1.Date(year, 1, 1, 0, 0, 0, 0, time.UTC))
		return tenant
	}
	build := func(tenants ...v1beta1.Object) *resolve.Snapshot {
		o := written.Objects(t, written.Namespace("iris", "1"), written.Namespace("rose", "2"), written.Namespace("shared", "3"), written.Namespace("rose-web", "4"),
			written.Object("VerificationPolicy", "iris", "p", allowing("iris.example.com")),
			written.Object("VerificationPolicy", "rose", "p", allowing("rose.example.com")))
		o.Resources = append(o.Resources, tenants...)
		s, _ := written.Compiled(o)
		return s
	}
	allowedIn := func(s *resolve.Snapshot, namespace verify.Namespace) string {
		for _, team := range []string{"iris", "rose"} {
			if written.Verdict(t, s, namespace, team+".example.com/app").Outcome() == policy.Allowed {
				return team
			}
		}
		return "nobody"
	}
	older, younger := at("rose", "homeNamespace: rose\nnamespaces: [shared]", 2020), at("iris", "homeNamespace: iris\nnamespaces: [shared, rose-web]", 2021)
	s := build(older, younger)
	require.Equal(t, "rose", allowedIn(s, "shared"))
	require.Equal(t, "iris", allowedIn(s, "rose-web"), "the younger one applies to its other namespaces")
	report := conditions.Reports(s, verify.Cluster)[policy.ObjectRef{Kind: "Tenant", Name: "iris"}]
	require.Equal(t, "!Conflict", written.Short(report.Ready))
	require.Equal(t, "namespace shared belongs to Tenant rose, which is older", report.Ready.Message)
	require.Equal(t, "InForce", written.Short(report.Effective))
	require.Equal(t, "Valid", written.Short(conditions.Reports(s, verify.Cluster)[policy.ObjectRef{Kind: "Tenant", Name: "rose"}].Ready))
	require.Contains(t, s.TenantNamespaces("iris"), v1beta1.TenantNamespace{Name: "shared", State: v1beta1.NamespaceConflict})

	for _, invalid := range []string{"homeNamespace: rose\nnamespaces: [shared]\nnamespacePrefix: UPPER-", "homeNamespace: rose\nnamespaces: ['x y', shared]",
		"homeNamespace: 'x y'\nnamespaces: [shared]"} {
		require.Equal(t, "nobody", allowedIn(build(at("rose", invalid, 2020), younger), "shared"), "also while it cannot be used: %s", invalid)
	}

	released, _ := s.Next(resolve.Group(resource.Objects{Resources: []v1beta1.Object{at("rose", "homeNamespace: rose", 2020), younger}}).Only(verify.Cluster), nil)
	require.Equal(t, "iris", allowedIn(released, "shared"), "release hands over")
	require.Equal(t, "Valid", written.Short(conditions.Reports(released, verify.Cluster)[policy.ObjectRef{Kind: "Tenant", Name: "iris"}].Ready))
	require.Same(t, s.For("rose-web"), released.For("rose-web"), "others are not touched")
}

func TestTheNamespacesOfATenantAreOneAccount(t *testing.T) {
	snapshot, problems := written.Compiled(
		written.Objects(t, written.Object("Tenant", "", "iris", "homeNamespace: iris\nnamespaces: [iris-web, iris-batch]\nnamespacePrefix: iris-dev-"),
			written.Object("Tenant", "", "team-a", "homeNamespace: rose"),
			written.Namespace("iris", "1"), written.Namespace("iris-web", "2"), written.Namespace("iris-batch", "3"), written.Namespace("rose", "4"),
			written.Namespace("team-a", "5"),
			written.Object("ClusterQuota", "", "a", "tenants: [iris]\nmaxInFlight: 70\nregistryRequestsPerSecond: 9"),
			written.Object("ClusterQuota", "", "b", "tenants: [iris]\nnamespaces: [iris-batch]\nmaxInFlight: 80"),
			written.Object("ClusterQuota", "", "c", "tenants: [nobody]\nmaxInFlight: 80")))
	require.Len(t, problems, 1)
	require.Equal(t, "spec lists what another object lists too: tenant iris has that of ClusterQuota a; the first by name applies, and this one to the rest "+
		"of its lists", problems[0].Message)
	tenants := verify.Limits{InFlight: 70, RegistryPerSecond: 9}
	for namespace, want := range map[verify.Namespace]struct {
		account string
		limits  verify.Limits
	}{
		"iris":          {"tenant/iris", tenants},
		"iris-web":      {"tenant/iris", tenants},
		"iris-dev-late": {"tenant/iris", tenants},
		"iris-batch":    {"namespace/iris-batch", verify.Limits{InFlight: 80}}, // listed itself
		"rose":          {"tenant/team-a", verify.Limits{}},
		"team-a":        {"namespace/team-a", verify.Limits{}}, // not the Tenant of this name
		verify.Cluster:  {"namespace/-", verify.Limits{}},
	} {
		config := snapshot.For(namespace)
		require.Equal(t, verify.Account(want.account), config.Account, namespace)
		require.Equal(t, config.Account, snapshot.Account(namespace))
		require.Equal(t, want.limits, config.Limits, namespace)
		access := config.Tiers[0].Registry.(*written.NoRegistry).Access
		require.Equal(t, config.Account, access.Account, namespace)
		require.Equal(t, namespace, access.Namespace, "keys and tokens stay a namespace's")
		require.Equal(t, want.limits.RegistryPerSecond, access.PerSecond, namespace)
	}
	reports := conditions.Reports(snapshot, verify.Cluster)
	require.Equal(t, "InForce", written.Short(reports[policy.ObjectRef{Kind: "ClusterQuota", Name: "a"}].Effective))
	require.Equal(t, "!AppliesNowhere", written.Short(reports[policy.ObjectRef{Kind: "ClusterQuota", Name: "c"}].Effective))
}

func TestLevelsThatAreCostlyTogetherDenyWhereTheyMeet(t *testing.T) {
	half := func(kind, namespace, name string) string {
		return written.Object(kind, namespace, name, "defaultAction: Inherit\nrules: [{images: ["+
			strings.TrimSuffix(strings.Repeat("\"r.io/"+strings.Repeat("**/*a*/", 15)+"b\", ", 4), ", ")+"], action: Allow}]")
	}
	tenant := written.Object("Tenant", "", "iris", written.Iris)
	snapshot, problems := written.Compiled(written.Objects(t, tenant, written.Namespace("iris", "1"), written.Namespace("iris-web", "2"),
		half("VerificationPolicy", "iris", "home"), half("VerificationPolicy", "iris-web", "own")))
	require.Len(t, problems, 1)
	require.Equal(t, "VerificationPolicy iris-web/own", problems[0].Source.String())
	require.Contains(t, snapshot.For("iris-web").Tiers[0].Judge.Why(), "namespace iris-web has too many rules or patterns")
	require.Empty(t, snapshot.For("iris").Tiers[0].Judge.Why())

	both := []string{tenant, written.Namespace("iris", "1"), written.Namespace("iris-web", "2"), half("VerificationPolicy", "iris", "a"),
		half("VerificationPolicy", "iris", "b")}
	snapshot, problems = written.Compiled(written.Objects(t, both...))
	require.Len(t, problems, 2, "the home namespace's resources are to blame, a tenant namespace has none")
	for _, member := range []verify.Namespace{"iris", "iris-web"} {
		require.Contains(t, snapshot.For(member).Tiers[0].Judge.Why(), "too many rules or patterns", member)
	}
}
