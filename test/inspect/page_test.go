//go:build e2e

package inspect

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/page"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// The commands of docs/howto/preview.md run in its order, as an admin copies them.
func TestTheCommandsOfThePageOnPreviewsWork(t *testing.T) {
	w := withExamples(t)
	t.Cleanup(func() {
		meta := func(namespace, name string) metav1.ObjectMeta {
			return metav1.ObjectMeta{Namespace: namespace, Name: name}
		}
		for _, made := range []client.Object{
			&rbacv1.ClusterRoleBinding{ObjectMeta: meta("", "platform-reader")}, &rbacv1.ClusterRoleBinding{ObjectMeta: meta("", "platform-cluster-reader")},
			&rbacv1.ClusterRoleBinding{ObjectMeta: meta("", "platform-tenant-reader")}, &rbacv1.ClusterRoleBinding{ObjectMeta: meta("", "team-a-cluster-reader")},
			&rbacv1.RoleBinding{ObjectMeta: meta("team-a", "registry-login-reader")},
			&rbacv1.Role{ObjectMeta: meta("team-a", "registry-login-reader")},
		} {
			_ = w.Client.Delete(context.Background(), made)
		}
	})
	blocks, err := page.Read(suite.Root, "docs/howto/preview.md")
	require.NoError(t, err)
	require.NoError(t, copies(t, w.Cluster, page.Substitution{Page: "registry.example.com", Test: w.Registry.Host(), Why: "the registry of the tests"}).
		Run(t.Context(), blocks...))
}

// copies is an admin of a cluster who copies commands of pages.
func copies(t *testing.T, c *cluster.Cluster, substitutions ...page.Substitution) *page.Runner {
	t.Helper()
	dir := t.TempDir()
	programs := filepath.Join(dir, "bin")
	require.NoError(t, os.Mkdir(programs, 0o750))
	binary, err := filepath.Abs(suite.MustTool(t, suite.Landwaiter))
	require.NoError(t, err)
	require.NoError(t, os.Symlink(binary, filepath.Join(programs, "landwaiter")))
	return &page.Runner{Test: t.Name(), Dir: dir, Progress: t.Output(), Substitutions: substitutions,
		Environment: []string{"HOME=" + dir, "KUBECONFIG=" + c.Kubeconfig(),
			"PATH=" + programs + ":" + suite.MustTool(t, suite.ClusterTools) + ":" + os.Getenv("PATH")}}
}

// markedFor returns the blocks of a page that the test runs.
func markedFor(t *testing.T, name string) []page.Block {
	t.Helper()
	blocks, err := page.Read(suite.Root, name)
	require.NoError(t, err)
	blocks = slices.DeleteFunc(blocks, func(b page.Block) bool { return b.Mark != page.By || b.Name != t.Name() })
	require.NotEmpty(t, blocks)
	return blocks
}

// The commands of docs/howto/preview.md that pipe a dry run into preview, which prints one object, or a List.
func TestAPreviewReadsWhatADryRunPrints(t *testing.T) {
	w := withExamples(t)
	admin := copies(t, w.Cluster)
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(admin.Dir, name)), 0o750))
		require.NoError(t, os.WriteFile(filepath.Join(admin.Dir, name), []byte(text), 0o600))
	}
	// Each would be refused, or mean something else, without what the API server has: a patch is no object, and
	// a file without rules and images is the whole object.
	write("patch.yaml", "spec: {rules: [{images: [nothing.example.com/x], action: Allow}]}")
	write("rules/kustomization.yaml", "namePrefix: made-\nresources: [all.yaml]\n")
	write("rules/all.yaml", strings.Replace(w.stricter(), "only-app", "one", 1)+"---"+strings.Replace(w.stricter(), "only-app", "two", 1))
	lines := strings.Split(strings.TrimSpace(markedFor(t, "docs/howto/preview.md")[0].Text), "\n")
	require.Len(t, lines, 3)

	output, err := admin.Bash(t.Context(), lines[0])
	require.Error(t, err, output)
	require.Contains(t, output, "NEWLY DENIED")
	require.Regexp(t, "shared/app:v1", output)
	require.Contains(t, output, "VerificationPolicy team-a/strict", output)

	dry, _, _ := strings.Cut(lines[1], "|")
	output, err = admin.Bash(t.Context(), dry)
	require.NoError(t, err, output)
	require.Contains(t, output, "kind: List")
	output, err = admin.Bash(t.Context(), lines[1])
	require.Error(t, err, output)
	said := strings.Join(strings.Fields(output), " ") // the table breaks lines
	require.Contains(t, said, "ClusterVerificationPolicy made-one")
	require.Contains(t, said, "ClusterVerificationPolicy made-two")

	output, err = admin.Bash(t.Context(), strings.ReplaceAll(lines[2], "team-b/strict -n team-b", "team-a/strict -n team-a"))
	require.NoError(t, err, output)
	require.Contains(t, output, "No verdict would change", "the cluster's policy requires the same")

	// What the API server refuses is not previewed.
	write("patch.yaml", "spec: {rules: [{images: ['['], action: Allow}]}")
	output, err = admin.Bash(t.Context(), lines[0])
	require.Error(t, err, output)
	require.NotContains(t, output, "ALLOWED")
}

