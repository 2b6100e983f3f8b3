package resolve_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/external"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

// scene is what each level has, as documents.
type scene struct {
	d    *rand.Rand
	keys []string
	has  map[verify.Namespace][]string
	// root is what was fetched of a trust store of the cluster.
	root string
}

func (s *scene) one(of ...string) string { return of[s.d.IntN(len(of))] }

// some returns those of the documents that are there this time.
func (s *scene) some(of ...string) (drawn []string) {
	for _, document := range of {
		if s.d.IntN(3) > 0 {
			drawn = append(drawn, document)
		}
	}
	return drawn
}

// withAge gives a resource the time of its creation.
func withAge(document string) string {
	return strings.Replace(document, "metadata: {", `metadata: {creationTimestamp: "2026-12-01T00:00:00Z", `, 1)
}

func (s *scene) key() string {
	return written.InlineKey(s.one(append(slices.Clone(s.keys), "no key")...))
}

func (s *scene) cluster() []string {
	rules := func(verifier string) string {
		return fmt.Sprintf("rules: [{images: [%q], require: [{anyOf: [%s]}]}]", s.one("**", "r.example.com/**"), verifier)
	}
	return s.some(
		written.Object("ClusterTrustStore", "", "keys", s.key()),
		written.Object("ClusterTrustStore", "", "fetched", "type: PublicKeys\nsource: {kms: {uri: \"awskms:///alias/x\"}}"),
		written.Object("ClusterVerifier", "", "shared", written.CosignVerifier+s.one("", "\nimages: [r.example.com/**]")),
		written.Object("ClusterVerifier", "", "by-fetched", strings.ReplaceAll(written.CosignVerifier, "name: keys", "name: fetched")),
		written.Object("ClusterVerificationPolicy", "", "fallback", rules(s.one("shared", "by-fetched"))+"\nenforcementAction: "+s.one("Deny", "Warn")+"\ntags: "+
			s.one("Pin", "Leave")),
		written.Object("ClusterVerificationPolicy", "", "mandatory", "scope: Mandatory\n"+rules("shared")+"\nenforcementAction: "+s.one("Deny", "Warn")+
			"\ndefaultAction: "+s.one("Deny", "Allow")),
		withAge(written.Object("Tenant", "", "iris", "homeNamespace: "+s.one("home", "web")+s.one("", "\nnamespaces: [web]", "\nnamespaces: [web, other]")+
			s.one("", "\nnamespacePrefix: pro-")+
			s.one("", "\ncontact: ask iris")+s.one("", "\nverification: {policyLevel: Tenant}", "\nverification: {policyLevel: Cluster}"))),
		strings.Replace(
			withAge(written.Object("Tenant", "", "rose", "homeNamespace: "+s.one("other", "home")+s.one("", "\nnamespacePrefix: pro-", "\nnamespaces: [pro-a]"))),
			"2026", s.one("2025", "2027"), 1),
		written.Object("ClusterQuota", "", "quota", s.one("namespaces: [web]", "tenants: [iris]")+"\nmaxInFlight: "+s.one("20", "30")),
		withAge(written.Object("ClusterException", "", "admin", "until: "+s.one("2026-12-20T00:00:00Z", "2026-12-24T00:00:00Z")+"\nreason: x\nnamespaces: ["+
			s.one("web", "\"*\"")+"]\nimages: [r.example.com/a]")),
		withAge(written.Object("ClusterException", "", "delegates", "until: 2026-12-20T00:00:00Z\nreason: x\ndelegate: {images: [\"r.example.com/**\"], "+
			s.one("tenants: [iris]", "namespaces: [web]", "namespaces: [home, web]")+", maxDuration: 24h}")),
		written.Object("ClusterStore", "", "registry", "registries: ["+s.one("r.example.com", "\"*.example.com\"")+"]"+
			s.one("", "\ninsecurePlainHTTP: true", "\nproxy: {url: \"http://proxy.example.com:3128\"}", "\nmirrors: [{host: mirror.example.com}]")),
	)
}

