package policy_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/test/kit/judged"
)

const signIt = "cosign sign --key KEY r.example.com/app@sha256:1"

// signFor is signIt with the key that a policy trusts.
func signFor(name string) string { return strings.Replace(signIt, "KEY", "KEY-FOR-"+name, 1) }

// objecting is the verdict of a policy that denies.
func objecting(name, command string) policy.Verdict {
	source := policy.ObjectRef{Kind: "ClusterVerificationPolicy", Name: name}
	return policy.Verdict{Policy: source, Reason: source.String() + " requires a valid signature for " + name + ": no signature was found", Command: command}
}

// combined adds the verdicts of policies.
func combined(verdicts ...policy.Verdict) policy.Verdict {
	var all policy.Combined
	for _, v := range verdicts {
		all.Add(v, false)
	}
	return all.Verdict()
}

func TestADenialNamesEveryPolicyThatDenies(t *testing.T) {
	allowed := judged.As(policy.Allowed, policy.Verdict{Reason: "signed"})
	unknown := policy.NotDecided(policy.ObjectRef{Kind: "ClusterVerificationPolicy", Name: "slow"}, "the registry is slow")
	v := combined(allowed, objecting("a", signIt), unknown, allowed, objecting("b", ""), objecting("c", signIt))
	require.Equal(t, policy.Denied, v.Outcome())
	require.Equal(t, "a", v.Policy.Name, "the first that denies")
	require.Equal(t, objecting("a", "").Reason, v.Reason)
	require.Equal(t, "ClusterVerificationPolicy a requires a valid signature for a: no signature was found"+
		". Also: ClusterVerificationPolicy b requires a valid signature for b: no signature was found"+
		". Also: ClusterVerificationPolicy c requires a valid signature for c: no signature was found. To fix, if your build made it: "+signFor("a")+" && "+
		signFor("c"), v.Text())
	require.NotContains(t, v.Text(), "slow", "what is not known is not named")
	require.Equal(t, objecting("a", "").Reason+". Also: "+objecting("b", "").Reason+". Also: "+objecting("c", "").Reason, v.Reasons(1000))

	require.Empty(t, combined(unknown, allowed).Others)
	require.Empty(t, combined(allowed, allowed).Others)
	require.Empty(t, combined(objecting("a", "")).Others)
}

func TestAPolicyThatOnlyWarnsIsNotAmongThoseThatDeny(t *testing.T) {
	var all policy.Combined
	all.Add(objecting("a", ""), false)
	all.Add(objecting("warns", ""), true)
	require.Empty(t, all.Verdict().Others)
	require.NotContains(t, all.Verdict().Text(), "warns")
}

func TestManyDenialsAreBoundedAndCounted(t *testing.T) {
	var verdicts []policy.Verdict
	for i := range 20 {
		v := objecting(fmt.Sprintf("p%02d", i), signIt)
		v.Reason += strings.Repeat(" because", 200)
		verdicts = append(verdicts, v)
	}
	v := combined(verdicts...)
	require.Len(t, v.Others, policy.MaxOthers)
	require.Equal(t, 12, v.More)
	for _, limit := range []int{128, 512} {
		text := v.TextWithin(limit)
		require.LessOrEqual(t, len(text), 5*(limit+len(". Also: ")+len("-FOR-p00")))
		require.True(t, strings.HasPrefix(text, "ClusterVerificationPolicy p00 requires"), text)
		require.True(t,
			strings.HasSuffix(text, ". To fix, if your build made it: "+strings.Join([]string{signFor("p00"), signFor("p01"), signFor("p02"), signFor("p03")}, " && ")),
			"commands are whole, and end the text: %s", text)
		for i := range 4 {
			require.Contains(t, text, fmt.Sprintf("ClusterVerificationPolicy p%02d", i))
		}
	}
	require.Contains(t, v.TextWithin(512), ". Also: ClusterVerificationPolicy p04, ClusterVerificationPolicy p05, ClusterVerificationPolicy p06, "+
		"ClusterVerificationPolicy p07, 12 more. To fix, if your build made it: ")

	// Denials of denials are counted, too.
	v = combined(combined(verdicts[:15]...), combined(verdicts[15:]...))
	require.Len(t, v.Others, policy.MaxOthers)
	require.Equal(t, 12, v.More)
}

func TestAListOfDenialsIsNotSharedBetweenVerdicts(t *testing.T) {
	first := combined(objecting("a", ""), objecting("b", ""))
	one, other := combined(first, objecting("c", "")), combined(first, objecting("d", ""))
	require.Equal(t, "c", one.Others[1].Policy.Name)
	require.Equal(t, "d", other.Others[1].Policy.Name)
	asked := first.Asking(func(policy.ObjectRef) string { return "somebody" })
	require.Equal(t, "somebody", asked.Others[0].Contact)
	require.Empty(t, first.Others[0].Contact, "cached verdicts are immutable")
}

