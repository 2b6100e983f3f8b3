package rbac

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// Cell is one cell of the table of the chart's ClusterRoles: whether anyone who is bound to a
// role may do something where the binding holds. Anywhere else, nobody may.
type Cell struct {
	Role  string
	Asked authorizationv1.ResourceAttributes // without a namespace
	Want  bool
}

const (
	service = "landwaiter-"
	reads   = "get list watch"
	writes  = "get list watch create update patch delete deletecollection"
)

// granted has what each ClusterRole for people, for accounts of Tenants and for namespaces
// grants, as "kinds | verbs". RULES are the namespaced kinds of landwaiter.dev, CLUSTER its
// cluster-scoped kinds that name no team, and TEAMS the others. All else is refused.
func granted() map[string][]string {
	const runs = "pods replicationcontrollers deployments.apps statefulsets.apps daemonsets.apps replicasets.apps jobs.batch cronjobs.batch"
	roles := map[string][]string{
		"rules-writer":   {"RULES | " + writes},
		"reader":         {"RULES | " + reads, "namespaces configmaps serviceaccounts " + runs + " | " + reads},
		"cluster-reader": {"CLUSTER | " + reads},
		"tenant-reader":  {"TEAMS | " + reads},
		"cluster-admin":  {"RULES CLUSTER TEAMS | " + writes, "tenantlabels.landwaiter.dev | manage"},
		"checker": {
			"RULES CLUSTER TEAMS namespaces nodes deployments.apps | get list",
			"clusterroles.rbac.authorization.k8s.io clusterrolebindings.rbac.authorization.k8s.io roles.rbac.authorization.k8s.io " +
				"rolebindings.rbac.authorization.k8s.io | get list",
			"validatingwebhookconfigurations.admissionregistration.k8s.io mutatingwebhookconfigurations.admissionregistration.k8s.io | get list",
			"validatingadmissionpolicies.admissionregistration.k8s.io validatingadmissionpolicybindings.admissionregistration.k8s.io | get list",
			"providers.externaldata.gatekeeper.sh constrainttemplates.templates.gatekeeper.sh verifiedimages.constraints.gatekeeper.sh " +
				"configs.config.gatekeeper.sh | get list",
			"configmaps pods resourcequotas serviceaccounts networkpolicies.networking.k8s.io tenantallowedregistries.constraints.gatekeeper.sh " +
				"assign.mutations.gatekeeper.sh | get list",
			"kustomizations.kustomize.toolkit.fluxcd.io helmreleases.helm.toolkit.fluxcd.io gitrepositories.source.toolkit.fluxcd.io " +
				"ocirepositories.source.toolkit.fluxcd.io | get list",
			"customresourcedefinitions.apiextensions.k8s.io leases.coordination.k8s.io:landwaiter leases.coordination.k8s.io:landwaiter-operator | get",
			"reports.openreports.io | get list",
			"services/proxy:https:landwaiter:443 | get",
		},
		"reconciler": {
			"RULES configmaps secrets serviceaccounts services persistentvolumeclaims " + runs + " | " + writes,
			"deployments.apps/scale statefulsets.apps/scale replicasets.apps/scale controllerrevisions.apps horizontalpodautoscalers.autoscaling " +
				"poddisruptionbudgets.policy | " + writes,
			"ingresses.networking.k8s.io networkpolicies.networking.k8s.io roles.rbac.authorization.k8s.io rolebindings.rbac.authorization.k8s.io | " + writes,
			"gitrepositories.source.toolkit.fluxcd.io ocirepositories.source.toolkit.fluxcd.io helmrepositories.source.toolkit.fluxcd.io " +
				"helmcharts.source.toolkit.fluxcd.io buckets.source.toolkit.fluxcd.io | " + writes,
			"kustomizations.kustomize.toolkit.fluxcd.io helmreleases.helm.toolkit.fluxcd.io externalsecrets.external-secrets.io " +
				"secretstores.external-secrets.io | " + writes,
			"pods/log pods/status replicationcontrollers/status services/status endpoints events namespaces resourcequotas limitranges " +
				"endpointslices.discovery.k8s.io | " + reads,
			"deployments.apps/status statefulsets.apps/status daemonsets.apps/status replicasets.apps/status jobs.batch/status cronjobs.batch/status | " + reads,
		},
		"namespace-maker":  {"namespaces | get list watch create patch delete", "tenantlabels.landwaiter.dev | create"},
		"reference-reader": {"secrets configmaps serviceaccounts | " + reads},
	}
	roles["reconciler-base"] = roles["reconciler"] // without other pieces
	return roles
}

