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

// guardrailInterval is how long the operator works at most without a proof that its guardrails are in force.
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
		Short: "Keep what Tenants stand for in a cluster: the operator",
		Long: `Operate makes the objects of every Tenant (namespaces, account, bindings, quotas,
network policies, Flux objects) and puts right what others change. It is the same as
tenant add, by an account of its own, and says in the condition Provisioned what it
could not do. It answers no requests but health and metrics.

It never labels a namespace that exists: taking one over is an admin's own act, by
tenant add --set adopt=true.

Its account may bind roles, so the operator guardrails (two ValidatingAdmissionPolicies)
confine it to namespaces of Tenants and to what each Tenant says. At its start and every
minute it asks the API server, by dry runs, for what they must refuse. It ends if
anything else is the answer.`,
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
	f.StringSliceVar(&o.options.Reserved, "reserved-namespace", nil, "namespace that no Tenant may have, besides those of the system (repeatable)")
	g, m := &o.options.Guardrail, &o.options.Mutation
	program.RegisterNamed(f, "guardrail", "operator guardrails, and how often to ask whether they are in force (repeatable)", func(v *pflag.FlagSet) {
		v.StringVar(&g.Policy, "namespaces", "landwaiter-operator-guardrail", "ValidatingAdmissionPolicy that confines this account to namespaces of Tenants")
		v.StringVar(&g.Tenants, "tenants", "landwaiter-operator-tenants", "ValidatingAdmissionPolicy that confines this account to what each Tenant says")
		v.DurationVar(&g.Interval, "interval", guardrailInterval, "how often to ask whether the operator guardrails are in force, at least every minute")
	})
	f.BoolVar(&o.options.InsecureNoGuardrail, "insecure-no-guardrail", false, "work without the operator guardrails: who takes over this account has every namespace")
	program.RegisterNamed(f, "mutation", "keep the objects that pin tags, with limit=N and timeout-seconds=N (left out: keep none)", func(v *pflag.FlagSet) {
		v.IntVar(&m.Limit, "limit", mutationLimit, "how many sets of Provider and Assigns for Stores of teams there are at most; each costs every admission in the cluster (0: only those of the cluster)")
		v.Int64Var(&m.Objects.TimeoutSeconds, "timeout-seconds", 1, "how long Gatekeeper waits for the digest of a tag")
	})
	f.Lookup("mutation").DefValue = "" // the values count only if the flag is given
	f.StringSliceVar(&m.Exempt, "mutation-exempt-namespace", nil, "namespace whose tags are never pinned (repeatable)")
}

// take adds what the flags of both commands say.
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
	o.options.Onboard = onboard.Options{Landwaiter: account, NamespaceMaker: true, Constraints: true}
	return program.Failed(operator.Run(ctx, config, log, o.options))
}
