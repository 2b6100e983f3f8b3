package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/inspect/isolation"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
)

// shopStatus is the example of docs/teams/denied.md.
func shopStatus() live.Status {
	return live.Status{Namespaces: []live.NamespaceStatus{{
		Namespace: "iris-web", Counts: map[string]int{"pass": 3, "fail": 1}, Reported: true,
		Rules: []live.Choice{{Kind: v1beta1.KindVerificationPolicy, Level: resolve.LevelCluster,
			Applied: []policy.ObjectRef{{Kind: "ClusterVerificationPolicy", Name: "signed"}}}},
		Contacts: []live.Contact{{Of: policy.ObjectRef{Kind: "Tenant", Name: "iris"}, Contact: "#iris on chat.example.com"},
			{Of: policy.ObjectRef{Kind: "ClusterVerificationPolicy", Name: "signed"}, Contact: "security@example.com"}},
		Running: []live.Running{{Workload: "Deployment/cart", Image: "registry.example.com/iris/cart:2", Result: "fail", Since: "2026-11-20T10:00:00Z",
			Looked:      "2026-11-21T17:10:00Z",
			Reason:      "ClusterVerificationPolicy signed requires a valid signature for release: no key of ClusterTrustStore keys verifies the signature",
			Remediation: "sign the image with a key of ClusterTrustStore keys", Contact: "security@example.com",
			Command: "cosign sign --key KEY --use-signing-config=false --tlog-upload=false registry.example.com/iris/cart@sha256:…"}},
		Denied: []live.Denial{{Image: "registry.example.com/iris/shop:1", Count: 12, First: "2026-11-21T09:00:00Z", Last: "2026-11-21T17:04:00Z",
			Workloads: []string{"Deployment/shop"},
			Reason: "ClusterVerificationPolicy signed requires a valid signature for release: no signature was found (looked at the tag sha256-….sig and the " +
				"referrers of this digest)",
			Command: "cosign sign --key KEY --use-signing-config=false --tlog-upload=false registry.example.com/iris/shop@sha256:…", Contact: "security@example.com"},
			{Image: "registry.example.com/iris/cart:3", Count: 4, First: "2026-11-20T08:00:00Z", Last: "2026-11-20T08:10:00Z", Reason: "no signature was found",
				Remediation: "sign it",
				Allowed:     "2026-11-20T08:12:00Z"}},
	}}}
}

func TestStatusPrintsWhatAPersonLooksFor(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, show(&out, printableStatus(shopStatus())))
	page, err := os.ReadFile("../../docs/teams/denied.md")
	require.NoError(t, err)
	require.Contains(t, string(page), "\n```text\n"+out.String()+"```\n", "docs/teams/denied.md should show:\n%s", out.String())
}

func TestStatusShowsAnOutageFirstAndWhenItIsOver(t *testing.T) {
	status := shopStatus()
	status.Namespaces[0].Undecided = []live.Undecided{
		{Registry: "registry.example.com", Count: 12, First: "2026-11-21T17:00:00Z", Last: "2026-11-21T17:04:00Z", Image: "registry.example.com/iris/shop:2",
			Reason: "registry.example.com did not answer in time", Remediation: "landwaiter verify"},
		{Registry: "*", Count: 1, First: "2026-11-21T17:00:00Z", Last: "2026-11-21T17:00:00Z", Answered: "2026-11-21T17:02:00Z", Over: true,
			Reason: "quay.io did not answer in time", Remediation: "never shown"}}
	var out bytes.Buffer
	require.NoError(t, show(&out, printableStatus(status)))
	require.Contains(t, out.String(), `
UNDECIDED IN THE LAST HOUR
images of registry.example.com
    12 times since 2026-11-21T17:00:00Z, last 2026-11-21T17:04:00Z; last image registry.example.com/iris/shop:2
    registry.example.com did not answer in time
    To fix: landwaiter verify
images of other registries
    once from 2026-11-21T17:00:00Z to 2026-11-21T17:00:00Z; decided again since 2026-11-21T17:02:00Z
    quay.io did not answer in time

RUNS
`)
	over := live.Status{Namespaces: []live.NamespaceStatus{{Namespace: "a", Undecided: status.Namespaces[0].Undecided[1:]}}}
	require.NoError(t, statusExit(over))
	over.Namespaces[0].Undecided[0].Over = false
	require.Error(t, statusExit(over))
}

