//go:build e2e

package teams

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTwoHundredAndOneTeamsInOneLoopTwice(t *testing.T) {
	const teams = 201
	names := make([]string, teams)
	for i := range names {
		names[i] = fmt.Sprintf("team-%03d", i)
	}
	gone(t, names[0], names[100], names[200])
	loop := func() (created, changed int) {
		began := time.Now()
		for _, name := range names {
			a := add(t, green(name)...)
			created, changed = created+a.Created, changed+a.Changed
		}
		t.Logf("%d teams: %d objects created, %d changed in %s, %s a team", teams, created, changed, time.Since(began).Round(time.Second), (time.Since(began) / teams).Round(time.Millisecond))
		return created, changed
	}
	created, _ := loop()
	require.Greater(t, created, 15*teams)
	before := map[string]map[string]string{}
	for _, name := range names {
		before[name] = versions(objectsOf(t, name))
	}
	created, changed := loop()
	require.Zero(t, created+changed, "the second time nothing changes")
	for _, name := range names {
		require.Equal(t, before[name], versions(objectsOf(t, name)), name)
	}

	// One of them goes, and nothing of it is left.
	must(t, "tenant", "delete", names[100], "--delete-namespaces", "--yes")
	require.Empty(t, objectsOf(t, names[100]))
	require.False(t, exists(t, names[100]))
	require.False(t, exists(t, names[100]+"-web"))
	for _, name := range names {
		if name != names[100] {
			require.Equal(t, before[name], versions(objectsOf(t, name)), "%s is not touched", name)
		}
	}
	var list struct{ Tenants []struct{ Name string } }
	require.NoError(t, json.Unmarshal([]byte(must(t, "tenant", "list", "-o", "json")), &list))
	require.Len(t, list.Tenants, teams-1)
	require.False(t, strings.Contains(must(t, "tenant", "list"), names[100]))
}
