package resource

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// BasePiece is the suffix of the name of the piece for Kubernetes, Flux and Landwaiter. The chart owns it,
// so no rule limits its content.
const BasePiece = "-reconciler-base"

// PieceExcess returns rules that a ClusterRole with [v1beta1.LabelPiece] must not have, because every
// account of a Tenant gets it, in the order of its rules: the guardrail reconciler-pieces checks the
// same in CEL. It returns nothing for roles that are not pieces, and for the piece of a release
// called name.
func PieceExcess(role *rbacv1.ClusterRole, name string) []string {
	if _, is := role.Labels[v1beta1.LabelPiece]; !is || role.Name == name+BasePiece {
		return nil
	}
	var groups, kinds, verbs, found []string
	for _, rule := range role.Rules {
		groups = append(groups, kept(rule.APIGroups, builtInGroup)...)
		kinds = append(kinds, kept(rule.Resources, wideKind)...)
		verbs = append(verbs, kept(rule.Verbs, func(verb string) bool { return !slices.Contains(pieceVerbs(), verb) })...)
		if len(rule.NonResourceURLs) > 0 {
			found = []string{"nonResourceURLs"}
		}
	}
	if role.AggregationRule != nil {
		found = append(found, "aggregationRule")
	}
	for i, group := range groups {
		if group == "" {
			groups[i] = "core"
		}
	}
	return slices.Concat(groups, kinds, verbs, found)
}

// kept returns the values that meet a condition.
func kept(values []string, of func(string) bool) []string {
	return slices.DeleteFunc(slices.Clone(values), func(value string) bool { return !of(value) })
}

// pieceVerbs are the allowed verbs of a piece. Any other, such as impersonate or bind, gives more than an
// object.
func pieceVerbs() []string {
	return []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
}

// builtInGroup reports whether an API group belongs to Kubernetes, Gatekeeper or Landwaiter.
func builtInGroup(group string) bool {
	return !strings.Contains(group, ".") || strings.Contains(group, "*") || strings.HasSuffix(group, ".gatekeeper.sh") ||
		slices.Contains([]string{
			v1beta1.Group, v1beta1.ReportGroup, "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io",
			"authentication.k8s.io", "authorization.k8s.io",
			"certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "flowcontrol.apiserver.k8s.io",
			"internal.apiserver.k8s.io", "metrics.k8s.io",
			"networking.k8s.io", "node.k8s.io", rbacv1.GroupName, "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io",
			"storagemigration.k8s.io"}, group)
}

// wideKind reports whether a resource covers many kinds, or is a store or issuer of the whole
// cluster.
func wideKind(kind string) bool {
	of, _, _ := strings.Cut(kind, "/")
	return strings.Contains(kind, "*") ||
		slices.Contains([]string{"clustersecretstores", "clusterexternalsecrets", "clusterpushsecrets", "clustergenerators", "clusterissuers"},
			of)
}
