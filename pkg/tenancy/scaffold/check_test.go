package scaffold

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// loaded is a checker with a tree.
func loaded(t *testing.T, dir string) *checker {
	t.Helper()
	c, err := newChecker(CheckOptions{})
	require.NoError(t, err)
	require.NoError(t, c.load(dir))
	return c
}

const plainSecret = "apiVersion: v1\nkind: Secret\nmetadata: {name: login, namespace: iris-red}\nstringData: {password: hunter2}\n"

const sealedValue = "ENC[AES256_GCM,data:aGVsbG8=,iv:aXY=,tag:dGFn,type:str]"

func sealedSecret(value, mac string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata: {name: login, namespace: iris-red}\nstringData:\n  password: " + value + "\nsops:\n  mac: " + mac + "\n"
}

// wrong is one change of a sound tree, and what is then found in which file.
type wrong struct {
	change func(t *testing.T, dir string)
	file   string
	says   string
}

// isFound makes the change in a folder, and requires that a check finds it.
func (w wrong) isFound(t *testing.T, dir string) {
	t.Helper()
	w.change(t, dir)
	report, err := Check(t.Context(), dir, CheckOptions{})
	require.NoError(t, err)
	var found []string
	for _, f := range report.Findings {
		if f.File == w.file {
			found = append(found, f.Message)
		}
	}
	require.Contains(t, strings.Join(found, "\n"), w.says, "%v", report.Findings)
}

func kustomize(fields string) string {
	return "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n" + fields
}

func TestPlaintextSecretsAreRefused(t *testing.T) {
	for name, c := range map[string]wrong{
		"Secret that no kustomization names": {func(t *testing.T, dir string) { put1(t, dir, "notes/login.yaml", plainSecret) }, "notes/login.yaml",
			"a Secret in plain text"},
		"Secret in a list": {func(t *testing.T, dir string) {
			put1(t, dir, "notes/l.yaml", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: YQ==}}\n")
		}, "notes/l.yaml", "a Secret in plain text"},
		"Secret in JSON": {func(t *testing.T, dir string) {
			put1(t, dir, "notes/l.json", `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"a": "YQ=="}}`)
		}, "notes/l.json", "a Secret in plain text"},
		"Secret of which one value is not encrypted": {func(t *testing.T, dir string) {
			put1(t, dir, "notes/l.yaml", sealedSecret(sealedValue+"\n  user: me", sealedValue))
		}, "notes/l.yaml", "a Secret in plain text"},
		"Secret that looks encrypted": {func(t *testing.T, dir string) {
			put1(t, dir, "notes/l.yaml", sealedSecret("ENC[not really]", sealedValue))
		}, "notes/l.yaml", "a Secret in plain text"},
		"Secret whose sum is missing": {func(t *testing.T, dir string) { put1(t, dir, "notes/l.yaml", sealedSecret(sealedValue, "none")) }, "notes/l.yaml",
			"without the sum of sops"},
		"Secret by an anchor": {func(t *testing.T, dir string) {
			put1(t, dir, "notes/l.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: a, annotations: &x {a: b}}\ndata: *x\n")
		}, "notes/l.yaml", "a Secret in plain text"},
		"Secret by a merge key": {func(t *testing.T, dir string) {
			put1(t, dir, "notes/l.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: a, annotations: &x {a: b}}\ndata: {<<: *x}\n")
		}, "notes/l.yaml", "a Secret in plain text"},
		"private key": {func(t *testing.T, dir string) {
			put1(t, dir, "notes/id", "-----BEGIN OPENSSH "+"PRIVATE KEY-----\n")
		}, "notes/id", "a private key in plain text"},
		"generated Secret": {func(t *testing.T, dir string) {
			put1(t, dir, "x/kustomization.yaml", kustomize("secretGenerator: [{name: a, literals: [a=b]}]\n"))
		}, "x/kustomization.yaml", "secretGenerator makes a Secret in plain text"},
	} {
		t.Run(name, func(t *testing.T) { c.isFound(t, folder(t)) })
	}
}

