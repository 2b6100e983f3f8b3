package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/inspect/isolation"
	"github.com/landwaiter/landwaiter/pkg/tenancy/operator"
)

// isolationFlags are the flags of doctor --isolation.
type isolationFlags struct {
	wanted  bool
	options isolation.Options
}

// isolationHelp is what the help of doctor says about --isolation.
const isolationHelp = `With --isolation, doctor tries instead what a team must not be able to do: it acts as
the people and accounts of each Tenant, by impersonation, and asks the API server to
read and write what belongs to another team, to the cluster and to the platform. Every
request is a dry run, and no Secret is read. It needs the verb impersonate for users,
groups and serviceaccounts. Dry runs of pods may appear in logs as denials of the image
registry.invalid/landwaiter-isolation, which reports leave out. Exit codes with
--isolation: 0 every case held, 1 one did not, 2 one could not be tried.`

// register declares the flags.
func (i *isolationFlags) register(cmd *cobra.Command) {
	f, o := cmd.Flags(), &i.options
	f.BoolVar(&i.wanted, "isolation", false, "try what teams must not be able to do, by impersonated dry runs, instead of looking for findings")
	f.StringVar(&o.Tenant, "tenant", "", "Tenant to act as, with --isolation (empty: all that are not being deleted, each against the next)")
	f.StringVar(&o.Other, "other", "", "Tenant to try to reach, with --isolation")
	f.StringVar(&o.As, "as-user", "", "further person of --tenant to act as, with --isolation")
	f.StringSliceVar(&o.Groups, "as-group", nil, "group of --as-user (repeatable)")
}

// check refuses flags that mean nothing.
func (i *isolationFlags) check() error {
	switch o := i.options; {
	case !i.wanted && (o.Tenant != "" || o.Other != "" || o.As != "" || len(o.Groups) > 0):
		return errors.New("--tenant, --other, --as-user and --as-group mean nothing without --isolation")
	case o.Tenant == "" && (o.As != "" || len(o.Groups) > 0):
		return errors.New("--as-user and --as-group need --tenant: whose person is it?")
	case o.Tenant != "" && o.Tenant == o.Other:
		return errors.New("--tenant and --other must differ")
	}
	return nil
}

// printedCases is what doctor --isolation prints.
type printedCases struct {
	Cases    []printedCase `json:"cases"`
	Held     int           `json:"held"`
	NotHeld  int           `json:"notHeld"`
	NotTried int           `json:"notTried"`
}

// run tries everything and prints it.
func (i *isolationFlags) run(ctx context.Context, cmd *cobra.Command, config *rest.Config, failed func(error) error, account types.NamespacedName, output *format) error {
	c, err := operator.NewClient(config)
	if err != nil {
		return program.Failed(err)
	}
	keys, unknown, err := clusterResourcesOf(ctx, c, account)
	if err != nil {
		return failed(err)
	}
	if unknown != "" {
		program.SayLines(cmd.ErrOrStderr(), "landwaiter: "+unknown)
	}
	i.options.Landwaiter, i.options.ClusterResources = account, keys
	results, err := isolation.Run(ctx, config, i.options)
	var missing *isolation.NoSuchTenant
	if errors.As(err, &missing) {
		return err
	}
	if apierrors.IsForbidden(err) {
		err = fmt.Errorf("your account lacks the permissions: it must read Tenants (ClusterRole landwaiter-cluster-admin) and namespaces, and impersonate users, groups and serviceaccounts: %w", err)
	}
	if err != nil && len(results) == 0 {
		return failed(err)
	}
	if printErr := output.print(cmd, printableCases(results)); printErr != nil {
		return printErr
	}
	if err != nil {
		return failed(err) // some cases were tried, and are printed
	}
	switch isolation.Worst(results) {
	case isolation.NotHeld:
		return &program.Exit{Code: program.ExitDenied}
	case isolation.NotTried:
		return &program.Exit{Code: program.ExitUndecided}
	case isolation.Held:
	}
	return nil
}

func printableCases(results []isolation.Result) printedCases {
	printed, count := printedCases{Cases: append([]printedCase{}, results...)}, map[isolation.Outcome]int{}
	for i, r := range results {
		printed.Cases[i].By = append([]string{}, r.By...)
		count[r.Outcome]++
	}
	printed.Held, printed.NotHeld, printed.NotTried = count[isolation.Held], count[isolation.NotHeld], count[isolation.NotTried]
	return printed
}

// show has one row per case and team, and at the end one for everybody for whom a case did
// not hold.
func (p printedCases) show(s *screen) {
	s.row("CASE", "TENANT", "RESULT", "TRIES TO, AND WHO REFUSED")
	var untried, holes [][]any
	for i := 0; i < len(p.Cases); {
		first := p.Cases[i]
		var by []string
		held := 0
		var rest []printedCase
		for ; i < len(p.Cases) && p.Cases[i].Case == first.Case && p.Cases[i].Tenant == first.Tenant; i++ {
			c := p.Cases[i]
			if c.Outcome != isolation.Held {
				rest = append(rest, c)
				continue
			}
			held++
			for _, who := range c.By {
				if !slices.Contains(by, who) {
					by = append(by, who)
				}
			}
		}
		if held > 0 && len(rest) == 0 {
			s.row(first.Case, teamsOf(first), "held", first.Tries+": "+strings.Join(by, ", "))
		}
		for _, c := range rest {
			result, rows := "NOT HELD", &holes
			if c.Outcome == isolation.NotTried {
				result, rows = "not tried", &untried
			}
			*rows = append(*rows, []any{c.Case, teamsOf(c), result, sentence(c)})
		}
	}
	for _, cells := range slices.Concat(untried, holes) {
		s.row(cells...)
	}
	s.line("%d held, %d not held, %d not tried; nothing was written", p.Held, p.NotHeld, p.NotTried)
}

// teamsOf names who tries to reach whom.
func teamsOf(c printedCase) string {
	switch {
	case c.Tenant == "":
		return "-"
	case c.Other == "":
		return c.Tenant
	}
	return c.Tenant + " > " + c.Other
}

// sentence says why a case did not hold, and what to do.
func sentence(c printedCase) string {
	text := c.Why
	if c.Who != "" {
		text = c.Who + ": " + text
	}
	return policy.Verdict{Reason: text, Remediation: c.Fix}.Text()
}
