package compile_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

func pull(namespace, name, host, user string) string {
	return written.Secret(namespace, name, ".dockerconfigjson", `{"auths":{"`+host+`":{"username":"`+user+`","password":"p"}}}`)
}

// via returns the store that reaches the only mirror of the store that applies to
// hub.example.com.
func via(t *testing.T, stores []registry.Store) (registry.Location, *registry.Store) {
	t.Helper()
	s, ok := registry.StoreFor(stores, "hub.example.com")
	require.True(t, ok)
	require.NoError(t, s.Broken)
	require.Len(t, s.Mirrors, 1)
	require.NotNil(t, s.Mirrors[0].Via)
	return s.Mirrors[0].Location, s.Mirrors[0].Via
}

// userAtTheMirror is whom a store logs in as there.
func userAtTheMirror(s *registry.Store) string {
	credentials, _ := s.Logins.For("mirror.example.com", "hub/app", true)
	return credentials[0].Username
}

const hubMirror = "registries: [hub.example.com]\nmirrors: [{host: mirror.example.com, path: \"hub/{repository}\"}]\n"

func TestALocationIsReachedFromTheLevelThatNamesItOnwards(t *testing.T) {
	clusterSecret := pull("landwaiter-system", "admin", "mirror.example.com", "admin")
	cluster := written.Object("ClusterStore", "", "mirror", "registries: [mirror.example.com]\nimagePullSecrets: [{name: admin}]")
	own := written.Object("Store", "team-a", "mirror", "registries: [mirror.example.com]\nimagePullSecrets: [{name: own}]")
	ownSecret := pull("team-a", "own", "mirror.example.com", "team")
	for name, c := range map[string]struct {
		documents []string
		user      string
		named     bool
	}{
		"a namespace's, listed by itself": {[]string{written.Object("Store", "team-a", "hub", hubMirror), own, ownSecret, cluster, clusterSecret},
			"team", false},
		"a namespace's, listed by the cluster": {[]string{written.Object("Store", "team-a", "hub", hubMirror), cluster, clusterSecret}, "admin", false},
		"a namespace's, listed nowhere": {[]string{written.Object("Store", "team-a", "hub", hubMirror+"imagePullSecrets: [{name: own}]"), ownSecret},
			"team", false},
		"the cluster's, which a namespace lists too": {[]string{written.Object("ClusterStore", "", "hub", hubMirror), own, ownSecret, cluster, clusterSecret},
			"admin", true},
		"the cluster's, which only a namespace lists": {[]string{written.Object("ClusterStore", "", "hub", hubMirror), own, ownSecret}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot, problems := written.Compiled(written.Objects(t, append(c.documents, written.Namespace("team-a", "1"))...))
			require.Empty(t, problems)
			location, reached := via(t, snapshot.For("team-a").Tiers[0].Registry.(*written.NoRegistry).Access.Stores)
			require.Equal(t, c.user, userAtTheMirror(reached))
			require.Equal(t, []string{"mirror.example.com"}, reached.Registries)
			require.Equal(t, c.named, location.Named)
		})
	}
}

func TestALocationThatNoStoreListsGetsNoOtherHostsCredential(t *testing.T) {
	both := written.Secret("team-a", "own", ".dockerconfigjson",
		`{"auths":{"hub.example.com":{"username":"hub","password":"p"},"third.example.com":{"username":"third","password":"p"}}}`)
	snapshot, problems := written.Compiled(written.Objects(t, written.Object("Store", "team-a", "hub", hubMirror+"imagePullSecrets: [{name: own}]"), both,
		written.Namespace("team-a", "1")))
	require.Empty(t, problems)
	_, reached := via(t, snapshot.For("team-a").Tiers[0].Registry.(*written.NoRegistry).Access.Stores)
	require.Empty(t, userAtTheMirror(reached))
}

func TestABrokenStoreOfALocationBreaksTheLocation(t *testing.T) {
	broken := written.Object("ClusterStore", "", "mirror", "registries: [mirror.example.com]\nimagePullSecrets: [{name: gone}]")
	snapshot, _ := written.Compiled(written.Objects(t, written.Object("Store", "team-a", "hub", hubMirror), broken, written.Namespace("team-a", "1")))
	_, reached := via(t, snapshot.For("team-a").Tiers[0].Registry.(*written.NoRegistry).Access.Stores)
	require.ErrorContains(t, reached.Broken, "ClusterStore mirror")
}

