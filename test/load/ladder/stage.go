package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
)

// imagesEach is how many of the images one namespace uses.
const imagesEach = 5

// startTimeout is how long a process may take until it answers.
const startTimeout = 30 * time.Second

// stage is what all scenarios share: a registry with images, certificates, and the
// processes that were started.
type stage struct {
	options
	dir      string
	registry *fixture.Registry
	images   []sample
	pushed   []fixture.Image // of images
	key      *fixture.CosignKey
	others   []*fixture.CosignKey // that nobody trusts
	issued   *gatekeeper.Certificates
	running  []*cluster.Process
}

func newStage(ctx context.Context, o options) (_ *stage, err error) {
	s := &stage{options: o}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.binary, err = exec.LookPath(o.binary); err != nil {
		return nil, fmt.Errorf("-binary: %w; build it with: go build -o bin/ ./cmd/landwaiter-server", err)
	}
	if s.dir, err = os.MkdirTemp("", "landwaiter-load-"); err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	if s.issued, err = gatekeeper.Issue(s.dir); err != nil {
		return nil, err
	}
	if s.registry, err = fixture.StartRegistry(fixture.RegistryOptions{}); err != nil {
		return nil, fmt.Errorf("start the registry: %w", err)
	}
	if s.key, err = fixture.NewCosignKey(fixture.ECDSAP256); err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return s, s.push(ctx)
}

func (s *stage) close() {
	for _, p := range s.running {
		p.Kill()
	}
	if s.registry != nil {
		_ = s.registry.Close() // the run is over
	}
	_ = os.RemoveAll(s.dir) // a folder for temporary files
}

func namespace(i int) string { return fmt.Sprintf("team-%d", i) }

// own are the images of a namespace.
func (s *stage) own(namespace int) []sample {
	own := make([]sample, imagesEach)
	for i := range own {
		own[i] = s.images[(namespace*imagesEach+i)%len(s.images)]
	}
	return own
}

// configure writes the resources of n namespaces, four objects each.
func (s *stage) configure(n int) (string, error) {
	dir := filepath.Join(s.dir, fmt.Sprintf("namespaces-%d", n))
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", fmt.Errorf("make a folder: %w", err)
	}
	files := map[string]string{"cluster.yaml": s.clusterStore()}
	for i := range n {
		files[namespace(i)+".yaml"] = namespaceObject(namespace(i)) + trustedKey(namespace(i), "", s.key) + strictPolicy(namespace(i), "{anyOf: [release]}")
	}
	return dir, writeFiles(dir, files)
}

// demanding writes the resources of the namespace "strict", which demands a signature of each of n
// keys, and returns their folder.
func (s *stage) demanding(n int) (string, error) {
	dir := filepath.Join(s.dir, "strict")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", fmt.Errorf("make a folder: %w", err)
	}
	text := namespaceObject("strict")
	var demands []string
	for i, key := range append(s.others[:n-1:n-1], s.key) {
		text += trustedKey("strict", fmt.Sprintf("-%d", i), key)
		demands = append(demands, fmt.Sprintf("{anyOf: [release-%d]}", i))
	}
	return dir, writeFiles(dir, map[string]string{"cluster.yaml": s.clusterStore(), "strict.yaml": text + strictPolicy("strict", demands...)})
}

// writeFiles writes files whole: a program that watches the folder reads none that is half written.
func writeFiles(dir string, files map[string]string) error {
	for name, content := range files {
		path := filepath.Join(dir, name)
		err := os.WriteFile(path+".new", []byte(content), 0o600)
		if err == nil {
			err = os.Rename(path+".new", path)
		}
		if err != nil {
			return fmt.Errorf("write resources: %w", err)
		}
	}
	return nil
}

// server is a process to ask.
type server struct {
	*cluster.Process
	url  string
	path string // of requests, if it is not Landwaiter's
}

// chartEnvironment is what the chart sets by default.
func chartEnvironment() []string { return []string{"GOGC=300", "GOMEMLIMIT=400MiB"} }

// provide starts the program with n namespaces and waits until it is ready.
func (s *stage) provide(ctx context.Context, n int, more ...string) (*server, error) {
	return s.start(ctx, s.binary, n, more...)
}

