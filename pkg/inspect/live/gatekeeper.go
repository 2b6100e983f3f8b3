package live

import "fmt"

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

// ButNotFor counts the images that are never verified, as the end of a sentence, "" if there are none.
func (n NamespaceStatus) ButNotFor() string {
	switch n.ExemptImages {
	case 0:
		return ""
	case 1:
		return ", but not for 1 exempt image or path (exemptImages of the constraint)"
	}
	return fmt.Sprintf(", but not for %d exempt images or paths (exemptImages of the constraint)", n.ExemptImages)
}
