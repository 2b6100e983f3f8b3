package resolve_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

// born is when the exceptions of these tests were created, and soon a time at which those
// that last an hour are in force.
var (
	born = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	soon = born.Add(time.Minute)
)

// aged gives exceptions the time of their creation, as an API server does.
func aged(o resource.Objects) resource.Objects {
	for _, object := range o.Resources {
		switch x := object.(type) {
		case *v1beta1.Exception:
			x.CreationTimestamp = metav1.NewTime(born)
		case *v1beta1.ClusterException:
			x.CreationTimestamp = metav1.NewTime(born)
		}
	}
	return o
}

// limited compiles with limits of exceptions.
func limited(o resource.Objects, limits resource.ExceptionLimits) *resolve.Snapshot {
	s, _ := resolve.Empty(resolve.Outside{Registry: func(a registry.Access) verify.Registry { return &written.NoRegistry{Access: a} }, Exceptions: limits}).
		Next(resolve.Group(o), nil)
	return s
}

// terms are those of an exception that ends after a time.
func terms(lasts time.Duration, rest string) string {
	return fmt.Sprintf("until: %q\nreason: OPS-1\n%s", born.Add(lasts).Format(time.RFC3339), rest)
}

// by returns which exception allows an image at a moment, "" if none does.
func by(t *testing.T, s *resolve.Snapshot, namespace verify.Namespace, name string, now time.Time) string {
	t.Helper()
	ref, err := image.Parse(name)
	require.NoError(t, err)
	got := verify.NewEngine(nil, func() time.Time { return now }, verify.Options{}).Verify(t.Context(), s.For(namespace), ref)
	require.Equal(t, got.Exception.Name != "", got.Verdict.Outcome() == policy.Allowed, got.Verdict.Reason)
	if got.Exception.Name == "" {
		return ""
	}
	return got.Exception.String()
}

const (
	denies    = "rules: [{images: ['**'], action: Deny}]"
	inShop    = "images: [r.example.com/app]\nnamespaces: [shop]"
	delegates = "delegate: {images: [r.example.com/**], namespaces: [shop]}"
)

func TestAClusterExceptionIsForItsNamespacesAlone(t *testing.T) {
	s, problems := written.Compiled(
		aged(written.Objects(t, written.Namespace("shop", "1"), written.Namespace("other", "2"), written.Object("ClusterVerificationPolicy", "", "p", denies),
			written.Object("ClusterException", "", "named", terms(time.Hour, inShop)),
			written.Object("ClusterException", "", "every", terms(time.Hour, "images: [r.example.com/tool]\nnamespaces: ['*']")))))
	require.Empty(t, problems)
	require.Equal(t, "ClusterException named", by(t, s, "shop", "r.example.com/app:1", soon))
	require.Empty(t, by(t, s, "other", "r.example.com/app:1", soon))
	require.Equal(t, "ClusterException every", by(t, s, "other", "r.example.com/tool:1", soon))
	require.Equal(t, "ClusterException every", by(t, s, "to-come", "r.example.com/tool:1", soon))
	require.Empty(t, by(t, s, verify.Cluster, "r.example.com/tool:1", soon), "nobody named the pods of a request without a namespace")
	require.Empty(t, by(t, s, "shop", "r.example.com/app:1", born.Add(time.Hour)))
	report := written.ReportOn(t, s, "ClusterException named")
	require.True(t, report.Ready.True)
	require.Equal(t,
		conditions.Condition{True: true, Reason: policy.ReasonInForce, Message: "it allows its images until 2026-11-22T13:00:00Z in shop; mandatory policies hold"},
		report.EffectiveAt(soon))
	require.Equal(t, conditions.Condition{Reason: policy.ReasonExpired, Message: "it expired at 2026-11-22T13:00:00Z and allows nothing; delete it"},
		report.EffectiveAt(born.Add(time.Hour)))
	require.Empty(t, conditions.Ended(s, soon))
	require.Len(t, conditions.Ended(s, born.Add(time.Hour)), 2)
}

