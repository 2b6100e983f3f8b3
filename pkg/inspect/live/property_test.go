package live

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// The namespace that is previewed, and the home namespace of its Tenant if it has one.
const (
	team = "team"
	home = "home"
)

// lab is a registry with images that keys 0 and 1 have signed, both and none.
type lab struct {
	registry *fixture.Registry
	keys     [2]*fixture.CosignKey
	images   []string
	scheme   *runtime.Scheme
	schemas  resource.Schemas // once: to prepare them takes longer than a check
	service  *service.Service
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{scheme: runtime.NewScheme(), schemas: schema.Embedded()}
	require.NoError(t, clientgoscheme.AddToScheme(l.scheme))
	require.NoError(t, v1beta1.AddToScheme(l.scheme))
	var err error
	l.registry, err = fixture.StartRegistry(fixture.RegistryOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.registry.Close()) })
	for i := range l.keys {
		l.keys[i], err = fixture.NewCosignKey(fixture.ECDSAP256)
		require.NoError(t, err)
	}
	for name, signers := range map[string][]int{"zero": {0}, "one": {1}, "both": {0, 1}, "none": nil} {
		img, err := l.registry.PushImage(t.Context(), "app/"+name, "v1")
		require.NoError(t, err)
		for _, i := range signers {
			_, err = l.registry.SignCosign(t.Context(), img, l.keys[i], fixture.CosignOptions{})
			require.NoError(t, err)
		}
		l.images = append(l.images, l.registry.Host()+"/app/"+name+":v1")
	}
	slices.Sort(l.images)
	l.service, _, err = service.Open(t.Context(), resource.Objects{Person: true}, service.Options{})
	require.NoError(t, err)
	t.Cleanup(l.service.Close)
	return l
}

// world is what a cluster holds, by kind, namespace and name.
type world map[string]client.Object

func (w world) add(o client.Object) {
	w[fmt.Sprintf("%T %s/%s", o, o.GetNamespace(), o.GetName())] = o
}

// with returns w after a change.
func (w world) with(change world, deleted []string) world {
	next := world{}
	for key, o := range w {
		if !slices.Contains(deleted, key) {
			next[key] = o
		}
	}
	for key, o := range change {
		next[key] = o
	}
	return next
}

// draw generates resources of the team, of the home namespace and of the cluster.
func (l *lab) draw(t *rapid.T) world {
	w := world{}
	some := func(label string) bool { return rapid.Bool().Draw(t, label) }
	if some("tenant") {
		tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "tenant"}}
		tenant.Spec.HomeNamespace, tenant.Spec.Namespaces = home, []string{team}
		tenant.Spec.Verification.PolicyLevel = rapid.SampledFrom([]v1beta1.PolicyLevel{"", v1beta1.PolicyLevelNamespace, v1beta1.PolicyLevelTenant,
			v1beta1.PolicyLevelCluster}).Draw(t, "decides")
		w.add(tenant)
	}
	for _, level := range []string{team, home, ""} {
		l.drawLevel(t, w, level)
	}
	return w
}

