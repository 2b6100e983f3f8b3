// Package stack installs Landwaiter into a cluster of package cluster as users do. It
// installs the Helm chart and the library's template, and runs the Deployment's command
// line as a process with the permissions of the chart's service account. It does not import
// "testing", because `make dev` runs it too.
package stack

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// Names of the installation.
const (
	Namespace = "landwaiter-system"
	release   = "landwaiter"

	redisSecret = "landwaiter-redis"
)

// Options configure a [Stack].
type Options struct {
	cluster.Options
	// Root is the folder of the repository.
	Root string
	// Binary is landwaiter-server, ChartTools the folder with helm.
	Binary, ChartTools string
	// Values are additional values for the chart.
	Values map[string]any
}

// Stack is a cluster with Landwaiter in it, a registry and a Redis.
type Stack struct {
	*cluster.Cluster
	// Registry is plain HTTP on 127.0.0.1; a ClusterStore permits that.
	Registry *fixture.Registry
	// Redis is shared by all replicas.
	Redis *cluster.Redis
	// Rendered has the objects of the rendered chart.
	Rendered []*unstructured.Unstructured

	options  Options
	port     int // on which the provider answers Gatekeeper
	replicas []*Replica
}

// Start starts the stack, and returns once the provider is ready.
func Start(ctx context.Context, options Options) (_ *Stack, err error) {
	s := &Stack{options: options}
	defer func() {
		if err != nil {
			s.Stop()
		}
	}()
	ports, err := cluster.FreePorts(1)
	if err != nil {
		return nil, err
	}
	s.port = ports[0]
	if s.Registry, err = fixture.StartRegistry(fixture.RegistryOptions{}); err != nil {
		return nil, err
	}
	if s.Cluster, err = cluster.Start(ctx, options.Options); err != nil {
		return nil, err
	}
	if s.Redis, err = cluster.StartRedis(ctx, s.LogDir()); err != nil {
		return nil, err
	}
	if err := s.install(ctx); err != nil {
		return nil, fmt.Errorf("install the chart: %w", err)
	}
	if _, err := s.StartReplica(ctx, s.port); err != nil {
		return nil, err
	}
	if err := s.applyLibrary(ctx); err != nil {
		return nil, fmt.Errorf("install the template: %w", err)
	}
	return s, nil
}

// Stop ends everything that Start started.
func (s *Stack) Stop() {
	for _, replica := range s.replicas {
		replica.Kill()
	}
	if s.Redis != nil {
		s.Redis.Kill()
	}
	if s.Cluster != nil {
		s.Cluster.Stop()
	}
	if s.Registry != nil {
		_ = s.Registry.Close() // it ends with the process at the latest
	}
}

// install renders the chart and applies all of it, including the Deployment: that checks
// it, and without nodes it runs nothing.
func (s *Stack) install(ctx context.Context) (err error) {
	if s.Rendered, err = s.render(ctx); err != nil {
		return err
	}
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
		// Deploying what Gatekeeper depends on must not depend on Gatekeeper.
		"name": Namespace, "labels": map[string]any{"admission.gatekeeper.sh/ignore": "landwaiter", "pod-security.kubernetes.io/enforce": "restricted"},
	}}}
	secret, err := s.redisSecret()
	if err != nil {
		return err
	}
	if err := s.Apply(ctx, append([]*unstructured.Unstructured{namespace, secret}, s.Rendered...)...); err != nil {
		return err
	}
	return s.Apply(ctx, s.clusterStore())
}

// Upgrade applies the chart with other values, as helm upgrade does, but for what is no longer in
// it. Replicas that run keep their arguments.
func (s *Stack) Upgrade(ctx context.Context, values map[string]any) (err error) {
	s.options.Values = values
	if s.Rendered, err = s.render(ctx); err != nil {
		return err
	}
	return s.Apply(ctx, s.Rendered...)
}

// mounts is where the chart mounts Secrets; mounted is the folder that replaces it.
const mounts = "/etc/landwaiter"

func (s *Stack) mounted() string { return filepath.Join(s.options.Dir, "mounts") }

// redisSecret returns the Secret that the chart's redis.existingSecret names, and writes
// its content to files, as kubelet would.
func (s *Stack) redisSecret() (*unstructured.Unstructured, error) {
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	content := map[string]any{"url": s.Redis.URL, "key": base64.StdEncoding.EncodeToString(key)}
	files := map[string][]byte{}
	for name, value := range content {
		files[name] = fmt.Append(nil, value)
	}
	if err := s.mountRedis(files); err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret",
		"metadata": map[string]any{"name": redisSecret, "namespace": Namespace}, "stringData": content}}, nil
}