func TestAnExceptionCountsOnlyAsFarAsItIsDelegated(t *testing.T) {
	fixed := []string{written.Namespace("shop", "1"), written.Namespace("other", "2"), written.Object("ClusterVerificationPolicy", "", "p", denies)}
	const everything = "images: ['**']"
	for name, row := range map[string]struct {
		documents []string
		allowed   bool
		ready     policy.Reason
		effective policy.Reason
	}{
		"by nobody":        {nil, false, policy.ReasonNotDelegated, policy.ReasonNotInForce},
		"to its namespace": {[]string{written.Object("ClusterException", "", "d", terms(time.Hour, delegates))}, true, policy.ReasonValid, policy.ReasonInForce},
		"to another": {[]string{written.Object("ClusterException", "", "d", terms(time.Hour, "delegate: {images: ['**'], namespaces: [other]}"))}, false,
			policy.ReasonNotDelegated, policy.ReasonNotInForce},
		"other images": {
			[]string{written.Object("ClusterException", "", "d", terms(time.Hour, "delegate: {images: [s.example.com/**], namespaces: [shop]}"))}, false,
			policy.ReasonValid, policy.ReasonInForce},
		"a digest": {
			[]string{
				written.Object("ClusterException", "", "d",
					terms(time.Hour, "delegate: {images: ['r.example.com/app@sha256:"+strings.Repeat("0", 64)+"'], namespaces: [shop]}"))}, false, policy.ReasonValid,
			policy.ReasonInForce},
		"for a shorter time": {
			[]string{written.Object("ClusterException", "", "d", terms(time.Hour, "delegate: {images: ['**'], namespaces: [shop], maxDuration: 59m}"))}, false,
			policy.ReasonTooLong, policy.ReasonNotInForce},
		"for long enough": {
			[]string{written.Object("ClusterException", "", "d", terms(time.Hour, "delegate: {images: ['**'], namespaces: [shop], maxDuration: 1h}"))}, true,
			policy.ReasonValid, policy.ReasonInForce},
		"by one that is broken": {
			[]string{written.Object("ClusterException", "", "d", terms(time.Hour, "delegate: {images: ['**'], namespaces: [shop]}\noverrideMandatory: true"))}, false,
			policy.ReasonNotDelegated, policy.ReasonNotInForce},
		"by one of several": {
			[]string{written.Object("ClusterException", "", "a", terms(time.Hour, "delegate: {images: ['**'], namespaces: [shop], maxDuration: 59m}")),
				written.Object("ClusterException", "", "b", terms(time.Hour, delegates))}, true, policy.ReasonValid, policy.ReasonInForce},
		"by a ClusterException " +
			"that is none": {[]string{written.Object("ClusterException", "", "d", terms(time.Hour, "images: [r.example.com/x]\nnamespaces: [shop]"))}, false,
			policy.ReasonNotDelegated, policy.ReasonNotInForce},
		"by one that ended": {[]string{written.Object("ClusterException", "", "d", terms(time.Second, delegates))}, false, policy.ReasonValid,
			policy.ReasonExpired},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := written.Compiled(
				written.AsRead(t,
					aged(written.Objects(t, append(append(fixed, written.Object("Exception", "shop", "x", terms(time.Hour, everything))), row.documents...)...))))
			want := ""
			if row.allowed {
				want = "Exception shop/x"
			}
			require.Equal(t, want, by(t, s, "shop", "r.example.com/app:1", soon))
			require.Empty(t, by(t, s, "other", "r.example.com/app:1", soon), "an Exception is for its own namespace")
			report := written.ReportOn(t, s, "Exception shop/x")
			require.Equal(t, row.ready, report.Ready.Reason, report.Ready.Message)
			require.Equal(t, row.effective, report.EffectiveAt(soon).Reason)
			require.NotContains(t, report.Ready.Message, "is denied", "nothing depends on it")
		})
	}
	s, _ := written.Compiled(
		aged(written.Objects(t,
			append(fixed, written.Object("Exception", "shop", "x", terms(time.Hour, "images: [s.example.com/a]")),
				written.Object("ClusterException", "", "d", terms(time.Hour, delegates)))...)))
	require.Equal(t, "ClusterException d delegates none of spec.images to namespace shop; ask a cluster admin to add them there",
		written.ReportOn(t, s, "Exception shop/x").Ready.Message)
}

