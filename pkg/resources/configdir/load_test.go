package configdir

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

func TestLoadsYAMLAndJSONFilesInAllDirectories(t *testing.T) {
	dir := writeTree(t, files{
		"a.yaml":             verifier("team-a", "one") + "---\n" + verifier("team-a", "two"),
		"deep/er/b.yml":      verifier("team-b", "three"),
		"c.json":             "{\n\t\"apiVersion\": \"v1\", \"kind\": \"Namespace\",\n\t\"metadata\": {\"name\": \"team-a\"}\n}\n",
		"notes.txt":          garbage,
		".hidden.yaml":       garbage,
		".hidden/d.yaml":     garbage,
		"comments-only.yaml": "# nothing\n---\n# more nothing\n",
		"empty.yaml":         "",
	})
	objects, problems, err := Load(t.Context(), dir)
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Equal(t, []string{"Namespace team-a", "Verifier team-a/one", "Verifier team-a/two", "Verifier team-b/three"}, names(objects))
}

func TestLoadsEveryKind(t *testing.T) {
	dir := writeTree(t, files{"all.yaml": `apiVersion: v1
kind: Namespace
metadata: {name: team-a, uid: u1}
---
apiVersion: v1
kind: Secret
metadata: {name: pull, namespace: team-a}
data: {a: aGVsbG8=}
stringData: {b: plain}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: ca, namespace: team-a}
data: {ca.crt: text}
---
apiVersion: landwaiter.dev/v1beta1
kind: Store
metadata: {name: s, namespace: team-a}
spec: {registries: [registry.example.com]}
---
apiVersion: landwaiter.dev/v1beta1
kind: ClusterStore
metadata: {name: s}
spec: {registries: [registry.example.com], insecurePlainHTTP: true}
---
apiVersion: landwaiter.dev/v1beta1
kind: TrustStore
metadata: {name: t, namespace: team-a}
spec: {type: PublicKeys, source: {secretKeyRef: {name: keys, key: k}}}
---
apiVersion: landwaiter.dev/v1beta1
kind: ClusterTrustStore
metadata: {name: t}
spec: {type: PublicKeys, source: {inline: text}}
---
apiVersion: landwaiter.dev/v1beta1
kind: VerificationPolicy
metadata: {name: p, namespace: team-a}
spec: {defaultAction: Deny}
---
apiVersion: landwaiter.dev/v1beta1
kind: ClusterVerificationPolicy
metadata: {name: p}
spec: {scope: Mandatory}
---
apiVersion: landwaiter.dev/v1beta1
kind: ClusterQuota
metadata: {name: l}
spec: {namespaces: [team-a], maxInFlight: 32}
---
apiVersion: landwaiter.dev/v1beta1
kind: Exception
metadata: {name: x, namespace: team-a, creationTimestamp: "2090-01-01T00:00:00Z"}
spec: {until: "2026-12-31T18:00:00Z", reason: r, images: [r.example.com/a]}
---
apiVersion: landwaiter.dev/v1beta1
kind: ClusterException
metadata: {name: x, creationTimestamp: "2026-01-30T18:00:00Z"}
spec: {until: "2026-12-31T18:00:00Z", reason: r, images: [r.example.com/a], namespaces: [team-a]}
---
apiVersion: landwaiter.dev/v1beta1
kind: Tenant
metadata: {name: iris}
spec: {homeNamespace: team-a, namespacePrefix: team-a-}
---
apiVersion: landwaiter.dev/v1beta1
kind: ClusterVerifier
metadata: {name: v}
spec: {type: Cosign, cosign: {keys: {trustStoreRefs: [{name: t}], insecureIgnoreTransparencyLog: true}}}
---
` + verifier("team-a", "v")})
	o, problems, err := Load(t.Context(), dir)
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Empty(t, o.Broken)
	require.Len(t, o.Namespaces, 1)
	require.Len(t, o.Secrets, 1)
	require.Len(t, o.ConfigMaps, 1)
	var kinds, table []string
	for _, object := range o.Resources {
		kinds = append(kinds, resource.RefOf(object).Kind)
	}
	for _, kind := range v1beta1.Kinds() {
		table = append(table, kind.Name)
	}
	require.ElementsMatch(t, table, kinds)
	for _, object := range o.Resources {
		switch x := object.(type) {
		case *v1beta1.Exception:
			require.WithinDuration(t, time.Now(), x.CreationTimestamp.Time, time.Hour, "it counts as created when it is read")
		case *v1beta1.ClusterException:
			require.Equal(t, "2026-01-30T18:00:00Z", x.CreationTimestamp.UTC().Format(time.RFC3339), "the file says when it was created")
		}
	}
	require.Equal(t, "u1", string(o.Namespaces[0].UID))
	require.Equal(t, "hello", string(o.Secrets[0].Data["a"]))
	require.Equal(t, "plain", o.Secrets[0].StringData["b"])
	i := slices.IndexFunc(o.Resources, func(object v1beta1.Object) bool { return resource.RefOf(object).Kind == v1beta1.KindClusterStore })
	require.True(t, o.Resources[i].(*v1beta1.ClusterStore).Spec.InsecurePlainHTTP)
}

