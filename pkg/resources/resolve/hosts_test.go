package resolve_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

func TestStoresApplyByHost(t *testing.T) {
	tenant := func(decides string) string {
		return written.Object("Tenant", "", "iris", written.Iris+"\nverification: {policyLevel: "+decides+"}")
	}
	const broken = "{name: broken, namespace: iris-web}\nspec: {registries: [own.example.com], imagePullSecrets: [{name: gone}]}"
	for name, c := range map[string]struct {
		documents []string
		want      map[string]string // the Store of each host; "!" in front of one that denies
		level     string
	}{
		"each level has its host": {[]string{tenant("Namespace"), written.Store("iris-web", "own", "own.example.com"),
			written.Store("iris", "home", "home.example.com"), written.Store("", "cluster", "cluster.example.com")},
			map[string]string{"own.example.com": "own", "home.example.com": "home", "cluster.example.com": "cluster", "other.example.com": ""}, "namespace"},
		"the nearest wins": {[]string{tenant("Namespace"), written.Store("iris-web", "own", "own.example.com"),
			written.Store("iris", "home", "home.example.com, own.example.com"), written.Store("", "cluster", "cluster.example.com, own.example.com, home.example.com")},
			map[string]string{"own.example.com": "own", "home.example.com": "home", "cluster.example.com": "cluster"}, "namespace"},
		"the Tenant decides": {[]string{tenant("Tenant"), written.Store("iris-web", "own", "own.example.com"), written.Store("iris", "home", "home.example.com"),
			written.Store("", "cluster", "own.example.com")},
			map[string]string{"own.example.com": "cluster", "home.example.com": "home"}, "tenant"},
		"the cluster decides": {[]string{tenant("Cluster"), written.Store("iris-web", "own", "own.example.com"), written.Store("iris", "home", "home.example.com"),
			written.Store("", "cluster", "own.example.com")},
			map[string]string{"own.example.com": "cluster", "home.example.com": ""}, "cluster"},
		"a broken one denies " +
			"its own hosts": {[]string{tenant("Namespace"), "kind: Store\nmetadata: " + broken, written.Store("", "cluster", "cluster.example.com, own.example.com")},
			map[string]string{"own.example.com": "!broken", "cluster.example.com": "cluster"}, "namespace"},
		"one whose hosts are unknown denies those " +
			"that are left": {[]string{tenant("Namespace"), written.Store("iris-web", "a", "own.example.com"), written.Store("iris-web", "b", ""),
			written.Store("", "cluster", "cluster.example.com")},
			map[string]string{"own.example.com": "a", "cluster.example.com": "!b", "other.example.com": "!b"}, "namespace"},
		"nobody has any": {[]string{tenant("Namespace")}, map[string]string{"own.example.com": ""}, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot, _ := written.Compiled(written.Objects(t, append(c.documents, written.Namespace("iris", "1"), written.Namespace("iris-web", "2"))...))
			stores := snapshot.For("iris-web").Tiers[0].Registry.(*written.NoRegistry).Access.Stores
			for host, want := range c.want {
				got := ""
				for _, s := range stores {
					if contains(s.Registries, host) || s.Broken != nil && len(s.Registries) == 0 {
						got = s.Source.Name
						if s.Broken != nil {
							got = "!" + got
						}
						break
					}
				}
				require.Equal(t, want, got, host)
			}
			i := slices.IndexFunc(snapshot.Explain("iris-web"), func(choice resolve.Choice) bool { return choice.Kind == v1beta1.KindStore })
			require.Equal(t, c.level, snapshot.Explain("iris-web")[i].Level)
		})
	}
}

func contains(list []string, item string) bool {
	return strings.Contains(" "+strings.Join(list, " ")+" ", " "+item+" ")
}

