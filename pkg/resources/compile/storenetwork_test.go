package compile_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/external"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

// accessOf returns the registry access of a namespace.
func accessOf(t *testing.T, s *resolve.Snapshot, namespace verify.Namespace) registry.Access {
	t.Helper()
	reached, ok := s.For(namespace).Tiers[0].Registry.(*written.NoRegistry)
	require.True(t, ok)
	return reached.Access
}

// storeFor returns the store that applies to a host.
func storeFor(access registry.Access, host string) registry.Store {
	found, _ := registry.StoreFor(access.Stores, host)
	return found
}

// secretOf is a Secret with several keys.
func secretOf(namespace, name string, data map[string]string) string {
	text := fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: %s, namespace: %s}\ndata:\n", name, namespace)
	for key, value := range data {
		text += "  " + key + ": " + base64.StdEncoding.EncodeToString([]byte(value)) + "\n"
	}
	return text
}

func account(namespace, name, pulls string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: %s, namespace: %s}\nimagePullSecrets: [%s]\n", name, namespace, pulls)
}

func TestNamesComeBeforePatternsAndNearLevelsBeforeBoth(t *testing.T) {
	snapshot, problems := written.Compiled(written.Objects(t, written.Namespace("team-a", "1"),
		written.Store("", "a-wide", `"*.*.example.com", "*.example.com:5000"`), written.Store("", "b-first", `"*.eu.example.com"`),
		written.Store("", "c-named", "one.eu.example.com"),
		written.Store("", "d-same", `"*.*.example.com"`), written.Store("team-a", "own", "two.eu.example.com")))
	require.Empty(t, problems)
	access := accessOf(t, snapshot, "team-a")
	for host, want := range map[string]string{"one.eu.example.com": "c-named", "two.eu.example.com": "own", "three.eu.example.com": "a-wide",
		"one.example.com:5000": "a-wide",
		"one.example.com":      "", "a.b.c.example.com": "", "one.eu.example.com:5000": ""} {
		require.Equal(t, want, storeFor(access, host).Source.Name, host)
	}
	require.Equal(t, map[string]registry.HostRule{"one.eu.example.com": {Private: true}}, access.Hosts, "patterns name no host")
	require.Len(t, access.Patterns, 4)
	var said []string
	for _, c := range snapshot.Explain("team-a") {
		if c.Kind == "Store" {
			said = append(said, c.Level+": "+c.Why)
		}
	}
	require.Equal(t,
		[]string{"namespace: for two.eu.example.com", "cluster: for *.*.example.com, *.eu.example.com, *.example.com:5000, one.eu.example.com, which no nearer " +
			"level lists"}, said)
	require.Equal(t, policy.ReasonOverridden,
		conditions.Reports(snapshot, verify.Cluster)[policy.ObjectRef{Kind: "ClusterStore", Name: "d-same"}].Effective.Reason)
	wider, _ := snapshot.Next(resolve.Group(written.Objects(t, written.Store("", "a-wide", `"*.example.com:5000"`))).Only(verify.Cluster), nil)
	require.NotEqual(t, snapshot.For("team-a").Generation, wider.For("team-a").Generation)
}