// The steps of docs/operate/rotate.md for each place in which a TrustStore has its keys.
func TestKeysInTrustStoresAreRotatedAsThePageSays(t *testing.T) {
	w := installed(t)
	blocks := markedFor(t, "docs/operate/rotate.md")
	for source, row := range map[string]struct{ step, trustStore, object string }{
		"inline": {"kind: TrustStore", "inline: KEY", ""},
		"secret": {"create secret", "secretKeyRef: {name: cosign-pub, key: cosign.pub}",
			"{apiVersion: v1, kind: Secret, metadata: {name: cosign-pub}, stringData: {cosign.pub: KEY, other: stays}}"},
		"map": {"create configmap", "configMapKeyRef: {name: cosign-pub, key: cosign.pub}",
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: cosign-pub}, data: {cosign.pub: KEY, other: stays}}"},
	} {
		t.Run(source, func(t *testing.T) {
			now, err := fixture.NewCosignKey(fixture.ECDSAP256)
			require.NoError(t, err)
			next, err := fixture.NewCosignKey(fixture.ECDSAP256)
			require.NoError(t, err)
			team := w.fresh("rotates")
			w.rotating(t, team, row.trustStore, row.object, now)
			pushed, err := w.Registry.PushImage(t.Context(), team+"/app", "v1")
			require.NoError(t, err)
			sign := func(key *fixture.CosignKey) {
				_, err := w.Registry.SignCosign(t.Context(), pushed, key, fixture.CosignOptions{})
				require.NoError(t, err)
			}
			sign(now)
			made := suite.Restricted(suite.Pod(team, "app", w.Registry.Host()+"/"+team+"/app:v1"))
			w.eventually(t, func(ctx context.Context) error { return w.Client.Create(ctx, made) })
			t.Cleanup(func() { // previews of the cluster would ask about it, for people who may not read the Secret
				require.NoError(t, w.Client.Delete(context.WithoutCancel(t.Context()), made, client.GracePeriodSeconds(0)))
			})

			admin := copies(t, w.Cluster, page.Substitution{Page: "team-a", Test: team, Why: "each source has its own namespace"})
			admin.Test = "TestKeysInTrustStoresAreRotatedAsThePageSays"
			require.NoError(t, os.WriteFile(filepath.Join(admin.Dir, "cosign-next.pub"), next.PEM, 0o600))
			var steps []page.Block
			for _, b := range blocks {
				if b.Section == "Keys in a TrustStore" && (!strings.Contains(b.Text, "for keys in") || strings.Contains(b.Text, row.step)) {
					steps = append(steps, b)
				}
			}
			require.Len(t, steps, 5)
			require.NoError(t, admin.Run(t.Context(), steps[:3]...))
			var fingerprints string
			w.eventually(t, func(ctx context.Context) error {
				if fingerprints, err = admin.Bash(ctx, strings.Split(steps[2].Text, "\n")[1]); err != nil || strings.Count(fingerprints, "sha256:") != 2 {
					return fmt.Errorf("it does not trust both: %s %w", fingerprints, err)
				}
				return nil
			})

			// Preview sees the change before it is made, and the signature that was missing.
			output, err := admin.Bash(t.Context(), steps[3].Text)
			require.Error(t, err, output)
			require.Contains(t, output, "NEWLY DENIED")
			sign(next)
			require.NoError(t, admin.Run(t.Context(), steps[3:]...))

			// The command of the page finds what trusts a key.
			old := strings.Fields(fingerprints)[0]
			who := slices.IndexFunc(blocks, func(b page.Block) bool { return strings.Contains(b.Text, "$FINGERPRINT") })
			require.GreaterOrEqual(t, who, 0)
			admin.Environment = append(admin.Environment, "FINGERPRINT="+strings.Fields(fingerprints)[1])
			output, err = admin.Bash(t.Context(), blocks[who].Text)
			require.NoError(t, err, output)
			require.Contains(t, output, "TrustStore "+team+" release-keys")
			w.eventually(t, func(ctx context.Context) error {
				output, err := admin.Bash(ctx, strings.Split(steps[2].Text, "\n")[1])
				if err != nil || strings.Contains(output, old) {
					return fmt.Errorf("it trusts the old key: %s %w", output, err)
				}
				return nil
			})
			if row.object != "" {
				kind := strings.Fields(row.step)[1]
				output, err = admin.Bash(t.Context(), "kubectl get "+kind+" cosign-pub --namespace team-a -o yaml | grep other:")
				require.NoError(t, err, "other keys stay: %s", output)
			}
		})
	}
}

