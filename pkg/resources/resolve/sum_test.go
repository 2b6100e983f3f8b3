package resolve_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

// everything has an object of each kind that decisions follow from.
func everything(t *testing.T, change map[string]string) resource.Objects {
	t.Helper()
	texts := map[string]string{
		"namespace":     written.Namespace("iris", "1"),
		"member":        written.Namespace("iris-web", "2"),
		"tenant":        written.Object("Tenant", "", "iris", written.Iris),
		"quota":         written.Object("ClusterQuota", "", "own", "namespaces: [iris-web]\nmaxInFlight: 64"),
		"cluster keys":  written.Object("ClusterTrustStore", "", "keys", "type: PublicKeys\nsource: {configMapKeyRef: {name: keys, key: k}}"),
		"cluster store": written.Store("", "shared", "r.example.com"),
		"delegation": written.Object("ClusterException", "", "may", "until: 2026-12-31T00:00:00Z\nreason: r\ndelegate: {tenants: [iris], images: "+
			"[\"r.example.com/**\"]}"),
		"mandatory":       written.Object("ClusterVerificationPolicy", "", "mandatory", "scope: Mandatory\ndefaultAction: Allow"),
		"cluster signed":  written.Object("ClusterVerifier", "", "shared", written.CosignVerifier),
		"keys":            written.Object("TrustStore", "iris", "keys", "type: PublicKeys\nsource: {secretKeyRef: {name: keys, key: k}}"),
		"signed":          written.Object("Verifier", "iris", "own", written.CosignVerifier),
		"policy":          written.Object("VerificationPolicy", "iris", "own", written.PolicySpec("anyOf: [own]")),
		"store":           written.Object("Store", "iris", "own", "registries: [r.example.com]\nimagePullSecretsFrom: {serviceAccount: {name: puller}}"),
		"exception":       written.Object("Exception", "iris", "one", "until: 2026-12-01T00:00:00Z\nreason: r\nimages: [r.example.com/a]"),
		"secret":          written.Secret("iris", "keys", "k", "one"),
		"pull secret":     written.Secret("iris", "pull", ".dockerconfigjson", "{}"),
		"service account": "kind: ServiceAccount\nmetadata: {name: puller, namespace: iris}\nimagePullSecrets: [{name: pull}]",
		"config map":      "kind: ConfigMap\nmetadata: {name: keys, namespace: landwaiter-system}\ndata: {k: one}",
	}
	for name, text := range change {
		texts[name] = text
	}
	var documents []string
	for _, text := range texts { // in an order of its own each time
		documents = append(documents, text)
	}
	return dated(written.Objects(t, documents...), 0)
}

// dated sets when resources were created, so that exceptions count, and what no decision follows from.
func dated(o resource.Objects, version int64) resource.Objects {
	for _, object := range o.Resources {
		object.SetCreationTimestamp(metav1.NewTime(time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)))
		object.SetGeneration(version)
		object.SetResourceVersion(time.Unix(version, 0).String())
	}
	return o
}

func sumOf(o resource.Objects) uint64 {
	s, _ := written.Compiled(o)
	return both(s.Sums())
}

func both(cluster, namespaces uint64) uint64 { return (cluster + namespaces) & (1<<48 - 1) }

func TestSnapshotsOfTheSameObjectsHaveTheSameSumInAnyOrder(t *testing.T) {
	want := sumOf(everything(t, nil))
	require.Less(t, want, uint64(1)<<48)
	require.Equal(t, want, uint64(float64(want)), "a metric must hold it exactly")
	for range 20 {
		o := dated(everything(t, nil), rand.Int64())
		rand.Shuffle(len(o.Namespaces), func(i, j int) { o.Namespaces[i], o.Namespaces[j] = o.Namespaces[j], o.Namespaces[i] })
		require.Equal(t, want, sumOf(o))
	}
}

