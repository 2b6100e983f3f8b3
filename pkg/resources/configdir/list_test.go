package configdir

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// printed is what kubectl get -o yaml prints for objects in flow style.
func printed(objects ...string) string {
	return "apiVersion: v1\nitems:\n- " + strings.Join(objects, "\n- ") + "\nkind: List\nmetadata:\n  resourceVersion: \"\"\n"
}

const (
	listedVerifier = `{apiVersion: landwaiter.dev/v1beta1, kind: Verifier, metadata: {name: v, namespace: team-a}, spec: {type: Cosign, cosign: {keys: ` +
		`{trustStoreRefs: [{name: k}], insecureIgnoreTransparencyLog: true}}}}`
	listedSecret = `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: team-a}, data: {k: aGVsbG8=}}`
	listedPod    = `{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: team-a}}`
)

// asKubectlPrints is an object with all that an API server adds.
const asKubectlPrints = `apiVersion: v1
items:
- apiVersion: landwaiter.dev/v1beta1
  kind: Verifier
  metadata:
    annotations:
      kubectl.kubernetes.io/last-applied-configuration: |
        {"apiVersion":"landwaiter.dev/v1beta1","kind":"Verifier","metadata":{"annotations":{},"name":"v","namespace":"team-a"}}
    creationTimestamp: "2026-11-22T08:00:00Z"
    generation: 2
    managedFields:
    - apiVersion: landwaiter.dev/v1beta1
      fieldsType: FieldsV1
      fieldsV1:
        f:metadata:
          f:annotations:
            .: {}
            f:kubectl.kubernetes.io/last-applied-configuration: {}
        f:status:
          f:conditions:
            .: {}
            k:{"type":"Ready"}:
              .: {}
      manager: kubectl-client-side-apply
      operation: Update
      subresource: status
      time: "2026-11-22T08:00:00Z"
    name: v
    namespace: team-a
    resourceVersion: "1234"
    uid: 5a1f4a2e-5d4c-4f3c-8e57-3f6c1f8f7d11
  spec:
    cosign:
      keys:
        insecureIgnoreTransparencyLog: true
        trustStoreRefs:
        - kind: TrustStore
          name: k
    type: Cosign
  status:
    conditions:
    - lastTransitionTime: "2026-11-22T08:00:00Z"
      message: valid, and everything that it refers to is usable
      observedGeneration: 2
      reason: Valid
      status: "True"
      type: Ready
    observedGeneration: 2
kind: List
metadata:
  resourceVersion: ""
`

func TestReadsWhatKubectlPrints(t *testing.T) {
	typed := func(kind, items string) string {
		return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {resourceVersion: '12'}\nitems: [%s]\n",
			map[bool]string{true: "v1", false: "landwaiter.dev/v1beta1"}[kind == "SecretList"], kind, items)
	}
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"with all that a server adds": {asKubectlPrints, []string{"Verifier team-a/v"}},
		"of several kinds":            {printed(listedVerifier, listedSecret, listedPod), []string{"Secret team-a/s", "Verifier team-a/v"}},
		"in JSON": {`{"kind":"List","apiVersion":"v1","metadata":{},"items":[{"apiVersion":"v1","kind":"Namespace",` +
			`"metadata":{"name":"team-a"}}]}`, []string{"Namespace team-a"}},
		"a list of one kind":          {typed("VerifierList", listedVerifier), []string{"Verifier team-a/v"}},
		"a list of one kind, without": {typed("SecretList", "{metadata: {name: s, namespace: team-a}}"), []string{"Secret team-a/s"}},
		"nothing":                     {"apiVersion: v1\nitems: []\nkind: List\nmetadata:\n  resourceVersion: \"\"\n", nil},
		"null":                        {"apiVersion: v1\nkind: List\nitems:\n", nil},
		"an item that is an alias": {"apiVersion: v1\nkind: List\nitems: [&a " + listedSecret + ", " + listedVerifier + "]\n",
			[]string{"Secret team-a/s", "Verifier team-a/v"}},
		"several lists and an object": {printed(listedVerifier) + "---\n" + printed(listedSecret) + "---\n" + verifier("team-b", "v"),
			[]string{"Secret team-a/s", "Verifier team-a/v", "Verifier team-b/v"}},
		"the same object in two places": {printed(listedVerifier, listedVerifier), []string{"broken Verifier team-a/v"}},
		"an item with an unknown field": {printed(listedSecret, strings.Replace(listedVerifier, "spec", "specs", 1)),
			[]string{"Secret team-a/s", "broken Verifier team-a/v"}},
		"an item with a key twice": {printed(listedSecret, strings.Replace(listedVerifier, "type: Cosign", "type: Cosign, type: Notation", 1)),
			[]string{"Secret team-a/s", "broken Verifier team-a/v"}},
	} {
		t.Run(name, func(t *testing.T) {
			objects, _, err := Load(t.Context(), writeTree(t, files{"x.yaml": c.text}))
			require.NoError(t, err)
			require.ElementsMatch(t, c.want, names(objects))
		})
	}
}

