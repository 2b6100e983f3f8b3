package live

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

func TestDeletionsAreWrittenAsKubectlTakesThem(t *testing.T) {
	for text, want := range map[string]policy.ObjectRef{
		"Verifier/release":                          {Kind: "Verifier", Namespace: "team-a", Name: "release"},
		"verifiers/release":                         {Kind: "Verifier", Namespace: "team-a", Name: "release"},
		"verifier/team-b/release":                   {Kind: "Verifier", Namespace: "team-b", Name: "release"},
		"clusterverificationpolicy/default":         {Kind: "ClusterVerificationPolicy", Name: "default"},
		"secret/login":                              {Kind: "Secret", Namespace: "team-a", Name: "login"},
		"verifiers.landwaiter.dev/release":          {Kind: "Verifier", Namespace: "team-a", Name: "release"},
		"ClusterVerificationPolicy/team-a/no-scope": {},
		"deployment/web":                            {},
		"verifier":                                  {},
		"verifier/":                                 {},
		"a/b/c/d":                                   {},
	} {
		got, err := ParseDeletion(text, "team-a")
		require.Equal(t, want, got, text)
		require.Equal(t, want == policy.ObjectRef{}, err != nil, text)
	}
	_, err := ParseDeletion("verifier/release", "")
	require.ErrorContains(t, err, "write Verifier/NAMESPACE/release")
}

func TestAReplacedTenantKeepsItsAgeAndANewOneIsYoung(t *testing.T) {
	old := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "old", CreationTimestamp: metav1.NewTime(time.Unix(1000, 0))}}
	again := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "old"}}
	young := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "young"}}
	at := time.Unix(2000, 0)
	change := Change{At: at, Objects: resource.Objects{Resources: []v1beta1.Object{again, young}}}
	after := change.applied(resource.Objects{Resources: []v1beta1.Object{old}})
	require.Len(t, after.Resources, 2)
	for _, object := range after.Resources {
		want := map[string]time.Time{"old": time.Unix(1000, 0), "young": at}[object.GetName()]
		require.True(t, want.Equal(object.GetCreationTimestamp().Time), object.GetName())
	}
	require.True(t, again.CreationTimestamp.IsZero(), "the change itself is not modified")
}

func TestImagesOfFilesAreThoseOfPodsAndWorkloads(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {generateName: job-}\nspec:\n  containers: [{name: a, image: app:v1}, {name: b, image: app:v1}]\n  " +
		"volumes: [{name: v, image: {reference: data:v2}}]\n"
	uses, others, err := FileUses(t.Context(), []string{"-"}, strings.NewReader(pod+"---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"), "team-a")
	require.NoError(t, err)
	require.Equal(t, 1, others)
	require.Equal(t,
		[]Use{{Namespace: "team-a", Image: "app:v1", Owners: []string{"Pod/job-…"}}, {Namespace: "team-a", Image: "data:v2", Owners: []string{"Pod/job-…"}}}, uses)
	for name, c := range map[string]struct{ text, says string }{
		"nothing with an image":           {"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n", "no images"},
		"a namespace that cannot be one":  {strings.Replace(pod, "generateName: job-", "name: p, namespace: Team_A", 1), "metadata.namespace"},
		"a pod that is none":              {strings.Replace(pod, "containers: [", "containers: [7, ", 1), "standard input:1"},
		"aliases that repeat without end": {"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: &a [*a]\n", "standard input"},
		"a list of one kind": {"apiVersion: apps/v1\nkind: DeploymentList\nitems: [{metadata: {name: web}}]\n---\n" + pod,
			"standard input:1: DeploymentList"},
		"a list of pods":             {"apiVersion: v1\nkind: PodList\nmetadata: {}\nitems: []\n---\n" + pod, "kind PodList is not read"},
		"an unknown kind with items": {"apiVersion: example.com/v1\nkind: Any\nmetadata: {name: x}\nitems: [{apiVersion: v1, kind: Pod}]\n---\n" + pod, "Any"},
		"a kind that is read with items": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\nitems: [{apiVersion: v1, kind: Pod}]\n---\n" + pod,
			`unknown field "items"`},
		"a kind of Landwaiter with items": {"apiVersion: landwaiter.dev/v1beta1\nkind: Verifier\nmetadata: {name: x}\nitems: [{apiVersion: v1, kind: Pod}]\n---\n" +
			pod, "Verifier team-a/x: for kubectl, an object with items is a list"},
		"more documents than anybody reads": {strings.Repeat("---\n"+pod, 1001), "more than 1000 documents"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := FileUses(t.Context(), []string{"-"}, strings.NewReader(c.text), "team-a")
			require.ErrorContains(t, err, c.says)
		})
	}
}

func TestAStatusInAFileHidesNoImage(t *testing.T) {
	for name, text := range map[string]string{
		"Pod": "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a, image: app:v1}]}\nstatus: {phase: %s}\n",
		"Job": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: p}\nspec: {template: {spec: {containers: [{name: a, image: app:v1}]}}}\nstatus: " +
			"{completionTime: \"2026-01-01T00:00:00Z\"}\n",
		"in List": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: a, image: app:v1}]}, status: " +
			"{phase: Succeeded}}\n",
	} {
		for _, phase := range []string{"Succeeded", "Failed", "Running"} {
			t.Run(name+" "+phase, func(t *testing.T) {
				uses, _, err := FileUses(t.Context(), []string{"-"}, strings.NewReader(strings.ReplaceAll(text, "%s", phase)), "team-a")
				require.NoError(t, err)
				require.Len(t, uses, 1)
				require.Equal(t, "app:v1", uses[0].Image)
				require.Zero(t, uses[0].Pods, "nothing of a file runs yet")
			})
		}
	}
}
