package resolve

import (
	"fmt"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
)

// shared holds, for each kind, the fingerprint of the cluster's resources that
// namespaces use.
type shared struct {
	verifiers, stores, policies, hosts string
	mandatory                          string // "" if there are none
	// exceptions change no generation: they are not part of a cached verdict.
	exceptions string
	// credentials also changes with the tokens of an identity and with proxies. They change no
	// verdict, but without them no registry answers.
	credentials string
}

// sharedFingerprints returns the fingerprints of the parts of a cluster level that
// namespaces use.
func sharedFingerprints(l *Level) shared {
	hosts := make([]string, 0, len(l.hosts))
	for _, host := range compile.SortedKeys(l.hosts) {
		// Proxies change no verdict.
		hosts = append(hosts, fmt.Sprintf("%s %t %t", host, l.hosts[host].PlainHTTP, l.hosts[host].Private))
	}
	for _, p := range l.patterns {
		hosts = append(hosts, p.Hosts.String())
	}
	var exceptions []string
	for _, e := range EntriesOf[v1beta1.ExceptionSpec](l.Objects) {
		exceptions = append(exceptions, compile.Fingerprint(e.Source, e.Spec, []byte(e.Created.String()), e.Err()))
	}
	mandatory := ""
	if len(l.Mandatory) > 0 {
		mandatory = compile.DigestOf(compile.MapSlice(l.Mandatory, func(p compile.Policy) string { return p.Fingerprint }))
	}
	return shared{
		verifiers:  compile.DigestOf(compile.MapSlice(l.Verifiers, func(v compile.Verifier) string { return v.Fingerprint })),
		stores:     compile.DigestOf(compile.MapSlice(l.stores, func(s compile.Store) string { return s.Fingerprint })),
		policies:   compile.DigestOf(compile.MapSlice(l.Policies, func(p compile.Policy) string { return p.Fingerprint })),
		mandatory:  mandatory,
		hosts:      compile.DigestOf(hosts),
		exceptions: compile.DigestOf(exceptions),

		credentials: compile.DigestOf(compile.MapSlice(l.stores, func(s compile.Store) string { return s.CredentialsHash + s.ProxyHash() })),
	}
}

// using returns the parts of s that v uses. Any Store may list a host that no nearer level
// lists.
func (v *View) using(s shared) shared {
	if s.mandatory == "" && !v.some(func(a *Applicable) bool { return a.from >= v.last() }) {
		s.verifiers = ""
	}
	if !v.some(func(a *Applicable) bool { return a.Deciding.At == v.last() }) {
		s.policies = ""
	}
	return s
}

// fingerprintOf returns the fingerprint of a trust store, "" if it does not exist.
func (l *Level) fingerprintOf(name string) string {
	if t, ok := l.TrustStores[name]; ok {
		return t.Fingerprint
	}
	return ""
}

// usedOf returns the ClusterTrustStores that o names, as in weighed.uses.
func usedOf(o *Objects, cluster *Level) map[string]string {
	var uses map[string]string // most namespaces name none
	for _, e := range EntriesOf[v1beta1.VerifierSpec](o) {
		for _, source := range compile.TrustStoresOf(o.Namespace, e.Spec) {
			if source.Namespace == "" {
				if uses == nil {
					uses = map[string]string{}
				}
				uses[source.Name] = cluster.fingerprintOf(source.Name)
			}
		}
	}
	return uses
}

// generation hashes the effective configuration, and nothing else. So an edit takes effect
// immediately, reverting it restores the cached results, and a change that does not affect
// the namespace keeps its results.
func (s *Snapshot) generation(v *View) string {
	parts := []string{compile.TextOf(v.Broken)}
	list := func(kind string, fingerprints []string) { parts = append(append(parts, kind), fingerprints...) }
	for _, a := range v.applies {
		if a != v.Applicable {
			parts = append(parts, "inherited", fmt.Sprint(a.Deciding.At))
		}
		list("verifiers", compile.MapSlice(a.Verifiers, func(v compile.Verifier) string { return v.Fingerprint }))
		list("stores", compile.MapSlice(a.stores, func(s compile.Store) string { return s.Fingerprint }))
		parts = append(parts, "policies")
		for p := range a.all() {
			parts = append(parts, p.Fingerprint)
		}
	}
	if len(s.cluster.Mandatory) > 0 {
		parts = append(parts, "mandatory", s.cluster.shared.mandatory, s.cluster.shared.verifiers, s.cluster.shared.stores)
	}
	return compile.DigestOf(append(parts, "hosts", s.cluster.shared.hosts))
}

// registryGeneration hashes everything that determines which registries answer, and to whom: Stores with their
// credentials, and the cluster's rules for hosts.
func (s *Snapshot) registryGeneration(stores []compile.Store) string {
	return compile.DigestOf(append([]string{"registries", s.cluster.shared.hosts},
		compile.MapSlice(stores, func(s compile.Store) string { return s.Fingerprint })...))
}

// mandatoryGeneration hashes the inputs of v's mandatory tiers that exceptions do not change. It only
// changes with the mandatory policies, so their verdicts stay cached when the namespace changes.
func (s *Snapshot) mandatoryGeneration(v *View) string {
	shared := s.cluster.shared
	return compile.DigestOf(
		append([]string{"mandatory policies alone", shared.mandatory, shared.verifiers, shared.stores, "hosts", shared.hosts},
			compile.MapSlice(v.stores, func(s compile.Store) string { return s.Fingerprint })...))
}
