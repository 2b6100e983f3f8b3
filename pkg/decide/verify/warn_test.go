package verify

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

func TestADenialThatNoPolicyCausedSaysWhomToAsk(t *testing.T) {
	tasks := []task{{tier: &Tier{Contact: "#iris", Contacts: []Contact{{Text: "security@example.com"}}}}}
	said := failed(tasks,
		PermanentWith(policy.ReasonInvalid, errors.New("cannot look up registry.example.com"), "ask a cluster admin to list it in a ClusterStore"))
	require.Equal(t, policy.Denied, said.Outcome())
	require.Equal(t, "cannot look up registry.example.com. To fix: ask a cluster admin to list it in a ClusterStore", said.Text(), "the team's admins cannot")
	cluster := task{
		tier: &Tier{Next: &Tier{Contacts: []Contact{{Policy: policy.ObjectRef{Kind: "ClusterVerificationPolicy", Name: "signed"}, Text: "security@example.com"}}}}}
	require.Equal(t, "security@example.com",
		failed(append(tasks, cluster), PermanentWith(policy.ReasonInvalid, errors.New("it"), "ask a cluster admin to list it")).Contact)
	require.Equal(t, "#iris", failed(tasks, PermanentWith(policy.ReasonInvalid, errors.New("it"), "correct it")).Contact)
	require.Equal(t, "#iris", failed(tasks, errors.New("it is down")).Contact, "an outage may last")
}

func TestAWarningThatNeedsNoEvidenceIsSaidAlthoughTheRegistryIsDown(t *testing.T) {
	named := func(name string) policy.ObjectRef {
		return policy.ObjectRef{Kind: "ClusterVerificationPolicy", Name: name}
	}
	warning := func(name string) task {
		return task{tier: &Tier{Warns: true}, warns: true, rules: policy.Requirements{Source: named(name)}}
	}
	said := failed([]task{
		known(&Tier{}, policy.Unverified(named("lax"), "it allows all")),
		known(&Tier{Warns: true}, policy.Verdict{Policy: named("strict"), Reason: "a rule denies it"}),
		warning("signed"), warning("attested"),
	}, errors.New("it is down"))
	require.Equal(t, policy.Allowed, said.Outcome())
	require.Equal(t, "allowed without verification: it allows all; a rule denies it; it is down", said.Warning)
	require.Equal(t, "ClusterVerificationPolicy signed only warns: it is down", said.Reason)
	require.True(t, said.Doubtful)
}
