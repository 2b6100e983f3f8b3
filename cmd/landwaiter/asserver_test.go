package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
)

// runningServe is an API server whose only Deployment runs serve with arguments, or that
// refuses to show it.
func runningServe(t *testing.T, refuses bool, args ...any) *live.Person {
	t.Helper()
	return apiServer(t, refuses, nil, args...)
}

// apiServer is one that also answers reviews of what an account may do: whether it may, nil
// for a person who may not ask.
func apiServer(t *testing.T, refuses bool, may func(review authorizationv1.LocalSubjectAccessReview) bool, args ...any) *live.Person {
	t.Helper()
	group := map[string]any{"name": "apps", "versions": []any{map[string]any{"groupVersion": "apps/v1", "version": "v1"}},
		"preferredVersion": map[string]any{"groupVersion": "apps/v1", "version": "v1"}}
	reviews := map[string]any{"name": "authorization.k8s.io", "versions": []any{map[string]any{"groupVersion": "authorization.k8s.io/v1", "version": "v1"}},
		"preferredVersion": map[string]any{"groupVersion": "authorization.k8s.io/v1", "version": "v1"}}
	answers := map[string]any{
		"/apis/authorization.k8s.io": map[string]any{"kind": "APIGroup", "apiVersion": "v1", "name": "authorization.k8s.io", "versions": reviews["versions"],
			"preferredVersion": reviews["preferredVersion"]},
		"/apis/authorization.k8s.io/v1": map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "authorization.k8s.io/v1",
			"resources": []any{map[string]any{"name": "localsubjectaccessreviews", "singularName": "", "namespaced": true, "kind": "LocalSubjectAccessReview",
				"verbs": []any{"create"}}}},
		"/api":  map[string]any{"kind": "APIVersions", "versions": []any{"v1"}},
		"/apis": map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{group, reviews}},
		"/apis/apps": map[string]any{"kind": "APIGroup", "apiVersion": "v1", "name": "apps", "versions": group["versions"],
			"preferredVersion": group["preferredVersion"]},
		"/apis/apps/v1": map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "apps/v1",
			"resources": []any{map[string]any{"name": "deployments", "singularName": "deployment", "namespaced": true, "kind": "Deployment", "verbs": []any{"list"}}}},
		"/apis/apps/v1/namespaces/landwaiter-system/deployments": map[string]any{"kind": "DeploymentList", "apiVersion": "apps/v1", "items": []any{map[string]any{
			"metadata": map[string]any{"namespace": "landwaiter-system", "name": "landwaiter"},
			"spec": map[string]any{
				"template": map[string]any{"spec": map[string]any{"serviceAccountName": "gatekeepers",
					"containers": []any{map[string]any{"name": "landwaiter", "args": append([]any{"serve"}, args...)}}}}}}}},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, ok := answers[r.URL.Path]
		review := strings.HasSuffix(r.URL.Path, "/localsubjectaccessreviews")
		switch {
		case review && may != nil:
			var asked authorizationv1.LocalSubjectAccessReview
			if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
				t.Error(err)
			}
			asked.Kind, asked.APIVersion, asked.Status.Allowed = "LocalSubjectAccessReview", "authorization.k8s.io/v1", may(asked)
			answer = asked
		case review, refuses && r.URL.Path == "/apis/apps/v1/namespaces/landwaiter-system/deployments":
			w.WriteHeader(http.StatusForbidden)
			answer = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": http.StatusForbidden}
		case !ok:
			w.WriteHeader(http.StatusNotFound)
			answer = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": http.StatusNotFound}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	person, err := live.New(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, schema.Embedded())
	require.NoError(t, err)
	return person
}

func TestExceptionsCountAsOnTheServer(t *testing.T) {
	for name, c := range map[string]struct {
		refuses    bool
		serve      []any
		given      []string
		breakGlass time.Duration
		longest    time.Duration
		forgotten  bool // break-glass is left out, because nobody knows
	}{
		"serve has break-glass": {serve: []any{"--break-glass=4h", "--max-exception=1h"}, breakGlass: 4 * time.Hour, longest: time.Hour},
		"serve has none":        {longest: 90 * 24 * time.Hour},
		"what the person says counts": {serve: []any{"--break-glass=4h", "--max-exception=1h"}, given: []string{"--max-exception=2h", "break-glass=0"},
			longest: 2 * time.Hour},
		"nobody may know":                  {refuses: true, longest: 90 * 24 * time.Hour, forgotten: true},
		"nobody may know, the person does": {refuses: true, given: []string{"--break-glass=2h"}, breakGlass: 2 * time.Hour, longest: 90 * 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			f := serviceFlags{given: c.given, by: newPerson(), installed: types.NamespacedName{Namespace: "landwaiter-system", Name: "landwaiter"}}
			require.NoError(t, f.parseServed())
			opened := map[string]string{v1beta1.AnnotationBreakGlassReason: "OPS-4711"}
			state := live.State{Objects: resource.Objects{Namespaces: []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: opened}}}}}
			person := runningServe(t, c.refuses, c.serve...)
			server, err := f.observe(t.Context(), person)
			require.NoError(t, err)
			require.NoError(t, f.asServer(t.Context(), person, server, &state))
			require.Equal(t, c.breakGlass, f.Exceptions.BreakGlass)
			require.Equal(t, c.longest, f.Exceptions.Longest)
			require.Equal(t, c.forgotten, len(state.Objects.Namespaces[0].Annotations) == 0)
		})
	}
}
