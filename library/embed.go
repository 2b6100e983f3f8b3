// Package library carries the ConstraintTemplates and the sets of constraints that lie
// beside it, so that programs write them into trees. It does not read them.
package library

import "embed"

// Files has kustomization.yaml, the template.yaml of each folder, constraints, and the
// constraint to begin with for images. It is read-only.
//
//go:embed kustomization.yaml */template.yaml constraints verified-images/samples/constraint-dryrun.yaml
var Files embed.FS
