package live

// DoesToExempt is what Gatekeeper does in a namespace that is exempt.
const DoesToExempt = "admits every pod, without asking Landwaiter"

// GatekeeperDoes says in a sentence what Gatekeeper does about a pod whose image is not allowed, "" if
// that is not known.
func (n NamespaceStatus) GatekeeperDoes() string {
	if n.Exempt {
		return "exempt: " + DoesToExempt
	}
	switch n.Gatekeeper {
	case "":
		return ""
	case "deny":
		return "deny: refuses pods whose images are not allowed"
	case "warn":
		return "warn: admits pods whose images are not allowed, with a warning"
	case "dryrun":
		return "dryrun: admits pods whose images are not allowed, and reports them"
	}
	return "not asked: no constraint matches all pods of the namespace"
}
