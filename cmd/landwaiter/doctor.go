package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/inspect/doctor"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
)

// printedDiagnosis is what doctor prints.
type printedDiagnosis doctor.Report

func newDoctor(by person) *cobra.Command {
	var options doctor.Options
	var isolation isolationFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find what is wrong with an installation, with the command that fixes it",
		Long: `Doctor reads how Gatekeeper and Landwaiter are installed, with your own permissions, and
changes nothing. It finds timeouts that contradict each other, webhooks that fail open,
namespaces that are exempt, constraints that deny less than they seem to, certificates and
roots that end within 30 days, resources that cannot be used, missing or changed
guardrails, and trust that developers can change. docs/doctor.md explains each finding.

Each finding comes with the command that fixes it. Run it in the folder of this repository,
with the permissions of a cluster admin, and read it first. "keep it" names the setting without
which the next upgrade brings the finding back.

The ClusterRole landwaiter-doctor may read everything that doctor looks at, and no Secret.
A cluster admin binds it by hand.

Exit codes: 0 nothing was found, 1 there are findings, 2 nothing was found, but a missing
permission, which is named, kept a check from being made, 64 the command line is wrong,
69 the Kubernetes API does not answer.

` + isolationHelp,
		Example: `  landwaiter doctor
  landwaiter doctor -o json | jq -r '.findings[].command'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := isolation.check(); err != nil {
				return err
			}
			config, _, err := by.config()
			if err != nil {
				return err
			}
			account, err := by.landwaiter()
			if err != nil {
				return err
			}
			options.Namespace = account.Namespace
			timeout := by.within(cmd)
			ctx, cancel, failed := bounded(cmd.Context(), config, timeout)
			defer cancel()
			if isolation.wanted {
				return isolation.run(ctx, cmd, config, failed, account, &by.output)
			}
			schemas := schema.New()
			reader, err := live.New(config, schemas)
			if err != nil {
				return program.Failed(err)
			}
			inventory, err := doctor.Read(ctx, reader.Client(), options, time.Now())
			if err != nil {
				return failed(err)
			}
			report := doctor.Examine(inventory, schemas)
			if err := by.output.print(cmd, printedDiagnosis(report)); err != nil {
				return err
			}
			return diagnosed(report)
		},
	}
	isolation.register(cmd)
	uses(cmd, true, time.Minute, true)
	f := cmd.Flags()
	f.StringVar(&options.Gatekeeper, "gatekeeper-namespace", "gatekeeper-system", "namespace of Gatekeeper, if its webhook does not name a Service")
	f.StringSliceVar(&options.Exempt, "exempt-namespace", nil, "namespace that is meant to be exempt from verification, besides those of the system (repeatable)")
	return cmd
}

// diagnosed ends the command with what was found.
func diagnosed(report doctor.Report) error {
	if len(report.Findings) > 0 {
		return &program.Exit{Code: program.ExitDenied}
	}
	for _, u := range report.Unchecked {
		if !u.Unpublished {
			return &program.Exit{Code: program.ExitUndecided, Err: errors.New("not everything could be checked")}
		}
	}
	return nil
}

// show prints one paragraph for each finding. Commands are not wrapped, so that they can
// be copied.
func (p printedDiagnosis) show(s *screen) {
	for _, f := range p.Findings {
		s.wrapped("", "  ", fmt.Sprintf("%s %s: %s: %s: %s.", f.Severity, f.ID, f.Object, f.What, f.Why))
		s.line("  fix:     %s", f.Command)
		if f.Keep != "" {
			s.line("  keep it: %s", f.Keep)
		}
		s.line("")
	}
	lacking, unknown := false, sets.New[doctor.ID]()
	for _, u := range p.Unchecked {
		lacking = lacking || u.Missing != ""
		unknown.Insert(u.IDs...)
		s.line("not checked: %s:", u.Why)
		s.wrapped("    ", "    ", strings.Join(mapped(u.IDs, func(id doctor.ID) string { return string(id) }), ", "))
	}
	if lacking {
		s.line("The ClusterRole landwaiter-doctor has all of these permissions: ask a cluster admin to bind it.")
	}
	s.line("%s, %s not checked", amount(len(p.Findings), "finding"), amount(unknown.Len(), "kind"))
}
