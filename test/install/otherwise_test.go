//go:build nightly

package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// otherwise changes how the cluster was installed, for one test.
type otherwise struct {
	// chart are arguments for Gatekeeper's chart.
	chart []string
	// unlabelled takes the label off Landwaiter's namespace.
	unlabelled bool
	// included makes the constraint ask about Landwaiter's namespace too.
	included bool
}

// withoutLandwaiter are the recommended values, but for Landwaiter's namespace.
func withoutLandwaiter() []string {
	const namespaces = `ExemptNamespacesLabels={"kubernetes.io/metadata.name":["kube-system","kube-node-lease"]}`
	return []string{"--values", root + "/config/gatekeeper/values.yaml", "--set-json", "validatingWebhook" + namespaces, "--set-json",
		"mutatingWebhook" + namespaces}
}

func (o otherwise) apply(t *testing.T, w *coldCluster) {
	t.Helper()
	was := w.webhooks
	t.Cleanup(func() {
		require.NoError(t, w.UseWebhooks(context.Background(), was, w.front.port()))
		w.typed(context.Background(), t, "kubectl label --overwrite namespace landwaiter-system admission.gatekeeper.sh/ignore=landwaiter")
		w.typed(context.Background(), t, "kubectl apply --server-side --force-conflicts --field-manager=landwaiter-test --filename "+root+
			"/library/verified-images/samples/constraint.yaml")
	})
	if o.included {
		w.shell(t, `kubectl patch verifiedimages verified-images --type=merge --patch '{"spec": {"match": {"excludedNamespaces": ["kube-system", `+
			`"gatekeeper-system"]}}}'`)
	}
	if o.unlabelled {
		w.shell(t, "kubectl label namespace landwaiter-system admission.gatekeeper.sh/ignore-")
	}
	webhooks, err := gatekeeperWebhooks(suite.Within(t), o.chart...)
	require.NoError(t, err)
	require.NoError(t, w.UseWebhooks(suite.Within(t), webhooks, w.front.port()))
}

// shell runs a script as a person would type it.
func (w *coldCluster) shell(t *testing.T, script string) string {
	t.Helper()
	return w.typed(suite.Within(t), t, script)
}

func (w *coldCluster) typed(ctx context.Context, t *testing.T, script string) string {
	t.Helper()
	command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	command.Env = append(os.Environ(), "KUBECONFIG="+w.Kubeconfig(), "PATH="+suite.MustTool(t, suite.ClusterTools)+":"+os.Getenv("PATH"))
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s\n%s", script, output)
	return string(output)
}

// documented returns the block of commands of docs/operate/cold-start.md that has a text.
func documented(t *testing.T, has string) string {
	t.Helper()
	page, err := os.ReadFile(root + "/docs/operate/cold-start.md")
	require.NoError(t, err)
	for i, block := range strings.Split(string(page), "```\n") {
		if i%2 == 1 && strings.Contains(block, has) {
			return block
		}
	}
	require.Fail(t, "docs/operate/cold-start.md has no such commands", has)
	return ""
}

// returned cuts the power and gives everything back, Gatekeeper as it is now installed. It
// probes from the cut on, until the caller ends that.
func (w *coldCluster) returned(t *testing.T) *probe {
	t.Helper()
	w.cut(t)
	probing := w.watch(t, func() []client.Object { return nil })
	for part := range pods {
		w.node.giveBack(part)
	}
	if err := w.node.controlPlane(suite.Within(t), manager); err != nil {
		probing.end(t)
		require.NoError(t, err)
	}
	return probing
}

func TestClusterThatAsksGatekeeperAboutEverythingIsStuckAndIsFreed(t *testing.T) {
	w := powered(t)
	otherwise{chart: []string{"--set", "validatingWebhookFailurePolicy=Fail,mutatingWebhookFailurePolicy=Fail"}}.apply(t, w)
	attempts := func() []string {
		return strings.Split(w.Process(manager).Tail(5000), "Attempting to acquire leader lease")
	}
	before := len(attempts())
	probing := w.returned(t)
	defer probing.end(t)
	refused := regexp.MustCompile(`lease.*failed calling webhook`)
	await(t, "kube-controller-manager refused its lease", func(context.Context) error {
		if all := attempts(); len(all) == before || !refused.MatchString(all[len(all)-1]) {
			return errors.New("its log does not say so")
		}
		return nil
	})
	require.NoError(t, w.recreated(gatekeeperPods, 0)(suite.Within(t)), "no controller works, so nothing makes Gatekeeper's pods")
	require.Contains(t, w.shell(t, documented(t, "kubectl get leases")), "kube-controller-manager")

	w.shell(t, documented(t, "for kind in"))
	await(t, "signed admitted and unsigned denied", w.works)
	shown := w.shell(t, documented(t, "jsonpath"))
	require.Equal(t, 2, strings.Count(shown, "not-needed-to-start"), shown)
	require.Equal(t, 2, strings.Count(shown, "kube-node-lease"), shown)
}

