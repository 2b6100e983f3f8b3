//go:build e2e

package live

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/pkg/controller"
	"github.com/landwaiter/landwaiter/pkg/image"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/service"
	"github.com/landwaiter/landwaiter/pkg/verify"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
)

// stricter denies everywhere what team-b and team-c run.
func stricter() string {
	return `
apiVersion: landwaiter.dev/v1alpha1
kind: ClusterVerificationPolicy
metadata: {name: only-app}
spec:
  scope: Floor
  rules:
  - images: ["` + w.image("shared/app") + `"]
    action: Allow
`
}

// serve returns the verdicts of a server that watches the cluster, as "namespace image".
func serve(t *testing.T) func(namespace, image string) policy.Verdict {
	t.Helper()
	s, err := service.New(service.Options{})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	log := logrus.New()
	log.SetOutput(io.Discard)
	c, err := controller.New(w.Config, s.Set(), s.Outside(), log, controller.Options{Forget: s.Forget, External: s.External()})
	require.NoError(t, err)
	s.SetFinder(c)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	within, done := context.WithTimeout(t.Context(), settle)
	defer done()
	require.NoError(t, cluster.Until(within, func(context.Context) error { return s.Set().Ready() }))
	return func(namespace, name string) policy.Verdict {
		ref, err := image.Parse(w.image(name))
		require.NoError(t, err)
		return s.Verify(t.Context(), verify.Namespace(namespace), ref).Verdict
	}
}

func TestWhatAClusterAdminPreviewsIsExactlyWhatIsDeniedOnceItIsEnforced(t *testing.T) {
	admin := somebody(t, "platform", map[string][]string{"": {"landwaiter-previewer"}})
	verdict := serve(t)
	for _, running := range []string{"team-b shared/web:v1", "team-c shared/base:v1", "team-a shared/app:v1"} {
		namespace, name, _ := strings.Cut(running, " ")
		require.Equal(t, policy.Allowed, verdict(namespace, name).Outcome, running)
	}

	printed, rows, r := admin.previews(t, stricter(), "-A", "--all")
	require.Equal(t, 1, r.code, r.stderr)
	require.Equal(t, []string{"team-a shared/app:v1: allowed -> allowed", "team-a team-a/unsigned:v1: denied -> denied",
		"team-b shared/web:v1: allowed -> denied", "team-c shared/base:v1: allowed -> denied"}, rows)
	require.Equal(t, 2, printed.Breaks)
	require.Empty(t, printed.Missing)
	require.Equal(t, []string{"Pod/web"}, printed.Images[2].Used)
	require.Contains(t, printed.Images[2].To.Remediation, "add a rule for this image")
	text := admin.runs(t, stricter(), "preview", "-f", "-", "-A")
	require.Contains(t, text.stdout, "NEWLY DENIED")
	require.NotContains(t, text.stdout, "unsigned", "what stays is left out")

	objects, err := cluster.Decode([]byte(stricter()))
	require.NoError(t, err)
	require.NoError(t, w.Apply(t.Context(), objects...))
	t.Cleanup(func() { require.NoError(t, w.Client.Delete(context.Background(), objects[0])) })
	within, done := context.WithTimeout(t.Context(), settle)
	defer done()
	require.NoError(t, cluster.Until(within, func(context.Context) error {
		for _, row := range printed.Images {
			got := verdict(row.Namespace, strings.TrimPrefix(row.Image, w.Registry.Host()+"/"))
			if got.Outcome.String() != row.To.Answer || got.Reason != row.To.Reason {
				return fmt.Errorf("%s %s: %s: %s, and %s: %s was previewed", row.Namespace, row.Image, got.Outcome, got.Reason, row.To.Answer, row.To.Reason)
			}
		}
		return nil
	}))
}

// A team admin has the role admin of the team's namespace, and may see what binds all teams.
func teamAdmin(t *testing.T) person {
	t.Helper()
	return somebody(t, "ada", map[string][]string{"team-a": {"landwaiter-previewer", "landwaiter-team-admin"}, "": {"landwaiter-cluster-previewer"}})
}

