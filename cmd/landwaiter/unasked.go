package main

import (
	"context"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/inspect/check"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
	"github.com/landwaiter/landwaiter/pkg/resources/constraint"
)

// unasked says about which namespaces and images Gatekeeper never asks Landwaiter, so that no verdict matters there.
type unasked struct {
	namespaces map[verify.Namespace]bool
	images     map[verify.Namespace][]string
}

// readUnasked reads what exempts the namespaces of a state and their images, as far as the person may read it.
func readUnasked(ctx context.Context, c client.Reader, state live.State) (unasked, error) {
	action, err := check.ReadActions(ctx, c)
	if err != nil {
		return unasked{}, err
	}
	u := unasked{map[verify.Namespace]bool{}, map[verify.Namespace][]string{}}
	for i := range state.Objects.Namespaces {
		n := &state.Objects.Namespaces[i]
		_, u.namespaces[verify.Namespace(n.Name)], u.images[verify.Namespace(n.Name)] = action(n.Name, n.Labels)
	}
	return u, nil
}

// of returns the exempt namespaces of uses and, in all others, the exempt images, each once.
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

// leaveOut returns uses without those that are exempt, and says which these are.
func (u unasked) leaveOut(uses []live.Use, stderr io.Writer) []live.Use {
	namespaces, images := u.of(uses)
	if len(images) > 0 {
		program.Say(stderr, "note: Gatekeeper admits images of exemptImages of its constraint without asking Landwaiter, so they are left out: %s", strings.Join(images, ", "))
	}
	if len(namespaces) > 0 {
		program.Say(stderr, "note: Gatekeeper %s, in exempt namespaces, so they are left out: %s", live.DoesToExempt, strings.Join(namespaces, ", "))
	}
	return slices.DeleteFunc(slices.Clone(uses), func(use live.Use) bool {
		return u.namespaces[use.Namespace] || constraint.LeftOut(u.images[use.Namespace], use.Image)
	})
}

// note says which of the images that a person asks about are admitted whatever the verdict is.
func (u unasked) note(uses []live.Use, stderr io.Writer) {
	namespaces, images := u.of(uses)
	if len(images) > 0 {
		program.Say(stderr, "note: Gatekeeper admits images of exemptImages of its constraint without asking Landwaiter, whatever their verdict is: %s", strings.Join(images, ", "))
	}
	if len(namespaces) > 0 {
		program.Say(stderr, "note: Gatekeeper %s, in exempt namespaces, whatever the verdict is: %s", live.DoesToExempt, strings.Join(namespaces, ", "))
	}
}
