//go:build e2e

package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/pkg/server/controller"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// stricter denies everywhere what team-b and team-c run.
func (w *examples) stricter() string {
	return `
apiVersion: landwaiter.dev/v1beta1
kind: ClusterVerificationPolicy
metadata: {name: only-app}
spec:
  scope: Mandatory
  rules:
  - images: ["` + w.image("shared/app") + `"]
    action: Allow
`
}

// serve returns the verdicts of a server that watches the cluster, as "namespace image".
func (w *examples) serve(t *testing.T) func(namespace, image string) policy.Verdict {
	t.Helper()
	finder, err := controller.NewFinder(w.Config)
	require.NoError(t, err)
	s, err := service.New(service.Options{}, finder)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	log := logrus.New()
	log.SetOutput(io.Discard)
	c, err := controller.New(w.Config, s.Set(), s.Outside(), schema.Embedded(), log, controller.Options{Forget: s.Forget, External: s.External()})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	suite.Eventually(t, func(context.Context) error { return s.Set().Ready() })
	return func(namespace, name string) policy.Verdict {
		ref, err := image.Parse(w.image(name))
		require.NoError(t, err)
		return s.Verify(t.Context(), verify.Namespace(namespace), ref).Verdict
	}
}

func TestWhatAClusterAdminPreviewsIsExactlyWhatIsDeniedOnceItIsEnforced(t *testing.T) {
	w := withExamples(t)
	admin := w.somebody(t, "platform", readsEverything())
	verdict := w.serve(t)
	for _, running := range []string{"team-b shared/web:v1", "team-c shared/base:v1", "team-a shared/app:v1"} {
		namespace, name, _ := strings.Cut(running, " ")
		require.Equal(t, policy.Allowed, verdict(namespace, name).Outcome(), running)
	}

	printed, rows, r := w.previews(t, admin, w.stricter(), "-A", "--all")
	require.Equal(t, 1, r.Code, r.Stderr)
	require.Equal(t, []string{"team-a shared/app:v1: allowed -> allowed", "team-a team-a/unsigned:v1: denied -> denied",
		"team-b shared/web:v1: allowed -> denied", "team-c shared/base:v1: allowed -> denied"}, rows)
	require.Equal(t, 2, printed.Breaks)
	require.Empty(t, printed.Missing)
	require.Equal(t, []string{"Pod/web"}, printed.Images[2].Used)
	require.Contains(t, printed.Images[2].To.Remediation, "add a rule for this image")
	text := admin.landwaiter.Run(t, w.stricter(), "preview", "-f", "-", "-A")
	require.Contains(t, text.Stdout, "NEWLY DENIED")
	require.NotContains(t, text.Stdout, "unsigned", "what stays is left out")

	rule := suite.Object("%s", w.stricter())
	require.NoError(t, w.Apply(t.Context(), rule))
	t.Cleanup(func() { require.NoError(t, w.Client.Delete(context.Background(), rule)) })
	suite.Eventually(t, func(context.Context) error {
		for _, row := range printed.Images {
			got := verdict(row.Namespace, strings.TrimPrefix(row.Image, w.Registry.Host()+"/"))
			if got.Outcome().String() != row.To.Answer || got.Reason != row.To.Reason {
				return fmt.Errorf("%s %s: %s: %s, and %s: %s was previewed", row.Namespace, row.Image, got.Outcome(), got.Reason, row.To.Answer, row.To.Reason)
			}
		}
		return nil
	})
}

