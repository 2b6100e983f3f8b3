package resolve_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

var errUnreadable = errors.New("line 3: unknown field spec.kyes")

// shape is what a configuration's tiers are, in short.
func shape(config *verify.Config) []string {
	var list []string
	for _, l := range config.Tiers {
		switch {
		case l.Warns:
			list = append(list, "warns "+l.Source.Name)
		case reflect.DeepEqual(l.Judge, verify.OnlyWarnings()):
			list = append(list, "only warnings")
		case reflect.DeepEqual(l.Judge, verify.ByVerifiers()):
			list = append(list, "every verifier")
		case !l.Judge.Usable():
			list = append(list, "broken "+l.Source.Name)
		default:
			list = append(list, "decides "+l.Source.Name)
		}
	}
	return list
}

func TestPoliciesThatWarnOnlyAddWarnings(t *testing.T) {
	const spec = "rules: [{images: [\"**\"], require: [{types: [Cosign]}]}]"
	own := func(name, spec string) string { return written.Object("VerificationPolicy", "team-a", name, spec) }
	cluster := func(name, spec string) string { return written.Object("ClusterVerificationPolicy", "", name, spec) }
	for name, c := range map[string]struct {
		documents []string
		want      []string
	}{
		"a stricter one that sorts first":      {[]string{own("a", written.Warn+spec), own("b", spec)}, []string{"decides b", "warns a"}},
		"one that sorts last":                  {[]string{own("b", written.Warn+spec), own("a", spec)}, []string{"decides a", "warns b"}},
		"alone in its namespace":               {[]string{own("a", written.Warn+spec)}, []string{"only warnings", "warns a"}},
		"beside the cluster's policy":          {[]string{own("a", written.Warn+spec), cluster("c", spec)}, []string{"decides c", "warns a"}},
		"the cluster's beside the namespace's": {[]string{own("a", spec), cluster("c", written.Warn+spec)}, []string{"decides a"}},
		"the cluster's alone":                  {[]string{cluster("c", written.Warn+spec)}, []string{"only warnings", "warns c"}},
		"in both": {[]string{own("a", written.Warn+spec), cluster("c", written.Warn+spec)},
			[]string{"only warnings", "warns a", "warns c"}},
		"a mandatory policy": {[]string{own("a", spec), cluster("f", "scope: Mandatory\n"+written.Warn+spec)},
			[]string{"decides a", "warns f"}},
		"a mandatory policy alone": {[]string{cluster("f", "scope: Mandatory\n"+written.Warn+spec)}, []string{"every verifier", "warns f"}},
		"a mandatory policy beside a mandatory policy": {[]string{cluster("e", "scope: Mandatory\n"+written.Warn+spec), cluster("f", "scope: Mandatory\n"+spec)},
			[]string{"every verifier", "decides f", "warns e"}},
		"broken beside one that decides": {[]string{own("a", written.Warn+"rules: [{images: []}]"), own("b", spec)}, []string{"decides b", "warns a"}},
		"broken alone":                   {[]string{own("a", written.Warn+"rules: [{images: []}]")}, []string{"broken a", "warns a"}},
		"broken beside another that only warns": {[]string{own("a", written.Warn+spec), own("b", written.Warn+"rules: [{images: []}]")},
			[]string{"broken b", "warns a", "warns b"}},
		"none at all": {nil, []string{"every verifier"}},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot, _ := written.Compiled(written.Objects(t, append(c.documents, written.Namespace("team-a", "1"))...))
			require.Equal(t, c.want, shape(snapshot.For("team-a")))
		})
	}
}

func TestAPolicyWhoseEnforcementCannotBeReadDecides(t *testing.T) {
	o := written.Objects(t, written.Object("VerificationPolicy", "team-a", "a", written.Warn))
	o.Broken = []resource.Broken{{Source: policy.ObjectRef{Kind: "VerificationPolicy", Namespace: "team-a", Name: "b"}, Err: errUnreadable}}
	snapshot, _ := written.Compiled(o)
	require.Equal(t, []string{"broken b", "warns a"}, shape(snapshot.For("team-a")))
}

func TestRulesAllowAndDeny(t *testing.T) {
	snapshot, problems := written.Compiled(written.Objects(t, written.Object("VerificationPolicy", "team-a", "p",
		"rules: [{images: [\"registry.k8s.io/**\"], action: Allow}, {images: [\"evil.example.com/**\"], action: Deny}]")))
	require.Empty(t, problems)
	rules := snapshot.For("team-a").Tiers[0].Judge.Rules()
	require.Equal(t, verify.Allow, rules[0].Action)
	require.Equal(t, verify.Deny, rules[1].Action)
}
