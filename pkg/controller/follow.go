package controller

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/landwaiter/landwaiter/pkg/policy"
)

// Followed is one Secret that the server itself needs, such as its certificate
// or the authority of its clients. It is safe for concurrent use.
type Followed struct {
	slot    *slot
	overlap time.Duration

	mu   sync.Mutex
	keys map[string]*overlapping
}

// overlapping is the value of a key, and the one before it for a while.
type overlapping struct {
	value, before []byte
	until         time.Time
}

// Follow makes the controller follow a Secret while it runs. After a key's value
// has changed, Read goes on to give the old value, after the new one, for
// overlap: clients change over to a new authority one by one. It must be called
// before Run.
func (c *Controller) Follow(namespace, name string, overlap time.Duration) *Followed {
	f := &Followed{overlap: overlap, keys: map[string]*overlapping{},
		slot: newSlot(policy.Source{Kind: "Secret", Namespace: namespace, Name: name}, func() {})}
	c.followed = append(c.followed, f)
	return f
}

// Read returns the value of one key. While the Secret, or the key in it, is
// missing or unreadable it returns an error; the caller keeps what it had.
func (f *Followed) Read(key string) ([]byte, error) {
	object, answered, err := f.slot.content()
	secret, _ := object.(*corev1.Secret)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", f.slot.source, err)
	case !answered:
		return nil, fmt.Errorf("read %s: the API server has not answered yet", f.slot.source)
	case secret == nil:
		return nil, fmt.Errorf("read %s: it is not there", f.slot.source)
	case len(secret.Data[key]) == 0:
		return nil, fmt.Errorf("read %s: it has no key %s", f.slot.source, key)
	}
	return f.join(key, secret.Data[key], time.Now()), nil
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
