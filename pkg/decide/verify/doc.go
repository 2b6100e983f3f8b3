// Package verify decides whether one image may be used in one namespace. Its
// Engine resolves the image, lists and checks the evidence through interfaces that this
// package declares, and lets package policy decide. Anything but a proven pass is a deny
// or Undecided. The package reads no Kubernetes objects, keeps no global state and writes
// no logs: results carry the facts.
//
// The files, in the order of the work on one image:
//
//   - api: what callers, registries, caches and Checkers exchange with the Engine
//   - config: the compiled rules of a namespace, and the keys under which verdicts are cached
//   - engine: a request: from memory, or shared with others that ask the same
//   - plan, absent: what each tier needs to know about the image, and what it names in vain
//   - locations: where the image and its evidence are, and which digest a tag is
//   - examine: the work on one image, within the memory and turns of its account, and how long each step took
//   - kept: what a registry said of an image before, for other rules
//   - listing, gather: what refers to the image, read and given to the Checkers
//   - finding: what the error of a Checker or a registry says
//   - decide: the findings of all tiers to one verdict, for an index also by its manifests
//   - exception: what lets an image in although its verdict does not
//
// limits bounds the steps.
package verify