func TestAnExceptionIsNotDelegatedIfNoneOfItsImagesIs(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("0", 64)
	for _, row := range []struct {
		images, delegated string
		want              policy.Reason
	}{
		{"ghcr.io/**", "r.example.com/team-a/**", policy.ReasonNotDelegated},
		{"r.example.com/shared/**", "r.example.com/team-a/**", policy.ReasonNotDelegated},
		{"r.example.com/team-a", "r.example.com/team-a/**", policy.ReasonNotDelegated},
		{"r.example.com/shared/**, ghcr.io/x", "r.example.com/team-a/**", policy.ReasonNotDelegated},
		{"r.example.com/shared/*" + ", r.example.com/shared/b" + digest, "r.example.com/team-a/*", policy.ReasonNotDelegated},
		{"r.example.com/shared/*", "r.example.com/team-a/app" + digest, policy.ReasonNotDelegated},
		{"r.example.com/shared/app", "r.example.com/team-a/app" + digest, policy.ReasonNotDelegated},
		{"r.example.com/team-a/b" + digest, "r.example.com/team-a/app" + digest, policy.ReasonNotDelegated},

		{"r.example.com/shared/**, r.example.com/team-a/b", "r.example.com/team-a/**", policy.ReasonValid},
		{"r.example.com/**", "r.example.com/team-a/app", policy.ReasonValid},
		{"r.example.com/*/app", "r.example.com/team-a/*", policy.ReasonValid},
		{"'*.example.com/**'", "r.example.com/team-a/**", policy.ReasonValid},
		{"'**'", "r.example.com/team-a/**", policy.ReasonValid},
		{"r.example.com/team-a/*", "r.example.com/team-a/app" + digest, policy.ReasonValid},
		{"r.example.com/team-a/app", "r.example.com/team-a/app" + digest, policy.ReasonValid},
		{"r.example.com/team-a/app" + digest, "r.example.com/team-a/**", policy.ReasonValid},
		{"r.example.com/team-a/app" + digest, "r.example.com/team-a/app" + digest, policy.ReasonValid},
	} {
		s, _ := written.Compiled(aged(written.Objects(t, written.Namespace("shop", "1"),
			written.Object("Exception", "shop", "x", terms(time.Hour, "images: ["+row.images+"]")),
			written.Object("ClusterException", "", "d", terms(time.Hour, "delegate: {images: ["+row.delegated+"], namespaces: [shop]}")))))
		require.Equal(t, row.want, written.ReportOn(t, s, "Exception shop/x").Ready.Reason, "%s, delegated %s", row.images, row.delegated)
	}
}