func (l *lab) drawLevel(t *rapid.T, w world, level string) {
	some := func(label string) bool { return rapid.Bool().Draw(t, level+" "+label) }
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: level, Name: name} }
	for i, key := range l.keys {
		name := fmt.Sprintf("key-%d", i)
		inSecret := some(name + " in a secret")
		if inSecret && level != "" && some(name+" exists") {
			w.add(&corev1.Secret{ObjectMeta: meta(name), Data: map[string][]byte{"key": key.PEM}})
		}
		if some(name) {
			if level == "" {
				store := &v1beta1.ClusterTrustStore{ObjectMeta: meta(name)}
				store.Spec.Type, store.Spec.Source.Inline = v1beta1.TrustStoreTypePublicKeys, string(key.PEM)
				w.add(store)
			} else {
				store := &v1beta1.TrustStore{ObjectMeta: meta(name)}
				store.Spec.Type, store.Spec.Source.Inline = v1beta1.TrustStoreTypePublicKeys, string(key.PEM)
				if inSecret {
					store.Spec.Source = v1beta1.TrustSource{SecretKeyRef: &v1beta1.KeyReference{Name: name, Key: "key"}}
				}
				w.add(store)
			}
		}
		if some(fmt.Sprintf("verifier-%d", i)) {
			spec := v1beta1.VerifierSpec{}
			spec.Type = v1beta1.VerifierTypeCosign
			ref := v1beta1.TrustStoreRef{Name: name}
			if level != "" && some(name+" of the cluster") {
				ref.Kind = v1beta1.TrustStoreKindClusterTrustStore
			}
			spec.Cosign = &v1beta1.CosignVerifier{
				Signers: v1beta1.Signers{Keys: &v1beta1.Keys{TrustStoreRefs: []v1beta1.TrustStoreRef{ref},
					TransparencyLog: v1beta1.TransparencyLog{InsecureIgnoreTransparencyLog: true}}}}
			if some(fmt.Sprintf("verifier-%d with its keys", i)) {
				spec.Cosign.Keys.TrustStoreRefs, spec.Cosign.Keys.Inline = nil, "# of "+name+"\n"+string(key.PEM)
			}
			if level == "" {
				w.add(&v1beta1.ClusterVerifier{ObjectMeta: meta(fmt.Sprintf("verifier-%d", i)), Spec: spec})
			} else {
				w.add(&v1beta1.Verifier{ObjectMeta: meta(fmt.Sprintf("verifier-%d", i)), Spec: spec})
			}
		}
	}
	if level == "" && rapid.IntRange(0, 4).Draw(t, "cluster store") > 0 {
		store := &v1beta1.ClusterStore{ObjectMeta: meta("registry")}
		store.Spec.Registries, store.Spec.InsecurePlainHTTP = []string{l.registry.Host()}, true
		w.add(store)
	}
	if level == "" && rapid.IntRange(0, 3).Draw(t, "exception") == 0 {
		x := &v1beta1.ClusterException{ObjectMeta: meta("exception")}
		x.CreationTimestamp = metav1.NewTime(began())
		x.Spec.Images, x.Spec.Namespaces, x.Spec.OverrideMandatory = []string{strings.TrimSuffix(l.images[0], ":v1")}, []string{team}, some("mandatory")
		x.Spec.Reason, x.Spec.Until = "a test", began().Add(time.Hour*48).UTC().Format(time.RFC3339)
		w.add(x)
	}
	if level != "" && rapid.IntRange(0, 3).Draw(t, level+" store") == 0 {
		store := &v1beta1.Store{ObjectMeta: meta("registry")}
		store.Spec.Registries = []string{l.registry.Host()}
		if some("login") {
			store.Spec.ImagePullSecrets = []v1beta1.Reference{{Name: "login"}}
			if some("login exists") {
				w.add(&corev1.Secret{ObjectMeta: meta("login"), Data: map[string][]byte{".dockerconfigjson": []byte(`{"auths":{"registry.example.com":{"auth":"YTpi"}}}`)}})
			}
		}
		w.add(store)
	}
	for n := range rapid.IntRange(0, 2).Draw(t, level+" policies") {
		l.drawPolicy(t, w, meta(fmt.Sprintf("policy-%d", n)))
	}
}