func TestLandwaiterThatIsAskedAboutItselfIsStuckAndIsFreed(t *testing.T) {
	w := powered(t)
	for name, commands := range map[string]string{"by a label": "kubectl label namespace", "by the constraint": "kubectl patch verifiedimages"} {
		t.Run(name, func(t *testing.T) {
			otherwise{chart: withoutLandwaiter(), unlabelled: true, included: true}.apply(t, w)
			probing := w.returned(t)
			defer probing.end(t)
			await(t, "gatekeeper ready", func(context.Context) error { return w.node.isReady(gatekeeperPods, 1) })
			// The controller may wait long by now. kubectl refuses a second "rollout restart" within
			// a second, and the page has one.
			w.shell(t, `for name in $(kubectl get deployments --namespace landwaiter-system --output name); do
  kubectl patch "$name" --namespace landwaiter-system --patch '{"spec": {"template": {"metadata": {"annotations": {"example.com/again": "'"$(date +%s%N)"'"}}}}}'
done`)
			await(t, "Landwaiter's pods denied", func(ctx context.Context) error {
				return w.failed(ctx, "could not be decided in namespace landwaiter-system: Gatekeeper got no answer from Landwaiter: ")
			})
			require.NoError(t, w.recreated(landwaiterPods, 0)(suite.Within(t)))

			w.shell(t, documented(t, commands))
			await(t, "signed admitted and unsigned denied", w.works)
		})
	}
	w.shell(t, documented(t, "kubectl describe replicasets"))
	require.Contains(t, w.refusal(t), "Only exempt namespace can have the admission.gatekeeper.sh/ignore label")
}

// failed returns nil if a ReplicaSet of Landwaiter says that a pod was denied for a reason.
func (w *coldCluster) failed(ctx context.Context, reason string) error {
	var all appsv1.ReplicaSetList
	if err := w.Client.List(ctx, &all, client.InNamespace(suite.System)); err != nil {
		return err
	}
	var seen []string
	for _, set := range all.Items {
		for _, condition := range set.Status.Conditions {
			if condition.Type == appsv1.ReplicaSetReplicaFailure && condition.Status == corev1.ConditionTrue && strings.Contains(condition.Message, reason) {
				return nil
			}
			seen = append(seen, condition.Message)
		}
	}
	return fmt.Errorf("no ReplicaSet says %q: %v", reason, seen)
}

// refusal is what Gatekeeper says to the label on a namespace that it was not told of.
func (w *coldCluster) refusal(t *testing.T) string {
	t.Helper()
	return w.shell(t, "! kubectl label namespace "+team+" admission.gatekeeper.sh/ignore=x 2>&1")
}

// As README's short install makes it: --create-namespace, and nothing exempts the namespace
// but the sample constraint.
func TestLandwaiterWithoutAnExemptionComesUpAfterGatekeeper(t *testing.T) {
	w := powered(t)
	otherwise{chart: withoutLandwaiter(), unlabelled: true}.apply(t, w)
	w.cut(t)
	probing := w.watch(t, func() []client.Object { return nil })
	defer probing.end(t)
	w.node.giveBack(landwaiterPods)
	w.node.giveBack(redisPods)
	require.NoError(t, w.node.controlPlane(suite.Within(t), manager))
	await(t, "Landwaiter's pods refused", func(ctx context.Context) error { return w.failed(ctx, "failed calling webhook") })
	w.node.giveBack(gatekeeperPods)
	await(t, "gatekeeper ready", func(context.Context) error { return w.node.isReady(gatekeeperPods, 1) })
	w.shell(t, documented(t, "deployment --namespace gatekeeper-system")) // the controller may wait long by now
	await(t, "signed admitted and unsigned denied", w.works)
}

func TestLastResortAdmitsEverythingUntilTheWebhooksAreBack(t *testing.T) {
	w := powered(t)
	await(t, "signed admitted and unsigned denied", w.works)
	w.shell(t, documented(t, "kubectl delete validatingwebhookconfiguration"))
	await(t, "unsigned admitted", func(ctx context.Context) error { return w.try(ctx, w.unsigned) })
	require.NoError(t, w.ResetWebhooks(suite.Within(t)), "stands in for helm upgrade")
	await(t, "signed admitted and unsigned denied", w.works)
}
