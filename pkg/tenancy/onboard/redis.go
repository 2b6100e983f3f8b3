package onboard

import (
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// redisReads are the commands of a reader of verdicts: none lists keys, because SCAN shows
// the names of all keys regardless of the rules, and none writes.
const redisReads = "+get +strlen +ttl +exists +ping +hello +auth +select"

// RedisACL returns the commands that let a team read its part of Landwaiter's Redis, in the form of redis-cli.
// With existing namespaces it names each of them. Without, it names the home namespace, the listed namespaces and
// the prefix; that is only right if no other Tenant lists a namespace with that prefix.
//
// Keys are landwaiter:NAMESPACE:…, and no namespace has a colon in its name, so a pattern
// with a colon after the name reaches no other namespace.
func RedisACL(tenant *v1beta1.Tenant, existing []string) []string {
	user := tenant.Name
	if slices.Contains([]string{"default", "landwaiter"}, user) {
		// These users exist, and one of them is Landwaiter's own. No Tenant's name has an
		// underscore, so no Tenant has this one.
		user = "tenant_" + user
	}
	var patterns []string
	for _, namespace := range Namespaces(tenant, existing) {
		patterns = append(patterns, "~landwaiter:"+namespace+":*")
	}
	if prefix := tenant.Spec.NamespacePrefix; existing == nil && prefix != "" {
		patterns = append(patterns, "~landwaiter:"+prefix+"*:*")
	}
	return []string{"ACL SETUSER " + user + " reset on >PASSWORD " + strings.Join(patterns, " ") + " " + redisReads}
}
