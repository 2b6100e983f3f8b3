package report

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// finding is the latest verification of an image, with signers and time. The result has no findings.
type finding struct {
	result  verify.Result
	signers string
	at      time.Time
}

// findingOf returns a result in the form of reports, with bounded texts.
func findingOf(result verify.Result, at time.Time) finding {
	f := finding{result: verify.Result{Digest: result.Digest, Verdict: result.Verdict, Exception: result.Exception,
		ExceptionEnds: result.ExceptionEnds, Answered: result.Answered}, signers: signersOf(result.Findings), at: at}
	v := &f.result.Verdict
	v.Reason, v.Contact, v.Warning = policy.Shown(v.Reasons(maxReasonBytes), maxReasonBytes), v.Contacts(maxContactBytes),
		policy.Shown(v.Warning, maxReasonBytes)
	v.Remediation, v.Command = remedyOf(*v)
	v.Others, v.More = nil, 0
	return f
}

// same reports whether a report would be the same for both.
func (f finding) same(other finding) bool {
	a, b := f.result, other.result
	v, w := a.Verdict, b.Verdict
	said := func(v policy.Verdict) policy.Objection { return v.Objections()[0] } // findings have no others
	return said(v) == said(w) && v.Outcome() == w.Outcome() && v.Warning == w.Warning && v.Unverified == w.Unverified &&
		v.Doubtful == w.Doubtful && a.Digest == b.Digest && a.Exception == b.Exception && a.ExceptionEnds.Equal(b.ExceptionEnds) &&
		f.signers == other.signers
}

// bad reports whether a report should say it first.
func (f finding) bad() bool { return !allows(resultOf(f.result)) }

// findings are the findings of one namespace.
type findings struct {
	account verify.Account // that they count against
	images  map[string]finding
	full    bool // some image did not fit
}

// known has the findings of all namespaces, at most maxImages of each account. If there is no
// space, a bad finding replaces a good one.
type known struct {
	mu   sync.Mutex
	of   map[verify.Namespace]*findings
	each map[verify.Account]int
}

func newKnown() *known {
	return &known{of: map[verify.Namespace]*findings{}, each: map[verify.Account]int{}}
}

// set stores a finding, if there is space, and returns the previous one.
func (k *known) set(namespace verify.Namespace, account verify.Account, image string, f finding) (before finding, had bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	own := k.of[namespace]
	if own == nil {
		own = &findings{account: account, images: map[string]finding{}}
		k.of[namespace] = own
	}
	if own.account != account { // another Tenant has the namespace now
		k.count(own.account, -len(own.images))
		k.count(account, len(own.images))
		own.account = account
	}
	if before, had = own.images[image]; !had {
		if k.each[account] >= maxImages && (!f.bad() || !k.evict(account)) {
			own.full = true
			return finding{}, false
		}
		k.count(account, 1)
	}
	if f.result.Answered.IsZero() { // it was cached: a registry answered before
		f.result.Answered = before.result.Answered
	}
	own.images[image] = f
	return before, had
}

// evict makes space for one finding, if it can. Callers hold mu.
func (k *known) evict(account verify.Account) bool {
	for _, own := range k.of {
		if own.account != account {
			continue
		}
		for image, f := range own.images {
			if !f.bad() {
				delete(own.images, image)
				own.full = true
				k.count(account, -1)
				return true
			}
		}
	}
	return false
}

// count adds to the findings of an account. Callers hold mu.
func (k *known) count(account verify.Account, n int) {
	if k.each[account] += n; k.each[account] <= 0 {
		delete(k.each, account)
	}
}

// get returns a copy of the findings of a namespace.
func (k *known) get(namespace verify.Namespace) findings {
	k.mu.Lock()
	defer k.mu.Unlock()
	own := k.of[namespace]
	if own == nil {
		return findings{}
	}
	return findings{account: own.account, images: maps.Clone(own.images), full: own.full}
}

// namespaces returns the namespaces with findings.
func (k *known) namespaces() []verify.Namespace {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Keys(k.of))
}

// keep drops the unwanted findings of a namespace.
func (k *known) keep(namespace verify.Namespace, wanted map[string]bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	own := k.of[namespace]
	if own == nil {
		return
	}
	before := len(own.images)
	maps.DeleteFunc(own.images, func(image string, _ finding) bool { return !wanted[image] })
	k.count(own.account, len(own.images)-before)
	if k.each[own.account] < maxImages {
		own.full = false
	}
	if len(own.images) == 0 && !own.full {
		delete(k.of, namespace)
	}
}

// forget drops a namespace.
func (k *known) forget(namespace verify.Namespace) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if own := k.of[namespace]; own != nil {
		k.count(own.account, -len(own.images))
		delete(k.of, namespace)
	}
}
