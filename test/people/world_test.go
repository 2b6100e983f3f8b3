//go:build e2e

// Package people lets the people of two teams and a cluster admin do what they do in a
// day, each with no rights but their own: with a real API server, a real Gatekeeper, a
// real provider that writes reports, and the program and kubectl as they call them.
package people

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/stack"
)

// settle bounds what is waited for.
const settle = 45 * time.Second

// secretWord is in every name of the second team: the first one must never see it.
const secretWord = "zebra"

// person is somebody with a kubeconfig.
type person struct {
	kubeconfig string
	client     client.Client
}

// world is an installation with two teams. Nobody but the helpers of the test is an
// administrator.
type world struct {
	*stack.Stack
	dir              string
	binary, kubectl  string
	platform, audits *fixture.CosignKey

	admin, dev, redAdmin, clara person
	// said is everything that a person of the first team was told.
	said map[string]string
}

func start(t *testing.T) *world {
	t.Helper()
	tools := map[string]string{}
	for _, name := range []string{"LANDWAITER_BINARY", "LANDWAITER_CLUSTER_TOOLS", "LANDWAITER_CHART_TOOLS"} {
		tools[name] = os.Getenv(name)
		require.NotEmpty(t, tools[name], "%s is not set; run make e2e", name)
	}
	w := &world{dir: t.TempDir(), binary: tools["LANDWAITER_BINARY"], kubectl: filepath.Join(tools["LANDWAITER_CLUSTER_TOOLS"], "kubectl"), said: map[string]string{}}
	var err error
	w.Stack, err = stack.Start(t.Context(), stack.Options{
		Options: cluster.Options{Tools: tools["LANDWAITER_CLUSTER_TOOLS"], Dir: t.TempDir(), Workloads: true},
		Root:    "../..", Binary: w.binary, ChartTools: tools["LANDWAITER_CHART_TOOLS"],
		Values: map[string]any{"reports": map[string]any{"enabled": true}, "guardrails": map[string]any{"enabled": true}},
	})
	require.NoError(t, err)
	t.Cleanup(w.Stop)
	for _, key := range []**fixture.CosignKey{&w.platform, &w.audits} {
		*key, err = fixture.NewCosignKey(fixture.ECDSAP256)
		require.NoError(t, err)
	}
	w.apply(t, rules(w.platform, w.audits))
	w.hire(t)
	unsigned := w.image(t, "probe/unsigned")
	w.eventually(t, func(ctx context.Context) error { // the constraint is in force, and so are the rules
		if err := w.Client.Create(ctx, pod("default", "probe", unsigned), client.DryRunAll); err == nil || !strings.Contains(err.Error(), "verified-images") {
			return fmt.Errorf("an unsigned image is not denied: %w", err)
		}
		return w.Client.Create(ctx, pod("default", "probe", w.image(t, "probe/signed", w.platform)), client.DryRunAll)
	})
	return w
}

// rules are the cluster's: an image must be signed by the platform.
func rules(platform, audits *fixture.CosignKey) string {
	text := ""
	for name, key := range map[string]*fixture.CosignKey{"platform": platform, "audits": audits} {
		text += "---\napiVersion: landwaiter.dev/v1alpha1\nkind: ClusterTrustStore\nmetadata: {name: " + name + "}\nspec:\n  type: PublicKeys\n  source:\n    inline: |\n      " +
			strings.ReplaceAll(strings.TrimSpace(string(key.PEM)), "\n", "\n      ") + "\n" +
			"---\n{apiVersion: landwaiter.dev/v1alpha1, kind: ClusterVerifier, metadata: {name: " + name + "}, spec: {type: Cosign, cosign: {keys: {trustStoreRefs: [{name: " + name + "}]}}}}\n"
	}
	return text + "---\n" + signedBy("platform")
}

// signedBy is the cluster's policy: an image must be signed by all of the verifiers.
func signedBy(verifiers ...string) string {
	var all []string
	for _, v := range verifiers {
		all = append(all, "{anyOf: ["+v+"]}")
	}
	return "{apiVersion: landwaiter.dev/v1alpha1, kind: ClusterVerificationPolicy, metadata: {name: signed}, spec: {rules: [{images: ['**'], require: [" + strings.Join(all, ", ") + "]}]}}\n"
}

