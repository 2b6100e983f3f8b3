package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Findings about Gatekeeper's flags and its Config.
const (
	CacheTTL             = "CacheTTL"
	ExternalDataDisabled = "ExternalDataDisabled"
	ExemptableNamespaces = "ExemptableNamespaces"
	ServingThreads       = "ServingThreads"
	AuditOff             = "AuditOff"
	ConfigIgnores        = "ConfigIgnores"
)

// manager is a Deployment of Gatekeeper, with its operations.
type manager struct {
	*program
	webhook, audit bool
}

// managers returns the Deployments of Gatekeeper. Without a flag, a Deployment has all
// operations.
func (v *view) managers() []manager {
	var all []manager
	for _, p := range programs(v.Gatekeepers) {
		operations := p.flags("operation")
		if len(operations) == 0 && !strings.Contains(p.Name, "gatekeeper") {
			continue
		}
		does := func(name string) bool {
			return len(operations) == 0 || slices.ContainsFunc(operations, func(f flag) bool { return f.value == name })
		}
		all = append(all, manager{p, does("webhook"), does("audit")})
	}
	return all
}

func gatekeeperFlags(v *view, add func(resource.Finding)) {
	for _, m := range v.managers() {
		if !m.webhook {
			continue
		}
		ttl, err := time.ParseDuration(m.last("external-data-provider-response-cache-ttl", defaultCacheTTL.String()))
		if err == nil && ttl > maxCacheTTL {
			add(resource.Finding{ID: CacheTTL, Severity: resource.Warning, Object: m.ObjectRef,
				Message: fmt.Sprintf("Gatekeeper caches answers for %s", ttl),
				Why:     "for that long, each replica repeats its own answers, whatever a changed policy, a revoked key or a new signature says",
				Command: m.set("external-data-provider-response-cache-ttl", maxCacheTTL.String()),
				Keep:    "Gatekeeper's value externaldataProviderResponseCacheTTL: 10s"})
		}
		if m.last("enable-external-data", "true") == "false" {
			add(resource.Finding{ID: ExternalDataDisabled, Severity: resource.Error, Object: m.ObjectRef,
				Message: "Gatekeeper runs with --enable-external-data=false",
				Why:     "it asks no provider: templates that use one fail", Command: m.set("enable-external-data", "true"),
				Keep: "Gatekeeper's value enableExternalData: true"})
		}
		servingThreads(m, add)
		v.exemptable(m, add)
	}
}

// servingThreads finds that a few pods whose registries do not answer delay all others: each occupies a thread
// until Gatekeeper gives up. Below 1, Gatekeeper has as many threads as processors (Gatekeeper 3.23,
// pkg/webhook/policy.go).
func servingThreads(m manager, add func(resource.Finding)) {
	threads, err := strconv.Atoi(m.last("max-serving-threads", "-1"))
	if err != nil || threads >= minServingThreads {
		return
	}
	atOnce := "as many requests at once as it has processors"
	if threads > 0 {
		atOnce = fmt.Sprintf("at most %d requests at once", threads)
	}
	add(resource.Finding{ID: ServingThreads, Severity: resource.Warning, Object: m.ObjectRef, Message: "Gatekeeper handles " + atOnce,
		Why:     "each pod whose registry does not answer is one of these for about 3 seconds, and pods of other teams wait",
		Command: m.set("max-serving-threads", strconv.Itoa(servingThreadsToSet)),
		Keep:    fmt.Sprintf("Gatekeeper's value maxServingThreads: %d", servingThreadsToSet)})
}

// exemptable finds flags that let namespaces carry the label that exempts them.
func (v *view) exemptable(m manager, add func(resource.Finding)) {
	for _, f := range []struct {
		flag, before, after string
	}{{"exempt-namespace", "", ""}, {"exempt-namespace-prefix", "", "*"}, {"exempt-namespace-suffix", "*", ""}} {
		for _, use := range m.flags(f.flag) {
			if len(v.beyond([]string{f.before + use.value + f.after})) == 0 {
				continue
			}
			add(resource.Finding{ID: ExemptableNamespaces, Severity: resource.Warning, Object: m.ObjectRef,
				Message: fmt.Sprintf("Gatekeeper runs with --%s=%s", f.flag, use.value),
				Why:     "anyone who can label such a namespace can exempt it from Gatekeeper", Command: m.patch(v.unexempted(m, use)...),
				Keep: "Gatekeeper's values controllerManager.exemptNamespaces, exemptNamespacePrefixes and exemptNamespaceSuffixes"})
		}
	}
}