// namespace returns the documents of a namespace, none if it is gone.
func (s *scene) namespace(name string) []string {
	if s.d.IntN(6) == 0 {
		return nil
	}
	meta := fmt.Sprintf("name: %s, uid: %q", name, s.one("1", "2"))
	if tenant := s.one("", "", "iris", "rose"); tenant != "" {
		meta += ", labels: {landwaiter.dev/tenant: " + tenant + "}"
	}
	if s.d.IntN(4) == 0 {
		meta += fmt.Sprintf(`, annotations: {landwaiter.dev/break-glass-from: "2026-12-01T00:00:00Z", landwaiter.dev/break-glass-until: "2026-12-01T0%s:00:00Z", `+
			`landwaiter.dev/break-glass-reason: "x"}`, s.one("2", "3"))
	}
	if s.d.IntN(6) == 0 {
		meta += `, deletionTimestamp: "2026-12-01T00:00:00Z"`
	}
	return append([]string{"kind: Namespace\nmetadata: {" + meta + "}"}, s.some(
		written.Object("TrustStore", name, "keys", s.key()),
		written.Object("Verifier", name, s.one("own", "shared"),
			s.one(written.CosignVerifier, strings.ReplaceAll(written.CosignVerifier, "name: keys", "kind: ClusterTrustStore, name: keys"),
				strings.ReplaceAll(written.CosignVerifier, "name: keys", "kind: ClusterTrustStore, name: fetched"))),
		written.Object("VerificationPolicy", name, "own", written.PolicySpec("{anyOf: ["+s.one("own", "shared")+"]}")+"\ndefaultAction: "+s.one("Deny", "Inherit")+
			"\nenforcementAction: "+s.one("Deny", "Warn")),
		written.Object("VerificationPolicy", name, "few", "rules: [{images: [r.example.com/few], action: "+s.one("Allow", "Deny")+"}]\ndefaultAction: Inherit"+
			s.one("", "\ntags: Pin")),
		withAge(written.Object("Exception", name, "own", "until: "+s.one("2026-12-01T12:00:00Z", "2026-12-03T00:00:00Z")+"\nreason: x\nimages: [r.example.com/a]")),
		written.Object("Store", name, "registry", "registries: ["+s.one("r.example.com", "q.example.com")+"]"+s.one("", "\nmirrors: [{host: m.example.com}]")),
	)...)
}

// objects returns what levels have.
func (s *scene) objects(t *testing.T, levels ...verify.Namespace) resource.Objects {
	t.Helper()
	var all []string
	for _, level := range levels {
		all = append(all, s.has[level]...)
	}
	return written.Objects(t, all...)
}

// fetched returns what is known of outside for a change.
func (s *scene) fetched(levels resolve.Levels) external.Fetched {
	known := external.Fetched{}
	for _, sources := range levels.Externals() {
		for _, source := range sources {
			known[source] = external.Value{Content: []byte(s.root), FetchedAt: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)}
		}
	}
	return known
}

// judging is what a tier says.
type judging struct {
	source, lenient  policy.ObjectRef
	why              string
	warns, mandatory bool
	home, contact    string
	contacts         []verify.Contact
	rules, verifiers []string
	access           string
	next             *judging
}

