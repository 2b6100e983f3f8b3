//go:build e2e

// Package identity lets teams log in at clouds as their ServiceAccounts: with the tokens of
// a real API server, a real serve, and stand-ins of the clouds that check each token as
// the clouds do.
package identity

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
)

const (
	root   = "../.."
	system = "landwaiter-system"
	// settle bounds what is waited for: a new right is noticed within a minute.
	settle = 60 * time.Second
)

var w *world

type world struct {
	*cluster.Cluster
	dir     string
	clouds  *clouds
	process *cluster.Process
	asks    *gatekeeper.Client
	key     *fixture.CosignKey
}

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "landwaiter-identity-")
	if err == nil {
		w = &world{dir: dir}
		err = w.start()
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, "identity:", err)
	} else {
		code = m.Run()
	}
	w.stop()
	if code != 0 {
		fmt.Fprintln(os.Stderr, "identity: logs are kept in", filepath.Join(dir, "logs"))
		return code
	}
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, "identity:", err)
	}
	return code
}

func (w *world) stop() {
	if w.process != nil {
		w.process.Kill()
	}
	if w.clouds != nil {
		w.clouds.close()
	}
	if w.Cluster != nil {
		w.Stop()
	}
}

func (w *world) start() (err error) {
	tools := map[string]string{}
	for _, name := range []string{"LANDWAITER_CLUSTER_TOOLS", "LANDWAITER_CHART_TOOLS", "LANDWAITER_FULL_BINARY"} {
		if tools[name] = os.Getenv(name); tools[name] == "" {
			return fmt.Errorf("%s is not set; run make e2e", name)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	if w.Cluster, err = cluster.Start(ctx, cluster.Options{Tools: tools["LANDWAITER_CLUSTER_TOOLS"], Dir: w.dir, Progress: os.Stderr, WithoutGatekeeper: true}); err != nil {
		return err
	}
	if w.clouds, err = startClouds(ctx, w.Config); err != nil {
		return err
	}
	if w.key, err = fixture.NewCosignKey(fixture.ECDSAP256); err != nil {
		return err
	}
	objects, err := rendered(ctx, tools["LANDWAITER_CHART_TOOLS"])
	if err != nil {
		return err
	}
	if err := w.Apply(ctx, objects...); err != nil {
		return err
	}
	return w.serve(ctx, tools["LANDWAITER_FULL_BINARY"])
}

// teams are namespaces of a test each.
func teams() []string {
	return []string{"team-a", "team-b", "team-github", "team-late", "team-wide", "team-guard"}
}

// rendered returns definitions, namespaces, and of the chart the rights and guardrails.
func rendered(ctx context.Context, tools string) (all []*unstructured.Unstructured, err error) {
	files, err := filepath.Glob(filepath.Join(root, "config/crd/landwaiter.dev_*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("find definitions: %w", err)
	}
	for _, file := range files {
		objects, err := cluster.DecodeFile(file)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	for _, name := range append(teams(), system) {
		all = append(all, of("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", name))
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(tools, "helm"), "template", "landwaiter", root+"/charts/landwaiter", "--namespace", system,
		"--set", "crds.install=false,guardrails.enabled=true,tenantNamespaces={"+strings.Join(teams(), ",")+"}")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("render the chart: %w: %s", err, stderr.Bytes())
	}
	chart, err := cluster.Decode(stdout.Bytes())
	keep := []string{"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
	return append(all, slices.DeleteFunc(chart, func(o *unstructured.Unstructured) bool {
		return !slices.Contains(keep, o.GetKind()) || strings.HasPrefix(o.GetNamespace(), "gatekeeper")
	})...), err
}

// serve starts the program with the rights of the chart's account.
func (w *world) serve(ctx context.Context, binary string) error {
	kubeconfig := filepath.Join(w.dir, "landwaiter.kubeconfig")
	if err := w.AccountKubeconfig(ctx, system, "landwaiter", kubeconfig); err != nil {
		return err
	}
	issued, err := gatekeeper.Issue(w.dir)
	if err != nil {
		return err
	}
	trusted := filepath.Join(w.dir, "clouds.crt")
	if err := os.WriteFile(trusted, w.clouds.ca.CertificatePEM, 0o600); err != nil {
		return fmt.Errorf("write certificates: %w", err)
	}
	ports, err := cluster.FreePorts(2)
	if err != nil {
		return err
	}
	address, health := fmt.Sprintf("127.0.0.1:%d", ports[0]), fmt.Sprintf("127.0.0.1:%d", ports[1])
	args := []string{"serve", "--kubeconfig", kubeconfig, "--own-namespace", system, "--address", address, "--health-address", health, "--metrics-address", "",
		"--tls-cert", issued.CertificateFile(), "--tls-key", issued.KeyFile(), "--client-ca", issued.CAFile(), "--log-level", "debug", "--egress-host", vaultHost}
	for _, host := range w.clouds.hosts() {
		args = append(args, "--cloud-endpoint", host+"="+w.clouds.address())
	}
	if w.process, err = cluster.StartProcess(w.LogDir(), cluster.Command{Name: "landwaiter", Path: binary, Args: args, Env: []string{"SSL_CERT_FILE=" + trusted, "SSL_CERT_DIR=/nowhere"}}); err != nil {
		return err
	}
	w.asks = issued.Ask("https://"+address, 10*time.Second)
	return w.process.Await(ctx, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+health+"/readyz", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
			return errors.Join(err, errors.New(response.Status))
		}
		return nil
	})
}

// of makes an object from YAML.
func of(format string, args ...any) *unstructured.Unstructured {
	objects, err := cluster.Decode(fmt.Appendf(nil, format, args...))
	if err != nil || len(objects) != 1 {
		panic(fmt.Sprintf("%d objects, %v: %s", len(objects), err, fmt.Sprintf(format, args...)))
	}
	return objects[0]
}

// own makes a resource of Landwaiter.
func own(kind, namespace, name, spec string) *unstructured.Unstructured {
	return of("apiVersion: landwaiter.dev/v1alpha1\nkind: %s\nmetadata: {namespace: %s, name: %s}\nspec: %s", kind, namespace, name, spec)
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), settle)
	t.Cleanup(cancel)
	return ctx
}

