package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestADryRunOfTenantAddSaysWould(t *testing.T) {
	const result = `"tenants": [{"tenant": "iris", "home": "iris", "members": ["iris", "iris-web"], "created": 1, "changed": 1, "unchanged": 2, "removed": 1, "released": 1,
		"objects": [{"object": {"kind": "Namespace", "name": "iris-web"}, "result": "created"}, {"object": {"kind": "Tenant", "name": "iris"}, "result": "changed"},
			{"object": {"kind": "Namespace", "name": "iris"}, "result": "unchanged"}]}]}`
	for name, c := range map[string]struct{ json, want string }{
		"a dry run": {`{"dryRun": true, ` + result, `OBJECT              RESULT
Namespace iris-web  would be created
Tenant iris         would be changed
tenant iris: home iris, 1 namespace, 4 objects: 1 would be created, 1 would be changed, 2 would stay as they are, 1 would be removed, 1 would be released
`},
		"no dry run": {`{` + result, `OBJECT              RESULT
Namespace iris-web  created
Tenant iris         changed
tenant iris: home iris, 1 namespace, 4 objects: 1 created, 1 changed, 2 as they were, 1 removed, 1 released
`},
	} {
		t.Run(name, func(t *testing.T) {
			var added printedAdded
			require.NoError(t, json.Unmarshal([]byte(c.json), &added))
			var out bytes.Buffer
			require.NoError(t, added.print(&out))
			require.Equal(t, c.want, out.String())
		})
	}
}