func TestWhatStoresSayOfThemselvesIsPerHost(t *testing.T) {
	documents := []string{written.Object("Tenant", "", "iris", "homeNamespace: iris\nnamespaces: [iris-web]"), written.Namespace("iris", "1"),
		written.Namespace("iris-web", "2"), written.Namespace("iris-x", "3"),
		written.Store("iris-web", "own", "own.example.com"), written.Store("iris", "home", "home.example.com"), written.Store("iris", "covered", "own.example.com"),
		written.Store("", "cluster", "cluster.example.com")}
	snapshot, problems := written.Compiled(written.Objects(t, documents...))
	require.Empty(t, problems)
	var said []string
	for _, c := range snapshot.Explain("iris-web") {
		if c.Kind == "Store" {
			said = append(said, c.Level+": "+c.Why)
		}
	}
	require.Equal(t,
		[]string{"namespace: for own.example.com", "tenant: for home.example.com, which no nearer level lists",
			"cluster: for cluster.example.com, which no nearer level lists"}, said)
	for source, want := range map[string][2]string{
		"Store iris-web/own":   {"InForce", "in force in its namespace, for its registries"},
		"Store iris/home":      {"InForce", "in force in the namespaces of Tenant iris, for its registries"},
		"Store iris/covered":   {"!Overridden", "in every namespace of Tenant iris, Stores of a nearer level list all of its registries"},
		"ClusterStore cluster": {"InForce", "in force for its registries, where no nearer level has a Store for them"},
	} {
		report := written.ReportOn(t, snapshot, source).Effective
		require.Equal(t, want, [2]string{written.Short(report), report.Message}, source)
	}
	unrelated, _ := snapshot.Next(
		resolve.Group(written.Objects(t, documents[0], written.Store("", "cluster", "cluster.example.com"), written.Store("", "further", "own.example.com"))).
			Only(verify.Cluster), nil)
	require.NotEqual(t, snapshot.For("iris-x").Generation, unrelated.For("iris-x").Generation)
}

// A team's first Store used to take the ClusterStores' logins for all other registries away.
func TestATeamsStoreLeavesTheClustersLogins(t *testing.T) {
	private := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "cluster" || password != "secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="private"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		w.Header().Set("Docker-Content-Digest", "sha256:"+strings.Repeat("a", 64))
		w.Header().Set("Content-Length", "2")
	}))
	t.Cleanup(private.Close)
	host := strings.TrimPrefix(private.URL, "http://")
	client := registry.NewClient(registry.Options{})
	t.Cleanup(client.Close)
	documents := []string{written.Namespace("team-a", "1"), written.Namespace("landwaiter-system", "9"),
		written.Secret("landwaiter-system", "pull", ".dockerconfigjson", `{"auths": {"`+host+`": {"username": "cluster", "password": "secret"}}}`),
		written.Object("ClusterStore", "", "company", "registries: ["+host+"]\ninsecurePlainHTTP: true\nimagePullSecrets: [{name: pull}]")}
	for name, more := range map[string][]string{"without a Store": nil, "with a Store for another host": {written.Store("team-a", "own", "own.example.com")}} {
		t.Run(name, func(t *testing.T) {
			snapshot, problems := resolve.Empty(resolve.Outside{Registry: client.For}).Next(resolve.Group(written.Objects(t, append(documents, more...)...)), nil)
			require.Empty(t, problems)
			ref, err := image.Parse(host + "/app:v1")
			require.NoError(t, err)
			_, err = snapshot.For("team-a").Tiers[0].Registry.Locations(ref).Content[0].Resolve(t.Context(), ref)
			require.NoError(t, err)
		})
	}
}

