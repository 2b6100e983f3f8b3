package isolation

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// refusing is an API server with one team and some accounts of kube-system. Permissions refuse
// everything there but what powerful does.
func refusing(t *testing.T, powerful string, accounts ...string) *rest.Config {
	t.Helper()
	lists := map[string][]any{
		"/apis/landwaiter.dev/v1beta1/tenants": {map[string]any{"metadata": map[string]any{"name": "iris"}, "spec": map[string]any{"homeNamespace": "iris"}}},
		"/api/v1/namespaces":                   {map[string]any{"metadata": map[string]any{"name": "iris", "labels": map[string]any{v1beta1.LabelTenant: "iris"}}}},
	}
	for _, name := range accounts {
		const path = "/api/v1/namespaces/kube-system/serviceaccounts"
		lists[path] = append(lists[path], map[string]any{"metadata": map[string]any{"name": name}})
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		who := r.Header.Get("Impersonate-User")
		var body any = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"}
		switch {
		case r.Method == http.MethodGet:
			body = map[string]any{"kind": "List", "apiVersion": "v1", "items": append([]any{}, lists[r.URL.Path]...)}
		case strings.HasSuffix(r.URL.Path, "reviews"):
			body = map[string]any{"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "status": map[string]any{"allowed": who == powerful}}
		case who != powerful:
			w.WriteHeader(http.StatusForbidden)
			body = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": "Forbidden",
				"message": fmt.Sprintf("namespaces %q is forbidden: User %q cannot %s resource \"namespaces\"", "iris", who, strings.ToLower(r.Method))}
		}
		if err := json.NewEncoder(w).Encode(body); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

// Where kube-controller-manager runs without --use-service-account-credentials, no controller
// is who its ServiceAccount would be, and the permissions of that account say nothing.
func TestControllersAreTriedAsTheyRun(t *testing.T) {
	const shared, own = "system:kube-controller-manager", "system:serviceaccount:kube-system:generic-garbage-collector"
	for name, c := range map[string]struct {
		powerful string
		accounts []string
		who      string
		outcome  Outcome
		fix      string
	}{
		"with accounts of their own": {own, []string{"default", "generic-garbage-collector"}, "account ServiceAccount kube-system/generic-garbage-collector",
			NotHeld, "guardrail"},
		"another controller has one": {own, []string{"validatingadmissionpolicy-status-controller"},
			"account ServiceAccount kube-system/generic-garbage-collector", NotHeld, "guardrail"},
		"all as one, with all permissions": {shared, []string{"default"}, "account User system:kube-controller-manager", NotHeld,
			"--use-service-account-credentials=true"},
		"all as one, and it is not known who": {"nobody", []string{"default"}, "account User system:kube-controller-manager", NotTried,
			"--use-service-account-credentials=true"},
	} {
		t.Run(name, func(t *testing.T) {
			results, err := Run(t.Context(), refusing(t, c.powerful, c.accounts...), Options{})
			require.NoError(t, err)
			tried := 0
			for _, r := range results {
				if r.Case != "controller-namespace-deletion" {
					continue
				}
				tried++
				require.Equal(t, c.who, r.Who)
				require.Equal(t, c.outcome, r.Outcome, r.Why)
				require.Contains(t, r.Fix, c.fix)
			}
			require.Equal(t, 1, tried)
		})
	}
}
