//go:build e2e

package admission

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/page"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// clusterException makes a ClusterException for the length of a test.
func (w *world) clusterException(t *testing.T, name string, until time.Time, spec string) {
	t.Helper()
	w.during(t, clusterException(name, until, spec))
}

func clusterException(name string, until time.Time, spec string) string {
	return fmt.Sprintf("{apiVersion: landwaiter.dev/v1beta1, kind: ClusterException, metadata: {name: %s}, spec: {until: %q, reason: OPS-1, %s}}", name,
		until.UTC().Format(time.RFC3339), spec)
}

// pattern is the pattern of an image's repository.
func pattern(image string) string { return image[:strings.LastIndex(image, ":")] }

func TestAnExceptionFreesItsImageAndNotThePodAndEnds(t *testing.T) {
	w := installed(t)
	ns, other := w.namespace(t), w.namespace(t)
	w.denied(t, ns, w.unsigned)
	spec := fmt.Sprintf("images: [%s], namespaces: [%s]", pattern(w.unsigned), ns)
	w.clusterException(t, "e2e-legacy", time.Now().Add(time.Hour), spec)
	w.admitted(t, ns, w.unsigned)
	w.denied(t, other, w.unsigned)
	w.condition(t, &v1beta1.ClusterException{}, "", "e2e-legacy", metav1.ConditionTrue, "Valid")
	two := suite.Pod(ns, "two", w.unsigned)
	two.Spec.Containers = append(two.Spec.Containers, corev1.Container{Name: "other", Image: w.byTeamA})
	require.NoError(t, deniedFor(w.Client.Create(suite.Within(t), two, client.DryRunAll), "image "+w.byTeamA), "the exception is for the other image of the pod")
	two.Spec.Containers[1].Image = w.signed
	require.NoError(t, w.Client.Create(suite.Within(t), two, client.DryRunAll))

	// It ends although the verdict is cached: anyone who is asked before the end caches it. A
	// machine that is busy needs longer to be asked.
	var until time.Time
	for lasts, cached := 4*time.Second, false; !cached; lasts *= 2 {
		require.LessOrEqual(t, lasts, time.Minute, "the exception frees its image no more")
		until = time.Now().Add(lasts).Truncate(time.Second)
		w.apply(t, clusterException("e2e-legacy", until, spec))
		seen := &v1beta1.ClusterException{}
		suite.Eventually(t, func(ctx context.Context) error {
			err := w.Client.Get(ctx, client.ObjectKey{Name: "e2e-legacy"}, seen)
			if ready := meta.FindStatusCondition(seen.Status.Conditions, v1beta1.ConditionReady); err != nil || ready == nil ||
				ready.ObservedGeneration != seen.Generation {
				return fmt.Errorf("the end has not been seen: %w", err)
			}
			return nil
		})
		cached = w.try(suite.Within(t), ns, w.unsigned) == nil && time.Now().Before(until)
	}
	w.denied(t, ns, w.unsigned)
	require.False(t, time.Now().Before(until), "it was denied before the exception ended")
	w.effective(t, &v1beta1.ClusterException{}, "", "e2e-legacy", metav1.ConditionFalse, "Expired")
}

func TestATeamsExceptionCountsAsFarAsItIsDelegated(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.apply(t,
		fmt.Sprintf("{apiVersion: landwaiter.dev/v1beta1, kind: Exception, metadata: {name: mine, namespace: %s}, spec: {until: %q, reason: r, images: ['**']}}", ns,
			time.Now().Add(time.Hour).UTC().Format(time.RFC3339)))
	w.condition(t, &v1beta1.Exception{}, ns, "mine", metav1.ConditionFalse, "NotDelegated")
	w.denied(t, ns, w.unsigned)
	w.clusterException(t, "e2e-delegation", time.Now().Add(time.Hour), fmt.Sprintf("delegate: {images: [%s], namespaces: [%s]}", pattern(w.unsigned), ns))
	w.admitted(t, ns, w.unsigned)
	w.denied(t, ns, w.byTeamA)
	w.condition(t, &v1beta1.Exception{}, ns, "mine", metav1.ConditionTrue, "Valid")
}

func TestAnEndThatCannotBeReadBreaksItsOwnExceptionAlone(t *testing.T) {
	w := installed(t)
	teamA, teamB := w.namespace(t), w.namespace(t)
	w.bind(t, teamB, "admin", "b-admin")
	team, err := w.NewClient(w.As("b-admin"))
	require.NoError(t, err)
	var accepted []string
	for i, until := range []string{"2026-12-31t18:00:00z", "2026-12-31T18:00:00z", "2026-12-31T18:00:00Ztomorrow", "2026-12-31T18:00:00x5Z",
		"2026-12-31T18:00:00+99:99", "2026-99-99T99:99:99Z"} {
		x := &v1beta1.Exception{ObjectMeta: metav1.ObjectMeta{Namespace: teamB, Name: fmt.Sprintf("x-%d", i)},
			Spec: v1beta1.ExceptionSpec{Until: until, Reason: "r", Images: []string{"**"}}}
		require.NoError(t, cluster.Until(suite.Within(t), func(ctx context.Context) error {
			switch err := team.Create(ctx, x); {
			case err == nil:
				accepted = append(accepted, x.Name)
			case !apierrors.IsInvalid(err):
				return err // the binding is not in force yet
			}
			return nil
		}), until)
	}
	require.Contains(t, accepted, "x-4", "the CRD cannot refuse every time that Go does not read")
	for _, name := range accepted {
		said := w.condition(t, &v1beta1.Exception{}, teamB, name, metav1.ConditionFalse, "Invalid")
		require.Contains(t, said.Message, "it must be a time of the form YYYY-MM-DDThh:mm:ssZ")
	}

	works := func() {
		w.admitted(t, teamA, w.byTeamA)
		w.admitted(t, teamA, w.unsigned)
		w.denied(t, teamB, w.unsigned)
	}
	w.denied(t, teamA, w.byTeamA)
	w.apply(t, own(teamA, w.teamA))
	w.clusterException(t, "e2e-other-team", time.Now().Add(time.Hour), fmt.Sprintf("images: [%s], namespaces: [%s]", pattern(w.unsigned), teamA))
	works()
	w.restart(t) // a replica that starts reads all exceptions
	works()
}

