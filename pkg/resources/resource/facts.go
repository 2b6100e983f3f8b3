package resource

import (
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
	// Certificate is the one that is served, in PEM; it is no secret.
	Certificate string
	List        []Fact
}

// Report writes facts as a report. It has no time, so that it changes with the facts only:
// the lease says whether somebody still looks.
func (f Facts) Report() *unstructured.Unstructured {
	results := []any{}
	add := func(rule, result, message, about string) {
		entry := map[string]any{"source": v1beta1.ReportSource, "policy": "installation", "rule": rule, "result": result, "message": message}
		if about != "" {
			entry["properties"] = map[string]any{aboutProperty: about}
		}
		results = append(results, entry)
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
