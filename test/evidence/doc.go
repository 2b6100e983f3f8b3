// Package evidence tests what is accepted as proof: signatures and attestations in all
// formats, in registries and mirrors, what the real tools write, the clouds' keys and logins,
// and what teams can see of each other's. Tests without a tag ask the verifier in their own
// process, those tagged e2e ask the program; test/admission has what needs a Gatekeeper.
package evidence
