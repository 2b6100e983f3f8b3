package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/lint"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// printedLint is what lint prints.
type printedLint struct {
	Findings  []printedIssue `json:"findings"`
	Resources int            `json:"resources"`
	Ignored   int            `json:"ignored"`
	Errors    int            `json:"errors"`
	Warnings  int            `json:"warnings"`
}

func newLint(by person) *cobra.Command {
	var strict bool
	var clusterResources string
	cmd := &cobra.Command{
		Use:   "lint FILE|DIR|-...",
		Short: "Find what is wrong with resources in files, before a cluster has them",
		Long: `Lint checks resources as an API server does when they are applied (schema, unknown
fields, rules), then as Landwaiter does when it compiles them, and prints
file:line: Kind namespace/name: field: what is wrong; what to do (the reason).

Each FILE is read whatever its name, each DIR as --config-dir is, and - is standard
input. Lists are read, so the output of kubectl get -o yaml is too. Objects of a
namespaced kind must name their namespace: unlike kubectl apply, lint has no flag for it.

Errors are what will be refused. Warnings are what the files alone do not decide, such as a Secret
that is not among them, and what others than admins may change; they fail with
--strict only. Files of landwaiter.dev/v1alpha1 are read too: lint says what each field
is called now, and which defaults are stricter. Lint reaches out to nothing.

Exit codes: 0 there are no errors, 1 there are (with --strict: or warnings); a document
that cannot be identified is an error. 64 the command line is wrong, a file cannot be
read, or no file has a resource of Landwaiter, 69 the result cannot be written.`,
		Example: `  landwaiter lint ./config/samples
  kubectl get landwaiter --all-namespaces -o yaml | landwaiter lint -`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("which resources? give files, directories, or - for standard input")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			problems := func(o resource.Objects) []resource.Problem {
				o.ClusterResourceNamespace = clusterResources
				return conditions.Check(o)
			}
			report, err := lint.Check(cmd.Context(), args, cmd.InOrStdin(), problems)
			if err != nil {
				return err
			}
			printed := printedLint{Resources: report.Resources, Ignored: report.Ignored, Errors: report.Count(lint.Error), Warnings: report.Count(lint.Warning),
				Findings: append([]printedIssue{}, report.Findings...)}
			if err := by.output.print(cmd, printed); err != nil {
				return err
			}
			program.Say(cmd.ErrOrStderr(), "resources: %d, errors: %d, warnings: %d, objects of other kinds: %d", printed.Resources, printed.Errors, printed.Warnings, printed.Ignored)
			if printed.Errors > 0 || strict && printed.Warnings > 0 {
				return &program.Exit{Code: program.ExitDenied}
			}
			return nil
		},
	}
	uses(cmd, true, 0, false)
	cmd.Flags().BoolVar(&strict, "strict", false, "exit with 1 for warnings too")
	cmd.Flags().StringVar(&clusterResources, program.ClusterResourcesFlag, "", program.ClusterResourcesUsage)
	return cmd
}

// show prints one line for each finding, as compilers do.
func (p printedLint) show(s *screen) {
	for _, issue := range p.Findings {
		s.line("%s", issueLine(issue))
	}
}

// issueLine returns a finding as one line.
func issueLine(i printedIssue) string {
	text := issueText(i)
	if i.Severity != lint.Error {
		text = string(i.Severity) + ": " + text
	}
	if i.Reason != "" {
		text += " (" + string(i.Reason) + ")"
	}
	return fmt.Sprintf("%s:%d: %s", i.File, i.Line, text)
}

// issueText says what is wrong with which field of which resource, and what to do.
func issueText(i printedIssue) string {
	text := i.Message
	if i.Field != "" {
		text = i.Field + ": " + text
	}
	if i.Resource != (printedRef{}) {
		text = i.Resource.String() + ": " + text
	}
	if i.Fix != "" {
		text += "; " + i.Fix
	}
	return text
}
