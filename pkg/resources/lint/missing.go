package lint

import (
	"regexp"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// isMissing reports whether a problem is that a referenced object is missing.
func isMissing(reason policy.Reason) bool {
	return reason == policy.ReasonNotFound || reason == policy.ReasonNotDelegated
}

// inFiles says that only the files lack an object.
var inFiles = strings.NewReplacer( //nolint:gochecknoglobals // a replacer does not change
	" does not exist; create the namespace", " is not in the files", " which does not exist among", " which the files do not have among",
	" does not exist", " is not in the files",
	"no ClusterException delegates", "no ClusterException in the files delegates",
)

// elsewhere matches problems with objects that their creators only keep in the cluster, such as Secrets.
var elsewhere = regexp.MustCompile(`\b(Secret|ConfigMap) \S+ does not exist`)

// missing matches a problem about a resource that does not exist: its kind and name.
var missing = regexp.MustCompile(`\b((?:Cluster)?(?:TrustStore|Verifier)) (?:[\w.-]+/)?([\w.-]+),?(?: which)? does not exist`)

// misspelt returns the name in the files that is most similar to one that does not exist.
func (c *checker) misspelt(p resource.Problem) (string, bool) {
	found := missing.FindStringSubmatch(p.Message)
	if found == nil || p.Reason != policy.ReasonNotFound {
		return "", false
	}
	kinds := []string{found[1]}
	if found[1] == "Verifier" && (p.Source.Namespace == "" || !c.has("Verifier", p.Source.Namespace)) {
		kinds = append(kinds, "ClusterVerifier") // a policy names both kinds in the same way
	}
	var names []string
	for ref := range c.places {
		if slices.Contains(kinds, ref.Kind) && (ref.Namespace == p.Source.Namespace || ref.Namespace == "") {
			names = append(names, ref.Name)
		}
	}
	slices.Sort(names)
	return policy.Nearest(found[2], names)
}

// missing decides whether the files are at fault for a missing object of any kind: only if they have
// everything that the cluster has. If a name in the files is similar, it is most likely the intended one.
func (c *checker) missing(p resource.Problem) resource.Severity {
	_, near := c.misspelt(p)
	switch {
	case p.Source.Kind == v1beta1.KindTenant, elsewhere.MatchString(p.Message): // its home namespace may be in another repository
		return resource.Note
	case c.whole:
		return resource.Error
	case near:
		return resource.Warning
	}
	return resource.Note
}
