package verify_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// noon is the moment of these tests, and dusk when their exceptions end.
var (
	noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	dusk = noon.Add(6 * time.Hour)
)

// clock is a time that tests move.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// excepted is a list of images, by patterns, and by digest with an @.
func imageList(t testing.TB, texts ...string) *verify.ImageList {
	t.Helper()
	list := &verify.ImageList{}
	for _, text := range texts {
		if pinned, err := image.Parse(text); err == nil && pinned.Digest != "" {
			list.Pinned = append(list.Pinned, pinned)
			continue
		}
		pattern, err := image.ParsePattern(text)
		require.NoError(t, err)
		list.Patterns = append(list.Patterns, pattern)
	}
	return list
}

// exception lets images in until dusk.
func exception(t testing.TB, name string, texts ...string) verify.Exception {
	t.Helper()
	return verify.ByCluster(verify.Exception{Source: policy.ObjectRef{Kind: "ClusterException", Name: name}, Why: "OPS-1", Created: noon, Until: dusk,
		Images: imageList(t, texts...)})
}

// grant delegates images until a time, to exceptions that last until dusk.
func grant(t testing.TB, until time.Time, texts ...string) verify.Grant {
	t.Helper()
	return verify.Grant{Within: imageList(t, texts...), Until: until, Most: dusk.Sub(noon)}
}

// denying is a tier that denies every image by a rule.
func denying(t testing.TB, kind, name string, patterns ...image.Pattern) verify.Tier {
	t.Helper()
	source := policy.ObjectRef{Kind: kind, Name: name}
	if len(patterns) == 0 {
		pattern, err := image.ParsePattern("**")
		require.NoError(t, err)
		patterns = []image.Pattern{pattern}
	}
	return verify.Tier{Source: source, Judge: verify.ByRules([]verify.Rule{{Source: source, Images: patterns, Action: verify.Deny}}, verify.DefaultAllow)}
}

// withMandatory adds mandatory policies to a configuration, as compile does.
func withMandatory(c *verify.Config, mandatory ...verify.Tier) *verify.Config {
	for _, l := range mandatory {
		l.Mandatory = true
		c.Tiers = append(c.Tiers, l)
	}
	return c
}

// at is an Engine whose clock tests move.
func at(c verify.Cache, clock *clock) *verify.Engine {
	return verify.NewEngine(c, clock.now, verify.Options{})
}

func TestAnExceptionAllowsItsImagesUntilItEndsAndNoOther(t *testing.T) {
	r, clock := newRegistry(), &clock{noon}
	r.tags["1"] = appDigest
	c := config(tier(t, r, verify.Requirement{AnyOf: []string{"release"}, AtLeast: 1}, verifier(t, "release", "dev")))
	c.Exceptions = []verify.Exception{exception(t, "importer", "r.example.com/legacy/**"), exception(t, "one-digest", "r.example.com/app@"+appDigest.String())}
	e := at(newCache(), clock)
	for name, want := range map[string]string{
		"r.example.com/legacy/importer:1":                          "importer",
		"r.example.com/legacy/a/b@" + appDigest.String():           "importer",
		"r.example.com/app@" + appDigest.String():                  "one-digest",
		"r.example.com/app:1@" + appDigest.String():                "one-digest",
		"r.example.com/app:1":                                      "", // what a tag stands for, a tenant's mirror may say
		"r.example.com/other@" + appDigest.String():                "",
		"r.example.com/app@" + digest.FromString("other").String(): "",
		"r.example.com/legacy:1":                                   "",
		"other.example.com/legacy/importer:1":                      "",
	} {
		got := e.Verify(t.Context(), c, ref(t, name))
		require.Equal(t, want, got.Exception.Name, name)
		require.Equal(t, want != "", got.Verdict.Outcome() == policy.Allowed, name)
		recalled, ok := e.Recall(c, ref(t, name))
		require.True(t, ok, name)
		require.Equal(t, got.Verdict, recalled.Verdict, name)
		if want == "" {
			require.True(t, got.ExceptionEnds.IsZero())
			continue
		}
		require.Equal(t, dusk, got.ExceptionEnds)
		require.Equal(t, "strict", got.Verdict.Policy.Name, "the policy that denies")
		require.Contains(t, got.Verdict.Reason, "ClusterException "+want+" allows it until 2026-11-22T18:00:00Z (OPS-1) although: ")
		require.Contains(t, got.Verdict.Warning, "; after that: ")
		require.True(t, got.Verdict.Unverified)
	}
	require.Contains(t, e.Verify(t.Context(), c, ref(t, "r.example.com/app:1")).Verdict.Text(),
		"name the image by its digest: r.example.com/app@"+appDigest.String())
}

