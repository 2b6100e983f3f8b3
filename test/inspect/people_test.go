//go:build e2e

package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

func TestPeopleFindWhatTheyNeed(t *testing.T) {
	w := installed(t).hire(t)
	// The other team has what must never be seen: denials, pods that run, rules.
	denied := suite.Restricted(suite.Pod(w.zebraWeb, secretWord+"-pod", w.image(t, w.zebra+"/stripes")))
	require.ErrorContains(t, w.zebraAdmin.client.Create(t.Context(), denied), "is denied")
	w.runs(t, w.zebraAdmin, w.zebraWeb, secretWord+"-runs", w.image(t, w.zebra+"/signed", w.platform))

	t.Run("a team admin finds why a pod was denied yesterday, and what to do", w.testAdminFindsDenial)
	t.Run("a developer finds why a Deployment has no pods", w.testDeveloperFindsDeployment)
	t.Run("a cluster admin previews a rule, enforces it, and what was previewed is denied", w.testPreviewIsWhatHappens)
	t.Run("no team is told of another", w.testNothingOfOthers)
	t.Run("check --isolation holds, finds a planted hole, and names a missing permission", w.testIsolation)
}

// runs makes a pod that a node would have started.
func (w *teams) runs(t *testing.T, who person, namespace, name, image string) {
	t.Helper()
	made := suite.Restricted(suite.Pod(namespace, name, image))
	require.NoError(t, who.client.Create(t.Context(), made))
	made.Status.Phase = corev1.PodRunning
	require.NoError(t, w.Client.Status().Update(t.Context(), made))
}

// deploys makes a Deployment with one pod.
func (w *teams) deploys(t *testing.T, who person, namespace, name, image string) {
	t.Helper()
	labels, replicas := map[string]string{"app": name}, int32(1)
	made := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}}}
	made.Spec.Template.Labels, made.Spec.Template.Spec = labels, suite.Restricted(suite.Pod("", "", image)).Spec
	require.NoError(t, who.client.Create(t.Context(), made))
}

func (w *teams) testAdminFindsDenial(t *testing.T) {
	image := w.image(t, w.iris+"/unsigned")
	require.ErrorContains(t, w.dev.client.Create(t.Context(), suite.Restricted(suite.Pod(w.irisWeb, "unsigned", image))), "is denied")
	w.denials(t, w.dev, image, func(status) bool { return true })
	// A night goes by: the provider that saw it is gone.
	w.kill(t, w.Current())
	_, err := w.StartReplica(t.Context(), w.Port())
	require.NoError(t, err)

	s := w.denials(t, w.admin, image, func(status) bool { return true })
	require.Len(t, s.Namespaces, 1)
	n := s.Namespaces[0]
	require.Equal(t, w.irisWeb, n.Namespace)
	require.Len(t, n.Denied, 1)
	require.Contains(t, n.Denied[0].Reason, "no signature was found")
	require.Contains(t, n.Denied[0].Command, "cosign sign --key")
	require.GreaterOrEqual(t, n.Denied[0].Count, 1)
	require.NotEmpty(t, n.Denied[0].Last)
	require.NotEmpty(t, n.Denied[0].TraceID)
	// What an admin of a team may not read is said.
	require.Contains(t, strings.Join(s.NotShown, "\n"), "you cannot list")

	r := w.asks(t, w.admin.landwaiter, "status")
	require.Equal(t, 1, r.Code, r.Stderr)
	for _, text := range []string{"NAMESPACE " + w.irisWeb, "FAILED VERIFICATION IN THE LAST SEVEN DAYS", "To fix, if your build made it: cosign sign --key",
		"not shown: you cannot list"} {
		require.Contains(t, strings.Join(strings.Fields(r.Stdout+r.Stderr), " "), text)
	}
	require.Contains(t, w.asks(t, w.admin.kubectl, "get", "reports.openreports.io", "-o", "yaml").Stdout, "no signature was found")
}

func (w *teams) testDeveloperFindsDeployment(t *testing.T) {
	image := w.image(t, w.iris+"/shop")
	w.deploys(t, w.dev, w.irisWeb, "shop", image)

	s := w.denials(t, w.dev, image, func(s status) bool {
		for _, d := range s.Namespaces[0].Denied {
			if strings.Contains(d.Image, w.iris+"/shop") && len(d.Workloads) > 0 {
				return strings.Contains(strings.Join(d.Workloads, " "), "shop") && d.Command != ""
			}
		}
		return false
	})
	require.Equal(t, w.irisWeb, s.Namespaces[0].Namespace)
	w.eventually(t, func(context.Context) error {
		r := w.asks(t, w.dev.kubectl, "get", "events", "--field-selector", "reason="+v1beta1.EventImageDenied)
		if !strings.Contains(r.Stdout, image) {
			return fmt.Errorf("no Event says why: %s%s", r.Stdout, r.Stderr)
		}
		return nil
	})
}

