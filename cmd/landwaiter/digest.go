package main

import (
	"context"
	"fmt"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
)

// printedResolution is the output of verify --digest for one image.
type printedResolution struct {
	Image     string `json:"image"`
	Namespace string `json:"namespace,omitempty"`
	Digest    string `json:"digest"`
	Resolved  string `json:"resolved"`
}

func (r printedResolution) show(s *screen) { s.line("%s", r.Resolved) }

// printedResolutions is the output of verify --digest.
type printedResolutions struct {
	Results []printedResolution `json:"results"`
}

func (r printedResolutions) show(s *screen) {
	for _, resolved := range r.Results {
		resolved.show(s)
	}
}

// resolveImage returns the digest of one image.
func resolveImage(ctx context.Context, by rules, q live.Use) (printedResolution, error) {
	ref, err := image.Parse(q.Image)
	if err != nil {
		return printedResolution{}, &program.Exit{Code: program.ExitDenied, Err: fmt.Errorf("%s: %w", used(q), err)}
	}
	pinned, err := by.Resolve(ctx, q.Namespace, ref)
	switch {
	case verify.IsPermanent(err):
		return printedResolution{}, &program.Exit{Code: program.ExitDenied, Err: err}
	case err != nil:
		return printedResolution{}, &program.Exit{Code: program.ExitUndecided, Err: err}
	}
	return printedResolution{Image: q.Image, Namespace: string(q.Namespace), Digest: pinned.Digest.String(), Resolved: pinned.String()}, nil
}

// resolveAll returns the digests of images.
func resolveAll(ctx context.Context, by rules, questions []live.Use) (printedResolutions, error) {
	all := printedResolutions{Results: []printedResolution{}}
	for _, q := range questions {
		resolved, err := resolveImage(ctx, by, q)
		if err != nil {
			return printedResolutions{}, err
		}
		all.Results = append(all.Results, resolved)
	}
	return all, nil
}
