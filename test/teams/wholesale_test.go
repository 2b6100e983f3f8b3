//go:build nightly

package teams

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// make nightly has 201 teams; their loops take minutes.
func TestManyTeamsInOneLoopTwice(t *testing.T) {
	w := installed(t)
	teams := 8
	if text := os.Getenv("LANDWAITER_TEAMS"); text != "" {
		var err error
		teams, err = strconv.Atoi(text)
		require.NoError(t, err, "LANDWAITER_TEAMS")
	}
	one := teams / 2
	names := make([]string, teams)
	for i := range names {
		names[i] = fmt.Sprintf("team-%03d", i)
	}
	w.gone(t, names...)
	loop := func() (created, changed int) {
		began := time.Now()
		for _, name := range names {
			a := w.add(t, typical(name)...)
			created, changed = created+a.Created, changed+a.Changed
		}
		t.Logf("%d teams: %d objects created, %d changed in %s, %s a team", teams, created, changed, time.Since(began).Round(time.Second),
			(time.Since(began) / time.Duration(teams)).Round(time.Millisecond))
		return created, changed
	}
	created, _ := loop()
	require.Greater(t, created, 15*teams)
	before := map[string]map[string]string{}
	for _, name := range names {
		before[name] = resourceVersions(w.objectsOf(t, name))
	}
	created, changed := loop()
	require.Zero(t, created+changed, "the second time nothing changes")
	for _, name := range names {
		require.Equal(t, before[name], resourceVersions(w.objectsOf(t, name)), name)
	}

	// One of them goes, and nothing of it is left.
	w.program.Must(t, "tenant", "delete", names[one], "--delete-namespaces", "--yes")
	require.Empty(t, w.objectsOf(t, names[one]))
	require.False(t, w.exists(t, names[one]))
	require.False(t, w.exists(t, names[one]+"-web"))
	for _, name := range names {
		if name != names[one] {
			require.Equal(t, before[name], resourceVersions(w.objectsOf(t, name)), "%s is not touched", name)
		}
	}
	var list struct{ Tenants []struct{ Name string } }
	require.NoError(t, json.Unmarshal([]byte(w.program.Must(t, "tenant", "list", "-o", "json")), &list))
	listed := map[string]bool{}
	for _, found := range list.Tenants {
		listed[found.Name] = true
	}
	for _, name := range names {
		require.Equal(t, name != names[one], listed[name], name)
	}
	require.False(t, strings.Contains(w.program.Must(t, "tenant", "list"), names[one]))
}