func (w *teams) testPreviewIsWhatHappens(t *testing.T) {
	images := map[string]string{} // by namespace
	allowed := map[string]string{}
	for _, team := range []struct {
		who       person
		namespace string
	}{{w.dev, w.irisWeb}, {w.zebraAdmin, w.zebraWeb}} {
		images[team.namespace] = w.image(t, team.namespace+"/once", w.platform)
		allowed[team.namespace] = w.image(t, team.namespace+"/twice", w.platform, w.audits)
		w.runs(t, team.who, team.namespace, "once", images[team.namespace])
		w.runs(t, team.who, team.namespace, "twice", allowed[team.namespace])
	}
	file := filepath.Join(w.dir, "stricter.yaml")
	require.NoError(t, os.WriteFile(file, []byte(signedBy("platform", "audits")), 0o600))

	r := w.clara.landwaiter.Run(t, "", "preview", "-f", file, "-A", "--all", "-o", "json")
	require.Equal(t, 1, r.Code, r.Stderr)
	var p preview
	require.NoError(t, json.Unmarshal([]byte(r.Stdout), &p), r.Stdout)
	require.GreaterOrEqual(t, p.Breaks, 3, r.Stdout)
	for _, row := range p.Images {
		// Images of the system are in registries that this machine does not reach.
		require.Equal(t, strings.HasSuffix(row.Namespace, "-system"), row.From.Answer == "unknown" || row.To.Answer == "unknown", "%+v", row)
	}

	// A dry run asks Gatekeeper whether such a pod could be made.
	admitted := func(ctx context.Context, namespace, image string) error {
		return w.Client.Create(ctx, suite.Restricted(suite.Pod(namespace, "probe", image)), client.DryRunAll)
	}
	for _, row := range p.Images {
		if row.From.Answer == "allowed" {
			require.NoError(t, admitted(t.Context(), row.Namespace, row.Image), "%+v", row)
		}
	}
	w.clara.kubectl.Must(t, "apply", "-f", file)
	w.eventually(t, func(ctx context.Context) error { // the rule is in force
		if err := admitted(ctx, w.irisWeb, images[w.irisWeb]); err == nil || !strings.Contains(err.Error(), "is denied") {
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
		r := w.asks(t, w.dev.landwaiter, "status")
		if text := strings.Join(strings.Fields(r.Stdout), " "); !strings.Contains(text, "fail Pod/once") {
			return fmt.Errorf("status does not say that the pod fails: %s%s", r.Stdout, r.Stderr)
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

func (w *teams) testNothingOfOthers(t *testing.T) {
	// Nor does a preview or a status that asks for the other team's namespace.
	file := filepath.Join(w.dir, "own.yaml")
	require.NoError(t,
		os.WriteFile(file,
			[]byte("{apiVersion: landwaiter.dev/v1beta1, kind: VerificationPolicy, metadata: {name: lax, namespace: "+w.irisWeb+"}, spec: {defaultAction: Allow}}"),
			0o600))
	w.asks(t, w.admin.landwaiter, "preview", "-f", file, "-n", w.irisWeb, "--all")
	w.asks(t, w.admin.landwaiter, "preview", "-f", file, "-A", "--all")
	r := w.asks(t, w.admin.landwaiter, "status", "-A")
	require.NotZero(t, r.Code, r.Stdout)
	for what, text := range w.said {
		require.NotContains(t, text, secretWord, what)
	}
	require.Greater(t, len(w.said), 5, slices.Sorted(maps.Keys(w.said)))
	r = w.admin.landwaiter.Run(t, "", "status", "-n", w.zebraWeb)
	require.Equal(t, 2, r.Code, r.Stdout)
	require.NotContains(t, strings.ReplaceAll(r.Stdout+r.Stderr, w.zebraWeb, ""), secretWord)

	seen := 0
	for namespace, never := range map[string]string{w.irisWeb: secretWord, w.iris: secretWord, w.zebraWeb: "iris", w.zebra: "iris"} {
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