func (l *lab) drawPolicy(t *rapid.T, w world, meta metav1.ObjectMeta) {
	spec := v1beta1.VerificationPolicySpec{}
	for range rapid.IntRange(1, 2).Draw(t, "rules") {
		rule := v1beta1.PolicyRule{Images: []string{l.registry.Host() + "/" + rapid.SampledFrom([]string{"**", "app/zero", "app/none"}).Draw(t, "images")}}
		switch rapid.IntRange(0, 5).Draw(t, "action") {
		case 0:
			rule.Action = v1beta1.RuleActionAllow
		case 1:
			rule.Action = v1beta1.RuleActionDeny
		case 2:
			rule.Require = []v1beta1.Requirement{{AllOf: []string{"verifier-0", "verifier-1"}}}
		case 3:
			rule.Require = []v1beta1.Requirement{{Expression: `findings.exists(f, f.verifier == "verifier-0")`}}
		case 4:
			rule.Require = []v1beta1.Requirement{{Types: []v1beta1.VerifierType{v1beta1.VerifierTypeCosign}}}
		default:
			rule.Require = []v1beta1.Requirement{{AnyOf: rapid.SampledFrom([][]string{{"verifier-0"}, {"verifier-1"}, {"verifier-0", "verifier-1"}}).Draw(t, "any of")}}
		}
		spec.Rules = append(spec.Rules, rule)
	}
	spec.DefaultAction = rapid.SampledFrom([]v1beta1.DefaultAction{"", v1beta1.DefaultActionAllow, v1beta1.DefaultActionInherit}).Draw(t, "default")
	if rapid.IntRange(0, 3).Draw(t, "warns") == 0 {
		spec.EnforcementAction = v1beta1.EnforcementActionWarn
	}
	if meta.Namespace != "" {
		w.add(&v1beta1.VerificationPolicy{ObjectMeta: meta, Spec: spec})
		return
	}
	p := &v1beta1.ClusterVerificationPolicy{ObjectMeta: meta}
	p.Spec = spec
	if p.Spec.DefaultAction == v1beta1.DefaultActionInherit {
		p.Spec.DefaultAction = ""
	}
	if rapid.IntRange(0, 2).Draw(t, "mandatory") == 0 {
		p.Spec.Scope = v1beta1.PolicyScopeMandatory
	}
	w.add(p)
}

// began is when everything was made: exceptions end some time after that.
func began() time.Time { return time.Now().Add(-time.Hour).Truncate(24 * time.Hour) }

// refusal says which requests an API server refuses.
type refusal struct{ kind, namespace string }

// person returns somebody who reads a world with all permissions but those of refused.
func (l *lab) person(w world, refused ...refusal) *Person {
	builder := fake.NewClientBuilder().WithScheme(l.scheme)
	for _, name := range []string{team, home} {
		builder = builder.WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "1"}})
	}
	for _, o := range w {
		builder = builder.WithObjects(o.DeepCopyObject().(client.Object)) //nolint:forcetypeassert // a copy has the type
	}
	forbidden := func(object runtime.Object, namespace string) error {
		kind := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%T", object), "*"), "List")
		kind = kind[strings.LastIndex(kind, ".")+1:]
		if slices.Contains(refused, refusal{kind, namespace}) {
			return apierrors.NewForbidden(v1beta1.GroupVersion.WithResource(kind).GroupResource(), "", nil)
		}
		return nil
	}
	made := builder.WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			var o client.ListOptions
			o.ApplyOptions(options)
			if err := forbidden(list, o.Namespace); err != nil {
				return err
			}
			return c.List(ctx, list, client.InNamespace(o.Namespace))
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			where := key.Namespace
			if _, ok := object.(*corev1.Namespace); ok {
				where = key.Name
			}
			if err := forbidden(object, where); err != nil {
				return err
			}
			return c.Get(ctx, key, object, options...)
		},
	}).Build()
	return &Person{schemas: l.schemas, client: made, reports: pagesOf(made)}
}

// answers previews all images in a person's eyes.
func (l *lab) answers(t require.TestingT, p *Person, change Change) (before, after map[string]verify.Result) {
	ctx := context.Background()
	states := make([]State, 2)
	var err error
	states[0], states[1], err = p.Rehearse(ctx, Scope{Namespaces: []verify.Namespace{team}}, change)
	require.NoError(t, err)
	var uses []Use
	for _, image := range l.images {
		uses = append(uses, Use{Namespace: team, Image: image})
	}
	now, _ := l.service.Rehearse(ctx, states[0].Objects)
	then, _ := l.service.Rehearse(ctx, states[1].Objects)
	before, after = map[string]verify.Result{}, map[string]verify.Result{}
	for _, row := range Preview(ctx, uses, states[0].Judging(now), states[1].Judging(then), func() {}) {
		before[row.Image], after[row.Image] = row.Before, row.After
	}
	return before, after
}

