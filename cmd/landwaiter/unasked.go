package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/inspect/check"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
	"github.com/landwaiter/landwaiter/pkg/resources/constraint"
)

// maxAdmitted is the number of namespaces in one note.
const maxAdmitted = 10

// unasked lists the namespaces and images about which Gatekeeper never asks Landwaiter, so that verdicts do not
// matter there.
type unasked struct {
	namespaces map[verify.Namespace]bool
	images     map[verify.Namespace][]string
	// actions are Gatekeeper's actions on a violation, "" if unknown.
	actions map[verify.Namespace]string
}

// readUnasked reads the exemptions of the namespaces of a state and their images, as far as the person may
// read them.
func readUnasked(ctx context.Context, c client.Reader, state live.State) (unasked, error) {
	action, err := check.ReadActions(ctx, c)
	if err != nil {
		return unasked{}, err
	}
	u := unasked{map[verify.Namespace]bool{}, map[verify.Namespace][]string{}, map[verify.Namespace]string{}}
	for i := range state.Objects.Namespaces {
		n := &state.Objects.Namespaces[i]
		name := verify.Namespace(n.Name)
		u.actions[name], u.namespaces[name], u.images[name] = action(n.Name, n.Labels)
	}
	return u, nil
}

// of returns the exempt namespaces of uses and, in all others, the distinct exempt images.
func (u unasked) of(uses []live.Use) (namespaces, images []string) {
	for _, use := range uses {
		switch {
		case u.namespaces[use.Namespace]:
			if !slices.Contains(namespaces, string(use.Namespace)) {
				namespaces = append(namespaces, string(use.Namespace))
			}
		case constraint.LeftOut(u.images[use.Namespace], use.Image) && !slices.Contains(images, use.Image):
			images = append(images, use.Image)
		}
	}
	return namespaces, images
}

// leaveOut returns uses without exempt ones, and names these.
func (u unasked) leaveOut(uses []live.Use, stderr io.Writer) []live.Use {
	namespaces, images := u.of(uses)
	if len(images) > 0 {
		program.Say(stderr, "note: Gatekeeper admits images of exemptImages of its constraint without asking Landwaiter, so they are "+
			"left out: %s", strings.Join(images, ", "))
	}
	if len(namespaces) > 0 {
		program.Say(stderr, "note: Gatekeeper %s, in exempt namespaces, so they are left out: %s", live.DoesToExempt,
			strings.Join(namespaces, ", "))
	}
	return slices.DeleteFunc(slices.Clone(uses), func(use live.Use) bool {
		return u.namespaces[use.Namespace] || constraint.LeftOut(u.images[use.Namespace], use.Image)
	})
}

// note says which of the images in question are admitted regardless of the verdict.
func (u unasked) note(uses []live.Use, stderr io.Writer) {
	namespaces, images := u.of(uses)
	if len(images) > 0 {
		program.Say(stderr, "note: Gatekeeper admits images of exemptImages of its constraint without asking Landwaiter, whatever their "+
			"verdict is: %s", strings.Join(images, ", "))
	}
	if len(namespaces) > 0 {
		program.Say(stderr, "note: Gatekeeper %s, in exempt namespaces, whatever the verdict is: %s", live.DoesToExempt,
			strings.Join(namespaces, ", "))
	}
}

// admitted says how many images are denied, with and without the change, but run because the constraint does not
// deny.
func (u unasked) admitted(rows []live.Row, stderr io.Writer) {
	of := map[verify.Namespace]int{}
	for _, row := range rows {
		if action := u.actions[row.Namespace]; row.From() == verify.AnswerDenied && row.To() == verify.AnswerDenied &&
			(action == string(constraint.Warn) || action == string(constraint.Dryrun)) {
			of[row.Namespace]++
		}
	}
	if len(of) == 0 {
		return
	}
	var counts []string
	for _, namespace := range slices.Sorted(maps.Keys(of)) {
		counts = append(counts, fmt.Sprintf("%d in %s (%s)", of[namespace], namespace, u.actions[namespace]))
	}
	if more := len(counts) - maxAdmitted; more > 0 {
		counts = append(counts[:maxAdmitted], fmt.Sprintf("and %d more namespaces", more))
	}
	program.Say(stderr, "note: images that are denied already, and would be refused as soon as Gatekeeper's constraint denies: %s",
		strings.Join(counts, ", "))
}