func TestEachChangeOfWhatIsServedChangesTheSum(t *testing.T) {
	was := sumOf(everything(t, nil))
	seen := map[uint64]string{was: "nothing"}
	for name, text := range map[string]string{
		"namespace": written.Namespace("iris", "9"),
		"member": "kind: Namespace\nmetadata:\n  name: iris-web\n  uid: \"2\"\n  annotations: {landwaiter.dev/break-glass-until: " +
			"\"2026-12-01T00:00:00Z\", landwaiter.dev/break-glass-reason: r}",
		"tenant":        written.Object("Tenant", "", "iris", "homeNamespace: iris\nnamespaces: [iris-web]"),
		"quota":         written.Object("ClusterQuota", "", "own", "namespaces: [iris-web]\nmaxInFlight: 65"),
		"cluster keys":  written.Object("ClusterTrustStore", "", "keys", "type: PublicKeys\nsource: {configMapKeyRef: {name: keys, key: other}}"),
		"cluster store": written.Store("", "shared", "r.example.com, s.example.com"),
		"delegation": written.Object("ClusterException", "", "may", "until: 2026-12-30T00:00:00Z\nreason: r\ndelegate: {tenants: [iris], images: "+
			"[\"r.example.com/**\"]}"),
		"mandatory":       written.Object("ClusterVerificationPolicy", "", "mandatory", "scope: Mandatory\ndefaultAction: Deny"),
		"cluster signed":  "",
		"keys":            written.Object("TrustStore", "iris", "keys", "type: PublicKeys\nsource: {secretKeyRef: {name: keys, key: k}}\nhash: SHA512"),
		"signed":          written.Object("Verifier", "iris", "other", written.CosignVerifier),
		"policy":          written.Object("VerificationPolicy", "iris", "own", written.Warn+written.PolicySpec("anyOf: [own]")),
		"store":           "",
		"exception":       written.Object("Exception", "iris", "one", "until: 2026-12-01T00:00:00Z\nreason: r\nimages: [r.example.com/b]"),
		"secret":          written.Secret("iris", "keys", "k", "two"),
		"pull secret":     "",
		"service account": "kind: ServiceAccount\nmetadata: {name: puller, namespace: iris}",
		"config map":      "kind: ConfigMap\nmetadata: {name: keys, namespace: landwaiter-system}\ndata: {k: two}",
	} {
		is := sumOf(everything(t, map[string]string{name: text}))
		require.NotContains(t, seen, is, "%s as %s", name, seen[is])
		seen[is] = name
	}
	require.Equal(t, was, sumOf(everything(t, nil)), "reverted")
}

func TestWhatNothingReferencesDoesNotChangeTheSum(t *testing.T) {
	require.Equal(t, sumOf(everything(t, nil)), sumOf(everything(t, map[string]string{
		"another secret": written.Secret("iris", "unrelated", "k", "one"),
		"status":         "kind: ConfigMap\nmetadata: {name: unrelated, namespace: landwaiter-system}\ndata: {k: one}",
	})))
}

// One replica starts with all objects, another follows each change.
func TestASnapshotThatFollowedChangesHasTheSumOfOneThatStartedWithThem(t *testing.T) {
	before, after := everything(t, nil), everything(t, map[string]string{
		"policy": written.Object("VerificationPolicy", "iris", "own", written.Warn+written.PolicySpec("anyOf: [own]")),
		"secret": written.Secret("iris", "keys", "k", "two"),
		"quota":  written.Object("ClusterQuota", "", "own", "namespaces: [iris-web]\nmaxInFlight: 65"), "member": ""})
	s, _ := written.Compiled(before)
	was := both(s.Sums())
	s, _ = s.Next(resolve.Group(after).Only("iris"), nil)
	require.NotEqual(t, was, both(s.Sums()))
	s, _ = s.Next(resolve.Group(after).Only("iris-web"), nil)
	s, _ = s.Next(resolve.Group(after).Only(verify.Cluster), nil)
	require.Equal(t, sumOf(after), both(s.Sums()))
	for _, namespace := range slices.Backward([]verify.Namespace{"iris", "iris-web"}) {
		s, _ = s.Next(resolve.Group(before).Only(namespace), nil)
	}
	s, _ = s.Next(resolve.Group(before).Only(verify.Cluster), nil)
	require.Equal(t, was, both(s.Sums()))
}
