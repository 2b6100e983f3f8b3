// Package library carries the ConstraintTemplates and the sets of constraints that lie
// beside it, so that programs write them into trees. It does not read them.
package library

import "embed"

// Files has the template.yaml of each folder, and constraints. It is read-only.
//
//go:embed */template.yaml verified-images/samples/constraint-dryrun.yaml
var Files embed.FS