func TestAPreviewOfTheClusterLeavesOutNamespacesThatAreExempt(t *testing.T) {
	w := withExamples(t)
	admin := w.somebody(t, "exempts", readsEverything())
	label := func(value string) {
		patch := `{"metadata":{"labels":{"` + v1beta1.LabelGatekeeperIgnore + `":` + value + `}}}`
		require.NoError(t,
			w.Client.Patch(suite.Within(t), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-c"}}, client.RawPatch(types.MergePatchType, []byte(patch))))
	}
	label(`"true"`)
	t.Cleanup(func() { label("null") })
	printed, rows, r := w.previews(t, admin, w.stricter(), "-A", "--all")
	require.Equal(t, 1, r.Code, r.Stderr)
	require.Equal(t, 1, printed.Breaks, rows)
	require.NotContains(t, strings.Join(rows, " "), "team-c")
	require.Contains(t, r.Stderr, "so they are left out: team-c")
}

func TestAPreviewOfAnExceptionAnswersForAnImageThatNothingRuns(t *testing.T) {
	w := withExamples(t)
	admin := w.somebody(t, "excepts", readsEverything())
	repository, err := w.Registry.Repository(suite.Within(t), "team-a/unsigned")
	require.NoError(t, err)
	found, err := repository.Resolve(suite.Within(t), "v1")
	require.NoError(t, err)
	pinned := "team-a/unsigned@" + found.Digest.String()
	exception := fmt.Sprintf("---\napiVersion: landwaiter.dev/v1beta1\nkind: ClusterException\nmetadata: {name: legacy}\nspec: {until: %q, reason: OPS-1, "+
		"namespaces: [team-b], images: [%q]}\n",
		time.Now().Add(time.Hour).UTC().Format(time.RFC3339), w.image(pinned))
	_, rows, r := w.previews(t, admin, exception, "-n", "team-b")
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Equal(t, []string{"team-b " + pinned + ": denied -> warned"}, rows)

	// Without a tag or a digest, no tag is looked up: the repository has no "latest".
	_, rows, r = w.previews(t, admin, strings.Replace(exception, w.image(pinned), w.image("team-a/unsigned"), 1), "-n", "team-b")
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Equal(t, []string{"team-b team-a/unsigned: denied -> warned"}, rows)
	require.NotContains(t, r.Stdout, "latest")

	// Under a mandatory policy it lifts nothing, which is the answer although nothing changes.
	printed, rows, r := w.previews(t, admin, w.stricter()+exception, "-n", "team-b")
	require.Equal(t, 1, r.Code, r.Stderr)
	require.Contains(t, rows, "team-b "+pinned+": denied -> denied")
	for _, image := range printed.Images {
		if image.Image == w.image(pinned) {
			require.Contains(t, image.To.Reason, "ClusterException legacy is for this image, but does not override mandatory policies: it needs overrideMandatory")
		}
	}
}

// A team admin has the role admin of the team's namespace, and may see what binds all teams.
func (w *examples) teamAdmin(t *testing.T) person {
	t.Helper()
	return w.somebody(t, "ada",
		map[string][]string{"team-a": {"landwaiter-reader", "landwaiter-rules-writer"}, "": {"landwaiter-cluster-reader", "landwaiter-tenant-reader"}})
}

func TestATeamAdminPreviewsTheOwnNamespaceAndSeesNoOther(t *testing.T) {
	w := withExamples(t)
	ada := w.teamAdmin(t)
	change := `
apiVersion: landwaiter.dev/v1beta1
kind: VerificationPolicy
metadata: {name: strict}
spec:
  rules:
  - images: ["**"]
    require: [{allOf: [release, second]}]
`
	printed, rows, r := w.previews(t, ada, change, "-n", "team-a", "--all")
	require.Equal(t, 1, r.Code, r.Stderr)
	require.Equal(t, []string{"team-a shared/app:v1: allowed -> denied", "team-a team-a/unsigned:v1: denied -> denied"}, rows)
	require.Contains(t, printed.Images[0].To.Reason, "second")
	for _, other := range []string{"team-b", "team-c"} {
		require.NotContains(t, r.Stdout+r.Stderr, other)
	}
	_, rows, r = w.previews(t, ada, change, "-n", "team-b")
	require.Equal(t, 2, r.Code)
	require.Empty(t, rows)
	require.Contains(t, r.Stdout, "you cannot list pods in namespace team-b")
	refused := ada.landwaiter.Run(t, change, "preview", "-f", "-", "-A")
	require.Equal(t, 2, refused.Code, refused.Stderr)
	require.Contains(t, refused.Stderr, "you cannot list namespaces; name a namespace of yours with --namespace")
	require.Empty(t, refused.Stdout)
}

func TestEachMissingRightIsNamedAndNothingIsGuessed(t *testing.T) {
	w := withExamples(t)
	var rules []rbacv1.PolicyRule
	for _, name := range readsEverything()[""] {
		var role rbacv1.ClusterRole
		require.NoError(t, w.Client.Get(t.Context(), client.ObjectKey{Name: name}, &role))
		rules = append(rules, role.Rules...)
	}
	full := w.somebody(t, "full", readsEverything())
	_, _, r := w.previews(t, full, w.stricter(), "-n", "team-a", "--all")
	truth := map[string]string{"shared/app:v1": "allowed", "team-a/unsigned:v1": "denied"}
	require.Equal(t, 0, r.Code, "%s%s", r.Stdout, r.Stderr)
	for _, c := range []struct{ resource, says string }{
		{"clusterverificationpolicies", "you cannot list clusterverificationpolicies.landwaiter.dev"},
		{"clusterstores", "you cannot list clusterstores.landwaiter.dev"},
		{"verifiers", "you cannot list verifiers.landwaiter.dev in namespace team-a"},
		{"truststores", "you cannot list truststores.landwaiter.dev in namespace team-a"},
		{"verificationpolicies", "you cannot list verificationpolicies.landwaiter.dev in namespace team-a"},
		{"tenants", "you cannot list tenants.landwaiter.dev"},
		{"pods", "you cannot list pods in namespace team-a"},
	} {
		t.Run(c.resource, func(t *testing.T) {
			less := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "without-" + c.resource}}
			for _, rule := range rules {
				kept := rule.DeepCopy()
				kept.Resources = nil
				for _, name := range rule.Resources {
					if name != c.resource {
						kept.Resources = append(kept.Resources, name)
					}
				}
				if len(kept.Resources) > 0 {
					less.Rules = append(less.Rules, *kept)
				}
			}
			require.NoError(t, w.Client.Create(t.Context(), less))
			t.Cleanup(func() { _ = w.Client.Delete(context.Background(), less) })
			somebody := w.somebody(t, "less-"+c.resource, map[string][]string{"": {less.Name}})
			printed, _, r := w.previews(t, somebody, w.stricter(), "-n", "team-a", "--all")
			require.Equal(t, 2, r.Code, "%s%s", r.Stdout, r.Stderr)
			require.Contains(t, r.Stdout+r.Stderr, c.says)
			for _, row := range printed.Images {
				for _, got := range []string{row.From.Answer, row.To.Answer} {
					require.Contains(t, []string{"unknown", truth[strings.TrimPrefix(row.Image, w.Registry.Host()+"/")]}, got, row.Image)
				}
			}
		})
	}
}

