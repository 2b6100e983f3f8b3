package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

func TestWhatGatekeeperNeverAsksAboutIsSaidOfOneNamespaceAsOfAll(t *testing.T) {
	constraint := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "constraints.gatekeeper.sh/v1beta1", "kind": "VerifiedImages", "metadata": map[string]any{"name": "all"},
		"spec": map[string]any{"match": map[string]any{"excludedNamespaces": []any{"left"}}, "parameters": map[string]any{"provider": "landwaiter", "exemptImages": []any{"r.example.com/base/*"}}}}}
	state := live.State{Objects: resource.Objects{Namespaces: []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "blue"}}, {ObjectMeta: metav1.ObjectMeta{Name: "left"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "ignored", Labels: map[string]string{v1beta1.LabelGatekeeperIgnore: "true"}}}}}}
	u, err := readUnasked(t.Context(), fake.NewClientBuilder().WithObjects(constraint).Build(), state)
	require.NoError(t, err)
	uses := []live.Use{{Namespace: "blue", Image: "r.example.com/base/a:1"}, {Namespace: "blue", Image: "r.example.com/app:1"}, {Namespace: "left", Image: "r.example.com/app:1"},
		{Namespace: "left", Image: "r.example.com/base/a:1"}, {Namespace: "ignored", Image: "r.example.com/app:1"}}

	var preview, verified strings.Builder
	require.Equal(t, uses[1:2], u.leaveOut(uses, &preview))
	require.Equal(t, "note: Gatekeeper admits images of exemptImages of its constraint without asking Landwaiter, so they are left out: r.example.com/base/a:1\n"+
		"note: Gatekeeper admits every pod, without asking Landwaiter, in exempt namespaces, so they are left out: left, ignored\n", preview.String())
	u.note(uses, &verified)
	require.Equal(t, "note: Gatekeeper admits images of exemptImages of its constraint without asking Landwaiter, whatever their verdict is: r.example.com/base/a:1\n"+
		"note: Gatekeeper admits every pod, without asking Landwaiter, in exempt namespaces, whatever the verdict is: left, ignored\n", verified.String())
	verified.Reset()
	u.note(uses[1:2], &verified)
	require.Empty(t, verified.String())
}
