package resource

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// The IDs of facts.
const (
	FactRedisUnreachable    = "RedisUnreachable"
	FactRedisPermissions    = "RedisPermissions"
	FactRedisEviction       = "RedisEviction"
	FactClockSkew           = "ClockSkew"
	FactRegistryUnreachable = "RegistryUnreachable"
	FactReferrersMissing    = "ReferrersMissing"
)

// FactsName is the name of the Report with facts that the lease holder writes in Landwaiter's
// own namespace.
const FactsName = "landwaiter-process"

const (
	// factsLabel says what the report is about, as [v1beta1.LabelReport] does.
	factsLabel = "check"
	// certificateRule is the name of the result whose message is the serving certificate.
	certificateRule = "ServingCertificate"
	aboutProperty   = "registry"
	// factsCategory distinguishes these results from results about images.
	factsCategory = "Installation"
)

// Fact is one observation of the process.
type Fact struct {
	ID string
	// Bad means that something is wrong; Message says what.
	Bad     bool
	Message string
	// About is the registry, for a fact about one. Only registries of ClusterStores are checked:
	// a team's hosts are never published.
	About string
}

// Facts are published by the process, because only it knows them.
type Facts struct {
	// Certificate is the serving certificate, with its intermediates, in PEM; it is not secret.
	Certificate string
	List        []Fact
}

// Report writes facts as a report about Landwaiter's own namespace. It has no time, so that it
// only changes with the facts: the lease shows whether a process still updates it.
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
		results = append(results,
			map[string]any{"source": v1beta1.ReportSource, "policy": "installation", "rule": rule, "category": factsCategory, "severity": severity,
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
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": v1beta1.ReportGroup + "/" + v1beta1.ReportVersion,
		"kind":     v1beta1.ReportKind,
		"metadata": map[string]any{"name": FactsName, "labels": map[string]any{v1beta1.LabelReport: factsLabel}},
		"source":   v1beta1.ReportSource, "results": results}}
}

// ResultID returns the ID of a result from parts that identify it in the cluster: 32
// hexadecimal digits.
func ResultID(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// ReadFacts reads a report, nil if it has another source.
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
