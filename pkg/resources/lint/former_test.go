package lint_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/lint"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// within returns what holds a field of an object, and the last step to it.
func within(t *testing.T, object map[string]any, field string) (map[string]any, string) {
	t.Helper()
	steps := strings.FieldsFunc(field, func(r rune) bool { return strings.ContainsRune(".[]", r) })
	var at any = object
	for _, step := range steps[:len(steps)-1] {
		switch node := at.(type) {
		case map[string]any:
			at = node[step]
		case []any:
			i, err := strconv.Atoi(step)
			require.NoError(t, err, field)
			at = node[i]
		}
	}
	parent, ok := at.(map[string]any)
	require.True(t, ok, field)
	return parent, steps[len(steps)-1]
}

var (
	renames = regexp.MustCompile(`^it is called (\S+) now(?:, and (\S+) is (\S+))?$`)
	sets    = regexp.MustCompile(`^set (\w+): (\w+)`)
)

// follow does to an object what a finding says. It reports whether that is about an earlier version.
func follow(t *testing.T, object map[string]any, f resource.Finding) bool {
	t.Helper()
	renamed, set := renames.FindStringSubmatch(f.Fix), sets.FindStringSubmatch(f.Fix)
	if f.Field != "apiVersion" && renamed == nil && (set == nil || f.Severity != resource.Note) && !strings.HasPrefix(f.Fix, "remove it, ") {
		return false
	}
	parent, name := within(t, object, f.Field)
	switch {
	case f.Field == "apiVersion":
		parent[name] = strings.TrimPrefix(f.Fix, "write apiVersion: ")
	case renamed != nil && strings.HasPrefix(f.Message, `"`):
		parent[name] = renamed[1]
	case renamed != nil:
		value := parent[name]
		if renamed[2] != "" {
			require.Equal(t, renamed[2], value)
			value = renamed[3]
		}
		delete(parent, name)
		steps := strings.Split(renamed[1], ".")
		for _, step := range steps[:len(steps)-1] {
			if parent[step] == nil {
				parent[step] = map[string]any{}
			}
			parent, _ = parent[step].(map[string]any)
		}
		parent[steps[len(steps)-1]] = value
	case strings.HasPrefix(f.Fix, "remove it, "):
		delete(parent, name)
	default:
		whole, ok := parent[name].(map[string]any)
		require.True(t, ok, f.Field)
		whole[set[1]] = map[string]any{"true": true}[set[2]]
		if whole[set[1]] == nil {
			whole[set[1]] = set[2]
		}
	}
	return true
}

// The files are those that the repository had when it had v1alpha1: its samples, and the
// examples of its page on resources.
func TestAFileOfAnEarlierVersionIsRightOnceTheFixesAreApplied(t *testing.T) {
	files, err := filepath.Glob("testdata/v1alpha1/*.yaml")
	require.NoError(t, err)
	require.Len(t, files, 5)
	followed := 0
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			report, err := lint.Check(t.Context(), []string{name}, nil, conditions.Check)
			require.NoError(t, err)
			objects := map[string]map[string]any{}
			for _, document := range regexp.MustCompile(`(?m)^---\n`).Split(string(text), -1) {
				var object map[string]any
				require.NoError(t, yaml.Unmarshal([]byte(document), &object))
				metadata, _ := object["metadata"].(map[string]any)
				objects[fmt.Sprint(object["kind"], metadata["namespace"], metadata["name"])] = object
			}
			require.Equal(t, strings.Count(string(text), "apiVersion: landwaiter.dev/v1alpha1"), report.Resources, "resources that were checked")
			for _, f := range report.Findings {
				require.True(t, f.Fix != "" || f.ID == string(policy.ReasonExpired) || f.ID == string(policy.ReasonUnused), "nothing says what to do about %v", f)
				var namespace any
				if f.Object.Namespace != "" {
					namespace = f.Object.Namespace
				}
				object := objects[fmt.Sprint(f.Object.Kind, namespace, f.Object.Name)]
				require.NotNil(t, object, "%v", f)
				if f.Field != "" && follow(t, object, f) {
					followed++
					continue
				}
				require.Equal(t, resource.Note, f.Severity, "%v", f)
			}
			var mended []string
			for _, object := range objects {
				document, err := yaml.Marshal(object)
				require.NoError(t, err)
				mended = append(mended, string(document))
			}
			now, err := lint.Check(t.Context(), []string{"-"}, strings.NewReader(strings.Join(mended, "---\n")), conditions.Check)
			require.NoError(t, err)
			require.Zero(t, errorsOf(now), "%v", now.Findings)
			require.Equal(t, report.Resources, now.Resources)
			for _, f := range now.Findings {
				require.False(t, renames.MatchString(f.Fix) || sets.MatchString(f.Fix) && f.ID == "", "it is still said: %v", f)
			}
		})
	}
	require.Greater(t, followed, 60)
}

