package controller

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/secretwatch"
)

// authorityKey is where a Secret has the certificate of its authority.
const authorityKey = "ca.crt"

// Followed is one Secret that the server itself needs, such as its certificate
// or the authority of its clients. It is safe for concurrent use.
type Followed struct {
	watch   *secretwatch.Watch
	ref     policy.ObjectRef
	overlap time.Duration
	settle  time.Duration

	mu       sync.Mutex
	inForce  *corev1.Secret
	expected *corev1.Secret // to be in force from then on
	from     time.Time
	keys     map[string]*overlapping
}

// overlapping is the value of a key, and the one before it for a while.
type overlapping struct {
	value, before []byte
	until         time.Time
}

// Change says how a change of a followed Secret is taken over. The zero value
// takes it over at once.
type Change struct {
	// Overlap is how long Read gives the old value of a key after the new one:
	// whoever is known by it changes over at another time.
	Overlap time.Duration
	// Settle is how long a Secret with another ca.crt waits until it is in force:
	// those who must trust the new authority have to learn of it first.
	Settle time.Duration
}

// Follow makes the controller follow a Secret while it runs. It must be called
// before Run.
func (c *Controller) Follow(namespace, name string, change Change) *Followed {
	ref := policy.ObjectRef{Kind: "Secret", Namespace: namespace, Name: name}
	f := &Followed{overlap: change.Overlap, settle: change.Settle, keys: map[string]*overlapping{}, ref: ref, watch: secretwatch.New(ref, func() {})}
	c.followed = append(c.followed, f)
	return f
}

// Read returns the value of one key. While the Secret, or the key in it, is
// missing or unreadable it returns an error; the caller keeps what it had.
func (f *Followed) Read(key string) ([]byte, error) {
	object, answered, err := f.watch.Content()
	secret, _ := object.(*corev1.Secret)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", f.ref, err)
	case !answered:
		return nil, fmt.Errorf("read %s: the API server has not answered yet", f.ref)
	case secret == nil:
		return nil, fmt.Errorf("read %s: it is not there", f.ref)
	case len(secret.Data[key]) == 0:
		return nil, fmt.Errorf("read %s: it has no key %s", f.ref, key)
	}
	now := time.Now()
	return f.join(key, f.settled(secret, now).Data[key], now), nil
}

// settled returns the Secret that is in force.
func (f *Followed) settled(secret *corev1.Secret, now time.Time) *corev1.Secret {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.inForce == nil || bytes.Equal(f.inForce.Data[authorityKey], secret.Data[authorityKey]) {
		f.inForce, f.expected = secret, nil
		return secret
	}
	if f.expected == nil || !bytes.Equal(f.expected.Data[authorityKey], secret.Data[authorityKey]) {
		f.from = now.Add(f.settle)
	}
	f.expected = secret
	if !now.Before(f.from) {
		f.inForce, f.expected = secret, nil
	}
	return f.inForce
}

func (f *Followed) join(key string, value []byte, now time.Time) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := f.keys[key]
	if k == nil {
		k = &overlapping{value: value}
		f.keys[key] = k
	}
	if !bytes.Equal(k.value, value) {
		k.before, k.until, k.value = k.value, now.Add(f.overlap), value
	}
	if len(k.before) == 0 || !now.Before(k.until) {
		return value
	}
	return bytes.Join([][]byte{bytes.TrimSpace(value), bytes.TrimSpace(k.before), nil}, []byte("\n"))
}

// subjectFlag names a user as kubectl create rolebinding does.
func subjectFlag(user string) string {
	if account, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		return "--serviceaccount=" + account
	}
	return "--user=" + user
}
