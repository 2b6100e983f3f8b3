//go:build e2e

// Package live runs the commands that read a cluster as the persons who run them, against
// a real API server and a real registry: each person has exactly the roles that the chart
// has for them.
package live

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/example"
)

const (
	root   = "../.."
	settle = 20 * time.Second
)

// w is what all tests share. No test leaves the resources other than they were.
var w *world

type world struct {
	*cluster.Cluster
	*example.Example

	binary, dir string
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "landwaiter-live-")
	if err == nil {
		w, err = start(dir)
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, "live:", err)
	} else {
		code = m.Run()
	}
	if w != nil {
		w.Stop()
		_ = w.Registry.Close()
	}
	if code == 0 {
		_ = os.RemoveAll(dir)
	}
	return code
}

func start(dir string) (_ *world, err error) {
	for _, name := range []string{"LANDWAITER_BINARY", "LANDWAITER_CLUSTER_TOOLS", "LANDWAITER_CHART_TOOLS"} {
		if os.Getenv(name) == "" {
			return nil, fmt.Errorf("%s is not set; run make e2e", name)
		}
	}
	made := &world{dir: dir, binary: os.Getenv("LANDWAITER_BINARY")}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	resources := filepath.Join(dir, "resources")
	if made.Example, err = example.Start(ctx, resources); err != nil {
		return nil, err
	}
	made.Cluster, err = cluster.Start(ctx, cluster.Options{Tools: os.Getenv("LANDWAITER_CLUSTER_TOOLS"), Dir: dir, Progress: os.Stderr, WithoutGatekeeper: true})
	if err != nil {
		return nil, err
	}
	if err := made.fill(ctx, resources); err != nil {
		made.Stop()
		return nil, err
	}
	return made, nil
}

// fill applies the definitions, the chart's roles and the resources of the example, and
// starts pods.
func (w *world) fill(ctx context.Context, resources string) error {
	files, err := filepath.Glob(filepath.Join(root, "config/crd/landwaiter.dev_*.yaml"))
	if err != nil {
		return err
	}
	for _, name := range files {
		objects, err := cluster.DecodeFile(name)
		if err != nil {
			return err
		}
		if err := w.Apply(ctx, objects...); err != nil {
			return err
		}
	}
	var stderr bytes.Buffer
	helm := exec.CommandContext(ctx, filepath.Join(os.Getenv("LANDWAITER_CHART_TOOLS"), "helm"), "template", "landwaiter", filepath.Join(root, "charts/landwaiter"), "--show-only", "templates/personas.yaml")
	helm.Stderr = &stderr
	roles, err := helm.Output()
	if err != nil {
		return fmt.Errorf("helm template: %w: %s", err, stderr.String())
	}
	objects, err := cluster.Decode(roles)
	if err != nil {
		return err
	}
	if err := w.Apply(ctx, objects...); err != nil {
		return err
	}
	for _, name := range []string{"team-a", "team-b", "team-c"} {
		if err := w.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
	}
	for _, name := range []string{"cluster", "team-a", "team-b", "team-c"} {
		objects, err := cluster.DecodeFile(filepath.Join(resources, name+".yaml"))
		if err != nil {
			return err
		}
		for _, object := range objects {
			if object.GetKind() == "Namespace" {
				continue
			}
			if err := w.Apply(ctx, object); err != nil {
				return err
			}
		}
	}
	for name, image := range map[string]string{"team-a/app": "shared/app:v1", "team-a/bad": "team-a/unsigned:v1", "team-b/web": "shared/web:v1", "team-c/base": "shared/base:v1"} {
		namespace, pod, _ := strings.Cut(name, "/")
		if err := w.pod(ctx, namespace, pod, image); err != nil {
			return err
		}
	}
	return nil
}

// image returns the name of an image in the registry.
func (w *world) image(name string) string { return w.Registry.Host() + "/" + name }

func (w *world) pod(ctx context.Context, namespace, name, image string) error {
	return cluster.Until(ctx, func(ctx context.Context) error { // the namespace's ServiceAccount comes a moment later
		return w.Client.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: w.image(image)}}}})
	})
}

// result is how a command ended.
type result struct {
	code           int
	stdout, stderr string
}

// person is somebody with a kubeconfig.
type person struct{ kubeconfig string }

// somebody returns a person with ClusterRoles: bound for the whole cluster under "", or
// in a namespace.
func somebody(t *testing.T, name string, roles map[string][]string) person {
	t.Helper()
	subject := []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: name}}
	for namespace, names := range roles {
		for _, role := range names {
			ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
			meta := metav1.ObjectMeta{Namespace: namespace, Name: name + "-" + role}
			var binding client.Object = &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subject, RoleRef: ref}
			if namespace == "" {
				binding = &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subject, RoleRef: ref}
			}
			require.NoError(t, w.Client.Create(t.Context(), binding))
			t.Cleanup(func() { _ = w.Client.Delete(context.Background(), binding) })
		}
	}
	admin, err := clientcmd.LoadFromFile(w.Kubeconfig())
	require.NoError(t, err)
	for _, info := range admin.AuthInfos {
		info.Impersonate = name
	}
	config := api.NewConfig()
	*config = *admin
	p := person{kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	require.NoError(t, clientcmd.WriteToFile(*config, p.kubeconfig))
	return p
}

// runs runs the program as a person.
func (p person) runs(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, w.binary, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+p.kubeconfig)
	command.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	require.NotNil(t, command.ProcessState, "%v", err)
	return result{code: command.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
}

// preview is what a preview prints.
type preview struct {
	Images []struct {
		Namespace, Image string
		Used             []string
		From, To         struct{ Answer, Reason, Remediation string }
	}
	Missing         []string
	Breaks, Unknown int
}

// previews runs preview with a change, and returns what would change as "namespace image:
// from -> to".
func (p person) previews(t *testing.T, change string, args ...string) (preview, []string, result) {
	t.Helper()
	r := p.runs(t, change, append([]string{"preview", "-f", "-", "-o", "json"}, args...)...)
	var printed preview
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &printed), "%d %s%s", r.code, r.stdout, r.stderr)
	rows := []string{}
	for _, row := range printed.Images {
		rows = append(rows, fmt.Sprintf("%s %s: %s -> %s", row.Namespace, strings.TrimPrefix(row.Image, w.Registry.Host()+"/"), row.From.Answer, row.To.Answer))
	}
	return printed, rows, r
}

func keyOf(name string) client.ObjectKey { return client.ObjectKey{Name: name} }
