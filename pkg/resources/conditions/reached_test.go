package conditions_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

// ruled is a policy with a rule for each list of images. "!" in front of a list is the action Deny.
func ruled(kind, namespace, name, fields string, rules ...string) string {
	var text strings.Builder
	for _, images := range rules {
		images, denies := strings.CutPrefix(images, "!")
		action := "Allow"
		if denies {
			action = "Deny"
		}
		fmt.Fprintf(&text, "\n- {images: ['%s'], action: %s}", strings.ReplaceAll(images, " ", "', '"), action)
	}
	return written.Object(kind, namespace, name, fields+"\nrules:"+text.String())
}

// neverReached are the findings about rules that are never reached, without what to do.
func neverReached(found []resource.Problem) []string {
	said := []string{}
	for _, p := range found {
		if p.Reason == policy.ReasonRuleNeverReached {
			message, _, _ := strings.Cut(p.Message, "; ")
			message = strings.Replace(message, ": no image reaches the rule by this pattern, because an earlier rule matches all of its images:", " <-", 1)
			said = append(said, p.Source.String()+" "+strings.Replace(message, ": no image reaches the rule, because earlier rules match all of its images:", " <-", 1))
		}
	}
	return said
}

func TestARuleThatIsNeverReachedIsFound(t *testing.T) {
	const own, clusters = "VerificationPolicy", "ClusterVerificationPolicy"
	for name, c := range map[string]struct {
		documents []string
		want      []string
	}{
		"behind every image": {[]string{ruled(own, "a", "p", "", "**", "!r.io/b/**")}, []string{"VerificationPolicy a/p spec.rules[1] <- spec.rules[0]"}},
		"behind a folder":    {[]string{ruled(own, "a", "p", "", "r.io/b/**", "!r.io/b/c")}, []string{"VerificationPolicy a/p spec.rules[1] <- spec.rules[0]"}},
		"behind several rules": {[]string{ruled(own, "a", "p", "", "r.io/b/**", "r.io/c/*", "!r.io/b/x r.io/c/x")},
			[]string{"VerificationPolicy a/p spec.rules[2] <- spec.rules[0], spec.rules[1]"}},
		"two behind one": {[]string{ruled(own, "a", "p", "", "**", "!r.io/**", "r.io/x")},
			[]string{"VerificationPolicy a/p spec.rules[1] <- spec.rules[0]", "VerificationPolicy a/p spec.rules[2] <- spec.rules[0]"}},
		"in part": {[]string{ruled(own, "a", "p", "", "r.io/b/**", "!r.io/c/x r.io/b/x")},
			[]string{"VerificationPolicy a/p spec.rules[1].images[1] <- spec.rules[0]"}},
		"in part, by another": {[]string{ruled(own, "a", "p", "", "r.io/b/**"), ruled(own, "a", "q", "", "!r.io/c/x r.io/b/x")},
			[]string{"VerificationPolicy a/q spec.rules[0].images[1] <- spec.rules[0] of VerificationPolicy a/p"}},
		"in part, and the same": {[]string{ruled(own, "a", "p", "", "r.io/b/**", "r.io/b/x r.io/c/x")}, nil},
		"in the right order":    {[]string{ruled(own, "a", "p", "", "!r.io/b/**", "**")}, nil},
		"of an earlier policy": {[]string{ruled(own, "a", "p", "", "**"), ruled(own, "a", "q", "", "!r.io/b")},
			[]string{"VerificationPolicy a/q spec.rules[0] <- spec.rules[0] of VerificationPolicy a/p"}},
		"of a later policy":    {[]string{ruled(own, "a", "p", "", "!r.io/b"), ruled(own, "a", "q", "", "**")}, nil},
		"of another namespace": {[]string{ruled(own, "a", "p", "", "**"), ruled(own, "b", "q", "", "!r.io/b")}, nil},
		"of the cluster":       {[]string{ruled(own, "a", "p", "", "**"), ruled(clusters, "", "q", "", "!r.io/b")}, nil},
		"behind a warning":     {[]string{ruled(own, "a", "p", written.Warn, "**"), ruled(own, "a", "q", "", "!r.io/b")}, nil},
		"a warning":            {[]string{ruled(own, "a", "p", "", "**"), ruled(own, "a", "q", written.Warn, "!r.io/b")}, nil},
		"a warning, by another": {[]string{ruled(own, "a", "p", written.Warn, "**"), ruled(own, "a", "q", written.Warn, "!r.io/b")},
			[]string{"VerificationPolicy a/q spec.rules[0] <- spec.rules[0] of VerificationPolicy a/p"}},
		"two mandatory ones": {[]string{ruled(clusters, "", "p", "scope: Mandatory", "r.io/**"), ruled(clusters, "", "q", "scope: Mandatory", "!r.io/b")}, nil},
		"in a mandatory one": {[]string{ruled(clusters, "", "p", "scope: Mandatory", "!r.io/**", "r.io/b")},
			[]string{"ClusterVerificationPolicy p spec.rules[1] <- spec.rules[0]"}},
		"behind a mandatory":  {[]string{ruled(clusters, "", "p", "scope: Mandatory", "!r.io/**"), ruled(clusters, "", "q", "", "r.io/b")}, nil},
		"behind a broken one": {[]string{ruled(own, "a", "p", "", "**", "UPPER"), ruled(own, "a", "q", "", "!r.io/b")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			objects := written.Objects(t, append(c.documents, written.Namespace("a", "1"), written.Namespace("b", "2"))...)
			require.ElementsMatch(t, append([]string{}, c.want...), neverReached(conditions.Check(objects)))
			snapshot, _ := written.Compiled(objects)
			for _, o := range objects.Resources {
				reviewed := conditions.Reviewed(o, conditions.Reports(snapshot, verify.Namespace(o.GetNamespace()))[resource.RefOf(o)])
				mine := 0
				for _, said := range c.want {
					if strings.HasPrefix(said, resource.RefOf(o).String()+" ") {
						mine++
					}
				}
				require.Equal(t, mine, strings.Count(reviewed.Message, ": move "), "%s: %s", resource.RefOf(o), reviewed.Message)
			}
		})
	}
}

