package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/inspect/check"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
	"github.com/landwaiter/landwaiter/pkg/tenancy/operator"
)

// deleteFlags select the Tenant to delete, and what to delete with it.
type deleteFlags struct {
	demoName, demoNamespace string
	namespaces, yes         bool
}

// printedDeleted is the output of tenant delete.
type printedDeleted struct {
	DryRun                 bool             `json:"dryRun,omitempty"`
	Tenant                 string           `json:"tenant"`
	NamespaceReclaimPolicy string           `json:"namespaceReclaimPolicy"`
	Removed                int              `json:"removed"`
	Deleted                []string         `json:"deletedNamespaces"`
	Kept                   []string         `json:"keptNamespaces"`
	Adopted                []string         `json:"adoptedNamespaces"`
	Freed                  bool             `json:"operatorFinalizerRemoved,omitempty"`
	Objects                []printedOutcome `json:"objects"`
	// HomeNamespace is the namespace whose rules no longer apply in the namespaces of RulesEndIn, and Preview the
	// command that shows the resulting changes of verdicts, if there may be some.
	HomeNamespace string   `json:"homeNamespace,omitempty"`
	RulesEndIn    []string `json:"rulesEndIn"`
	Preview       string   `json:"preview,omitempty"`
	// Disconnected are namespaces that stay, between which network policy allow-same-tenant no longer allows traffic.
	Disconnected []string `json:"disconnectedNamespaces"`
	// Rules are the resources of the home namespace, which stay in force there, and DeleteRules the command that
	// deletes them.
	Rules       []string `json:"keptRules"`
	DeleteRules string   `json:"deleteRules,omitempty"`
	// Bindings are ClusterRoleBindings of the team's people that no Tenant created, so they stay.
	Bindings []string `json:"keptClusterRoleBindings"`
	// Names are cluster resources that name the Tenant, and apply to a later one of that name.
	Names []string `json:"keptClusterResources"`
}

func newTenantDelete(by person) *cobra.Command {
	admin := adminFlags{by: by}
	var flags deleteFlags
	cmd := &cobra.Command{
		Use:   "delete NAME | --tenant-name NAME | --tenant-namespace NAMESPACE",
		Short: "Delete a Tenant and the objects of the Tenant",
		Long: `Delete removes a Tenant's Flux objects, then its mutation objects, then its bindings and
ServiceAccounts, then the Tenant. Workloads, quotas and network policies stay. If
spec.namespaceReclaimPolicy is DeleteCreated, or with --delete-namespaces, delete also removes the
namespaces that were created for the Tenant. It never removes an adopted namespace.

The rules of the home namespace end in the namespaces that stay, so the cluster's rules may admit
what was denied. To see which verdicts change, run: landwaiter preview --delete tenant/NAME -A

Without --yes, delete only prints what would happen and what stays. If the operator is running, it
deletes the objects, and this command waits for it. If the operator is gone (it has no Deployment
with replicas, and its Lease is not renewed), this command deletes the objects, and removes the
operator's finalizer.

--tenant-name and --tenant-namespace find the Tenant by a namespace, as ctrl.py of
flux-multitenant-demo does. Exactly one namespace must match.

Exit codes (64 and 69: see landwaiter --help):
  0  the Tenant is deleted
  1  nothing was deleted, or not everything could be deleted`,
		Example: `  landwaiter tenant delete iris-green --yes
  landwaiter tenant delete --tenant-namespace foo --delete-namespaces --yes`,
		Args: oneTenant,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, engine, err := admin.connect(cmd, operator.Options{DryRun: !flags.yes})
			if err != nil {
				return err
			}
			name, err := flags.find(cmd.Context(), engine, args)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), by.within(cmd))
			defer cancel()
			account, err := by.landwaiter()
			if err != nil {
				return err
			}
			gone, unknown, err := check.OperatorGone(ctx, c, account.Namespace, time.Now())
			if err != nil {
				return program.Failed(err)
			}
			tenant, deletion, err := engine.TakeAway(ctx, name, operator.Away{Namespaces: flags.namespaces, OperatorGone: gone})
			if err != nil {
				if unknown != "" {
					program.SayLines(cmd.ErrOrStderr(), "landwaiter: it is unknown whether the operator runs: "+unknown)
				}
				return notGone(name, err)
			}
			if err := by.output.print(cmd, printableDeletion(tenant, deletion, leftOver(ctx, cmd, engine, tenant), !flags.yes)); err != nil {
				return err
			}
			if !flags.yes {
				return &program.Exit{Code: program.ExitDenied, Err: errors.New("nothing was deleted; add --yes to delete")}
			}
			return nil
		},
	}
	uses(cmd, 5*time.Minute, flagOutput, flagAccount)
	refuses(cmd, flagDryRun, "without --yes, it only prints what would happen")
	f := cmd.Flags()
	f.StringVar(&flags.demoName, "tenant-name", "", "delete the Tenant with the namespace that has this tenant-name label")
	f.StringVar(&flags.demoNamespace, "tenant-namespace", "", "delete the Tenant that this namespace belongs to")
	f.BoolVar(&flags.namespaces, "delete-namespaces", false, "delete its created namespaces, regardless of spec.namespaceReclaimPolicy")
	f.BoolVar(&flags.yes, "yes", false, "delete; without this flag, only print what would happen")
	return cmd
}

