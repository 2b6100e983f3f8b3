package resolve_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/written"
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
	return written.Objects(t, written.Namespace("iris", "1"), written.Namespace("iris-web", "2"), written.Namespace(foreign, "3"),
		written.Object("Tenant", "", "iris", written.Iris+"\naccess: {admins: [{kind: Group, name: zzforeign}]}\nreconciler: {source: {url: 'https://zzforeign.example.com'}}"),
		written.Object("Tenant", "", foreign, "homeNamespace: zzforeign\nnamespaces: [zzforeign-web]\nnamespacePrefix: zzforeign-dev-"),
		written.Object("ClusterVerificationPolicy", "", "mandatory", "scope: Mandatory\nrules: [{images: ['registry.example.com/**'], require: [{anyOf: [release]}]}]\ndefaultAction: Allow"),
		written.Object("ClusterVerificationPolicy", "", "fallback", "rules: [{images: ['zzforeign.example.com/**'], action: Deny}]"),
		written.Object("VerificationPolicy", "iris", "own", allowing("registry.example.com")),
		written.Object("Store", "iris", "own", "registries: [own.example.com, login.example.com]"),
		written.Object("ClusterVerifier", "", "release", signed("keys")),
		written.Object("ClusterVerifier", "", "kept", signed("kms")),
		written.Object("ClusterTrustStore", "", "keys", "type: PublicKeys\nsource:\n  inline: |\n    "+pem),
		written.Object("ClusterTrustStore", "", "kms", "type: PublicKeys\nsource: {kms: {uri: 'awskms:///alias/zzforeign'}}"),
		written.Object("ClusterTrustStore", "", "zzforeign-vault", "type: PublicKeys\nsource: {vault: {address: 'https://zzforeign.example.com', path: transit/keys/zzforeign}}"),
		written.Object("ClusterStore", "", "mixed", "registries: [registry.example.com, zzforeign.example.com]"),
		written.Object("ClusterStore", "", "login", "registries: [login.example.com]\nimagePullSecrets: [{name: zzforeign}]\nproxy: {url: 'http://zzforeign.example.com:3128'}"),
		written.Object("ClusterStore", "", "mirror", "registries: [zzforeign.example.org]\nmirrors: [{host: zzforeign.example.net}]"),
		written.Object("ClusterQuota", "", "quota", "tenants: [zzforeign]\nmaxInFlight: 64"),
	)
}

func TestWhatIsShownIsWhatAppliesAndNamesNobodyElse(t *testing.T) {
	snapshot, _ := written.Compiled(foreignWorld(t))
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
	snapshot, _ := written.Compiled(written.Objects(t, written.Namespace("iris", "1"), written.Namespace("iris-web", "2"), written.Namespace("taken", "3"),
		written.Object("Tenant", "", "iris", "homeNamespace: iris\nnamespaces: [iris-web, taken]\nnamespacePrefix: iris-dev-"),
		written.Object("Tenant", "", "aaa", "homeNamespace: aaa\nnamespaces: [taken]")))
	for name, want := range map[verify.Namespace][]string{"iris": {"iris-web", "iris-dev-"}, "iris-web": {"iris-web", ""}} {
		shown, ok := snapshot.Shown(name)
		require.True(t, ok)
		spec := shown.Resources[0].(*v1beta1.Tenant).Spec //nolint:forcetypeassert // nothing else applies
		require.Equal(t, want, append(spec.Namespaces, spec.NamespacePrefix), name)
	}
}

func TestNothingIsShownWhereNoTenantHoldsTheNamespace(t *testing.T) {
	snapshot, _ := written.Compiled(written.Objects(t, written.Namespace("alone", "1"), written.Object("Tenant", "", "iris", written.Iris)))
	for _, other := range []verify.Namespace{"alone", "missing", verify.Cluster} {
		_, ok := snapshot.Shown(other)
		require.False(t, ok, other)
	}
}

func TestEverythingIsWithheldWhereTheNamespaceDeniesForAReasonOfItsTenant(t *testing.T) {
	snapshot, _ := written.Compiled(written.Objects(t, written.Namespace("iris-web", "1"), written.Object("Tenant", "", "iris", written.Iris)))
	shown, ok := snapshot.Shown("iris-web") // home is missing
	require.True(t, ok)
	require.Empty(t, shown.Resources)
	require.Len(t, shown.Withheld, 6)
}