// The rules are those of the configurations by which images are judged.
func TestNoRuleThatDecidesIsSaidToBeNeverReached(t *testing.T) {
	patterns := []string{"**", "r.io/**", "r.io/a/**", "r.io/a/*", "r.io/*/b", "r.io/a/b", "s.io/**", "*.t.io/**", "eu.t.io/a"}
	var refs []image.Reference
	for _, name := range []string{"r.io/a/b", "r.io/a/c", "r.io/c/b", "r.io/a", "r.io/a/b/c", "s.io/a", "eu.t.io/a", "eu.t.io/b"} {
		ref, err := image.Parse(name)
		require.NoError(t, err)
		refs = append(refs, ref)
	}
	said := 0
	rapid.Check(t, func(rt *rapid.T) {
		documents := []string{written.Namespace("iris", "1"), written.Namespace("iris-web", "2"), written.Object("Tenant", "", "iris", written.Iris)}
		for i, namespace := range []string{"iris", "iris-web", ""} {
			for _, name := range []string{"p", "q"}[:rapid.IntRange(0, 2).Draw(rt, "policies")] {
				kind, fields := "VerificationPolicy", []string{"", written.Warn, "defaultAction: Inherit"}
				if namespace == "" {
					kind, fields[2] = "ClusterVerificationPolicy", "scope: Mandatory"
				}
				rules := rapid.SliceOfN(rapid.Map(rapid.SliceOfN(rapid.SampledFrom(patterns), 1, 2), func(list []string) string { return strings.Join(list, " ") }), 1, 4).
					Draw(rt, "rules")
				documents = append(documents, ruled(kind, namespace, fmt.Sprint(name, i), rapid.SampledFrom(fields).Draw(rt, "fields"), rules...))
			}
		}
		objects := written.Objects(t, documents...)
		found := strings.Join(neverReached(conditions.Check(objects)), "\n")
		said += strings.Count(found, "<-")
		snapshot, _ := written.Compiled(objects)
		for _, namespace := range []verify.Namespace{"iris", "iris-web", "other"} {
			tiers := snapshot.For(namespace).Tiers
			for i := range tiers {
				for tier := &tiers[i]; tier != nil; tier = tier.Next {
					for _, ref := range refs {
						for _, decides := range decider(tier.Judge.Rules(), ref) {
							require.NotContains(rt, found, decides+" <-", "it decides about %s", ref)
						}
					}
				}
			}
		}
	})
	require.NotZero(t, said)
}