func TestACachedVerdictNeverOutlivesTheEndOfAnException(t *testing.T) {
	r, clock, kept := newRegistry(), &clock{noon}, newCache()
	r.tags["1"] = appDigest
	c := withMandatory(config(tier(t, r, verify.Requirement{AnyOf: []string{"release"}, AtLeast: 1}, verifier(t, "release", "dev"))),
		tier(t, r, verify.Requirement{AnyOf: []string{"base"}, AtLeast: 1}, verifier(t, "base", "platform")))
	r.manifest(t, false, "platform:"+appDigest.String())
	c.Exceptions = []verify.Exception{exception(t, "x", "**")}
	e, app := at(kept, clock), ref(t, "r.example.com/app:1")
	ask := map[string]func() policy.Verdict{
		"verify":  func() policy.Verdict { return e.Verify(t.Context(), c, app).Verdict },
		"warm":    func() policy.Verdict { return e.Warm(t.Context(), c, app).Verdict },
		"refresh": func() policy.Verdict { return e.Refresh(t.Context(), c, app).Verdict },
		"recall": func() policy.Verdict {
			result, ok := e.Recall(c, app)
			require.True(t, ok)
			return result.Verdict
		},
	}
	require.Equal(t, policy.Allowed, ask["verify"]().Outcome())
	for _, moment := range []struct {
		at   time.Time
		want policy.Outcome
	}{{dusk.Add(-time.Nanosecond), policy.Allowed}, {dusk, policy.Denied}, {dusk.Add(time.Hour), policy.Denied}, {noon, policy.Allowed}} {
		clock.at = moment.at
		for name, verdict := range ask {
			require.Equal(t, moment.want, verdict().Outcome(), "%s at %s", name, moment.at)
		}
	}
	for key, entry := range kept.entries {
		require.NotContains(t, entry.Verdict.Reason, "ClusterException", "%v: nothing of an exception is cached", key)
	}
}