// RemountRedis writes the content of the Secret that the chart's redis.existingSecret names to
// files again, as kubelet does for new pods.
func (s *Stack) RemountRedis(ctx context.Context) error {
	secret := &corev1.Secret{}
	if err := s.Client.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: redisSecret}, secret); err != nil {
		return fmt.Errorf("read the Secret of Redis: %w", err)
	}
	return s.mountRedis(secret.Data)
}

func (s *Stack) mountRedis(files map[string][]byte) error {
	folder := filepath.Join(s.mounted(), "redis")
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			return fmt.Errorf("write a setting: %w", err)
		}
	}
	return nil
}

// clusterStore allows the test's registry, which has a private address and no TLS.
func (s *Stack) clusterStore() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "landwaiter.dev/v1beta1", "kind": "ClusterStore",
		"metadata": map[string]any{"name": "test-registry"},
		"spec":     map[string]any{"registries": []any{s.Registry.Host()}, "insecurePlainHTTP": true}}}
}

// render runs helm template with the values that a process outside the cluster
// needs: Gatekeeper reaches it at localhost.
func (s *Stack) render(ctx context.Context) ([]*unstructured.Unstructured, error) {
	values := map[string]any{
		"provider": map[string]any{"url": fmt.Sprintf("https://localhost:%d", s.port), "ratify": true},
		"tls":      map[string]any{"extraDNSNames": []any{"localhost"}},
		"redis":    map[string]any{"existingSecret": map[string]any{"name": redisSecret, "urlKey": "url"}},
	}
	for name, value := range s.options.Values {
		values[name] = value
	}
	text, err := yaml.Marshal(values)
	if err != nil {
		return nil, fmt.Errorf("write values: %w", err)
	}
	path := filepath.Join(s.options.Dir, "values.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return nil, fmt.Errorf("write values: %w", err)
	}
	var stdout, stderr bytes.Buffer
	helm := exec.CommandContext(ctx, filepath.Join(s.options.ChartTools, "helm"), "template", release,
		filepath.Join(s.options.Root, "charts", "landwaiter"), "--namespace", Namespace, "--values", path)
	helm.Stdout, helm.Stderr = &stdout, &stderr
	if err := helm.Run(); err != nil {
		return nil, fmt.Errorf("helm template: %w: %s", err, stderr.String())
	}
	return cluster.Decode(stdout.Bytes())
}

// applyLibrary installs the ConstraintTemplate and its constraint, and waits until Gatekeeper
// denies by it, if it is asked: that is a moment after the API server has it.
func (s *Stack) applyLibrary(ctx context.Context) error {
	folder := filepath.Join(s.options.Root, "library", "verified-images")
	for _, name := range []string{"template.yaml", "samples/constraint.yaml"} {
		objects, err := cluster.DecodeFile(filepath.Join(folder, name))
		if err != nil {
			return err
		}
		if err := s.Apply(ctx, objects...); err != nil {
			return err
		}
	}
	if s.options.WithoutWebhooks {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, replicaTimeout)
	defer cancel()
	nowhere := "127.0.0.1:1/app@sha256:" + strings.Repeat("0", 64) // has no tag to pin
	return cluster.Until(ctx, func(ctx context.Context) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "denied"},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: nowhere}}}}
		err := s.Client.Create(ctx, pod, client.DryRunAll)
		if err == nil {
			return errors.New("a pod whose image does not exist is admitted")
		}
		if !strings.Contains(err.Error(), "[verified-images]") {
			return fmt.Errorf("wait until the constraint denies: %w", err)
		}
		return nil
	})
}

// Container returns the arguments of a rendered Deployment's first container, and its environment
// variables that are plain text.
func Container(rendered []*unstructured.Unstructured, deployment string) (args, environment []string, err error) {
	for _, object := range rendered {
		if object.GetKind() != "Deployment" || object.GetName() != deployment {
			continue
		}
		containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		if err != nil || len(containers) == 0 {
			return nil, nil, errors.Join(fmt.Errorf("the Deployment %s has no containers", deployment), err)
		}
		container, _ := containers[0].(map[string]any)
		args, _, err := unstructured.NestedStringSlice(container, "args")
		if err != nil {
			return nil, nil, fmt.Errorf("read the arguments of the Deployment %s: %w", deployment, err)
		}
		variables, _, err := unstructured.NestedSlice(container, "env")
		if err != nil {
			return nil, nil, fmt.Errorf("read the environment of the Deployment %s: %w", deployment, err)
		}
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "$(POD_NAMESPACE)", Namespace)
		}
		for _, variable := range variables {
			if variable, _ := variable.(map[string]any); variable["value"] != nil {
				environment = append(environment, fmt.Sprintf("%s=%s", variable["name"], variable["value"]))
			}
		}
		return args, environment, nil
	}
	return nil, nil, fmt.Errorf("the chart made no Deployment %s", deployment)
}