// old returns a resource of the former version.
func old(kind, spec string) string {
	return strings.Replace(object(kind, spec), "v1beta1", "v1alpha1", 1)
}

// said returns what lint says of text, but for the version.
func said(t *testing.T, text string) []string {
	t.Helper()
	report, err := lint.Check(t.Context(), []string{"-"}, strings.NewReader(text), conditions.Check)
	require.NoError(t, err)
	found := []string{}
	for _, f := range report.Findings {
		if f.Field != "apiVersion" {
			found = append(found, fmt.Sprintf("%s %s: %s; %s", f.Severity, f.Field, f.Message, f.Fix))
		}
	}
	return found
}

func TestOnlyAFileOfAnEarlierVersionIsToldOfChangedDefaults(t *testing.T) {
	keys, notation := "{type: Cosign, cosign: {keys: {trustStoreRefs: [{name: x}]}}}", "{type: Notation, notation: {trustStoreRefs: [{name: x}], trustedIdentities: ['*']}}"
	ignored := strings.Replace(notation, "['*']", "['*'], revocation: Ignore", 1)
	for spec, want := range map[string]string{
		ignored:  "note spec.notation.revocation: certificates are not checked for revocation; Ignore was the default, so objects that were read from a cluster have it; remove it",
		keys:     "note spec.cosign.keys: signatures by these keys must now be in Sigstore's public transparency log; before, no log was needed; set insecureIgnoreTransparencyLog: true",
		notation: "note spec.notation: certificates are now checked for revocation; before, they were not unless revocation was Check; set revocation: Ignore",
	} {
		require.Contains(t, strings.Join(said(t, old("Verifier", spec)), "\n"), want)
		require.NotContains(t, strings.Join(said(t, object("Verifier", spec)), "\n"), "before, ")
		require.NotContains(t, strings.Join(said(t, object("Verifier", spec)), "\n"), "was the default")
	}
	for _, spec := range []string{
		"{type: Cosign, cosign: {keys: {trustStoreRefs: [{name: x}], logTrustStoreRef: {name: log}}}}",
		"{type: Notation, notation: {trustStoreRefs: [{name: x}], trustedIdentities: ['*'], revocation: Check}}",
	} {
		require.NotContains(t, strings.Join(said(t, old("Verifier", spec)), "\n"), "before, ")
	}
}

func TestSaysHowMillisecondsAndLabelsAreWrittenNow(t *testing.T) {
	tenant := strings.Replace(tenant("{homeNamespace: iris, reconciler: {source: {url: 'https://git.example.com/iris', interval: 1m500ms}}}"), "v1beta1", "v1alpha1", 1)
	require.Contains(t, said(t, tenant), `error spec.reconciler.source.interval: "1m500ms" is in milliseconds; write 60.5s`)
	namespace := "{apiVersion: v1, kind: Namespace, metadata: {name: iris, labels: {landwaiter.dev/home: ''}}}\n---\n"
	require.Contains(t, said(t, namespace+tenant), "note metadata.labels: nothing reads the label landwaiter.dev/home; it is called landwaiter.dev/home-namespace now")
}

