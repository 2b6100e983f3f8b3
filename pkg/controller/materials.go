package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/secretwatch"
	"github.com/landwaiter/landwaiter/pkg/tenant"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// materials follows the Secrets and ConfigMaps that resources name, each for as
// long as some namespace's resources need it.
type materials struct {
	clients kubernetes.Interface
	changed func(verify.Namespace)
	grant   func(policy.ObjectRef) string // how to give the right to read an object

	mu       sync.Mutex
	running  sync.WaitGroup
	begin    func(*following) // starts following, for as long as the controller runs
	followed map[policy.ObjectRef]*following
	wanted   map[verify.Namespace]map[policy.ObjectRef]bool
}

// following is a watch with those who need it.
type following struct {
	*secretwatch.Watch
	since  time.Time
	owners map[verify.Namespace]bool
	stop   context.CancelFunc
}

func newMaterials(clients kubernetes.Interface, changed func(verify.Namespace)) *materials {
	return &materials{clients: clients, changed: changed, grant: func(policy.ObjectRef) string { return "" },
		followed: map[policy.ObjectRef]*following{}, wanted: map[verify.Namespace]map[policy.ObjectRef]bool{}}
}

// runIn makes watches end with ctx. It comes before want.
func (m *materials) runIn(ctx context.Context) {
	m.begin = func(f *following) {
		ctx, stop := context.WithCancel(ctx)
		f.stop = stop
		m.running.Go(func() { f.Run(ctx, m.clients) })
	}
}

// wait returns once all watches have ended.
func (m *materials) wait() { m.running.Wait() }

// want says what a namespace's resources need now, and returns how long to wait
// for what is being read for the first time: 0 if everything is known, or has
// had its time. References past maxReferences are not followed.
func (m *materials) want(namespace verify.Namespace, sources []policy.ObjectRef) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	wanted := map[policy.ObjectRef]bool{}
	for _, source := range sources[:min(len(sources), maxReferences)] {
		wanted[source] = true
	}
	for source := range m.wanted[namespace] {
		if !wanted[source] {
			m.drop(namespace, source)
		}
	}
	if m.wanted[namespace] = wanted; len(wanted) == 0 {
		delete(m.wanted, namespace)
	}
	var pending time.Duration
	for source := range wanted {
		f := m.follow(source)
		f.owners[namespace] = true
		if _, answered, _ := f.Content(); !answered {
			pending = max(pending, time.Until(f.since.Add(firstRead)))
		}
	}
	return pending
}

// keepOnly drops what namespaces without references needed before.
func (m *materials) keepOnly(references map[verify.Namespace][]policy.ObjectRef) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for namespace, sources := range maps.Clone(m.wanted) {
		if _, still := references[namespace]; still {
			continue
		}
		for source := range sources {
			m.drop(namespace, source)
		}
		delete(m.wanted, namespace)
	}
}

func (m *materials) follow(source policy.ObjectRef) *following {
	f := m.followed[source]
	if f != nil {
		return f
	}
	f = &following{since: time.Now(), owners: map[verify.Namespace]bool{}}
	f.Watch = secretwatch.New(source, func() { m.tell(f) })
	m.followed[source] = f
	m.begin(f)
	return f
}

func (m *materials) drop(namespace verify.Namespace, source policy.ObjectRef) {
	f := m.followed[source]
	if f == nil {
		return
	}
	if delete(f.owners, namespace); len(f.owners) == 0 {
		f.stop()
		delete(m.followed, source)
	}
}

// tell asks for everyone who needs the object to be compiled.
func (m *materials) tell(f *following) {
	m.mu.Lock()
	owners := maps.Clone(f.owners)
	m.mu.Unlock()
	for namespace := range owners {
		m.changed(namespace)
	}
}

// fill adds to o what is known of the objects that resources name: the objects,
// or why they cannot be read. One that is not there is not added.
func (m *materials) fill(o *tenant.Objects, sources []policy.ObjectRef) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, source := range sources {
		object, err := m.known(source)
		if err == nil && object != nil {
			err = o.Add(object)
		}
		if err != nil {
			o.Broken = append(o.Broken, m.unreadable(source, err))
		}
	}
}

// known returns an object, nil if it is not there, or why nobody knows.
func (m *materials) known(source policy.ObjectRef) (runtime.Object, error) {
	f := m.followed[source]
	if f == nil {
		return nil, fmt.Errorf("the namespace's resources name more than %d Secrets and ConfigMaps", maxReferences)
	}
	object, answered, err := f.Content()
	if err == nil && !answered {
		return nil, errors.New("the API server has not answered yet")
	}
	return object, err
}

func (m *materials) unreadable(source policy.ObjectRef, err error) tenant.Broken {
	if apierrors.IsForbidden(err) {
		return tenant.Broken{Source: source, Reason: policy.ReasonAccessDenied,
			Err: fmt.Errorf("landwaiter has no right to read it%s", m.grant(source))}
	}
	return tenant.Broken{Source: source, Reason: policy.ReasonUnreadable, Err: err}
}
