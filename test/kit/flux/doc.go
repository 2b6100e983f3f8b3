// Package flux runs the real controllers of Flux, locked down, beside a cluster of package
// cluster, and a Git server on loopback that they fetch from. The controllers are processes
// with the tokens of their own ServiceAccounts, as in a cluster, so that guardrails see the
// same users. It does not import "testing", because `make dev` runs it too.
package flux