// leftOver returns what stays. If it cannot be read, it prints that without failing: the Tenant may already be gone.
func leftOver(ctx context.Context, cmd *cobra.Command, engine *operator.Engine, tenant *v1beta1.Tenant) operator.LeftOver {
	left, err := engine.LeftOver(ctx, tenant)
	if err != nil {
		program.SayLines(cmd.ErrOrStderr(), "landwaiter: it is unknown which rules and ClusterRoleBindings of the team stay: "+err.Error())
	}
	return left
}

// find returns the name of the selected Tenant.
func (d *deleteFlags) find(ctx context.Context, engine *operator.Engine, args []string) (string, error) {
	given := len(args)
	for _, flag := range []string{d.demoName, d.demoNamespace} {
		if flag != "" {
			given++
		}
	}
	switch {
	case given == 0:
		return "", errors.New("no Tenant is given: use NAME, --tenant-name or --tenant-namespace")
	case len(args) == 1 && given > 1:
		return "", errors.New("NAME says which Tenant: leave out --tenant-name and --tenant-namespace")
	case len(args) == 1:
		return args[0], nil
	}
	rows, err := engine.Namespaces(ctx)
	if err != nil {
		return "", program.Failed(err)
	}
	matches := slices.DeleteFunc(rows, func(r operator.NamespaceRow) bool {
		return d.demoName != "" && r.Name != d.demoName || d.demoNamespace != "" && r.Namespace != d.demoNamespace
	})
	refuse := func(format string, args ...any) (string, error) {
		return "", &program.Exit{Code: program.ExitDenied, Err: fmt.Errorf(format, args...)}
	}
	switch {
	case len(matches) == 0 && d.demoNamespace != "":
		whose := "a tenant"
		if d.demoName != "" {
			whose = "a tenant of the name " + d.demoName
		}
		return refuse("no namespace %s belongs to %s: see landwaiter tenant list --namespaces", d.demoNamespace, whose)
	case len(matches) == 0:
		return refuse("no namespace has the tenant name %s: see landwaiter tenant list --namespaces", d.demoName)
	case len(matches) > 1:
		names := mapped(matches, func(r operator.NamespaceRow) string { return r.Namespace })
		if tenant := matches[0].Tenant; tenant == d.demoName &&
			!slices.ContainsFunc(matches, func(r operator.NamespaceRow) bool { return r.Tenant != tenant }) {
			return refuse("%d namespaces have the tenant name %s (%s): landwaiter tenant delete %s deletes the whole Tenant", len(matches),
				d.demoName, strings.Join(names, ", "), tenant)
		}
		return refuse("%d namespaces have the tenant name %s (%s): choose one with --tenant-namespace", len(matches), d.demoName,
			strings.Join(names, ", "))
	case matches[0].Tenant == "":
		return refuse("no Tenant has namespace %s, which carries the label of flux-multitenant-demo: delete it with kubectl",
			matches[0].Namespace)
	}
	others := slices.DeleteFunc(rows, func(r operator.NamespaceRow) bool { return r.Tenant != matches[0].Tenant })
	if len(others) > 1 {
		return refuse("namespace %s is one of %d of Tenant %s: delete the whole Tenant by its name, or remove the namespace from the Tenant",
			matches[0].Namespace, len(others), matches[0].Tenant)
	}
	return matches[0].Tenant, nil
}

// notGone gives an error of a deletion its exit code.
func notGone(name string, err error) error {
	if errors.Is(err, operator.ErrNoTenant) {
		return &program.Exit{Code: program.ExitDenied, Err: noTenant(name)}
	}
	return notApplied(err)
}

