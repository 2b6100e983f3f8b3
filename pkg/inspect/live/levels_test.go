package live

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/configdir"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

// samples are the resources of config/samples, with exceptions until tomorrow.
func samples(t *testing.T) resource.Objects {
	t.Helper()
	objects, problems, err := configdir.Load(t.Context(), written.Samples(t, "../../../config/samples", today().AddDate(0, 0, 1)))
	require.NoError(t, err)
	require.Empty(t, problems)
	return objects
}

func namespaceIn(t *testing.T, s Status, name verify.Namespace) NamespaceStatus {
	t.Helper()
	for _, n := range s.Namespaces {
		if n.Namespace == name {
			return n
		}
	}
	require.Fail(t, "no namespace "+string(name))
	return NamespaceStatus{}
}

// placesOf maps what a level shows to whether and why it applies.
func placesOf(n NamespaceStatus) map[string]string {
	found := map[string]string{}
	for _, l := range n.Levels {
		for _, p := range l.Resources {
			state := "instead: " + p.Instead
			switch {
			case p.Applies && p.Mandatory:
				state = "mandatory"
			case p.Applies:
				state = "applies"
			case p.ForMandatory:
				state = "for mandatory"
			}
			found[l.Name+" "+p.Ref.String()] = state
		}
	}
	return found
}

func TestLevelsSayWhatAppliesAndWhatDecidesInsteadOfTheRest(t *testing.T) {
	s := StatusOf(samples(t), nil, today())
	web := namespaceIn(t, s, "iris-green-web")
	require.Equal(t, "iris-green", web.Tenant)
	require.Equal(t, map[string]string{
		"tenant VerificationPolicy iris-green/releases":        "applies",
		"tenant Verifier iris-green/release-signature":         "applies",
		"cluster ClusterVerificationPolicy platform-mandatory": "mandatory",
		"cluster ClusterVerificationPolicy signed-by-platform": "instead: tenant",
		"cluster ClusterVerifier platform-signature":           "for mandatory",
		"cluster ClusterStore company-registry":                "applies",
	}, placesOf(web))
	for _, l := range web.Levels {
		for _, p := range l.Resources {
			require.NotEmpty(t, p.Why, p.Ref)
		}
	}
	require.Len(t, namespaceIn(t, s, "iris-green").Levels, 2, "the home namespace is its own level")
}

func TestEndsListTrustExceptionsAndBreakGlassByDate(t *testing.T) {
	objects := samples(t)
	objects.Namespaces = append(objects.Namespaces, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: map[string]string{
		v1beta1.AnnotationBreakGlassFrom: "2026-11-22T00:00:00Z", v1beta1.AnnotationBreakGlassUntil: "2026-11-23T00:00:00Z",
		v1beta1.AnnotationBreakGlassReason: "the registry\nis down"}}})
	objects.Namespaces = append(objects.Namespaces,
		corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "off", Annotations: map[string]string{v1beta1.AnnotationBreakGlassUntil: "2026-11-24T00:00:00Z"}}})
	ends := StatusOf(objects, nil, today()).Ends
	require.Equal(t, End{Source: policy.ObjectRef{Kind: "Namespace", Name: "shop"}, At: time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC), What: EndOfBreakGlass,
		Why: "the registry is down"}, ends[0])
	found := map[string]int{}
	for i, e := range ends {
		found[e.What]++
		require.True(t, i == 0 || !e.At.Before(ends[i-1].At), "in order")
	}
	require.Equal(t, map[string]int{EndOfBreakGlass: 1, EndOfDelegation: 1, EndOfException: 2, EndOfTrust: 1}, found)
	require.Len(t, StatusOf(objects, nil, today().Add(20*24*time.Hour)).Ends, 1, "what ended more than a week ago is left out")
}

func TestProblemsOfFilesAreResourcesThatNeedAttention(t *testing.T) {
	s := StatusOf(samples(t), []resource.Problem{{Source: policy.ObjectRef{Kind: "Store", Namespace: "team-a", Name: "x"}, Reason: "Broken", Message: "a\nb"},
		{Source: policy.ObjectRef{Kind: "ClusterStore", Name: "y"}, Reason: "Broken"}}, today())
	require.Equal(t, "a b", namespaceIn(t, s, "team-a").Resources[0].Message)
	require.Equal(t, "y", s.Resources[0].Source.Name)
}

