package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/judged"
)

func TestWhatGatekeeperNeverAsksAboutIsSaidOfOneNamespaceAsOfAll(t *testing.T) {
	constraint := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "constraints.gatekeeper.sh/v1beta1", "kind": "VerifiedImages",
		"metadata": map[string]any{"name": "all"},
		"spec": map[string]any{"match": map[string]any{"excludedNamespaces": []any{"left"}},
			"parameters": map[string]any{"provider": "landwaiter", "exemptImages": []any{"r.example.com/base/*"}}}}}
	state := live.State{
		Objects: resource.Objects{Namespaces: []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "blue"}}, {ObjectMeta: metav1.ObjectMeta{Name: "left"}},
			{ObjectMeta: metav1.ObjectMeta{Name: "ignored", Labels: map[string]string{v1beta1.LabelGatekeeperIgnore: "true"}}}}}}
	u, err := readUnasked(t.Context(), fake.NewClientBuilder().WithObjects(constraint).Build(), state)
	require.NoError(t, err)
	uses := []live.Use{{Namespace: "blue", Image: "r.example.com/base/a:1"}, {Namespace: "blue", Image: "r.example.com/app:1"},
		{Namespace: "left", Image: "r.example.com/app:1"},
		{Namespace: "left", Image: "r.example.com/base/a:1"}, {Namespace: "ignored", Image: "r.example.com/app:1"}}

	var preview, verified strings.Builder
	require.Equal(t, uses[1:2], u.leaveOut(uses, &preview))
	require.Equal(t, "note: Gatekeeper admits images of exemptImages of its constraint without asking Landwaiter, so they are left out: r.example.com/base/a:1\n"+
		"note: Gatekeeper admits every pod, without asking Landwaiter, in exempt namespaces, so they are left out: left, ignored\n", preview.String())
	u.note(uses, &verified)
	require.Equal(t, "note: Gatekeeper admits images of exemptImages of its constraint without asking Landwaiter, whatever their verdict is: "+
		"r.example.com/base/a:1\n"+
		"note: Gatekeeper admits every pod, without asking Landwaiter, in exempt namespaces, whatever the verdict is: left, ignored\n", verified.String())
	verified.Reset()
	u.note(uses[1:2], &verified)
	require.Empty(t, verified.String())
}

func TestAPreviewSaysWhatWouldBeRefusedAsSoonAsTheConstraintDenies(t *testing.T) {
	u := unasked{actions: map[verify.Namespace]string{"blue": "dryrun", "red": "warn", "green": "deny"}}
	row := func(namespace verify.Namespace, from, to policy.Outcome) live.Row {
		result := func(o policy.Outcome) verify.Result { return verify.Result{Verdict: judged.As(o, policy.Verdict{})} }
		return live.Row{Use: live.Use{Namespace: namespace}, Before: result(from), After: result(to)}
	}
	rows := []live.Row{row("blue", policy.Denied, policy.Denied), row("red", policy.Denied, policy.Denied), row("blue", policy.Denied, policy.Denied),
		row("blue", policy.Allowed, policy.Denied),
		row("green", policy.Denied, policy.Denied), row("unread", policy.Denied, policy.Denied)}
	var said strings.Builder
	u.admitted(rows, &said)
	require.Equal(t, "note: images that are denied already, and would be refused as soon as Gatekeeper's constraint denies: 2 in blue (dryrun), 1 in red (warn)\n",
		said.String())
	said.Reset()
	u.admitted(rows[3:], &said)
	require.Empty(t, said.String())
	many := map[verify.Namespace]string{}
	rows = nil
	for i := range maxAdmitted + 2 {
		name := verify.Namespace(fmt.Sprintf("n%02d", i))
		many[name], rows = "warn", append(rows, row(name, policy.Denied, policy.Denied))
	}
	unasked{actions: many}.admitted(rows, &said)
	require.Contains(t, said.String(), "1 in n09 (warn), and 2 more namespaces\n")
}
