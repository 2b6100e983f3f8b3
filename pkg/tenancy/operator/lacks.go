package operator

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// notPermitted matches what the API server says to somebody without a permission. A policy that refuses a request, or a
// guardrail, says something else.
var notPermitted = regexp.MustCompile(`User "[^"]*" cannot (\w+) resource "([^"]+)"(?: in API group "([^"]*)")?`)

// escalation is what it says to somebody who binds a role with more permissions than their own.
const escalation = "is attempting to grant RBAC permissions not currently held"

// lacks notes that the last problem is one of the permissions of whoever asks, if it is. Would is what would have become
// of the object.
func (r *Report) lacks(err error, would Result) {
	last := &r.Problems[len(r.Problems)-1]
	if match := notPermitted.FindStringSubmatch(err.Error()); match != nil {
		last.lacks, last.would = strings.TrimSuffix(match[1]+" "+match[2]+"."+match[3], "."), would
	} else if strings.Contains(err.Error(), escalation) {
		last.lacks, last.would = "bind roles with more permissions than your own", would
	}
}

// incomparable says what could not be compared with the Tenant, because a dry run takes the permission to write.
func (c *checker) incomparable(problems []Problem) {
	for _, p := range problems {
		if p.lacks != "" && p.would == "" && !slices.Contains(c.lacking, p.lacks) {
			c.lacking = append(c.lacking, p.lacks)
		}
	}
}

// unchecked returns what Check could not compare, all permissions at once.
func (c *checker) unchecked() []resource.Unchecked {
	if len(c.lacking) == 0 {
		return nil
	}
	slices.Sort(c.lacking)
	missing := strings.Join(c.lacking, ", ")
	return []resource.Unchecked{{IDs: []string{findingDrift}, Missing: missing, Role: "cluster-admin",
		Why: fmt.Sprintf("what a Tenant stands for is compared by dry runs, which need permissions to write, and you cannot %s; ask somebody with ClusterRole cluster-admin to run it", missing)}}
}