func TestLevelsNameTheKindsThatThePersonMayNotList(t *testing.T) {
	s := statusOf(t, reads(t, []string{"Verifier", "ClusterStore"}), one("team"))
	n := s.Namespaces[0]
	require.Equal(t, []string{"Verifier"}, n.Levels[0].Unread)
	require.Equal(t, []string{"ClusterStore"}, n.Levels[1].Unread)
	require.False(t, n.Knows("Verifier"))
	require.False(t, n.Knows("Store"))
	require.True(t, n.Knows("ClusterVerificationPolicy"), "mandatory policies apply in any case")
}

func TestAnExceptionThatHasExpiredDoesNotApply(t *testing.T) {
	exception := func(name string, until time.Duration) v1beta1.Object {
		at := time.Now().Add(until)
		return &v1beta1.ClusterException{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(at.Add(-24 * time.Hour))},
			Spec: v1beta1.ExceptionSpec{Images: []string{"r.example.com/**"}, Namespaces: []string{"team"}, Reason: "OPS-1", Until: at.UTC().Format(time.RFC3339)}}
	}
	for name, c := range map[string]struct {
		exceptions []v1beta1.Object
		want       []string
	}{
		"one that lasts":         {[]v1beta1.Object{exception("new", time.Hour)}, []string{"new"}},
		"one that has expired":   {[]v1beta1.Object{exception("old", -time.Hour)}, nil},
		"one of two has expired": {[]v1beta1.Object{exception("new", time.Hour), exception("old", -time.Hour)}, []string{"new"}},
	} {
		o := resource.Objects{Resources: c.exceptions, Namespaces: []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "team"}}}}
		snapshot, problems := resolve.Empty(resolve.Nowhere()).Next(resolve.Group(o), nil)
		require.Empty(t, problems, name)
		var applied []string
		for _, choice := range Choices(snapshot, "team") {
			if choice.Kind == v1beta1.KindClusterException {
				require.NotEmpty(t, choice.Applied, name)
				for _, source := range choice.Applied {
					applied = append(applied, source.Name)
				}
			}
		}
		require.Equal(t, c.want, applied, name)
	}
}

// verify --explain reads a State, and status a Status.
func TestStatusAndExplainSayTheSameOfWhatDecides(t *testing.T) {
	own := &v1beta1.VerificationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "own"}}
	release := &v1beta1.Verifier{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "release"}}
	for name, c := range map[string]struct {
		unread []string
		levels map[string]string
	}{
		"a team admin": {[]string{"ClusterVerificationPolicy", "ClusterVerifier", "ClusterStore"},
			map[string]string{"VerificationPolicy": "unknown", "Verifier": "unknown", "Store": "unknown", "ClusterVerificationPolicy": "unknown"}},
		"nothing of the namespace": {[]string{"VerificationPolicy", "Verifier"},
			map[string]string{"VerificationPolicy": "unknown", "Verifier": "unknown", "Store": "unknown"}},
		"no Tenants": {[]string{"Tenant"}, map[string]string{"VerificationPolicy": "unknown", "Verifier": "unknown", "Store": "unknown"}},
		"everything": {nil, map[string]string{"VerificationPolicy": "namespace", "Verifier": "namespace", "Store": "none"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := reads(t, c.unread, own, release)
			state, err := p.Read(t.Context(), one("team"))
			require.NoError(t, err)
			snapshot, _ := resolve.Empty(resolve.Nowhere()).Next(resolve.Group(state.Objects), nil)
			status := statusOf(t, p, one("team")).Namespaces[0]
			require.Equal(t, Choices(snapshot, "team"), status.Rules)
			levels := map[string]string{}
			for _, rule := range status.Rules {
				levels[rule.Kind] = rule.Level
			}
			require.Equal(t, c.levels, levels)
		})
	}
}