// unexempted returns the operations that replace a flag by one that already exists, so that
// indexes stay and no other namespace becomes exemptable, or remove it if there is none.
func (v *view) unexempted(m manager, use flag) []operation {
	name := use.index
	if use.apart {
		name--
	}
	for _, other := range m.flags("exempt-namespace") {
		if !slices.Contains(v.exempt(), other.value) {
			continue
		}
		if use.apart {
			return append(m.inPlace(name, "--exempt-namespace"), m.inPlace(use.index, other.value)...)
		}
		return m.inPlace(name, "--exempt-namespace="+other.value)
	}
	var operations []operation
	for at := use.index; at >= name; at-- { // the last one first: the others stay where they are
		path := m.path() + "/" + strconv.Itoa(at)
		operations = append(operations, operation{"test", path, m.args[at]}, operation{Op: "remove", Path: path})
	}
	return operations
}

// audit finds that nothing audits running workloads.
func audit(v *view, add func(resource.Finding)) {
	all := v.managers()
	if len(all) == 0 || slices.ContainsFunc(all, func(m manager) bool {
		return m.audit && m.replicas > 0 && m.last("audit-interval", defaultAuditInterval) != "0"
	}) {
		return
	}
	f := resource.Finding{ID: AuditOff, Severity: resource.Warning, Object: all[0].ObjectRef,
		Message: "no Deployment of Gatekeeper runs the audit",
		Why:     "constraints do not list running pods that would be denied",
		Command: "helm upgrade gatekeeper gatekeeper/gatekeeper --namespace " +
			resource.ShellWord(v.gatekeeperNamespace()) + " --reset-then-reuse-values --set disableAudit=false",
		Keep: "Gatekeeper's values disableAudit: false and auditInterval"}
	for _, m := range all {
		switch {
		case m.audit && m.replicas == 0:
			f.Object, f.Command = m.ObjectRef, "kubectl scale "+m.String()+" --replicas=1"
		case m.audit:
			f.Object, f.Command = m.ObjectRef, m.set("audit-interval", defaultAuditInterval)
		}
	}
	add(f)
}

// configs finds namespaces that Gatekeeper's Config excludes.
func configs(v *view, add func(resource.Finding)) {
	for i := range v.Configs {
		c := &v.Configs[i]
		entries, _, _ := unstructured.NestedSlice(c.Object, "spec", "match")
		var left []string
		kept := []any{}
		for _, entry := range entries {
			m, _ := entry.(map[string]any)
			processes, _, _ := unstructured.NestedStringSlice(m, "processes")
			names, _, _ := unstructured.NestedStringSlice(m, "excludedNamespaces")
			beyond := v.beyond(names)
			if len(beyond) == 0 ||
				!slices.ContainsFunc(processes, func(p string) bool { return p == "*" || p == "webhook" || p == "mutation-webhook" }) {
				kept = append(kept, entry)
				continue
			}
			left = append(left, beyond...)
			names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(beyond, name) })
			if len(names) > 0 {
				kept = append(kept, map[string]any{"processes": processes, "excludedNamespaces": names})
			}
		}
		if len(left) > 0 {
			of := target{policy.ObjectRef{Kind: "Config", Namespace: c.GetNamespace(), Name: c.GetName()}, "config.gatekeeper.sh"}
			add(resource.Finding{ID: ConfigIgnores, Severity: resource.Error, Object: of.ObjectRef,
				Message: "it excludes namespace " + named(left) + " from admission", Why: "every image is admitted there",
				Command: of.patch(operation{"replace", "/spec/match", kept}), Keep: "spec.match of the Config"})
		}
	}
}
