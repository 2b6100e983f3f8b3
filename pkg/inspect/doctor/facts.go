package doctor

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// Findings about what only the process knows.
const (
	RedisUnreachable    ID = "RedisUnreachable"
	RedisPermissions    ID = "RedisPermissions"
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
	// certificateRule names the result whose message is the certificate that is served.
	certificateRule = "ServingCertificate"
	aboutProperty   = "registry"
	resultPass      = "pass"
	resultFail      = "fail"
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
	// About is the registry, for a fact about one. Only those that ClusterStores list are
	// looked at: a host that a team names is never published.
	About string
}

// Facts are what the process published.
type Facts struct {
	// Certificate is the one that is served, in PEM; it is no secret.
	Certificate string
	List        []Fact
}

// factRow says what a fact means that is bad.
type factRow struct {
	id       ID
	severity Severity
	why      string
	command  func(*view, Fact) string
	keep     string
}

// redisCLI returns a command for an administrator of Redis, whose URL is in a variable: no
// Secret is read.
func redisCLI(line string) func(*view, Fact) string {
	return func(*view, Fact) string { return `redis-cli -e -u "$REDIS_URL" ` + line }
}

func factRows() []factRow {
	return []factRow{
		{RedisUnreachable, Warning, "replicas share no verdicts, so each verifies alone: answers take longer", restartRedis, "the Secret with the URL of Redis, and the network to it"},
		{RedisPermissions, Warning, "what the user may not do fails each time, and the cache helps less", redisCLI(`ACL SETUSER "$REDIS_USER" '~landwaiter:*' +set +getrange +scan +unlink`), "REDIS_USER is the user in Landwaiter's own URL, and REDIS_URL that of an administrator; ACL SAVE keeps it"},
		{RedisEviction, Warning, "a full Redis refuses new entries instead of dropping old ones", redisCLI("CONFIG SET maxmemory-policy allkeys-lru"), "maxmemory-policy allkeys-lru in the configuration of Redis"},
		{ClockSkew, Warning, "signatures, certificates and exceptions end too early or too late", restartServe, "the time service of the node that the pod runs on: restarting moves the pod, or shows that the node is mended"},
		{RegistryUnreachable, Error, "images of this registry are undecided, so pods with them are not admitted", editStore, "the network from Landwaiter's pods, or caBundle and proxy of the ClusterStore"},
	}
}

// restartRedis returns the command for the Redis of the chart; another one is nobody's here.
func restartRedis(v *view, _ Fact) string {
	for _, p := range programs(v.Landwaiters) {
		if p.name == v.fullname()+"-redis" {
			return "kubectl rollout restart " + p.String()
		}
	}
	if v.serve == nil {
		return v.upgrade()
	}
	return "kubectl edit " + v.serve.String()
}

func restartServe(v *view, _ Fact) string {
	if v.serve == nil {
		return v.upgrade()
	}
	return "kubectl rollout restart " + v.serve.String()
}

// editStore returns the command that opens the ClusterStore with the registry.
func editStore(v *view, fact Fact) string {
	for _, o := range v.Resources {
		if store, ok := o.(*v1beta1.ClusterStore); ok && slices.Contains(store.Spec.Registries, fact.About) {
			return targetOf(store).edit()
		}
	}
	return "kubectl get clusterstores.landwaiter.dev"
}

func factChecks() []check {
	var ids []ID
	for _, row := range factRows() {
		ids = append(ids, row.id)
	}
	return []check{{ids, []Source{SourceFacts, SourceLandwaiter, SourceResources, SourceLease}, badFacts}}
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
		found = append(found, Finding{ID: row.id, Severity: row.severity, Object: policy.ObjectRef{Kind: reportKind, Namespace: v.Namespace, Name: FactsName},
			What: fact.Message, Why: row.why, Command: row.command(v, fact), Keep: row.keep})
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
	return []Unchecked{{IDs: ids, Unpublished: true, Why: "the process has not looked at this yet, or has nothing to look at: it has no Redis, or no ClusterStore lists a registry by name"}}
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
		if rule == certificateRule {
			facts.Certificate = strings.TrimSpace(message)
			continue
		}
		about, _, _ := unstructured.NestedString(m, "properties", aboutProperty)
		facts.List = append(facts.List, Fact{ID: ID(rule), Bad: result == resultFail, Message: message, About: about})
	}
	return facts
}
