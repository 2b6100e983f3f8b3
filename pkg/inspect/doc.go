// Package inspect has no code of its own. Its packages show people the state of a cluster, with only
// their own permissions.
//
//   - live: a cluster as one person may read it, for commands that preview.
//   - check: what is wrong with an installation, such as guardrails that are not those of this version.
//   - isolation: tries what teams must not be able to do.
//   - page: what commands print, as HTML on loopback for one person.
//   - support: an archive for the people you ask for help.
//
// Nothing here writes, and no request for a verdict passes through here.
package inspect
