package watch

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
)

// The reflector of the Kubernetes library logs by itself.
func TestWhatALibraryLogsOfAWatchNamesItsNamespace(t *testing.T) {
	var mu sync.Mutex
	var lines []string
	logger := funcr.New(func(_, line string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, line)
	}, funcr.Options{Verbosity: 10})
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logger))
	w := NewObject("Secret", key, func() {})
	ended := make(chan struct{})
	go func() { w.Run(ctx, fake.NewClientset()); close(ended) }()
	require.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return len(lines) > 0 }, time.Minute, time.Millisecond)
	cancel()
	<-ended
	for _, line := range lines {
		require.True(t, strings.Contains(line, `"namespace"="team-a"`), line)
	}
}