// commands returns the blocks of the page on break-glass that change annotations, for a
// namespace.
func commands(t *testing.T, namespace string) (open, end string) {
	t.Helper()
	blocks, err := page.Read(suite.Root, "docs/operate/break-glass.md")
	require.NoError(t, err)
	var found []string
	for _, b := range blocks {
		if strings.HasPrefix(b.Text, "kubectl annotate namespace shop ") {
			found = append(found, strings.Replace(b.Text, "namespace shop ", "namespace "+namespace+" ", 1))
		}
	}
	require.Len(t, found, 2)
	return found[0], found[1]
}

func TestBreakGlassOpensANamespaceForThePlatformAlone(t *testing.T) {
	w := installed(t)
	ns, other := w.namespace(t), w.namespace(t)
	guardrails, err := os.ReadFile("../../config/guardrails/guardrails.yaml")
	require.NoError(t, err)
	var labels []string
	for _, document := range strings.Split(string(guardrails), "\n---\n") {
		if strings.Contains(document, "\n  name: landwaiter-tenant-labels\n") {
			labels = append(labels, document)
		}
	}
	require.Len(t, labels, 2)
	w.during(t, strings.Join(labels, "\n---\n"))
	// The team admin may change the namespace, which the role admin does not let him.
	role := `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: e2e-namespaces}, rules: [{apiGroups: [""], resources: [namespaces], verbs: [get, patch]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: e2e-namespaces}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: e2e-namespaces}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: bob}]}`
	w.during(t, role)
	bob, err := w.NewClient(w.As("bob"))
	require.NoError(t, err)
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}
	patch := func(key, value string) client.Patch {
		return client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value))
	}
	suite.Eventually(t, func(ctx context.Context) error { // RBAC, and then the guardrail
		if err := bob.Patch(ctx, object.DeepCopy(), patch("example.com/mine", "x")); err != nil {
			return err
		}
		err := bob.Patch(ctx, object.DeepCopy(), patch(v1beta1.AnnotationBreakGlassUntil, "2030-01-01T00:00:00Z"), client.DryRunAll)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "only the platform may set or change "+v1beta1.AnnotationBreakGlassUntil) {
			return fmt.Errorf("the guardrail is not in force: %w", err)
		}
		return nil
	})
	w.denied(t, ns, w.unsigned)
	open, end := commands(t, ns)
	w.shell(t, open)
	w.admitted(t, ns, w.unsigned)
	w.admitted(t, ns, w.byTeamA)
	w.denied(t, other, w.unsigned)
	admin := suite.Program{Path: suite.MustTool(t, suite.Landwaiter), Kubeconfig: w.Kubeconfig()}
	require.Contains(t, admin.Must(t, "verify", "--explain", "--namespace", ns, w.unsigned), "break-glass of Namespace "+ns+" allows it until",
		"what the server does, whatever the flags of verify")
	suite.Eventually(t, func(ctx context.Context) error {
		var events corev1.EventList
		if err := w.Client.List(ctx, &events, client.InNamespace(ns)); err != nil {
			return err
		}
		count := map[string]int{}
		for _, e := range events.Items {
			if e.Reason == "BreakGlassUsed" && e.InvolvedObject.Name == ns && e.Type == corev1.EventTypeWarning {
				count[e.Message[:strings.Index(e.Message, " until ")]]++
			}
		}
		if len(count) != 2 || count["break-glass allows image "+w.unsigned+withDigest(events, w.unsigned)] != 1 {
			return fmt.Errorf("its Events are %v", count)
		}
		return nil
	})
	w.shell(t, end)
	w.denied(t, ns, w.unsigned)
}

// withDigest is the digest that Events have behind an image, which they know once it is
// resolved.
func withDigest(events corev1.EventList, image string) string {
	for _, e := range events.Items {
		if _, behind, ok := strings.Cut(e.Message, image+"@"); ok {
			digest, _, _ := strings.Cut(behind, " ")
			return "@" + digest
		}
	}
	return ""
}

// shell runs commands of a page as an administrator.
func (w *world) shell(t *testing.T, text string) {
	t.Helper()
	bash := suite.Program{Path: "bash", Kubeconfig: w.Kubeconfig(), Env: []string{"PATH=" + suite.MustTool(t, suite.ClusterTools) + ":" + os.Getenv("PATH")}}
	bash.Must(t, "-ec", text)
}
