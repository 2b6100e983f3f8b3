package live

import (
	"context"
	"flag"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// foreign is in every name that the team must not see.
const foreign = "zzforeign"

// drawForeign adds what belongs to others, and what names their hosts and Secrets.
func (l *lab) drawForeign(t *rapid.T, w world) {
	some := func(label string) bool { return rapid.Bool().Draw(t, label) }
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(began())}
	}
	secret := v1beta1.Reference{Name: foreign}
	if some("another team") {
		other := &v1beta1.Tenant{ObjectMeta: meta(foreign)}
		other.Spec.HomeNamespace, other.Spec.Namespaces, other.Spec.NamespacePrefix = foreign+"-home", []string{foreign}, foreign+"-x-"
		w.add(other)
	}
	if some("a store of others") {
		store := &v1beta1.ClusterStore{ObjectMeta: meta("others")}
		store.Spec.Registries, store.Spec.ImagePullSecrets = []string{foreign + ".example.com"}, []v1beta1.Reference{secret}
		w.add(store)
	}
	switch rapid.IntRange(0, 7).Draw(t, "what else is said of the registry") {
	case 0:
		store := &v1beta1.ClusterStore{ObjectMeta: meta("a-login")}
		store.Spec.Registries, store.Spec.ImagePullSecrets = []string{l.registry.Host()}, []v1beta1.Reference{secret}
		w.add(store)
	case 1:
		store := &v1beta1.ClusterStore{ObjectMeta: meta("a-mirror")}
		store.Spec.Registries, store.Spec.Mirrors = []string{l.registry.Host()}, []v1beta1.Mirror{{Host: foreign + ".example.com"}}
		w.add(store)
	case 2:
		store := &v1beta1.ClusterStore{ObjectMeta: meta("z-also")}
		store.Spec.Registries, store.Spec.InsecurePlainHTTP = []string{l.registry.Host(), foreign + ".example.org"}, true
		w.add(store)
	}
	if some("an exception of others") {
		x := &v1beta1.ClusterException{ObjectMeta: meta("others")}
		x.Spec.Images, x.Spec.Namespaces = []string{l.registry.Host() + "/" + foreign + "/**"}, []string{foreign}
		x.Spec.Reason, x.Spec.Until = foreign, began().Add(48*time.Hour).UTC().Format(time.RFC3339)
		w.add(x)
	}
	if some("a delegation") {
		x := &v1beta1.ClusterException{ObjectMeta: meta("delegation")}
		x.Spec.Delegate = &v1beta1.ExceptionDelegation{Images: []string{l.registry.Host() + "/**"}, Namespaces: []string{foreign, team}, Tenants: []string{foreign}}
		x.Spec.Reason, x.Spec.Until = "a test", began().Add(48*time.Hour).UTC().Format(time.RFC3339)
		w.add(x)
		own := &v1beta1.Exception{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "own", CreationTimestamp: metav1.NewTime(began())}}
		own.Spec.Images, own.Spec.Reason, own.Spec.Until = []string{l.registry.Host() + "/app/none"}, "a test", began().Add(47*time.Hour).UTC().Format(time.RFC3339)
		w.add(own)
	}
	if some("a key of others") {
		store := &v1beta1.ClusterTrustStore{ObjectMeta: meta(foreign)}
		store.Spec.Type, store.Spec.Source.KMS = v1beta1.TrustStoreTypePublicKeys, &v1beta1.KMSSource{URI: "awskms:///alias/" + foreign}
		w.add(store)
	}
	if some("a quota of others") {
		quota := &v1beta1.ClusterQuota{ObjectMeta: meta("others")}
		quota.Spec.Namespaces, quota.Spec.Tenants, quota.Spec.MaxInFlight = []string{foreign}, []string{foreign}, 64
		w.add(quota)
	}
}

func shownTenant() *v1beta1.Tenant {
	tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "tenant"}}
	tenant.Spec.HomeNamespace, tenant.Spec.Namespaces = home, []string{team}
	return tenant
}

