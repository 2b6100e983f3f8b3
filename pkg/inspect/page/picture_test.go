package page

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
)

// ruledBy is a namespace with policies of the cluster.
func ruledBy(policies ...live.Placed) live.NamespaceStatus {
	return live.NamespaceStatus{Namespace: "shop", Levels: []live.Level{{Name: "namespace", Namespace: "shop"}, {Name: "cluster", Resources: policies}}}
}

func placed(name string) live.Placed {
	return live.Placed{Ref: policy.ObjectRef{Kind: "ClusterVerificationPolicy", Name: name}, Kind: "VerificationPolicy", Applies: true}
}

func TestTheStageIsTheWeakerOfGatekeeperAndPolicies(t *testing.T) {
	warns, mandatory := placed("warns"), placed("mandatory")
	warns.Warns, mandatory.Mandatory = true, true
	hidden := ruledBy(placed("p"))
	hidden.Rules = []live.Choice{{Kind: "VerificationPolicy", Level: live.LevelUnknown}}
	exempt := ruledBy(placed("p"))
	exempt.Exempt = true
	for name, c := range map[string]struct {
		n       live.NamespaceStatus
		actions map[verify.Namespace]string
		stage   string
		whole   bool
	}{
		"both deny":                         {ruledBy(placed("p")), map[verify.Namespace]string{"shop": "deny"}, stageDeny, true},
		"a constraint that warns":           {ruledBy(placed("p")), map[verify.Namespace]string{"shop": "warn"}, stageWarn, true},
		"a policy that warns":               {ruledBy(warns), map[verify.Namespace]string{"shop": "deny"}, stageWarn, true},
		"a dry run of a policy that warns":  {ruledBy(warns), map[verify.Namespace]string{"shop": "dryrun"}, stageDryRun, true},
		"a mandatory policy beside it":      {ruledBy(warns, mandatory), map[verify.Namespace]string{"shop": "deny"}, stageDeny, true},
		"Gatekeeper never asks":             {ruledBy(placed("p")), map[verify.Namespace]string{"shop": "not asked"}, stageNone, true},
		"a word that nobody knows":          {ruledBy(placed("p")), map[verify.Namespace]string{"shop": "?"}, stageNone, true},
		"constraints cannot be read":        {ruledBy(warns), nil, stageWarn, false},
		"policies cannot be read":           {hidden, map[verify.Namespace]string{"shop": "deny"}, stageUnknown, false},
		"no policy":                         {ruledBy(), map[verify.Namespace]string{"shop": "deny"}, stageDeny, true},
		"exempt from Gatekeeper":            {exempt, map[verify.Namespace]string{"shop": "not asked"}, stageExempt, true},
		"exempt, and nothing else is known": {exempt, nil, stageExempt, true},
	} {
		t.Run(name, func(t *testing.T) {
			stage, whole := stageOf(c.n, c.actions)
			require.Equal(t, c.stage, stage)
			require.Equal(t, c.whole, whole)
		})
	}
}

func TestThePictureSaysOfEachResourceWhetherItApplies(t *testing.T) {
	shadowed, warns, verifier := placed("shadowed"), placed("warns"),
		live.Placed{Ref: policy.ObjectRef{Kind: "ClusterVerifier", Name: "v"}, Kind: "Verifier", Instead: "tenant", ForMandatory: true}
	shadowed.Applies, shadowed.Instead, warns.Warns = false, "namespace", true
	broken, idle := placed("broken"), shadowed
	broken.Broken, idle.Broken, idle.Ref.Name = "Invalid", "Invalid", "idle"
	beside := placed("beside")
	beside.Denies = broken.Ref
	n := ruledBy(placed("p"), shadowed, warns, verifier, broken, idle, beside)
	n.Levels[0].Unread = []string{"Store"}
	n.Rules = []live.Choice{{Kind: "Store", Level: live.LevelUnknown}}
	states := map[string]string{}
	for _, l := range pictureOf(n).Levels {
		for _, b := range l.Boxes {
			states[l.Name+" "+b.Kind+" "+b.Name] = b.State + ": " + b.Says
		}
	}
	require.Equal(t, map[string]string{
		"Namespace Store ":                           "unknown: you cannot list them",
		"Cluster ClusterVerificationPolicy beside":   "broken: denied: broken is broken",
		"Cluster ClusterVerificationPolicy broken":   "broken: broken: Invalid",
		"Cluster ClusterVerificationPolicy idle":     "shadowed: shadowed by the namespace",
		"Cluster ClusterVerificationPolicy p":        "applies: applies",
		"Cluster ClusterVerificationPolicy shadowed": "shadowed: shadowed by the namespace",
		"Cluster ClusterVerificationPolicy warns":    "warns: only warns",
		"Cluster ClusterVerifier v":                  "partly: for mandatory policies only",
	}, states)
	require.Equal(t, "ClusterVerificationPolicy p, ClusterVerificationPolicy warns, ClusterVerificationPolicy broken (broken) and ClusterVerificationPolicy "+
		"beside apply.", describe(n))
}

