package main

import (
	"context"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
	"github.com/landwaiter/landwaiter/pkg/tenancy/operator"
)

// guardrailInterval is the longest time that the operator works without a proof that its guardrails are in
// force.
const guardrailInterval = time.Minute

// mutationLimit bounds the sets of mutation objects for Stores of teams.
const mutationLimit = 50

// operateFlags are the flags of operate.
type operateFlags struct {
	landwaiter string
	pin        bool // whether --mutation is given
	options    operator.RunOptions
}

func newOperate(shared *sharedFlags) *cobra.Command {
	var flags operateFlags
	cmd := &cobra.Command{
		Use:   "operate",
		Short: "Run the operator, which provisions the objects of Tenants",
		Long: `Operate creates the objects of every Tenant (namespaces, ServiceAccount, bindings, quotas, network
policies, Flux objects) and reverts changes by others. It does the same as "landwaiter tenant add",
with its own ServiceAccount, and reports failures in the condition Provisioned. It only serves
health and metrics.

It never takes over an existing namespace: only an admin can do this, with
"landwaiter tenant add --set adopt=true".

Its ServiceAccount can bind roles. Two ValidatingAdmissionPolicies, the operator guardrails,
confine the ServiceAccount to tenant namespaces and to the specs of Tenants. At startup and every
minute, operate sends dry-run requests that the guardrails must refuse. If a request is not
refused, operate exits. It does nothing for a Tenant until both guardrails have refused.`,
		Example: `  landwaiter-server operate --own-namespace landwaiter-system`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := shared.logger(cmd)
			if err != nil {
				return err
			}
			flags.take(shared)
			flags.pin = cmd.Flags().Changed("mutation")
			return flags.run(cmd.Context(), log)
		},
	}
	flags.register(cmd.Flags())
	return cmd
}

func (o *operateFlags) register(f *pflag.FlagSet) {
	f.StringVar(&o.landwaiter, "landwaiter-account", "landwaiter-system/landwaiter", "ServiceAccount of Landwaiter, as NAMESPACE/NAME")
	f.StringSliceVar(&o.options.Reserved, "reserved-namespace", nil,
		"namespace that cannot belong to a Tenant, in addition to system namespaces (repeatable)")
	g, m := &o.options.Guardrail, &o.options.Mutation
	program.RegisterNamed(f, "guardrail", "operator guardrails, and how often to test them (repeatable)", func(v *pflag.FlagSet) {
		v.StringVar(&g.Policy, "namespaces", "landwaiter-operator-guardrail",
			"ValidatingAdmissionPolicy that confines this ServiceAccount to tenant namespaces")
		v.StringVar(&g.Tenants, "tenants", "landwaiter-operator-tenants",
			"ValidatingAdmissionPolicy that confines this ServiceAccount to the spec of each Tenant")
		v.DurationVar(&g.Interval, "interval", guardrailInterval, "how often to test the operator guardrails, at least every minute")
	})
	f.BoolVar(&o.options.InsecureNoGuardrail, "insecure-no-guardrail", false,
		"run without the operator guardrails; anyone who takes over this ServiceAccount controls every namespace")
	program.RegisterNamed(f, "mutation", "maintain the objects that pin tags, with limit=N and timeout-seconds=N (omitted: none)",
		func(v *pflag.FlagSet) {
			v.IntVar(&m.Limit, "limit", mutationLimit, "maximum number of sets of Provider and Assign objects for Stores of teams; each set slows "+
				"down every admission in the cluster (0: only the sets of the cluster)")
			v.Int64Var(&m.Objects.TimeoutSeconds, "timeout-seconds", 1, "seconds that Gatekeeper waits for the digest of a tag")
		})
	f.Lookup("mutation").DefValue = "" // the values count only if the flag is given
	f.StringSliceVar(&m.Exempt, "mutation-exempt-namespace", nil, "namespace in which tags are never pinned (repeatable)")
}

// take adds the values of the flags of both commands.
func (o *operateFlags) take(shared *sharedFlags) {
	o.options.OwnNamespace, o.options.LeaderElection = shared.ownNamespace, shared.leaderElection
	o.options.HealthAddress, o.options.MetricsAddress = shared.healthAddress, shared.metricsAddress
	o.options.Mutation.Objects.ProviderURL = shared.providerURL
}

// run checks the flags and operates until ctx ends.
func (o *operateFlags) run(ctx context.Context, log *logrus.Logger) error {
	account, err := program.ParseAccount(o.landwaiter)
	if err != nil {
		return err
	}
	if o.options.Guardrail.Interval < time.Second || o.options.Guardrail.Interval > guardrailInterval {
		return fmt.Errorf("--guardrail interval is %s, it must be between 1s and %s", o.options.Guardrail.Interval, guardrailInterval)
	}
	bridge(log)
	config, err := ownConfig()
	if err != nil {
		return err
	}
	if o.pin {
		o.options.Mutation.Pins = resolve.Pins
	}
	o.options.Onboard = onboard.Options{Landwaiter: account, ClusterRights: true, Constraints: true}
	return program.Failed(operator.Run(ctx, config, log, o.options))
}
