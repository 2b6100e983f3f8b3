package scaffold

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

const kustomizeHead = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"

// sealedTree is a folder x with an encrypted Secret and a kustomization of further fields.
func sealedTree(t *testing.T, dir, fields string) {
	t.Helper()
	put1(t, dir, "x/s.yaml", sealedSecret(sealedValue, sealedValue))
	put1(t, dir, "x/kustomization.yaml", kustomizeHead+"resources: [s.yaml]\n"+fields)
}

func TestCheckFindsHiddenSecrets(t *testing.T) {
	for name, c := range map[string]wrong{
		"value that an inline patch adds": {func(t *testing.T, dir string) {
			sealedTree(t, dir, "patches:\n- patch: |\n    apiVersion: v1\n    kind: Secret\n    metadata: {name: login, namespace: iris-red}\n    stringData: "+
				"{user: hunter2}\n")
		}, "x/kustomization.yaml", "plain text"},
		"value that a JSON patch adds": {func(t *testing.T, dir string) {
			sealedTree(t, dir, "patches:\n- target: {kind: Secret}\n  patch: |\n    - op: add\n      path: /stringData/user\n      value: hunter2\n")
		}, "x/kustomization.yaml", "plain text"},
		"kind that a JSON patch makes": {func(t *testing.T, dir string) {
			put1(t, dir, "x/s.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: aHVudGVyMg==}\n")
			put1(t, dir, "x/kustomization.yaml", kustomizeHead+"resources: [s.yaml]\npatches:\n- target: {kind: ConfigMap}\n  patch: |\n    - op: replace\n      "+
				"path: /kind\n      value: Secret\n  options: {allowKindChange: true}\n")
		}, "x/kustomization.yaml", "plain text"},
		"merge key at the top": {func(t *testing.T, dir string) {
			put1(t, dir, "notes/l.yaml", "x: &x {apiVersion: v1, kind: Secret, stringData: {a: b}}\n<<: *x\nmetadata: {name: a}\n")
		}, "notes/l.yaml", "a Secret in plain text"},
		"lists in lists": {func(t *testing.T, dir string) {
			text := "{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: YQ==}}"
			for range 6 {
				text = "{apiVersion: v1, kind: List, items: [" + text + "]}"
			}
			put1(t, dir, "notes/l.yaml", text+"\n")
		}, "notes/l.yaml", "a Secret in plain text"},
		"generator whose file is encrypted in part": {func(t *testing.T, dir string) {
			put1(t, dir, "x/app.env", "PASSWORD=hunter2\nTOKEN="+sealedValue+"\n")
			put1(t, dir, "x/kustomization.yaml", kustomizeHead+"secretGenerator: [{name: a, envs: [app.env]}]\n")
		}, "x/kustomization.yaml", "secretGenerator makes a Secret in plain text"},
		"generator whose YAML is encrypted in part": {func(t *testing.T, dir string) {
			put1(t, dir, "x/values.yaml", "password: hunter2\ntoken: "+sealedValue+"\nsops: {mac: \""+sealedValue+"\"}\n")
			put1(t, dir, "x/kustomization.yaml", kustomizeHead+"secretGenerator: [{name: a, files: [values.yaml]}]\n")
		}, "x/kustomization.yaml", "secretGenerator makes a Secret in plain text"},
		"generator whose file only mentions sops": {func(t *testing.T, dir string) {
			put1(t, dir, "x/a.txt", "hunter2 # ENC[AES256_GCM,data:\n")
			put1(t, dir, "x/kustomization.yaml", kustomizeHead+"secretGenerator: [{name: a, files: [p=a.txt]}]\n")
		}, "x/kustomization.yaml", "secretGenerator makes a Secret in plain text"},
		"key of age within a line": {func(t *testing.T, dir string) {
			put1(t, dir, "notes/run.sh", "export SOPS_AGE_KEY="+"AGE-SECRET-KEY-1"+strings.Repeat("Q", 58)+"\n")
		}, "notes/run.sh", "a private key in plain text"},
		"key of PGP": {func(t *testing.T, dir string) {
			put1(t, dir, "notes/key.asc", "-----BEGIN PGP "+"PRIVATE KEY BLOCK-----\n")
		}, "notes/key.asc", "a private key in plain text"},
		"folder that other tools skip": {func(t *testing.T, dir string) {
			put1(t, dir, "tenants/node_modules/l.yaml", plainSecret)
		}, "tenants/node_modules/l.yaml", "a Secret in plain text"},
	} {
		t.Run(name, func(t *testing.T) {
			c.isFound(t, folder(t))
		})
	}
}

func findingsOf(t *testing.T, dir, file string) string {
	t.Helper()
	report, err := Check(t.Context(), dir, CheckOptions{})
	require.NoError(t, err)
	var found []string
	for _, f := range report.Findings {
		if f.File == file {
			found = append(found, f.Message)
		}
	}
	return strings.Join(found, "\n")
}

