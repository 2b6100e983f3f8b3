package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/inspect/check"
	"github.com/landwaiter/landwaiter/pkg/inspect/isolation"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/lint"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
	"github.com/landwaiter/landwaiter/pkg/tenancy/operator"
	"github.com/landwaiter/landwaiter/pkg/tenancy/scaffold"
)

// checkFlags select what is checked: an installation, its Tenants, whether teams are isolated, or
// files.
type checkFlags struct {
	by               person
	options          check.Options
	isolation        isolation.Options
	tries            bool // --isolation
	tenants          bool
	tenant           string
	clusterResources string
	strict           bool
}

func newCheck(by person) *cobra.Command {
	flags := checkFlags{by: by}
	cmd := &cobra.Command{
		Use:   "check [--tenants | --tenant NAME | --isolation | FILE|DIR|-...]",
		Short: "Find problems in an installation, its Tenants or files, and how to fix them",
		Long: `Check reads the installation of Gatekeeper and Landwaiter with your permissions, and changes
nothing. It finds settings that wrongly admit images, problems that are about to occur, and trust
material that developers can change. It also asks the server whether it answers, for at most six
seconds. docs/reference/findings.md explains each finding. The ClusterRole landwaiter-checker
grants all permissions that check needs, and none for Secrets. Without permission to list rules
in the whole cluster, check reads those of one namespace (-n) and of its home namespace.

--tenants compares every Tenant with the cluster, --tenant only the named Tenant. If you cannot
list Tenants, check compares only the home namespace of your Tenant, and one other with -n.

--isolation impersonates the people and ServiceAccounts of each Tenant, and sends requests that
must be refused. All requests are dry runs. It reads no Secrets.

Check validates FILE, DIR and - (standard input) like an API server (schema, unknown fields,
rules), and then compiles them like Landwaiter. It contacts no server. A note describes what check
cannot determine from files alone.

Exit codes (64 and 69: see landwaiter --help):
  0  nothing is wrong
  1  there are errors or warnings or, with --strict, notes
  2  a check was not possible`,
		Example: `  landwaiter check
  landwaiter check --tenant iris-green -o json
  kubectl get landwaiter --all-namespaces -o yaml | landwaiter check -`,
		Args: flags.check,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return flags.files(cmd, args)
			}
			return flags.cluster(cmd)
		},
	}
	uses(cmd, 5*time.Minute, flagOutput, flagAccount)
	f := cmd.Flags()
	f.BoolVar(&flags.tenants, "tenants", false, "compare all Tenants with the cluster")
	f.StringVar(&flags.tenant, "tenant", "", "compare this Tenant with the cluster; with --isolation, impersonate only its people and "+
		"ServiceAccounts")
	f.BoolVar(&flags.tries, "isolation", false, "impersonate teams, and send dry-run requests that must be refused")
	f.StringVar(&flags.isolation.Other, "other", "", "with --isolation, the only Tenant to try to reach")
	f.StringVar(&flags.isolation.As, "person", "", "with --isolation, another user of --tenant to impersonate")
	f.StringSliceVar(&flags.isolation.Groups, "group", nil, "group of the user of --person (repeatable)")
	f.StringVar(&flags.options.Gatekeeper, "gatekeeper-namespace", "gatekeeper-system",
		"namespace of Gatekeeper, for a webhook that references no Service")
	f.StringSliceVar(&flags.options.Exempt, "exempt-namespace", nil,
		"namespace that you exempt on purpose, in addition to system namespaces (repeatable)")
	f.StringSliceVar(&flags.options.ExemptImages, "exempt-image", nil,
		"entry of exemptImages of a constraint that you exempt on purpose (repeatable)")
	f.StringVar(&flags.clusterResources, program.ClusterResourcesFlag, "",
		"namespace of the Secrets that Cluster… resources in files reference")
	f.BoolVar(&flags.strict, "strict", false, "also exit with code 1 if there are notes")
	return cmd
}

