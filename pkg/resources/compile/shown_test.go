package compile_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// foreign is in everything that belongs to others.
const foreign = "zzforeign"

// foreignWorld is a cluster of the Tenants iris and zzforeign, in which every field that
// does not apply to iris has the name of the other.
func foreignWorld(t *testing.T) resource.Objects {
	t.Helper()
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	pem := strings.ReplaceAll(strings.TrimSpace(string(key.PEM)), "\n", "\n    ")
	signed := func(store string) string {
		return "type: Cosign\ncosign: {keys: {trustStoreRefs: [{name: " + store + "}], insecureIgnoreTransparencyLog: true}}"
	}
	return objects(t, namespace("iris", "1"), namespace("iris-web", "2"), namespace(foreign, "3"),
		object("Tenant", "", "iris", iris+"\naccess: {admins: [{kind: Group, name: zzforeign}]}\nreconciler: {source: {url: 'https://zzforeign.example.com'}}"),
		object("Tenant", "", foreign, "homeNamespace: zzforeign\nnamespaces: [zzforeign-web]\nnamespacePrefix: zzforeign-dev-"),
		object("ClusterVerificationPolicy", "", "mandatory", "scope: Mandatory\nrules: [{images: ['registry.example.com/**'], require: [{anyOf: [release]}]}]\ndefaultAction: Allow"),
		object("ClusterVerificationPolicy", "", "fallback", "rules: [{images: ['zzforeign.example.com/**'], action: Deny}]"),
		object("VerificationPolicy", "iris", "own", allowing("registry.example.com")),
		object("Store", "iris", "own", "registries: [own.example.com, login.example.com]"),
		object("ClusterVerifier", "", "release", signed("keys")),
		object("ClusterVerifier", "", "kept", signed("kms")),
		object("ClusterTrustStore", "", "keys", "type: PublicKeys\nsource:\n  inline: |\n    "+pem),
		object("ClusterTrustStore", "", "kms", "type: PublicKeys\nsource: {kms: {uri: 'awskms:///alias/zzforeign'}}"),
		object("ClusterTrustStore", "", "zzforeign-vault", "type: PublicKeys\nsource: {vault: {address: 'https://zzforeign.example.com', path: transit/keys/zzforeign}}"),
		object("ClusterStore", "", "mixed", "registries: [registry.example.com, zzforeign.example.com]"),
		object("ClusterStore", "", "login", "registries: [login.example.com]\nimagePullSecrets: [{name: zzforeign}]\nproxy: {url: 'http://zzforeign.example.com:3128'}"),
		object("ClusterStore", "", "mirror", "registries: [zzforeign.example.org]\nmirrors: [{host: zzforeign.example.net}]"),
		object("ClusterQuota", "", "quota", "tenants: [zzforeign]\nmaxInFlight: 64"),
	)
}

func TestWhatIsShownIsWhatAppliesAndNamesNobodyElse(t *testing.T) {
	snapshot, _ := compiled(foreignWorld(t))
	shown, ok := snapshot.Shown("iris-web")
	require.True(t, ok)
	text, err := shown.Text()
	require.NoError(t, err)
	require.NotContains(t, text, foreign)
	var names []string
	for _, object := range shown.Resources {
		names = append(names, resource.RefOf(object).String())
	}
	require.ElementsMatch(t, []string{"Tenant iris", "ClusterVerificationPolicy mandatory", "ClusterVerifier release", "ClusterVerifier kept", "ClusterTrustStore keys", "ClusterStore mixed"}, names)
	require.ElementsMatch(t, []resource.Withheld{{Kind: v1beta1.KindClusterTrustStore},
		{Kind: v1beta1.KindClusterVerificationPolicy, Known: resource.Known{Mandatory: true}},
		{Kind: v1beta1.KindClusterStore, Known: resource.Known{Hosts: []string{"own.example.com", "registry.example.com"}}}}, shown.Withheld,
		"of a host with a login nothing is said, and the fallback does not apply")
	i := slices.IndexFunc(shown.Resources, func(o v1beta1.Object) bool { return o.GetName() == "mixed" })
	require.Equal(t, []string{"registry.example.com"}, shown.Resources[i].(*v1beta1.ClusterStore).Spec.Registries) //nolint:forcetypeassert // by its name
	again, err := resource.ParseShown("iris-web", text)
	require.NoError(t, err)
	same, err := again.Text()
	require.NoError(t, err)
	require.Equal(t, text, same, "what is read is what was written")
	_, err = resource.ParseShown("iris", text)
	require.ErrorContains(t, err, "it is about namespace")
}

func TestHomeIsShownTheNamespacesInWhichItsRulesHold(t *testing.T) {
	snapshot, _ := compiled(objects(t, namespace("iris", "1"), namespace("iris-web", "2"), namespace("taken", "3"),
		object("Tenant", "", "iris", "homeNamespace: iris\nnamespaces: [iris-web, taken]\nnamespacePrefix: iris-dev-"),
		object("Tenant", "", "aaa", "homeNamespace: aaa\nnamespaces: [taken]")))
	for name, want := range map[verify.Namespace][]string{"iris": {"iris-web", "iris-dev-"}, "iris-web": {"iris-web", ""}} {
		shown, ok := snapshot.Shown(name)
		require.True(t, ok)
		spec := shown.Resources[0].(*v1beta1.Tenant).Spec //nolint:forcetypeassert // nothing else applies
		require.Equal(t, want, append(spec.Namespaces, spec.NamespacePrefix), name)
	}
}

func TestNothingIsShownWhereNoTenantHoldsTheNamespace(t *testing.T) {
	snapshot, _ := compiled(objects(t, namespace("alone", "1"), object("Tenant", "", "iris", iris)))
	for _, other := range []verify.Namespace{"alone", "missing", verify.Cluster} {
		_, ok := snapshot.Shown(other)
		require.False(t, ok, other)
	}
}

func TestEverythingIsWithheldWhereTheNamespaceDeniesForAReasonOfItsTenant(t *testing.T) {
	snapshot, _ := compiled(objects(t, namespace("iris-web", "1"), object("Tenant", "", "iris", iris)))
	shown, ok := snapshot.Shown("iris-web") // home is missing
	require.True(t, ok)
	require.Empty(t, shown.Resources)
	require.Len(t, shown.Withheld, 6)
}

func TestALargeTextIsReplacedByOneThatWithholdsEverything(t *testing.T) {
	documents := []string{namespace("iris", "1"), object("Tenant", "", "iris", iris)}
	long := strings.Repeat("a", 200)
	for i := range 90 {
		var images []string
		for j := range 30 {
			images = append(images, "'registry.example.com/"+long+strings.Repeat("b", j)+"/x'")
		}
		documents = append(documents, object("ClusterVerifier", "", "v"+strings.Repeat("v", i), "type: Cosign\nimages: ["+strings.Join(images, ", ")+"]\ncosign: {keys: {trustStoreRefs: [{name: k}], insecureIgnoreTransparencyLog: true}}"))
	}
	snapshot, _ := compiled(objects(t, documents...))
	shown, ok := snapshot.Shown("iris")
	require.True(t, ok)
	require.Empty(t, shown.Resources)
}