func TestSaysWhichFieldsOfReferencesAndAccountsAreGone(t *testing.T) {
	store := func(spec string) string { return "{registries: [r.example.com], " + spec + "}" }
	account := "identity: {provider: ECR, serviceAccount: {name: p, namespace: n, awsRoleARN: 'arn:aws:iam::123456789012:role/x', awsRegion: eu-west-1}}"
	const none = "there is no such field"
	for text, want := range map[string]map[string]string{
		store("imagePullSecrets: [{name: p, namespace: n}]"):               {"spec.imagePullSecrets[0].namespace": "references have no namespace: what cluster resources name is in the one of --cluster-resource-namespace, by default Landwaiter's own; remove it, "},
		store("caBundle: {secretKeyRef: {name: p, namespace: n, key: k}}"): {"spec.caBundle.secretKeyRef.namespace": "references have no namespace"},
		store(account): {"spec.identity.serviceAccount.awsRoleARN": none + "; it is called aws.roleARN now", "spec.identity.serviceAccount.awsRegion": none + "; it is called aws.region now"},
	} {
		now := strings.Join(said(t, object("ClusterStore", text)), "\n")
		was := strings.Join(said(t, old("ClusterStore", text)), "\n")
		for field, message := range want {
			require.Contains(t, was, field+": "+message)
			require.Contains(t, now, field+": ")
		}
	}
}

func TestSaysWhatAnnotationsOfNamespacesAreCalledNow(t *testing.T) {
	text := "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: team-a\n  annotations:\n    landwaiter.dev/break-glass-floors: \"true\"\n"
	require.ElementsMatch(t, []string{v1beta1.AnnotationBreakGlassOverrideMandatory, v1beta1.AnnotationCreated}, slices.Collect(maps.Values(lint.RenamedAnnotations())))
	require.Equal(t, []string{"note metadata.annotations: nothing reads the annotation landwaiter.dev/break-glass-floors; it is called landwaiter.dev/break-glass-override-mandatory now"}, said(t, text))
}

func TestOtherFaultsOfAFileOfAnEarlierVersionAreFoundToo(t *testing.T) {
	require.Equal(t, []string{"error spec.nothing: there is no such field; remove it"},
		said(t, old("Store", "{registries: [r.example.com], nothing: 1}")))
	require.Contains(t, strings.Join(said(t, old("VerificationPolicy", "{rules: [{images: ['a b'], action: Allow}]}")), "\n"), "error spec.rules[0].images[0]: ")
}

// A key is whatever somebody wrote: it is no path.
func TestAKeyThatLooksLikeAPathIsAFieldThatIsNotThere(t *testing.T) {
	for _, key := range []string{"''", "'.'", "'[]'", "'[0]'", "spec.home", "'spec.[0].namespace'"} {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			text := "apiVersion: landwaiter.dev/" + version + "\nkind: Tenant\nmetadata: {name: iris}\nspec: {homeNamespace: iris}\n" + key + ": 1\n"
			found := strings.Join(said(t, text), "\n")
			require.Contains(t, found, "there is no such field; ", "%s %s", version, key)
			require.NotContains(t, found, "is missing", "%s %s", version, key)
		}
	}
}

func TestAKeyThatLooksLikeAnIndexBeforeTheFirstDoesNoHarm(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		found := said(t, `{"apiVersion":"landwaiter.dev/`+version+`","kind":"VerificationPolicy","metadata":{"name":"p","namespace":"team-a"},"spec":{"rules":[{"images":["**"],"action":"Allow"}],"rules.-1.serviceAccount.awsRegion":"x"}}`)
		require.NotEmpty(t, found)
	}
}

func TestANamespaceInAReferenceOfTheClusterIsExplainedInEachVersion(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		found := said(t, "apiVersion: landwaiter.dev/"+version+"\nkind: ClusterStore\nmetadata: {name: s}\nspec: {registries: [r.example.com], imagePullSecrets: [{name: p, namespace: n}]}\n")
		require.Contains(t, strings.Join(found, "\n"), "references have no namespace", version)
	}
}