func judgingOf(tier verify.Tier) *judging {
	j := &judging{source: tier.Source, lenient: tier.Lenient, why: fmt.Sprint(tier.Judge.Why(), tier.Judge.Default()), warns: tier.Warns,
		mandatory: tier.Mandatory, home: tier.Home, contact: tier.Contact, contacts: tier.Contacts}
	for _, rule := range tier.Judge.Rules() {
		j.rules = append(j.rules, fmt.Sprint(rule.Source, rule.Action))
	}
	for _, v := range tier.Verifiers {
		j.verifiers = append(j.verifiers, fmt.Sprint(v.Source, compile.TextOf(v.Broken)))
	}
	if made, ok := tier.Registry.(*written.NoRegistry); ok {
		a := made.Access
		j.access = fmt.Sprint(a.Namespace, a.Account, a.UID, a.Attestations, a.PerSecond, a.Generation)
		for _, host := range compile.SortedKeys(a.Hosts) {
			j.access += fmt.Sprint(host, a.Hosts[host].PlainHTTP, a.Hosts[host].Private, a.Hosts[host].Proxy != nil)
		}
		for _, pattern := range a.Patterns {
			j.access += fmt.Sprint(pattern.Hosts, pattern.Rule.PlainHTTP, pattern.Rule.Private, pattern.Rule.Proxy != nil)
		}
		for i := range a.Stores {
			j.access += fmt.Sprint(a.Stores[i].Source, a.Stores[i].Registries, len(a.Stores[i].Mirrors), a.Stores[i].Broken)
		}
	}
	if tier.Next != nil {
		j.next = judgingOf(*tier.Next)
	}
	return j
}

// told is everything that a snapshot says of a namespace.
func told(s *resolve.Snapshot, namespace verify.Namespace) []any {
	config := s.For(namespace)
	said := []any{s.Has(namespace), config.Namespace, config.UID, config.Account, config.Limits, config.Generation, config.MandatoryGeneration,
		s.Explain(namespace), s.Tags(namespace), s.Tenant(namespace), s.HomeOf(namespace), s.Counts(namespace)}
	for _, tier := range config.Tiers {
		said = append(said, *judgingOf(tier))
	}
	for _, x := range config.Exceptions {
		said = append(said, fmt.Sprint(x.Source, x.Why, x.Until, x.Created, x.OverrideMandatory, x.Images))
	}
	if config.BreakGlass != nil {
		said = append(said, config.BreakGlass.Until)
	}
	reports := conditions.Reports(s, namespace)
	for _, source := range slices.SortedFunc(maps.Keys(reports), func(a, b policy.ObjectRef) int { return strings.Compare(a.String(), b.String()) }) {
		said = append(said, source, reports[source].Ready, reports[source].Effective, reports[source].Ends)
	}
	for _, p := range s.ProblemsOf(namespace) {
		said = append(said, p)
	}
	return said
}

func TestAnyOrderOfChangesIsAsIfEverythingWereCompiled(t *testing.T) {
	names := []verify.Namespace{"home", "web", "other", "pro-a", "alone"}
	levels := append([]verify.Namespace{verify.Cluster}, names...)
	keys := []string{string(written.NewKey(t).PEM), string(written.NewKey(t).PEM)}
	scenes := 6
	if os.Getenv("LANDWAITER_NIGHTLY") != "" {
		scenes = 300
	}
	kept, changes := 0, 0
	for seed := range scenes {
		s := &scene{d: rand.New(rand.NewPCG(uint64(seed), 1)), keys: keys, has: map[verify.Namespace][]string{}, root: keys[0]}
		snapshot, _ := written.Compiled(resource.Objects{})
		for step := range 25 {
			level := levels[s.d.IntN(len(levels))]
			if level == verify.Cluster {
				s.has[level], s.root = s.cluster(), s.one(keys...)
			} else {
				s.has[level] = s.namespace(string(level))
			}
			before := snapshot
			change := resolve.Group(s.objects(t, level))
			snapshot, _ = before.Next(change.Only(level), s.fetched(change))
			everything := resolve.Group(s.objects(t, levels...))
			empty, _ := written.Compiled(resource.Objects{})
			whole, _ := empty.Next(everything, s.fetched(everything))
			for _, namespace := range append(slices.Clone(levels), "undeclared") {
				require.Equal(t, told(whole, namespace), told(snapshot, namespace), "seed %d, step %d, change of %q, namespace %q:\n%s", seed, step, level, namespace,
					strings.Join(s.has[namespace], "\n---\n"))
			}
			changed := snapshot.ChangedSince(before)
			changes++
			kept += len(snapshot.Namespaces()) - len(changed)
		}
	}
	t.Logf("%d changes, after which %d views were used again", changes, kept)
	require.Greater(t, kept, changes)
}