func TestTextsEndWithTheCommandAndSayWhomToAskBefore(t *testing.T) {
	for name, c := range map[string]struct {
		verdict policy.Verdict
		want    string
	}{
		"a command": {policy.Verdict{Reason: "r", Command: signIt}, "r. To fix, if your build made it: " + signIt},
		"advice and a command": {policy.Verdict{Reason: "r", Remediation: "sign it", Command: signIt},
			"r. To fix, if your build made it: sign it. Command: " + signIt},
		"a contact": {policy.Verdict{Reason: "r", Contact: "#team-a"}, "r. Ask: #team-a"},
		"a contact and a command": {policy.Verdict{Reason: "r", Contact: "#team-a", Command: signIt},
			"r. Ask: #team-a. To fix, if your build made it: " + signIt},
		"all of it": {policy.Verdict{Reason: "r", Contact: "#team-a", Remediation: "sign it", Command: signIt},
			"r. Ask: #team-a. To fix, if your build made it: sign it. Command: " + signIt},
		"advice, and no command": {policy.Verdict{Reason: "r", Remediation: "sign in the workflow w"},
			"r. To fix, if your build made it: sign in the workflow w"},
		"advice about a rule": {policy.Verdict{Reason: "r", Remediation: "correct the Verifier"}, "r. To fix: correct the Verifier"},
		"a better way": {policy.Verdict{Reason: "r", Command: signIt}.Advised("name it by its digest"),
			"r. To fix: name it by its digest; or, if your build made it, run the command. Command: " + signIt},
		"a better way than advice": {policy.Verdict{Reason: "r", Remediation: "sign it"}.Advised("name it by its digest"),
			"r. To fix: name it by its digest; or, if your build made it, sign it"},
		"two, and one is no advice to sign": {combined(policy.Verdict{Reason: "r", Remediation: "correct it"}, policy.Verdict{Reason: "s", Command: signIt}),
			"r. To fix: correct it. Also: s. To fix, if your build made it: " + signIt},
		"nothing but the reason": {policy.Verdict{Reason: "r"}, "r"},
		"two, and nothing sticks": {combined(policy.Verdict{Reason: "r", Command: signIt}, policy.Verdict{Reason: "s"}),
			"r. Also: s. To fix, if your build made it: " + signIt},
		"two, a sentence each": {combined(policy.Verdict{Reason: "r", Contact: "a"}, policy.Verdict{Reason: "s", Command: signIt}),
			"r. Ask: a. Also: s. To fix, if your build made it: " + signIt},
		"two, one of them advises": {combined(policy.Verdict{Reason: "r", Remediation: "sign it"}, policy.Verdict{Reason: "s"}),
			"r. To fix, if your build made it: sign it. Also: s"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, c.verdict.Text()) })
	}
}

func TestACommandIsWholeWhateverElseIsCut(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for name, v := range map[string]policy.Verdict{
		"a long reason":  {Reason: long, Command: signIt},
		"long advice":    {Reason: "r", Remediation: long, Command: signIt},
		"a long contact": {Reason: "r", Contact: long, Command: signIt},
		"all are long":   {Reason: long, Contact: long, Remediation: long, Command: signIt},
	} {
		text := v.TextWithin(200)
		require.LessOrEqual(t, len(text), 200, name)
		require.True(t, strings.HasSuffix(text, " "+signIt), "%s: %s", name, text)
	}
	require.Contains(t, policy.Verdict{Reason: long, Contact: "#team-a", Command: signIt}.TextWithin(200), ". Ask: #team-a. To fix, if your build made it: ")
}

