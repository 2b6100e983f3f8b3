package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
)

// serviceFlags are the flags of every command that verifies.
type serviceFlags struct {
	program.Service

	configDir string
	by        person
	installed types.NamespacedName // the account of the server
	files     []string             // of -f
	anonymous bool                 // whether neither files nor a cluster are needed
	strict    bool                 // whether problems of resources are errors
	given     []string             // of --serve-flag
	served    *pflag.FlagSet
}

// registerServer declares the flags that locate the server and describe how it runs.
func (f *serviceFlags) registerServer(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.given, "serve-flag", nil, "flag of landwaiter-server serve that changes verdicts, FLAG or FLAG=VALUE, "+
		"such as egress-host=ocsp.example.com (repeatable)")
}

// parseServed reads which server is meant, and its flags from --serve-flag.
func (f *serviceFlags) parseServed() (err error) {
	if f.installed, err = f.by.landwaiter(); err != nil {
		return err
	}
	f.served = pflag.NewFlagSet("serve", pflag.ContinueOnError)
	f.served.SetOutput(io.Discard)
	f.RegisterNetwork(f.served)
	f.Exceptions.Register(f.served)
	for _, given := range f.given {
		name, _, _ := strings.Cut(strings.TrimPrefix(given, "--"), "=")
		if f.served.Lookup(name) == nil {
			return fmt.Errorf("--serve-flag %q: verdicts do not depend on %s; they depend on %s", given, name, strings.Join(f.servedNames(), ", "))
		}
		if err := f.served.Parse([]string{"--" + strings.TrimPrefix(given, "--")}); err != nil {
			return fmt.Errorf("--serve-flag %q: %w", given, err)
		}
	}
	return nil
}

func (f *serviceFlags) servedNames() (names []string) {
	f.served.VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	return names
}

// load returns a service with the resources in --config-dir in force, for a command that runs
// once and asks about a namespace. It prints problems to standard error. If the directory is
// optional and not given, there are no resources.
func (f *serviceFlags) load(cmd *cobra.Command, namespace verify.Namespace) (*service.Service, error) {
	options, err := f.Complete()
	if err != nil {
		return nil, err
	}
	s, loaded, err := service.Load(cmd.Context(), f.configDir, options)
	if err != nil {
		return nil, err
	}
	if s.Set().Snapshot().Tenant(namespace) != "" { // a prefix covers namespaces that no file declares
		loaded.Namespaces = append(loaded.Namespaces, string(namespace))
	}
	if err := f.report(cmd.ErrOrStderr(), namespace, loaded); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// report prints the problems of the loaded resources. With --strict it returns an error if
// there are any.
func (f *serviceFlags) report(stderr io.Writer, namespace verify.Namespace, loaded service.Loaded) error {
	said := "warning"
	if f.strict {
		said = "error"
	}
	for _, p := range loaded.Problems {
		program.SayLines(stderr, fmt.Sprintf("%s: %s: %s: %s", said, program.Plain(p.Source.String()), p.Reason, p.Message))
	}
	if loaded.Ignored > 0 {
		program.Say(stderr, "note: objects of kinds that Landwaiter does not use were ignored: %d", loaded.Ignored)
	}
	wrong := len(loaded.Problems)
	if f.configDir != "" && namespace != verify.Cluster && !slices.Contains(loaded.Namespaces, string(namespace)) {
		wrong++
		program.Say(stderr, "%s: %s", said, f.unknown(string(namespace), loaded))
	}
	if f.strict && wrong > 0 {
		return &program.Exit{Code: program.ExitUndecided,
			Err: fmt.Errorf("--strict: no image was verified, because %s has the errors above", f.configDir)}
	}
	return nil
}

// maxNames is the number of names that a message lists.
const maxNames = 10

// unknown says that the files contain nothing in a namespace, and which namespaces they have.
func (f *serviceFlags) unknown(namespace string, loaded service.Loaded) string {
	text := fmt.Sprintf("no file in %s declares namespace %s or has an object in it, so only cluster resources apply", f.configDir, namespace)
	names := loaded.Namespaces
	if near, ok := policy.Nearest(namespace, names); ok {
		return fmt.Sprintf("%s; did you mean %s?", text, near)
	}
	if len(names) == 0 {
		return text + "; the files have no namespaces"
	}
	return fmt.Sprintf("%s; the files have %s", text, firstNames(names))
}

// firstNames lists the first names, and the number of further ones.
func firstNames(names []string) string {
	if more := len(names) - maxNames; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), more)
	}
	return strings.Join(names, ", ")
}