func TestAMandatoryPolicyHoldsAgainstExceptionsThatDoNotOverrideIt(t *testing.T) {
	unsigned := digest.FromString("unsigned")
	r := newRegistry()
	r.tags["signed"], r.tags["unsigned"] = appDigest, unsigned
	r.manifest(t, false, "platform:"+appDigest.String())
	asks := func() *verify.Config {
		return withMandatory(config(denying(t, "VerificationPolicy", "own")),
			tier(t, r, verify.Requirement{AnyOf: []string{"base"}, AtLeast: 1}, verifier(t, "base", "platform")))
	}
	mandatory, other := exception(t, "mandatory", "r.example.com/elsewhere/**"), exception(t, "other", "r.example.com/app")
	mandatory.OverrideMandatory = true
	strong := exception(t, "strong", "r.example.com/app")
	strong.OverrideMandatory = true
	for name, row := range map[string]struct {
		exceptions []verify.Exception
		tag        string
		want       policy.Outcome
	}{
		"what the mandatory policy allows": {[]verify.Exception{other}, "signed", policy.Allowed},
		"what it denies":                   {[]verify.Exception{other}, "unsigned", policy.Denied},
		"one that matches, and one that passes mandatory policies (combined)": {[]verify.Exception{other, mandatory}, "unsigned", policy.Denied},
		"the same in the other order":                                         {[]verify.Exception{mandatory, other}, "unsigned", policy.Denied},
		"one that matches and passes mandatory policies":                      {[]verify.Exception{strong}, "unsigned", policy.Allowed},
		"one of several is enough":                                            {[]verify.Exception{other, mandatory, strong}, "unsigned", policy.Allowed},
		"none":                                                                {nil, "signed", policy.Denied},
	} {
		t.Run(name, func(t *testing.T) {
			c := asks()
			c.Exceptions = row.exceptions
			e := at(newCache(), &clock{noon})
			got := e.Verify(t.Context(), c, ref(t, "r.example.com/app:"+row.tag))
			require.Equal(t, row.want, got.Verdict.Outcome(), got.Verdict.Reason)
			if row.want == policy.Denied && len(row.exceptions) > 0 {
				require.True(t, strings.HasPrefix(got.Verdict.Reason, "mandatory VerificationPolicy team-a/strict requires"), got.Verdict.Reason)
				require.True(t,
					strings.HasSuffix(got.Verdict.Reason, "; ClusterException other is for this image, but does not override mandatory policies: it needs overrideMandatory"),
					got.Verdict.Reason)
			}
		})
	}
}

func TestWithoutATagOnlyRulesAndExceptionsDecide(t *testing.T) {
	r := newRegistry() // it has no tags
	required := tier(t, r, verify.Requirement{AnyOf: []string{"base"}, AtLeast: 1}, verifier(t, "base", "platform"))
	strong := exception(t, "strong", "r.example.com/app")
	strong.OverrideMandatory = true
	weak := exception(t, "weak", "r.example.com/app")
	for name, row := range map[string]struct {
		config     *verify.Config
		exceptions []verify.Exception
		want       policy.Outcome
		says       string
	}{
		"no exception": {config(required), nil, policy.Denied,
			"VerificationPolicy team-a/strict requires evidence, and no tag or digest says whose"},
		"an exception": {config(required), []verify.Exception{weak}, policy.Allowed, "ClusterException weak allows it until"},
		"a mandatory policy holds": {withMandatory(config(denying(t, "VerificationPolicy", "own")), required), []verify.Exception{weak}, policy.Denied,
			"ClusterException weak is for this image, but does not override mandatory policies: it needs overrideMandatory"},
		"a mandatory policy is overridden": {withMandatory(config(denying(t, "VerificationPolicy", "own")), required), []verify.Exception{strong}, policy.Allowed,
			"ClusterException strong allows it until"},
		"a mandatory policy allows it": {withMandatory(config(required), verify.Tier{Judge: verify.ByRules(nil, verify.DefaultAllow)}), []verify.Exception{weak},
			policy.Allowed, "ClusterException weak allows it until"},
		"a rule denies it without evidence": {config(denying(t, "VerificationPolicy", "own")), nil, policy.Denied, "VerificationPolicy own"},
		"policies allow it": {config(verify.Tier{Judge: verify.ByRules(nil, verify.DefaultAllow)}), []verify.Exception{weak}, policy.Allowed,
			"allowed without verification"},
	} {
		t.Run(name, func(t *testing.T) {
			row.config.Exceptions = row.exceptions
			got := at(newCache(), &clock{noon}).Unproven(t.Context(), row.config, ref(t, "r.example.com/app"))
			require.Equal(t, row.want, got.Verdict.Outcome(), got.Verdict.Reason)
			require.Contains(t, got.Verdict.Reason, row.says)
			require.NotContains(t, got.Verdict.Reason, "latest")
		})
	}
}