func TestBreaksObjectsWhoseContentCannotBeRead(t *testing.T) {
	const meta = "apiVersion: landwaiter.dev/v1beta1\nkind: Verifier\nmetadata: {name: v, namespace: team-a}\n"
	for name, c := range map[string]struct{ text, message string }{
		"unknown field":             {meta + "spec: {cosign: {kees: []}}", `unknown field "spec.cosign.kees"`},
		"unknown field in metadata": {strings.Replace(meta, "name: v", "name: v, label: x", 1), `unknown field "metadata.label"`},
		"field in the wrong case":   {meta + "Spec: {cosign: {}}", `unknown field "Spec"`},
		"duplicate field":           {meta + "spec:\n  images: [a]\n  images: [b]\n", `line 8: key "images" already set in map`},
		"duplicate spec":            {meta + "spec: {}\nspec: {}", `key "spec" already set in map`},
		"wrong type":                {meta + "spec: {images: 5}", "cannot unmarshal number"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := writeTree(t, files{"team/x.yaml": "# first\n---\n" + c.text + "\n---\n" + verifier("team-a", "other")})
			objects, problems, err := Load(t.Context(), dir)
			require.NoError(t, err)
			require.Equal(t, []string{"Verifier team-a/other", "broken Verifier team-a/v"}, names(objects))
			require.Equal(t, []string{"Invalid Verifier team-a/v"}, reasons(problems))
			require.Contains(t, problems[0].Message, "team/x.yaml, document 1 (line 2): ")
			require.Contains(t, problems[0].Message, c.message)
			require.EqualError(t, objects.Broken[0].Err, problems[0].Message)
		})
	}
}

func TestBreaksClusterObjectsThatNameANamespace(t *testing.T) {
	for _, kind := range []string{"ClusterVerifier", "ClusterVerificationPolicy"} {
		dir := writeTree(t, files{"x.yaml": fmt.Sprintf("apiVersion: landwaiter.dev/v1beta1\nkind: %s\nmetadata: {name: v, namespace: team-a}\nspec: {}\n", kind)})
		objects, problems, err := Load(t.Context(), dir)
		require.NoError(t, err)
		require.Equal(t, []string{"broken " + kind + " v"}, names(objects))
		require.Contains(t, problems[0].Message, "belongs to no namespace; remove it")
	}
}

func TestBreaksObjectsDeclaredTwice(t *testing.T) {
	for name, tree := range map[string]files{
		"in two files":            {"a.yaml": verifier("team-a", "v"), "b.yaml": verifier("team-a", "v")},
		"in one file":             {"a.yaml": "# b.yaml\n" + verifier("team-a", "v") + "---\n" + verifier("team-a", "v")},
		"one of them unreadable":  {"a.yaml": verifier("team-a", "v"), "b.yaml": mistyped("team-a", "v")},
		"with other objects near": {"a.yaml": verifier("team-a", "v"), "b.yaml": verifier("team-a", "v"), "c.yaml": verifier("team-b", "v")},
	} {
		t.Run(name, func(t *testing.T) {
			objects, problems, err := Load(t.Context(), writeTree(t, tree))
			require.NoError(t, err)
			require.Contains(t, names(objects), "broken Verifier team-a/v")
			require.NotContains(t, names(objects), "Verifier team-a/v")
			require.Equal(t, []string{"Duplicate Verifier team-a/v"}, reasons(problems))
			require.Contains(t, problems[0].Message, "a.yaml, document 1 (line 1)")
			if _, two := tree["b.yaml"]; two {
				require.Contains(t, problems[0].Message, "b.yaml, document 1 (line 1)")
			} else {
				require.Contains(t, problems[0].Message, "a.yaml, document 2 (line 6)")
			}
		})
	}
}

