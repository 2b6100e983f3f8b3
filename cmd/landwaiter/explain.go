package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/pkg/image"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// explanation is what explain prints.
type explanation struct {
	printedResult
	Resources  []printedChoice `json:"resources"`
	Generation string          `json:"generation"`
	Stages     []printedStage  `json:"stages"`
	Took       time.Duration   `json:"took"`
}

func newExplain() *cobra.Command {
	var flags serviceFlags
	var namespace, output string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "explain --config-dir DIR [--namespace NS] IMAGE",
		Short: "Show which resources apply to an image, what was found, and how long it took",
		Long: `Explain verifies IMAGE as the server would for a pod of the namespace and shows,
kind by kind, which resources apply and from which level; every signature that was
checked; and the stages with their timings.

Exit codes are those of verify.`,
		Example: `  landwaiter explain --config-dir ./config/samples --namespace team-a registry.example.com/team-a/app:v1`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "text" && output != "json" {
				return fmt.Errorf("--output is %q, it must be text or json", output)
			}
			ns, err := parseNamespaceFlag(namespace)
			if err != nil {
				return err
			}
			ref, err := image.Parse(args[0])
			if err != nil {
				return err
			}
			e, result, err := explainImage(cmd, flags, ns, ref, timeout)
			if err != nil {
				return err
			}
			e.Image = args[0]
			if output == "json" {
				err = printJSON(cmd.OutOrStdout(), e)
			} else {
				err = e.print(cmd.OutOrStdout())
			}
			if err != nil {
				return unavailable(err)
			}
			return exitFor([]verify.Result{result})
		},
	}
	flags.register(cmd, true)
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "namespace to explain for (empty: cluster resources only)")
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	cmd.Flags().DurationVar(&timeout, "timeout", 30*time.Second, "time for the verification")
	return cmd
}

// explainImage verifies one image and returns how it was decided.
func explainImage(cmd *cobra.Command, flags serviceFlags, ns verify.Namespace, ref image.Reference, timeout time.Duration) (explanation, verify.Result, error) {
	s, err := flags.load(cmd.Context(), cmd.ErrOrStderr())
	if err != nil {
		return explanation{}, verify.Result{}, err
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
	defer cancel()
	snapshot := s.Set().Snapshot()
	began := time.Now()
	result := s.Verify(ctx, ns, ref)
	took := time.Since(began)
	choices := []printedChoice{}
	for _, c := range snapshot.Explain(ns) {
		choices = append(choices, printedChoice{Kind: c.Kind, Level: c.Level, Why: c.Why,
			Applied: mapped(c.Applied, func(ref policy.ObjectRef) printedRef { return printedRef(ref) })})
	}
	return explanation{printedResult: printable(ref.String(), result), Resources: choices,
		Generation: snapshot.For(ns).Generation, Stages: mapped(result.Stages, printableStage), Took: took}, result, nil
}

func (e explanation) print(out io.Writer) error {
	namespace := e.Namespace
	if namespace == "" {
		namespace = "(none: cluster resources only)"
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "image\t%s\ndigest\t%s\nnamespace\t%s\nverdict\t%s\nreason\t%s\ngeneration\t%.12s\n",
		e.Image, e.Digest, namespace, e.headline(), e.Reason, e.Generation)
	fmt.Fprintf(w, "\nRESOURCES\nKIND\tLEVEL\tAPPLIED\tWHY\n")
	for _, c := range e.Resources {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", c.Kind, c.Level, sourceNames(c.Applied), c.Why)
	}
	fmt.Fprintf(w, "\nFOUND\nVERIFIER\tRESULT\tEVIDENCE\tMESSAGE\n")
	for _, f := range e.Findings {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", f.Source, f.Result, short(f.Digest), f.Message)
	}
	switch {
	case len(e.Findings) > 0:
	case e.Digest == "":
		fmt.Fprintln(w, "-\t-\t-\tno signature was looked for; see reason")
	default:
		fmt.Fprintln(w, "-\t-\t-\tno signature was found, or none was needed")
	}
	fmt.Fprintf(w, "\nSTAGES\nSTAGE\tTOOK\tOF\n")
	for _, s := range e.Stages {
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.Name, s.Duration.Round(time.Microsecond), s.Detail)
	}
	fmt.Fprintf(w, "total\t%s\t\n", e.Took.Round(time.Microsecond))
	return w.Flush()
}

func sourceNames(sources []printedRef) string {
	if len(sources) == 0 {
		return "-"
	}
	names := make([]string, len(sources))
	for i, s := range sources {
		names[i] = s.String()
	}
	return strings.Join(names, ", ")
}
