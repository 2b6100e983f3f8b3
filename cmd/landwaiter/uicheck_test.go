package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/pkg/inspect/check"
)

// secretive is an API server with little more than a Provider that nobody may reach, and with reports that nobody may list.
func secretive(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kinds := map[string]string{"validatingwebhookconfigurations": "ValidatingWebhookConfiguration", "providers": "Provider", "reports": "Report",
			"deployments": "Deployment", "verifiedimages": "VerifiedImages"}
		path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
		switch last := path[len(path)-1]; {
		case last == "proxy":
			status(w, http.StatusForbidden, "no")
		case last == "reports":
			status(w, http.StatusForbidden, "no")
		case last == "apis":
			var groups metav1.APIGroupList
			for _, version := range []string{"admissionregistration.k8s.io/v1", "apps/v1", "externaldata.gatekeeper.sh/v1beta1", "constraints.gatekeeper.sh/v1beta1",
				"openreports.io/v1alpha1"} {
				group, number, _ := strings.Cut(version, "/")
				served := metav1.GroupVersionForDiscovery{GroupVersion: version, Version: number}
				groups.Groups = append(groups.Groups, metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{served}, PreferredVersion: served})
			}
			write(w, groups)
		case path[0] == "apis" && len(path) == 3: // discovery
			made := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: path[1] + "/" + path[2]}
			for name, kind := range kinds {
				made.APIResources = append(made.APIResources, metav1.APIResource{Name: name, Kind: kind})
			}
			write(w, made)
		case last == "providers":
			write(w, json.RawMessage(`{"kind":"ProviderList","apiVersion":"externaldata.gatekeeper.sh/v1beta1","items":[{"kind":"Provider","apiVersion":"externaldata.gatekeeper.sh/v1beta1","metadata":{"name":"landwaiter"},"spec":{"url":"https://landwaiter.landwaiter-system.svc:443/v1/verify","timeout":3}}]}`))
		case last == "verifiedimages":
			write(w, json.RawMessage(`{"kind":"VerifiedImagesList","apiVersion":"constraints.gatekeeper.sh/v1beta1","items":[{"kind":"VerifiedImages",`+
				`"apiVersion":"constraints.gatekeeper.sh/v1beta1","metadata":{"name":"all"},"spec":{"parameters":{"provider":"landwaiter"}}}]}`))
		case last == "deployments":
			write(w, json.RawMessage(`{"kind":"DeploymentList","apiVersion":"apps/v1","items":[{"metadata":{"name":"landwaiter"},"spec":{"replicas":1,`+
				`"template":{"spec":{"containers":[{"name":"server","image":"landwaiter-server","args":["serve"]}]}}},"status":{"readyReplicas":1}}]}`))
		default:
			status(w, http.StatusNotFound, "none")
		}
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t,
		os.WriteFile(file, []byte("apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: \""+server.URL+"\"}}]\n"+
			"users: [{name: u, user: {}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"), 0o600))
	return file
}

func write(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}

func status(w http.ResponseWriter, code int32, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(code))
	reason := metav1.StatusReasonForbidden
	if code == http.StatusNotFound {
		reason = metav1.StatusReasonNotFound
	}
	_ = json.NewEncoder(w).
		Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message})
}

func TestThePageChecksAsTheCommandDoesThatTheServerAnswersAndThatRegistriesDo(t *testing.T) {
	by := newPerson()
	file := secretive(t)
	by.KubeConfig = &file
	source, _, err := (&uiFlags{serviceFlags: serviceFlags{by: by}}).source(t.Context())
	require.NoError(t, err)
	checked, err := source.Check(t.Context())
	require.NoError(t, err)
	require.Contains(t, checked.Unchecked, check.NoAnswer+": you cannot get services/proxy https:landwaiter:443 in namespace landwaiter-system")
	require.Contains(t, checked.Unchecked, check.RegistryUnreachable+": you cannot list reports.openreports.io")
}