func TestATeamAdminPreviewsTheOwnNamespaceAndSeesNoOther(t *testing.T) {
	ada := teamAdmin(t)
	change := `
apiVersion: landwaiter.dev/v1alpha1
kind: VerificationPolicy
metadata: {name: strict}
spec:
  rules:
  - images: ["**"]
    require: [{allOf: [release, second]}]
`
	printed, rows, r := ada.previews(t, change, "-n", "team-a", "--all")
	require.Equal(t, 1, r.code, r.stderr)
	require.Equal(t, []string{"team-a shared/app:v1: allowed -> denied", "team-a team-a/unsigned:v1: denied -> denied"}, rows)
	require.Contains(t, printed.Images[0].To.Reason, "second")
	for _, other := range []string{"team-b", "team-c"} {
		require.NotContains(t, r.stdout+r.stderr, other)
	}
	_, rows, r = ada.previews(t, change, "-n", "team-b")
	require.Equal(t, 2, r.code)
	require.Empty(t, rows)
	require.Contains(t, r.stdout, "you may not list pods in namespace team-b")
	refused := ada.runs(t, change, "preview", "-f", "-", "-A")
	require.Equal(t, 2, refused.code, refused.stderr)
	require.Contains(t, refused.stderr, "you may not list namespaces; ask a cluster admin to bind ClusterRole landwaiter-previewer")
	require.Empty(t, refused.stdout)
}

func TestEachMissingRightIsNamedAndNothingIsGuessed(t *testing.T) {
	var role rbacv1.ClusterRole
	require.NoError(t, w.Client.Get(t.Context(), keyOf("landwaiter-previewer"), &role))
	full := somebody(t, "full", map[string][]string{"": {"landwaiter-previewer"}})
	_, _, r := full.previews(t, stricter(), "-n", "team-a", "--all")
	truth := map[string]string{"shared/app:v1": "allowed", "team-a/unsigned:v1": "denied"}
	require.Equal(t, 0, r.code, "%s%s", r.stdout, r.stderr)
	for _, c := range []struct{ resource, says string }{
		{"clusterverificationpolicies", "you may not list clusterverificationpolicies.landwaiter.dev"},
		{"clusterstores", "you may not list clusterstores.landwaiter.dev"},
		{"verifiers", "you may not list verifiers.landwaiter.dev in namespace team-a"},
		{"truststores", "you may not list truststores.landwaiter.dev in namespace team-a"},
		{"verificationpolicies", "you may not list verificationpolicies.landwaiter.dev in namespace team-a"},
		{"tenants", "you may not list tenants.landwaiter.dev"},
		{"pods", "you may not list pods in namespace team-a"},
	} {
		t.Run(c.resource, func(t *testing.T) {
			less := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "without-" + c.resource}}
			for _, rule := range role.Rules {
				kept := rule.DeepCopy()
				kept.Resources = nil
				for _, name := range rule.Resources {
					if name != c.resource {
						kept.Resources = append(kept.Resources, name)
					}
				}
				less.Rules = append(less.Rules, *kept)
			}
			require.NoError(t, w.Client.Create(t.Context(), less))
			t.Cleanup(func() { _ = w.Client.Delete(context.Background(), less) })
			somebody := somebody(t, "less-"+c.resource, map[string][]string{"": {less.Name}})
			printed, _, r := somebody.previews(t, stricter(), "-n", "team-a", "--all")
			require.Equal(t, 2, r.code, "%s%s", r.stdout, r.stderr)
			require.Contains(t, r.stdout, c.says)
			for _, row := range printed.Images {
				for _, got := range []string{row.From.Answer, row.To.Answer} {
					require.Contains(t, []string{"unknown", truth[strings.TrimPrefix(row.Image, w.Registry.Host()+"/")]}, got, row.Image)
				}
			}
		})
	}
}

func TestInvalidResourcesAreRefusedBeforeAnythingIsJudged(t *testing.T) {
	admin := somebody(t, "careless", map[string][]string{"": {"landwaiter-previewer"}})
	r := admin.runs(t, strings.ReplaceAll(stricter(), "action: Allow", "action: Maybe"), "preview", "-f", "-", "-A")
	require.Equal(t, 64, r.code)
	require.Contains(t, r.stderr, "ClusterVerificationPolicy only-app: spec.rules[0].action:")
	require.Empty(t, r.stdout)
	r = admin.runs(t, "", "preview", "-A")
	require.Equal(t, 64, r.code)
	require.Contains(t, r.stderr, "which change?")
	r = admin.runs(t, "", "preview", "--delete", "clusterverificationpolicies/default", "-n", "nowhere")
	require.Equal(t, 64, r.code)
	require.Contains(t, r.stderr, "namespace nowhere does not exist")
}

