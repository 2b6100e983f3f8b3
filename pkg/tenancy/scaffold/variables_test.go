package scaffold

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Each line is as Flux replaces it.
func TestVariablesAreReplacedAsByFlux(t *testing.T) {
	variables := map[string]string{"env": "production", "empty": ""}
	for text, want := range map[string]string{
		"${env}": "production", "${env:-staging}": "production", "${empty}": "", "${none}": "",
		"${none:-staging}": "staging", "${none:=staging}": "staging", "${none=staging}": "staging", "${none:?staging}": "staging", "${none:+staging}": "staging",
		"${empty:-staging}": "staging", "${none:-}": "", "${none:-${env}}": "production", "${none:-a-${empty:-b}c}": "a-bc",
		"$${env}": "${env}", "$env": "$env", "a/${none:-x/y}/b": "a/x/y/b",
		"${none-staging}": "${none-staging}", // Flux refuses it
	} {
		require.Equal(t, want, substitute(text, variables), text)
		require.GreaterOrEqual(t, replacedSize(text, variables), len(want), text)
	}
}

func TestAPathWithTheDefaultOfAVariableIsFollowed(t *testing.T) {
	for _, variable := range []string{"${env:-staging}", "${env:=staging}", "${env=staging}"} {
		dir := small(t)
		entry := step{"entry", "./entry", nil, object{"wait": false, "postBuild": object{"substitute": object{"other": "a"}}}}
		put1(t, dir, "clusters/staging/entry.yaml", document("", entry.object()))
		put1(t, dir, "entry/apps.yaml", document("", step{"apps", "./apps/" + variable, nil, nil}.object()))
		put1(t, dir, "apps/staging/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n")
		report, err := Check(t.Context(), dir, CheckOptions{})
		require.NoError(t, err)
		require.Empty(t, report.Findings, variable)
	}
}
