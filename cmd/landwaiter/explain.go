package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
)

// printedExplanation is what explain prints.
type printedExplanation struct {
	printedResult
	Resources []printedChoice `json:"resources"`
	// Locations lists every repository where evidence was looked for.
	Locations []printedLocation `json:"locations"`
	// Origin is there with --compare-origin.
	Origin     *printedOrigin `json:"origin,omitempty"`
	Generation string         `json:"configHash"`
	Stages     []printedStage `json:"stages"`
	Took       duration       `json:"took"`
}

func newExplain(by person) *cobra.Command {
	flags := serviceFlags{by: by}
	var output format
	var timeout time.Duration
	var compare bool
	cmd := &cobra.Command{
		Use:   "explain [--config-dir DIR] [--namespace NS] {IMAGE | -f FILE}",
		Short: "Show which resources apply to an image, what was found, and how long it took",
		Long: `Explain verifies IMAGE as the server would for a pod of the namespace, with the
resources of your cluster or from files as verify does. It shows, kind by kind, which
resources apply and from which level; every repository where evidence was looked for; every
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
			r, questions, err := flags.ask(cmd, args, timeout)
			if err != nil {
				return err
			}
			defer r.Close()
			all := printedExplanations{Explanations: []printedExplanation{}}
			var results []verify.Result
			for _, q := range questions {
				ref, err := image.Parse(q.Image)
				if err != nil {
					return fmt.Errorf("%s: %w", used(q), err)
				}
				e, result := explainImage(cmd, r, q.Namespace, ref, timeout, compare)
				e.Image, e.Used = q.Image, q.Owners
				all.Explanations, results = append(all.Explanations, e), append(results, result)
			}
			var printed shown = all
			if len(flags.files) == 0 {
				printed = all.Explanations[0]
			}
			if err := output.print(cmd, printed); err != nil {
				return err
			}
			return exitFor(results)
		},
	}
	flags.registerRules(cmd)
	output.register(cmd)
	cmd.Flags().DurationVar(&timeout, "timeout", 30*time.Second, "time to read the cluster, and again for the verification of each image")
	cmd.Flags().BoolVar(&compare, "compare-origin", false, "also ask the registry that IMAGE names, and say what mirrors and evidence repositories lack")
	return cmd
}

// printedExplanations is what explain prints of the images of files.
type printedExplanations struct {
	Explanations []printedExplanation `json:"explanations"`
}

func (x printedExplanations) show(s *screen) {
	for i, e := range x.Explanations {
		if i > 0 {
			s.line("")
		}
		e.show(s)
	}
}

// explainImage verifies one image and returns how it was decided.
func explainImage(cmd *cobra.Command, s rules, ns verify.Namespace, ref image.Reference, timeout time.Duration, compare bool) (printedExplanation, verify.Result) {
	ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
	defer cancel()
	snapshot := s.Set().Snapshot()
	began := time.Now()
	result := s.verify(ctx, ns, ref)
	took := time.Since(began)
	choices := []printedChoice{}
	for _, c := range snapshot.Explain(ns) {
		if printed := printableChoice(printedChoice(c), s.knowsTenants()); len(choices) == 0 || printed.Level != levelUnknown || choices[len(choices)-1].Kind != c.Kind {
			choices = append(choices, printed) // policies that deny and those that warn are two choices
		}
	}
	e := printedExplanation{printedResult: printable(ref.String(), result), Resources: choices, Locations: mapped(result.Looked, printableLocation),
		Generation: snapshot.For(ns).Generation, Stages: mapped(result.Stages, printableStage), Took: duration(took)}
	if compare {
		e.Origin = printableOrigin(live.CompareOrigin(ctx, snapshot, ns, ref))
	}
	return e, result
}

func (e printedExplanation) show(s *screen) {
	s.row("image", e.Image)
	s.row("digest", e.Digest)
	s.row("namespace", cmp.Or(e.Namespace, "(none: cluster resources only)"))
	s.row("verdict", e.headline())
	s.row("reason", e.Reason)
	s.row("config hash", fmt.Sprintf("%.12s", e.Generation))
	s.line("")
	if e.Remediation != "" { // in one line, because it is often a command to copy
		s.line("TO FIX")
		s.line("%s", e.Remediation)
		s.line("")
	}
	s.line("RESOURCES")
	s.row("KIND", "LEVEL", "APPLIED", "WHY")
	for _, c := range e.Resources {
		s.row(c.Kind, levelOf(c), cmp.Or(strings.Join(mapped(c.Applied, printedRef.String), ", "), "-"), c.Why)
	}
	if len(e.Locations) > 0 {
		s.section("LOOKED AT")
		s.row("PLACE", "ROLE", "IMAGE", "MANIFESTS", "TO CHECK", "ERROR")
	}
	for _, l := range e.Locations {
		s.row(l.Repository, l.Role, short(l.Digest), l.Manifests, l.Signatures, cmp.Or(l.Error, "-"))
	}
	s.section("FOUND")
	s.row("VERIFIER", "RESULT", "EVIDENCE", "MESSAGE")
	for _, f := range e.Findings {
		s.row(f.by(), f.Result, short(f.Digest), f.Message)
	}
	if len(e.Findings) == 0 {
		s.row("-", "-", "-", "no signature was looked for; see reason")
	}
	s.section("STAGES")
	s.row("STAGE", "TOOK", "OF")
	for _, stage := range e.Stages {
		s.row(stage.Name, stage.Duration, stage.Detail)
	}
	s.row("total", e.Took, "")
	if e.Origin == nil {
		return
	}
	s.section("COMPARED WITH %s", e.Origin.Repository)
	for _, said := range slices.Concat(e.Origin.Said, e.Origin.Missing) {
		s.line("%s", said)
	}
}
