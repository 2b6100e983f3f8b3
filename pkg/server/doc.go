// Package server has no code of its own. Its packages are the parts of the command serve.
//
//   - provider: the HTTPS edge that Gatekeeper calls.
//   - serving: the certificate, the client CAs, and the Provider objects.
//   - controller: watches resources, compiles what changed, writes statuses.
//   - warm: verifies images before anybody asks.
//   - report: Events and reports where teams look, and what only the process knows, for check.
//   - enforcement: what Gatekeeper does with verdicts in each namespace.
//   - tracing: spans for a collector.
//
// It is the highest wing: only cmd imports it.
package server
