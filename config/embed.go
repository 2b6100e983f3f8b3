// Package config carries the guardrails and the values for Gatekeeper's chart, which lie
// below it, so that programs write them into repositories. It does not read them.
package config

import "embed"

// Files has guardrails/guardrails.yaml and gatekeeper/values.yaml. It is read-only.
//
//go:embed guardrails/guardrails.yaml gatekeeper/values.yaml
var Files embed.FS
