// Package warm verifies images before admission asks for them: images of workloads when they
// appear or change, and images of running pods before their verdict expires. It only uses
// spare capacity, only keeps the name and images of an object, and bounds the number of
// waiting images.
package warm

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/workload"
)

// Verifier verifies at low priority. An Undecided result is retried. It is safe for
// concurrent use.
type Verifier interface {
	// Warm returns a cached result, of this or another replica, or verifies.
	Warm(ctx context.Context, namespace verify.Namespace, ref image.Reference) verify.Result
	// Refresh bypasses the cache, and restarts the TTL of the result.
	Refresh(ctx context.Context, namespace verify.Namespace, ref image.Reference) verify.Result
	// Account returns the account that pays for the images of a namespace.
	Account(namespace verify.Namespace) verify.Account
}

// Options are the settings of a [Watcher].
type Options struct {
	// Interval is how often the images of running pods are re-verified. It must be
	// positive, and should be at most half of the TTL of a verdict.
	Interval time.Duration
	// Metrics counts images by outcome.
	Metrics prometheus.Registerer
	// Sink receives the results; nil means none.
	Sink Sink
	// Generation identifies the rules of a namespace, "" while there are none. When it changes,
	// the images of running pods are soon verified with the new rules. With nil they wait for
	// the interval.
	Generation func(verify.Namespace) string
}

// Sink receives which images run and how they were verified. Its methods must not block. It
// is safe for concurrent use.
type Sink interface {
	// Verified receives the result for an image of an object.
	Verified(namespace verify.Namespace, image string, result verify.Result)
	// Changed receives that pods of a namespace were created or deleted, or changed their
	// images.
	Changed(namespace verify.Namespace)
}

// silent is a Sink that ignores everything.
type silent struct{}

func (silent) Verified(verify.Namespace, string, verify.Result) {}
func (silent) Changed(verify.Namespace)                         {}

// dropped is the outcome, in metrics, of an image that was not queued.
const dropped = "dropped"

// byImage is the index of objects by namespace and image.
const byImage = "image"

// Watcher watches the workloads and pods of all namespaces. Call Run once.
type Watcher struct {
	verifier Verifier
	log      *logrus.Logger
	interval time.Duration
	images   *prometheus.CounterVec // outcome
	queue    *queue
	seed     maphash.Seed // replicas renew an image at different times

	sink       Sink
	generation func(verify.Namespace) string
	ends       ends

	pods      cache.SharedIndexInformer
	byKind    map[string]cache.SharedIndexInformer
	informers []cache.SharedIndexInformer // pods come last
}

// source is a kind of object, with its watch.
type source struct {
	kind  runtime.Object
	watch cache.ListerWatcher
}

// New returns a Watcher for the API server of config. It needs permission to list
// and watch Deployments, StatefulSets, DaemonSets, Jobs, CronJobs and Pods.
func New(config *rest.Config, verifier Verifier, log *logrus.Logger, options Options) (*Watcher, error) {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("new watcher of workloads: %w", err)
	}
	apps, batch, core := clients.AppsV1().RESTClient(), clients.BatchV1().RESTClient(), clients.CoreV1().RESTClient()
	in := func(from cache.Getter, resource string, which fields.Selector) cache.ListerWatcher {
		return cache.NewListWatchFromClient(from, resource, metav1.NamespaceAll, which)
	}
	unfinished := fields.ParseSelectorOrDie("status.phase!=Succeeded,status.phase!=Failed")
	return assemble(verifier, log, options, source{&corev1.Pod{}, in(core, "pods", unfinished)},
		source{&appsv1.Deployment{}, in(apps, "deployments", fields.Everything())},
		source{&appsv1.StatefulSet{}, in(apps, "statefulsets", fields.Everything())},
		source{&appsv1.DaemonSet{}, in(apps, "daemonsets", fields.Everything())},
		source{&batchv1.Job{}, in(batch, "jobs", fields.Everything())},
		source{&batchv1.CronJob{}, in(batch, "cronjobs", fields.Everything())})
}

func assemble(verifier Verifier, log *logrus.Logger, options Options, pods source, workloads ...source) (*Watcher, error) {
	if options.Interval <= 0 {
		return nil, errors.New("new watcher of workloads: the interval must be positive")
	}
	w := &Watcher{verifier: verifier, log: log, interval: options.Interval, queue: newQueue(maxWaiting, maxWaitingEach),
		seed: maphash.MakeSeed(),
		images: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "landwaiter_warm_images_total",
			Help: "Images verified before admission, by outcome; dropped: too many waited. With --warm-up."}, []string{"outcome"})}
	w.sink, w.generation, w.byKind = options.Sink, options.Generation, map[string]cache.SharedIndexInformer{}
	if w.sink == nil {
		w.sink = silent{}
	}
	for _, outcome := range []verify.Answer{verify.AnswerAllowed, verify.AnswerDenied, verify.AnswerUndecided, dropped} {
		w.images.WithLabelValues(string(outcome)) // exported before the first image
	}
	if err := options.Metrics.Register(w.images); err != nil {
		return nil, fmt.Errorf("new watcher of workloads: %w", err)
	}
	for _, s := range append(workloads, pods) {
		informer := cache.NewSharedIndexInformer(s.watch, s.kind, 0,
			cache.Indexers{byImage: indexed, cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(object any) { w.changed(nil, object) }, UpdateFunc: w.changed, DeleteFunc: w.gone})
		if err = errors.Join(err, informer.SetTransform(keep)); err != nil {
			return nil, fmt.Errorf("new watcher of workloads: %w", err)
		}
		w.informers = append(w.informers, informer)
		of, _ := workload.Of(s.kind)
		w.byKind[of.Kind] = informer
		w.pods = informer
	}
	return w, nil
}

