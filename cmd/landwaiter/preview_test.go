package main

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/judged"
)

func TestAPreviewSaysWhereNobodyLooked(t *testing.T) {
	everywhere := &v1beta1.ClusterVerificationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "strict"}}
	elsewhere := &v1beta1.VerificationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "team-b", Name: "strict"}}
	one, all := live.Scope{Namespaces: []verify.Namespace{"team-a"}}, live.Scope{All: true}
	const cluster = "note: the change has cluster-scoped resources, but preview only covered namespace team-a; use -A for the whole cluster\n"
	for name, c := range map[string]struct {
		change live.Change
		scope  live.Scope
		says   string
	}{
		"a cluster-scoped resource": {live.Change{Objects: resource.Objects{Resources: []v1beta1.Object{everywhere}}}, one, cluster},
		"one that cannot be read": {
			live.Change{Objects: resource.Objects{Broken: []resource.Broken{{Source: policy.ObjectRef{Kind: "Tenant", Name: "x"}}}}}, one, cluster},
		"one that is deleted": {live.Change{Delete: []policy.ObjectRef{{Kind: "ClusterVerifier", Name: "x"}}}, one, cluster},
		"the whole cluster":   {live.Change{Objects: resource.Objects{Resources: []v1beta1.Object{everywhere}}}, all, ""},
		"a resource of another namespace": {live.Change{Objects: resource.Objects{Resources: []v1beta1.Object{elsewhere}}}, one,
			"note: the change has objects of namespace team-b, where no image was verified; use -n team-b or -A\n"},
		"an identity that nobody has": {live.Change{Objects: resource.Objects{Resources: []v1beta1.Object{keyless("acme/.*")}}}, one,
			"IdentityMatchesNobody"},
		"an identity that somebody has": {live.Change{Objects: resource.Objects{Resources: []v1beta1.Object{keyless(`https://github\.com/acme/app/\.github/workflows/release\.yml@refs/tags/v.*`)}}}, one, ""},
		"one of another namespace, is deleted": {live.Change{Delete: []policy.ObjectRef{{Kind: "Verifier", Namespace: "team-b", Name: "x"}}}, one,
			"note: the change has objects of namespace team-b, where no image was verified; use -n team-b or -A\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var said strings.Builder
			(&look{stderr: &said, words: flagWords(), change: c.change, looked: c.scope.Namespaces}).warn(c.scope)
			if c.says == string(policy.ReasonIdentityMatchesNobody) {
				require.Contains(t, said.String(), "warning: Verifier team-a/release: IdentityMatchesNobody: spec.cosign.keyless.identities[0]: no signer "+
					"has this identity")
				return
			}
			require.Equal(t, c.says, said.String())
		})
	}
}

// keyless returns a Verifier of one identity at GitHub.
func keyless(expression string) *v1beta1.Verifier {
	v := &v1beta1.Verifier{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "release"}}
	v.Spec = v1beta1.VerifierSpec{Type: v1beta1.VerifierTypeCosign, Cosign: &v1beta1.CosignVerifier{}}
	v.Spec.Cosign.Keyless = &v1beta1.Keyless{Identities: []v1beta1.Identity{{Issuer: "https://token.actions.githubusercontent.com", SubjectRegExp: expression}}}
	return v
}

func TestCheckOfAFileFillsInTheNamespace(t *testing.T) {
	checked := func(namespace string) string {
		by := newPerson()
		*by.Namespace = namespace
		cmd := newCheck(by)
		var out strings.Builder
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetIn(strings.NewReader("apiVersion: landwaiter.dev/v1beta1\nkind: VerificationPolicy\nmetadata: {name: p}\nspec: {defaultAction: Allow}\n"))
		cmd.SetArgs([]string{"-"})
		_ = cmd.Execute()
		return out.String()
	}
	require.Contains(t, checked(""), "namespace")
	require.NotEqual(t, checked(""), checked("team-a"))
	require.Contains(t, checked("Team/A"), "--namespace")
}

func TestAPreviewOfEmptyInputSaysThatItIsEmpty(t *testing.T) {
	flags := &previewFlags{}
	flags.service.files = []string{"-"}
	for input, want := range map[string]string{
		"": "standard input has no object: the command before the pipe failed", "---\n# nothing\n": "standard input has no object",
		"{apiVersion: v1, kind: Service, metadata: {name: x}}": "(objects of other kinds: 1)",
	} {
		_, err := flags.change(t.Context(), strings.NewReader(input), io.Discard, "team-a")
		require.ErrorContains(t, err, want, input)
	}
}

func TestAPreviewOfNothingSaysThatNothingWasJudged(t *testing.T) {
	var nothing, unread, same strings.Builder
	require.NoError(t, show(&nothing, printablePreview(nil, nil, false)))
	require.Equal(t, "No image was verified: none runs there.\n", nothing.String())
	require.NoError(t, show(&unread, printablePreview(nil, []live.Right{{}}, false)))
	require.True(t, strings.HasPrefix(unread.String(), "No image was verified.\n"), "whether an image runs there is not known: %s", unread.String())
	row := live.Row{Use: live.Use{Namespace: "team-a", Image: "r/x"}}
	row.Before.Verdict, row.After.Verdict = judged.As(policy.Allowed, row.Before.Verdict), judged.As(policy.Allowed, row.After.Verdict)
	require.NoError(t, show(&same, printablePreview([]live.Row{row}, nil, false)))
	require.Contains(t, same.String(), "No verdict would change.\n")

	row.Lost = []live.Loss{{Policy: policy.ObjectRef{Kind: "VerificationPolicy", Namespace: "team-a", Name: "own"}, Rule: 2}}
	var lost strings.Builder
	require.NoError(t, show(&lost, printablePreview([]live.Row{row}, nil, false)))
	require.Contains(t, lost.String(), "No verdict would change.\n\n1 image is no longer judged by rule 2 of VerificationPolicy team-a/own, which matched "+
		"it: team-a r/x\n")
}