func TestWhatAMandatoryPolicyCannotDecideStaysUndecidedUnderAnException(t *testing.T) {
	r := newRegistry()
	r.list = func(context.Context) error { return errors.New("503") }
	c := withMandatory(config(denying(t, "VerificationPolicy", "own")),
		tier(t, r, verify.Requirement{AnyOf: []string{"base"}, AtLeast: 1}, verifier(t, "base", "platform")))
	c.Exceptions = []verify.Exception{exception(t, "x", "**")}
	e, app := at(newCache(), &clock{noon}), ref(t, "r.example.com/app@"+appDigest.String())
	_, known := e.Recall(c, app)
	require.False(t, known, "the mandatory policy has to be asked")
	require.Equal(t, policy.Undecided, e.Verify(t.Context(), c, app).Verdict.Outcome())
}

func TestAnExceptionDecidesNothingThatIsUndecidedOrAllowed(t *testing.T) {
	r := newRegistry()
	c := config(tier(t, r, verify.Requirement{AnyOf: []string{"release"}, AtLeast: 1}, verifier(t, "release", "dev")))
	c.Exceptions = []verify.Exception{exception(t, "x", "**")}
	e, app := at(newCache(), &clock{noon}), ref(t, "r.example.com/app@"+appDigest.String())
	r.list = func(context.Context) error { return errors.New("503") }
	require.Equal(t, policy.Undecided, e.Verify(t.Context(), c, app).Verdict.Outcome())
	r.list = nil
	r.manifest(t, false, "dev:"+appDigest.String())
	got := e.Verify(t.Context(), c, app)
	require.Equal(t, policy.Allowed, got.Verdict.Outcome())
	require.Zero(t, got.Exception, "the policy allows it")
	require.Empty(t, got.Verdict.Warning)
}

func TestADelegatedExceptionIsForWhatBothMatch(t *testing.T) {
	c := config(denying(t, "VerificationPolicy", "own"))
	wide := exception(t, "wide", "**")
	wide = verify.ByDelegation(wide, &verify.Grants{grant(t, dusk, "r.example.com/team-a/**")})
	narrow := exception(t, "narrow", "other.example.com/**")
	narrow = verify.ByDelegation(narrow, &verify.Grants{grant(t, dusk, "r.example.com/**")})
	nothing := exception(t, "nothing", "r.example.com/b")
	nothing = verify.ByDelegation(nothing, &verify.Grants{grant(t, dusk), {Until: dusk, Most: time.Hour * 24}})
	nobody := exception(t, "nobody", "r.example.com/b")
	nobody = verify.ByDelegation(nobody, &verify.Grants{})
	c.Exceptions = []verify.Exception{nothing, nobody, narrow, wide}
	e := at(newCache(), &clock{noon})
	for name, want := range map[string]string{"r.example.com/team-a/x:1": "wide", "r.example.com/b:1": "", "other.example.com/a:1": ""} {
		require.Equal(t, want, e.Verify(t.Context(), c, ref(t, name)).Exception.Name, name)
	}
}

func TestAnExceptionEndsWithTheGrantThatLetsItCount(t *testing.T) {
	c := config(denying(t, "VerificationPolicy", "own"))
	soon := noon.Add(time.Hour)
	short := grant(t, dusk.Add(time.Hour), "**")
	short.Most -= time.Nanosecond
	x := exception(t, "x", "**")
	x = verify.ByDelegation(x, &verify.Grants{short, grant(t, soon, "r.example.com/a"), grant(t, dusk.Add(time.Hour), "r.example.com/b")})
	old := x
	old.Created = time.Time{}
	clock := &clock{noon}
	e := at(newCache(), clock)
	revisions := map[string]bool{}
	for _, row := range []struct {
		at    time.Time
		x     verify.Exception
		image string
		ends  time.Time
	}{
		{noon, x, "r.example.com/a:1", soon}, {noon, x, "r.example.com/b:1", dusk}, {noon, x, "r.example.com/c:1", time.Time{}},
		{soon, x, "r.example.com/a:1", time.Time{}}, {soon, x, "r.example.com/b:1", dusk}, {dusk, x, "r.example.com/b:1", time.Time{}},
		{noon, old, "r.example.com/b:1", time.Time{}}, // how long it lasts is not known
	} {
		clock.at, c.Exceptions = row.at, []verify.Exception{row.x}
		got := e.Verify(t.Context(), c, ref(t, row.image))
		require.Equal(t, row.ends, got.ExceptionEnds, "%s at %s", row.image, row.at)
		require.Equal(t, !row.ends.IsZero(), got.Verdict.Outcome() == policy.Allowed, "%s at %s", row.image, row.at)
		recalled, ok := e.Recall(c, ref(t, row.image))
		require.True(t, ok)
		require.Equal(t, got.Verdict, recalled.Verdict)
		revisions[e.Revision(c)] = true
	}
	require.Len(t, revisions, 3, "at noon, after the first grant, and without an exception in force")
}

