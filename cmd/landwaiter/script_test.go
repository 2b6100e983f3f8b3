package main

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/landwaiter/landwaiter/test/kit/example"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"landwaiter": main})
}

// TestScripts runs the command line as its users do: testdata/*.txtar are its
// specification. Each script has the registry and the resources of package example.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			resources := filepath.Join(env.WorkDir, "resources")
			e, err := example.Start(t.Context(), resources)
			if err != nil {
				return err
			}
			env.Defer(func() { _ = e.Registry.Close() })
			env.Setenv("CONFIG", resources)
			env.Setenv("REGISTRY", e.Registry.Host())
			return nil
		},
	})
}