// check refuses flags that cannot be combined.
func (f *checkFlags) check(cmd *cobra.Command, args []string) error {
	set := cmd.Flags().Changed
	switch {
	case len(args) > 0 && (f.tries || f.tenants || f.tenant != ""):
		return errors.New("files are checked without a cluster: leave out --isolation, --tenants and --tenant")
	case len(args) == 0 && set(program.ClusterResourcesFlag):
		return fmt.Errorf("--%s requires files; for a cluster, check reads the namespace from the server's flags", program.ClusterResourcesFlag)
	case f.tenants && f.tenant != "":
		return errors.New("--tenants and --tenant cannot be used together")
	case f.tries && f.tenants:
		return errors.New("--isolation tries all Tenants: leave out --tenants")
	case !f.tries && (set("other") || set("person") || set("group")):
		return errors.New("--other, --person and --group require --isolation")
	case f.tenant == "" && (set("person") || set("group")):
		return errors.New("--person and --group require --tenant")
	case f.tenant != "" && f.tenant == f.isolation.Other:
		return errors.New("--tenant and --other must differ")
	}
	return nil
}

// files checks files.
func (f *checkFlags) files(cmd *cobra.Command, paths []string) error {
	for _, path := range paths {
		if _, found, err := scaffold.ReadSettings(path); found && err == nil { // its patches are no resources
			return fmt.Errorf("%s is a platform's repository (it has %s): run landwaiter platform check %[1]s", path, scaffold.SettingsFile)
		}
	}
	if namespace := *f.by.Namespace; namespace != "" {
		if _, err := verify.ParseNamespace(namespace); err != nil {
			return fmt.Errorf("--namespace: %w", err)
		}
	}
	report, err := lint.Check(cmd.Context(), *f.by.Namespace, paths, cmd.InOrStdin(), func(o resource.Objects) []resource.Problem {
		o.ClusterResourceNamespace = f.clusterResources
		return conditions.Check(o)
	})
	if err != nil {
		return err
	}
	return f.end(cmd,
		printedFindings{Findings: report.Findings, Checked: printedChecked{Resources: report.Resources, Ignored: report.Ignored}})
}

// cluster checks a cluster.
func (f *checkFlags) cluster(cmd *cobra.Command) error {
	account, err := f.by.landwaiter()
	if err != nil {
		return err
	}
	f.options.Namespace, f.isolation.Landwaiter, f.isolation.Tenant = account.Namespace, account, f.tenant
	config, namespace, err := f.by.config()
	if err != nil {
		return err
	}
	f.options.Within = namespace
	ctx, cancel, failed := bounded(cmd.Context(), config, f.by.within(cmd))
	defer cancel()
	switch {
	case f.tries:
		return f.isolated(ctx, cmd, config, failed)
	case f.tenants || f.tenant != "":
		return f.ofTenants(ctx, cmd, config, failed)
	}
	report, err := f.installation(ctx, config)
	if err != nil {
		return failed(err)
	}
	return f.end(cmd, printedFindings{Findings: report.Findings, Unchecked: report.Unchecked})
}

// installation checks how Gatekeeper and Landwaiter are installed: everything, or the parts that
// the options name.
func (f *checkFlags) installation(ctx context.Context, config *rest.Config) (check.Report, error) {
	schemas := schema.Embedded()
	reader, err := live.New(config, schemas)
	if err != nil {
		return check.Report{}, program.Failed(err)
	}
	_, report, err := examined(ctx, reader, config, f.options, schemas)
	return report, err
}

// examined checks an installation, as the command and the page do. Config is the
// configuration of reader.
func examined(ctx context.Context, reader *live.Person, config *rest.Config, options check.Options,
	schemas resource.Schemas) (*check.Inventory, check.Report, error) {
	options.Asker, options.Outages, options.Review = check.NewAsker(config), outages(reader), conditions.ReviewStored
	inventory, err := check.Read(ctx, reader.Client(), options, time.Now())
	if err != nil {
		return nil, check.Report{}, err
	}
	return inventory, check.Examine(inventory, schemas), nil //nolint:contextcheck // it waits for nothing
}

// outages reads outages of registries from the reports of all namespaces.
func outages(reader *live.Person) check.Outages {
	return func(ctx context.Context) (found []check.Outage, missing string, err error) {
		all, rights, err := reader.Outages(ctx, time.Now())
		for _, o := range all {
			found = append(found,
				check.Outage{Namespace: string(o.Namespace), Registry: o.Registry, Count: o.Count, Since: o.First, Last: o.Last, Reason: o.Reason,
					Remedy: o.Remedy, Answered: o.Answered})
		}
		for _, right := range rights {
			missing = right.Verb + " " + right.Resource.String()
		}
		return found, missing, err
	}
}