func TestBreakGlassAllowsEveryImageOfItsTimeAndMandatoryPoliciesHoldUnlessItSaysSo(t *testing.T) {
	down := newRegistry()
	down.list = func(context.Context) error { return errors.New("503") }
	undecided := tier(t, down, verify.Requirement{AnyOf: []string{"release"}, AtLeast: 1}, verifier(t, "release", "dev"))
	mandatory := denying(t, "ClusterVerificationPolicy", "mandatory")
	open := func(mandatory bool) *verify.Exception {
		return breakGlass(mandatory)
	}
	app := ref(t, "r.example.com/app@"+appDigest.String())
	for name, row := range map[string]struct {
		config     *verify.Config
		breakGlass *verify.Exception
		at         time.Time
		want       policy.Outcome
	}{
		"denied":                    {config(denying(t, "VerificationPolicy", "own")), open(false), noon, policy.Allowed},
		"undecided":                 {config(undecided), open(false), noon, policy.Allowed},
		"before it begins":          {config(undecided), open(false), noon.Add(-1), policy.Undecided},
		"when it ends":              {config(undecided), open(false), dusk, policy.Undecided},
		"a mandatory policy denies": {withMandatory(config(undecided), mandatory), open(false), noon, policy.Denied},
		"a mandatory policy denies, mandatory policies": {withMandatory(config(undecided), mandatory), open(true), noon, policy.Allowed},
		"a mandatory policy cannot decide": {withMandatory(config(denying(t, "VerificationPolicy", "own")), undecided), open(false), noon,
			policy.Undecided},
		"it cannot decide, mandatory policies": {withMandatory(config(denying(t, "VerificationPolicy", "own")), undecided), open(true), noon,
			policy.Allowed},
		"without it":       {config(undecided), nil, noon, policy.Undecided},
		"no policy loaded": {&verify.Config{Namespace: "team-a"}, nil, noon, policy.Denied},
	} {
		t.Run(name, func(t *testing.T) {
			row.config.BreakGlass = row.breakGlass
			got := at(newCache(), &clock{row.at}).Verify(t.Context(), row.config, app)
			require.Equal(t, row.want, got.Verdict.Outcome(), got.Verdict.Reason)
			if got.Verdict.Outcome() == policy.Allowed {
				require.Contains(t, got.Verdict.Reason, "break-glass of Namespace team-a allows it until 2026-11-22T18:00:00Z (outage)")
				require.Equal(t, "Namespace", got.Exception.Kind)
			}
		})
	}
}

func TestBreakGlassHelpsWhenTheTimeIsUpAlready(t *testing.T) {
	c := config(tier(t, newRegistry(), verify.Requirement{AnyOf: []string{"release"}, AtLeast: 1}, verifier(t, "release", "dev")))
	open := verify.ByCluster(verify.Exception{Source: policy.ObjectRef{Kind: "Namespace", Name: "team-a"}, Until: dusk})
	c.BreakGlass = &open
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, policy.Allowed, at(newCache(), &clock{noon}).Verify(ctx, c, ref(t, "r.example.com/app:1")).Verdict.Outcome())
}

