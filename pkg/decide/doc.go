// Package decide has no code of its own. Its packages turn findings into a verdict.
//
//   - policy: weighs findings into a verdict with a reason.
//   - cel: conditions in CEL and regular expressions, bounded before they are compiled.
//   - fair: shares places, bytes and turns between quota owners.
//   - verify: the Engine: resolve, list, check, decide, under one deadline. Begin at verify/engine.go.
//
// verify declares the interfaces that it needs; the wings above implement them. Everything that is
// not a proven pass is Denied or Undecided here, regardless of the cause.
package decide