func TestCheckFindsWhatIsWrong(t *testing.T) {
	const staging = "clusters/staging/"
	flux := func(name, spec string) string {
		return "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: " + name +
			", namespace: flux-system}\nspec: {interval: 1m, prune: true, sourceRef: {kind: GitRepository, name: flux-system}, " + spec + "}\n"
	}
	for name, c := range map[string]wrong{
		"symbolic link": {func(t *testing.T, dir string) { require.NoError(t, os.Symlink("/etc", filepath.Join(dir, "etc"))) }, "etc", "it is a symbolic link"},
		"empty list": {func(t *testing.T, dir string) { put1(t, dir, "x/kustomization.yaml", kustomize("resources:\n")) }, "x/kustomization.yaml",
			"for an empty list, write resources: []"},
		"object twice in a build": {func(t *testing.T, dir string) {
			put1(t, dir, "x/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
			put1(t, dir, "x/kustomization.yaml", kustomize("resources: [a.yaml]\n"))
		}, "x/kustomization.yaml", "it contains ConfigMap a twice, from x/a.yaml: remove the second copy"},
		"large file": {func(t *testing.T, dir string) {
			put1(t, dir, "big.yaml", strings.Repeat("# a line of text\n", maxFileBytes/16))
		}, "big.yaml", "more than 4 MiB"},
		"deep folders": {func(t *testing.T, dir string) { put1(t, dir, strings.Repeat("a/", 40)+"x.yaml", "a: b\n") },
			strings.TrimSuffix(strings.Repeat("a/", 34), "/"), "folders deep"},
		"billion laughs": {func(t *testing.T, dir string) { put1(t, dir, "bomb.yaml", laughs()) }, "bomb.yaml", "once its aliases are expanded"},
		"billion laughs in a file of another name": {func(t *testing.T, dir string) {
			put1(t, dir, "x/bomb.txt", laughs())
			put1(t, dir, "x/kustomization.yaml", kustomize("resources: [bomb.txt]\n"))
		}, "x/bomb.txt", "once its aliases are expanded"},
		"Secret in a file of another name": {func(t *testing.T, dir string) { put1(t, dir, "notes/login.yaml.bak", plainSecret) }, "notes/login.yaml.bak",
			"a Secret in plain text"},
		"deep nesting": {func(t *testing.T, dir string) {
			put1(t, dir, "bomb.yaml", "a: "+strings.Repeat("[", 5000)+strings.Repeat("]", 5000)+"\n")
		}, "bomb.yaml", "once its aliases are expanded"},
		"remote base": {func(t *testing.T, dir string) {
			put1(t, dir, "x/kustomization.yaml", kustomize("resources: [https://example.com/x.yaml]\n"))
		}, "x/kustomization.yaml", "is fetched from elsewhere"},
		"remote base, short": {func(t *testing.T, dir string) {
			put1(t, dir, "x/kustomization.yaml", kustomize("resources: [github.com/a/b]\n"))
		}, "x/kustomization.yaml", "is fetched from elsewhere"},
		"remote base, as a user": {func(t *testing.T, dir string) {
			put1(t, dir, "x/kustomization.yaml", kustomize("resources: [\"git@example.com:a/b\"]\n"))
		}, "x/kustomization.yaml", "is fetched from elsewhere"},
		"remote base, forced": {func(t *testing.T, dir string) {
			put1(t, dir, "x/kustomization.yaml", kustomize("bases: [\"git::GitHub.com/a/b\"]\n"))
		}, "x/kustomization.yaml", "is fetched from elsewhere"},
		"remote patch": {func(t *testing.T, dir string) {
			put1(t, dir, "x/kustomization.yaml", kustomize("patches: [{path: \"http://127.0.0.1/x\"}]\n"))
		}, "x/kustomization.yaml", "is fetched from elsewhere"},
		"remote schema": {func(t *testing.T, dir string) {
			put1(t, dir, "x/kustomization.yaml", kustomize("openapi: {path: \"http://127.0.0.1/x\"}\n"))
		}, "x/kustomization.yaml", "is fetched from elsewhere"},
		"remote file of a ConfigMap": {func(t *testing.T, dir string) {
			put1(t, dir, "x/kustomization.yaml", kustomize("configMapGenerator: [{name: a, files: [\"a=http://127.0.0.1/x\"]}]\n"))
		}, "x/kustomization.yaml", "is fetched from elsewhere"},
		"plugin": {func(t *testing.T, dir string) {
			put1(t, dir, "x/kustomization.yaml", kustomize("generators: [g.yaml]\n"))
			put1(t, dir, "x/g.yaml", "apiVersion: v1\nkind: G\nmetadata: {name: g, annotations: {config.kubernetes.io/function: \"exec: {path: /bin/true}\"}}\n")
		}, "x/kustomization.yaml", "generators runs programs"},
		"Helm chart": {func(t *testing.T, dir string) {
			put1(t, dir, "x/kustomization.yaml", kustomize("helmCharts: [{name: a, repo: \"https://example.com\"}]\n"))
		}, "x/kustomization.yaml", "helmCharts runs programs"},
		"outside": {func(t *testing.T, dir string) {
			put1(t, dir, "x/kustomization.yaml", kustomize("resources: [../../../etc/passwd]\n"))
		}, "x/kustomization.yaml", "does not build"},
		"in a circle": {func(t *testing.T, dir string) {
			put1(t, dir, "x/kustomization.yaml", kustomize("resources: [../y]\n"))
			put1(t, dir, "y/kustomization.yaml", kustomize("resources: [../x]\n"))
		}, "x/kustomization.yaml", "includes itself"},
		"missing file": {func(t *testing.T, dir string) {
			put1(t, dir, "x/kustomization.yaml", kustomize("resources: [gone.yaml]\n"))
		}, "x/kustomization.yaml", "it names gone.yaml, which is not there"},
		"unknown field of a kustomization": {func(t *testing.T, dir string) {
			put1(t, dir, "x/kustomization.yaml", kustomize("resource: [a.yaml]\n"))
		}, "x/kustomization.yaml", "is no kustomization"},
		"manifest that nothing names": {func(t *testing.T, dir string) {
			put1(t, dir, "tenants/base/iris-red/kustomization.yaml", kustomize("resources: []\n"))
			put1(t, dir, "tenants/base/iris-red/extra.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
		}, "tenants/base/iris-red/extra.yaml", "no kustomization names it"},
		"not YAML": {func(t *testing.T, dir string) { put1(t, dir, "x.yaml", "a: [\n") }, "x.yaml", "it is not YAML"},
		"settings": {func(t *testing.T, dir string) { put1(t, dir, SettingsFile, "layout: big\n") }, SettingsFile, "layout is"},
	} {
		t.Run(name, func(t *testing.T) { c.isFound(t, folder(t)) })
	}
	for name, c := range map[string]wrong{
		"step that is not there": {func(t *testing.T, dir string) {
			rewrite(t, dir, staging+"tenants.yaml", "- name: policies", "- name: policies2")
		},
			"clusters/staging/tenants.yaml", "spec.dependsOn names Kustomization flux-system/policies2, which is not there"},
		"steps in a circle": {func(t *testing.T, dir string) {
			put1(t, dir, staging+"x.yaml", flux("x", "path: ./tenants, dependsOn: [{name: y}], serviceAccountName: a")+"---\n"+
				flux("y", "path: ./apps, dependsOn: [{name: x}], serviceAccountName: a"))
		}, "clusters/staging", "goes in a circle, so none of these is ever applied: Kustomization flux-system/x, Kustomization flux-system/y"},
		"path that is not there": {func(t *testing.T, dir string) {
			rewrite(t, dir, staging+"tenants.yaml", "path: ./tenants/staging", "path: ./tenants/stagin")
		},
			"clusters/staging/tenants.yaml", "spec.path ./tenants/stagin is not there"},
		"path that leaves the tree": {func(t *testing.T, dir string) {
			rewrite(t, dir, staging+"tenants.yaml", "path: ./tenants/staging", "path: ./../../etc")
		},
			"clusters/staging/tenants.yaml", "is not there"},
		"path with a variable": {func(t *testing.T, dir string) {
			rewrite(t, dir, staging+"tenants.yaml", "path: ./tenants/staging", "path: ./tenants/${env}")
		},
			"clusters/staging/tenants.yaml", "has a variable that nothing replaces"},
		"source that is not there": {func(t *testing.T, dir string) {
			rewrite(t, dir, "infrastructure/gatekeeper/release.yaml", "name: gatekeeper\n      version", "name: gatekeper\n      version")
		},
			"infrastructure/gatekeeper/release.yaml", "spec.chart.spec.sourceRef names HelmRepository flux-system/gatekeper, which is not there"},
		"step without account": {func(t *testing.T, dir string) {
			rewrite(t, dir, staging+"tenants.yaml", "  serviceAccountName: kustomize-controller\n", "")
		},
			"clusters/staging/tenants.yaml", "spec.serviceAccountName is missing"},
		"unknown field of Flux": {func(t *testing.T, dir string) {
			rewrite(t, dir, staging+"tenants.yaml", "  prune: true\n", "  prune: true\n  pruned: true\n")
		},
			"clusters/staging/tenants.yaml", "there is no field spec.pruned"},
		"missing field of Flux": {func(t *testing.T, dir string) { rewrite(t, dir, staging+"tenants.yaml", "  prune: true\n", "") },
			"clusters/staging/tenants.yaml", "spec.prune is missing"},
		"unknown field of Kubernetes": {func(t *testing.T, dir string) {
			rewrite(t, dir, "tenants/base/iris-red/objects.yaml", "podSelector:", "podSelectr:")
		},
			"tenants/base/iris-red/objects.yaml", "podSelectr"},
		"object applied twice": {func(t *testing.T, dir string) {
			put1(t, dir, staging+"z-again.yaml", flux("again", "path: ./infrastructure/guardrails, serviceAccountName: kustomize-controller"))
		}, staging + "z-again.yaml", "is applied by another Kustomization too"},
		"lockdown without an argument": {func(t *testing.T, dir string) {
			rewrite(t, dir, "components/flux-lockdown/kustomization.yaml", "--no-remote-bases=true", "--no-remote-bases=false")
		}, "clusters/staging/flux-system/kustomization.yaml", "Flux is not locked down: kustomize-controller lacks --no-remote-bases=true"},
		"lockdown left out": {func(t *testing.T, dir string) {
			rewrite(t, dir, "clusters/staging/flux-system/kustomization.yaml", "components:\n- ../../../components/flux-lockdown\n", "")
		}, "clusters/staging/flux-system/kustomization.yaml", "Flux is not locked down: helm-controller lacks --no-cross-namespace-refs=true"},
		"lockdown taken back": {func(t *testing.T, dir string) {
			rewrite(t, dir, "clusters/staging/flux-system/kustomization.yaml", "resources:",
				"patches:\n- target: {kind: Deployment}\n  patch: |\n    - op: add\n      path: /spec/template/spec/containers/0/args/-\n      value: "+
					"--no-cross-namespace-refs=false\nresources:")
		}, "clusters/staging/flux-system/kustomization.yaml", "has --no-cross-namespace-refs twice, and the last one counts"},
	} {
		t.Run(name, func(t *testing.T) { c.isFound(t, small(t)) })
	}
}

// light empties the folders of a tree that have the long manifests. They take kustomize most
// of the time, and are the same in every layout.
func light(t *testing.T, dir string) string {
	t.Helper()
	for _, folder := range []string{"crds", "templates", "guardrails"} {
		whole := filepath.Join(dir, "infrastructure", folder)
		if _, err := os.Stat(whole); os.IsNotExist(err) {
			continue // the demo has none
		}
		require.NoError(t, os.RemoveAll(whole))
		put1(t, dir, "infrastructure/"+folder+"/kustomization.yaml", kustomization("", nil, nil))
	}
	return dir
}

// small is a light tree with one cluster and one team.
func small(t *testing.T) string {
	t.Helper()
	files, ok := written.Load("small")
	if !ok {
		files = kept(t,
			light(t, example{platform: &Platform{Constraints: []string{imagesSet}, Environments: []string{"staging"}},
				teams: []Team{{Tenant: team("iris-red", nil)}}}.write(t)))
		written.Store("small", files)
	}
	dir := folder(t)
	require.NoError(t, os.CopyFS(dir, files.(fstest.MapFS)))
	return dir
}

func TestASmallTreeIsSound(t *testing.T) {
	report, err := Check(t.Context(), small(t), CheckOptions{})
	require.NoError(t, err)
	require.Empty(t, report.Findings)
}

// laughs is a small file whose aliases expand to ten billion values.
func laughs() string {
	text := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 10; i++ {
		n, before := string(rune('0'+i)), string(rune('0'+i-1))
		text += "a" + n + ": &a" + n + " [" + strings.TrimSuffix(strings.Repeat("*a"+before+", ", 10), ", ") + "]\n"
	}
	return text
}

// TestWhatDoublesIsNotBuilt has thirty folders that each include the next one twice.
func TestWhatDoublesIsNotBuilt(t *testing.T) {
	dir := folder(t)
	for i := range 30 {
		for _, side := range []string{"l", "r"} {
			put1(t, dir, fmt.Sprintf("d%d/%s/kustomization.yaml", i, side), kustomization("", []string{fmt.Sprintf("../../d%d", i+1)}, object{"namePrefix": side + "-"}))
		}
		put1(t, dir, fmt.Sprintf("d%d/kustomization.yaml", i), kustomization("", []string{"l", "r"}, nil))
	}
	put1(t, dir, "d30/kustomization.yaml", kustomization("", []string{"x.yaml"}, nil))
	put1(t, dir, "d30/x.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n")
	c := loaded(t, dir)
	c.inspect()
	c.maxBuilt = 100
	require.True(t, c.build("d0").failed)
	require.False(t, c.build("d27").failed)
	require.Len(t, c.build("d27").objects, 8)
	require.Equal(t,
		map[resource.Finding]bool{{ID: "TooLarge", Severity: resource.Error, File: "d0/kustomization.yaml",
			Message: "it includes more than 100 objects, counted as often as they are included: it is not built"}: true}, c.findings)
	c.read = maxBuilds
	require.True(t, c.build("d28").failed)
	require.Len(t, c.findings, 2)
}

func TestObjectsCountAndNotFiles(t *testing.T) {
	dir := folder(t)
	put1(t, dir, "kustomization.yaml", kustomization("", []string{"x.yaml"}, nil))
	put1(t, dir, "x.yaml", strings.Repeat("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", maxBuilt+1))
	report, err := Check(t.Context(), dir, CheckOptions{})
	require.NoError(t, err)
	require.Len(t, report.Findings, 1)
	require.Contains(t, report.Findings[0].Message, "more than 10000 objects")
}

func TestAnEncryptedSecretPasses(t *testing.T) {
	e := examples()["flux"]
	e.platform.SOPSAge = recipient
	dir := light(t, e.write(t))
	put1(t, dir, "tenants/base/iris-red/auth.yaml", sealedSecret(sealedValue, sealedValue))
	rewrite(t, dir, "tenants/base/iris-red/kustomization.yaml", "- tenant.yaml\n", "- tenant.yaml\n- auth.yaml\n")
	report, err := Check(t.Context(), dir, CheckOptions{})
	require.NoError(t, err)
	require.Empty(t, report.Findings)
}

// Other tools' forms of a Secret are not in plain text.
func TestASealedSecretPasses(t *testing.T) {
	dir := small(t)
	put1(t, dir, "tenants/base/iris-red/sealed.yaml", "apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nmetadata: {name: login, namespace: "+
		"iris-red}\nspec: {encryptedData: {password: AgBy3i4OJSWK}, template: {metadata: {name: login, namespace: iris-red}}}\n")
	rewrite(t, dir, "tenants/base/iris-red/kustomization.yaml", "- tenant.yaml\n", "- tenant.yaml\n- sealed.yaml\n")
	report, err := Check(t.Context(), dir, CheckOptions{})
	require.NoError(t, err)
	require.Empty(t, report.Findings)
}

func TestCheckFollowsEachClusterOfAGroup(t *testing.T) {
	dir := light(t, examples()["groups"].write(t))
	var texts []string
	report, err := Check(t.Context(), dir, CheckOptions{Resources: func(_ context.Context, text string, _ bool) ([]resource.Finding, error) {
		texts = append(texts, text)
		return nil, nil
	}})
	require.NoError(t, err)
	require.Empty(t, report.Findings)
	require.Equal(t, []string{"clustergroups/dev (iris-dev)", "clustergroups/infra-ops (infra-ops)", "clustergroups/test (iris-test)"}, report.Clusters)
	require.Len(t, texts, 2, "infra-ops has no tenants")
	require.Contains(t, texts[0], "path: ./clusters/iris-dev")
	require.Contains(t, texts[1], "path: ./clusters/iris-test")
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "clusters/iris-test")))
	report, err = Check(t.Context(), dir, CheckOptions{})
	require.NoError(t, err)
	require.Len(t, report.Findings, 1)
	require.Contains(t, report.Findings[0].Message, "spec.path ./clusters/iris-test is not there")
}

