// Package library carries the ConstraintTemplates and the sets of constraints that lie
// beside it, so that programs write them into trees. It does not read them.
package library

import "embed"

// Files has kustomization.yaml, the template.yaml of each folder, constraints, and the
// constraint for images and the rules for Flux's images, which deny unless a tree says
// otherwise. It is read-only.
//
//go:embed kustomization.yaml */template.yaml constraints verified-images/samples/constraint.yaml samples/flux-images.yaml
var Files embed.FS
