package suite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// Root is the folder of the repository, as seen from the package under test: the nearest with a go.mod.
var Root = root()

func root() string {
	for folder := "."; ; folder = filepath.Join("..", folder) {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder
		}
		if absolute, err := filepath.Abs(folder); err != nil || absolute == "/" {
			return "." // a test's program that runs elsewhere
		}
	}
}

// Patience bounds what a test waits for: two minutes, or what LANDWAITER_PATIENCE says. It is generous
// because a machine may be busy, and costs nothing when tests pass: what is waited for is
// polled. make mutants, whose tests fail, waits for less.
var Patience = patience()

func patience() time.Duration {
	text := os.Getenv("LANDWAITER_PATIENCE")
	if text == "" {
		return 2 * time.Minute
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(fmt.Sprintf("LANDWAITER_PATIENCE: %v", err))
	}
	return d
}

// Programs and folders that the make targets build, by the variables that name them.
const (
	// LandwaiterServer is landwaiter-server, built with the race detector.
	LandwaiterServer = "LANDWAITER_SERVER"
	// FullServer has the clouds' key management services and logins too.
	FullServer = "LANDWAITER_FULL_SERVER"
	// PlainServer is the server without the race detector, as it is released.
	PlainServer = "LANDWAITER_PLAIN_SERVER"
	// Landwaiter is the program for people, as it is released.
	Landwaiter = "LANDWAITER_BINARY"
	// FullLandwaiter has the clouds' key management services and logins too.
	FullLandwaiter = "LANDWAITER_FULL_BINARY"
	// ClusterTools is the folder with kube-apiserver, kubectl and Gatekeeper.
	ClusterTools = "LANDWAITER_CLUSTER_TOOLS"
	// ChartTools is the folder with helm and kustomize.
	ChartTools = "LANDWAITER_CHART_TOOLS"
	// CosignV2 and CosignV3 are cosign's command lines.
	CosignV2 = "LANDWAITER_COSIGN_V2"
	CosignV3 = "LANDWAITER_COSIGN_V3"
	// Oras is oras' command line.
	Oras = "LANDWAITER_ORAS"
	// Registries is the folder with registries.
	Registries = "LANDWAITER_REGISTRIES"
	// FluxTools is the folder with Flux's controllers, sops and age.
	FluxTools = "LANDWAITER_FLUX_TOOLS"
	// Kubelet is the node's agent.
	Kubelet = "LANDWAITER_KUBELET"
	// Keyring says which logins the kubelet's code would try.
	Keyring = "LANDWAITER_KEYRING"
	// Axe is the script of axe-core, which judges whether people with disabilities can use a page.
	Axe = "LANDWAITER_AXE"
)

// Tool returns the path of a program or a folder, followed by names below it. It returns an
// error if the variable is not set: a test that needs a tool never skips itself.
func Tool(variable string, below ...string) (string, error) {
	value := os.Getenv(variable)
	if value == "" {
		return "", fmt.Errorf("%s is not set; run the tests by make e2e or make nightly", variable)
	}
	return filepath.Join(append([]string{value}, below...)...), nil
}

// MustTool is [Tool] for a test.
func MustTool(t testing.TB, variable string, below ...string) string {
	t.Helper()
	path, err := Tool(variable, below...)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Suite is what the tests of one package have started.
type Suite struct {
	name string

	mutex sync.Mutex
	dir   string
	stops []func()
	parts int
}

// New returns a suite that has started nothing. Its folder and messages begin with the name.
func New(name string) *Suite { return &Suite{name: name} }

// Run runs the tests, ends what they started, and returns the exit code for TestMain. If a
// test failed it keeps the logs and says where.
func (s *Suite) Run(m *testing.M) int {
	code := m.Run()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, stop := range slices.Backward(s.stops) {
		stop()
	}
	if code != 0 {
		if s.dir != "" {
			fmt.Fprintf(os.Stderr, "%s: logs are kept in %s\n", s.name, s.dir)
		}
		return code
	}
	if err := os.RemoveAll(s.dir); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", s.name, err)
	}
	return code
}

// env returns an environment whose parts end with the suite.
func (s *Suite) env() (*Env, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.dir == "" {
		dir, err := os.MkdirTemp("", "landwaiter-"+s.name+"-")
		if err != nil {
			return nil, fmt.Errorf("make a folder: %w", err)
		}
		s.dir = dir
	}
	s.parts++
	dir := filepath.Join(s.dir, fmt.Sprint(s.parts))
	if err := os.Mkdir(dir, 0o750); err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	return &Env{Dir: dir, stop: func(stop func()) {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.stops = append(s.stops, stop)
	}}, nil
}

// Once returns a function that starts something for the first test that calls it, and
// returns the same to every later one. A start that fails fails each of them.
func Once[T any](s *Suite, start func(context.Context, *Env) (T, error)) func(testing.TB) T {
	once := sync.OnceValues(func() (T, error) {
		e, err := s.env()
		if err != nil {
			var none T
			return none, err
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*Patience)
		defer cancel()
		return start(ctx, e)
	})
	return func(t testing.TB) T {
		t.Helper()
		started, err := once()
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		return started
	}
}

// Env is where parts are started, and what ends them.
type Env struct {
	// Dir is a folder for data and logs.
	Dir string

	stop func(func())
}

// ForTest returns an environment that ends with a test. If the test fails, the ends of its
// logs are in the test's log.
func ForTest(t testing.TB) *Env {
	t.Helper()
	e := &Env{Dir: t.TempDir(), stop: t.Cleanup}
	t.Cleanup(func() {
		if t.Failed() {
			logs, _ := filepath.Glob(filepath.Join(e.Dir, "logs", "*.log")) // the pattern is right
			for _, name := range logs {
				text, err := os.ReadFile(name)
				t.Logf("%s ends with (%v)\n%s", filepath.Base(name), err, text[max(0, len(text)-4096):])
			}
		}
	})
	return e
}

// OnStop calls stop when the tests have ended, in reverse order of the calls.
func (e *Env) OnStop(stop func()) { e.stop(stop) }

// LogDir is the folder of the processes' logs.
func (e *Env) LogDir() string { return filepath.Join(e.Dir, "logs") }

// Path returns a path in the environment's folder.
func (e *Env) Path(names ...string) string {
	return filepath.Join(append([]string{e.Dir}, names...)...)
}