func TestInvalidResourcesAreRefusedBeforeAnythingIsJudged(t *testing.T) {
	w := withExamples(t)
	admin := w.somebody(t, "careless", readsEverything())
	r := admin.landwaiter.Run(t, strings.ReplaceAll(w.stricter(), "action: Allow", "action: Maybe"), "preview", "-f", "-", "-A")
	require.Equal(t, 64, r.Code)
	require.Contains(t, r.Stderr, "ClusterVerificationPolicy only-app: spec.rules[0].action:")
	require.Empty(t, r.Stdout)
	r = admin.landwaiter.Run(t, "", "preview", "-A")
	require.Equal(t, 64, r.Code)
	require.Contains(t, r.Stderr, "no change is given")
	r = admin.landwaiter.Run(t, "", "preview", "--delete", "clusterverificationpolicies/default", "-n", "nowhere")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Stderr, "namespace nowhere does not exist")
}

func TestWhatIsRemovedIsJudgedAsGone(t *testing.T) {
	w := withExamples(t)
	admin := w.somebody(t, "remover", readsEverything())
	r := admin.landwaiter.Run(t, "", "preview", "--delete", "verificationpolicy/team-b/strict", "--delete", "verifiers/team-b/release", "-n", "team-b")
	require.Equal(t, 1, r.Code, r.Stderr)
	require.Contains(t, r.Stdout, "ClusterVerificationPolicy default", "the cluster's rules would hold")
}

