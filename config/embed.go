// Package config carries the guardrails, the pieces of the reconciler's role and the values for
// Gatekeeper's chart, which lie below it, so that programs write them into repositories. It does not
// read them.
package config

import "embed"

// Files has guardrails/guardrails.yaml, gatekeeper/values.yaml and pieces/*.yaml. It is read-only.
//
//go:embed guardrails/guardrails.yaml gatekeeper/values.yaml pieces/*.yaml
var Files embed.FS