// hire makes two teams, as the admin guide says, and gives everybody a kubeconfig.
func (w *world) hire(t *testing.T) {
	t.Helper()
	for team, namespace := range map[string]string{"iris": "iris-web", secretWord: secretWord + "-web"} {
		out, code := w.landwaiter(t, w.Kubeconfig(), "tenant", "add", team, "--namespace", namespace, "--admin-group", team+"-admins", "--developer-group", team+"-devs")
		require.Zero(t, code, out)
	}
	w.apply(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: platform}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: landwaiter-cluster-admin}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: platform}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: platform-previews}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: landwaiter-previewer}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: platform}]}
`)
	w.admin = w.person(t, "ada", "iris-web", "iris-admins")
	w.dev = w.person(t, "dan", "iris-web", "iris-devs")
	w.redAdmin = w.person(t, "rita", secretWord+"-web", secretWord+"-admins")
	w.clara = w.person(t, "clara", "default", "platform")
}

// person returns somebody whose kubeconfig acts as a user in a group and in nothing else.
func (w *world) person(t *testing.T, user, namespace, group string) person {
	t.Helper()
	config, err := clientcmd.LoadFromFile(w.Kubeconfig())
	require.NoError(t, err)
	config.AuthInfos["user"].Impersonate, config.AuthInfos["user"].ImpersonateGroups = user, []string{group, "system:authenticated"}
	for _, c := range config.Contexts {
		c.Namespace = namespace
	}
	p := person{kubeconfig: filepath.Join(w.dir, user+".kubeconfig")}
	require.NoError(t, clientcmd.WriteToFile(*config, p.kubeconfig))
	p.client, err = w.NewClient(w.As(user, group))
	require.NoError(t, err)
	return p
}

func (w *world) apply(t *testing.T, text string) {
	t.Helper()
	objects, err := cluster.Decode([]byte(text))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), settle)
	defer cancel()
	require.NoError(t, w.Apply(ctx, objects...))
}

// image pushes an image that keys sign, and returns its name with the digest.
func (w *world) image(t *testing.T, repository string, keys ...*fixture.CosignKey) string {
	t.Helper()
	pushed, err := w.Registry.PushImage(t.Context(), repository, "v1")
	require.NoError(t, err)
	for _, key := range keys {
		_, err = w.Registry.SignCosign(t.Context(), pushed, key, fixture.CosignOptions{})
		require.NoError(t, err)
	}
	return w.Registry.Host() + "/" + repository + ":v1"
}

func (w *world) eventually(t *testing.T, ok func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), settle)
	defer cancel()
	require.NoError(t, cluster.Until(ctx, ok))
}

// run calls a program and returns what it printed, and its exit code.
func run(t *testing.T, kubeconfig, stdin, program string, args ...string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), settle)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "KUBECONFIG=") }), "KUBECONFIG="+kubeconfig)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err, "%s %v", program, args)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

func (w *world) landwaiter(t *testing.T, kubeconfig string, args ...string) (string, int) {
	t.Helper()
	return run(t, kubeconfig, "", w.binary, args...)
}

// asks has a person of the first team call a program. What it prints is remembered.
func (w *world) asks(t *testing.T, who person, program string, args ...string) (string, int) {
	t.Helper()
	out, code := run(t, who.kubeconfig, "", program, args...)
	w.said[fmt.Sprintf("%s %s %v (%d)", filepath.Base(who.kubeconfig), filepath.Base(program), args, len(w.said))] = out
	return out, code
}

// pod is one that the Pod Security level of a team admits.
func pod(namespace, name, image string) *corev1.Pod {
	no, yes := false, true
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers: []corev1.Container{{Name: "app", Image: image, SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no,
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}},
	}}
}

// runs makes a pod that a node would have started.
func (w *world) runs(t *testing.T, who person, namespace, name, image string) {
	t.Helper()
	made := pod(namespace, name, image)
	require.NoError(t, who.client.Create(t.Context(), made))
	made.Status.Phase = corev1.PodRunning
	require.NoError(t, w.Client.Status().Update(t.Context(), made))
}

// sorted returns the keys of a map, for messages.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
