package check

import (
	"fmt"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// ShortNames is the finding about nodes that may use another image than the verified one.
const ShortNames = "ShortNames"

// shortNames finds nodes whose runtime searches a list of registries for names without a host. The
// list is in a file of the node, which the API does not expose.
func shortNames(v *view, add func(resource.Finding)) {
	var nodes []string
	for _, n := range v.Nodes {
		if strings.HasPrefix(n.Status.NodeInfo.ContainerRuntimeVersion, "cri-o://") {
			nodes = append(nodes, n.Name)
		}
	}
	if len(nodes) == 0 {
		return
	}
	add(resource.Finding{ID: ShortNames, Severity: resource.Note, Object: policy.ObjectRef{Kind: "Node", Name: nodes[0]},
		Message: fmt.Sprintf("CRI-O is the container runtime of %d nodes: %s", len(nodes), named(nodes)),
		Why:     "Landwaiter verifies an image without a host, such as nginx, at Docker Hub; CRI-O may pull it from other registries first",
		Keep:    `unqualified-search-registries = ["docker.io"] in /etc/containers/registries.conf on every node; check cannot read that file`})
}
