package precedence

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/cache"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// changes is how often a world changes one level at a time.
const changes = 10

// of returns the objects of one level, as a change of it is compiled.
func of(o resource.Objects, level string) resource.Objects {
	o.Resources = slices.DeleteFunc(slices.Clone(o.Resources), func(r v1beta1.Object) bool { return r.GetNamespace() != level })
	o.Namespaces = slices.DeleteFunc(slices.Clone(o.Namespaces), func(n corev1.Namespace) bool { return n.Name != level })
	o.Broken = slices.DeleteFunc(slices.Clone(o.Broken), func(b resource.Broken) bool {
		if b.Source.Kind == "Namespace" {
			return b.Source.Name != level
		}
		return b.Source.Namespace != level
	})
	return o
}

// changed returns w with another level, the name of that level, and the snapshot that follows.
func (d dice) changed(w World, before *resolve.Snapshot) (World, string, *resolve.Snapshot) {
	drawn, level := d.world(), pick(d, "", home, web, prod)
	w.Namespaces = maps.Clone(w.Namespaces)
	if level == "" {
		w.Cluster = d.edited(w.Cluster, drawn.Cluster)
		if d.once(2) {
			w.Tenants = drawn.Tenants
		}
		after, _ := before.Next(resolve.Group(of(w.objects(), level)).Only(verify.Cluster), nil)
		return w, level, after
	}
	was, existed := w.Namespaces[level]
	is, exists := drawn.Namespaces[level]
	switch {
	case exists && existed:
		w.Namespaces[level] = d.edited(was, is)
	case exists:
		w.Namespaces[level] = is
	default:
		delete(w.Namespaces, level)
	}
	after, _ := before.Next(resolve.Group(of(w.objects(), level)).Only(verify.Namespace(level)), nil)
	return w, level, after
}

// edited returns was with all of one kind from is, or is: most edits are of one kind.
func (d dice) edited(was, is Level) Level {
	switch d.IntN(6) {
	case 0:
		return is
	case 1:
		was.Verifiers = is.Verifiers
	case 2:
		was.Store = is.Store
	case 3:
		was.Exceptions = is.Exceptions
		if !was.Unreadable { // else nobody reads its annotations
			was.BreakGlass = is.BreakGlass
		}
	default:
		was.Policies = is.Policies
	}
	return was
}

// However a snapshot came to be, its verdicts are those of one that is compiled from the same resources at once.
func TestASnapshotThatChangedIsLikeOneThatIsNew(t *testing.T) {
	compared := uint64(0)
	engine := verify.NewEngine(nothing{}, now, verify.Options{})
	for seed := uint64(1); compared < count()/10; seed++ {
		d := newDice(seed)
		w, shelves := d.world(), &shelves{}
		require.NoError(t, shelves.fill(d.evidence()))
		snapshot, _ := resolve.Empty(shelves.outside()).Next(resolve.Group(w.objects()), nil)
		for range changes {
			var level string
			w, level, snapshot = d.changed(w, snapshot)
			fresh, _ := resolve.Empty(shelves.outside()).Next(resolve.Group(w.objects()), nil)
			for _, namespace := range []string{"", home, web, prod} {
				is, should := snapshot.For(verify.Namespace(namespace)), fresh.For(verify.Namespace(namespace))
				require.Equal(t, should.Generation, is.Generation, "seed %d: %q after a change of %q", seed, namespace, level)
				require.Equal(t, conditions.Reports(fresh, verify.Namespace(namespace)), conditions.Reports(snapshot, verify.Namespace(namespace)),
					"seed %d: %q after a change of %q", seed, namespace, level)
				for _, asked := range images() {
					require.Equal(t, ask(t, engine, fresh, namespace, asked), ask(t, engine, snapshot, namespace, asked), "seed %d: %s in %q after a change of %q", seed,
						asked.Name, namespace, level)
					compared++
				}
			}
		}
	}
	t.Logf("%d verdicts", compared)
}

// moment is a world and what is in force in its namespaces.
type moment struct {
	world   World
	configs map[string]*verify.Config
}

func newMoment(w World, snapshot *resolve.Snapshot) *moment {
	m := &moment{world: w, configs: map[string]*verify.Config{"": rigged(snapshot.For(verify.Cluster))}}
	for namespace := range w.Namespaces {
		m.configs[namespace] = rigged(snapshot.For(verify.Namespace(namespace)))
	}
	return m
}

// While rules change, and one cache keeps the verdicts of all of them, each answer is that of the rules it was asked under.
func TestAnswersAreThoseOfTheRulesInForceWhileRulesChange(t *testing.T) {
	const askers, answers = 4, 250
	var answered, allowed, remembered atomic.Uint64
	for seed := uint64(1); answered.Load() < count()*586/1000 && !t.Failed(); seed++ {
		d := newDice(seed)
		w, shelves := d.world(), &shelves{}
		w.Evidence = d.evidence()
		require.NoError(t, shelves.fill(w.Evidence))
		memory, err := cache.NewMemory(1<<20, now)
		require.NoError(t, err)
		engine := verify.NewEngine(memory, now, verify.Options{})
		snapshot, _ := resolve.Empty(shelves.outside()).Next(resolve.Group(w.objects()), nil)
		var current atomic.Pointer[moment]
		current.Store(newMoment(w, snapshot))
		ended := make(chan struct{})
		var asking, changing sync.WaitGroup
		changing.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
					w, _, snapshot = d.changed(w, snapshot)
					current.Store(newMoment(w, snapshot))
				}
			}
		})
		for asker := range askers {
			asking.Go(func() {
				random := rand.New(rand.NewPCG(seed, uint64(asker+1)))
				for range answers {
					m := current.Load()
					namespace := []string{"", home, web, prod}[random.IntN(4)]
					config, exists := m.configs[namespace]
					if !exists {
						continue
					}
					asked := images()[random.IntN(len(images()))]
					result, known := engine.Recall(config, asked.reference())
					if known {
						remembered.Add(1)
					} else {
						result = engine.Verify(context.Background(), config, asked.reference())
					}
					should, _ := m.world.Judge(namespace, asked)
					if outcomeOf(result.Verdict) != should {
						t.Errorf("seed %d: %s in %q: the specification says %d, the engine %s (%s)", seed, asked.Name, namespace, should, result.Verdict.Outcome(),
							result.Verdict.Reason)
					}
					if answered.Add(1); result.Verdict.Outcome() == policy.Allowed {
						allowed.Add(1)
					}
				}
			})
		}
		asking.Wait()
		close(ended)
		changing.Wait()
	}
	t.Logf("%d answers, %d of them allowed, %d from memory", answered.Load(), allowed.Load(), remembered.Load())
	require.Greater(t, remembered.Load(), answered.Load()/20)
}
