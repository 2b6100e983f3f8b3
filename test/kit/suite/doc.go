// Package suite starts the real parts that tests share (a control plane, Landwaiter in it,
// or a server process alone) and has what every such test does: apply YAML, make a pod, run
// a program, wait. A package of tests has one [Suite], and one [Once] for each thing that
// its tests share:
//
//	var parts = suite.New("teams")
//
//	var installed = suite.Once(parts, func(ctx context.Context, e *suite.Env) (*world, error) { … })
//
//	func TestMain(m *testing.M) { os.Exit(parts.Run(m)) }
//
//	func TestDeletingATeamKeepsItsNamespaces(t *testing.T) {
//		w := installed(t)
//
// Nothing starts before a test asks for it, so `go test -run` starts what it needs and no
// more. What a single test needs comes from [ForTest]. The package makes no assumption about
// how fast a machine is: [Patience] bounds what a test waits for, and the start of each part
// has a bound of minutes.
package suite