// rights are all that a preview of the team needs.
func rights() []refusal {
	all := []refusal{{"Namespace", team}, {"Namespace", home}, {"Secret", team}, {"Secret", home}}
	for _, kind := range v1beta1.Kinds() {
		if kind.Namespaced {
			all = append(all, refusal{kind.Name, team}, refusal{kind.Name, home})
		} else {
			all = append(all, refusal{kind.Name, ""})
		}
	}
	return all
}

// previewed checks one generated change.
func (l *lab) previewed(t *rapid.T) {
	now := l.draw(t)
	made := world{}
	drawn := l.draw(t)
	for _, key := range slices.Sorted(maps.Keys(drawn)) {
		if rapid.IntRange(0, 3).Draw(t, "changed "+key) == 0 {
			made[key] = drawn[key]
		}
	}
	change := Change{At: began(), SendSecrets: true}
	for _, o := range made {
		require.NoError(t, change.Objects.Add(o))
	}
	var deleted []string
	for _, key := range slices.Sorted(maps.Keys(now)) {
		if made[key] == nil && rapid.IntRange(0, 5).Draw(t, "deleted "+key) == 0 {
			deleted = append(deleted, key)
			change.Delete = append(change.Delete, refOf(now[key]))
		}
	}
	before, after := l.answers(t, l.person(now), change)
	applied, _ := l.answers(t, l.person(now.with(made, deleted)), Change{})
	for image, want := range applied {
		require.Equal(t, want.Verdict, after[image].Verdict, "%s: what is previewed is what is decided once it is applied", image)
		require.NotEqual(t, Unknown, AnswerOf(want), "%s: with all permissions all is known: %s", image, want.Verdict.Reason)
	}
	for _, right := range rapid.SliceOfNDistinct(rapid.SampledFrom(rights()), 2, 2, rapid.ID[refusal]).Draw(t, "missing permissions") {
		b, a := l.answers(t, l.person(now, right), change)
		for _, image := range l.images {
			l.weaker(t, right, image, before[image], b[image])
			l.weaker(t, right, image, after[image], a[image])
		}
	}
}

// refOf returns the reference to an object of any kind that a change has.
func refOf(o client.Object) policy.ObjectRef {
	if ours, ok := o.(v1beta1.Object); ok {
		return resource.RefOf(ours)
	}
	kind := fmt.Sprintf("%T", o)
	return policy.ObjectRef{Kind: kind[strings.LastIndex(kind, ".")+1:], Namespace: o.GetNamespace(), Name: o.GetName()}
}

// weaker checks that somebody without a permission knows the same, or nothing.
func (l *lab) weaker(t require.TestingT, right refusal, image string, full, seen verify.Result) {
	got := AnswerOf(seen)
	if got == verify.AnswerDenied && strings.Contains(seen.Verdict.Reason, "unless an exception that you cannot read applies") &&
		strings.Contains(right.kind+"Namespace", "Exception") {
		return
	}
	if got != Unknown {
		require.Equal(t, AnswerOf(full), got, "without permission to read %v, %s: %s (in truth: %s)", right, image, seen.Verdict.Reason, full.Verdict.Reason)
		return
	}
	require.Contains(t, seen.Verdict.Reason+seen.Verdict.Warning, "you cannot", "what is unknown names the permission, %v", right)
}

// Each check previews ten times, so there are few unless -rapid.checks asks for more.
func TestAPreviewIsWhatTheEngineWillSayAndNeverGuesses(t *testing.T) {
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		require.NoError(t, checks.Value.Set("25"))
		t.Cleanup(func() { require.NoError(t, checks.Value.Set(checks.DefValue)) })
	}
	l := newLab(t)
	rapid.Check(t, l.previewed)
}