func printableDeletion(tenant *v1beta1.Tenant, d *operator.Deletion, left operator.LeftOver, dryRun bool) printedDeleted {
	p := printedDeleted{DryRun: dryRun, Tenant: tenant.Name, NamespaceReclaimPolicy: string(tenant.Spec.NamespaceReclaimPolicy),
		Removed: d.Count(operator.Removed),
		Deleted: append([]string{}, d.Deleted...), Kept: append([]string{}, d.Kept...), Adopted: append([]string{}, d.Adopted...), Freed: d.Freed,
		Objects:    append([]printedOutcome{}, d.Outcomes...),
		RulesEndIn: []string{}, Disconnected: disconnected(d), Rules: []string{}, Bindings: append([]string{}, left.Bindings...),
		Names: mapped(left.Names, policy.ObjectRef.String)}
	home, level := tenant.Spec.HomeNamespace, tenant.Spec.Verification.PolicyLevel
	if home == "" { // the Tenant was already gone, and its rules with it
		return p
	}
	if len(left.Rules) > 0 && !slices.Contains(d.Deleted, home) {
		p.Rules, p.DeleteRules = rulesLeft(left.Rules, home)
	}
	stay := slices.Concat(d.Kept, d.Adopted, tenant.Spec.Namespaces) // a Tenant's rules apply in the namespaces that it lists, adopted or not
	slices.Sort(stay)
	stay = slices.DeleteFunc(slices.Compact(stay), func(n string) bool { return slices.Contains(d.Deleted, n) })
	if level != v1beta1.PolicyLevelCluster {
		p.HomeNamespace, p.RulesEndIn = home, slices.DeleteFunc(slices.Clone(stay), func(n string) bool { return n == home })
	}
	if dryRun && (len(p.RulesEndIn) > 0 || len(stay) > 0 && level != v1beta1.PolicyLevelNamespace && level != "") {
		p.Preview = "landwaiter preview --delete tenant/" + tenant.Name + " -A"
	}
	return p
}

// rulesLeft returns the resources that stay in a home namespace, and the command that deletes them.
func rulesLeft(rules []policy.ObjectRef, home string) (names []string, command string) {
	var plurals []string
	for _, r := range rules {
		names = append(names, r.String())
		if kind, ok := v1beta1.KindNamed(r.Kind); ok {
			plurals = append(plurals, kind.Plural+"."+v1beta1.Group)
		}
	}
	return names, "kubectl delete --namespace " + resource.ShellWord(home) + " --all " + strings.Join(slices.Compact(plurals), ",")
}

// disconnected returns the namespaces whose network policy of the Tenant stays without the label that it selects. One
// alone loses nothing, because the policy also allows traffic within its namespace.
func disconnected(d *operator.Deletion) []string {
	names := []string{}
	for _, o := range d.Outcomes {
		if o.Result == operator.Released && o.Object.Name == onboard.SameTenantPolicy {
			names = append(names, o.Object.Namespace)
		}
	}
	if len(names) == 1 {
		return []string{}
	}
	slices.Sort(names)
	return names
}

// show prints one line about objects, and the other effects of the deletion.
func (p printedDeleted) show(s *screen) {
	would := ""
	if p.DryRun {
		would = "would be "
	}
	parts := []string{amount(p.Removed, "object") + " " + would + "removed"}
	if len(p.Deleted) > 0 {
		parts = append(parts, amount(len(p.Deleted), "namespace")+" "+would+"deleted ("+strings.Join(p.Deleted, ", ")+")")
	}
	if len(p.Kept) > 0 {
		parts = append(parts,
			fmt.Sprintf("%s %skept (namespaceReclaimPolicy: %s)", amount(len(p.Kept), "namespace"), would, p.NamespaceReclaimPolicy))
	}
	if len(p.Adopted) > 0 {
		parts = append(parts, amount(len(p.Adopted), "adopted namespace")+" "+would+"kept, with its quota and network policies")
	}
	if p.Freed {
		parts = append(parts, "the operator's finalizer "+would+"removed, because no operator runs")
	}
	s.line("tenant %s: %s", p.Tenant, strings.Join(parts, ", "))
	if len(p.RulesEndIn) > 0 {
		ends := "no longer apply"
		if p.DryRun {
			ends = "would no longer apply"
		}
		s.line("The rules of home namespace %s %s in %s: the cluster's rules may admit images there that are denied now, or deny others.",
			p.HomeNamespace, ends, firstNames(p.RulesEndIn))
	}
	if len(p.Rules) > 0 {
		stay := "stay"
		if p.DryRun {
			stay = "would stay"
		}
		s.line("These %s in force in the home namespace: %s. To delete: %s", stay, firstNames(p.Rules), p.DeleteRules)
	}
	if len(p.Disconnected) > 0 {
		ends, keep := "ends", "To allow it again, create"
		if p.DryRun {
			ends, keep = "would end", "To keep it, first create"
		}
		s.line("Network traffic between %s %s, because network policy %s selects a label that the Tenant's namespaces lose. %s a NetworkPolicy "+
			"that selects the namespaces by the label kubernetes.io/metadata.name.",
			firstNames(p.Disconnected), ends, onboard.SameTenantPolicy, keep)
	}
	if p.Preview != "" {
		s.line("To see which verdicts change: %s", p.Preview)
	}
	if len(p.Names) > 0 {
		s.line("Cluster resources that name Tenant %s %skept, and apply to a later Tenant of that name: %s. Remove the name from them.", p.Tenant,
			would, firstNames(p.Names))
	}
	if len(p.Bindings) > 0 {
		s.line("%s of the team's people %skept. To delete: kubectl delete clusterrolebinding %s", amount(len(p.Bindings), "ClusterRoleBinding"),
			would, strings.Join(mapped(p.Bindings, resource.ShellWord), " "))
	}
}
