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
		parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
		last := parts[len(parts)-1]
		named := len(parts) > 1 && slices.Contains(readable(), parts[len(parts)-2])
		if query.Has("watch") || !named && !slices.Contains(readable(), last) {
			return fmt.Errorf("it reads something else than %s", strings.Join(readable(), ", "))
		}
		// namespaces/NAME/RESOURCE ends like a named namespace only if RESOURCE is left out.
		if parts[0] != "api" && parts[0] != "apis" {
			return fmt.Errorf("it is no request for a resource")
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