// rotating makes a namespace whose images need a signature by the key of its TrustStore.
func (w *installation) rotating(t *testing.T, team, source, object string, key *fixture.CosignKey) {
	t.Helper()
	with := func(text string) string { return strings.ReplaceAll(text, "KEY", strconv.Quote(string(key.PEM))) }
	require.NoError(t, w.Apply(t.Context(), suite.Namespace(team)))
	require.NoError(t, w.Client.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "landwaiter-reference-reader"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "landwaiter-reference-reader"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: suite.System, Name: "landwaiter"}}}))
	for _, text := range []string{object,
		"{apiVersion: landwaiter.dev/v1beta1, kind: TrustStore, metadata: {name: release-keys}, spec: {type: PublicKeys, source: {" + source + "}}}",
		"{apiVersion: landwaiter.dev/v1beta1, kind: Verifier, metadata: {name: release}, spec: {type: Cosign, cosign: {keys: {trustStoreRefs: [{name: " +
			"release-keys}], insecureIgnoreTransparencyLog: true}}}}",
		"{apiVersion: landwaiter.dev/v1beta1, kind: VerificationPolicy, metadata: {name: own}, spec: {rules: [{images: ['**'], require: [{anyOf: [release]}]}]}}"} {
		if text != "" {
			suite.Apply(t, w.Cluster, strings.Replace(with(text), "metadata: {", "metadata: {namespace: "+team+", ", 1))
		}
	}
}

