package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/server/provider"
)

// registryOf returns the registry of an undecided image, if the registry is the cause.
func registryOf(k *provider.KeyObservation) string {
	if k.Cause == policy.ReasonUnreachable {
		return k.Reference.Host
	}
	return v1beta1.RegistriesNone
}

// key is what a note counts: undecided images of one registry, or denials of one image.
func (n *note) key() string { return cmp.Or(n.Registry, n.Image) }

// other returns the note for images without their own counter.
func (n *note) other() note {
	if n.Registry != "" {
		return note{Registry: v1beta1.RegistriesOther, Reason: n.Reason, TraceID: n.TraceID}
	}
	return note{TraceID: n.TraceID}
}

// undecided returns what the Event of a registry says.
func (n *note) undecided() string {
	about := v1beta1.ImagesOf(n.Registry)
	text := fmt.Sprintf("Landwaiter could not decide about %s %s since %s: %s", about, times(n.Count-n.Earlier), stamp(n.First), n.Reason)
	if !n.Answered.IsZero() {
		text = fmt.Sprintf("Landwaiter decides about %s again since %s. It could not %s from %s to %s: %s", about, stamp(n.Answered),
			times(n.Count-n.Earlier), stamp(n.First), stamp(n.Last), n.Reason)
	}
	if n.Image != "" {
		text += ". The last image was " + n.Image
	}
	if n.Contact != "" && n.Answered.IsZero() {
		text += ". Ask: " + n.Contact
	}
	if n.Remediation != "" && n.Answered.IsZero() {
		text += ". To fix: " + n.Remediation
	}
	return policy.Shown(text, maxMessageBytes-len(decides)-2) + "; " + decides
}

// stale reports whether the API server lacks a part of a counter.
func (p *pending) stale() bool { return p.Count > p.written || !p.Answered.Equal(p.told) }

// answered records that Landwaiter decides about images of a registry again. Almost every request
// finds a cached verdict, and then takes no lock.
func (r *Reporter) answered(k *provider.KeyObservation) {
	if k.Undecided() || k.Result == nil {
		return
	}
	r.looked(k.Namespace, k.Reference, k.Result)
}

// looked records that a registry answered a request for evidence. The leader knows about outages at the
// other replicas.
func (r *Reporter) looked(namespace verify.Namespace, ref image.Reference, result *verify.Result) {
	if !result.Decided() || result.Answered.IsZero() { // a decision from kept evidence says nothing about the registry
		return
	}
	if r.registries.total.Load() > 0 {
		r.registries.answer(namespace, ref, result.Answered)
	}
	if t := r.leading.Load(); t != nil {
		t.answer(namespace, ref, result.Answered)
	}
}

// answer records the same in reports. An answer before the last refusal is ignored.
func (t *term) answer(namespace verify.Namespace, ref image.Reference, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.spaces[namespace]
	if s == nil {
		return
	}
	at = at.UTC().Truncate(time.Second)
	for _, registry := range []string{ref.Host, v1beta1.RegistriesNone} {
		d := s.registries[registry]
		if d != nil && d.answered.Before(d.last) && !at.Before(d.last) && (registry == ref.Host || d.image == ref.String()) {
			d.answered = at
			t.mark(namespace, soon)
		}
	}
}

// answer records that an image is decided: its registry answers again, as does everything else that
// kept the image undecided.
func (n *notes) answer(namespace verify.Namespace, ref image.Reference, at time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, registry := range []string{ref.Host, v1beta1.RegistriesNone} {
		p := n.of[namespace][registry]
		if p != nil && p.Answered.IsZero() && !at.Before(p.Last) && (registry == ref.Host || p.Image == ref.String()) {
			p.Answered = at
		}
	}
}

// hurry makes everything due: this replica ends.
func (n *notes) hurry() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, own := range n.of {
		for _, p := range own {
			p.after = time.Time{}
		}
	}
}

// foldRegistry takes over the note of a registry, as fold does.
func (s *space) foldRegistry(n note, now time.Time) (changed, fresh bool) {
	d := s.registries[n.Registry]
	if d == nil {
		if now.Sub(n.Last) > keepRegistry {
			return false, false
		}
		d = &denial{}
	}
	fresh = d.last.IsZero()
	changed = d.foldOutage(n, now)
	if (changed || !fresh) && n.Answered.After(d.answered) {
		d.answered, changed = n.Answered, true
	}
	if !changed {
		return false, false
	}
	s.registries[n.Registry] = d
	s.boundRegistries()
	return true, fresh
}

