//go:build nightly

package inspect

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/stack"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// patient is an installation that tests break, and mend with the commands that check
// prints. Helm renders instead of keeping releases, and the API server keeps webhooks
// without calling them, so that they can name Services and be broken.
type patient struct {
	*stack.Stack
	path, folder string
	// rotated is the Secret of Gatekeeper's own CA.
	rotated corev1.Secret
	// ending is a CA that ends soon, lasting one that does not, key a public key.
	ending, lasting *fixture.Authority
	key             string
}

var healthy = suite.Once(parts, func(ctx context.Context, e *suite.Env) (w *patient, err error) {
	w = &patient{}
	w.Stack, err = e.Stack(ctx, cluster.Options{WithoutWebhooks: true},
		map[string]any{"mutation": map[string]any{"enabled": true}, "guardrails": map[string]any{"enabled": true}, "reports": map[string]any{"enabled": true}})
	if err != nil {
		return nil, err
	}
	if err := w.Client.Get(ctx, client.ObjectKey{Namespace: cluster.GatekeeperNamespace, Name: cluster.GatekeeperSecret}, &w.rotated); err != nil {
		return nil, err
	}
	if err := errors.Join(w.standIns(ctx, e), w.material(e), w.redis(ctx)); err != nil {
		return nil, err
	}
	// Those of the stack have URLs, and Helm's have a Service.
	if err := w.shell(ctx, "kubectl delete validatingwebhookconfigurations,mutatingwebhookconfigurations --all"); err != nil {
		return nil, err
	}
	if err := w.shell(ctx, "helm upgrade gatekeeper gatekeeper/gatekeeper --namespace gatekeeper-system --values config/gatekeeper/values.yaml"); err != nil {
		return nil, err
	}
	return w, w.certify(ctx)
})

// standIns makes a folder with the commands that printed lines use. Its helm renders with
// the values of the installation and what the line sets, and applies: the same objects, but
// no release.
func (w *patient) standIns(ctx context.Context, e *suite.Env) error {
	folder := e.Path("commands")
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return err
	}
	chart, err := suite.GatekeeperChart(ctx)
	if err != nil {
		return err
	}
	kubectl, err := suite.Tool(suite.ClusterTools, "kubectl")
	if err != nil {
		return err
	}
	helm, err := suite.Tool(suite.ChartTools, "helm")
	if err != nil {
		return err
	}
	script := fmt.Sprintf(`#!/bin/sh
set -eu
[ "$1" = upgrade ] || exit 64
release=$2 chart=$3; shift 3
case $chart in
gatekeeper/gatekeeper) chart=%q ;;
charts/landwaiter) set -- "$@" --values %q ;;
*) exit 64 ;;
esac
for arg; do
  shift
  case $arg in --install | --create-namespace | --reset-then-reuse-values) ;; *) set -- "$@" "$arg" ;; esac
done
%q template "$release" "$chart" "$@" --no-hooks --kube-version 1.36 | kubectl apply --server-side --force-conflicts --filename=- >&2
`, chart, e.Path("values.yaml"), helm)
	if err := os.WriteFile(filepath.Join(folder, "helm"), []byte(script), 0o700); err != nil {
		return err
	}
	// A person's editor: it changes what a finding is about.
	editor := "#!/bin/sh\nexec sed -i \"$EDIT\" \"$1\"\n"
	if err := os.WriteFile(filepath.Join(folder, "editor"), []byte(editor), 0o700); err != nil {
		return err
	}
	w.path = folder + ":" + os.Getenv("PATH")
	landwaiter, err := suite.Tool(suite.Landwaiter)
	if err != nil {
		return err
	}
	if err := os.Symlink(landwaiter, filepath.Join(folder, "landwaiter")); err != nil {
		return err
	}
	return os.Symlink(kubectl, filepath.Join(folder, "kubectl"))
}

// redis gives Redis an administrator, and lets Landwaiter's user ask for settings.
func (w *patient) redis(ctx context.Context) error {
	w.Redis.Extra("--user", "admin", "on", ">"+w.Redis.Password, "~*", "&*", "+@all")
	w.Redis.Kill()
	if err := w.Redis.Restart(ctx); err != nil {
		return err
	}
	return w.shell(ctx, `redis-cli -e -u "$REDIS_URL" ACL SETUSER landwaiter +info`)
}

// material makes keys and CAs, and a folder that has what a person's folder has:
// the repository, and the file with the CA that follows one that ends.
func (w *patient) material(e *suite.Env) (err error) {
	if w.ending, err = fixture.NewAuthorityWith("ending", fixture.CertificateOptions{NotAfter: time.Now().Add(5 * 24 * time.Hour)}); err != nil {
		return err
	}
	if w.lasting, err = fixture.NewAuthorityWith("lasting", fixture.CertificateOptions{NotAfter: time.Now().Add(400 * 24 * time.Hour)}); err != nil {
		return err
	}
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	if err != nil {
		return err
	}
	w.key = string(key.PEM)
	w.folder = e.Path("folder")
	if err := os.MkdirAll(w.folder, 0o750); err != nil {
		return err
	}
	for _, name := range []string{"charts", "config", "library"} {
		path, err := filepath.Abs(filepath.Join(suite.Root, name))
		if err != nil {
			return err
		}
		if err := os.Symlink(path, filepath.Join(w.folder, name)); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(w.folder, "new.pem"), w.lasting.CertificatePEM, 0o600)
}