// The page is docs/howto/audit.md. An auditor runs its commands with the roles that the page binds, and no others.
func TestTheCommandsOfThePageOnAuditsWork(t *testing.T) {
	w := installed(t)
	blocks, err := page.Read(suite.Root, "docs/howto/audit.md")
	require.NoError(t, err)
	team := w.fresh("audited")
	require.NoError(t, w.Apply(t.Context(), suite.Namespace(team)))
	signed, unsigned, elsewhere := w.image(t, team+"/app", w.platform), w.image(t, team+"/unsigned"), w.image(t, team+"/elsewhere")
	suite.Apply(t, w.Cluster,
		fmt.Sprintf("{apiVersion: landwaiter.dev/v1beta1, kind: ClusterException, metadata: {name: %s}, spec: {until: %q, reason: OPS-1, namespaces: [%s], "+
			"images: [%q]}}",
			team, time.Now().Add(time.Hour).UTC().Format(time.RFC3339), team, strings.TrimSuffix(unsigned, ":v1")))
	suite.Apply(t, w.Cluster,
		fmt.Sprintf("{apiVersion: landwaiter.dev/v1beta1, kind: VerificationPolicy, metadata: {name: lax, namespace: %s}, spec: {defaultAction: Inherit, rules: "+
			"[{images: [%q], action: Allow}]}}",
			team, strings.TrimSuffix(elsewhere, ":v1")))
	for name, image := range map[string]string{"signed": signed, "excepted": unsigned, "lax": elsewhere} {
		made := suite.Restricted(suite.Pod(team, name, image))
		w.eventually(t, func(ctx context.Context) error { return w.Client.Create(ctx, made) })
		made.Status.Phase = corev1.PodRunning
		require.NoError(t, w.Client.Status().Update(t.Context(), made))
	}
	for name, rule := range map[string]string{
		"opens":        "apiGroups: [config.gatekeeper.sh], resources: [configs], verbs: [patch]",
		"impersonates": "apiGroups: [''], resources: [groups], verbs: [impersonate]",
		"redeploys":    "apiGroups: [apps], resources: [deployments], verbs: [update]",
		"harmless":     "apiGroups: ['', apps, config.gatekeeper.sh], resources: ['*'], verbs: [get, list, watch]",
	} {
		suite.Apply(t, w.Cluster,
			fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: %s-%s}, rules: [{%s}]}", team, name, rule))
	}
	names := []page.Substitution{{Page: "registry.example.com/platform/app:v1", Test: signed, Why: "the registry of the tests"},
		{Page: "team-a", Test: team, Why: "others have team-a"}}
	admin, auditor := copies(t, w.Cluster, names...), copies(t, w.Cluster, names...)
	auditor.Environment = append(auditor.Environment, "KUBECONFIG="+suite.Kubeconfig(t, w.Cluster, "audrey", "default", "auditors"))
	said := &strings.Builder{}
	auditor.Progress = io.MultiWriter(t.Output(), said)
	first := func(b page.Block) bool { return b.Section == "Who may see what" }
	require.NoError(t, admin.Run(t.Context(), slices.DeleteFunc(slices.Clone(blocks), func(b page.Block) bool { return !first(b) })...))
	t.Cleanup(func() {
		_, _ = admin.Bash(context.Background(), "kubectl delete clusterrolebinding auditors-checker auditors-reports auditors-reader; kubectl delete "+
			"clusterexception team-a")
	})
	rest := slices.DeleteFunc(slices.Clone(blocks), first)
	listed := rest[slices.IndexFunc(rest, func(b page.Block) bool { return strings.Contains(b.Text, "report=running") })]
	w.eventually(t, func(ctx context.Context) error {
		output, err := auditor.Bash(ctx, listed.Text)
		for _, want := range []string{"warn\t" + team + "/excepted\t" + unsigned + "\tClusterException " + team, "skip\t" + team + "/lax\t" + elsewhere} {
			if !strings.Contains(output, want) {
				err = fmt.Errorf("%q is missing: %s %w", want, output, err)
			}
		}
		return err
	})
	require.NoError(t, auditor.Run(t.Context(), rest...))
	require.NotContains(t, said.String(), "not shown:", "the roles suffice")
	for _, want := range []string{team + "/lax", "EXCEPTIONS IN USE", "verified-images", "validation.gatekeeper.sh\tFail", "cluster-admin\t\t",
		"ClusterException /" + team + "\t", "ClusterRole\t-\tlandwaiter-cluster-admin\trules", "\t" + team + "-opens\trules\n",
		"\t" + team + "-impersonates\timpersonation\n", "\t" + team + "-redeploys\tservers\n", "CONTACT", "OVERRIDES",
		"[" + strings.TrimSuffix(unsigned, ":v1") + "]", "ALLOWED", "REASON", "landwaiter status "} {
		require.Contains(t, said.String(), want)
	}
	require.NotContains(t, said.String(), team+"/signed\t", "what is verified is not listed")
	require.NotContains(t, said.String(), team+"-harmless", "roles that only read are not listed")
}