func TestVerifyAndExplainAskTheClusterWithTheRightsOfWhoAsks(t *testing.T) {
	w := withExamples(t)
	ada := w.teamAdmin(t)
	r := ada.landwaiter.Run(t, "", "verify", "-n", "team-a", w.image("shared/app:v1"), w.image("team-a/unsigned:v1"))
	require.Equal(t, 1, r.Code, r.Stderr)
	require.Regexp(t, `(?s)shared/app:v1 +ALLOWED.*unsigned:v1 +DENIED`, r.Stdout)
	r = ada.landwaiter.Run(t, "", "verify", "--explain", "-n", "team-a", w.image("shared/app:v1"))
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Contains(t, r.Stdout, "VerificationPolicy team-a/strict")
	r = ada.landwaiter.Run(t, "", "verify", "--digest", "-n", "team-a", w.image("shared/app:v1"))
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Contains(t, r.Stdout, "@sha256:")
	r = ada.landwaiter.Run(t, "", "verify", "-n", "team-b", w.image("shared/web:v1"))
	require.Equal(t, 2, r.Code, "%s%s", r.Stdout, r.Stderr)
	require.Contains(t, r.Stderr, "ask an admin of the namespace to bind ClusterRole landwaiter-reader there")
	require.Contains(t, r.Stderr, "--dry-run=server")
	everywhere := w.somebody(t, "eve", readsEverything())
	r = everywhere.landwaiter.Run(t, "", "verify", "-n", "nowhere", w.image("shared/base:v1"))
	require.Equal(t, 1, r.Code, r.Stdout)
	require.Empty(t, r.Stdout)
	require.Contains(t, r.Stderr, "namespace nowhere does not exist")
	pod := "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: " + w.image("shared/base:v1") + "}]}}"
	r = everywhere.landwaiter.Run(t, pod, "verify", "-n", "nowhere", "-f", "-") // it may be made together with the pod
	require.Equal(t, 0, r.Code, r.Stdout)
	require.Contains(t, r.Stderr, "warning: namespace nowhere does not exist, so only cluster resources apply")
	r = everywhere.landwaiter.Run(t, pod, "verify", "--strict", "-n", "nowhere", "-f", "-")
	require.Equal(t, 2, r.Code)
}

// manifests are what kustomize prints: several documents, and namespaces on some.
func (w *examples) manifests() string {
	return `
apiVersion: v1
kind: Service
metadata: {name: web}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  template:
    spec:
      initContainers: [{name: init, image: "` + w.image("team-a/unsigned:v1") + `"}]
      containers: [{name: main, image: "` + w.image("shared/app:v1") + `"}]
---
apiVersion: v1
kind: List
items:
- apiVersion: batch/v1
  kind: CronJob
  metadata: {name: nightly, namespace: team-b}
  spec:
    jobTemplate: {spec: {template: {spec: {containers: [{name: main, image: "` + w.image("shared/web:v1") + `"}]}}}}
`
}