func TestAnExceptionInAHomeCountsWhereHomeDecidesAndTheTenantIsNamed(t *testing.T) {
	for name, row := range map[string]struct {
		delegate, decides string
		in                []verify.Namespace
		says              string
	}{
		"the Tenant": {"tenants: [iris]", "Namespace", []verify.Namespace{"iris", "iris-web"},
			"as far as ClusterException d delegates them, in the namespaces of Tenant iris; mandatory policies hold"},
		"home alone": {"namespaces: [iris]", "Namespace", []verify.Namespace{"iris"},
			"delegates them, in iris; nothing is delegated to the other namespaces of Tenant iris (1), " +
				"so it does not count there: ask a cluster admin to name the Tenant in delegate.tenants; mandatory policies hold"},
		"a tenant namespace alone": {"namespaces: [iris-web]", "Namespace", nil, "it allows nothing"},
		"home and a tenant namespace": {"namespaces: [iris, iris-web, rose, gone]", "Namespace", []verify.Namespace{"iris", "iris-web"},
			"delegates them, in iris, iris-web; mandatory policies hold"},
		"the Tenant, home decides":    {"tenants: [iris]", "Tenant", []verify.Namespace{"iris", "iris-web"}, "in the namespaces of Tenant iris"},
		"the Tenant, cluster decides": {"tenants: [iris]", "Cluster", nil, "leaves decisions to the cluster"},
		"another Tenant":              {"tenants: [rose]", "Namespace", nil, "it allows nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := written.Compiled(
				aged(written.Objects(t, written.Namespace("iris", "1"), written.Namespace("iris-web", "2"), written.Namespace("rose", "3"),
					written.Object("ClusterVerificationPolicy", "", "p", denies),
					written.Object("Tenant", "", "iris", "homeNamespace: iris\nnamespaces: [iris-web]\nverification: {policyLevel: "+row.decides+"}"),
					written.Object("Tenant", "", "rose", "homeNamespace: rose"),
					written.Object("Exception", "iris", "x", terms(time.Hour, "images: ['**']")),
					written.Object("ClusterException", "", "d", terms(time.Hour, "delegate: {images: ['**'], "+row.delegate+"}")))))
			var in []verify.Namespace
			for _, namespace := range []verify.Namespace{"iris", "iris-web", "rose"} {
				if by(t, s, namespace, "r.example.com/app:1", soon) != "" {
					in = append(in, namespace)
				}
			}
			require.Equal(t, row.in, in)
			require.Contains(t, written.ReportOn(t, s, "Exception iris/x").Effective.Message, row.says)
		})
	}
}

