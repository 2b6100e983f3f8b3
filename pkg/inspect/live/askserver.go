package live

import (
	"cmp"
	"fmt"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// AskServer returns the command that asks the server about an image in a namespace by a dry run, "" for the home
// namespace of a Tenant, where no pod may run. The pod meets the Pod Security level restricted, which the namespaces of a
// Tenant enforce. It is that of config/restricted-pod.json. Without an image, the command has a placeholder.
func (s State) AskServer(namespace verify.Namespace, image string) string {
	if holder := tenantsOf(s.Objects).Holder(string(namespace)); holder != nil && holder.Spec.HomeNamespace == string(namespace) {
		return ""
	}
	return askServerIn(string(namespace), image)
}

// askServerIn is AskServer for a namespace that is not a home namespace, or for a placeholder.
func askServerIn(namespace, image string) string {
	return fmt.Sprintf(`kubectl run asked -n %s --image=%s --dry-run=server --override-type=json --overrides='%s'`, namespace,
		cmp.Or(image, "IMAGE"), restrictedPod)
}

// AskServerSomewhere is [State.AskServer] with a placeholder for the namespace.
func AskServerSomewhere() string { return askServerIn("NAMESPACE", "") }

const restrictedPod = `[{"op":"add","path":"/spec/securityContext","value":{"runAsNonRoot":true,"runAsUser":65532,` +
	`"seccompProfile":{"type":"RuntimeDefault"}}},` +
	`{"op":"add","path":"/spec/containers/0/securityContext","value":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}}]`