func TestWhatTheCallerFindsIsReportedWhereItIs(t *testing.T) {
	dir := light(t, examples()["flux"].write(t))
	report, err := Check(t.Context(), dir, CheckOptions{Resources: func(_ context.Context, text string, _ bool) ([]resource.Finding, error) {
		require.Contains(t, text, "kind: Tenant")
		return []resource.Finding{{ID: "ResourceInvalid", Severity: resource.Error, Message: "Tenant iris-red: in conflict"}}, nil
	}})
	require.NoError(t, err)
	require.Equal(t,
		[]resource.Finding{{ID: "ResourceInvalid", Severity: resource.Error, File: "tenants/base/iris-red/tenant.yaml", Message: "Tenant iris-red: in conflict"}},
		report.Findings, "not where it is patched")
}

func TestOrderHasNoCycle(t *testing.T) {
	for _, p := range []Platform{{}, {Operator: true}} {
		done := map[string]bool{}
		for _, s := range append(p.steps(), p.tenantsStep("./tenants", nil)) {
			for _, name := range s.after {
				require.True(t, done[name], "%s waits for %s, which comes later", s.name, name)
			}
			done[s.name] = true
			require.Equal(t, s.name != "tenants", s.object()["spec"].(object)["wait"], "a step that is waited for must be healthy, and a team must not hold up others")
		}
	}
	require.Nil(t, cycle(map[string][]string{"a": {"b"}, "b": {"c"}}))
	require.Equal(t, []string{"a", "b"}, cycle(map[string][]string{"a": {"b"}, "b": {"a"}, "c": {"d"}}))
}

func TestFailsForWhatIsNoTree(t *testing.T) {
	_, err := Check(t.Context(), filepath.Join(folder(t), "gone"), CheckOptions{})
	require.ErrorContains(t, err, "give the folder that landwaiter platform init wrote")
	report, err := Check(t.Context(), folder(t), CheckOptions{})
	require.NoError(t, err)
	require.Len(t, report.Findings, 1)
	require.Contains(t, report.Findings[0].Message, "there is no kustomization, so nothing was checked")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Check(ctx, examples()["flux"].write(t), CheckOptions{})
	require.ErrorIs(t, err, context.Canceled)
}