func TestConditionsOfATenantsResourcesTellTheTruth(t *testing.T) {
	keys := written.InlineKey(string(written.NewKey(t).PEM))
	base := []string{written.Object("Tenant", "", "iris", "homeNamespace: iris\nnamespaces: [iris-web]"), written.Namespace("iris", "1"),
		written.Namespace("iris-web", "2"),
		written.Object("TrustStore", "iris", "keys", keys), written.Object("Verifier", "iris", "release", written.CosignVerifier),
		written.Object("VerificationPolicy", "iris", "p", written.PolicySpec("{anyOf: [release]}"))}
	own := []string{written.Object("TrustStore", "iris-web", "keys", keys), written.Object("Verifier", "iris-web", "own", written.CosignVerifier)}
	cluster := []string{written.Object("ClusterTrustStore", "", "keys", keys), written.Object("ClusterVerifier", "", "base", written.CosignVerifier)}
	for name, c := range map[string]struct {
		documents        []string
		ref              string
		ready, effective string
		says             string
	}{
		"a Tenant": {base, "Tenant iris", "Valid", "InForce", "rules of the home namespace iris are in force in 2 namespaces"},
		"a Tenant with a home namespace alone": {[]string{written.Object("Tenant", "", "iris", "homeNamespace: iris"), written.Namespace("iris", "1")},
			"Tenant iris", "Valid", "InForce", "in 1 namespace"},
		"a Tenant without a " +
			"home namespace": {[]string{written.Object("Tenant", "", "iris", "homeNamespace: iris\nnamespaces: [iris-web]"), written.Namespace("iris-web", "2")},
			"Tenant iris", "!NotFound", "!Denies", "the home namespace iris of Tenant iris does not exist; create the namespace, so every image is denied " +
				"in 1 namespace"},
		"a Tenant of " +
			"cluster rules": {[]string{written.Object("Tenant", "", "iris", "homeNamespace: iris\nverification: {policyLevel: Cluster}"),
			written.Namespace("iris", "1")}, "Tenant iris", "Valid", "InForce", "the cluster's resources decide in 1 namespace"},
		"home's policy":      {base, "VerificationPolicy iris/p", "Valid", "InForce", "in force in the namespaces of Tenant iris"},
		"home's trust store": {base, "TrustStore iris/keys", "Valid", "InForce", ""},
		"home's verifier": {append(base, cluster...), "Verifier iris/release", "Valid", "InForce",
			"because the Tenant has a Verifier, these no longer apply there: ClusterVerifier base"},
		"home's verifier, overridden": {append(base, own...), "Verifier iris/release", "Valid", "!Overridden",
			"every namespace of Tenant iris has a Verifier of its own"},
		"a tenant namespace's " +
			"own verifier": {append(append(base, own...), written.Object("VerificationPolicy", "iris-web", "p", written.PolicySpec("{anyOf: [own]}"))),
			"Verifier iris-web/own", "Valid", "InForce", "these no longer apply there: Verifier iris/release"},
		"one that hides home's": {append(base, own...), "Verifier iris-web/own", "Valid", "!Unused",
			"VerificationPolicy iris/p requires release, which does not apply where a namespace has Verifiers of its own, so images are denied"},
		"a tenant namespace's, where " +
			"home is gone": {append(own, written.Object("Tenant", "", "iris", "homeNamespace: iris\nnamespaces: [iris-web]"), written.Namespace("iris-web", "2")),
			"Verifier iris-web/own", "Valid", "!Denies", "the home namespace iris of Tenant iris does not exist"},
		"a skipped one " +
			"that is broken": {append(base[1:], written.Object("Tenant", "", "iris", "homeNamespace: iris\nnamespaces: [iris-web]\nverification: {policyLevel: Tenant}"),
			written.Object("Verifier", "iris-web", "own", written.CosignVerifier)), "Verifier iris-web/own", "!NotFound", "!Overridden",
			"TrustStore iris-web/keys does not exist"},
		"a skipped policy": {
			append(base[1:], written.Object("Tenant", "", "iris", "homeNamespace: iris\nnamespaces: [iris-web]\nverification: {policyLevel: Tenant}"),
				written.Object("VerificationPolicy", "iris-web", "p", written.PolicySpec("{anyOf: [release]}"))), "VerificationPolicy iris-web/p", "Valid", "!Overridden",
			"Tenant iris leaves decisions to its home namespace (spec.verification.policyLevel)"},
		"home, where the " +
			"cluster decides": {
			append(base[1:], written.Object("Tenant", "", "iris", "homeNamespace: iris\nnamespaces: [iris-web]\nverification: {policyLevel: Cluster}")),
			"Verifier iris/release", "Valid", "!Overridden", "Tenant iris leaves decisions to the cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot, _ := written.Compiled(written.Objects(t, c.documents...))
			report := written.ReportOn(t, snapshot, c.ref)
			require.Equal(t, c.ready, written.Short(report.Ready), report.Ready.Message)
			require.Equal(t, c.effective, written.Short(report.Effective), report.Effective.Message)
			require.Contains(t, report.Effective.Message+" "+report.Ready.Message, c.says)
		})
	}
}

func TestAPolicyOfHomeThatAMembersVerifiersHideSaysSo(t *testing.T) {
	keys := written.InlineKey(string(written.NewKey(t).PEM))
	snapshot, _ := written.Compiled(written.Objects(t, written.Object("Tenant", "", "iris", "homeNamespace: iris\nnamespaces: [iris-web]"),
		written.Namespace("iris", "1"), written.Namespace("iris-web", "2"),
		written.Object("TrustStore", "iris", "keys", keys), written.Object("Verifier", "iris", "release", written.CosignVerifier),
		written.Object("VerificationPolicy", "iris", "p", written.PolicySpec("{anyOf: [release]}")),
		written.Object("TrustStore", "iris-web", "keys", keys), written.Object("Verifier", "iris-web", "own", written.CosignVerifier)))
	got := written.Verdict(t, snapshot, "iris-web", "r.example.com/app")
	require.Equal(t, policy.Denied, got.Outcome())
	require.Contains(t, got.Reason, "iris-web has Verifiers of its own, so Verifier release of iris does not apply there")
}
