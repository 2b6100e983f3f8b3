package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

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
	kubeconfig, landwaiter string
	mutation               bool
	options                operator.RunOptions
}

func newOperate() *cobra.Command {
	var flags operateFlags
	var logLevel, logFormat string
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
			log, err := newLogger(cmd, logLevel, logFormat)
			if err != nil {
				return err
			}
			return flags.run(cmd.Context(), log)
		},
	}
	flags.register(cmd)
	cmd.Flags().StringVar(&logLevel, "log-level", "info", "debug, info, warning or error")
	cmd.Flags().StringVar(&logFormat, "log-format", "json", "json or text")
	return cmd
}

func (o *operateFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "file that says how to reach the Kubernetes API (empty: the cluster that this runs in)")
	f.StringVar(&o.options.OwnNamespace, "own-namespace", os.Getenv("POD_NAMESPACE"), "namespace of this pod, for its lease")
	f.StringVar(&o.landwaiter, "landwaiter-account", "landwaiter-system/landwaiter", "ServiceAccount of Landwaiter, as NAMESPACE/NAME")
	f.BoolVar(&o.options.LeaderElection, "leader-elect", true, "let one of several replicas work")
	f.StringVar(&o.options.HealthAddress, "health-address", ":8081", "where to serve /healthz and /readyz (empty: nowhere)")
	f.StringVar(&o.options.MetricsAddress, "metrics-address", ":8082", "where to serve /metrics (empty: nowhere)")
	f.StringSliceVar(&o.options.Reserved, "reserved-namespace", nil, "namespace that no Tenant may have, besides those of the system (repeatable)")
	f.StringVar(&o.options.Guardrail.Policy, "guardrail", "landwaiter-operator-guardrail", "ValidatingAdmissionPolicy that confines this account to namespaces of Tenants")
	f.StringVar(&o.options.Guardrail.Tenants, "guardrail-tenants", "landwaiter-operator-tenants", "ValidatingAdmissionPolicy that confines this account to what each Tenant says")
	f.DurationVar(&o.options.Guardrail.Interval, "guardrail-interval", guardrailInterval, "how often to ask whether the operator guardrails are in force")
	f.BoolVar(&o.options.InsecureNoGuardrail, "insecure-no-guardrail", false, "work without the operator guardrails: who takes over this account has every namespace")
	m := &o.options.Mutation
	f.BoolVar(&o.mutation, "mutation", false, "keep the Provider and Assign objects that pin tags, by what policies say and by the Stores that Tenants have")
	f.IntVar(&m.Limit, "mutation-limit", mutationLimit, "how many sets of Provider and Assigns for Stores of teams there are at most; each costs every admission in the cluster")
	f.StringSliceVar(&m.Exempt, "mutation-exempt-namespace", nil, "namespace whose tags are never pinned (repeatable)")
	f.StringVar(&m.Objects.ProviderURL, "provider-url", "", "where Gatekeeper reaches Landwaiter (empty: https://landwaiter.landwaiter-system.svc:443)")
	f.Int64Var(&m.Objects.TimeoutSeconds, "provider-timeout-seconds", 1, "how long Gatekeeper waits for the digest of a tag")
}

// run checks the flags and operates until ctx ends.
func (o *operateFlags) run(ctx context.Context, log *logrus.Logger) error {
	account, err := program.ParseAccount(o.landwaiter)
	if err != nil {
		return err
	}
	if o.options.Guardrail.Interval < time.Second || o.options.Guardrail.Interval > guardrailInterval {
		return fmt.Errorf("--guardrail-interval is %s, it must be between 1s and %s", o.options.Guardrail.Interval, guardrailInterval)
	}
	bridge(log)
	config, err := ownConfig(o.kubeconfig)
	if err != nil {
		return err
	}
	if o.mutation {
		o.options.Mutation.Pins = resolve.Pins
	}
	o.options.Onboard = onboard.Options{Landwaiter: account, NamespaceMaker: true, Constraints: true}
	return program.Failed(operator.Run(ctx, config, log, o.options))
}