func TestABrokenExceptionAllowsNothingAndDisturbsNothing(t *testing.T) {
	fixed := []string{written.Namespace("shop", "1"),
		written.Object("VerificationPolicy", "shop", "p", "rules: [{images: ['good.example.com/**'], action: Allow}]"),
		written.Object("ClusterException", "", "d", terms(1000*time.Hour, "delegate: {images: ['**'], namespaces: [shop]}"))}
	was, _ := written.Compiled(aged(written.Objects(t, fixed...)))
	const refused = "this version's CRD refuses it"
	for name, row := range map[string]struct{ kind, spec, says string }{
		"an end that Go does not read": {"ClusterException", "until: '2026-12-31t18:00:00z'\nreason: r\n" + inShop, `spec.until is "2026-12-31t18:00:00z"`},
		"an offset out of range":       {"ClusterException", "until: '2026-11-22T13:00:00+99:99'\nreason: r\n" + inShop, "it must be a time"},
		"a duration out of range":      {"ClusterException", terms(time.Hour, "delegate: {images: ['**'], namespaces: [shop], maxDuration: 99999999h}"), refused},
		"no end":                       {"ClusterException", "reason: r\nimages: [r.example.com/app]\nnamespaces: [shop]", `spec.until is ""`},
		"no namespace":                 {"ClusterException", terms(time.Hour, "images: [r.example.com/app]"), refused},
		"every and one":                {"ClusterException", terms(time.Hour, "images: [r.example.com/app]\nnamespaces: ['*', shop]"), refused},
		"a bad namespace":              {"ClusterException", terms(time.Hour, "images: [r.example.com/app]\nnamespaces: [shop, 'x y']"), refused},
		"neither":                      {"ClusterException", terms(time.Hour, "namespaces: [shop]"), refused},
		"both":                         {"ClusterException", terms(time.Hour, inShop+"\n"+delegates), refused},
		"a bad pattern":                {"ClusterException", terms(time.Hour, "images: [r.example.com/app, app]\nnamespaces: [shop]"), "spec.images[1]: "},
		"a tag and a digest": {"ClusterException",
			terms(time.Hour, "images: ['r.example.com/app:1@sha256:"+strings.Repeat("0", 64)+"']\nnamespaces: [shop]"), "without a tag"},
		"another digest": {"ClusterException",
			terms(time.Hour, "images: ['r.example.com/app@sha512:"+strings.Repeat("0", 128)+"']\nnamespaces: [shop]"), "only sha256"},
		"too many images": {"ClusterException", terms(time.Hour, "images: ["+strings.Repeat("r.example.com/app, ", 65)+"]\nnamespaces: [shop]"),
			refused},
		"longer than 90 days": {"ClusterException", terms(90*24*time.Hour+time.Second, inShop),
			"--max-exception lets an exception of 2026-11-22T12:00:00Z last until 2027-02-20T12:00:00Z"},
		"delegates too long": {"ClusterException", terms(365*24*time.Hour+time.Second, delegates),
			"spec.until is 2027-11-22T12:00:01Z, and --max-delegation lets a delegation of 2026-11-22T12:00:00Z last until 2027-11-22T12:00:00Z (8760h0m0s): write " +
				"that or an earlier time"},
		"delegates to nobody": {"ClusterException", terms(time.Hour, "delegate: {images: ['**']}"), refused},
		"delegates no images": {"ClusterException", terms(time.Hour, "delegate: {namespaces: [shop]}"), refused},
		"delegates for nothing": {"ClusterException", terms(time.Hour, "delegate: {images: ['**'], namespaces: [shop], maxDuration: 0s}"),
			refused},
		"a team's that delegates":                    {"Exception", terms(time.Hour, delegates), refused},
		"a team's that overrides mandatory policies": {"Exception", terms(time.Hour, "images: [r.example.com/app]\noverrideMandatory: true"), refused},
		"a team's for other namespaces":              {"Exception", terms(time.Hour, "images: [r.example.com/app]\nnamespaces: ['*']"), refused},
		"a team's, no end":                           {"Exception", "reason: r\nimages: [r.example.com/app]", `spec.until is ""`},
		"a team's, too long":                         {"Exception", terms(91*24*time.Hour, "images: [r.example.com/app]"), "--max-exception lets an exception of"},
	} {
		t.Run(name, func(t *testing.T) {
			where := ""
			if row.kind == "Exception" {
				where = "shop"
			}
			objects := aged(written.Objects(t, append(fixed, written.Object(row.kind, where, "x", row.spec))...))
			if row.says == refused {
				objects = written.AsRead(t, objects)
			}
			s, problems := written.Compiled(objects)
			require.Len(t, problems, 1)
			require.Contains(t, problems[0].Message, row.says)
			require.Equal(t, policy.ReasonNotInForce, written.ReportOn(t, s, policy.ObjectRef{Kind: row.kind, Namespace: where, Name: "x"}.String()).Effective.Reason)
			require.Empty(t, by(t, s, "shop", "r.example.com/app:1", soon))
			require.Equal(t, policy.Allowed, written.Verdict(t, s, "shop", "good.example.com/app").Outcome())
			require.Equal(t, was.For("shop").Generation, s.For("shop").Generation)
		})
	}
	made := aged(written.Objects(t, append(fixed, written.Object("ClusterException", "", "x", terms(time.Hour, inShop)))...))
	for _, object := range made.Resources {
		object.SetCreationTimestamp(metav1.Time{})
	}
	_, problems := written.Compiled(made)
	require.Contains(t, problems[0].Message, "metadata.creationTimestamp is missing")
}