// foldOutage is fold for a registry. A refusal after the registry answered begins another outage, with its own count,
// time and reason.
func (d *denial) foldOutage(n note, now time.Time) bool {
	first, last, total := d.first, d.last, d.total()
	_, known := d.counters[n.Counter]
	if !d.fold(n, now) {
		return false
	}
	if !known {
		d.before += n.Earlier
	}
	if !n.Ended.Before(last) && n.Ended.After(d.answered) {
		d.answered = n.Ended // no note said so in time
	}
	switch {
	case last.IsZero():
	case !d.answered.Before(last) && n.Last.After(d.answered): // another outage
		d.first = n.First
		if d.before = total; !known {
			d.before += n.Earlier
		}
		if !n.First.After(d.answered) { // this replica did not see the answer
			d.first = n.Last
		}
	case n.Last.Before(d.answered) && d.answered.Before(last): // a late note about an earlier outage
		d.first, d.before = first, d.before+d.total()-total
		if !known {
			d.before -= n.Earlier
		}
	case d.first.Before(d.answered) && !first.Before(d.answered):
		d.first = first
	}
	return true
}

// boundRegistries drops the registries with the oldest failures if there are too many.
func (s *space) boundRegistries() {
	for len(s.registries) > maxRegistries {
		delete(s.registries, slices.MinFunc(slices.Collect(maps.Keys(s.registries)), func(a, b string) int {
			return cmp.Or(s.registries[a].last.Compare(s.registries[b].last), cmp.Compare(a, b))
		}))
	}
}

// registryResults returns a result for each registry with undecided images, the latest one first.
func (s *space) registryResults(namespace verify.Namespace, having having) []openreports.ReportResult {
	names := slices.SortedFunc(maps.Keys(s.registries), func(a, b string) int {
		return cmp.Or(s.registries[b].last.Compare(s.registries[a].last), cmp.Compare(a, b))
	})
	results := make([]openreports.ReportResult, len(names))
	for i, name := range names {
		d := s.registries[name]
		of := having(d.image)
		matched, answered := "", ""
		if len(of) > 0 {
			matched = matchedBy
		}
		if !d.answered.Before(d.last) {
			answered = stamp(d.answered)
		}
		remedy := d.remedy
		if remedy == policy.RemedyNoSuchHost && s.hasAnswered(name, d) {
			remedy = policy.RemedyDNS // an outage of DNS
		}
		results[i] = newResult(v1beta1.ReportUndecided, v1beta1.ReportError, d.policy, d.reason, d.last, of, namespace, map[string]string{
			v1beta1.PropertyRegistry: name, v1beta1.PropertyAnswered: answered, v1beta1.PropertyImage: d.image, v1beta1.PropertyDigest: d.digest,
			v1beta1.PropertyRemedy: string(remedy), v1beta1.PropertyRemediation: d.remediation, v1beta1.PropertyCommand: d.command,
			v1beta1.PropertyContact: d.contact, v1beta1.PropertyCount: strconv.Itoa(d.count()), v1beta1.PropertyFirst: stamp(d.first),
			v1beta1.PropertyLast:    stamp(d.last),
			v1beta1.PropertyTraceID: d.traceID, v1beta1.PropertyMatched: matched, v1beta1.PropertyNote: decides, v1beta1.PropertyCounters: d.store(),
		})
	}
	return results
}

// hasAnswered reports whether a registry has answered the namespace before: after an outage, or because
// containers with its images run.
func (s *space) hasAnswered(registry string, d *denial) bool {
	if d.before > 0 || !d.answered.IsZero() {
		return true
	}
	for image := range s.images {
		if strings.HasPrefix(image, registry+"/") {
			return true
		}
	}
	return false
}

// loadRegistry reads the last leader's record of a registry.
func (s *space) loadRegistry(name string, d *denial, now time.Time) {
	if now.Sub(d.last) > keepRegistry {
		return
	}
	if known := s.registries[name]; known != nil {
		known.merge(d, now)
		return
	}
	s.registries[name] = d
	s.boundRegistries()
}