func TestStatusOfManyNamespacesShowsWhatNeedsAttentionAndTotals(t *testing.T) {
	status := live.Status{
		Resources: []live.Attention{{Source: policy.ObjectRef{Kind: "ClusterVerifier", Name: "idle"}, Condition: v1beta1.ConditionEffective, Reason: "Overridden"}}}
	for i := range 200 {
		status.Namespaces = append(status.Namespaces,
			live.NamespaceStatus{Namespace: verify.Namespace(fmt.Sprintf("n%03d", i)), Counts: map[string]int{"pass": 2}, Reported: i > 0, BreakGlass: nil})
	}
	status.Namespaces[1].Exempt, status.Namespaces[1].Running, status.Namespaces[1].Counts = true,
		[]live.Running{{Result: "fail", Workload: "Deployment/w", Image: "old:1"}}, map[string]int{"fail": 1}
	status.Namespaces[2].Counts = map[string]int{"pass": 1, "skip": 3}
	status.Namespaces[2].Unverified = []live.Running{
		{Result: "skip", Workload: "Deployment/base", Image: "base:1", Reason: "allowed without verification: rule 1 of VerificationPolicy n002/base"}}
	status.Namespaces[7].BreakGlass = &live.BreakGlass{State: live.BreakGlassOpen, Until: "2026-11-30T10:00:00Z", Reason: "OPS-1"}
	status.Namespaces[7].Gatekeeper = "deny"
	printed := printableStatus(status)
	printed.brief = true
	var out bytes.Buffer
	require.NoError(t, show(&out, printed))
	require.Equal(t, `NAMESPACE n007
break-glass  open: allows every image that no mandatory policy denies until 2026-11-30T10:00:00Z (OPS-1)
running      2 pass
gatekeeper   deny: refuses pods whose images are not allowed
mandatory    -

NAMESPACES WITHOUT PROBLEMS: 199
running       395 pass, 3 not verified
not verified  n002 (3): rules allow these images without a look at signatures
exempt        n001: Gatekeeper admits every pod, without asking Landwaiter

RUNS WITHOUT VERIFICATION
NAMESPACE  WORKLOAD         IMAGE   WHY
n002       Deployment/base  base:1  allowed without verification: rule 1 of VerificationPolicy n002/base

RUNS IN EXEMPT NAMESPACES
NAMESPACE  RESULT  WORKLOAD      IMAGE
n001       fail    Deployment/w  old:1

RESOURCES OF THE CLUSTER
RESOURCE              CONDITION      REASON      MESSAGE
ClusterVerifier idle  not Effective  Overridden  -
note: namespace n000 has no report yet
`, out.String())

	out.Reset()
	only := printed.problems()
	require.NoError(t, show(&out, only))
	require.Len(t, only.Namespaces, 1)
	require.NotContains(t, out.String(), "idle")
	require.NotContains(t, out.String(), "WITHOUT PROBLEMS")
	status.Namespaces[7].BreakGlass, status.Namespaces[0].Reported = nil, true
	out.Reset()
	require.NoError(t, show(&out, printableStatus(status).problems()))
	require.Equal(t, "nothing needs attention\n", out.String())
	require.NoError(t, statusExit(status), "what runs in an exempt namespace does not count")
}

func TestStatusSaysWhatIsNotKnown(t *testing.T) {
	status := shopStatus()
	status.Namespaces[0].Rules = []live.Choice{{Kind: v1beta1.KindVerificationPolicy, Level: live.LevelUnknown},
		{Kind: v1beta1.KindClusterVerificationPolicy, Level: live.LevelUnknown}}
	status.Namespaces[0].Ignored, status.Namespaces[0].Cut = 2, true
	status.NoReports = true
	status.Rights = []live.Right{{Verb: "list"}}
	var out bytes.Buffer
	require.NoError(t, show(&out, printableStatus(status)))
	for _, text := range []string{"not known  VerificationPolicy: you cannot read all", "mandatory  not known", "note: the cluster has no reports",
		"someone else wrote or changed are not shown: 2", "not all of its reports were read", "not shown: you cannot list"} {
		require.Contains(t, out.String(), text)
	}
}