func TestALargeTextIsReplacedByOneThatWithholdsEverything(t *testing.T) {
	documents := []string{written.Namespace("iris", "1"), written.Object("Tenant", "", "iris", written.Iris)}
	long := strings.Repeat("a", 200)
	for i := range 90 {
		var images []string
		for j := range 30 {
			images = append(images, "'registry.example.com/"+long+strings.Repeat("b", j)+"/x'")
		}
		documents = append(documents, written.Object("ClusterVerifier", "", "v"+strings.Repeat("v", i), "type: Cosign\nimages: ["+strings.Join(images, ", ")+"]\ncosign: {keys: {trustStoreRefs: [{name: k}], insecureIgnoreTransparencyLog: true}}"))
	}
	snapshot, _ := written.Compiled(written.Objects(t, documents...))
	shown, ok := snapshot.Shown("iris")
	require.True(t, ok)
	require.Empty(t, shown.Resources)
}

// Whoever verifies an image reads the same of an Exception as its condition says.
func TestAnExceptionThatIsDelegatedToHomeAloneIsDelegatedWhereTheRulesAreShown(t *testing.T) {
	objects := aged(written.Objects(t, written.Namespace("iris", "1"), written.Namespace("iris-web", "2"), written.Object("Tenant", "", "iris", written.Iris),
		written.Object("ClusterVerificationPolicy", "", "p", denies),
		written.Object("ClusterException", "", "d", terms(time.Hour, "delegate: {images: [r.example.com/**], namespaces: [iris, zzforeign]}")),
		written.Object("Exception", "iris", "x", terms(time.Hour, "images: [r.example.com/app]"))))
	snapshot, problems := written.Compiled(objects)
	require.Empty(t, problems)
	require.Contains(t, written.ReportOn(t, snapshot, "Exception iris/x").Effective.Message, "nothing is delegated to the other namespaces of Tenant iris")
	for _, namespace := range []verify.Namespace{"iris", "iris-web"} {
		shown, ok := snapshot.Shown(namespace)
		require.True(t, ok)
		text, err := shown.Text()
		require.NoError(t, err)
		require.NotContains(t, text, foreign)
		seen := objects
		seen.Resources = slices.DeleteFunc(slices.Clone(objects.Resources), func(o v1beta1.Object) bool { return o.GetNamespace() == "" })
		seen.Resources = append(seen.Resources, shown.Resources...)
		as, problems := written.Compiled(seen)
		require.Empty(t, problems, namespace)
		require.Equal(t, by(t, snapshot, namespace, "r.example.com/app:1", soon), by(t, as, namespace, "r.example.com/app:1", soon))
	}
}

func TestNobodyWhoMayNotReadDelegationsSaysThatThereIsNone(t *testing.T) {
	objects := aged(written.Objects(t, written.Namespace("shop", "1"), written.Object("Exception", "shop", "x", terms(time.Hour, "images: [r.example.com/app]"))))
	_, problems := written.Compiled(objects)
	require.Len(t, problems, 1)
	objects.Hidden = []resource.Hidden{{Source: policy.ObjectRef{Kind: v1beta1.KindClusterException}, Why: "you cannot list it"}}
	snapshot, problems := written.Compiled(objects)
	require.Empty(t, problems)
	require.Empty(t, by(t, snapshot, "shop", "r.example.com/app:1", soon), "what is not known to be delegated allows nothing")
}

func TestRulesForEveryImageShowWhatHoldsOfPublicRegistries(t *testing.T) {
	for images, want := range map[string][]string{
		"registry.example.com/**": {"registry.example.com"},
		"**":                      {"docker.io", "gcr.io", "ghcr.io", "mcr.microsoft.com", "public.ecr.aws", "registry.k8s.io"},
	} {
		snapshot, _ := written.Compiled(written.Objects(t, written.Namespace("iris", "1"), written.Object("Tenant", "", "iris", written.Iris),
			written.Object("VerificationPolicy", "iris", "own", "rules: [{images: ['"+images+"'], action: Allow}]"),
			written.Object("ClusterStore", "", "mirror", "registries: [quay.io]\nmirrors: [{host: zzforeign.example.net}]")))
		shown, ok := snapshot.Shown("iris")
		require.True(t, ok)
		withheld, _ := shown.Withholds(v1beta1.KindClusterStore)
		require.Equal(t, want, withheld.Hosts, images)
	}
}
