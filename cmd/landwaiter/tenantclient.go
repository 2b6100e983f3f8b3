package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/inspect/check"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
	"github.com/landwaiter/landwaiter/pkg/tenancy/operator"
)

// adminFlags configure the cluster of an admin's command.
type adminFlags struct{ by person }

// connect returns the cluster with the user's permissions. If the user may read how serve
// runs, no Tenant gets the cluster resource namespace.
func (a *adminFlags) connect(cmd *cobra.Command, options operator.Options) (client.Client, *operator.Engine, error) {
	account, err := a.by.landwaiter()
	if err != nil {
		return nil, nil, err
	}
	config, _, err := a.by.config()
	if err != nil {
		return nil, nil, err
	}
	c, err := operator.NewClient(config)
	if err != nil {
		return nil, nil, program.Failed(err)
	}
	reserved, unknown, err := clusterResourcesOf(cmd.Context(), c, account)
	switch {
	case err != nil:
		return nil, nil, program.Failed(err)
	case unknown != "" && options.Adopt:
		program.SayLines(cmd.ErrOrStderr(), "landwaiter: "+unknown)
	}
	options.Reserved = append(options.Reserved, reserved)
	options.ClusterBindings = true
	options.Onboard = onboard.Options{Landwaiter: account, ClusterRights: true, Constraints: true}
	return c, operator.New(c, options), nil
}

// clusterResourcesOf returns the cluster resource namespace, as configured for serve. If that
// is unknown, it returns Landwaiter's own, and why.
func clusterResourcesOf(ctx context.Context, c client.Reader, landwaiter types.NamespacedName) (namespace, unknown string, err error) {
	serve, why, err := check.ReadServe(ctx, c, landwaiter.Namespace)
	if err != nil {
		return "", "", fmt.Errorf("read how serve runs: %w", err)
	}
	if serve != nil {
		namespace, given := serve.Flag(program.ClusterResourcesFlag)
		if !given {
			return landwaiter.Namespace, "", nil
		}
		if !strings.Contains(namespace, "$(") { // which the kubelet replaces
			return namespace, "", nil
		}
		why = "serve has " + namespace
	}
	return landwaiter.Namespace,
		fmt.Sprintf("the namespace of the Secrets and ConfigMaps of cluster resources is unknown (%s): %s is assumed", why, landwaiter.Namespace),
		nil
}

// notDone ends a command with 1 if something was not done.
func notDone(cmd *cobra.Command, problems []operator.Problem) error {
	for _, problem := range problems {
		program.SayLines(cmd.ErrOrStderr(), "landwaiter: "+problem.Message)
	}
	if len(problems) > 0 {
		return &program.Exit{Code: program.ExitDenied}
	}
	return nil
}

// amount is a number with its noun.
func amount(n int, noun string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