func TestStatusExitsByWhatNeedsAttentionAndElseByWhatItCouldRead(t *testing.T) {
	code := func(err error) int {
		if err == nil {
			return program.ExitOK
		}
		var exit *program.Exit
		require.ErrorAs(t, err, &exit)
		return exit.Code
	}
	calm := live.Status{Namespaces: []live.NamespaceStatus{{Namespace: "a"}}}
	blind := live.Status{Rights: []live.Right{{Verb: "list"}}}
	require.Equal(t, program.ExitOK, code(statusExit(calm)))
	require.Equal(t, program.ExitDenied, code(statusExit(shopStatus())))
	require.Equal(t, program.ExitUndecided, code(statusExit(blind)))
	require.Equal(t, program.ExitUndecided, code(statusExit(live.Status{Namespaces: []live.NamespaceStatus{{Namespace: "a", Cut: true}}})))
	require.Equal(t, program.ExitUndecided, code(statusExit(live.Status{Missing: []verify.Namespace{"gone"}})))
}

func TestIsolationPrintsHolesForEverybodyAndWhatHeldOnce(t *testing.T) {
	results := []isolation.Result{
		{Case: "other-secrets", Tries: "read Secrets", Tenant: "a", Other: "b", Who: "admin Group x", Outcome: isolation.Held, By: []string{"RBAC"}},
		{Case: "other-secrets", Tries: "read Secrets", Tenant: "a", Other: "b", Who: "viewer Group y", Outcome: isolation.NotHeld, Why: "may get secrets",
			Fix: "take it away"},
		{Case: "own-labels", Tries: "change labels", Tenant: "a", Who: "admin Group x", Outcome: isolation.Held, By: []string{"RBAC"}},
		{Case: "own-labels", Tries: "change labels", Tenant: "a", Who: "viewer Group y", Outcome: isolation.Held, By: []string{"RBAC", "guardrail g"}},
		{Case: "team-people", Tenant: "a", Outcome: isolation.NotTried, Why: "nobody", Fix: "name somebody"},
	}
	var out bytes.Buffer
	printed := printedFindings{Checked: printedChecked{Cases: printableCases(results)}}
	printed.Findings, printed.Unchecked = isolation.Findings(results)
	require.NoError(t, show(&out, printed))
	text := strings.Join(strings.Fields(out.String()), " ")
	require.Contains(t, text, "own-labels a change labels: RBAC, guardrail g")
	require.Contains(t, text, "3 held, 1 not held, 1 not tried; nothing was written")
	require.Contains(t, text, "error other-secrets: Tenant a: viewer Group y: may get secrets. fix: take it away")
	require.Contains(t, text, "not checked: nobody; name somebody: team-people")
	require.Contains(t, text, "5 cases checked, 1 finding, 1 kind not checked")
	require.Equal(t, []string{}, printed.Checked.Cases[4].By, "lists are never null")
	object, err := json.Marshal(printed)
	require.NoError(t, err)
	require.NotContains(t, string(object), `"shows"`, "ids of requirements mean nothing to who reads this")
}

func TestCheckRefusesFlagsThatMeanNothing(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"a person of no team":             {[]string{"--isolation", "--person", "dan"}, "require --tenant"},
		"a team that is its own other":    {[]string{"--isolation", "--tenant", "a", "--other", "a"}, "must differ"},
		"a group without isolation":       {[]string{"--group", "x"}, "require --isolation"},
		"an other team, and no isolation": {[]string{"--other", "a"}, "require --isolation"},
		"one Tenant and all of them":      {[]string{"--tenant", "a", "--tenants"}, "cannot be used together"},
		"all Tenants, which is usual":     {[]string{"--isolation", "--tenants"}, "leave out --tenants"},
		"files and a cluster":             {[]string{"--tenant", "a", "x.yaml"}, "files are checked without a cluster"},
		"a namespace of files, and none":  {[]string{"--cluster-resource-namespace", "a"}, "requires files"},
	} {
		var out, errs bytes.Buffer
		require.Equal(t, program.ExitUsage, run(t.Context(), append([]string{"check"}, c.args...), &out, &errs), name)
		require.Contains(t, errs.String(), c.says, name)
	}
}
