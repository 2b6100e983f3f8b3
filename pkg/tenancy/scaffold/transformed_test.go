package scaffold

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

const appsStepFile, syncFile = "clusters/staging/apps.yaml", "clusters/staging/flux-system/gotk-sync.yaml"

// applies makes the cluster apply a folder with further fields of spec.
func applies(t *testing.T, dir, file, name, folder, spec string) {
	t.Helper()
	put1(t, dir, file, "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: "+name+", namespace: flux-system}\nspec:\n"+
		"  {interval: 1m, prune: true, serviceAccountName: kustomize-controller, sourceRef: {kind: GitRepository, name: flux-system}, path: ./"+folder+
		strings.TrimSuffix(", "+spec, ", ")+"}\n")
}

// configMap is a manifest that nothing is wrong with.
func configMap(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: apps}\n"
}

// found is what a check says of a tree.
func found(t *testing.T, dir string) []resource.Finding {
	t.Helper()
	report, err := Check(t.Context(), dir, CheckOptions{})
	require.NoError(t, err)
	return report.Findings
}

// withoutNotes leaves out what is no error of a folder, such as that nothing says whose it is.
func withoutNotes(found []resource.Finding) []resource.Finding {
	return slices.DeleteFunc(slices.Clone(found), func(f resource.Finding) bool { return f.Severity == resource.Note })
}