// A developer needs to know which policy denies, what to do and whom to ask. Lists of more of the same go first.
func TestWhatADeveloperNeedsIsCutLast(t *testing.T) {
	long := strings.Repeat("x ", 1000)
	const advice, contact = "an exception covers the image, but it needs overrideMandatory: ask a cluster admin", "#team-a"
	reason := "ClusterVerificationPolicy strict requires " + long
	for name, c := range map[string]struct {
		d     policy.Objection
		limit int
		want  []string
	}{
		"a long reason": {policy.Objection{Reason: reason, Remediation: advice, Command: signIt, Contact: contact}, 512,
			[]string{"ClusterVerificationPolicy strict", contact, advice, signIt}},
		"a long reason, and little room": {policy.Objection{Reason: reason, Remediation: advice, Contact: contact}, 160,
			[]string{"ClusterVerificationPolicy strict", "it needs overrideMandatory"}},
		"long advice": {policy.Objection{Reason: reason, Remediation: advice + long, Command: signIt, Contact: contact}, 512,
			[]string{"ClusterVerificationPolicy strict", contact, advice, signIt}},
		"a long contact": {policy.Objection{Reason: reason, Remediation: advice + long, Command: signIt, Contact: long}, 512,
			[]string{"ClusterVerificationPolicy strict", advice, signIt}},
		"a command that has no room": {policy.Objection{Reason: reason, Remediation: advice, Command: signIt + long, Contact: contact}, 512,
			[]string{"ClusterVerificationPolicy strict", contact, advice, "; landwaiter verify --explain shows the command"}},
		"a command that has no room, no advice": {policy.Objection{Reason: reason, Command: signIt + long, Contact: contact}, 256,
			[]string{"ClusterVerificationPolicy strict", contact, ". To fix, if your build made it: landwaiter verify --explain shows the command"}},
	} {
		c.d.Policy = strict
		text := c.d.TextWithin(c.limit)
		require.LessOrEqual(t, len(text), c.limit, name)
		for _, want := range c.want {
			require.Contains(t, text, want, name)
		}
		require.Equal(t, slices.Contains(c.want, signIt), strings.Contains(text, "cosign"), "%s: no part of a command: %s", name, text)
	}
	for limit := range 700 {
		text := policy.Objection{Policy: strict, Reason: reason, Remediation: "sign it", Command: signIt, Contact: contact}.TextWithin(limit)
		require.True(t, !strings.Contains(text, signIt) || strings.Contains(text, "To fix, if your build made it: "), "no command without its caution: %s", text)
		require.LessOrEqual(t, len(policy.Objection{Policy: strict, Reason: reason, Remediation: advice, Command: signIt, Contact: contact}.TextWithin(limit)),
			max(limit, 3))
	}
}

func TestEveryPolicyIsNamedInReasonsThatAreCut(t *testing.T) {
	one, two := objecting("a", ""), objecting("b", "")
	one.Reason += strings.Repeat(" because", 200)
	one.Remediation, two.Remediation = strings.Repeat("x", 1000), "sign it"
	both := combined(one, two)
	text := both.Reasons(200)
	require.LessOrEqual(t, len(text), 200)
	require.True(t, strings.HasSuffix(text, "…. Also: "+two.Reason), text)
	advice, _ := both.Remedies(200)
	require.LessOrEqual(t, len(advice), 200)
	require.True(t, strings.HasSuffix(advice, "…; for ClusterVerificationPolicy b, sign it"), advice)
}

func TestWhatADeveloperCanDoComesBeforeBrokenVerifiers(t *testing.T) {
	broken := func(name string) policy.Finding {
		return policy.Finding{Verifier: name, Message: "Verifier " + name + " cannot be used: there is no Secret", Remediation: "correct the resource",
			Reason: policy.ReasonBrokenResource}
	}
	unsigned := policy.Finding{Verifier: "d", Message: "no signature was found", Command: signIt, Reason: policy.ReasonNoEvidence}
	requires := func(requirement policy.Requirement, findings ...policy.Finding) policy.Verdict {
		return policy.Decide(nil, policy.Requirements{Source: strict, Require: []policy.Requirement{requirement}}, findings)
	}
	v := requires(anyOf(t, 1, "a", "b", "c", "d"), broken("a"), broken("b"), broken("c"), unsigned)
	require.Contains(t, v.Reason, ": for d, no signature was found; 3 Verifiers cannot be used: a, b, c (Verifier a cannot be used: there is no Secret)")
	require.Equal(t, signIt, v.Command)
	require.Equal(t, "run the command; or correct the resource", v.Remediation)
	v = requires(allOf(t, 1, "a", "d"), broken("a"), unsigned)
	require.Contains(t, v.Reason, ": for d, no signature was found; for a, Verifier a cannot be used: there is no Secret")
	elsewhere := policy.Finding{Verifier: "e", Message: "Verifier e is not for it", Reason: policy.ReasonNotForThisImage}
	v = requires(anyOf(t, 1, "a", "b", "e"), broken("a"), elsewhere, broken("b"))
	require.Contains(t, v.Reason, ": 2 Verifiers cannot be used: a, b (Verifier a cannot be used: there is no Secret); for e, Verifier e is not for it")
}

func TestRemediesOfSeveralPoliciesAreOneCommand(t *testing.T) {
	advised := objecting("b", "cosign attest x")
	advised.Remediation = "make an attestation"
	advice, command := combined(objecting("a", signIt), advised, objecting("c", "")).Remedies(1000)
	require.Equal(t, "for ClusterVerificationPolicy b, make an attestation", advice)
	require.Equal(t, strings.Replace(signIt, "KEY", "KEY-FOR-a", 1)+" && cosign attest x", command, "each policy trusts keys of its own")
	advice, command = objecting("a", signIt).Remedies(1000)
	require.Empty(t, advice)
	require.Equal(t, signIt, command)

	one, two := objecting("a", ""), objecting("b", "")
	one.Contact, two.Contact = "#a", "#b"
	require.Equal(t, "#a; #b", combined(one, two, one).Contacts(100), "each once")
	require.Equal(t, "#a", one.Contacts(100))
	two.Contact = "#the-platform-team"
	require.Equal(t, "#a; 1 more", combined(one, two).Contacts(len("#a; #the-platform")), "no contact is cut")
}