// shown returns the ConfigMap that the leader writes for the team in a world.
func (l *lab) shown(t require.TestingT, w world) *corev1.ConfigMap {
	var objects resource.Objects
	for _, name := range []string{team, home} {
		objects.Namespaces = append(objects.Namespaces, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "1"}})
	}
	for _, o := range w {
		require.NoError(t, objects.Add(o.DeepCopyObject()))
	}
	snapshot, _ := resolve.New(objects, nil, resolve.Outside{Registry: func(registry.Access) verify.Registry { return nil }, Revocation: func(verify.Namespace) http.RoundTripper { return nil }})
	shown, ok := snapshot.Shown(team)
	require.True(t, ok, "the team is a Tenant's")
	text, err := shown.Text()
	require.NoError(t, err)
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: resource.ShownName, Labels: map[string]string{v1beta1.LabelOwner: v1beta1.OwnerPlatform}},
		Data: map[string]string{resource.ShownKey: text}}
}

// judgedByShown checks one generated world and change: the team's admin, who may read no
// cluster resource, gets the answer of somebody with all permissions, or none.
func (l *lab) judgedByShown(known, total *int) func(*rapid.T) {
	return func(t *rapid.T) {
		now := l.draw(t)
		if !slices.ContainsFunc(slices.Collect(maps.Keys(now)), func(key string) bool { return key == "*v1beta1.Tenant /tenant" }) {
			now.add(shownTenant())
		}
		l.drawForeign(t, now)
		cm := l.shown(t, now)
		require.NotContains(t, cm.Data[resource.ShownKey], foreign)
		change := Change{At: began(), SendSecrets: true}
		drawn := l.draw(t)
		for _, key := range slices.Sorted(maps.Keys(drawn)) {
			if rapid.IntRange(0, 5).Draw(t, "changed "+key) == 0 {
				require.NoError(t, change.Objects.Add(drawn[key]))
			}
		}
		for _, key := range slices.Sorted(maps.Keys(now)) {
			if drawn[key] == nil && rapid.IntRange(0, 5).Draw(t, "deleted "+key) == 0 {
				change.Delete = append(change.Delete, refOf(now[key]))
			}
		}
		var refused []refusal
		for _, kind := range v1beta1.Kinds() {
			if !kind.Namespaced {
				refused = append(refused, refusal{kind.Name, ""})
			}
		}
		before, after := l.answers(t, l.person(now), change)
		now.add(cm)
		b, a := l.answers(t, l.person(now, refused...), change)
		for _, image := range l.images {
			l.weaker(t, refusal{"every cluster kind", ""}, image, before[image], b[image])
			l.weaker(t, refusal{"every cluster kind", ""}, image, after[image], a[image])
			*total++
			if AnswerOf(b[image]) != Unknown {
				*known++
			}
		}
	}
}

func TestWhatIsShownNeverAllowsWhatAllRulesDeny(t *testing.T) {
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		require.NoError(t, checks.Value.Set("50"))
		t.Cleanup(func() { require.NoError(t, checks.Value.Set(checks.DefValue)) })
	}
	l := newLab(t)
	known, total := 0, 0
	rapid.Check(t, l.judgedByShown(&known, &total))
	t.Logf("%d of %d images are decided by what is shown", known, total)
	require.Greater(t, 3*known, total, "what is shown is enough for most images")
}

func TestWithoutRightsAndWithoutWhatIsShownTheErrorNamesBoth(t *testing.T) {
	l := newLab(t)
	w := world{}
	state, err := l.person(w, refusal{v1beta1.KindTenant, ""}).Read(context.Background(), Scope{Namespaces: []verify.Namespace{team}})
	require.NoError(t, err)
	require.Nil(t, state.Shown)
	require.Equal(t, "you cannot list tenants.landwaiter.dev; ask a cluster admin to bind ClusterRole landwaiter-tenant-reader; or to run serve with --show-effective-rules, which shows it in ConfigMap team/landwaiter-effective-rules",
		state.Objects.Hidden[0].Why)
	newer := l.shown(t, world{"tenant": shownTenant()})
	newer.Data[resource.ShownKey] = `{"version":"landwaiter.dev/effective-rules/v9"}`
	w.add(newer)
	state, err = l.person(w, refusal{v1beta1.KindTenant, ""}).Read(context.Background(), Scope{Namespaces: []verify.Namespace{team}})
	require.NoError(t, err)
	require.Contains(t, state.Objects.Hidden[0].Why, `its version is "landwaiter.dev/effective-rules/v9"`)
}

