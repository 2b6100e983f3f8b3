//go:build e2e

package people

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
)

func TestPeopleFindWhatTheyNeed(t *testing.T) {
	w := start(t)
	// The other team has what must never be seen: denials, pods that run, rules.
	zebraImage := w.image(t, secretWord+"/stripes")
	require.ErrorContains(t, w.redAdmin.client.Create(t.Context(), pod(secretWord+"-web", secretWord+"-pod", zebraImage)), "is denied")
	w.runs(t, w.redAdmin, secretWord+"-web", secretWord+"-runs", w.image(t, secretWord+"/signed", w.platform))

	t.Run("a team admin finds why a pod was denied yesterday, and what to do", w.testAdminFindsDenial)
	t.Run("a developer finds why a Deployment has no pods", w.testDeveloperFindsDeployment)
	t.Run("a cluster admin previews a rule, enforces it, and what was previewed is denied", w.testPreviewIsWhatHappens)
	t.Run("no team is told of another", w.testNothingOfOthers)
	t.Run("doctor --isolation holds, finds a planted hole, and names a missing right", w.testIsolation)
}

// status is the part of status -o json that these tests read.
type status struct {
	Namespaces []struct {
		Namespace string
		Counts    map[string]int
		Denied    []struct {
			Image, Reason, Remediation, Last, TraceID string
			Count                                     int
			Workloads                                 []string
		}
		Rules []struct{ Kind, Level string }
	}
	NotShown []string
}

// denials waits until status of a person says that an image was denied.
func (w *world) denials(t *testing.T, who person, image string, ok func(status) bool) status {
	t.Helper()
	var s status
	w.eventually(t, func(context.Context) error {
		out, _ := w.asks(t, who, w.binary, "status", "-o", "json")
		s = status{}
		if err := json.Unmarshal([]byte(out[:strings.LastIndexByte(out, '}')+1]), &s); err != nil {
			return fmt.Errorf("read %s: %w", out, err)
		}
		for _, n := range s.Namespaces {
			for _, d := range n.Denied {
				if strings.Contains(d.Image, strings.TrimSuffix(image, ":v1")) && ok(s) {
					return nil
				}
			}
		}
		return fmt.Errorf("status says nothing of %s: %s", image, out)
	})
	return s
}

func (w *world) testAdminFindsDenial(t *testing.T) {
	image := w.image(t, "iris/unsigned")
	require.ErrorContains(t, w.dev.client.Create(t.Context(), pod("iris-web", "unsigned", image)), "is denied")
	w.denials(t, w.dev, image, func(status) bool { return true })
	// A night goes by: the provider that saw it is gone.
	w.Current().Kill()
	_, err := w.StartReplica(t.Context(), w.Port())
	require.NoError(t, err)

	s := w.denials(t, w.admin, image, func(status) bool { return true })
	require.Len(t, s.Namespaces, 1)
	n := s.Namespaces[0]
	require.Equal(t, "iris-web", n.Namespace)
	require.Len(t, n.Denied, 1)
	require.Contains(t, n.Denied[0].Reason, "no signature was found")
	require.Contains(t, n.Denied[0].Remediation, "cosign sign --key")
	require.GreaterOrEqual(t, n.Denied[0].Count, 1)
	require.NotEmpty(t, n.Denied[0].Last)
	require.NotEmpty(t, n.Denied[0].TraceID)
	// What an admin of a team may not read is said.
	require.Contains(t, strings.Join(s.NotShown, "\n"), "you may not list")

	out, code := w.asks(t, w.admin, w.binary, "status")
	require.Equal(t, 2, code, out)
	for _, text := range []string{"NAMESPACE iris-web", "DENIED IN THE LAST SEVEN DAYS", "a dry run looks the same", "To fix: cosign sign --key", "not shown: you may not list"} {
		require.Contains(t, strings.Join(strings.Fields(out), " "), text)
	}
	out, code = w.asks(t, w.admin, w.kubectl, "get", "reports.openreports.io", "-o", "yaml")
	require.Zero(t, code, out)
	require.Contains(t, out, "no signature was found")
}

func (w *world) testDeveloperFindsDeployment(t *testing.T) {
	image := w.image(t, "iris/shop")
	labels := map[string]string{"app": "shop"}
	template := pod("", "", image)
	template.Labels = labels
	replicas := int32(1)
	shop := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "iris-web", Name: "shop"}, Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}}}
	shop.Spec.Template.Labels, shop.Spec.Template.Spec = labels, template.Spec
	require.NoError(t, w.dev.client.Create(t.Context(), shop))

	s := w.denials(t, w.dev, image, func(s status) bool {
		for _, d := range s.Namespaces[0].Denied {
			if strings.Contains(d.Image, "iris/shop") && len(d.Workloads) > 0 {
				return strings.Contains(strings.Join(d.Workloads, " "), "shop") && d.Remediation != ""
			}
		}
		return false
	})
	require.Equal(t, "iris-web", s.Namespaces[0].Namespace)
	w.eventually(t, func(context.Context) error {
		out, _ := w.asks(t, w.dev, w.kubectl, "get", "events", "--field-selector", "reason="+v1alpha1.EventImageDenied)
		if !strings.Contains(out, "iris/shop") {
			return fmt.Errorf("no Event says why: %s", out)
		}
		return nil
	})
}

// preview is the part of preview -o json that this test reads.
type preview struct {
	Images []struct {
		Namespace, Image string
		From, To         struct{ Answer, Reason string }
	}
	Breaks, Unknown int
}