func TestReportsObjectsThatItIgnores(t *testing.T) {
	dir := writeTree(t, files{"x.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: team-a}\nspec: {anything: goes}\n" +
		"---\napiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: team-a}\n---\n" + verifier("team-a", "v")})
	objects, problems, err := Load(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, []string{"Verifier team-a/v"}, names(objects))
	require.Equal(t, []string{"Ignored Deployment team-a/web", "Ignored Service team-a/web"}, reasons(problems))
	require.Contains(t, problems[0].Message, "x.yaml, document 1 (line 1): apiVersion apps/v1, kind Deployment")
}

func TestReadsServiceAccountsForTheirPullSecretsAlone(t *testing.T) {
	o, problems, err := Load(t.Context(), writeTree(t, files{"accounts.yaml": `apiVersion: v1
kind: ServiceAccount
metadata: {name: builder, namespace: team-a}
imagePullSecrets: [{name: pull}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: "${TEAM}"}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: twice, namespace: team-a}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: twice, namespace: team-a}
`}))
	require.NoError(t, err)
	require.Len(t, o.ServiceAccounts, 1)
	require.Equal(t, "pull", o.ServiceAccounts[0].ImagePullSecrets[0].Name)
	require.Empty(t, o.Broken)
	require.Len(t, problems, 3)
	for _, p := range problems {
		require.True(t, p.IsIgnored(), p.Message)
	}
}

func TestRefusesToStartWithDocumentsItCannotIdentify(t *testing.T) {
	v := verifier("team-a", "v")
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for i := 'b'; i < 'j'; i++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", i-1), 9), ","))
	}
	for name, c := range map[string]struct{ text, message string }{
		"broken YAML": {"kind: [unclosed\n", "(line 5): did not find expected"},
		"tabs for indentation": {"kind: Verifier\nmetadata:\n\tname: v\n",
			"line 8: found character that cannot start any token: YAML must not be indented with tabs; use spaces"},
		"no apiVersion":             {"kind: Verifier\nmetadata: {name: v, namespace: a}", "apiVersion or kind is missing"},
		"no kind":                   {"apiVersion: v1\nmetadata: {name: v}", "apiVersion or kind is missing"},
		"kind in the wrong case":    {"apiVersion: v1\nKind: Namespace\nmetadata: {name: v}", "apiVersion or kind is missing"},
		"no name":                   {strings.Replace(v, "name: v, ", "", 1), "metadata.name: this Verifier has none"},
		"generated name":            {strings.Replace(v, "name: v, ", "generateName: v, ", 1), "metadata.name: this Verifier has none"},
		"name that cannot be one":   {strings.Replace(v, "name: v", "name: V_1", 1), `metadata.name: "V_1"`},
		"no namespace":              {strings.Replace(v, ", namespace: team-a", "", 1), "metadata.namespace: Verifier v has none"},
		"namespace that is none":    {strings.Replace(v, "team-a", "Team-A", 1), `metadata.namespace: "Team-A"`},
		"number for a name":         {strings.Replace(v, "name: v", "name: 5", 1), "metadata cannot be read"},
		"metadata of another shape": {"apiVersion: v1\nkind: Secret\nmetadata: [x]", "metadata cannot be read"},
		"kind twice":                {v + "kind: Store\n", "kind is given twice"},
		"name twice":                {strings.Replace(v, "name: v", "name: v, name: w", 1), "name is given twice"},
		"metadata twice":            {v + "metadata: {name: w, namespace: team-a}\n", "metadata is given twice"},
		"merge key":                 {"<<: {kind: Store}\n" + v, "a merge key (<<) is not supported here"},
		"tag":                       {"!!binary a2luZA==: Store\n" + v, "the tag !!binary is not supported"},
		"unknown kind of ours": {strings.Replace(v, "Verifier", "Verifer", 1),
			"Verifer team-a/v: landwaiter.dev/v1beta1 has no kind Verifer; did you mean Verifier?"},
		"unknown version of ours": {strings.Replace(v, "v1beta1", "v1", 1), "Verifier team-a/v: apiVersion landwaiter.dev/v1 is not known"},
		"group almost ours":       {strings.Replace(v, "landwaiter.dev", "Landwaiter.io", 1), "Verifier team-a/v: apiVersion Landwaiter.io/v1beta1 is not known"},
		"list of pods":            {"apiVersion: v1\nkind: PodList\nitems: []", "kind PodList is not read; write its items as documents"},
		"list of an unknown kind": {"apiVersion: landwaiter.dev/v1beta1\nkind: VeriferList\nitems: []", "kind VeriferList is not read"},
		"list of another version": {"apiVersion: landwaiter.dev/v1\nkind: VerifierList\nitems: []", "kind VerifierList is not read"},
		"scalar":                  {"hello", "it is not a mapping"},
		"sequence":                {"[a]", "it is not a mapping"},
		"directive":               {"%YAML 1.2", "line "},
		"two objects run together": {`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}` + "\n" + `{"a": "b"}`,
			"something follows the end of the object"},
		"bomb of aliases": {bomb, "more than 500000 values, counting what aliases repeat"},
		"alias to itself": {"a: &a [*a]\n", ""},
		"deep nesting":    {"a: " + strings.Repeat("[", 200) + strings.Repeat("]", 200), "nested deeper than 100"},
		"unknown anchor":  {"password: *hunter2\n", "unknown anchor"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := writeTree(t, files{"sub/x.yaml": verifier("team-b", "good") + "---\n" + c.text, "good.yaml": verifier("team-c", "good")})
			objects, problems, err := Load(t.Context(), dir)
			require.ErrorContains(t, err, "sub/x.yaml, document 2 (line 5): ")
			require.ErrorContains(t, err, c.message)
			require.NotContains(t, err.Error(), "hunter2")
			require.Empty(t, names(objects))
			require.Empty(t, problems)
		})
	}
}