func TestOnlyWhatThePersonMayNotListIsTakenFromWhatIsShown(t *testing.T) {
	l := newLab(t)
	w := world{}
	w.add(shownTenant())
	w.add(l.shown(t, w))
	state, err := l.person(w).Read(context.Background(), Scope{Namespaces: []verify.Namespace{team}})
	require.NoError(t, err)
	require.Nil(t, state.Shown, "who may read everything reads that")
	state, err = l.person(w, refusal{v1beta1.KindTenant, ""}).Read(context.Background(), Scope{Namespaces: []verify.Namespace{team}})
	require.NoError(t, err)
	require.Equal(t, []string{v1beta1.KindTenant}, state.Shown.Kinds)
	require.Empty(t, state.Objects.Hidden)
	require.Empty(t, state.Rights, "the permission is not needed")
}

func TestWhatOthersCanWriteIsNotWhatLandwaiterShows(t *testing.T) {
	l := newLab(t)
	for name, c := range map[string]struct {
		forge func(*corev1.ConfigMap)
		says  string
	}{
		"without a label":   {func(cm *corev1.ConfigMap) { cm.Labels = nil }, "it has no label landwaiter.dev/owner=platform"},
		"of somebody else":  {func(cm *corev1.ConfigMap) { cm.Labels[v1beta1.LabelOwner] = "team" }, "it has no label landwaiter.dev/owner=platform"},
		"with binary data":  {func(cm *corev1.ConfigMap) { cm.BinaryData = map[string][]byte{"x": {1}} }, "it has more than the key rules.json"},
		"with a second key": {func(cm *corev1.ConfigMap) { cm.Data["x"] = "" }, "it has more than the key rules.json"},
		"that is immutable": {func(cm *corev1.ConfigMap) { yes := true; cm.Immutable = &yes }, "it is immutable"},
	} {
		t.Run(name, func(t *testing.T) {
			w := world{}
			w.add(shownTenant())
			cm := l.shown(t, w)
			c.forge(cm)
			w.add(cm)
			state, err := l.person(w, refusal{v1beta1.KindTenant, ""}).Read(context.Background(), Scope{Namespaces: []verify.Namespace{team}})
			require.NoError(t, err)
			require.Nil(t, state.Shown)
			require.Contains(t, state.Objects.Hidden[0].Why, "ConfigMap team/landwaiter-effective-rules cannot be used: it is not Landwaiter's: "+c.says)
		})
	}
}

func TestWhatIsNotShownSaysWhatToDo(t *testing.T) {
	r := &reading{objects: resource.Objects{Hidden: []resource.Hidden{
		{Source: policy.ObjectRef{Kind: "ClusterStore"}, Why: "you cannot list clusterstores.landwaiter.dev; ask a cluster admin to bind ClusterRole landwaiter-cluster-reader"},
		{Source: policy.ObjectRef{Kind: "ClusterException"}, Why: "you cannot list clusterexceptions.landwaiter.dev; ask somebody"}}}}
	shown := &Shown{Shown: resource.Shown{Namespace: "team", Withheld: []resource.Withheld{{Kind: "ClusterStore"}, {Kind: "ClusterException"}}}}
	r.use(t.Context(), shown, func(resource.Hidden) bool { return true })
	var said []string
	for _, h := range r.objects.Hidden {
		said = append(said, h.Why)
	}
	require.Equal(t, []string{
		"you cannot list clusterstores.landwaiter.dev; ask a cluster admin to bind ClusterRole landwaiter-cluster-reader, or name the registry in a rule that is in force (ConfigMap team/landwaiter-effective-rules does not show it)",
		"you cannot list clusterexceptions.landwaiter.dev; ask somebody (ConfigMap team/landwaiter-effective-rules does not show it)",
	}, said)
}
