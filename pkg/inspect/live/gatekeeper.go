package live

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/landwaiter/landwaiter/pkg/resources/constraint"
)

// GatekeeperExempt says that Gatekeeper leaves a namespace out on purpose.
const GatekeeperExempt = "exempt"

// gatekeeper is what Gatekeeper does about images, nil if the person may not read constraints.
type gatekeeper struct{ constraints []unstructured.Unstructured }

// gatekeeper reads the constraints. Whoever may not read them, such as most teams, is told nothing of
// Gatekeeper: a status is whole without it.
func (r *reading) gatekeeper(ctx context.Context) (*gatekeeper, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(runtimeschema.GroupVersionKind{Group: "constraints.gatekeeper.sh", Version: "v1beta1", Kind: constraint.Kind + "List"})
	g := &gatekeeper{}
	err := r.list(ctx, list, "", func(item runtime.Object) error {
		if c, ok := item.(*unstructured.Unstructured); ok {
			g.constraints = append(g.constraints, *c)
		}
		return nil
	})
	switch {
	case apierrors.IsForbidden(err):
		return nil, nil //nolint:nilnil // nothing is known of Gatekeeper
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return g, nil
	case err != nil:
		return nil, fmt.Errorf("list constraints: %w", err)
	}
	return g, nil
}

// does returns what Gatekeeper does in a namespace about a pod whose image is not allowed, "" if that
// is not known.
func (g *gatekeeper) does(n *corev1.Namespace) string {
	switch {
	case constraint.Ignored(n.Labels):
		return GatekeeperExempt
	case g == nil:
		return ""
	case constraint.Exempt(g.constraints, n.Name, n.Labels):
		return GatekeeperExempt
	}
	return string(constraint.ModeIn(g.constraints, n.Name, n.Labels))
}

// GatekeeperDoes says in a sentence what Gatekeeper does about a pod whose image is not allowed, "" if
// that is not known.
func (n NamespaceStatus) GatekeeperDoes() string {
	switch n.Gatekeeper {
	case "":
		return ""
	case GatekeeperExempt:
		return "exempt: admits every pod, without asking Landwaiter"
	case string(constraint.Deny):
		return "deny: refuses pods whose images are not allowed"
	case string(constraint.Warn):
		return "warn: admits pods whose images are not allowed, with a warning"
	case string(constraint.Dryrun):
		return "dryrun: admits pods whose images are not allowed, and reports them"
	}
	return "none: no constraint matches all pods of the namespace"
}