// ofTenants checks Tenants, and the guardrails that isolate them.
func (f *checkFlags) ofTenants(ctx context.Context, cmd *cobra.Command, config *rest.Config, failed func(error) error) error {
	admin := adminFlags{by: f.by}
	c, engine, err := admin.connect(cmd, operator.Options{}) //nolint:contextcheck // within the time of the command
	if err != nil {
		return err
	}
	var printed printedFindings
	printed.Findings, printed.Unchecked, err = engine.Check(ctx, f.tenant)
	f.options.Only = check.GuardrailIDs()
	if apierrors.IsForbidden(err) {
		printed.Findings, printed.Unchecked, err = f.own(ctx, c, engine, err)
		f.options.Only = append(f.options.Only, check.ResourceIDs()...) // a team has no other way to check its own
	}
	if apierrors.IsNotFound(err) && f.tenant != "" {
		return &program.Exit{Code: program.ExitDenied, Err: noTenant(f.tenant)}
	}
	if err != nil {
		return failed(err)
	}
	guardrails, err := f.installation(ctx, config)
	if err != nil {
		return failed(err)
	}
	printed.Findings = append(guardrails.Findings, printed.Findings...)
	printed.Unchecked = append(guardrails.Unchecked, printed.Unchecked...)
	return f.end(cmd, printed)
}

// own checks a namespace of the person's own team, and its home namespace. Without --namespace, --tenant checks the
// home namespace alone. refused is why the whole cluster is not checked.
func (f *checkFlags) own(ctx context.Context, c client.Client, engine *operator.Engine,
	refused error) ([]resource.Finding, []resource.Unchecked, error) {
	name, namespace := f.tenant, ""
	if name == "" || *f.by.Namespace != "" {
		_, ns, err := f.by.scope(false)
		if err != nil {
			return nil, nil, err
		}
		var found corev1.Namespace
		if err := c.Get(ctx, client.ObjectKey{Name: string(ns)}, &found); err != nil {
			return nil, nil, fmt.Errorf("%w; and get namespace %s: %w", refused, ns, err)
		}
		name, namespace = found.Labels[v1beta1.LabelTenant], found.Name
	}
	if name == "" || f.tenant != "" && f.tenant != name {
		return nil, nil, fmt.Errorf("%w; to check a namespace of your team, name it with --namespace", refused)
	}
	var tenant v1beta1.Tenant
	if err := c.Get(ctx, client.ObjectKey{Name: name}, &tenant); err != nil {
		return nil, nil, fmt.Errorf("%w; landwaiter tenant add %s lets a team read its own Tenant: %w", refused, name, err)
	}
	return engine.CheckOwn(ctx, &tenant, cmp.Or(namespace, tenant.Spec.HomeNamespace))
}

// isolated tries whether teams are isolated.
func (f *checkFlags) isolated(ctx context.Context, cmd *cobra.Command, config *rest.Config, failed func(error) error) error {
	c, err := operator.NewClient(config)
	if err != nil {
		return program.Failed(err)
	}
	keys, unknown, err := clusterResourcesOf(ctx, c, f.isolation.Landwaiter)
	if err != nil {
		return failed(err)
	}
	if unknown != "" {
		program.SayLines(cmd.ErrOrStderr(), "landwaiter: "+unknown)
	}
	f.isolation.ClusterResources = keys
	results, err := isolation.Run(ctx, config, f.isolation)
	var missing *isolation.NoSuchTenant
	if errors.As(err, &missing) {
		return &program.Exit{Code: program.ExitDenied, Err: err}
	}
	if apierrors.IsForbidden(err) {
		err = fmt.Errorf("you lack permissions: to read Tenants (ClusterRole landwaiter-cluster-admin) and namespaces, and to impersonate "+
			"users, groups and serviceaccounts: %w", err)
	}
	if err != nil && len(results) == 0 {
		return failed(err)
	}
	printed := printedFindings{Checked: printedChecked{Cases: printableCases(results)}}
	printed.Findings, printed.Unchecked = isolation.Findings(results)
	if err != nil { // some cases were tried, and are printed
		return errors.Join(failed(err), f.by.output.print(cmd, printed.whole()))
	}
	return f.end(cmd, printed)
}

// end prints the findings, and ends the command: 1 for problems, or else 2 for checks that were
// not possible. Facts that only the process knows, and has not published, do not count.
func (f *checkFlags) end(cmd *cobra.Command, printed printedFindings) error {
	if err := f.by.output.print(cmd, printed.whole()); err != nil {
		return err
	}
	return printed.exit(f.strict)
}