// decider is the rule that decides about an image, and its patterns that match the image. It is empty if no rule does.
func decider(rules []verify.Rule, ref image.Reference) (found []string) {
	index := map[policy.ObjectRef]int{}
	for _, rule := range rules {
		name := fmt.Sprintf("%s spec.rules[%d]", rule.Source, index[rule.Source])
		for i, pattern := range rule.Images {
			if pattern.Match(ref) {
				found = append(found, name, fmt.Sprintf("%s.images[%d]", name, i))
			}
		}
		if len(found) > 0 {
			return found
		}
		index[rule.Source]++
	}
	return nil
}

func TestARequirementThatAnotherComesBeforeIsNamed(t *testing.T) {
	const rule = "\n- {images: ['%s'], require: [{anyOf: [%s]}]}"
	for second, want := range map[string][]string{
		fmt.Sprintf(rule, "r.io/pay/**', 's.io/**", "release"):   {},
		fmt.Sprintf(rule, "r.io/pay/**', 's.io/**", "pay"):       {"VerificationPolicy a/p spec.rules[1].images[0] <- spec.rules[0]"},
		"\n- {images: ['r.io/pay/**', 's.io/**'], action: Deny}": {"VerificationPolicy a/p spec.rules[1].images[0] <- spec.rules[0]"},
	} {
		objects := written.Objects(t, written.Namespace("a", "1"),
			written.Object("VerificationPolicy", "a", "p", "rules:"+fmt.Sprintf(rule, "r.io/**", "release")+second))
		found := conditions.Check(objects)
		require.Equal(t, want, neverReached(found), second)
		for _, p := range found {
			if p.Reason == policy.ReasonRuleNeverReached {
				require.Contains(t, p.Message, "; move the pattern to a rule before spec.rules[0], or remove it")
			}
		}
	}
}

func TestTheFixOfARuleThatIsNeverReachedSaysBeforeWhich(t *testing.T) {
	for fix, documents := range map[string][]string{
		"; move it before spec.rules[0], " +
			"or remove it": {ruled("VerificationPolicy", "a", "p", "", "r.io/b/**", "r.io/c/*", "!r.io/b/x r.io/c/x")},
		"; move it before spec.rules[0] of VerificationPolicy a/p, " +
			"or remove it": {ruled("VerificationPolicy", "a", "p", "", "**"), ruled("VerificationPolicy", "a", "q", "", "!r.io/b")},
	} {
		said := ""
		for _, p := range conditions.Check(written.Objects(t, append(documents, written.Namespace("a", "1"))...)) {
			said += p.Message
		}
		require.Contains(t, said, fix)
	}
}

func TestManyRulesEndTheSearch(t *testing.T) {
	documents := []string{written.Namespace("a", "1")}
	for i := range 60 {
		var rules []string
		for j := range 64 {
			rules = append(rules, fmt.Sprintf("r.io/**/*x%d*/b*-%d/**", i, j))
		}
		documents = append(documents, ruled("VerificationPolicy", "a", fmt.Sprint("p", i), "", rules...))
	}
	require.Empty(t, neverReached(conditions.Check(written.Objects(t, documents...))))
}