// Run works until ctx ends. It retries forever to watch a kind of object; a failing kind does
// not delay others.
func (w *Watcher) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for _, informer := range w.informers {
		running.Go(func() { informer.RunWithContext(ctx) })
	}
	running.Go(func() { w.renew(ctx) })
	running.Go(func() { w.follow(ctx) })
	w.work(ctx, &running)
	running.Wait()
	return nil
}

// indexed returns the index keys of an object's images. The informers' stores are the only
// list of images, so an image is forgotten with its last object.
func indexed(object any) ([]string, error) {
	r, ok := object.(*record)
	if !ok {
		return nil, fmt.Errorf("%T is no record", object)
	}
	keys := make([]string, len(r.images))
	for i, name := range r.images {
		keys[i] = r.Namespace + "/" + name
	}
	return keys, nil
}

// changed queues the images that an object did not have before.
func (w *Watcher) changed(before, after any) {
	old, _ := before.(*record)
	r, ok := after.(*record)
	if !ok {
		return
	}
	for _, name := range r.images {
		if old == nil || !slices.Contains(old.images, name) {
			w.ask(job{target: target{verify.Namespace(r.Namespace), name}, due: time.Now()})
		}
	}
	if old == nil || !slices.Equal(old.uses, r.uses) {
		w.sink.Changed(verify.Namespace(r.Namespace))
	}
}

// gone tells the sink that an object was deleted.
func (w *Watcher) gone(object any) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	if r, ok := object.(*record); ok {
		w.sink.Changed(verify.Namespace(r.Namespace))
	}
}

// ask queues a job, or counts it as dropped.
func (w *Watcher) ask(j job) {
	if w.queue.add(w.verifier.Account(j.namespace), j) {
		return
	}
	w.images.WithLabelValues(dropped).Inc()
	w.log.WithFields(logrus.Fields{"namespace": j.namespace, "image": j.image}).Debug("image not queued for warm-up: too many are waiting")
}

// renew queues the images of running pods once per interval. The name of an image determines
// its time within the interval, so no list of times is needed, and starting with many pods
// does not cause waves.
func (w *Watcher) renew(ctx context.Context) {
	began := time.Now()
	ticks := time.Tick(max(w.interval/steps, time.Millisecond))
	for last := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
		now := time.Since(began)
		for _, key := range w.pods.GetIndexer().ListIndexFuncValues(byImage) {
			if w.due(key, last, now) {
				namespace, name, _ := strings.Cut(key, "/")
				w.ask(job{target: target{verify.Namespace(namespace), name}, renew: true, due: time.Now()})
			}
		}
		last = now
	}
}

// due reports whether the time of a key is after last and not after now.
func (w *Watcher) due(key string, last, now time.Duration) bool {
	place := float64(maphash.String(w.seed, key)) / math.MaxUint64 // within the interval
	ahead := time.Duration((1 - place) * float64(w.interval))
	return (last+ahead)/w.interval != (now+ahead)/w.interval
}

// wanted reports whether any object still has the image.
func (w *Watcher) wanted(t target) bool {
	return slices.ContainsFunc(w.informers, func(i cache.SharedIndexInformer) bool {
		keys, err := i.GetIndexer().IndexKeys(byImage, string(t.namespace)+"/"+t.image)
		return err == nil && len(keys) > 0
	})
}

// work serves the queue until ctx ends.
func (w *Watcher) work(ctx context.Context, running *sync.WaitGroup) {
	running.Go(func() {
		<-ctx.Done()
		w.queue.turns.ShutDown()
	})
	for range workers {
		running.Go(func() {
			for {
				account, j, ok := w.queue.take()
				if !ok {
					return
				}
				if pause := w.serve(ctx, j); pause > 0 {
					w.ask(job{target: j.target, renew: j.renew, tries: j.tries + 1, due: time.Now().Add(pause)})
				}
				w.queue.done(account)
			}
		})
	}
}

// serve verifies an image. It returns the pause before a retry, or 0 if the image is decided
// or no object has it any more.
func (w *Watcher) serve(ctx context.Context, j *job) time.Duration {
	ref, err := image.Parse(j.image)
	if err != nil || !w.wanted(j.target) {
		return 0
	}
	verified := w.verifier.Warm
	if j.renew {
		verified = w.verifier.Refresh
	}
	result := verified(ctx, j.namespace, ref)
	outcome := result.Verdict.Outcome().String()
	w.images.WithLabelValues(outcome).Inc()
	w.log.WithFields(logrus.Fields{"namespace": j.namespace, "image": j.image, "outcome": outcome, "renewed": j.renew}).
		Debug("image verified for warm-up")
	w.sink.Verified(j.namespace, j.image, result)
	w.ends.set(j.target, result.ExceptionEnds)
	if result.Decided() {
		return 0
	}
	return wait.Jitter(min(firstPause<<min(j.tries, 20), longestPause), 0.5)
}
