package live

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// failing returns the properties of a registry whose last image was refused so long ago.
func failing(registry string, ago time.Duration, answered string) map[string]any {
	last := today().Add(-ago)
	return map[string]any{v1beta1.PropertyRegistry: registry, v1beta1.PropertyCount: "12", v1beta1.PropertyFirst: last.Add(-time.Hour).Format(time.RFC3339),
		v1beta1.PropertyLast:  last.Format(time.RFC3339),
		v1beta1.PropertyImage: registry + "/app:1", v1beta1.PropertyRemediation: "ask", v1beta1.PropertyAnswered: answered}
}

func TestStatusSaysWhichRegistriesFailAndUntilWhen(t *testing.T) {
	for name, c := range map[string]struct {
		ago       time.Duration
		answered  string
		attention bool
		says      string
	}{
		"it fails": {time.Minute, "", true, "12 times since 2026-11-22T10:59:00Z, last 2026-11-22T11:59:00Z"},
		"it answers again": {2 * time.Minute, "2026-11-22T11:59:00Z", false,
			"12 times from 2026-11-22T10:58:00Z to 2026-11-22T11:58:00Z; decided again since 2026-11-22T11:59:00Z"},
		"nobody has asked for a while": {30 * time.Minute, "", false, "12 times from 2026-11-22T10:30:00Z to 2026-11-22T11:30:00Z; none since then"},
		"a ReplicaSet has yet to try":  {15 * time.Minute, "", true, "12 times since 2026-11-22T10:45:00Z, last 2026-11-22T11:45:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			s := statusOf(t, reads(t, nil, reportOf("team", "landwaiter-denied", "denied", "landwaiter",
				resultOf("error", "r.example.com did not\nanswer in time", "", failing("r.example.com", c.ago, c.answered)))), one("team"))
			n := s.Namespaces[0]
			require.Empty(t, n.Denied, "nothing is denied")
			require.Len(t, n.Undecided, 1)
			u := n.Undecided[0]
			require.Equal(t, c.says, u.When())
			require.Equal(t, []string{"images of r.example.com", "r.example.com did not answer in time", "r.example.com/app:1", "ask"},
				[]string{u.Of(), u.Reason, u.Image, u.Remediation})
			require.Equal(t, c.attention, s.NeedsAttention())
		})
	}
}

func TestRegistriesThatFailedLongAgoAreNotShownAndNoneIsOfAnotherNamespace(t *testing.T) {
	p := reads(t, nil,
		reportOf("team", "landwaiter-denied", "denied", "landwaiter", resultOf("error", "x", "", failing("old.example.com", 2*time.Hour, "")),
			resultOf("error", "x", "", failing("first.example.com", 10*time.Minute, "")),
			resultOf("error", "x", "", failing("*", time.Minute, ""))),
		reportOf("other", "landwaiter-denied", "denied", "landwaiter", resultOf("error", "x", "", failing("secret.example.com", time.Minute, ""))))
	registries := func(namespace verify.Namespace) (found []string) {
		for _, u := range statusOf(t, p, one(namespace)).Namespaces[0].Undecided {
			found = append(found, u.Of())
		}
		return found
	}
	require.Equal(t, []string{"images of other registries", "images of first.example.com"}, registries("team"))
	require.Equal(t, []string{"images of secret.example.com"}, registries("other"))
}

func TestOutagesAreThoseOfAllNamespacesThatLast(t *testing.T) {
	p := reads(t, nil,
		reportOf("a", "landwaiter-denied", "denied", "landwaiter", resultOf("error", "x", "", failing("r.example.com", time.Minute, "")),
			resultOf("error", "x", "", failing("-", time.Minute, "")),
			resultOf("error", "x", "", failing("back.example.com", 2*time.Minute, "2026-11-22T11:59:00Z")),
			resultOf("error", "x", "", failing("quiet.example.com", 30*time.Minute, ""))),
		reportOf("a", "landwaiter-running", "running", "landwaiter", resultOf("pass", "", "good", runsAs("r/good"))),
		reportOf("b", "landwaiter-denied", "denied", "landwaiter", resultOf("error", "x", "", failing("r.example.com", 15*time.Minute, "")),
			resultOf("error", "x", "", failing("back.example.com", 3*time.Minute, "")), resultOf("error", "x", "", failing("*", 3*time.Minute, ""))),
		reportOf("c", "landwaiter-denied", "denied", "landwaiter", resultOf("error", "x", "", failing("back.example.com", 30*time.Second, "")),
			resultOf("error", "x", "", failing("*", 5*time.Minute, "2026-11-22T11:59:00Z"))))
	found, rights, err := p.Outages(t.Context(), today())
	require.NoError(t, err)
	require.Empty(t, rights)
	var said []string
	for _, o := range found {
		said = append(said, strings.TrimSpace(string(o.Namespace)+" "+o.Registry+" "+o.Answered))
	}
	require.Equal(t, []string{"a r.example.com", "b r.example.com", "b back.example.com 2026-11-22T11:59:00Z", "b *", "c back.example.com"}, said)
}

func TestAHostThatDNSDoesNotKnowIsNoOutageUnlessItHasAnswered(t *testing.T) {
	said := func(remedy, answered string) string {
		properties := failing("r.example.com", time.Minute, answered)
		properties[v1beta1.PropertyRemedy] = remedy
		return statusOf(t, reads(t, nil, reportOf("team", "landwaiter-denied", "denied", "landwaiter", resultOf("error", "x", "", properties))), one("team")).
			Namespaces[0].Undecided[0].Of()
	}
	require.Equal(t, "images of r.example.com: no such host, is it spelt right?", said("NoSuchHost", ""))
	require.Equal(t, "images of r.example.com", said("NoSuchHost", "2026-11-22T11:59:30Z"))
	require.Equal(t, "images of r.example.com", said("DNS", ""))
	require.Equal(t, "images of r.example.com", said("run this", ""))
}
