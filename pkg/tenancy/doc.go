// Package tenancy has no code of its own: its rooms make and keep what teams have.
//
//   - onboard: a Tenant into the objects that it stands for.
//   - operator: these objects at the API server: apply, remove, list, check.
//   - scaffold: trees of files for Git, with the same objects.
//
// No request for a verdict comes through here.
package tenancy
