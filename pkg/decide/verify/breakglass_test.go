package verify_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// breakGlass is break-glass from noon until dusk.
func breakGlass(mandatory bool) *verify.Exception {
	made := verify.ByCluster(verify.Exception{Source: policy.ObjectRef{Kind: "Namespace", Name: "team-a"}, Why: "outage", From: noon, Until: dusk,
		OverrideMandatory: mandatory})
	return &made
}

func TestBreakGlassWaitsForNoRegistryInAnOutage(t *testing.T) {
	r, over := newRegistry(), make(chan struct{})
	t.Cleanup(func() { close(over) })
	wait := func() error { <-over; return nil }
	r.resolve = func(context.Context, image.Reference) error { return wait() }
	r.list = func(context.Context) error { return wait() }
	asks := tier(t, r, verify.Requirement{AnyOf: []string{"release"}, AtLeast: 1}, verifier(t, "release", "dev"))
	pattern, err := image.ParsePattern("other.example.com/**")
	require.NoError(t, err)
	harmless := denying(t, "ClusterVerificationPolicy", "mandatory", pattern)
	for name, row := range map[string]struct {
		config     *verify.Config
		breakGlass *verify.Exception
		at         time.Time
		known      bool
	}{
		"no mandatory policy":                        {config(asks), breakGlass(false), noon, true},
		"a mandatory policy that needs no evidence":  {withMandatory(config(asks), harmless), breakGlass(false), noon, true},
		"a mandatory policy that needs evidence":     {withMandatory(config(asks), asks), breakGlass(false), noon, false},
		"the same, and it passes mandatory policies": {withMandatory(config(asks), asks), breakGlass(true), noon, true},
		"before it begins":                           {config(asks), breakGlass(false), noon.Add(-1), false},
		"when it ends":                               {config(asks), breakGlass(false), dusk, false},
		"without it":                                 {config(asks), nil, noon, false},
	} {
		t.Run(name, func(t *testing.T) {
			row.config.BreakGlass = row.breakGlass
			e := at(newCache(), &clock{row.at})
			for i := range 200 {
				got, known := e.Recall(row.config, ref(t, fmt.Sprintf("r.example.com/app:%d", i)))
				require.Equal(t, row.known, known)
				if known {
					require.Equal(t, policy.Allowed, got.Verdict.Outcome())
					require.Equal(t, "Namespace", got.Exception.Kind)
					require.Contains(t, got.Verdict.Reason, "was not verified yet")
				}
			}
		})
	}
}

// An exception for the image may pass the mandatory policy although break-glass does not.
func TestBreakGlassDeniesNothingBeforeExceptionsAreAsked(t *testing.T) {
	r := newRegistry()
	asks := tier(t, r, verify.Requirement{AnyOf: []string{"release"}, AtLeast: 1}, verifier(t, "release", "dev"))
	c := withMandatory(config(asks), denying(t, "ClusterVerificationPolicy", "mandatory"))
	strong := exception(t, "strong", "**")
	strong.OverrideMandatory = true
	c.Exceptions, c.BreakGlass = []verify.Exception{strong}, breakGlass(false)
	e, app := at(newCache(), &clock{noon}), ref(t, "r.example.com/app@"+appDigest.String())
	if got, known := e.Recall(c, app); known {
		require.Equal(t, "strong", got.Exception.Name)
	}
	require.Equal(t, "strong", e.Verify(t.Context(), c, app).Exception.Name)
}

func TestWhatBreakGlassLetInIsVerifiedAfterwards(t *testing.T) {
	r := newRegistry()
	r.manifest(t, false, "dev:"+appDigest.String())
	c := config(tier(t, r, verify.Requirement{AnyOf: []string{"release"}, AtLeast: 1}, verifier(t, "release", "dev")))
	c.BreakGlass = breakGlass(false)
	e, app := at(newCache(), &clock{noon}), ref(t, "r.example.com/app@"+appDigest.String())
	got, known := e.Recall(c, app)
	require.True(t, known)
	require.Equal(t, "Namespace", got.Exception.Kind)
	require.Eventually(t, func() bool {
		got, known := e.Recall(c, app)
		return known && got.Verdict.Outcome() == policy.Allowed && got.Exception == (policy.ObjectRef{})
	}, 30*time.Second, time.Millisecond)
}
