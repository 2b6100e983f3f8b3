package precedence

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const page = "../../docs/concepts/precedence.md"

// mutants returns, for each sentence of the page, what breaks it in the specification: the old
// text, which is there once, and the new one.
func mutants() map[string][2]string {
	return map[string][2]string{
		"Resources come from three levels: the namespace, the home namespace of its [Tenant](../howto/tenants.md), and the cluster; the nearest level " +
			"comes first.": {"return []Level{own, home, w.Cluster}", "return []Level{home, own, w.Cluster}"},
		"A namespace without a Tenant has two levels: itself and " +
			"the cluster.": {"return []Level{own, w.Cluster}", "return []Level{w.Cluster}"},
		"If the Tenant says `policyLevel: Tenant`, the namespace's own resources " +
			"are ignored.": {`case tenant.PolicyLevel == "Tenant", namespace`, "case namespace"},
		"If the Tenant says `policyLevel: Cluster`, only resources of the " +
			"cluster apply.": {`case tenant.PolicyLevel == "Cluster":`, "case false:"},
		"A request without a namespace is judged by the resources of " +
			"the cluster.": {"return []Level{w.Cluster}, Tenant{}", "return nil, Tenant{}"},
		"If several Tenants list a namespace, it belongs to the oldest of " +
			"these Tenants.": {"for _, t := range w.Tenants {", "for _, t := range slices.Backward(w.Tenants) {"},
		"A Tenant that lists a namespace takes precedence over a Tenant that only has " +
			"its prefix.": {"			found = t\n", "			return t, known\n"},
		"While Landwaiter cannot read a Tenant, images are denied in every namespace that no other " +
			"Tenant lists.": {"			known = false", "			known = true"},
		"If the home namespace of a Tenant does not exist, images are denied in its other " +
			"namespaces.": {"case !exists, home.Unreadable", "case !exists && tenant.Name == \"\", home.Unreadable"},
		"If the home namespace is being deleted, images are denied in all namespaces of " +
			"the Tenant.": {"home.Unreadable, home.Ending,", "home.Unreadable,"},
		"If the home namespace belongs to another Tenant, images are denied in all namespaces of " +
			"the Tenant.": {"holder.Name != tenant.Name:", "holder.Name == \"\":"},
		"If the Namespace object of the home namespace cannot be read, images are denied in all namespaces of " +
			"the Tenant.": {"!exists, home.Unreadable,", "!exists,"},
		"If the Namespace object of a namespace cannot be read, images are " +
			"denied there.": {"case !known, own.Unreadable:", "case !known:"},

		"Only the Verifiers of the nearest level that has " +
			"Verifiers apply.": {"for _, level := range chain {\n		if len(level.Verifiers) > 0",
			"for _, level := range slices.Backward(chain) {\n		if len(level.Verifiers) > 0"},
		"The VerificationPolicies of only one level decide: the nearest level that has a policy " +
			"that denies.": {"var warning []Policy\n	for at := first; at < len(chain); at++ {", "var warning []Policy\n	for at := len(chain) - 1; at >= first; at-- {"},
		"For each registry host, the Store of the nearest level that has a Store for that " +
			"host applies.": {"at := (first + i) % len(chain)", "at := len(chain) - 1 - i"},
		"If that Store is broken, images of the host that need evidence " +
			"are denied.": {"v.Broken = v.Broken || s.Broken; at", "at"},
		"A Store that cannot be read is treated as listing " +
			"every host.": {`(s.Host == "" || s.Host == image.Host)`, "s.Host == image.Host"},
		"A Store can name other repositories " +
			"for evidence.": {"evidence = s.Evidence", "evidence = evidence"},
		"If no level has a policy, every Verifier that matches the image must " +
			"find evidence.": {"matching.AllOf = append(matching.AllOf, v.Name)", "matching.AnyOf = append(matching.AnyOf, v.Name)"},
		"At least one Verifier must " +
			"match the image.": {"matching := Requirement{AtLeast: 1}", "matching := Requirement{AtLeast: 0}"},
		"The first rule whose `images` " +
			"match decides.": {"for _, rule := range p.Rules {", "for _, rule := range slices.Backward(p.Rules) {"},
		"Rules of several policies are tried in the order of the " +
			"policies' names.": {"for _, p := range policies {\n		for _, rule", "for _, p := range slices.Backward(policies) {\n		for _, rule"},
		"A rule with `action: Allow` allows its images " +
			"without evidence.": {"outcome := Allowed\n	if rule.Action", "outcome := map[bool]Outcome{true: Denied, false: Allowed}[rule.Action == " +
			"\"Allow\"]\n	if rule.Action"},
		"A rule with `action: Deny` denies " +
			"its images.": {`if rule.Action == "Deny" {`, "if false {"},
		"Images that no rule matches are denied, unless `defaultAction` has " +
			"another value.": {`case "Allow":`, `case "Allow", "Deny":`},
		"If several policies have different default actions, `Deny` takes precedence " +
			"over `Inherit`.": {`action == "Allow" || p.Default == "Deny"`, `action == "Allow"`},
		"`Inherit` takes precedence " +
			"over `Allow`.": {`action == "" || action == "Allow" || p.Default == "Deny"`, `action == "" || action == "Inherit" || p.Default == "Deny"`},
		"If a policy that decides is broken, every image is denied, whatever the other policies of " +
			"its level say.": {"if slices.ContainsFunc(policies, func(p Policy) bool { return p.Broken }) {", "if len(policies) > 0 && policies[0].Broken {"},
		"With `defaultAction: Inherit`, the levels after the policy's level decide about images that no " +
			"rule matches.": {"return w.decide(chain, at+1, image)", "return Denied"},
		"The levels that decide then ignore the Verifiers of " +
			"nearer levels.": {"return w.judge(policies, chain, first, at, image)", "return w.judge(policies, chain, 0, at, image)"},
		"If none of these levels has a Store for the host, Landwaiter uses the login of the nearest Store, but not its repositories " +
			"for evidence.": {"at >= first {", "at >= 0 {"},
		"If the nearest Store is broken, images of the host " +
			"are denied.": {"v.Broken = v.Broken || s.Broken; at", "v.Broken = v.Broken || s.Broken && at >= first; at"},
		"Every entry of `require` must " +
			"be satisfied.": {"outcome = min(outcome, w.require(", "outcome = max(Denied, w.require("},
		"For `anyOf`, evidence of one of the named " +
			"Verifiers is enough.": {"slices.Contains(slices.Concat(r.AnyOf, r.AllOf), v.Name)", "slices.Contains(r.AllOf, v.Name)"},
		"For `allOf`, each of the named Verifiers must have " +
			"found evidence.": {"return !missing && (", "return (!missing || len(found) > 0) && ("},
		"For `types`, evidence of any Verifier of these " +
			"types is enough.": {"typed := slices.Contains(r.Types, v.Type)", "typed := false"},
		"Evidence of a Verifier that does not match the image " +
			"is ignored.": {"if !matches(v.Images, image) || !named", "if !named"},
		"`atLeast` counts different signers.": {"signers[by], " +
			"proven[verifier] = true, true", "signers[by+verifier], signers[by], proven[verifier] = true, true, true"},
		"A Verifier that is broken " +
			"finds nothing.": {"	if v.Broken {\n		return nil", "	if false {\n		return nil"},
		"A Verifier that cannot be read is treated as matching " +
			"every image.": {"if matches(v.Images, image) {\n			matching", "if v.Type != \"\" && matches(v.Images, image) {\n			matching"},
		"An `expression` must be true for the evidence of all Verifiers that " +
			"match the image.": {`r.Exists != "" && !signed(r.Exists), signed(r.ExistsNot)`, "signed(r.ExistsNot)"},
		"If one of these Verifiers is broken, the " +
			"expression is false.": {"if v.Broken && expression {", "if false {"},
		"If a requirement is not satisfied, but might be if Landwaiter could read all evidence, the image " +
			"is undecided.": {"		return Undecided\n", "		return Denied\n"},
		"If a requirement could not be satisfied even if Landwaiter could read all evidence, the " +
			"image is denied.": {"case !r.holds(found, true):\n		return Denied", "case !r.holds(found, true):\n		return Undecided"},
		"An expression is undecided while Landwaiter cannot read evidence of any of " +
			"its Verifiers.": {"case !r.holds(found, false), expression && unsure:", "case !r.holds(found, false):"},
		"If results differ, `Denied` takes precedence over `Undecided`, and `Undecided` " +
			"over `Allowed`.": {"outcome = min(outcome, w.judge(", "outcome = min(1, outcome, 1+w.judge("},
		"A mandatory policy must allow the image in addition to the policies that decide in " +
			"the namespace.": {"outcome = min(w.decide(chain, 0, image), w.mandatory(image, false))", "outcome = w.decide(chain, 0, image)"},
		"Each mandatory policy is evaluated " +
			"separately.": {"w.judge([]Policy{p}, ", "w.judge(w.Cluster.policies(true, p.Warns), "},
		"A mandatory policy uses only Verifiers and Stores of " +
			"the cluster.": {"[]Level{w.Cluster}, 0, 0, image))", `[]Level{w.Namespaces["web"], w.Cluster}, 0, 1, image))`},
		"A ClusterVerificationPolicy whose scope cannot be read is treated as a mandatory policy that denies " +
			"every image.": {"p.Mandatory != mandatory || p.Warns != warn", "(p.Mandatory && len(p.Rules) > 0) != mandatory || p.Warns != warn"},
		"A policy with `enforcementAction: Warn` never denies while another " +
			"policy decides.": {"p.Mandatory != mandatory || p.Warns != warn", "p.Mandatory != mandatory || warn && !p.Warns"},
		"If a policy that warns would not allow an image that other policies allow, the image " +
			"gets a warning.": {"len(sound) > 0 && w.judge(sound, chain, first, at, image) != Allowed", "false"},
		"A level that has only policies that warn is treated as a level " +
			"without policies.": {"		warning = append(warning, chain[at].policies(false, true)...)\n	}",
			"		if warning = append(warning, chain[at].policies(false, true)...); len(warning) > 0 {\n			break\n		}\n	}"},
		"If no level has a policy that denies, images are allowed, with the warnings of the " +
			"policies that warn.": {"case len(warning) > 0:\n		return Allowed", "case len(warning) > 0:\n		return Denied"},
		"If one of the policies that warn is broken, images are " +
			"denied instead.": {"case slices.ContainsFunc(warning, func(p Policy) bool { return p.Broken }):", "case false:"},
		"Policies that warn apply at every level up to the level " +
			"that decides.": {`return strictest(policies) == "Inherit" && w.warned(`, "return w.warned("},
		"If the level that decides uses `Inherit`, policies of the next " +
			"level warn, too.": {`return strictest(policies) == "Inherit" && w.warned(chain, at+1, image)`, "return false"},
		"A mandatory policy that warns only " +
			"adds a warning.": {"w.mandatory(image, true) != Allowed || ", ""},
		"An [exception](../howto/exceptions.md) allows an image that policies deny, " +
			"with a warning.": {"case len(lifting) == 0:", "default:"},
		"An exception never allows an " +
			"undecided image.": {"if outcome == Undecided || namespace", "if namespace"},
		"A ClusterException applies in the namespaces " +
			"that it lists.": {"(x.covers(namespace, \"\") || slices", "(slices"},
		"A ClusterException for `\"*\"` applies in " +
			"every namespace.": {" || slices.Contains(x.Namespaces, \"*\")", ""},
		"An exception expires at " +
			"its `until`.": {"w.Now.Before(x.Until) }", "!w.Now.After(x.Until) }"},
		"An Exception in a namespace applies only if a ClusterException delegates exceptions to " +
			"that namespace.": {"!x.covers(level.Name, tenant.Name) || !x.covers(namespace, tenant.Name)", "false"},
		"An Exception in the home namespace of a Tenant applies in another namespace only if a ClusterException delegates to both " +
			"namespaces.": {" || !x.covers(namespace, tenant.Name)", ""},
		"Both the Exception and the delegation must " +
			"list the image.": {"return !now(x) || !matches(x.Images, image) })", "return !now(x) })"},
		"An exception for a digest applies only to image references with " +
			"that digest.": {` || image.Digest != "" && entry == image.Name+"@"+image.Digest`, ""},
		"An exception does not override mandatory policies, unless it is a ClusterException with " +
			"`overrideMandatory: true`.": {"	outcome = w.mandatory(image, false)\n	return", "	outcome = Allowed\n	return"},
		"A request without a namespace has no " +
			"exceptions.": {` || namespace == "" || !now(x)`, " || !now(x)"},
		"Break-glass allows every image in its namespace, including " +
			"undecided images.": {"glass != nil && now(*glass)", "glass != nil && now(*glass) && outcome == Denied"},
		"Break-glass begins at its " +
			"`break-glass-from`.": {"!w.Now.Before(x.From) && ", ""},
		"Break-glass does not override mandatory policies, unless `break-glass-override-mandatory` is " +
			"`\"true\"`.": {"found = append(found, *glass)", "found = append(found, Exception{OverrideMandatory: true})"},
	}
}

