//go:build e2e

package teams

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRedisRulesAreThoseOfTheTenantInTheCluster(t *testing.T) {
	w := installed(t)
	w.gone(t, "rules", "guest")
	w.add(t, "rules", "--set", "namespaces=rules-web", "--set", "namespacePrefix=rules-")
	require.Equal(t, "~landwaiter:rules:* ~landwaiter:rules-web:* ~landwaiter:rules-*:*", w.patterns(t, "rules"))

	w.add(t, "guest", "--set", "namespaces=rules-guest")
	require.Equal(t, "~landwaiter:rules:* ~landwaiter:rules-web:*", w.patterns(t, "rules"), "another Tenant lists a namespace with the prefix")

	r := w.program.Run(t, "", "tenant", "export", "nobody", "--format=redis-acl")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Stderr, "there is no Tenant nobody")
}

// patterns of keys in the rules of a Tenant.
func (w *installation) patterns(t *testing.T, tenant string) string {
	t.Helper()
	var found []string
	for _, word := range strings.Fields(w.program.Must(t, "tenant", "export", tenant, "--format=redis-acl")) {
		if strings.HasPrefix(word, "~") {
			found = append(found, word)
		}
	}
	return strings.Join(found, " ")
}
