//go:build e2e

package teams

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRedisRulesAreThoseOfTheTenantInTheCluster(t *testing.T) {
	add(t, "rules", "--namespace", "rules-web", "--prefix", "rules-")
	gone(t, "rules")
	require.Equal(t, "~landwaiter:rules:* ~landwaiter:rules-web:* ~landwaiter:rules-*:*", patterns(t, "rules"))

	add(t, "guest", "--namespace", "rules-guest")
	gone(t, "guest")
	require.Equal(t, "~landwaiter:rules:* ~landwaiter:rules-web:*", patterns(t, "rules"), "another Tenant lists a namespace with the prefix")

	r := try(t, "tenant", "redis-acl", "nobody")
	require.Equal(t, 64, r.code)
	require.Contains(t, r.stderr, "there is no Tenant nobody")
}

// patterns of keys in the rules of a Tenant.
func patterns(t *testing.T, tenant string) string {
	t.Helper()
	var found []string
	for _, word := range strings.Fields(must(t, "tenant", "redis-acl", tenant)) {
		if strings.HasPrefix(word, "~") {
			found = append(found, word)
		}
	}
	return strings.Join(found, " ")
}
