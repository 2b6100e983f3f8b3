package lint

import (
	"encoding/json"
	"fmt"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/landwaiter/landwaiter/pkg/resources/configdir"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// ratifyPage says how to move from Ratify.
const ratifyPage = "docs/compare/ratify.md"

// ratifyKinds returns what replaces the kinds of Ratify.
func ratifyKinds() map[string]string {
	return map[string]string{
		"Verifier": "a ClusterVerifier", "NamespacedVerifier": "a Verifier",
		"Store": "a ClusterStore", "NamespacedStore": "a Store",
		"KeyManagementProvider": "a ClusterTrustStore", "NamespacedKeyManagementProvider": "a TrustStore",
		"CertificateStore": "a TrustStore",
		"Policy":           "a ClusterVerificationPolicy", "NamespacedPolicy": "a VerificationPolicy",
		"Executor": "a ClusterVerifier, a ClusterTrustStore and a ClusterVerificationPolicy",
	}
}

// ofRatify adds a finding about an object of Ratify, whose kinds have the same names as Landwaiter's: without
// it, a file that nothing reads would seem to be in force.
func (c *checker) ofRatify(d configdir.Declaration) {
	var header struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.Unmarshal(d.Foreign, &header); err != nil {
		return
	}
	group, err := runtimeschema.ParseGroupVersion(header.APIVersion)
	if err != nil || group.Group != "config.ratify.deislabs.io" && group.Group != "config.ratify.dev" {
		return
	}
	f := resource.Finding{ID: OfRatify, Severity: resource.Warning,
		Message: fmt.Sprintf("%s is a kind of Ratify (%s), which Landwaiter does not read", header.Kind, group.Group), Fix: "see " + ratifyPage}
	if instead := ratifyKinds()[header.Kind]; instead != "" {
		f.Fix = fmt.Sprintf("write %s of landwaiter.dev/v1beta1 instead: %s has the fields", instead, ratifyPage)
	} else if strings.HasPrefix(header.Kind, "Cluster") {
		f.Fix = fmt.Sprintf("see %s for the cluster-scoped kind", ratifyPage)
	}
	c.add(d, f)
}