func TestStoresSayWhatIsWrongWithTheirNetwork(t *testing.T) {
	authority, err := fixture.NewAuthority("corp")
	require.NoError(t, err)
	client, err := authority.IssueClient("team-a")
	require.NoError(t, err)
	other, err := authority.IssueClient("other")
	require.NoError(t, err)
	material := []string{written.Namespace("team-a", "1"), written.Namespace("landwaiter-system", "2"),
		secretOf("team-a", "good", map[string]string{"tls.crt": string(client.CertificatePEM), "tls.key": string(client.KeyPEM)}),
		secretOf("team-a", "mixed", map[string]string{"tls.crt": string(client.CertificatePEM), "tls.key": string(other.KeyPEM)}),
		secretOf("team-a", "large", map[string]string{"tls.crt": strings.Repeat("x", 65<<10), "tls.key": "x"}),
		secretOf("team-a", "half", map[string]string{"tls.crt": string(client.CertificatePEM)}),
		secretOf("landwaiter-system", "login", map[string]string{"username": "u", "password": "p"}),
		secretOf("landwaiter-system", "nobody", map[string]string{"password": "p"}),
		secretOf("landwaiter-system", "lines", map[string]string{"username": "u", "password": "p\r\nX: y"}),
		account("team-a", "none", ""), account("team-a", "gone", "{name: gone}"), account("team-a", "many", strings.Repeat("{name: x}, ", 8)+"{name: x}"),
		account("landwaiter-system", "elsewhere", "{name: pull}")}
	const host = "registries: [registry.example.com]\n"
	for name, c := range map[string]struct{ namespace, spec, says string }{
		"a pattern":      {"team-a", `registries: ["*.example.com"]`, "spec.registries[0]: only a ClusterStore can list registries by pattern"},
		"a wide pattern": {"", `registries: ["*.com"]`, "spec.registries[0]: host pattern \"*.com\": the last two labels"},
		"no account": {"team-a", host + "imagePullSecretsFrom: {serviceAccount: {name: elsewhere}}",
			"ServiceAccount team-a/elsewhere does not exist"},
		"an account without secrets": {"team-a", host + "imagePullSecretsFrom: {serviceAccount: {name: none}}",
			"ServiceAccount team-a/none has no imagePullSecrets"},
		"an account without its secret": {"team-a", host + "imagePullSecretsFrom: {serviceAccount: {name: gone}}",
			"imagePullSecrets[0] of ServiceAccount team-a/gone: Secret team-a/gone does not exist"},
		"an account with too many": {"team-a", host + "imagePullSecretsFrom: {serviceAccount: {name: many}}", "has 9 imagePullSecrets, the limit is 8"},
		"another's certificate": {"team-a", host + "clientCertificate: {secretRef: {name: theirs}}",
			"spec.clientCertificate.secretRef: Secret team-a/theirs does not exist"},
		"a key of another": {"team-a", host + "clientCertificate: {secretRef: {name: mixed}}",
			"are not the PEM text of a certificate and its private key"},
		"a large certificate":       {"team-a", host + "clientCertificate: {secretRef: {name: large}}", "tls.crt is 66560 bytes large"},
		"a certificate without key": {"team-a", host + "clientCertificate: {secretRef: {name: half}}", "it has no tls.key"},
		"a second bundle":           {"team-a", host + "additionalCABundles: [{inline: x}]", "spec.additionalCABundles[0]: parse certificates"},
		"a bundle that is missing": {"team-a", host + "additionalCABundles: [{configMapKeyRef: {name: gone, key: ca.crt}}]",
			"spec.additionalCABundles[0].configMapKeyRef: ConfigMap team-a/gone does not exist"},
		"a proxy of another kind": {"", host + "proxy: {url: \"socks5://proxy:1080\"}", "spec.proxy.url: it must be http://HOST:PORT"},
		"a proxy without its secret": {"", host + "proxy: {url: \"http://proxy:3128\", secretRef: {name: gone}}",
			"spec.proxy.secretRef: Secret landwaiter-system/gone does not exist"},
		"a proxy without a user":     {"", host + "proxy: {url: \"http://proxy:3128\", secretRef: {name: nobody}}", "has no username"},
		"a header in a password":     {"", host + "proxy: {url: \"http://proxy:3128\", secretRef: {name: lines}}", "is not usable"},
		"additionalHosts everything": {"", host + "proxy: {additionalHosts: [\"*\"]}", "spec.proxy.additionalHosts[0]: host pattern"},
		"a proxy's CA":               {"", host + "proxy: {url: \"https://proxy:3128\", caBundle: {inline: x}}", "spec.proxy.caBundle: parse certificates"},
		"one login for all of ACR":   {"", "registries: [\"*.azurecr.io\"]\nidentity: {provider: ACR}", "each registry has a login of its own"},
		"one login for all regions":  {"", "registries: [\"*.dkr.ecr.*.amazonaws.com\"]\nidentity: {provider: ECR}", "a login of ECR is for one region"},
		"a login past the provider":  {"", "registries: [\"*.pkg.dev\"]\nidentity: {provider: GAR}", "*.pkg.dev is not within the hosts of GAR"},
		"a login past ECR":           {"", "registries: [\"*.dkr.ecr.eu-west-1.example.com\"]\nidentity: {provider: ECR}", "is not within the hosts of ECR"},
	} {
		t.Run(name, func(t *testing.T) {
			kind := "Store"
			if c.namespace == "" {
				kind = "ClusterStore"
			}
			snapshot, problems := written.Compiled(written.Objects(t, append(material, written.Object(kind, c.namespace, "s", c.spec))...))
			require.Len(t, problems, 1)
			require.Contains(t, problems[0].Message, c.says)
			require.NotContains(t, problems[0].Message, "BEGIN")
			for _, s := range accessOf(t, snapshot, "team-a").Stores {
				require.Error(t, s.Broken, "it denies its registries")
			}
		})
	}
	snapshot, problems := written.Compiled(
		written.Objects(t, append(material, written.Object("Store", "team-a", "s", host+"clientCertificate: {secretRef: {name: good}}"))...))
	require.Empty(t, problems)
	require.NotNil(t, storeFor(accessOf(t, snapshot, "team-a"), "registry.example.com").ClientCertificate)
}