func TestWhatIsRemovedIsJudgedAsGone(t *testing.T) {
	admin := somebody(t, "remover", map[string][]string{"": {"landwaiter-previewer"}})
	r := admin.runs(t, "", "preview", "--delete", "verificationpolicy/team-b/strict", "--delete", "verifiers/team-b/release", "-n", "team-b")
	require.Equal(t, 1, r.code, r.stderr)
	require.Contains(t, r.stdout, "ClusterVerificationPolicy default", "the cluster's rules would hold")
}

func TestVerifyAndExplainAskTheClusterWithTheRightsOfWhoAsks(t *testing.T) {
	ada := teamAdmin(t)
	r := ada.runs(t, "", "verify", "-n", "team-a", w.image("shared/app:v1"), w.image("team-a/unsigned:v1"))
	require.Equal(t, 1, r.code, r.stderr)
	require.Regexp(t, `(?s)shared/app:v1 +ALLOWED.*unsigned:v1 +DENIED`, r.stdout)
	r = ada.runs(t, "", "explain", "-n", "team-a", w.image("shared/app:v1"))
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stdout, "VerificationPolicy team-a/strict")
	r = ada.runs(t, "", "resolve", "-n", "team-a", w.image("shared/app:v1"))
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stdout, "@sha256:")
	r = ada.runs(t, "", "verify", "-n", "team-b", w.image("shared/web:v1"))
	require.Equal(t, 2, r.code, "%s%s", r.stdout, r.stderr)
	require.Contains(t, strings.Join(strings.Fields(r.stdout), " "), "you may not list")
	everywhere := somebody(t, "eve", map[string][]string{"": {"landwaiter-previewer"}})
	r = everywhere.runs(t, "", "verify", "-n", "nowhere", w.image("shared/base:v1"))
	require.Equal(t, 64, r.code, r.stdout)
	require.Empty(t, r.stdout)
	require.Contains(t, r.stderr, "namespace nowhere does not exist")
	pod := "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: " + w.image("shared/base:v1") + "}]}}"
	r = everywhere.runs(t, pod, "verify", "-n", "nowhere", "-f", "-") // it may be made together with the pod
	require.Equal(t, 0, r.code, r.stdout)
	require.Contains(t, r.stderr, "warning: namespace nowhere does not exist, so only cluster resources apply")
	r = everywhere.runs(t, pod, "verify", "--strict", "-n", "nowhere", "-f", "-")
	require.Equal(t, 64, r.code)
}

// manifests are what kustomize prints: several documents, and namespaces on some.
func manifests() string {
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
	admin := somebody(t, "ci", map[string][]string{"": {"landwaiter-previewer"}})
	r := admin.runs(t, manifests(), "verify", "-n", "team-a", "-f", "-")
	require.Equal(t, 1, r.code, r.stderr)
	require.Regexp(t, `(?s)team-a +Deployment/app +\S+shared/app:v1 +ALLOWED.*team-a +Deployment/app +\S+unsigned:v1 +DENIED.*team-b +CronJob/nightly +\S+shared/web:v1 +ALLOWED`, r.stdout)
	require.Contains(t, r.stderr, "objects of kinds without a pod were ignored: 2")
	r = admin.runs(t, manifests(), "resolve", "-n", "team-a", "-f", "-")
	require.Equal(t, 0, r.code, r.stderr)
	require.Len(t, strings.Split(strings.TrimSpace(r.stdout), "\n"), 3)
	require.Contains(t, r.stdout, w.image("shared/web:v1@sha256:"))
	r = admin.runs(t, manifests(), "explain", "-n", "team-a", "-f", "-", "-o", "json")
	require.Equal(t, 1, r.code, r.stderr)
	require.Equal(t, 3, strings.Count(r.stdout, `"generation"`))
	r = admin.runs(t, "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n", "verify", "-n", "team-a", "-f", "-")
	require.Equal(t, 64, r.code)
	require.Contains(t, r.stderr, "no images")
}

func TestTheProgramIsAPluginOfKubectl(t *testing.T) {
	admin := somebody(t, "kubectl-user", map[string][]string{"": {"landwaiter-previewer"}})
	bin := t.TempDir()
	binary, err := filepath.Abs(w.binary)
	require.NoError(t, err)
	require.NoError(t, os.Symlink(binary, filepath.Join(bin, "kubectl-landwaiter")))
	kubectl := exec.CommandContext(t.Context(), filepath.Join(os.Getenv("LANDWAITER_CLUSTER_TOOLS"), "kubectl"), "landwaiter", "verify", "-n", "team-a", w.image("shared/app:v1"))
	kubectl.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "KUBECONFIG="+admin.kubeconfig)
	out, err := kubectl.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "ALLOWED")
}
