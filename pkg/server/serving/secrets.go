package serving

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/landwaiter/landwaiter/pkg/resources/watch"
)

// Keys of the Secret with the serving certificate, as cert-manager and OPA's cert-controller
// write them.
const (
	authorityKey    = "ca.crt"
	authorityKeyKey = "ca.key"
	certificateKey  = corev1.TLSCertKey
	keyKey          = corev1.TLSPrivateKeyKey
)

// watched is a Secret that is watched.
type watched struct{ *watch.Object }

// errWaiting marks errors of a Secret that does not exist yet, or is not filled: at startup,
// its author may come later.
var errWaiting = errors.New("not there yet")

// waits marks err with errWaiting and keeps its text.
type waits struct{ error }

// Is implements the interface of [errors.Is].
func (w waits) Is(target error) bool { return target == errWaiting }

// onlyWaiting reports whether err, and each error joined in it, is one of waiting.
func onlyWaiting(err error) bool {
	joined, ok := err.(interface{ Unwrap() []error }) // of errors.Join
	if !ok {
		return errors.Is(err, errWaiting)
	}
	for _, e := range joined.Unwrap() {
		if !onlyWaiting(e) {
			return false
		}
	}
	return true
}

// load returns the Secret, nil if it does not exist, or why it is unknown.
func (w watched) load() (*corev1.Secret, error) {
	object, answered, err := w.Content()
	secret, _ := object.(*corev1.Secret)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", w, err)
	case !answered:
		return nil, waits{fmt.Errorf("read %s: the API server has not answered yet", w)}
	}
	return secret, nil
}

// loadWith returns the Secret, which must have values for keys.
func (w watched) loadWith(keys ...string) (*corev1.Secret, error) {
	secret, err := w.load()
	if err != nil {
		return nil, err
	}
	if secret == nil {
		return nil, waits{fmt.Errorf("read %s: it does not exist", w)}
	}
	for _, key := range keys {
		if len(secret.Data[key]) == 0 {
			return nil, waits{fmt.Errorf("read %s: it has no key %s", w, key)}
		}
	}
	return secret, nil
}

// settlingPair reads the serving certificate from a Secret and delays a certificate of
// another CA for a while.
type settlingPair struct {
	secret watched
	settle time.Duration
	trusts func(*tls.Certificate) bool // nil: every certificate is served immediately

	inForce *corev1.Secret
	pending *corev1.Secret // of another CA than inForce
	from    time.Time      // when pending takes effect
}

func (s *settlingPair) read(now time.Time) ([][]byte, time.Time, error) {
	secret, err := s.secret.loadWith(certificateKey, keyKey)
	if err != nil {
		return nil, time.Time{}, err
	}
	served, again := s.settled(secret, now)
	return [][]byte{served.Data[certificateKey], served.Data[keyKey]}, again, nil
}

// settled returns the Secret to serve from, and when another one takes effect. A certificate
// of the same CA takes effect immediately.
func (s *settlingPair) settled(secret *corev1.Secret, now time.Time) (*corev1.Secret, time.Time) {
	known := len(secret.Data[authorityKey]) > 0 || s.inForce != nil && s.trusted(secret, now) // a given Secret may not say its CA
	if s.inForce == nil || sameAuthority(s.inForce, secret) && known {
		s.inForce, s.pending = secret, nil
		return s.inForce, time.Time{}
	}
	if s.pending == nil || !sameAuthority(s.pending, secret) {
		s.from = now.Add(s.settle)
	}
	s.pending = secret
	if now.Before(s.from) {
		return s.inForce, s.from
	}
	if !s.trusted(secret, now) {
		return s.inForce, now.Add(s.settle)
	}
	s.inForce, s.pending = secret, nil
	return s.inForce, time.Time{}
}

// trusted reports whether clients have the CA of a certificate, or inForce has become useless.
func (s *settlingPair) trusted(secret *corev1.Secret, now time.Time) bool {
	next, err := tls.X509KeyPair(secret.Data[certificateKey], secret.Data[keyKey])
	if s.trusts == nil || err != nil || s.trusts(&next) { // an invalid certificate is refused elsewhere
		return true
	}
	current, err := tls.X509KeyPair(s.inForce.Data[certificateKey], s.inForce.Data[keyKey])
	return err != nil || now.After(current.Leaf.NotAfter)
}

func sameAuthority(a, b *corev1.Secret) bool {
	return bytes.Equal(a.Data[authorityKey], b.Data[authorityKey])
}

// overlappingCA reads CAs from a key of a Secret, and keeps earlier ones for a while.
type overlappingCA struct {
	secret  watched
	key     string
	overlap overlap
}

func (o *overlappingCA) read(now time.Time) ([][]byte, time.Time, error) {
	secret, err := o.secret.loadWith(o.key)
	if err != nil {
		return nil, time.Time{}, err
	}
	content, again := o.overlap.join(secret.Data[o.key], now)
	return [][]byte{content}, again, nil
}

// overlap joins a value with earlier ones, each for some time after it was replaced: clients
// of an old value change over at another time.
type overlap struct {
	length time.Duration

	value  []byte
	before []replaced // the newest first
}

// replaced is a value that stays in force until a time.
type replaced struct {
	value []byte
	until time.Time
}

// join returns value with earlier ones that overlap, and when the next overlap ends; zero if
// there is none.
func (o *overlap) join(value []byte, now time.Time) (joined []byte, again time.Time) {
	if o.value != nil && !bytes.Equal(o.value, value) {
		o.before = slices.Insert(o.before, 0, replaced{o.value, now.Add(o.length)})
	}
	o.value, joined = value, value
	kept := o.before[:0]
	for _, r := range o.before {
		same := func(k replaced) bool { return bytes.Equal(k.value, r.value) }
		if now.Before(r.until) && !bytes.Equal(r.value, value) && !slices.ContainsFunc(kept, same) && len(kept) < maxReplaced {
			kept = append(kept, r)
		}
	}
	clear(o.before[len(kept):])
	o.before = kept
	for _, r := range o.before {
		joined, again = both(joined, r.value), earlier(again, r.until)
	}
	return joined, again
}

// both returns two PEM texts as one.
func both(value, before []byte) []byte {
	return bytes.Join([][]byte{bytes.TrimSpace(value), bytes.TrimSpace(before), nil}, []byte("\n"))
}