func TestRefusesFilesThatMayHideADocument(t *testing.T) {
	for name, text := range map[string]string{
		"carriage return":     "a: b\r---\rc: d",
		"next line":           "a: b\u0085---\u0085c: d",
		"line separator":      "a: b\u2028---\u2028c: d",
		"paragraph separator": "a: b\u2029---\u2029c: d",
		"mark in the middle":  "a: b\n\ufeff---\nc: d",
		"not UTF-8":           "a: \xff",
		"UTF-16":              "\xff\xfea\x00",
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Load(t.Context(), writeTree(t, files{"x.yaml": text}))
			require.ErrorContains(t, err, "x.yaml")
		})
	}
}

func TestSplitsDocumentsAsYAMLDoes(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		lines []int
	}{
		"none":                    {"", nil},
		"mark at the beginning":   {"\ufeff---\na: b\n", []int{1}},
		"Windows line ends":       {"a: b\r\n---\r\nc: d\r\n", []int{1, 2}},
		"end mark":                {"a: b\n...\nc: d\n", []int{1, 2}},
		"content after the mark":  {"--- {a: b}\n--- # text\nc: d", []int{1, 2}},
		"in a block of text":      {"a: |\n  ---\n  x\n", []int{1}},
		"longer line of dashes":   {"a: b\n# x\n----: c", []int{1}},
		"empty ones left out":     {"---\n---\n# x\n---\na: b\n---\n", []int{4}},
		"mark within quotes ends": {"a: \"\n---\n\"", []int{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			documents, err := split("x.yaml", []byte(c.text))
			require.NoError(t, err)
			var lines []int
			for i, d := range documents {
				require.Equal(t, i+1, d.number)
				lines = append(lines, d.line)
			}
			require.Equal(t, c.lines, lines)
		})
	}
}

func TestNeverQuotesSecrets(t *testing.T) {
	for name, content := range map[string]string{
		"number":           "stringData: {password: 48151623}",
		"number for data":  "data: {password: 48151623}",
		"text that is not": "data: {password: 48151623!}",
		"alias":            "stringData: {password: *48151623}",
	} {
		t.Run(name, func(t *testing.T) {
			_, problems, err := Load(t.Context(), writeTree(t, files{"x.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: a}\n" + content}))
			text := fmt.Sprint(problems, err)
			require.NotContains(t, text, "48151623")
			require.Contains(t, text, "x.yaml")
		})
	}
}

func TestReadsMountedVolumes(t *testing.T) {
	dir := writeTree(t, files{"..2026_01/v.yaml": verifier("team-a", "v"), "..2026_01/sub/w.yaml": verifier("team-a", "w")})
	link(t, dir, "..data", "..2026_01")
	link(t, dir, "v.yaml", "..data/v.yaml")
	link(t, dir, "sub", "..data/sub")
	objects, problems, err := Load(t.Context(), dir)
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Equal(t, []string{"Verifier team-a/v", "Verifier team-a/w"}, names(objects))
}

