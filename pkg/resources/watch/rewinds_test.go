package watch_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	own "github.com/landwaiter/landwaiter/pkg/resources/watch"
)

// restored is an API server with one ConfigMap. Its watches end without an event when it is told to, and
// begin at any resource version, as those of Kubernetes before 1.36 do.
type restored struct {
	mu      sync.Mutex
	version string
	content string
	watches []watch.Interface
	checks  int // lists of one object
}

func (r *restored) ListWithContext(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if options.Limit == 1 {
		r.checks++
	}
	list := &corev1.ConfigMapList{
		Items: []corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n", ResourceVersion: r.version}, Data: map[string]string{"k": r.content}}}}
	list.ResourceVersion = r.version
	return list, nil
}

func (r *restored) WatchWithContext(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if options.SendInitialEvents != nil {
		return nil, errors.New("lists are not streamed")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	fake := watch.NewFake()
	r.watches = append(r.watches, fake)
	return fake, nil
}

func (r *restored) List(options metav1.ListOptions) (runtime.Object, error) {
	return r.ListWithContext(context.Background(), options)
}

func (r *restored) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return r.WatchWithContext(context.Background(), options)
}

// asked returns how many lists of one object there were.
func (r *restored) asked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.checks
}

// becomes changes the content, without an event, and ends all watches.
func (r *restored) becomes(version, content string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.version, r.content = version, content
	for _, w := range r.watches {
		w.Stop()
	}
	r.watches = nil
}

func TestAnInformerReadsAgainWhenResourceVersionsWentBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &restored{version: "9", content: "newer"}
		informer := own.NewInformer(func(object any) (any, error) { return object, nil })(server, &corev1.ConfigMap{}, 0, cache.Indexers{})
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go informer.RunWithContext(ctx)
		content := func() string {
			object, _, err := informer.GetStore().GetByKey("n/c")
			require.NoError(t, err)
			found, ok := object.(*corev1.ConfigMap)
			require.True(t, ok)
			return found.Data["k"]
		}
		time.Sleep(10 * time.Second)
		require.Equal(t, "newer", content())
		require.Zero(t, server.asked(), "the first watch follows a list")

		server.becomes("9", "missed")
		time.Sleep(time.Minute)
		require.Equal(t, "newer", content(), "a watch goes on where the last one ended")
		require.Equal(t, 1, server.asked())

		server.becomes("5", "restored")
		time.Sleep(time.Minute)
		require.Equal(t, "restored", content())
	})
}