func TestVerifyJudgesTheImagesOfManifests(t *testing.T) {
	w := withExamples(t)
	admin := w.somebody(t, "ci", readsEverything())
	r := admin.landwaiter.Run(t, w.manifests(), "verify", "-n", "team-a", "-f", "-")
	require.Equal(t, 1, r.Code, r.Stderr)
	require.Regexp(t, `(?s)team-a +Deployment/app +\S+shared/app:v1 +ALLOWED.*team-a +Deployment/app +\S+unsigned:v1 +DENIED.*team-b +CronJob/nightly `+
		`+\S+shared/web:v1 +ALLOWED`, r.Stdout)
	require.Contains(t, r.Stderr, "objects of kinds without a pod were ignored: 2")
	r = admin.landwaiter.Run(t, w.manifests(), "verify", "--digest", "-n", "team-a", "-f", "-")
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Len(t, strings.Split(strings.TrimSpace(r.Stdout), "\n"), 3)
	require.Contains(t, r.Stdout, w.image("shared/web:v1@sha256:"))
	r = admin.landwaiter.Run(t, w.manifests(), "verify", "--explain", "-n", "team-a", "-f", "-", "-o", "json")
	require.Equal(t, 1, r.Code, r.Stderr)
	require.Equal(t, 3, strings.Count(r.Stdout, `"configHash"`))
	r = admin.landwaiter.Run(t, "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n", "verify", "-n", "team-a", "-f", "-")
	require.Equal(t, 64, r.Code)
	require.Contains(t, r.Stderr, "no images")
}

func TestTheProgramIsAPluginOfKubectl(t *testing.T) {
	w := withExamples(t)
	admin := w.somebody(t, "kubectl-user", readsEverything())
	bin := t.TempDir()
	binary, err := filepath.Abs(admin.landwaiter.Path)
	require.NoError(t, err)
	require.NoError(t, os.Symlink(binary, filepath.Join(bin, "kubectl-landwaiter")))
	admin.kubectl.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH")}
	require.Contains(t, admin.kubectl.Must(t, "landwaiter", "verify", "-n", "team-a", w.image("shared/app:v1")), "ALLOWED")

	everything := suite.Program{Path: admin.kubectl.Path, Kubeconfig: w.Kubeconfig(), Env: admin.kubectl.Env}
	ask := []string{"landwaiter", "verify", "-n", "team-a", w.image("shared/app:v1"), "-o", "jsonpath={.results[0].outcome}"}
	require.Equal(t, "allowed", everything.Must(t, ask...))
	require.Equal(t, "allowed", everything.Must(t, append(ask, "--as", "kubectl-user")...))
	r := everything.Run(t, "", append(ask, "--as", "somebody-else")...)
	require.Equal(t, 2, r.Code, r.Stderr)
	require.Equal(t, "undecided", r.Stdout, "who is impersonated may read nothing")
}

// The command is the one that tenant delete prints.
func TestPreviewOfADeletedTenantShowsWhoseRulesEnd(t *testing.T) {
	w := withExamples(t)
	admin := caller(t, w.Kubeconfig())
	tenant := suite.Object("%s", "apiVersion: landwaiter.dev/v1beta1\nkind: Tenant\nmetadata: {name: leaving}\nspec: {homeNamespace: team-b, "+
		"namespaces: [team-c]}")
	require.NoError(t, w.Apply(t.Context(), tenant))
	t.Cleanup(func() { require.NoError(t, w.Client.Delete(context.Background(), tenant)) })
	dry := admin.landwaiter.Run(t, "", "tenant", "delete", "leaving", "-o", "json")
	require.Contains(t, dry.Stderr, "nothing was deleted")
	var said struct {
		Preview    string
		RulesEndIn []string
	}
	require.NoError(t, json.Unmarshal([]byte(dry.Stdout), &said))
	require.Equal(t, []string{"team-c"}, said.RulesEndIn)
	r := admin.landwaiter.Run(t, "", strings.Fields(said.Preview)[1:]...)
	require.NotEqual(t, 64, r.Code, r.Stderr)
	require.Regexp(t, `(?m)^team-c +Pod/base +\S+/shared/base:v1 +DENIED +ALLOWED `, r.Stdout, "only the team's rules denied it")
}