func TestMandatoryPoliciesNeverReadTheLocationsOfANamespace(t *testing.T) {
	mandatory := written.Object("ClusterVerificationPolicy", "", "mandatory", "scope: Mandatory\n"+written.PolicySpec("{types: [Cosign]}"))
	snapshot, _ := written.Compiled(
		written.Objects(t, mandatory,
			written.Object("Store", "team-a", "hub", hubMirror+"evidence: {repositories: [{repository: e.example.com/sigs}], exclusive: true}"),
			written.Object("ClusterStore", "", "hub", "registries: [hub.example.com]"), written.Namespace("team-a", "1")))
	tiers := snapshot.For("team-a").Tiers
	require.Len(t, tiers, 2)
	for _, s := range tiers[1].Registry.(*written.NoRegistry).Access.Stores {
		require.Empty(t, s.Mirrors)
		require.Empty(t, s.Evidence)
	}
}

func TestAnEditOfWhatReachesALocationIsANewGeneration(t *testing.T) {
	generation := func(documents ...string) string {
		snapshot, _ := written.Compiled(written.Objects(t, append(documents, written.Namespace("team-a", "1"))...))
		return snapshot.For("team-a").Generation
	}
	mirror := func(secret string) string {
		return written.Object("ClusterStore", "", "mirror", "registries: [mirror.example.com]\nimagePullSecrets: [{name: "+secret+"}]")
	}
	own := written.Object("Store", "team-a", "mirror", "registries: [mirror.example.com]") // hides the ClusterStore for images
	hub := func(spec string) string {
		return written.Object("ClusterStore", "", "hub", "registries: [hub.example.com]\n"+spec)
	}
	const named = "mirrors: [{host: mirror.example.com}]"
	a, b := pull("landwaiter-system", "a", "mirror.example.com", "a"), pull("landwaiter-system", "b", "mirror.example.com", "b")
	seen := map[string]string{}
	for name, g := range map[string]string{
		"no place":            generation(own, hub("caBundle: null"), mirror("a"), a, b),
		"a mirror":            generation(own, hub(named), mirror("a"), a, b),
		"another login of it": generation(own, hub(named), mirror("b"), a, b),
		"evidence":            generation(own, hub(named+"\nevidence: {repositories: [{repository: mirror.example.com/sigs}]}"), mirror("a"), a, b),
		"evidence only":       generation(own, hub(named+"\nevidence: {repositories: [{repository: mirror.example.com/sigs}], exclusive: true}"), mirror("a"), a, b),
	} {
		require.Empty(t, seen[g], "%s is like %s", name, seen[g])
		seen[g] = name
	}
}

func TestLocationsThatCannotBeReadAreNamedWithTheirField(t *testing.T) {
	for spec, why := range map[string]string{
		"mirrors: [{host: \"{registry}\"}]":                           "spec.mirrors[0]",
		"mirrors: [{host: a.example.com}, {host: https://b.example}]": "spec.mirrors[1]",
		"mirrors: [{host: a.example.com, path: \"{tag}\"}]":           "spec.mirrors[0]",
		"evidence: {repositories: [{repository: sigs}]}":              "spec.evidence.repositories[0].repository: registry \"sigs\" is not a registry host",
		"evidence: {repositories: [{repository: a.example.com/X}]}":   "spec.evidence.repositories[0].repository",
	} {
		t.Run(spec, func(t *testing.T) {
			snapshot, problems := written.Compiled(written.Objects(t, written.Object("Store", "team-a", "hub", "registries: [hub.example.com]\n"+spec),
				written.Namespace("team-a", "1")))
			require.Len(t, problems, 1)
			require.Contains(t, problems[0].Message, why)
			s, _ := registry.StoreFor(snapshot.For("team-a").Tiers[0].Registry.(*written.NoRegistry).Access.Stores, "hub.example.com")
			require.Error(t, s.Broken, "it denies")
		})
	}
}

// Somebody who names an image of another registry must not get the verdict on what the
// mirror has under the same repository.
func TestTwoRegistriesShareNoRepositoryOfAMirror(t *testing.T) {
	for registries, ok := range map[string]bool{"quay.io": true, "quay.io, ghcr.io": false, "'*.dkr.ecr.eu-west-1.amazonaws.com'": false} {
		for path, apart := range map[string]bool{"": false, ", path: 'hub/{repository}'": false, ", path: '{registry}/{repository}'": true} {
			_, problems := written.Compiled(written.Objects(t, written.Namespace("team-a", "1"),
				written.Object("ClusterStore", "", "hub", fmt.Sprintf("registries: [%s]\nmirrors: [{host: harbor.example.com%s}]", registries, path))))
			if ok || apart {
				require.Empty(t, problems, "%s %s", registries, path)
				continue
			}
			require.Len(t, problems, 1, "%s %s", registries, path)
			require.Contains(t, problems[0].Message, "spec.mirrors[0].path must have {registry}")
		}
	}
}
