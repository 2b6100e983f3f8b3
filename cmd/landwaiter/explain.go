package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/pkg/image"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// explanation is what explain prints.
type explanation struct {
	printedResult
	Resources []printedChoice `json:"resources"`
	// Looked lists every place where evidence was looked for.
	Looked []printedPlace `json:"looked"`
	// Origin is there with --compare-origin.
	Origin     *printedOrigin `json:"origin,omitempty"`
	Generation string         `json:"generation"`
	Stages     []printedStage `json:"stages"`
	Took       duration       `json:"took"`
}

func newExplain() *cobra.Command {
	var flags serviceFlags
	var output format
	var timeout time.Duration
	var compare bool
	cmd := &cobra.Command{
		Use:   "explain [--config-dir DIR] [--namespace NS] {IMAGE | -f FILE}",
		Short: "Show which resources apply to an image, what was found, and how long it took",
		Long: `Explain verifies IMAGE as the server would for a pod of the namespace, with the
resources of your cluster or from files as verify does. It shows, kind by kind, which
resources apply and from which level; every place where evidence was looked for; every
signature that was checked; and the stages with their timings.

With -f it explains each image of the Pods and workloads in files, one after the other.

With --compare-origin it also asks the registry that IMAGE names, with the same
credentials, and says what mirrors and evidence repositories lack. That changes no
verdict.

Exit codes are those of verify.`,
		Example: `  landwaiter explain --namespace team-a registry.example.com/team-a/app:v1
  landwaiter explain --config-dir ./config/samples --namespace team-a registry.example.com/team-a/app:v1`,
		Args: flags.oneImage,
		RunE: func(cmd *cobra.Command, args []string) error {
			questions, err := flags.questions(cmd, args)
			if err != nil {
				return err
			}
			r, err := flags.rulesFor(cmd, questions, timeout)
			if err != nil {
				return err
			}
			defer r.Close()
			all := explanations{Explanations: []explanation{}}
			var results []verify.Result
			for _, q := range questions {
				ref, err := image.Parse(q.image)
				if err != nil {
					return fmt.Errorf("%s: %w", used(q.use), err)
				}
				e, result := explainImage(cmd, r, q.namespace, ref, timeout, compare)
				e.Image, e.Used = q.image, q.use.Owners
				all.Explanations, results = append(all.Explanations, e), append(results, result)
			}
			if err := all.show(cmd, &output, len(flags.files) > 0); err != nil {
				return err
			}
			return exitFor(results)
		},
	}
	flags.registerRules(cmd, "namespace to explain for (empty: that of the context, or with --config-dir cluster resources only)")
	flags.registerFiles(cmd)
	output.register(cmd)
	cmd.Flags().DurationVar(&timeout, "timeout", 30*time.Second, "time to read the cluster, and again for the verification of each image")
	cmd.Flags().BoolVar(&compare, "compare-origin", false, "also ask the registry that IMAGE names, and say what mirrors and evidence repositories lack")
	return cmd
}

// explanations is what explain prints of the images of files.
type explanations struct {
	Explanations []explanation `json:"explanations"`
}

// show prints one explanation as it is, and those of files as a list.
func (x explanations) show(cmd *cobra.Command, output *format, list bool) error {
	if !list {
		return output.print(cmd, x.Explanations[0], x.Explanations[0].print)
	}
	return output.print(cmd, x, func(out io.Writer) error {
		for i, e := range x.Explanations {
			if i > 0 {
				fmt.Fprintln(out)
			}
			if err := e.print(out); err != nil {
				return err
			}
		}
		return nil
	})
}

// explainImage verifies one image and returns how it was decided.
func explainImage(cmd *cobra.Command, s rules, ns verify.Namespace, ref image.Reference, timeout time.Duration, compare bool) (explanation, verify.Result) {
	ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
	defer cancel()
	snapshot := s.Set().Snapshot()
	began := time.Now()
	result := s.verify(ctx, ns, ref)
	took := time.Since(began)
	choices := []printedChoice{}
	for _, c := range snapshot.Explain(ns) {
		if printed := printableChoice(c, s.knowsTenants()); len(choices) == 0 || printed.Level != levelUnknown || choices[len(choices)-1].Kind != c.Kind {
			choices = append(choices, printed) // policies that deny and those that warn are two choices
		}
	}
	e := explanation{printedResult: printable(ref.String(), result), Resources: choices, Looked: mapped(result.Looked, printablePlace),
		Generation: snapshot.For(ns).Generation, Stages: mapped(result.Stages, printableStage), Took: duration(took)}
	if compare {
		e.Origin = printableOrigin(s.CompareOrigin(ctx, ns, ref))
	}
	return e, result
}

func (e explanation) print(out io.Writer) error {
	namespace := e.Namespace
	if namespace == "" {
		namespace = "(none: cluster resources only)"
	}
	w := newTable(out)
	fmt.Fprintf(w, "image\t%s\ndigest\t%s\nnamespace\t%s\nverdict\t%s\nreason\t%s\ngeneration\t%.12s\n",
		e.Image, e.Digest, namespace, e.headline(), e.Reason, e.Generation)
	if err := w.Flush(); err != nil {
		return err
	}
	if e.Remediation != "" { // in one line, because it is often a command to copy
		fmt.Fprintf(out, "\nTO FIX\n%s\n", e.Remediation)
	}
	w = newTable(out)
	fmt.Fprintf(w, "\nRESOURCES\nKIND\tLEVEL\tAPPLIED\tWHY\n")
	for _, c := range e.Resources {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", c.Kind, c.level(), sourceNames(c.Applied), c.Why)
	}
	if len(e.Looked) > 0 {
		fmt.Fprintf(w, "\nLOOKED AT\nPLACE\tROLE\tIMAGE\tMANIFESTS\tTO CHECK\tERROR\n")
	}
	for _, l := range e.Looked {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%s\n", l.Place, l.Role, short(l.Digest), l.Manifests, l.Signatures, cmp.Or(l.Error, "-"))
	}
	fmt.Fprintf(w, "\nFOUND\nVERIFIER\tRESULT\tEVIDENCE\tMESSAGE\n")
	for _, f := range e.Findings {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", f.by(), f.Result, short(f.Digest), f.Message)
	}
	if len(e.Findings) == 0 {
		fmt.Fprintln(w, "-\t-\t-\tno signature was looked for; see reason")
	}
	fmt.Fprintf(w, "\nSTAGES\nSTAGE\tTOOK\tOF\n")
	for _, s := range e.Stages {
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.Name, s.Duration, s.Detail)
	}
	fmt.Fprintf(w, "total\t%s\t\n", e.Took)
	if err := w.Flush(); err != nil || e.Origin == nil {
		return err
	}
	fmt.Fprintf(out, "\nCOMPARED WITH %s\n%s\n", e.Origin.Place, strings.Join(e.Origin.Said, "\n"))
	for _, digest := range e.Origin.Missing {
		fmt.Fprintln(out, digest)
	}
	return nil
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