// A team cannot read the condition of a ClusterStore, which says why.
func TestTheDenialOfABrokenClusterStoreSaysWhomToAsk(t *testing.T) {
	snapshot, _ := written.Compiled(written.Objects(t, written.Namespace("team-a", "1"),
		written.Object("ClusterStore", "", "corp", "registries: [registry.example.com]\nimagePullSecrets: [{name: gone}]")))
	found := verify.FindingOf(storeFor(accessOf(t, snapshot, "team-a"), "registry.example.com").Broken)
	require.Equal(t, "ClusterStore corp cannot be used; its condition Ready says why", found.Message)
	require.Equal(t, "ask a cluster admin to correct ClusterStore corp", found.Remediation)
}

func TestABrokenProxyIsNotGoneAround(t *testing.T) {
	snapshot, _ := written.Compiled(written.Objects(t, written.Namespace("team-a", "1"),
		written.Object("ClusterStore", "", "corp", "registries: [registry.example.com, \"*.corp.example\"]\nproxy: {url: \"http://proxy:3128\", secretRef: "+
			"{name: gone}}"),
		written.Store("team-a", "own", "registry.example.com")))
	access := accessOf(t, snapshot, "team-a")
	require.NoError(t, storeFor(access, "registry.example.com").Broken, "the team's Store is sound")
	require.EqualError(t, access.Hosts["registry.example.com"].Proxy.Broken, "ClusterStore corp cannot be used; its condition Ready says why")
	require.Error(t, access.Patterns[0].Rule.Proxy.Broken)
}

func TestTheProxyOfAClusterStoreWithOneWrongRegistryIsNotGoneAround(t *testing.T) {
	for _, wrong := range []string{"https://x.example.com", ""} {
		snapshot, _ := written.Compiled(written.Objects(t, written.Namespace("team-a", "1"),
			written.Object("ClusterStore", "", "corp", fmt.Sprintf("registries: [registry.example.com, %q]\nproxy: {url: \"http://proxy:3128\"}", wrong)),
			written.Store("team-a", "own", "registry.example.com")))
		access := accessOf(t, snapshot, "team-a")
		require.NotNil(t, access.Hosts["registry.example.com"].Proxy)
		require.Error(t, access.Hosts["registry.example.com"].Proxy.Broken)
		require.Error(t, storeFor(access, "other.example.com").Broken, "it might be for any other")
	}
}