// sentences returns the sentences of the page.
func sentences(t *testing.T) (list []string) {
	t.Helper()
	for line := range strings.Lines(read(t, page)) {
		if sentence, ok := strings.CutPrefix(line, "- "); ok {
			list = append(list, strings.TrimSpace(sentence))
		}
	}
	return list
}

// Each sentence in a list of the page has a mutant: nightly, the comparison must notice each.
func TestEverySentenceOfThePageHasAMutant(t *testing.T) {
	specification, all := read(t, "specification.go"), mutants()
	for _, sentence := range sentences(t) {
		mutant, ok := all[sentence]
		require.True(t, ok, "no mutant for: %s", sentence)
		require.Equal(t, 1, strings.Count(specification, mutant[0]), "the specification must have this text once: %s", mutant[0])
		delete(all, sentence)
	}
	require.Empty(t, all, "mutants without a sentence")
}

func TestThePageQuotesTheSpecification(t *testing.T) {
	quotes := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(read(t, page), -1)
	require.NotEmpty(t, quotes)
	for _, quote := range quotes {
		require.Contains(t, read(t, "specification.go"), quote[1])
	}
}

// The specification is small enough to be read, and imports nothing of what it specifies.
func TestTheSpecificationIsPlainGo(t *testing.T) {
	specification := read(t, "specification.go")
	require.LessOrEqual(t, strings.Count(specification, "\n"), 300)
	require.NotContains(t, specification+read(t, "world.go"), "landwaiter/")
}

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(content)
}