func TestNamesTheItemOfAListThatItCannotRead(t *testing.T) {
	text := "# what kubectl printed\n---\n" + printed(listedSecret, strings.Replace(listedVerifier, "type: Cosign", "type: Cosign, type: Notation", 1))
	_, problems, err := Load(t.Context(), writeTree(t, files{"x.yaml": text}))
	require.NoError(t, err)
	require.Len(t, problems, 1)
	require.Equal(t, `x.yaml, document 1, item 2 (line 6): key "type" already set in map`, problems[0].Message)
}

func TestRefusesListsThatMayHideAnObject(t *testing.T) {
	for name, c := range map[string]struct{ text, message string }{
		"a list in a list":       {printed(listedSecret, "{apiVersion: v1, kind: List, items: []}"), "item 2 (line 4): a List within a list is not read"},
		"a typed list in a list": {printed("{apiVersion: landwaiter.dev/v1beta1, kind: StoreList, items: []}"), "a StoreList within a list is not read"},
		"a list of another group": {"apiVersion: meta.k8s.io/v1\nkind: List\nitems: [" + listedSecret + ", " + listedVerifier + "]",
			"apiVersion meta.k8s.io/v1, kind List is not read, and it has Landwaiter's resources among its items"},
		"a list by another name": {"apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: [" + listedVerifier + "]", "kind ResourceList is not read"},
		"such a list in a list": {printed("{apiVersion: example.com/v1, kind: Bundle, items: [{apiVersion: v1, kind: list, items: [" + listedVerifier + "]}]}"),
			"kind Bundle is not read"},
		"a part of a list":         {"apiVersion: v1\nkind: List\nmetadata: {continue: abc}\nitems: []", "only a part of a list"},
		"the first page of a list": {"apiVersion: v1\nkind: List\nmetadata: {remainingItemCount: 3}\nitems: []", "only a part of a list"},
		"no items":                 {"apiVersion: v1\nkind: List\n", "the field items of this list is missing"},
		"items in the wrong case":  {"apiVersion: v1\nkind: List\nItems: []", `line 3: a list has no field "Items"`},
		"items twice":              {"apiVersion: v1\nkind: List\nitems: []\nitems: []", "line 4: items is given twice"},
		"items that are a mapping": {"apiVersion: v1\nkind: List\nitems: {a: b}", "line 3: items is not a list"},
		"items that are text":      {"apiVersion: v1\nkind: List\nitems: text", "line 3: items is not a list"},
		"an item that is none":     {"apiVersion: v1\nkind: List\nitems: [a]", "item 1 (line 3) of this List is not a mapping"},
		"an item that is null":     {"apiVersion: v1\nkind: List\nitems: [null]", "item 1 (line 3) of this List is not a mapping"},
		"a name twice":             {printed(strings.Replace(listedSecret, "name: s", "name: s, name: t", 1)), "item 1 (line 3): name is given twice"},
		"a kind twice":             {printed(strings.Replace(listedSecret, "kind: Secret", "kind: Secret, kind: Pod", 1)), "kind is given twice"},
		"a merge key in an item":   {printed(strings.Replace(listedSecret, "kind: Secret", "kind: Secret, <<: {a: b}", 1)), "a merge key (<<) is not supported here"},
		"an unknown kind of ours":  {printed(strings.Replace(listedVerifier, "Verifier", "Verifer", 1)), "has no kind Verifer; did you mean Verifier?"},
		"an item without a kind":   {printed("{metadata: {name: x}}"), "apiVersion or kind is missing"},
		"half of a kind": {"apiVersion: v1\nkind: SecretList\nitems: [{kind: Secret, metadata: {name: x, namespace: a}}]",
			"item 1 (line 3): apiVersion or kind is missing"},
		"another kind": {"apiVersion: v1\nkind: SecretList\nitems: [" + listedVerifier + "]",
			"item 1 (line 3): apiVersion landwaiter.dev/v1beta1, kind Verifier in a list of kind Secret"},
		"a key of the list twice": {"apiVersion: v1\nkind: List\nitems: []\nmetadata: {a: b, a: c}", `key "a" already set in map`},
		"too many items":          {"apiVersion: v1\nkind: List\nitems: [" + strings.Repeat("{},", maxItems) + "{}]", "it has 5001 items, the limit is 5000"},
		"too many values":         {"apiVersion: v1\nkind: List\nitems: [" + strings.Repeat(",", maxMarks) + "]", "characters that may begin a value"},
		"a long value many times": {"a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a, ", 8) + "*a]", "bytes, counting what aliases repeat"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Load(t.Context(), writeTree(t, files{"x.yaml": c.text}))
			require.ErrorContains(t, err, "x.yaml, document 1")
			require.ErrorContains(t, err, c.message)
		})
	}
}