func TestALevelSaysWhichResourcesAreBroken(t *testing.T) {
	p := &v1beta1.VerificationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "p"}}
	p.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "False", Reason: "NotFound"}, {Type: "Effective", Status: "False", Reason: "Denies"}}
	s := statusOf(t, reads(t, nil, p), one("team"))
	require.Equal(t, "NotFound", s.Namespaces[0].Levels[0].Resources[0].Broken)
	require.Len(t, s.Namespaces[0].Resources, 1, "one line for one state")

	files := StatusOf(samples(t),
		[]resource.Problem{{Source: policy.ObjectRef{Kind: "VerificationPolicy", Namespace: "iris-green", Name: "releases"}, Reason: "Invalid"}}, today())
	require.Equal(t, "Invalid", namespaceIn(t, files, "iris-green").Levels[0].Resources[0].Broken)
}

func TestALevelNamesThePolicyBecauseOfWhichItDeniesEveryImage(t *testing.T) {
	const signed = "rules: [{images: ['**'], require: [{anyOf: [release]}]}]"
	s := StatusOf(written.Objects(t, written.Namespace("team", "1"),
		written.Object("VerificationPolicy", "team", "broken", "rules: [{images: [acme/app], action: Allow}]"),
		written.Object("VerificationPolicy", "team", "sound", signed), written.Object("VerificationPolicy", "team", "warns", "enforcementAction: Warn\n"+signed)),
		nil, today())
	n, broken := namespaceIn(t, s, "team"), policy.ObjectRef{Kind: "VerificationPolicy", Namespace: "team", Name: "broken"}
	var why []string
	for _, c := range n.Rules {
		if c.Kind == v1beta1.KindVerificationPolicy {
			why = append(why, c.Why)
		}
	}
	require.Equal(t,
		[]string{"the namespace has its own VerificationPolicy, so no ClusterVerificationPolicy applies; Landwaiter cannot use VerificationPolicy team/broken, so " +
			"this level denies every image",
			"their enforcementAction is Warn, so they only add warnings"}, why)
	for _, p := range n.Levels[0].Resources {
		require.Equal(t, map[string]policy.ObjectRef{"broken": broken, "sound": broken, "warns": {}}[p.Ref.Name], p.Denies, p.Ref)
	}
}

func TestAResourceThatDeniesNeedsAttentionAndAnIdleOneDoesNot(t *testing.T) {
	for reason, needs := range map[string]bool{"Denies": true, "Unsatisfiable": true, "Unused": false, "Overridden": false} {
		require.Equal(t, needs, Status{Resources: []Attention{{Condition: v1beta1.ConditionEffective, Reason: reason}}}.NeedsAttention(), reason)
	}
}

func TestAMemberShowsTheStateOfWhatAppliesFromItsTenant(t *testing.T) {
	tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "t"}, Spec: v1beta1.TenantSpec{HomeNamespace: "team", Namespaces: []string{"other"}}}
	release := &v1beta1.Verifier{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "release"}}
	release.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: "False", Reason: "NotFound"}}
	x := &v1beta1.Exception{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "x"},
		Spec: v1beta1.ExceptionSpec{Until: "2026-11-29T00:00:00Z", Reason: "r", Images: []string{"**"}}}
	x.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: "False", Reason: "NotDelegated"}}
	d := &v1beta1.ClusterException{ObjectMeta: metav1.ObjectMeta{Name: "d"},
		Spec: v1beta1.ExceptionSpec{Until: "2026-11-29T00:00:00Z", Reason: "r",
			Delegate: &v1beta1.ExceptionDelegation{Images: []string{"**"}, Tenants: []string{"t"}}}}
	s := statusOf(t, reads(t, nil, tenant, release, x, d), one("other"))
	var reasons []string
	for _, a := range s.Namespaces[0].Resources {
		reasons = append(reasons, a.Source.String()+" "+a.Reason)
	}
	require.Equal(t, []string{"Exception team/x NotDelegated", "Verifier team/release NotFound"}, reasons)
	require.Len(t, s.Ends, 1, "an exception that allows nothing does not end")
	require.Equal(t, EndOfDelegation, s.Ends[0].What)

	all := statusOf(t, reads(t, nil, tenant, release, x), Scope{Namespaces: []verify.Namespace{"other", "team"}})
	require.Empty(t, namespaceIn(t, all, "other").Resources, "the home namespace shows them")
}
