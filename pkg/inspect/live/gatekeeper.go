package live

import (
	"fmt"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// DoesToExempt is Gatekeeper's action in an exempt namespace.
const DoesToExempt = "admits every pod, without asking Landwaiter"

// GatekeeperDoes says in a sentence what Gatekeeper does with a pod whose image is not allowed, "" if
// that is unknown.
func (n NamespaceStatus) GatekeeperDoes() string {
	if n.Exempt {
		return "exempt: " + DoesToExempt
	}
	switch n.Gatekeeper {
	case "":
		return ""
	case "deny":
		return "deny: refuses pods whose images are not allowed" + n.ButNotFor()
	case "warn":
		return "warn: admits pods whose images are not allowed, with a warning" + n.ButNotFor()
	case "dryrun":
		return "dryrun: admits pods whose images are not allowed, and reports them" + n.ButNotFor()
	}
	return "not asked: no constraint matches all pods of the namespace"
}

// exemptImages adds the entries of exemptImages, and marks the containers that run because of them.
func (n *NamespaceStatus) exemptImages(entries []string, leftOut func(entries []string, image string) bool) {
	n.ExemptImages, n.exempted = len(entries), entries
	if leftOut == nil {
		return
	}
	for i := range n.Running {
		if n.Running[i].Result != v1beta1.ReportFail {
			continue
		}
		image := n.Running[i].Image
		written := strings.TrimSuffix(image, ":latest") // reports have the tag that few people write
		at := slices.IndexFunc(entries, func(entry string) bool {
			one := []string{entry}
			return leftOut(one, image) || leftOut(one, written)
		})
		if at >= 0 {
			n.Running[i].ExemptImage = shown(entries[at])
		}
	}
}

// ButNotFor counts and names the images that are never verified, as the end of a sentence, "" if there are none.
func (n NamespaceStatus) ButNotFor() string {
	if n.ExemptImages == 0 {
		return ""
	}
	count := "1 exempt image or path"
	if n.ExemptImages > 1 {
		count = fmt.Sprintf("%d exempt images or paths", n.ExemptImages)
	}
	names := ""
	if first := n.exempted[:min(len(n.exempted), maxExempted)]; len(first) > 0 {
		names = ": " + shown(strings.Join(first, ", "))
		if more := len(n.exempted) - len(first); more > 0 {
			names += fmt.Sprintf(", and %d more", more)
		}
	}
	return ", but not for " + count + " (exemptImages of the constraint" + names + ")"
}