// start is provide for any build.
func (s *stage) start(ctx context.Context, binary string, n int, more ...string) (*server, error) {
	resources, err := s.configure(n)
	if err != nil {
		return nil, err
	}
	return s.run(ctx, binary, resources, more...)
}

// serve starts the program with the resources in a folder and waits until it is ready.
func (s *stage) serve(ctx context.Context, resources string, more ...string) (*server, error) {
	return s.run(ctx, s.binary, resources, more...)
}

// run is serve for any build.
func (s *stage) run(ctx context.Context, binary, resources string, more ...string) (*server, error) {
	ports, err := cluster.FreePorts(2)
	if err != nil {
		return nil, fmt.Errorf("start the program: %w", err)
	}
	address, health := fmt.Sprintf("127.0.0.1:%d", ports[0]), fmt.Sprintf("127.0.0.1:%d", ports[1])
	process, err := cluster.StartProcess(s.dir,
		cluster.Command{Name: "landwaiter", Path: binary, Env: chartEnvironment(), Args: append([]string{"serve", "--config-dir", resources,
			"--address", address, "--health-address", health, "--metrics-address", "", "--log-level", "warning",
			"--tls-dir", s.issued.Dir(), "--client-ca", s.issued.CAFile()}, more...)})
	if err != nil {
		return nil, fmt.Errorf("start the program: %w", err)
	}
	s.running = append(s.running, process)
	return &server{Process: process, url: "https://" + address}, ready(ctx, process, "http://"+health+"/readyz")
}

// ready waits until a URL is answered with 200.
func ready(ctx context.Context, process *cluster.Process, url string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return process.Await(ctx, func(ctx context.Context) error {
		get, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return fmt.Errorf("ask %s: %w", url, err)
		}
		response, err := http.DefaultClient.Do(get)
		if err != nil {
			return fmt.Errorf("ask %s: %w", url, err)
		}
		_ = response.Body.Close() // the status is all that counts
		if response.StatusCode != http.StatusOK {
			return errors.New(response.Status)
		}
		return nil
	})
}

// bare starts the bare handler, which answers with body. Besides the stage's own
// client, those of more CAs may ask.
func (s *stage) bare(ctx context.Context, body []byte, more ...[]byte) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	ports, err := cluster.FreePorts(1)
	if err != nil {
		return nil, fmt.Errorf("start the bare handler: %w", err)
	}
	dir, err := s.certificates("bare-", more...)
	if err != nil {
		return nil, fmt.Errorf("start the bare handler: %w", err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	for name, content := range map[string][]byte{answerFile: body, "bare.address": []byte(address)} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return nil, fmt.Errorf("start the bare handler: %w", err)
		}
	}
	process, err := cluster.StartProcess(s.dir, cluster.Command{Name: "bare", Path: self, Args: []string{"-bare", dir}})
	if err != nil {
		return nil, fmt.Errorf("start the bare handler: %w", err)
	}
	s.running = append(s.running, process)
	b := &server{Process: process, url: "https://" + address}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return b, process.Await(ctx, func(ctx context.Context) error {
		if ask(ctx, s.caller(b.url, true), request{body: []byte("{}")}, false) != right {
			return errors.New("it does not answer")
		}
		return nil
	})
}

// certificates makes a folder with the server's certificate, and the CAs of its clients:
// the stage's own and more.
func (s *stage) certificates(pattern string, more ...[]byte) (string, error) {
	dir, err := os.MkdirTemp(s.dir, pattern)
	if err != nil {
		return "", fmt.Errorf("make a folder: %w", err)
	}
	for name, content := range map[string][]byte{"tls.crt": s.issued.Server.CertificatePEM, "tls.key": s.issued.Server.KeyPEM,
		"ca.crt": bytes.Join(append(more, s.issued.Authority.CertificatePEM), nil)} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return "", fmt.Errorf("write a certificate: %w", err)
		}
	}
	return dir, nil
}

// caller returns a client of the server at url. Without keep each call opens a
// connection.
func (s *stage) caller(url string, keep bool) *gatekeeper.Client {
	options := s.issued.Options(url, 5*time.Second)
	options.Connections, options.OnlyConnections, options.HandshakeEach = s.connections, true, !keep
	return gatekeeper.New(options)
}