func encoded(content []byte) string { return base64.StdEncoding.EncodeToString(content) }

// filled returns a line with the trust material in it.
func (w *patient) filled(line string) string {
	quoted := func(text []byte) string { return strings.ReplaceAll(string(text), "\n", `\n`) }
	return strings.NewReplacer("ENDINGTEXT", quoted(w.ending.CertificatePEM), "ENDING", encoded(w.ending.CertificatePEM), "REGISTRY",
		"localhost:"+w.registryPort(), "KEY\"", quoted([]byte(w.key))+"\"").Replace(line)
}

// registryPort is that of the registry of the tests.
func (w *patient) registryPort() string {
	_, port, _ := strings.Cut(w.Registry.Host(), ":")
	return port
}

// shell runs a line in the folder of the repository, as an administrator.
func (w *patient) shell(ctx context.Context, line string, env ...string) error {
	command := exec.CommandContext(ctx, "sh", "-c", line)
	command.Dir = w.folder
	command.Env = append(append(os.Environ(), "PATH="+w.path, "KUBECONFIG="+w.Kubeconfig(), "KUBE_EDITOR=editor",
		"REDIS_URL="+strings.Replace(w.Redis.URL, "//landwaiter:", "//admin:", 1), "REDIS_USER=landwaiter"), env...)
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", line, err, output)
	}
	return nil
}

// certify stands in for Gatekeeper's own rotation: it makes the Secret of its CA if it
// is gone, and gives its webhooks a CA.
func (w *patient) certify(ctx context.Context) error {
	secret := w.rotated.DeepCopy()
	secret.UID, secret.ResourceVersion = "", ""
	if err := w.Client.Create(ctx, secret); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("admissionregistration.k8s.io/v1")
		list.SetKind(kind + "List")
		if err := w.Client.List(ctx, list); err != nil {
			return err
		}
		for _, object := range list.Items {
			hooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks")
			for _, hook := range hooks {
				hook.(map[string]any)["clientConfig"].(map[string]any)["caBundle"] = encoded(w.lasting.CertificatePEM)
			}
			if err := unstructured.SetNestedSlice(object.Object, hooks, "webhooks"); err != nil {
				return err
			}
			if err := w.Client.Update(ctx, &object); err != nil {
				return err
			}
		}
	}
	return nil
}

// diagnosis is what check prints in JSON.
type diagnosis struct {
	Findings []struct {
		ID, Severity, Message, Why, Command, Keep, Docs string
		Object                                          struct{ Kind, Namespace, Name string }
	}
	Unchecked []unchecked
	code      int
}

type unchecked struct {
	IDs                    []string
	MissingPermission, Why string
}

// examine runs check with a kubeconfig.
func (w *patient) examine(t *testing.T, kubeconfig string) (diagnosis, error) {
	t.Helper()
	r := caller(t, kubeconfig).landwaiter.Run(t, "", "check", "--output=json")
	found := diagnosis{code: r.Code}
	if err := json.Unmarshal([]byte(r.Stdout), &found); err != nil {
		return found, fmt.Errorf("exit code %d: %w: %s", r.Code, err, r.Stderr)
	}
	return found, nil
}

// ids are the IDs of findings.
func (d diagnosis) ids() []string {
	var ids []string
	for _, f := range d.Findings {
		ids = append(ids, f.ID)
	}
	return ids
}

// String shows what was found.
func (d diagnosis) String() string {
	var b strings.Builder
	for _, f := range d.Findings {
		fmt.Fprintf(&b, "%s %s %s/%s: %s\n", f.ID, f.Object.Kind, f.Object.Namespace, f.Object.Name, f.Message)
	}
	return b.String()
}

// until examines until the findings are as wanted.
func (w *patient) until(t *testing.T, wanted func(diagnosis) bool) diagnosis {
	t.Helper()
	var last diagnosis
	err := cluster.Until(suite.Within(t), func(context.Context) error {
		found, err := w.examine(t, w.Kubeconfig())
		if err != nil {
			return err
		}
		if last = found; !wanted(found) {
			return errors.New("not as wanted")
		}
		return nil
	})
	require.NoError(t, err, "%s", last)
	return last
}

// line runs a line as an administrator, as somebody who breaks the installation.
func (w *patient) line(t *testing.T, text string, env ...string) {
	t.Helper()
	require.NoError(t, w.shell(suite.Within(t), text, env...))
}