func TestIgnoresOtherObjectsThatHaveItems(t *testing.T) {
	objects, problems, err := Load(t.Context(),
		writeTree(t,
			files{"x.yaml": "apiVersion: example.com/v1\nkind: Menu\nitems: [soup, {apiVersion: 1}, " + listedSecret + "]\n---\n" + printed(listedVerifier)}))
	require.NoError(t, err)
	require.Len(t, problems, 1)
	require.True(t, problems[0].IsIgnored())
	require.Equal(t, []string{"Verifier team-a/v"}, names(objects))
}

func TestReadsWhatKubectlPrintsOfAnEntireCluster(t *testing.T) {
	_, rest, _ := strings.Cut(asKubectlPrints, "items:\n")
	one, _, _ := strings.Cut(rest, "kind: List")
	b := &strings.Builder{}
	b.WriteString("apiVersion: v1\nitems:\n")
	count := 0
	const parts = 32 // of the largest file
	for ; b.Len()+len(one) < maxFileBytes/parts; count++ {
		b.WriteString(strings.ReplaceAll(one, "name: v\n", fmt.Sprintf("name: v%d\n", count)))
	}
	b.WriteString("kind: List\n")
	objects, problems, err := Load(t.Context(), writeTree(t, files{"x.yaml": b.String()}))
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Greater(t, count, 50)
	require.Less(t, marks([]byte(b.String()))*parts, maxMarks)
	require.Less(t, count*parts, maxItems)
	require.Len(t, objects.Resources, count)
}

func TestNeverQuotesSecretsInLists(t *testing.T) {
	for _, content := range []string{"stringData: {password: 48151623}", "data: {password: 48151623!}", "data: {password: *48151623}",
		"data: {password: [48151623]}"} {
		_, problems, err := Load(t.Context(),
			writeTree(t, files{"x.yaml": printed("{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: a}, " + content + "}")}))
		text := fmt.Sprint(problems, err)
		require.NotContains(t, text, "48151623")
		require.Contains(t, text, "x.yaml")
	}
}
