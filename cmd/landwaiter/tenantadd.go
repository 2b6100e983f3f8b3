package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
	"github.com/landwaiter/landwaiter/pkg/tenancy/operator"
)

// shownOutcomes bounds the table of tenant add; -o json has all.
const shownOutcomes = 20

// quotaPatience is how long tenant add waits for Kubernetes' quota controller without --wait.
const quotaPatience = 10 * time.Second

// printedAdded is the output of tenant add.
type printedAdded struct {
	DryRun  bool                 `json:"dryRun,omitempty"`
	Tenants []printedTenantAdded `json:"tenants"`
}

// printedTenantAdded is the result for one Tenant.
type printedTenantAdded struct {
	Tenant     string           `json:"tenant"`
	Home       string           `json:"homeNamespace"`
	Namespaces []string         `json:"namespaces"`
	Created    int              `json:"created"`
	Changed    int              `json:"changed"`
	Unchanged  int              `json:"unchanged"`
	Removed    int              `json:"removed"`
	Released   int              `json:"released"`
	Objects    []printedOutcome `json:"objects"`
	Problems   []printedProblem `json:"problems"`
}

func newTenantAdd(by person) *cobra.Command {
	admin := adminFlags{by: by}
	var flags tenantFlags
	var wait bool
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Onboard a team: apply its Tenant and the objects of the Tenant",
		Long: `Add applies a Tenant and its objects (namespaces, ServiceAccount, bindings, quotas, network
policies, Flux objects) with your permissions. You can run add again: it keeps correct objects,
restores changed objects, and removes objects that the Tenant no longer needs.

"--set FIELD=VALUE" sets a field below spec: FIELD is a path with dots, VALUE is YAML. For a list,
VALUE can be a single entry; for access, a plain name is a group. If the Tenant exists, --set adds
entries to lists, and replaces other values. --filename replaces the whole Tenant. With both
flags, --set changes the Tenant of the file.

Then, add waits up to ten seconds for Kubernetes' quota controller. Until the controller has
counted the namespaces, the API server may refuse the team's resources. With --wait, add waits up
to --timeout, and also until the team's rules apply.

To take over an existing namespace without a Tenant, use "--set adopt=true" (for this run only) or
spec.adopt in a file.

--tenant-namespace and --tenant-name create objects with the names from flux-multitenant-demo.
Without a source, the Tenant gets a copy of GitRepository flux-system/default. --shared-source
uses the GitRepository itself, which requires Flux with --no-cross-namespace-refs=false.

Exit codes (64 and 69: see landwaiter --help):
  0  everything matches the Tenant
  1  something differs, or the API server refused a change`,
		Example: `  landwaiter tenant add iris-green --set namespaces=iris-green-web --set access.admins=iris-green-admins
  landwaiter tenant add iris-green --set isolation.quota.pods=50
  landwaiter tenant add -f tenants/ --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) error {
			flags.demoSource = func() (*v1beta1.TenantSource, error) { return demoSource(cmd, &admin) }
			tenants, err := flags.asked(cmd, args)
			if err != nil {
				return err
			}
			_, engine, err := admin.connect(cmd, operator.Options{Adopt: true, DryRun: by.dryRun})
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), by.within(cmd))
			defer cancel()
			printed, problems, uncounted, err := addTenants(ctx, cmd, engine, tenants, by.dryRun)
			if err != nil {
				return err
			}
			if len(printed.Tenants) > 0 {
				if err := by.output.print(cmd, printed); err != nil {
					return err
				}
			}
			if err := notDone(cmd, problems); err != nil || by.dryRun {
				return err
			}
			if err := awaitQuotas(ctx, cmd.ErrOrStderr(), engine, uncounted, wait); err != nil || !wait {
				return err
			}
			return notApplied(engine.AwaitReady(ctx, mapped(tenants, func(t askedTenant) *v1beta1.Tenant { return t.Tenant })))
		},
	}
	flags.register(cmd)
	flags.registerDemo(cmd)
	uses(cmd, 5*time.Minute, flagOutput, flagAccount, flagDryRun)
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the rules of each Tenant apply")
	return cmd
}

// askedTenant is a Tenant as described by a file or settings.
type askedTenant struct {
	*v1beta1.Tenant
	// whole says that the file describes it completely; if not, it adds to an existing Tenant.
	whole bool
	// adopts says that the file, and not a setting for one run, consents to take over
	// namespaces.
	adopts bool
	// settings are the settings that it adds.
	settings onboard.Settings
}

// asked returns the Tenants to apply.
func (f *tenantFlags) asked(cmd *cobra.Command, args []string) ([]askedTenant, error) {
	name, err := f.name(cmd, args)
	if err != nil {
		return nil, err
	}
	if len(f.files) == 0 {
		tenant, err := f.fromSettings(name)
		return []askedTenant{{Tenant: tenant, settings: f.settings}}, err
	}
	found, err := readTenants(cmd, f.files)
	if err != nil {
		return nil, err
	}
	adopts := map[string]bool{}
	for _, tenant := range found.tenants {
		adopts[tenant.Name] = tenant.Spec.Adopt
	}
	tenants, err := f.fromFiles(found, name)
	return mapped(tenants, func(t *v1beta1.Tenant) askedTenant {
		return askedTenant{Tenant: t, whole: true, adopts: adopts[t.Name]}
	}), err
}

// addTenants applies Tenants, one after the other, and returns the ResourceQuotas that Kubernetes
// has yet to count.
func addTenants(ctx context.Context, cmd *cobra.Command, engine *operator.Engine, tenants []askedTenant,
	dryRun bool) (printed printedAdded, problems []operator.Problem, uncounted []policy.ObjectRef, err error) {
	printed = printedAdded{DryRun: dryRun, Tenants: []printedTenantAdded{}}
	for _, asked := range tenants {
		if asked.Annotations[v1beta1.AnnotationForm] == onboard.FormDemoShared {
			program.Say(cmd.ErrOrStderr(), "landwaiter: Tenant %s shares GitRepository %s/%s: this works only where kustomize-controller runs "+
				"with --no-cross-namespace-refs=false, which lets every tenant apply the sources of all others",
				asked.Name, onboard.DemoNamespace, onboard.DemoSource)
		}
		added, report, err := addTenant(ctx, engine, asked)
		if err != nil {
			return printed, nil, nil, err
		}
		problems, uncounted = append(problems, report.Problems...), append(uncounted, report.Uncounted...)
		if added.Tenant == "" {
			continue
		}
		printed.Tenants = append(printed.Tenants, added)
		if dryRun {
			engine.Assume(asked.Tenant)
		}
	}
	return printed, problems, uncounted, nil
}

// addTenant applies one Tenant, or says why it wrote nothing.
func addTenant(ctx context.Context, engine *operator.Engine, asked askedTenant) (printedTenantAdded, *operator.Report, error) {
	merged, live, err := engine.Merge(ctx, asked.Tenant)
	if err != nil {
		return printedTenantAdded{}, nil, notApplied(err)
	}
	if asked.whole {
		merged = asked.DeepCopy()
	} else if err := onboard.Restate(merged, asked.settings); err != nil {
		return printedTenantAdded{}, nil, err
	}
	if _, err := onboard.Complete(merged); err != nil {
		return printedTenantAdded{}, nil, err
	}
	problems, err := engine.Refusals(ctx, merged)
	if err != nil || len(problems) > 0 {
		return printedTenantAdded{}, &operator.Report{Problems: problems}, program.Failed(err)
	}
	consent := merged.Spec.Adopt
	// The consent of a setting is for the namespaces that this run names.
	merged.Spec.Adopt = consent && (asked.adopts || !asked.whole && live != nil && live.Spec.Adopt)
	saved, result, err := engine.Save(ctx, merged, live)
	if err != nil {
		return printedTenantAdded{}, nil, notApplied(err)
	}
	saved.Spec.Adopt = consent
	report, err := engine.Apply(ctx, saved)
	if err != nil {
		return printedTenantAdded{}, nil, notApplied(err)
	}
	report.Outcomes = append([]operator.Outcome{{Object: policy.ObjectRef{Kind: v1beta1.KindTenant, Name: saved.Name}, Result: result}},
		report.Outcomes...)
	return printedTenantAdded{Tenant: saved.Name, Home: saved.Spec.HomeNamespace, Namespaces: report.Namespaces,
		Created: report.Count(operator.Created), Changed: report.Count(operator.Changed), Unchanged: report.Count(operator.Unchanged),
		Removed: report.Count(operator.Removed), Released: report.Count(operator.Released),
		Objects: append([]printedOutcome{}, report.Outcomes...), Problems: append([]printedProblem{}, report.Problems...)}, report, nil
}

// awaitQuotas waits until Kubernetes has counted ResourceQuotas. If it does not, that is only a
// failure with must.
func awaitQuotas(ctx context.Context, errOut io.Writer, engine *operator.Engine, quotas []policy.ObjectRef, must bool) error {
	if !must {
		patient, cancel := context.WithTimeout(ctx, quotaPatience)
		defer cancel()
		ctx = patient
	}
	left, err := engine.AwaitCounted(ctx, quotas)
	var refused apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused) && ctx.Err() == nil:
		return program.Failed(err) // any other error is about time, including the client's own limit
	case must:
		return &program.Exit{Code: program.ExitDenied, Err: fmt.Errorf("wait for quotas: %w; %s", err, operator.SayUncounted(left))}
	}
	program.SayLines(errOut, "landwaiter: "+operator.SayUncounted(left))
	return nil
}

// notApplied distinguishes a refusal of the API server, or a timeout, from a failure to answer.
// It returns nil for nil.
func notApplied(err error) error {
	var status apierrors.APIStatus
	var late *operator.UnfinishedError
	if errors.As(err, &late) || errors.As(err, &status) && status.Status().Code < http.StatusInternalServerError {
		return &program.Exit{Code: program.ExitDenied, Err: err}
	}
	return program.Failed(err)
}

// show prints changes, or in a dry run the changes that it would make, then one line for each
// Tenant.
func (p printedAdded) show(s *screen) {
	would, stayed := "", "unchanged"
	if p.DryRun {
		would, stayed = "would be ", "would be unchanged"
	}
	for _, t := range p.Tenants {
		changed := 0
		for _, o := range t.Objects {
			if o.Result == operator.Unchanged {
				continue
			}
			if changed++; changed == 1 {
				s.row("OBJECT", "RESULT")
			}
			if changed <= shownOutcomes {
				s.row(o.Object, would+string(o.Result))
			}
		}
		if changed > shownOutcomes {
			s.line("… %d more (--output=json prints all)", changed-shownOutcomes)
		}
		others := max(0, len(t.Namespaces)-1) // the first is the home namespace
		line := fmt.Sprintf("tenant %s: home namespace %s, %s, %s: %d %screated, %d %schanged, %d %s", t.Tenant, t.Home,
			amount(others, "namespace"),
			amount(t.Created+t.Changed+t.Unchanged, "object"), t.Created, would, t.Changed, would, t.Unchanged, stayed)
		if t.Removed+t.Released > 0 {
			line += fmt.Sprintf(", %d %sremoved, %d %sreleased", t.Removed, would, t.Released, would)
		}
		s.line("%s", line)
	}
}

// demoSource returns the source that the demo's bootstrap creates, to be copied into the home
// namespace of a Tenant: with Flux locked down, no namespace may use the source of another.
func demoSource(cmd *cobra.Command, admin *adminFlags) (*v1beta1.TenantSource, error) {
	const where = onboard.DemoNamespace + "/" + onboard.DemoSource
	c, _, err := admin.connect(cmd, operator.Options{})
	if err != nil {
		return nil, err
	}
	repository := &unstructured.Unstructured{}
	repository.SetAPIVersion("source.toolkit.fluxcd.io/v1")
	repository.SetKind("GitRepository")
	err = c.Get(cmd.Context(), client.ObjectKey{Namespace: onboard.DemoNamespace, Name: onboard.DemoSource}, repository)
	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return nil,
			fmt.Errorf("--set reconciler.source.url=URL is missing, and there is no GitRepository %s to copy: name the repository "+
				"of the Tenant", where)
	case err != nil:
		return nil, program.Failed(fmt.Errorf("read GitRepository %s: %w", where, err))
	}
	url, _, _ := unstructured.NestedString(repository.Object, "spec", "url")
	branch, _, _ := unstructured.NestedString(repository.Object, "spec", "ref", "branch")
	_, private, _ := unstructured.NestedMap(repository.Object, "spec", "secretRef")
	if url == "" || branch == "" || private {
		return nil,
			fmt.Errorf("GitRepository %s cannot be copied, because it has a secretRef or names no branch: use --set reconciler.source={url: URL, "+
				"branch: BRANCH, secretRef: {name: SECRET}}", where)
	}
	ignore, _, _ := unstructured.NestedString(repository.Object, "spec", "ignore")
	return &v1beta1.TenantSource{URL: url, Branch: branch, Exclude: ignore}, nil
}