func TestExceptionsChangeNoGenerationSoNothingOfThemIsCached(t *testing.T) {
	fixed := []string{written.Namespace("shop", "1"), written.Object("ClusterVerificationPolicy", "", "mandatory", "scope: Mandatory\n"+denies),
		written.Object("VerificationPolicy", "shop", "p", denies)}
	was, _ := written.Compiled(written.Objects(t, fixed...))
	s, _ := written.Compiled(aged(written.Objects(t, append(fixed, written.Object("ClusterException", "", "x", terms(time.Hour, inShop)))...)))
	require.Equal(t, was.For("shop").Generation, s.For("shop").Generation)
	require.NotEqual(t, s.For("shop").Generation, s.For("shop").MandatoryGeneration, "mandatory policies alone are another question")
	require.Len(t, slices.DeleteFunc(slices.Clone(s.For("shop").Tiers), func(l verify.Tier) bool { return !l.Mandatory }), 1)
	require.Empty(t, by(t, s, "shop", "r.example.com/app:1", soon), "the mandatory policy denies")
	strong, _ := written.Compiled(
		aged(written.Objects(t, append(fixed, written.Object("ClusterException", "", "x", terms(time.Hour, inShop+"\noverrideMandatory: true")))...)))
	require.Equal(t, "ClusterException x", by(t, strong, "shop", "r.example.com/app:1", soon))
}

func TestAChangeOfAClusterExceptionIsLiveInItsNamespaces(t *testing.T) {
	fixed := aged(written.Objects(t, written.Namespace("shop", "1"), written.Object("VerificationPolicy", "shop", "p", denies),
		written.Object("Exception", "shop", "x", terms(time.Hour, "images: ['**']"))))
	was, _ := written.Compiled(fixed)
	for name, document := range map[string]string{"an exception": written.Object("ClusterException", "", "c", terms(time.Hour, inShop)),
		"a delegation": written.Object("ClusterException", "", "c", terms(time.Hour, delegates))} {
		next, _ := was.Next(resolve.Group(aged(written.Objects(t, document))).Only(verify.Cluster), nil)
		require.NotEmpty(t, by(t, next, "shop", "r.example.com/app:1", soon), name)
		back, _ := next.Next(resolve.Group(resource.Objects{}).Only(verify.Cluster), nil)
		require.Empty(t, by(t, back, "shop", "r.example.com/app:1", soon), name)
	}
}

func TestADelegationThatWouldLastTooLongDelegatesNothing(t *testing.T) {
	o := aged(written.Objects(t, written.Namespace("shop", "1"), written.Object("VerificationPolicy", "shop", "p", denies),
		written.Object("ClusterException", "", "d", terms(2*time.Hour, delegates)),
		written.Object("Exception", "shop", "x", terms(time.Hour, "images: [r.example.com/app]"))))
	for most, want := range map[time.Duration]bool{0: true, 2 * time.Hour: true, time.Hour: false} {
		s := limited(o, resource.ExceptionLimits{Delegation: most})
		require.Equal(t, want, by(t, s, "shop", "r.example.com/app:1", soon) != "", most)
		report := written.ReportOn(t, s, "ClusterException d")
		require.Equal(t, want, report.Ready.True, report.Ready.Message)
		require.Equal(t, want, report.Ready.Reason != policy.ReasonTooLong, report.Ready.Message)
	}
}

func TestTooManyExceptionsAreNotInForceAndDenyNothing(t *testing.T) {
	documents := []string{written.Namespace("shop", "1"),
		written.Object("VerificationPolicy", "shop", "p", "defaultAction: Allow\nrules: [{images: ['bad.example.com/**'], action: Deny}]"),
		written.Object("ClusterException", "", "d", terms(time.Hour, "delegate: {images: ['**'], namespaces: [shop]}"))}
	for i := range 400 {
		documents = append(documents, written.Object("Exception", "shop", fmt.Sprintf("x%03d", i), terms(time.Hour, fmt.Sprintf("images: [bad.example.com/a%d]", i))))
	}
	s, problems := written.Compiled(aged(written.Objects(t, documents...)))
	require.Len(t, problems, 400-64)
	require.Equal(t, policy.ReasonLimitExceeded, problems[0].Reason)
	require.Len(t, s.For("shop").Exceptions, 64)
	require.Equal(t, "Exception shop/x063", by(t, s, "shop", "bad.example.com/a63:1", soon))
	require.Empty(t, by(t, s, "shop", "bad.example.com/a64:1", soon))
	require.Equal(t, policy.Allowed, written.Verdict(t, s, "shop", "good.example.com/app").Outcome())
	slow := []string{written.Namespace("shop", "1"), documents[1], documents[2],
		written.Object("Exception", "shop", "a", terms(time.Hour, "images: ["+strings.Repeat("'bad.example.com/**/a*b*c*d*e*f*g*/x', ", 64)+"]"))}
	_, problems = written.Compiled(aged(written.Objects(t, slow...)))
	require.Equal(t, policy.ReasonLimitExceeded, problems[0].Reason, "comparing it takes too long")
}