// TestMergesThatNeverEndAreRefused has a mapping that merges itself, and one that doubles
// with each of fifty others.
func TestMergesThatNeverEndAreRefused(t *testing.T) {
	doubling := "a0: &a0 {x: y}\n"
	for i := 1; i < 50; i++ {
		doubling += fmt.Sprintf("a%d: &a%d {<<: [*a%d, *a%d]}\n", i, i, i-1, i-1)
	}
	for name, text := range map[string]string{"itself": "a: &a {<<: *a}\n<<: *a\n", "doubling": doubling + "<<: *a49\n"} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t)
			put1(t, dir, "x/kustomization.yaml", text)
			require.Contains(t, findingsOf(t, dir, "x/kustomization.yaml"), "once its aliases are expanded")
			_, err := ReadEncrypted(dir, "x/kustomization.yaml")
			require.Error(t, err)
		})
	}
}

func TestWhatVariablesMakeIsChecked(t *testing.T) {
	for name, c := range map[string]struct{ value, manifest, says string }{
		"a Secret": {"Secret", "apiVersion: v1\nkind: ${v}\nmetadata: {name: a}\nstringData: {a: hunter2}\n", "a Secret in plain text"},
		"megabytes": {strings.Repeat("x", 1<<14), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: \"" + strings.Repeat("${v}", 1<<16) + "\"}\n",
			"MiB once variables are replaced"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := small(t)
			put1(t, dir, "clusters/staging/more.yaml", "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: more, namespace: "+
				"flux-system}\n"+
				"spec: {interval: 1m, prune: true, sourceRef: {kind: GitRepository, name: flux-system}, serviceAccountName: a, path: ./more, postBuild: {substitute: {v: "+
				c.value+"}}}\n")
			put1(t, dir, "more/x.yaml", c.manifest)
			put1(t, dir, "more/kustomization.yaml", kustomization("", []string{"x.yaml"}, nil))
			require.Contains(t, findingsOf(t, dir, "more/kustomization.yaml"), c.says)
		})
	}
}

func TestWhatSopsEncryptsForAGeneratorPasses(t *testing.T) {
	for name, text := range map[string]string{
		"app.env":     "#" + sealedValue + "\nPASSWORD=" + sealedValue + "\nEMPTY=\nsops_mac=" + sealedValue + "\nsops_version=3.9.0\n",
		"values.yaml": "a:\n  b: " + sealedValue + "\nsops:\n  mac: " + sealedValue + "\n",
		"values.json": `{"a": {"b": "` + sealedValue + `"}, "sops": {"mac": "` + sealedValue + `"}}`,
		"binary.key":  `{"data": "` + sealedValue + `", "sops": {"mac": "` + sealedValue + `"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t)
			field := "files"
			if strings.HasSuffix(name, ".env") {
				field = "envs"
			}
			put1(t, dir, "x/"+name, text)
			put1(t, dir, "x/kustomization.yaml", kustomizeHead+"secretGenerator: [{name: a, "+field+": ["+name+"]}]\n")
			report, err := Check(t.Context(), dir, CheckOptions{})
			require.NoError(t, err)
			require.Empty(t, report.Findings)
		})
	}
}

func TestNoPathLeadsAroundWhatIsRefused(t *testing.T) {
	var fetched atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fetched.Add(1)
		_, _ = w.Write([]byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"))
	}))
	defer server.Close()
	for _, path := range []string{"../../../evil", "../evil/../../evil", "/evil/x.yaml", "/evil"} {
		t.Run(path, func(t *testing.T) {
			dir := folder(t)
			put1(t, dir, "x/kustomization.yaml", kustomization("", []string{path}, nil))
			put1(t, dir, "evil/kustomization.yaml", kustomization("", []string{server.URL + "/x.yaml"}, nil))
			put1(t, dir, "evil/x.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
			require.Contains(t, findingsOf(t, dir, "x/kustomization.yaml"), "outside of the tree")
			require.Zero(t, fetched.Load())
		})
	}
}

func TestACheckNoticesThatTheLockdownIsGone(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, dir string){
		"with the kustomization of Flux": func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(filepath.Join(dir, "clusters/staging/flux-system/kustomization.yaml")))
		},
		"by other names": func(t *testing.T, dir string) {
			rewrite(t, dir, "clusters/staging/flux-system/kustomization.yaml", "components:\n- ../../../components/flux-lockdown\n",
				"namePrefix: my-\npatches:\n- target: {kind: Kustomization}\n  patch: |\n    - op: add\n      path: /spec/serviceAccountName\n      value: "+
					"kustomize-controller\n")
		},
		"with the folder of Flux": func(t *testing.T, dir string) {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, "clusters/staging/flux-system")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := small(t)
			change(t, dir)
			report, err := Check(t.Context(), dir, CheckOptions{})
			require.NoError(t, err)
			var found []string
			for _, f := range report.Findings {
				found = append(found, f.Message)
			}
			require.Contains(t, strings.Join(found, "\n"), "Flux is not locked down: ")
		})
	}
}
