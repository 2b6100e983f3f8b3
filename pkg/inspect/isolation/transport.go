package isolation

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// readable are the resources that a run may read. Secrets are not among them.
func readable() []string {
	return []string{"tenants", "namespaces", "rolebindings", "networkpolicies", "resourcequotas", "serviceaccounts", "configmaps", "kustomizations",
		"validatingadmissionpolicies", "validatingadmissionpolicybindings"}
}

// dryRunOnly refuses, before it leaves the machine, every request that could change
// something or read what a run has no use for.
type dryRunOnly struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (d dryRunOnly) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := harmless(r); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // nothing was read of it
		}
		return nil, fmt.Errorf("refused to send %s %s: %w", r.Method, r.URL.Path, err)
	}
	return d.next.RoundTrip(r)
}

// harmless returns an error unless a request is a dry run or reads a readable resource.
func harmless(r *http.Request) error {
	query := r.URL.Query()
	if r.Method == http.MethodGet {
		if query.Has("watch") || !slices.Contains(readable(), listed(r.URL.Path)) {
			return fmt.Errorf("it is no list of %s", strings.Join(readable(), ", "))
		}
		return nil
	}
	if !slices.Equal(query["dryRun"], []string{metav1.DryRunAll}) {
		return fmt.Errorf("it is no dry run")
	}
	// The options in the body of a deletion win over those of the URL.
	if r.Method == http.MethodDelete && r.Body != nil && r.Body != http.NoBody {
		return fmt.Errorf("it is a deletion with options in its body")
	}
	return nil
}

// listed returns the resource that a URL lists, "" if it asks for anything else: one
// object, a subresource or a proxy.
func listed(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	version := map[string]int{"api": 2, "apis": 3}[parts[0]] // where the version ends
	if version == 0 || len(parts) <= version {
		return ""
	}
	parts = parts[version:]
	if len(parts) == 3 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	if len(parts) != 1 {
		return ""
	}
	return parts[0]
}