const boundRed = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: more}\nroleRef: {apiGroup: rbac.authorization.k8s.io, " +
	"kind: ClusterRole, name: cluster-admin}\n"

func TestCheckSeesWhatTheSpecOfAKustomizationChanges(t *testing.T) {
	const more = "ClusterRoleBinding more gives the account of Tenant iris-red ClusterRole cluster-admin in the whole cluster"
	for name, c := range map[string]wrong{
		"a component grants": {func(t *testing.T, dir string) {
			put1(t, dir, "apps/web/a.yaml", configMap("a"))
			put1(t, dir, "components/more/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [rb.yaml]\n")
			put1(t, dir, "components/more/rb.yaml", boundRed+redAccount+"\n")
			applies(t, dir, appsStepFile, "apps", "apps/web", "components: [../../components/more]")
		}, "components/more/rb.yaml", more},
		"a patch grants": {func(t *testing.T, dir string) {
			put1(t, dir, "apps/web/rb.yaml", boundRed+"subjects: []\n")
			applies(t, dir, appsStepFile, "apps", "apps/web", `patches: [{target: {kind: ClusterRoleBinding}, patch: '[{"op": "add", "path": "/subjects", "value": `+
				`[{"kind": "ServiceAccount", "name": "iris-red", "namespace": "iris-red"}]}]'}]`)
		}, "apps/web/rb.yaml", more},
		"a Tenant becomes privileged": {func(t *testing.T, dir string) {
			rewrite(t, dir, tenantsStepFile, "\nspec:\n", "\nspec:\n  patches:\n  - patch: |\n      apiVersion: landwaiter.dev/v1beta1\n      kind: Tenant\n      "+
				"metadata: {name: iris-red}\n      spec: {isolation: {podSecurity: Privileged}}\n")
		}, redTenant, "is not what the Tenant stands for"},
		"a component is not there": {func(t *testing.T, dir string) {
			put1(t, dir, "apps/web/a.yaml", configMap("a"))
			applies(t, dir, appsStepFile, "apps", "apps/web", "components: [../gone]")
		}, appsStepFile, "Kustomization flux-system/apps: spec.components names ../gone, and apps/gone is not there"},
		"a component is a whole folder": {func(t *testing.T, dir string) {
			put1(t, dir, "apps/web/a.yaml", configMap("a"))
			put1(t, dir, "apps/more/kustomization.yaml", kustomize("resources: [b.yaml]\n"))
			put1(t, dir, "apps/more/b.yaml", configMap("b"))
			applies(t, dir, appsStepFile, "apps", "apps/web", "components: [../more]")
		}, appsStepFile, "apps/web does not build with the transformations of spec, and builds without"},
		"a component is remote": {func(t *testing.T, dir string) {
			put1(t, dir, "apps/web/a.yaml", configMap("a"))
			applies(t, dir, appsStepFile, "apps", "apps/web", "components: ['https://github.com/a/b']")
		}, appsStepFile, "is fetched from elsewhere"},
		"a component is outside": {func(t *testing.T, dir string) {
			put1(t, dir, "apps/web/a.yaml", configMap("a"))
			applies(t, dir, appsStepFile, "apps", "apps/web", "components: [../../../x]")
		}, appsStepFile, "outside of the tree"},
		"a component includes its folder": {func(t *testing.T, dir string) {
			put1(t, dir, "apps/web/kustomization.yaml", kustomize("resources: []\n"))
			put1(t, dir, "apps/more/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [../web]\n")
			applies(t, dir, appsStepFile, "apps", "apps/web", "components: [../more]")
		}, "apps/web/kustomization.yaml", "it includes itself"},
		"a patch has no target": {func(t *testing.T, dir string) {
			put1(t, dir, "apps/web/a.yaml", configMap("a"))
			applies(t, dir, appsStepFile, "apps", "apps/web", `patches: [{patch: '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}'}]`)
		}, appsStepFile, "apps/web does not build with the transformations of spec"},
		"a patch names a file": {func(t *testing.T, dir string) {
			put1(t, dir, "apps/web/a.yaml", configMap("a"))
			applies(t, dir, appsStepFile, "apps", "apps/web", "patches: [{path: /etc/passwd, target: {kind: ConfigMap}}]")
		}, appsStepFile, "apps/web does not build with the transformations of spec"},
		"the spec has another type": {func(t *testing.T, dir string) {
			put1(t, dir, "apps/web/a.yaml", configMap("a"))
			applies(t, dir, appsStepFile, "apps", "apps/web", "components: ../more")
		}, appsStepFile, "Kustomization flux-system/apps: spec cannot be read"},
		"Flux is not locked down any more": {func(t *testing.T, dir string) {
			applies(t, dir, syncFile, "flux-system", "clusters/staging", `patches: [{target: {kind: Deployment, name: helm-controller}, patch: '[{"op": "replace", `+
				`"path": "/spec/template/spec/containers/0/args", "value": []}]'}]`)
		}, "clusters/staging/flux-system/kustomization.yaml", "helm-controller lacks --no-cross-namespace-refs=true"},
		"what a patch of the Kustomization makes of its own spec": {func(t *testing.T, dir string) {
			put1(t, dir, "clusters/staging/rb.yaml", boundRed+"subjects: []\n")
			applies(t, dir, syncFile, "flux-system", "clusters/staging", `patches: [{target: {name: flux-system, kind: Kustomization}, patch: '[{"op": "add", "path": `+
				`"/spec/patches/-", "value": {"target": {"kind": "ClusterRoleBinding"}, "patch": "[{\"op\": \"add\", \"path\": \"/subjects\", \"value\": [{\"kind\": `+
				`\"ServiceAccount\", \"name\": \"iris-red\", \"namespace\": \"iris-red\"}]}]"}}]'}]`)
		}, "clusters/staging/rb.yaml", more},
		"a Kustomization grows each time": {func(t *testing.T, dir string) {
			applies(t, dir, syncFile, "flux-system", "clusters/staging", `patches: [{target: {name: flux-system, kind: Kustomization}, patch: '[{"op": "copy", `+
				`"from": "/spec/patches/0", "path": "/spec/patches/-"}]'}]`)
		}, syncFile, "changes its own spec each time that it is applied"},
		"a Kustomization grows, and is not that of flux bootstrap": {func(t *testing.T, dir string) {
			const patches = `patches: [{target: {kind: Kustomization}, patch: '[{"op": "copy", "from": "/spec/patches/0", "path": "/spec/patches/-"}]'}]`
			applies(t, dir, appsStepFile, "apps", "apps/web", patches)
			applies(t, dir, "apps/web/own.yaml", "own", "apps/web", patches)
		}, "apps/web/own.yaml", "Kustomization flux-system/own is not followed, because it changes its own spec"},
		"Kustomizations that make one another": {func(t *testing.T, dir string) {
			for i := range maxPathDepth + 1 {
				applies(t, dir, fmt.Sprintf("apps/%02d/next.yaml", i), fmt.Sprintf("step%02d", i), fmt.Sprintf("apps/%02d", i+1), "")
			}
			put1(t, dir, fmt.Sprintf("apps/%02d/a.yaml", maxPathDepth+1), configMap("a"))
			applies(t, dir, appsStepFile, "apps", "apps/00", "")
		}, fmt.Sprintf("apps/%02d/next.yaml", maxPathDepth-1), "more than 32 Kustomizations apply one another"},
		"a value of a Secret": {func(t *testing.T, dir string) {
			put1(t, dir, "apps/web/kustomization.yaml", kustomize("resources: [s.yaml]\n"))
			put1(t, dir, "apps/web/s.yaml", sealedSecret(sealedValue, sealedValue))
			applies(t, dir, appsStepFile, "apps", "apps/web", `decryption: {provider: sops}, patches: [{target: {kind: Secret}, patch: '[{"op": "add", "path": `+
				`"/stringData/user", "value": "hunter2"}]'}]`)
		}, "apps/web/kustomization.yaml", "Secret in plain text"},
		"a namespace over what has none": {func(t *testing.T, dir string) {
			put1(t, dir, "apps/web/rules.yaml", "apiVersion: landwaiter.dev/v1beta1\nkind: ClusterVerificationPolicy\nmetadata: {name: ours}\nspec: {rules: [{images: "+
				"['**'], action: Deny}]}\n")
			applies(t, dir, appsStepFile, "apps", "apps/web", "targetNamespace: apps")
		}, "apps/web/rules.yaml", "spec.targetNamespace of the Kustomization that applies it"},
		"the same object twice": {func(t *testing.T, dir string) {
			put1(t, dir, "apps/web/a.yaml", configMap("a"))
			applies(t, dir, appsStepFile, "apps", "apps/web", "")
			applies(t, dir, "clusters/staging/more.yaml", "more", "apps/web", "commonMetadata: {labels: {a: b}}")
		}, "apps/web/a.yaml", "ConfigMap apps/a is applied from apps/web too"},
	} {
		t.Run(name, func(t *testing.T) { c.isFound(t, small(t)) })
	}
}

func TestWhatTheSpecOfAKustomizationMendsIsNotFound(t *testing.T) {
	const account = `patches: [{target: {kind: Kustomization}, patch: '[{"op": "add", "path": "/spec/serviceAccountName", "value": "kustomize-controller"}]'}]`
	child := func(t *testing.T, dir, folder string) {
		t.Helper()
		applies(t, dir, folder+"/child.yaml", "child", "apps/web", "")
		rewrite(t, dir, folder+"/child.yaml", "serviceAccountName: kustomize-controller, ", "")
		put1(t, dir, "apps/web/a.yaml", configMap("a"))
	}
	for name, change := range map[string]func(t *testing.T, dir string){
		"the account of its children": func(t *testing.T, dir string) {
			child(t, dir, "apps/entry")
			applies(t, dir, appsStepFile, "apps", "apps/entry", account)
		},
		"the account of the children of the Kustomization of flux bootstrap": func(t *testing.T, dir string) {
			child(t, dir, "clusters/staging")
			applies(t, dir, syncFile, "flux-system", "clusters/staging", account)
		},
		"a field that a base leaves out": func(t *testing.T, dir string) {
			child(t, dir, "apps/entry")
			rewrite(t, dir, "apps/entry/child.yaml", "interval: 1m, ", "")
			put1(t, dir, "apps/entry/kustomization.yaml", kustomize("resources: [child.yaml]\n"))
			applies(t, dir, appsStepFile, "apps", "apps/entry", strings.TrimSuffix(account, "]'}]")+`, {"op": "add", "path": "/spec/interval", "value": "1m"}]'}]`)
		},
		"components, without those that may be missing": func(t *testing.T, dir string) {
			put1(t, dir, "apps/web/a.yaml", configMap("a"))
			put1(t, dir, "components/more/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [b.yaml]\n")
			put1(t, dir, "components/more/b.yaml", configMap("b"))
			applies(t, dir, appsStepFile, "apps", "apps/web", "components: [../../components/more, ../gone], ignoreMissingComponents: true")
		},
		"an annotation that keeps CRDs": func(t *testing.T, dir string) {
			put1(t, dir, "apps/web/crd.yaml", strings.ReplaceAll(sourceCRD, "helm.toolkit.fluxcd.io", "example.com"))
			applies(t, dir, appsStepFile, "apps", "apps/web", "commonMetadata: {annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}}")
		},
		"the lockdown of Flux": func(t *testing.T, dir string) {
			text := content(t, dir, "components/flux-lockdown/kustomization.yaml")
			put1(t, dir, "components/flux-lockdown/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnamePrefix: ''\nresources: []\n")
			put1(t, dir, "components/own/kustomization.yaml", text)
			applies(t, dir, syncFile, "flux-system", "clusters/staging", "components: [../../components/own]")
		},
		"a patch of the Kustomization that has it": func(t *testing.T, dir string) {
			put1(t, dir, "apps/web/a.yaml", configMap("a"))
			applies(t, dir, appsStepFile, "apps", "apps/web", "")
			applies(t, dir, syncFile, "flux-system", "clusters/staging", `patches: [{target: {kind: Kustomization, name: flux-system}, patch: '[{"op": "add", "path": `+
				`"/spec/commonMetadata", "value": {"labels": {"a": "b"}}}]'}]`)
		},
		"names and namespaces of a folder that is applied again": func(t *testing.T, dir string) {
			put1(t, dir, "apps/web/a.yaml", configMap("a"))
			for i, spec := range []string{"namePrefix: x-", "nameSuffix: -x", "targetNamespace: more", ""} {
				applies(t, dir, fmt.Sprintf("clusters/staging/apps%d.yaml", i), fmt.Sprintf("apps%d", i), "apps/web", spec)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := small(t)
			change(t, dir)
			require.Empty(t, withoutNotes(found(t, dir)))
		})
	}
}

func TestAFolderIsTransformedAsFluxDoes(t *testing.T) {
	dir := folder(t)
	put1(t, dir, "web/kustomization.yaml",
		kustomize("namePrefix: own-\nnamespace: own\nresources: [a.yaml]\nimages: [{name: b, newTag: '1'}, {name: c, newTag: '1'}]\npatches: [{target: {kind: "+
			"Pod}, patch: '[{\"op\": \"add\", \"path\": \"/metadata/annotations\", \"value\": {\"by\": \"folder\"}}]'}]\n"))
	put1(t, dir, "web/a.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: b, image: b}, {name: c, image: c}, {name: "+
		"d, image: d}]}\n")
	put1(t, dir, "more/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [e.yaml]\n")
	put1(t, dir, "more/e.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: e}\nspec: {containers: [{name: d, image: d}]}\n")
	const spec = "namePrefix: x-, nameSuffix: -y, targetNamespace: z, components: [../more], images: [{name: b, newTag: '2'}, {name: d, newName: e, digest: " +
		"'sha256:00'}], " +
		"patches: [{target: {kind: Pod}, patch: '[{\"op\": \"add\", \"path\": \"/metadata/annotations/patched\", \"value\": \"a\"}]'}], commonMetadata: {labels: " +
		"{l: m}, annotations: {by: '${who}'}}"
	applies(t, dir, "steps/a.yaml", "a", "web", spec)
	applies(t, dir, "steps/b.yaml", "b", "web", spec)
	put1(t, dir, "steps/kustomization.yaml", kustomize("resources: [a.yaml, b.yaml]\n"))
	c := loaded(t, dir)
	steps, before := c.build("steps").objects, string(c.files["web/kustomization.yaml"])
	made := c.builtBy(applied{Unstructured: steps[0], folder: "steps"}, "web")
	require.Empty(t, c.findings)
	require.Same(t, made, c.builtBy(applied{Unstructured: steps[1], folder: "steps"}, "web"), "it is built once")
	require.Equal(t, before, string(c.files["web/kustomization.yaml"]))
	const metadata = "  annotations:\n    by: ${who}\n    patched: a\n  labels:\n    l: m\n  name: x-%s-y\n  namespace: z\n"
	text, err := made.text()
	require.NoError(t, err)
	require.Equal(t, "apiVersion: v1\nkind: Pod\nmetadata:\n"+fmt.Sprintf(metadata, "a")+"spec:\n  containers:\n  - image: b:2\n    name: b\n  - image: c:1\n   "+
		" name: c\n  - image: e@sha256:00\n    name: d\n"+
		"---\napiVersion: v1\nkind: Pod\nmetadata:\n"+fmt.Sprintf(metadata, "e")+"spec:\n  containers:\n  - image: e@sha256:00\n    name: d\n", text)
	require.Equal(t, map[string]string{"by": "${who}", "patched": "a"}, made.objects[1].GetAnnotations())
	plain, err := c.build("web").text()
	require.NoError(t, err)
	require.Contains(t, plain, "name: own-a")
	require.NotContains(t, plain, "patched")
}