// Row is a row of the table of roles in the chart's README: who has the role, and what it
// grants, in one sentence.
type Row struct{ Who, Gets string }

// Described returns the rows of the README, by the name of the role in a release that is called
// landwaiter. Those of Provider objects are one: landwaiter-PATH-provider.
func Described(readme string) map[string]Row {
	_, section, _ := strings.Cut(readme, "### Roles\n")
	section, _, _ = strings.Cut(section, "Why they are not fewer:")
	rows := map[string]Row{}
	for _, row := range regexp.MustCompile("(?m)^\\| `FULLNAME(-[-a-zA-Z]+)?` \\| (.+) \\| (.+) \\| .+ \\|$").FindAllStringSubmatch(section, -1) {
		rows["landwaiter"+row[1]] = Row{Who: row[2], Gets: row[3]}
	}
	return rows
}

// RowOf returns the name of the row about a role.
func RowOf(role string) string {
	return regexp.MustCompile(`^landwaiter-.+-provider$`).ReplaceAllString(role, "landwaiter-PATH-provider")
}

// Verbs are the verbs of the table: those of every kind, and those that only some have.
func Verbs() []string {
	return append(strings.Fields(writes), "impersonate", "bind", "escalate", "manage", "operate", "end", "purge", "approve", "sign", "use")
}

// Table returns the whole table: each role, each kind that any role grants or that is worth
// an attack, each verb.
func Table() []Cell {
	kinds := dangerous()
	may := map[string]map[string]bool{}
	roles := granted()
	for role, lines := range roles {
		may[role] = map[string]bool{}
		for _, line := range lines {
			of, verbs, _ := strings.Cut(line, "|")
			for _, kind := range expanded(of) {
				kinds = append(kinds, kind)
				for _, verb := range strings.Fields(verbs) {
					may[role][kind+" "+verb] = true
				}
			}
		}
	}
	slices.Sort(kinds)
	var cells []Cell
	for role := range roles {
		for _, kind := range slices.Compact(kinds) {
			for _, verb := range Verbs() {
				asked := attributes(kind)
				asked.Verb = verb
				all, _, _ := strings.Cut(kind, ":") // who may do it with all may do it with one
				cells = append(cells, Cell{service + role, asked, may[role][kind+" "+verb] || may[role][all+" "+verb]})
			}
		}
	}
	slices.SortFunc(cells, func(a, b Cell) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return cells
}

// dangerous are kinds that no role may grant to people.
func dangerous() []string {
	return append(expanded("secrets RULES/status CLUSTER/status TEAMS/status tenants.landwaiter.dev/finalizers tenantlabels.landwaiter.dev"),
		"nodes", "users", "groups", "serviceaccounts/token", "pods/exec", "pods/attach", "pods/portforward", "pods/ephemeralcontainers", "pods/binding",
		"namespaces/finalize",
		"clusterroles.rbac.authorization.k8s.io:landwaiter-cluster-admin", "leases.coordination.k8s.io", "assign.mutations.gatekeeper.sh",
		"userextras.authentication.k8s.io/scopes",
		"certificatesigningrequests.certificates.k8s.io/approval", "signers.certificates.k8s.io", "localsubjectaccessreviews.authorization.k8s.io",
		"deployments.apps/anything")
}

// NamesTeams reports whether the resources of a cluster-scoped kind name teams or their namespaces.
func NamesTeams(kind string) bool {
	return slices.Contains([]string{v1beta1.KindTenant, v1beta1.KindClusterException, v1beta1.KindClusterQuota}, kind)
}

// expanded replaces RULES, CLUSTER and TEAMS by the kinds that they stand for.
func expanded(kinds string) []string {
	var all []string
	for _, kind := range strings.Fields(kinds) {
		of, sub, hasSub := strings.Cut(kind, "/")
		if of != "RULES" && of != "CLUSTER" && of != "TEAMS" {
			all = append(all, kind)
			continue
		}
		for _, k := range v1beta1.Kinds() {
			if k.Namespaced != (of == "RULES") || NamesTeams(k.Name) != (of == "TEAMS") {
				continue
			}
			name := k.Plural + "." + v1beta1.Group
			if hasSub {
				name += "/" + sub
			}
			all = append(all, name)
		}
	}
	return all
}

// attributes parses "resource.group/subresource:name"; all but the resource may be missing.
func attributes(kind string) authorizationv1.ResourceAttributes {
	kind, name, _ := strings.Cut(kind, ":")
	kind, sub, _ := strings.Cut(kind, "/")
	resource, group, _ := strings.Cut(kind, ".")
	return authorizationv1.ResourceAttributes{Group: group, Resource: resource, Subresource: sub, Name: name}
}
