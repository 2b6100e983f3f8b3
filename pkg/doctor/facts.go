package doctor

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/pkg/policy"
)

// Findings about what only the process knows.
const (
	RedisUnreachable    ID = "RedisUnreachable"
	RedisRights         ID = "RedisRights"
	RedisEviction       ID = "RedisEviction"
	ClockSkew           ID = "ClockSkew"
	RegistryUnreachable ID = "RegistryUnreachable"
)

// The report that the holder of the lease writes in Landwaiter's own namespace.
const (
	FactsName  = "landwaiter-process"
	FactsLabel = "doctor"
	reportKind = "Report"
	// factsSource is the source of the report; those of others are ignored.
	factsSource = "landwaiter"
	// authorityRule names the result whose message is the fingerprint of the authority.
	authorityRule = "Authority"
	resultPass    = "pass"
	resultFail    = "fail"
)

// reportVersion is the version of the kind of reports.
func reportVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: "openreports.io", Version: "v1alpha1"}
}

// Fact is one thing that the process looked at.
type Fact struct {
	ID ID
	// Bad means that something is wrong, which Message says.
	Bad     bool
	Message string
}

// Facts are what the process published.
type Facts struct {
	// Authority is the fingerprint of the authority of the certificate that is served.
	Authority string
	List      []Fact
}

// x509Certificate shortens a signature.
type x509Certificate = x509.Certificate

// Fingerprint names a certificate.
func Fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// factRow says what a fact means that is bad.
type factRow struct {
	id       ID
	severity Severity
	why      string
	command  func(*view) string
	keep     string
}

func factRows() []factRow {
	restart := func(v *view) string {
		if v.serve == nil {
			return v.upgrade()
		}
		return "kubectl rollout restart " + v.serve.String()
	}
	return []factRow{
		{RedisUnreachable, Warning, "replicas share no verdicts, so each verifies alone: denials and admissions take longer", restart, "the Secret with the URL of Redis, and the network to it"},
		{RedisRights, Warning, "what the account may not do fails for each image, and the cache helps nobody", restart, "the account's rules in Redis: landwaiter tenant redis-acl prints those of a team"},
		{RedisEviction, Warning, "a full Redis refuses new entries instead of dropping old ones", restart, "maxmemory-policy allkeys-lru in Redis"},
		{ClockSkew, Warning, "signatures, certificates and exceptions end too early or too late", restart, "the time service of the nodes"},
		{RegistryUnreachable, Error, "images of this registry are undecided, so pods with them are not admitted", restart, "the network from Landwaiter's pods, a proxy, or caBundle of the ClusterStore"},
	}
}

func factChecks() []check {
	var ids []ID
	for _, row := range factRows() {
		ids = append(ids, row.id)
	}
	return []check{{ids, []Source{SourceFacts}, badFacts}}
}

func badFacts(v *view) []Finding {
	if v.Facts == nil || !v.leaseHeld() {
		return nil
	}
	var found []Finding
	for _, fact := range v.Facts.List {
		at := slices.IndexFunc(factRows(), func(r factRow) bool { return r.id == fact.ID })
		if at < 0 || !fact.Bad {
			continue
		}
		row := factRows()[at]
		found = append(found, Finding{ID: row.id, Severity: row.severity, Object: policy.ObjectRef{Kind: reportKind, Namespace: v.Inventory.Namespace, Name: FactsName},
			What: fact.Message, Why: row.why, Command: row.command(v), Keep: row.keep})
	}
	return found
}

// unknownFacts says which facts nobody published. Without them nothing is known, which is
// not the same as that all is well.
func unknownFacts(v *view) []Unchecked {
	if _, unread := v.Unread[SourceFacts]; unread {
		return nil
	}
	var ids []ID
	for _, row := range factRows() {
		if v.Facts == nil || !v.leaseHeld() || !slices.ContainsFunc(v.Facts.List, func(f Fact) bool { return f.ID == row.id }) {
			ids = append(ids, row.id)
		}
	}
	switch {
	case len(ids) == 0:
		return nil
	case v.Facts == nil:
		return []Unchecked{{IDs: ids, Unpublished: true, Why: "Landwaiter publishes what only the process knows with --reports (the chart's reports.enabled), and has not"}}
	case !v.leaseHeld():
		return []Unchecked{{IDs: ids, Unpublished: true, Why: "what the process published is old: nobody holds the lease"}}
	}
	return []Unchecked{{IDs: ids, Unpublished: true, Why: "the process has not looked at this yet, or needs not: it has no Redis, or no ClusterStore lists a registry by name"}}
}

// facts reads the report of the process.
func (r *reader) facts() {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(reportVersion().WithKind(reportKind))
	if err := r.client.Get(r.ctx, client.ObjectKey{Namespace: r.into.Namespace, Name: FactsName}, object); err != nil {
		r.not(SourceFacts, "get reports.openreports.io", r.into.Namespace, err)
		return
	}
	r.into.Facts = factsOf(object)
}

// factsOf reads a report. One of another source is nobody's.
func factsOf(object *unstructured.Unstructured) *Facts {
	if source, _, _ := unstructured.NestedString(object.Object, "source"); source != factsSource {
		return nil
	}
	facts := &Facts{}
	results, _, _ := unstructured.NestedSlice(object.Object, "results")
	for _, entry := range results {
		m, _ := entry.(map[string]any)
		rule, _, _ := unstructured.NestedString(m, "rule")
		message, _, _ := unstructured.NestedString(m, "message")
		result, _, _ := unstructured.NestedString(m, "result")
		if rule == authorityRule {
			facts.Authority = strings.TrimSpace(message)
			continue
		}
		facts.List = append(facts.List, Fact{ID: ID(rule), Bad: result == resultFail, Message: message})
	}
	return facts
}