func TestAPictureOfManyResourcesStaysSmall(t *testing.T) {
	var many []live.Placed
	for i := range 500 {
		many = append(many, placed(fmt.Sprintf("a-policy-with-a-name-that-is-very-long-indeed-%d", i)))
	}
	p := pictureOf(ruledBy(many...))
	require.Less(t, p.Height, 700)
	boxes := p.Levels[len(p.Levels)-1].Boxes
	require.Len(t, boxes, maxBoxes+1)
	require.Equal(t, "and 494 more", boxes[maxBoxes].Short)
	require.Len(t, p.Levels[len(p.Levels)-1].Items, 500, "the list has all")
	require.LessOrEqual(t, len([]rune(boxes[0].Short)), maxBoxName)
	require.Contains(t, p.Describe, "and 494 more apply.")
}

func TestTheTimelineFitsItsWidth(t *testing.T) {
	at := now()
	tl := timelineOf([]verify.Stage{{Name: "late", Began: at.Add(90 * time.Millisecond), Duration: 10 * time.Millisecond},
		{Name: "first", Began: at, Duration: 50 * time.Millisecond}, {Name: "none", Began: at.Add(100 * time.Millisecond)}}, time.Second)
	require.Equal(t, []string{"first", "late", "none"}, []string{tl.Stages[0].Name, tl.Stages[1].Name, tl.Stages[2].Name})
	for _, s := range tl.Stages {
		require.GreaterOrEqual(t, s.X, timelineLabel)
		require.LessOrEqual(t, s.X+s.Width, tl.Width, s.Name)
	}
	require.Equal(t, timelineWidth/2, tl.Stages[0].Width)
}

func TestCountdownsNameTheLargestUnit(t *testing.T) {
	for left, want := range map[time.Duration]string{-time.Hour: "expired", 0: "expired", 30 * time.Second: "in 1 min", 90 * time.Minute: "in 1 h",
		50 * time.Hour: "in 2 days"} {
		require.Equal(t, want, countdown(left))
	}
}

func TestWithoutAReportNothingLooksAsIfNothingRan(t *testing.T) {
	unread, unreported, known := live.NamespaceStatus{Namespace: "a", Tenant: "t", Unread: true}, live.NamespaceStatus{Namespace: "b", Tenant: "t"},
		live.NamespaceStatus{Namespace: "c", Tenant: "u", Reported: true}
	m := clusterOf(live.Status{Namespaces: []live.NamespaceStatus{unread, unreported, known}}, Checked{}, "", 1, now())
	found := map[string]string{}
	for _, row := range m.Namespaces {
		found[row.Name] = row.Missing
	}
	for _, row := range m.Teams {
		found["team "+row.Name] = row.Missing
	}
	require.Equal(t, map[string]string{"a": "reports are not readable", "b": "no report", "c": "", "team t": "reports are not readable", "team u": ""}, found)
	unread.Tenant = "u"
	m = clusterOf(live.Status{Namespaces: []live.NamespaceStatus{unread, known}}, Checked{}, "", 1, now())
	require.Empty(t, m.Teams[0].Missing, "something is known of the team")
}

func TestTimesBelowAMillisecondAreNotZero(t *testing.T) {
	for took, want := range map[time.Duration]string{83_456 * time.Nanosecond: "83µs", 1_234_567 * time.Nanosecond: "1.235ms",
		1_234_567_891 * time.Nanosecond: "1.235s"} {
		require.Equal(t, want, rounded(took))
	}
	require.Equal(t, "83µs", timelineOf(nil, 83*time.Microsecond).Total)
}

func TestEqualConditionsAreOneRow(t *testing.T) {
	var list []live.Attention
	for i := range rowsOfPage + 5 {
		list = append(list,
			live.Attention{Source: policy.ObjectRef{Kind: "Verifier", Namespace: "shop", Name: fmt.Sprintf("v%d", i)}, Condition: "Ready", Reason: "Pending",
				Message: "Waiting for Landwaiter"})
	}
	list = append(list,
		live.Attention{Source: policy.ObjectRef{Kind: "Store", Namespace: "shop", Name: "s"}, Condition: "Ready", Reason: "Invalid", Message: "wrong"})
	rows := attentionRows(list)
	require.Len(t, rows, 2)
	require.Equal(t, rowsOfPage+5, rows[0].Count())
	require.Equal(t, []string{"Store shop/s"}, rows[1].Sources)
	source := shop("")
	source.status.Namespaces[0].Resources = list
	text := shown(t, siteOf(t, source), "/namespaces/shop")
	require.Contains(t, text, "105 resources, such as <bdi>Verifier shop/v0</bdi>")
	require.Contains(t, text, "and 5 more")
	require.Contains(t, text, `<th scope="row"><bdi>Store shop/s</bdi></th>`)
}

func TestAVerifierThatNoPolicyAsksForDoesNotSimplyApply(t *testing.T) {
	unused := placed("unused")
	unused.Unused = true
	require.Equal(t, "applies, but no policy asks for it", boxOf(ruledBy(unused), unused).Says)
}
