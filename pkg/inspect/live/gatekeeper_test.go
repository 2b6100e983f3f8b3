package live

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// The label of a namespace is not all that exempts it: a constraint can leave it out, which not everybody may read.
func TestAListOfExemptNamespacesThatMayBeIncompleteSaysSo(t *testing.T) {
	const says = "exempt namespaces may be missing here, because you cannot list verifiedimages.constraints.gatekeeper.sh"
	for name, c := range map[string]struct {
		action string
		exempt bool
		all    bool
		want   bool
	}{
		"nobody may know":                {"", false, true, true},
		"nobody may know, one namespace": {"", false, false, false},
		"only the label is known":        {"", true, true, false},
		"constraints are read":           {"deny", false, true, false},
	} {
		scope := one("team")
		if c.all {
			scope = Scope{All: true}
		}
		scope.Action = func(string, map[string]string) (string, bool, []string) { return c.action, c.exempt, nil }
		said := strings.Join(statusOf(t, reads(t, nil), scope).Notes(), "\n")
		require.Equal(t, c.want, strings.Contains(said, says), "%s: %s", name, said)
	}
}

func TestWhatRunsInAnExemptNamespaceNeedsNoAttention(t *testing.T) {
	failing := reportOf("team", "landwaiter-running", "running", "landwaiter", resultOf("fail", "no signature", "bad", runsAs("r/bad")))
	broken := &v1beta1.Store{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "s"}}
	broken.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "False", Reason: "Invalid"}}
	tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "t"}, Spec: v1beta1.TenantSpec{HomeNamespace: "team"}}
	for name, c := range map[string]struct {
		objects   []client.Object
		action    string
		exempt    bool
		images    int
		says      string
		attention bool
	}{
		"no constraint":              {[]client.Object{failing}, "not asked", false, 0, "not asked: no constraint", true},
		"one that warns":             {[]client.Object{failing}, "warn", false, 0, "warn: admits pods", true},
		"one that denies":            {[]client.Object{failing}, "deny", false, 0, "deny: refuses pods", true},
		"a dry run":                  {[]client.Object{failing}, "dryrun", false, 0, "dryrun: admits pods", true},
		"exempt":                     {[]client.Object{failing}, "not asked", true, 0, "exempt: admits every pod", false},
		"exempt, a broken resource":  {[]client.Object{failing, broken}, "not asked", true, 0, "exempt: ", false},
		"exempt, the home of a team": {[]client.Object{failing, broken, tenant}, "not asked", true, 0, "exempt: ", true},
		"nobody may know":            {[]client.Object{failing}, "", false, 0, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			scope := one("team")
			scope.Action = func(string, map[string]string) (string, bool, []string) {
				return c.action, c.exempt, make([]string, c.images)
			}
			s := statusOf(t, reads(t, nil, c.objects...), scope)
			require.Contains(t, s.Namespaces[0].GatekeeperDoes(), c.says)
			require.Equal(t, c.attention, s.NeedsAttention())
			require.False(t, s.Unknown(), "a team need not read constraints")
		})
	}
}

func TestStatusSaysWhetherBreakGlassOpensANamespace(t *testing.T) {
	at := func(hours int) string { return today().Add(time.Duration(hours) * time.Hour).Format(time.RFC3339) }
	glass := func(from, until string) map[string]string {
		return map[string]string{v1beta1.AnnotationBreakGlassFrom: from, v1beta1.AnnotationBreakGlassUntil: until,
			v1beta1.AnnotationBreakGlassReason: "OPS-1\nthe registry is down"}
	}
	day := Limit{Known: true, Most: 24 * time.Hour}
	for name, c := range map[string]struct {
		annotations map[string]string
		limit       Limit
		says        string // "" if there is nothing to say
		attention   bool
	}{
		"none": {nil, day, "", false},
		"open": {glass(at(-1), at(1)), day, "open: allows every image that no mandatory policy denies until " + at(1) +
			" (OPS-1 the registry is down)", true},
		"it begins later": {glass(at(1), at(2)), day, "planned: allows every image that no mandatory policy denies from " + at(1) + " until " + at(2) +
			" (OPS-1 the registry is down)", false},
		"it has ended":      {glass(at(-2), at(-1)), day, "", false},
		"it lasts too long": {glass(at(-1), at(48)), day, "off: it lasts 49h0m0s, and --break-glass is 24h0m0s; let it end earlier", true},
		"serve ignores it":  {glass(at(-1), at(1)), Limit{Known: true}, "off: serve runs without --break-glass; ask a cluster admin", true},
		"nobody knows about serve": {glass(at(-1), at(1)), Limit{Why: "you cannot list deployments"},
			"possibly open: if serve runs with --break-glass, allows every image that no mandatory policy denies until " + at(1) +
				" (OPS-1 the registry is down); whether it does is unknown: you cannot list deployments", true},
		"no end": {map[string]string{v1beta1.AnnotationBreakGlassReason: "x"}, day, "off: ", true},
	} {
		t.Run(name, func(t *testing.T) {
			scope := one("shop")
			scope.BreakGlass = c.limit
			s := statusOf(t, reads(t, nil, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: c.annotations}}), scope)
			require.Equal(t, c.attention, s.NeedsAttention())
			if c.says == "" {
				require.Nil(t, s.Namespaces[0].BreakGlass)
				return
			}
			require.Contains(t, s.Namespaces[0].BreakGlass.String(), c.says)
		})
	}
	mandatory := glass(at(-1), at(1))
	mandatory[v1beta1.AnnotationBreakGlassOverrideMandatory] = "true"
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: mandatory}}
	require.Contains(t, breakGlassOf(n, day, today()).String(), "open: allows every image until ")
}