func TestRefusesFilesThatItMustNotRead(t *testing.T) {
	outside := writeTree(t, files{"v.yaml": verifier("team-a", "v")})
	for name, c := range map[string]struct {
		make    func(dir string) error
		message string
	}{
		"link to the outside": {func(dir string) error {
			return os.Symlink(filepath.Join(outside, "v.yaml"), filepath.Join(dir, "x.yaml"))
		}, "x.yaml: "},
		"relative link to the outside": {func(dir string) error {
			relative, err := filepath.Rel(dir, filepath.Join(outside, "v.yaml"))
			if err != nil {
				return err
			}
			return os.Symlink(relative, filepath.Join(dir, "x.yaml"))
		}, "x.yaml: "},
		"directory link to the outside": {func(dir string) error { return os.Symlink(outside, filepath.Join(dir, "x")) }, "x: "},
		"link to nowhere":               {func(dir string) error { return os.Symlink("gone.yaml", filepath.Join(dir, "x.yaml")) }, "x.yaml: "},
		"link to its own directory":     {func(dir string) error { return os.Symlink(".", filepath.Join(dir, "x")) }, "x: the link leads back"},
		"named pipe":                    {func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "x.yaml"), 0o600) }, "x.yaml: it is not a regular file"},
		"large file": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "x.yaml"), make([]byte, maxFileBytes+1), 0o600)
		}, "x.yaml: it is larger than 4194304 bytes"},
		"many documents": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "x.yaml"), []byte(strings.Repeat("---\na: b\n", maxDocuments+1)), 0o600)
		}, "x.yaml has more than 1000 documents"},
		"deep directories": {func(dir string) error {
			return os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", maxDepth+1)), 0o750)
		}, "directories are nested deeper than 16"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := writeTree(t, files{"good.yaml": verifier("team-a", "good")})
			require.NoError(t, c.make(dir))
			_, _, err := Load(t.Context(), dir)
			require.ErrorContains(t, err, c.message)
		})
	}
}

func TestReadsFilesUpToTheLimits(t *testing.T) {
	documents := make([]string, maxDocuments)
	for i := range documents {
		documents[i] = fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: team-%d}}\n", i)
	}
	dir := writeTree(t, files{
		strings.Repeat("d/", maxDepth-1) + "deep.yaml": verifier("team-a", "deep"),
		"many.yaml":  strings.Join(documents, "---\n"),
		"large.yaml": verifier("team-a", "large") + "---\n#" + strings.Repeat("x", maxFileBytes-len(verifier("team-a", "large"))-5),
	})
	objects, problems, err := Load(t.Context(), dir)
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Len(t, objects.Namespaces, maxDocuments)
	require.Len(t, objects.Resources, 2)
}

func TestRefusesTooManyFilesAndTooMuchText(t *testing.T) {
	t.Run("entries", func(t *testing.T) {
		dir := t.TempDir()
		for i := range maxEntries + 1 {
			require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.txt", i)), nil, 0o600))
		}
		_, _, err := Load(t.Context(), dir)
		require.ErrorContains(t, err, "more than 10000 files and directories")
	})
	t.Run("bytes", func(t *testing.T) {
		dir := t.TempDir()
		comment := []byte("#" + strings.Repeat("x", maxFileBytes-1))
		for i := range maxTotalBytes/maxFileBytes + 1 {
			require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.yaml", i)), comment, 0o600))
		}
		_, _, err := Load(t.Context(), dir)
		require.ErrorContains(t, err, "larger than 67108864 bytes together")
	})
	t.Run("no directory", func(t *testing.T) {
		_, _, err := Load(t.Context(), filepath.Join(t.TempDir(), "gone"))
		require.ErrorContains(t, err, "open the directory with resources")
	})
	t.Run("a file", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "rules.yaml")
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		_, _, err := Load(t.Context(), file)
		require.EqualError(t, err, file+" is not a directory: give the directory that has the file")
	})
}

func TestNamesAtMostTwentyOfManyErrors(t *testing.T) {
	_, _, err := Load(t.Context(), writeTree(t, files{"x.yaml": strings.Repeat("---\na: b\n", 30)}))
	require.ErrorContains(t, err, "and 10 more")
	require.Equal(t, maxReported, strings.Count(err.Error(), "x.yaml, document"))
}
