package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"landwaiter": main})
}

// TestScripts runs the command line as its users do: testdata/*.txtar are its
// specification. Each script has the demo's registry and resources.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			r, err := fixture.StartRegistry(fixture.RegistryOptions{TLS: true})
			if err != nil {
				return err
			}
			env.Defer(func() { _ = r.Close() })
			by, err := newSigners()
			if err != nil {
				return err
			}
			s := &scene{dir: env.WorkDir, registry: r}
			if err := s.build(t.Context(), by); err != nil {
				return err
			}
			resources, err := s.writeResources(by)
			if err != nil {
				return err
			}
			env.Setenv("CONFIG", resources)
			env.Setenv("REGISTRY", r.Host())
			empty := filepath.Join(env.WorkDir, "empty")
			return os.Mkdir(empty, 0o700)
		},
	})
}
