package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// listed is a package in the output of `go list -json`.
type listed struct {
	ImportPath string
	Deps       []string // all dependencies, transitively
}

func readDeps(t *testing.T, packages ...string) map[string][]string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", append([]string{"list", "-json=ImportPath,Deps"}, packages...)...)
	command.Dir = root
	command.Env = append(os.Environ(), "CGO_ENABLED=0") // as the Makefile and the Dockerfile, on machines with a C compiler too
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	require.NoError(t, err, "go list: %s", &stderr)
	deps := map[string][]string{}
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var l listed
		err := decoder.Decode(&l)
		if errors.Is(err, io.EOF) {
			return deps
		}
		require.NoError(t, err)
		name, ours := own(l.ImportPath)
		require.True(t, ours, l.ImportPath)
		deps[name] = l.Deps
	}
}

// heavy lists dependencies that a package below the wing resources must not have, even
// transitively: Kubernetes clients, and outside api any Kubernetes package. klog is allowed,
// because a dependency of pkg/evidence/cosign logs with it.
func (h house) heavy(pkg string, deps []string) []string {
	storey, _ := h.storey(pkg)
	if storey > lastWithout {
		return nil
	}
	var found []string
	for _, dep := range deps {
		client := below(dep, "k8s.io/client-go") || below(dep, "sigs.k8s.io/controller-runtime")
		kubernetes := (below(dep, "k8s.io") || below(dep, "sigs.k8s.io")) && !below(dep, "k8s.io/klog/v2")
		if client || kubernetes && !below(pkg, "api") {
			found = append(found, fmt.Sprintf("%s (storey %d) needs %s", pkg, storey, dep))
		}
	}
	return found
}

func TestEvidenceCarriesNoKubernetes(t *testing.T) {
	table, deps := readTable(t), readDeps(t, "./api/...", "./config", "./config/crd", "./library", "./pkg/...")
	for room := range table {
		require.NotEmpty(t, deps[room], "go list does not know %s", room)
	}
	for pkg := range deps {
		require.Empty(t, table.heavy(pkg, deps[pkg]))
	}
}

// forTests lists test dependencies that a program must not have: test code, in-memory
// registries and test libraries.
func forTests(deps []string) []string {
	var found []string
	for _, dep := range deps {
		name, ours := own(dep)
		if ours && below(name, "test") {
			found = append(found, dep)
		}
		for _, library := range []string{"cuelabs.dev/go/oci/ociregistry", "github.com/google/go-containerregistry/pkg/registry",
			"github.com/stretchr/testify", "github.com/alicebob/miniredis"} {
			if below(dep, library) {
				found = append(found, dep)
			}
		}
	}
	return found
}

// programs lists what is built below cmd.
func programs() []string { return []string{"cmd/landwaiter", "cmd/landwaiter-server"} }

func TestNoProgramCarriesAnythingOfTheTests(t *testing.T) {
	deps := readDeps(t, "./cmd/...")
	for _, program := range programs() {
		require.NotEmpty(t, deps[program], program)
		require.Empty(t, forTests(deps[program]), program)
	}
}

// built has the build tags of the Makefile, the Dockerfile and releases.
const built = "-tags=kustomize_disable_go_plugin_support,grpcnotrace"

// Built as releases are, they have no loader of Go plugins, and
// the server no pages of gRPC's traces.
func TestNoProgramLoadsCode(t *testing.T) {
	deps := readDeps(t, built, "./cmd/...")
	for _, program := range programs() {
		require.NotEmpty(t, deps[program], program)
		require.NotContains(t, deps[program], "plugin", program)
		require.NotContains(t, deps[program], "golang.org/x/net/trace", program)
	}
}

// forPeople lists what admissions never go through: what people run, and the libraries that only
// that needs.
func forPeople(deps []string) (found []string) {
	for _, dep := range deps {
		for _, part := range []string{module + "/pkg/inspect", module + "/pkg/resources/lint", module + "/pkg/tenancy/scaffold",
			"sigs.k8s.io/kustomize", "k8s.io/kubectl", "k8s.io/cli-runtime", "helm.sh/helm"} {
			if below(dep, part) {
				found = append(found, dep)
			}
		}
	}
	return found
}

// mostOfServer is how many packages the server links at most, those of Go included.
const mostOfServer = 1510

func TestTheServerCarriesNothingThatOnlyPeopleRun(t *testing.T) {
	deps := readDeps(t, built, "./cmd/...")
	require.Empty(t, forPeople(deps["cmd/landwaiter-server"]))
	require.NotEmpty(t, forPeople(deps["cmd/landwaiter"]))
	require.LessOrEqual(t, len(deps["cmd/landwaiter-server"]), mostOfServer, "it gets a library: is it worth what every admission's reviewer reads?")
	for _, room := range []string{"pkg/server/provider", "pkg/server/controller", "pkg/tenancy/operator"} {
		require.Contains(t, deps["cmd/landwaiter-server"], module+"/"+room)
		if room != "pkg/tenancy/operator" {
			require.NotContains(t, deps["cmd/landwaiter"], module+"/"+room, "people need no server")
		}
	}
}

func TestRefusesTestCodeInTheProgram(t *testing.T) {
	for dep, refused := range map[string]bool{
		module + "/test/kit/fixture":                          true,
		module + "/pkg/decide/verify":                         false,
		"cuelabs.dev/go/oci/ociregistry/ocimem":               true,
		"github.com/google/go-containerregistry/pkg/registry": true,
		"github.com/google/go-containerregistry/pkg/name":     false,
		"github.com/stretchr/testify/require":                 true,
		"github.com/alicebob/miniredis/v2":                    true,
		"testing":                                             false, // libraries import it
	} {
		require.Equal(t, refused, len(forTests([]string{dep})) > 0, dep)
	}
}

func TestRefusesKubernetesBehindOtherPackages(t *testing.T) {
	table := house{"pkg/decide/verify": 2, "pkg/evidence/cosign": 4, "pkg/resources/service": 5}
	for name, c := range map[string]struct {
		pkg, dep string
		refused  bool
	}{
		"resource types need apimachinery":    {"api/v1beta1", "k8s.io/apimachinery/pkg/runtime", false},
		"resource types need a client":        {"api/v1beta1", "k8s.io/client-go/rest", true},
		"engine needs controller-runtime":     {"pkg/decide/verify", "sigs.k8s.io/controller-runtime/pkg/client", true},
		"evidence needs apimachinery":         {"pkg/evidence/cosign", "k8s.io/apimachinery/pkg/types", true},
		"evidence needs a YAML reader":        {"pkg/evidence/cosign", "sigs.k8s.io/yaml", true},
		"evidence needs its libraries' logs":  {"pkg/evidence/cosign", "k8s.io/klog/v2/internal/severity", false},
		"evidence needs something else":       {"pkg/evidence/cosign", "github.com/sigstore/sigstore-go/pkg/verify", false},
		"the compiler may know of Kubernetes": {"pkg/resources/service", "k8s.io/api/core/v1", false},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.refused, len(table.heavy(c.pkg, []string{c.dep})) > 0)
		})
	}
}
