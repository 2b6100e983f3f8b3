package live

import (
	"fmt"
	"slices"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Nowhere names objects of the change that are in, or name, namespaces that would not exist, one line for each
// namespace. After must have all namespaces. A Tenant creates its own.
func (c Change) Nowhere(after State) (lines []string) {
	var names []string
	for i := range after.Objects.Namespaces {
		names = append(names, after.Objects.Namespaces[i].Name)
	}
	tell := func(object v1beta1.Object, says, namespace string) {
		if namespace == "" || namespace == v1beta1.EveryNamespace || slices.Contains(names, namespace) || len(lines) >= maxNamed {
			return
		}
		line := fmt.Sprintf("%s %s namespace %s, which does not exist, so it counts for nothing there", resource.RefOf(object), says, namespace)
		if near, ok := policy.Nearest(namespace, names); ok {
			line += "; did you mean " + near + "?"
		}
		lines = append(lines, line)
	}
	for _, object := range c.Objects.Resources {
		tell(object, "is in", object.GetNamespace())
		var named []string
		switch o := object.(type) {
		case *v1beta1.ClusterException:
			named = o.Spec.Namespaces
		case *v1beta1.ClusterQuota:
			named = o.Spec.Namespaces
		}
		for _, namespace := range named {
			tell(object, "names", namespace)
		}
	}
	return lines
}