// An exception adds the images that it alone matches, and nothing else.
func TestAnExceptionOnlyEverAddsWhatItAloneMatches(t *testing.T) {
	patterns := []string{"**", "r.example.com/**", "r.example.com/a/**", "r.example.com/a/x", "r.example.com/b", "s.example.com/*"}
	images := []string{"r.example.com/a/x:1", "r.example.com/a/y:1", "r.example.com/b:1", "s.example.com/c:1", "t.example.com/d:1",
		"r.example.com/b@" + appDigest.String()}
	rapid.Check(t, func(rt *rapid.T) {
		drawn := func(name string) *verify.ImageList {
			return imageList(t, rapid.SliceOfNDistinct(rapid.SampledFrom(patterns), 1, 3, rapid.ID[string]).Draw(rt, name)...)
		}
		granted := map[string]*verify.Grants{} // by the exceptions that need some
		made := func(i int) verify.Exception {
			hours := func(label string) time.Time {
				return noon.Add(time.Duration(rapid.IntRange(-1, 1).Draw(rt, label)) * time.Hour)
			}
			x := verify.Exception{Source: policy.ObjectRef{Kind: "Exception", Name: fmt.Sprint("x", i)}, Created: noon, Until: hours("hours"), Images: drawn("images"),
				OverrideMandatory: rapid.Bool().Draw(rt, "mandatory")}
			if rapid.Bool().Draw(rt, "delegated") {
				grants := &verify.Grants{}
				for range rapid.IntRange(0, 2).Draw(rt, "grants") {
					*grants = append(*grants,
						verify.Grant{Within: drawn("within"), Until: hours("grant"), Most: time.Duration(rapid.IntRange(0, 2).Draw(rt, "most")) * time.Hour})
				}
				granted[x.Source.Name] = grants
				return verify.ByDelegation(x, grants)
			}
			return verify.ByCluster(x)
		}
		own, mandatory := drawn("denied").Patterns, drawn("mandatory").Patterns
		with := func(exceptions ...verify.Exception) *verify.Config {
			c := withMandatory(config(denying(t, "VerificationPolicy", "own", own...)), denying(t, "ClusterVerificationPolicy", "mandatory", mandatory...))
			c.Exceptions = exceptions
			return c
		}
		var before []verify.Exception
		for i := range rapid.IntRange(0, 3).Draw(rt, "exceptions") {
			before = append(before, made(i))
		}
		added, e := made(9), at(newCache(), &clock{noon})
		place := rapid.IntRange(0, len(before)).Draw(rt, "place")
		after := slices.Insert(slices.Clone(before), place, added)
		for _, name := range images {
			asked := ref(t, name)
			outcome := func(c *verify.Config) policy.Outcome { return e.Verify(t.Context(), c, asked).Verdict.Outcome() }
			was, alone, is := outcome(with(before...)), outcome(with(added)), outcome(with(after...))
			if (is == policy.Allowed) != (was == policy.Allowed || alone == policy.Allowed) {
				rt.Fatalf("%s: %s before, %s by the new one alone, %s with both", name, was, alone, is)
			}
			for _, x := range after {
				if without := outcome(with()); without == policy.Denied && outcome(with(x)) == policy.Allowed {
					within := func(g verify.Grant) bool {
						return g.Within.Has(asked) && noon.Before(g.Until) && x.Until.Sub(noon) <= g.Most
					}
					matches := x.Images.Has(asked) && (granted[x.Source.Name] == nil || slices.ContainsFunc(*granted[x.Source.Name], within)) && noon.Before(x.Until)
					passes := x.OverrideMandatory || !slices.ContainsFunc(mandatory, func(p image.Pattern) bool { return p.Match(asked) })
					if !matches || !passes {
						rt.Fatalf("%s is allowed by %s, which matches it: %v, and passes the mandatory policy: %v", name, x.Source, matches, passes)
					}
				}
			}
		}
	})
}
