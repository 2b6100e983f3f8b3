package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// sharedFlags are the flags of both commands.
type sharedFlags struct {
	logLevel, logFormat           string
	healthAddress, metricsAddress string
	leaderElection                bool
	ownNamespace, providerURL     string
}

func (s *sharedFlags) register(f *pflag.FlagSet) {
	f.StringVar(&s.logLevel, "log-level", "info", "debug, info, warning or error")
	f.StringVar(&s.logFormat, "log-format", "json", "json or text")
	f.StringVar(&s.healthAddress, "health-address", ":8081", "address of /healthz and /readyz (empty: none)")
	f.StringVar(&s.metricsAddress, "metrics-address", ":8082", "address of /metrics (empty: none)")
	f.BoolVar(&s.leaderElection, "leader-elect", true, "elect one replica that writes to the cluster; all replicas of serve answer requests")
	f.StringVar(&s.ownNamespace, "own-namespace", os.Getenv("POD_NAMESPACE"),
		"namespace of this pod, for its Lease and certificate; if omitted, the value of the variable POD_NAMESPACE")
	f.StringVar(&s.providerURL, "provider-url", "", "URL at which Gatekeeper reaches serve, without a path (empty: port 443 of the "+
		"Service of serve)")
}

// logger returns the logger that the flags describe.
func (s *sharedFlags) logger(cmd *cobra.Command) (*logrus.Logger, error) {
	log := logrus.New()
	log.SetOutput(cmd.ErrOrStderr())
	parsed, err := logrus.ParseLevel(s.logLevel)
	if err != nil {
		return nil, fmt.Errorf("--log-level is %q, it must be debug, info, warning or error", s.logLevel)
	}
	log.SetLevel(parsed)
	switch s.logFormat {
	case "json":
		log.SetFormatter(&logrus.JSONFormatter{})
	case "text":
	default:
		return nil, fmt.Errorf("--log-format is %q, it must be json or text", s.logFormat)
	}
	return log, nil
}

// hideShared makes the help of a command name the flags of both commands in one line, instead
// of describing them: the root's help does.
func hideShared(root *cobra.Command) {
	shared, usage := root.PersistentFlags(), root.UsageFunc()
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		if cmd == root {
			return usage(cmd)
		}
		var names []string
		shared.VisitAll(func(flag *pflag.Flag) { flag.Hidden, names = true, append(names, "--"+flag.Name) })
		defer shared.VisitAll(func(flag *pflag.Flag) { flag.Hidden = false })
		if err := usage(cmd); err != nil {
			return err
		}
		_, err := fmt.Fprintf(cmd.OutOrStderr(), "\nMore flags, see %s --help: %s\n", root.Name(), strings.Join(names, ", "))
		return err
	})
}