func apply(t *testing.T, objects ...*unstructured.Unstructured) {
	t.Helper()
	require.NoError(t, w.Apply(within(t), objects...))
}

// kubectl runs a command line of kubectl, as a message has it.
func kubectl(t *testing.T, line string) {
	t.Helper()
	words := strings.Fields(line)
	require.Equal(t, "kubectl", words[0])
	cmd := exec.CommandContext(within(t), filepath.Join(os.Getenv("LANDWAITER_CLUSTER_TOOLS"), "kubectl"), append(words[1:], "--kubeconfig="+w.Kubeconfig())...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s: %s", line, out)
}

// puller makes the ServiceAccount puller of a namespace, and gives Landwaiter the right to
// get its tokens as the documentation says.
func puller(t *testing.T, namespace string) {
	t.Helper()
	apply(t, of("{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: %s, name: puller}}", namespace))
	kubectl(t, "kubectl create role landwaiter-token-puller --namespace="+namespace+" --verb=create --resource=serviceaccounts/token --resource-name=puller")
	kubectl(t, "kubectl create rolebinding landwaiter-token-puller --namespace="+namespace+" --role=landwaiter-token-puller --serviceaccount="+system+":landwaiter")
}

// verifier makes a namespace trust the key that signs the images.
func verifier(t *testing.T, namespace string) {
	t.Helper()
	apply(t, own("TrustStore", namespace, "keys", fmt.Sprintf("{type: PublicKeys, source: {inline: %q}}", w.key.PEM)),
		own("Verifier", namespace, "release", "{type: Cosign, cosign: {keys: {trustStoreRefs: [{name: keys}]}}}"))
}

// becomes waits for the condition Ready of a resource, and returns its message.
func becomes(t *testing.T, kind, namespace, name, status, says string) string {
	t.Helper()
	object := own(kind, namespace, name, "{}")
	var last string
	err := cluster.Until(within(t), func(ctx context.Context) error {
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		for _, one := range conditions {
			c, _ := one.(map[string]any)
			if c["type"] != "Ready" {
				continue
			}
			if last = fmt.Sprintf("%v: %v", c["reason"], c["message"]); c["status"] == status && strings.Contains(last, says) {
				return nil
			}
		}
		return errors.New("not yet")
	})
	require.NoError(t, err, "%s %s/%s must become %s with %q, it is %s", kind, namespace, name, status, says, last)
	return last
}

// verdict waits until an image is decided, and has a verdict.
func verdict(t *testing.T, namespace, reference string, want gatekeeper.Verdict, says string) {
	t.Helper()
	var last string
	err := cluster.Until(within(t), func(ctx context.Context) error {
		answer, err := w.asks.Ask(ctx, gatekeeper.VerifyPath, "["+namespace+"]"+reference)
		if err != nil || answer.SystemError != "" || len(answer.Items) != 1 {
			return fmt.Errorf("no verdict: %w %s", err, answer.SystemError)
		}
		got, why := gatekeeper.Judge(answer.Items[0])
		if last = fmt.Sprint(got, ": ", why); got != want || !strings.Contains(why, says) {
			return errors.New("not yet")
		}
		return nil
	})
	require.NoError(t, err, "%s in %s: %s", reference, namespace, last)
}