func (w *world) testPreviewIsWhatHappens(t *testing.T) {
	images := map[string]string{} // by namespace
	allowed := map[string]string{}
	for _, team := range []struct {
		who       person
		namespace string
	}{{w.dev, "iris-web"}, {w.redAdmin, secretWord + "-web"}} {
		images[team.namespace] = w.image(t, team.namespace+"/once", w.platform)
		allowed[team.namespace] = w.image(t, team.namespace+"/twice", w.platform, w.audits)
		w.runs(t, team.who, team.namespace, "once", images[team.namespace])
		w.runs(t, team.who, team.namespace, "twice", allowed[team.namespace])
	}
	file := filepath.Join(w.dir, "stricter.yaml")
	require.NoError(t, os.WriteFile(file, []byte(signedBy("platform", "audits")), 0o600))

	out, code := w.landwaiter(t, w.clara.kubeconfig, "preview", "-f", file, "-A", "--all", "-o", "json")
	require.Equal(t, 1, code, out)
	var p preview
	require.NoError(t, json.Unmarshal([]byte(out[strings.IndexByte(out, '{'):]), &p), out)
	require.GreaterOrEqual(t, p.Breaks, 3, out)
	for _, row := range p.Images {
		// Images of the system are in registries that this machine does not reach.
		require.Equal(t, strings.HasSuffix(row.Namespace, "-system"), row.From.Answer == "unknown" || row.To.Answer == "unknown", "%+v", row)
	}

	// A dry run asks Gatekeeper whether such a pod could be made.
	admitted := func(ctx context.Context, namespace, image string) error {
		return w.Client.Create(ctx, pod(namespace, "probe", image), client.DryRunAll)
	}
	for _, row := range p.Images {
		if row.From.Answer == "allowed" {
			require.NoError(t, admitted(t.Context(), row.Namespace, row.Image), "%+v", row)
		}
	}
	out, code = run(t, w.clara.kubeconfig, "", w.kubectl, "apply", "-f", file)
	require.Zero(t, code, out)
	w.eventually(t, func(ctx context.Context) error { // the rule is in force
		if err := admitted(ctx, "iris-web", images["iris-web"]); err == nil || !strings.Contains(err.Error(), "is denied") {
			return fmt.Errorf("it is admitted: %w", err)
		}
		return nil
	})
	denied := 0
	for _, row := range p.Images {
		if strings.HasSuffix(row.Namespace, "-system") {
			continue
		}
		err := admitted(t.Context(), row.Namespace, row.Image)
		if row.To.Answer == "denied" {
			denied++
			require.ErrorContains(t, err, "is denied", "%+v", row)
			continue
		}
		require.Equal(t, "allowed", row.To.Answer, "%+v", row)
		require.NoError(t, err, "%+v", row)
	}
	require.GreaterOrEqual(t, denied, p.Breaks)
	for namespace := range images {
		require.Contains(t, rowsOf(p), namespace+"/once", "preview lacks what runs")
	}
	// What runs is reported as failing, in its own namespace.
	w.eventually(t, func(context.Context) error {
		out, _ := w.asks(t, w.dev, w.binary, "status")
		if text := strings.Join(strings.Fields(out), " "); !strings.Contains(text, "fail Pod/once") {
			return fmt.Errorf("status does not say that the pod fails: %s", out)
		}
		return nil
	})
}

// rowsOf names the rows of a preview.
func rowsOf(p preview) string {
	var text strings.Builder
	for _, row := range p.Images {
		fmt.Fprintln(&text, row.Namespace, row.Image, row.From.Answer, row.To.Answer)
	}
	return text.String()
}

func (w *world) testNothingOfOthers(t *testing.T) {
	// Nor does a preview or a status that asks for the other team's namespace.
	file := filepath.Join(w.dir, "own.yaml")
	require.NoError(t, os.WriteFile(file, []byte("{apiVersion: landwaiter.dev/v1alpha1, kind: VerificationPolicy, metadata: {name: lax, namespace: iris-web}, spec: {defaultAction: Allow}}"), 0o600))
	w.asks(t, w.admin, w.binary, "preview", "-f", file, "-n", "iris-web", "--all")
	w.asks(t, w.admin, w.binary, "preview", "-f", file, "-A", "--all")
	out, code := w.asks(t, w.admin, w.binary, "status", "-A")
	require.NotZero(t, code, out)
	for what, text := range w.said {
		require.NotContains(t, text, secretWord, what)
	}
	require.Greater(t, len(w.said), 5, sorted(w.said))
	other, code := run(t, w.admin.kubeconfig, "", w.binary, "status", "-n", secretWord+"-web")
	require.Equal(t, 2, code, other)
	require.NotContains(t, strings.ReplaceAll(other, secretWord+"-web", ""), secretWord)

	seen := 0
	for namespace, never := range map[string]string{"iris-web": secretWord, "iris": secretWord, secretWord + "-web": "iris", secretWord: "iris"} {
		for _, kind := range []string{"Report", "Event"} {
			list := &unstructured.UnstructuredList{}
			list.SetAPIVersion(map[string]string{"Report": "openreports.io/v1alpha1", "Event": "v1"}[kind])
			list.SetKind(kind + "List")
			require.NoError(t, w.Client.List(t.Context(), list, client.InNamespace(namespace)))
			for _, object := range list.Items {
				text, err := json.Marshal(object.Object)
				require.NoError(t, err)
				require.NotContains(t, string(text), never, "%s %s/%s", kind, namespace, object.GetName())
				seen++
			}
		}
	}
	require.Greater(t, seen, 3)
}