func TestAClusterStoreThatTheSchemaRefusesAllowsNothing(t *testing.T) {
	o := written.Objects(t, written.Namespace("team-a", "1"),
		written.Object("ClusterStore", "", "a", "registries: [registry.example.com, private.example.com, \"*.corp.example\"]"),
		written.Object("ClusterStore", "", "b", "registries: [registry.example.com]\nproxy: {url: \"http://proxy:3128\"}"),
		written.Store("team-a", "own", "registry.example.com"))
	for i, made := range o.Resources {
		if made, ok := made.(*v1beta1.ClusterStore); ok && made.Name == "a" {
			o.Resources[i] = resource.Refuse(made, errors.New("why"))
		}
	}
	snapshot, _ := written.Compiled(o)
	access := accessOf(t, snapshot, "team-a")
	require.NotNil(t, access.Hosts["registry.example.com"].Proxy, "that of the sound one")
	require.NoError(t, access.Hosts["registry.example.com"].Proxy.Broken)
	require.NotContains(t, access.Hosts, "private.example.com", "an address of its own is what a sound one gives")
	require.Empty(t, access.Patterns)
}

func TestTheProxyOfAClusterStoreThatTheSchemaRefusesIsNotGoneAround(t *testing.T) {
	for text, broken := range map[string]bool{"\nproxy: {url: \"http://proxy:3128\"}": true, "": false} {
		o := written.Objects(t, written.Namespace("team-a", "1"),
			written.Object("ClusterStore", "", "corp", "registries: [registry.example.com, \"*.corp.example\"]"+text),
			written.Store("team-a", "own", "registry.example.com"))
		for i, made := range o.Resources {
			if made, ok := made.(*v1beta1.ClusterStore); ok {
				o.Resources[i] = resource.Refuse(made, errors.New("why"))
			}
		}
		snapshot, _ := written.Compiled(o)
		access := accessOf(t, snapshot, "team-a")
		require.NoError(t, storeFor(access, "registry.example.com").Broken, "the team's Store is sound")
		require.Equal(t, broken, access.Hosts["registry.example.com"].Proxy != nil && access.Hosts["registry.example.com"].Proxy.Broken != nil)
		require.Equal(t, broken, len(access.Patterns) > 0 && access.Patterns[0].Rule.Proxy.Broken != nil)
		require.Error(t, storeFor(accessOf(t, snapshot, verify.Cluster), "registry.example.com").Broken)
	}
}

func TestAProxysCredentialsChangeWithoutChangingVerdicts(t *testing.T) {
	documents := []string{written.Namespace("team-a", "1"),
		written.Object("ClusterStore", "", "corp", "registries: [registry.example.com]\nproxy: {url: \"http://proxy:3128\", secretRef: {name: login}}")}
	snapshot, problems := written.Compiled(
		written.Objects(t, append(documents, secretOf("landwaiter-system", "login", map[string]string{"username": "u", "password": "old"}))...))
	require.Empty(t, problems)
	next, _ := snapshot.Next(
		resolve.Group(written.Objects(t, documents[1], secretOf("landwaiter-system", "login", map[string]string{"username": "u", "password": "new"}))).
			Only(verify.Cluster), nil)
	require.Equal(t, "new", accessOf(t, next, "team-a").Hosts["registry.example.com"].Proxy.Own.Password)
	require.Equal(t, snapshot.For("team-a").Generation, next.For("team-a").Generation)
}

func TestAnEditedClientCertificateIsAnotherGeneration(t *testing.T) {
	authority, err := fixture.NewAuthority("corp")
	require.NoError(t, err)
	generation := func() string {
		client, err := authority.IssueClient("team-a")
		require.NoError(t, err)
		snapshot, problems := written.Compiled(written.Objects(t, written.Namespace("team-a", "1"),
			written.Object("Store", "team-a", "s", "registries: [registry.example.com]\nclientCertificate: {secretRef: {name: c}}"),
			secretOf("team-a", "c", map[string]string{"tls.crt": string(client.CertificatePEM), "tls.key": string(client.KeyPEM)})))
		require.Empty(t, problems)
		return snapshot.For("team-a").Generation
	}
	require.NotEqual(t, generation(), generation())
}

