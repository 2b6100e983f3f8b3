package resource

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// The facts, by their IDs.
const (
	FactRedisUnreachable    = "RedisUnreachable"
	FactRedisPermissions    = "RedisPermissions"
	FactRedisEviction       = "RedisEviction"
	FactClockSkew           = "ClockSkew"
	FactRegistryUnreachable = "RegistryUnreachable"
	FactReferrersMissing    = "ReferrersMissing"
)

// FactsName is the name of the report with facts that the holder of the lease writes in
// Landwaiter's own namespace.
const FactsName = "landwaiter-process"

const (
	// factsLabel says what the report is about, as [v1beta1.LabelReport] does.
	factsLabel = "check"
	// certificateRule names the result whose message is the certificate that is served.
	certificateRule = "ServingCertificate"
	aboutProperty   = "registry"
	// factsCategory sets these results apart from those about images.
	factsCategory = "Installation"
)

// Fact is one thing that the process looked at.
type Fact struct {
	ID string
	// Bad means that something is wrong, which Message says.
	Bad     bool
	Message string
	// About is the registry, for a fact about one. Only those that ClusterStores list are
	// looked at: a host that a team names is never published.
	About string
}

// Facts are what only the process knows, and publishes.
type Facts struct {
	// Certificate is the one that is served, with its intermediates, in PEM; it is no secret.
	Certificate string
	List        []Fact
}

// Report writes facts as a report about a namespace, Landwaiter's own. It has no time, so that
// it changes with the facts only: the lease says whether somebody still looks.
func (f Facts) Report(namespace string) *unstructured.Unstructured {
	results := []any{}
	add := func(rule, result, message, about string) {
		severity, properties := "info", map[string]any{v1beta1.PropertyResultID: ResultID(FactsName, namespace, rule, about, result)}
		if result == v1beta1.ReportFail {
			severity = "medium"
		}
		if about != "" {
			properties[aboutProperty] = about
		}
		results = append(results, map[string]any{"source": v1beta1.ReportSource, "policy": "installation", "rule": rule, "category": factsCategory, "severity": severity,
			"result": result, "message": message, "properties": properties,
			"resources": []any{map[string]any{"apiVersion": "v1", "kind": v1beta1.ReportKindNamespace, "namespace": namespace, "name": namespace}}})
	}
	if f.Certificate != "" {
		add(certificateRule, v1beta1.ReportPass, f.Certificate, "")
	}
	for _, fact := range f.List {
		result := v1beta1.ReportPass
		if fact.Bad {
			result = v1beta1.ReportFail
		}
		add(fact.ID, result, fact.Message, fact.About)
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": v1beta1.ReportGroup + "/" + v1beta1.ReportVersion, "kind": v1beta1.ReportKind,
		"metadata": map[string]any{"name": FactsName, "labels": map[string]any{v1beta1.LabelReport: factsLabel}},
		"source":   v1beta1.ReportSource, "results": results}}
}

// ResultID returns the ID of a result that parts tell apart from all others in the cluster: 32
// hexadecimal digits.
func ResultID(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// ReadFacts reads a report, nil if it is of another source.
func ReadFacts(object *unstructured.Unstructured) *Facts {
	if source, _, _ := unstructured.NestedString(object.Object, "source"); source != v1beta1.ReportSource {
		return nil
	}
	facts := &Facts{}
	results, _, _ := unstructured.NestedSlice(object.Object, "results")
	for _, entry := range results {
		m, _ := entry.(map[string]any)
		rule, _, _ := unstructured.NestedString(m, "rule")
		message, _, _ := unstructured.NestedString(m, "message")
		result, _, _ := unstructured.NestedString(m, "result")
		if rule == certificateRule {
			facts.Certificate = strings.TrimSpace(message)
			continue
		}
		about, _, _ := unstructured.NestedString(m, "properties", aboutProperty)
		facts.List = append(facts.List, Fact{ID: rule, Bad: result == v1beta1.ReportFail, Message: message, About: about})
	}
	return facts
}