func TestWhatIsNotAllowedSaysWhomToAsk(t *testing.T) {
	somebody := func(policy.ObjectRef) string { return "somebody" }
	require.Equal(t, "somebody", objecting("a", "").Asking(somebody).Contact)
	require.Empty(t, judged.As(policy.Allowed, policy.Verdict{}).Asking(somebody).Contact)
	require.Equal(t, "somebody", policy.NotDecided(policy.ObjectRef{}, "slow").Asking(somebody).Contact)
}

func TestEveryRequirementThatIsNotMetIsNamed(t *testing.T) {
	evaluated := 0
	expression := func(func() error, []policy.Finding) (bool, error) {
		evaluated++
		return false, errors.New("no")
	}
	condition, err := policy.Matching(strict, 1, expression, "a")
	require.NoError(t, err)
	findings := []policy.Finding{
		{Verifier: "a", Message: "no a was found", Command: "sign a"},
		{Verifier: "b", Message: "no b was found", Command: "sign b"},
		judged.Proven("c", policy.Finding{Verifier: "c"}),
	}
	requirements := []policy.Requirement{anyOf(t, 1, "c"), anyOf(t, 1, "a"), condition, anyOf(t, 1, "b")}
	v := policy.Decide(nil, policy.Requirements{Source: strict, Require: requirements}, findings)
	require.Equal(t, policy.Denied, v.Outcome())
	require.Equal(t, "sign a", v.Command)
	require.Len(t, v.Others, 1)
	require.Equal(t, strict, v.Others[0].Policy)
	require.Contains(t, v.Others[0].Reason, "no b was found")
	require.Equal(t, "sign b", v.Others[0].Command)
	require.Zero(t, evaluated, "an expression behind a denial costs time for nothing")
}

func TestOneCommandOfSeveralAlternativesIsShown(t *testing.T) {
	findings := []policy.Finding{
		{Verifier: "a", Message: "no a was found", Command: "sign a"},
		{Verifier: "b", Message: "no key of b verifies it", Remediation: "sign with a key of b", Command: "sign b", Reason: policy.ReasonWrongKey},
		{Verifier: "c", Message: "no c was found", Command: "sign c"},
	}
	for name, c := range map[string]struct {
		requirement     policy.Requirement
		advice, command string
	}{
		"any of two":                  {anyOf(t, 1, "a", "c"), "", "sign a"},
		"both":                        {allOf(t, 1, "a", "c"), "", "sign a && sign c"},
		"any of two, one with advice": {anyOf(t, 1, "a", "b"), "run the command; or sign with a key of b", "sign a"},
		"one":                         {anyOf(t, 1, "b"), "sign with a key of b", "sign b"},
	} {
		t.Run(name, func(t *testing.T) {
			v := policy.Decide(nil, policy.Requirements{Source: strict, Require: []policy.Requirement{c.requirement}}, findings)
			require.Equal(t, c.advice, v.Remediation)
			require.Equal(t, c.command, v.Command)
		})
	}
}

// The command is for the policy's evidence, and the exception for this image alone: verify --explain has the command.
func TestAdviceAboutAnExceptionIsNotCutForACommand(t *testing.T) {
	const advice = "Exception team-a/legacy-tool covers the image, but it needs overrideMandatory, which only a ClusterException can have: ask a " +
		"cluster admin for one"
	reason := strings.Repeat("looked at the tag sha256-7f1e5cc493cb, ", 20)
	command := "cosign sign --key KEY registry.example.com/team-a/legacy/tool@sha256:" + strings.Repeat("7", 64) + " --tlog-upload=false"
	v := policy.Verdict{Reason: reason, Command: command, Contact: "#image-signing"}.Advised(advice)
	text := v.TextWithin(512)
	require.LessOrEqual(t, len(text), 512)
	require.Contains(t, text, ". To fix, if your build made it: "+advice)
	require.Contains(t, text, ". Ask: #image-signing")
	require.NotContains(t, text, "cosign sign")
	require.Contains(t, v.Text(), ". Command: "+command, "without a limit, nothing is left out")

	// If everything but the reason fits, the command stays.
	short := policy.Verdict{Reason: reason, Command: "cosign sign --key KEY r.example.com/a"}.Advised(advice)
	require.Contains(t, short.TextWithin(512), advice)
	require.True(t, strings.HasSuffix(short.TextWithin(512), ". Command: cosign sign --key KEY r.example.com/a"), short.TextWithin(512))
}