func TestPullSecretsOfAServiceAccountAreReferenced(t *testing.T) {
	o := written.Objects(t, written.Namespace("team-a", "1"),
		written.Object("Store", "team-a", "s", "registries: [registry.example.com]\nimagePullSecretsFrom: {serviceAccount: {name: builder}}"),
		written.Object("ClusterStore", "", "c", "registries: [other.example.com]\nimagePullSecretsFrom: {serviceAccount: {name: puller}}\nadditionalCABundles: "+
			"[{configMapKeyRef: {name: ca, key: a}}]\n"+
			"clientCertificate: {secretRef: {name: tls}}\nproxy: {url: \"http://proxy\", secretRef: {name: login}, caBundle: {secretKeyRef: {name: proxy-ca, key: a}}}"))
	names := func(namespace verify.Namespace) (all []string) {
		for _, ref := range resolve.References(o)[namespace] {
			all = append(all, ref.String())
		}
		return all
	}
	require.Equal(t, []string{"ServiceAccount team-a/builder"}, names("team-a"))
	require.Equal(t, []string{"ConfigMap landwaiter-system/ca", "Secret landwaiter-system/login", "Secret landwaiter-system/proxy-ca",
		"Secret landwaiter-system/tls", "ServiceAccount landwaiter-system/puller"}, names(verify.Cluster))
	more := written.Objects(t, account("team-a", "builder", "{name: one}, {name: two}"), account("landwaiter-system", "puller", "{name: one}"),
		account("team-a", "other", "{name: three}"))
	o.ServiceAccounts = more.ServiceAccounts
	require.Equal(t, []string{"Secret team-a/one", "Secret team-a/two", "ServiceAccount team-a/builder"}, names("team-a"),
		"only those of the account that is named")
	require.Contains(t, names(verify.Cluster), "Secret landwaiter-system/one")
}

func TestOneLoginServesTheHostsOfAPatternThatAreTheProviders(t *testing.T) {
	for provider, c := range map[string]struct {
		pattern, sample string
		yes, no         []string
	}{
		"ECR": {"*.dkr.ecr.eu-west-1.amazonaws.com", "000000000000.dkr.ecr.eu-west-1.amazonaws.com", []string{"123456789012.dkr.ecr.eu-west-1.amazonaws.com"},
			[]string{"evil.dkr.ecr.eu-west-1.amazonaws.com", "123456789012.dkr.ecr.eu-west-2.amazonaws.com"}},
		"GAR": {"europe-*-docker.pkg.dev", "europe-x-docker.pkg.dev", []string{"europe-west4-docker.pkg.dev"},
			[]string{"us-docker.pkg.dev", "europe-west4-docker.pkg.dev.example.com"}},
	} {
		o := written.Objects(t, written.Namespace("team-a", "1"),
			written.Object("ClusterStore", "", "cloud", fmt.Sprintf("registries: [%q]\nidentity: {provider: %s}", c.pattern, provider)))
		sources := resolve.Group(o).Externals()[verify.Cluster]
		require.Len(t, sources, 1)
		require.Equal(t, c.sample, sources[0].Address)
		login := fmt.Sprintf(`{"auths":{%q:{"username":"u","password":"p"}}}`, c.sample)
		snapshot, problems := resolve.Empty(resolve.Outside{
			Registry: func(a registry.Access) verify.Registry { return &written.NoRegistry{Access: a} }, Revocation: func(verify.Namespace) http.RoundTripper {
				return nil
			}}).Next(resolve.Group(o), external.Fetched{sources[0]: external.Value{Content: []byte(login), FetchedAt: time.Now()}})
		require.Empty(t, problems)
		logins := storeFor(accessOf(t, snapshot, "team-a"), c.yes[0]).Logins
		require.Len(t, logins, 1)
		require.Equal(t, "p", logins[0].Credential.Password)
		for _, host := range c.yes {
			require.True(t, logins[0].Serves(host), host)
		}
		for _, host := range c.no {
			require.False(t, logins[0].Serves(host), host)
		}
	}
}
