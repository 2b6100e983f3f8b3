package operator

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// notPermitted matches the API server's message about a missing permission. A policy or a guardrail has another
// message.
var notPermitted = regexp.MustCompile(`User "[^"]*" cannot (\w+) resource "([^"]+)"(?: in API group "([^"]*)")?`)

// escalation is its message about binding a role with more permissions than one's own.
const escalation = "is attempting to grant RBAC permissions not currently held"

// lacks records in the last problem that the caller lacks a permission, if so. Would is the predicted result for the
// object.
func (r *Report) lacks(err error, would Result) {
	last := &r.Problems[len(r.Problems)-1]
	if right := missingRight(err); right != "" {
		last.lacks, last.would = right, would
	} else if strings.Contains(err.Error(), escalation) {
		last.lacks, last.would = "bind roles with more permissions than your own", would
	}
}

// missingRight returns the permission that the API server's message says is missing, "" for another message.
func missingRight(err error) string {
	match := notPermitted.FindStringSubmatch(err.Error())
	if match == nil {
		return ""
	}
	return strings.TrimSuffix(match[1]+" "+match[2]+"."+match[3], ".")
}

// incomparable says which objects could not be compared with the Tenant, because a dry run requires the
// permission to write.
func (c *checker) incomparable(problems []Problem) {
	for _, p := range problems {
		if p.lacks != "" && p.would == "" && !slices.Contains(c.lacking, p.lacks) {
			c.lacking = append(c.lacking, p.lacks)
		}
	}
}

// unchecked returns the checks that were not possible, and the objects that Check could not compare, with all
// permissions together.
func (c *checker) unchecked() []resource.Unchecked {
	if len(c.lacking) == 0 {
		return c.skipped
	}
	slices.Sort(c.lacking)
	missing := strings.Join(c.lacking, ", ")
	return append(c.skipped, resource.Unchecked{IDs: []string{findingDrift}, Missing: missing, Role: "cluster-admin",
		Why: fmt.Sprintf("what a Tenant stands for is compared by dry runs, which need permissions to write, and you cannot %s; ask somebody "+
			"with ClusterRole cluster-admin to run it", missing)})
}
