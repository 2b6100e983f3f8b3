// Package tenancy has no code of its own. Its packages provision and check teams.
//
//   - onboard: a Tenant into the objects that it stands for.
//   - operator: these objects at the API server: apply, remove, list, check.
//   - scaffold: trees of files for Git, with the same objects.
//
// No request for a verdict passes through here.
package tenancy
