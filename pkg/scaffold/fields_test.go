//go:build e2e

package scaffold

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// TestKnowsTheFieldsOfFlux holds the lists of fields to the definitions of the modules
// that test/tools/flux pins, which come with the modules.
func TestKnowsTheFieldsOfFlux(t *testing.T) {
	type spec struct {
		Properties map[string]any `json:"properties"`
		Required   []string       `json:"required"`
	}
	type definition struct {
		Spec struct {
			Group    string
			Names    struct{ Kind string }
			Versions []struct {
				Name   string
				Schema struct {
					OpenAPIV3Schema struct {
						Properties struct{ Spec spec }
					} `json:"openAPIV3Schema"`
				}
			}
		}
	}
	found := map[string]spec{}
	for _, controller := range []string{"source-controller", "kustomize-controller", "helm-controller"} {
		command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "github.com/fluxcd/"+controller)
		command.Dir = "../../test/tools/flux"
		output, err := command.Output()
		require.NoError(t, err, "%s", output)
		var module struct{ Dir string }
		require.NoError(t, json.Unmarshal(output, &module))
		files, err := filepath.Glob(filepath.Join(module.Dir, "config/crd/bases/*.yaml"))
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			var d definition
			require.NoError(t, yaml.Unmarshal(text, &d))
			for _, version := range d.Spec.Versions {
				found[d.Spec.Group+"/"+version.Name+" "+d.Spec.Names.Kind] = version.Schema.OpenAPIV3Schema.Properties.Spec
			}
		}
	}
	for kind, fields := range fluxFields() {
		theirs, ok := found[kind]
		require.True(t, ok, kind)
		for _, name := range slices.Sorted(maps.Keys(theirs.Properties)) {
			require.Contains(t, fields.known, name, "%s has a field that a check would refuse", kind)
		}
		require.ElementsMatch(t, theirs.Required, fields.required, kind)
		for _, name := range fields.known {
			if theirs.Properties[name] == nil {
				t.Logf("%s: %s is of a newer version", kind, name)
			}
		}
	}
}