func TestBreakGlassIsReadFromAnnotationsThatAreSoundAndNotTooLong(t *testing.T) {
	annotated := func(annotations string) []string {
		return []string{"kind: Namespace\nmetadata: {name: shop, uid: '1', annotations: {" + annotations + "}}", written.Namespace("other", "2"),
			written.Object("ClusterVerificationPolicy", "", "p", denies)}
	}
	const from, until, why = "landwaiter.dev/break-glass-from: '2026-11-22T12:00:00Z'", "landwaiter.dev/break-glass-until: '2026-11-22T14:00:00+01:00'",
		"landwaiter.dev/break-glass-reason: outage"
	for name, row := range map[string]struct {
		annotations string
		limit       time.Duration
		allowed     bool
		says        string
	}{
		"sound":         {from + ", " + until + ", " + why, time.Hour, true, ""},
		"switched off":  {from + ", " + until + ", " + why, 0, false, "serve runs without --break-glass"},
		"too long":      {from + ", " + until + ", " + why, time.Hour - 1, false, "it lasts 1h0m0s, and --break-glass is"},
		"no reason":     {from + ", " + until, time.Hour, false, "annotation landwaiter.dev/break-glass-reason is missing"},
		"no beginning":  {until + ", " + why, time.Hour, false, "annotation landwaiter.dev/break-glass-from is missing"},
		"no end":        {from + ", " + why, time.Hour, false, "annotation landwaiter.dev/break-glass-until is missing"},
		"malformed":     {from + ", landwaiter.dev/break-glass-until: tomorrow, " + why, time.Hour, false, `is "tomorrow", it must be a time`},
		"it ends first": {from + ", landwaiter.dev/break-glass-until: '2026-11-22T12:00:00Z', " + why, time.Hour, false, "before it begins"},
		"mandatory policies malformed": {from + ", " + until + ", " + why + ", landwaiter.dev/break-glass-override-mandatory: yes please", time.Hour, false,
			"it must be true or false"},
		"a reason alone": {why, time.Hour, false, "is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			s, problems := resolve.Empty(resolve.Outside{Registry: func(a registry.Access) verify.Registry { return &written.NoRegistry{Access: a} },
				Exceptions: resource.ExceptionLimits{BreakGlass: row.limit}}).Next(resolve.Group(written.Objects(t, annotated(row.annotations)...)), nil)
			require.Equal(t, row.allowed, by(t, s, "shop", "r.example.com/app:1", soon) == "Namespace shop")
			require.Empty(t, by(t, s, "other", "r.example.com/app:1", soon))
			if row.says == "" {
				require.Empty(t, problems)
				require.Empty(t, by(t, s, "shop", "r.example.com/app:1", born.Add(-1)))
				require.Empty(t, by(t, s, "shop", "r.example.com/app:1", born.Add(time.Hour)))
				return
			}
			require.Len(t, problems, 1)
			require.Equal(t, policy.ObjectRef{Kind: "Namespace", Name: "shop"}, problems[0].Source)
			require.Contains(t, problems[0].Message, "break-glass is not in force: ")
			require.Contains(t, problems[0].Message, row.says)
		})
	}
	mandatory := append(annotated(from+", "+until+", "+why), written.Object("ClusterVerificationPolicy", "", "mandatory", "scope: Mandatory\n"+denies))
	require.Empty(t, by(t, limited(written.Objects(t, mandatory...), resource.ExceptionLimits{BreakGlass: time.Hour}), "shop", "r.example.com/app:1", soon))
}
