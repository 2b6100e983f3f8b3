package warm

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/landwaiter/landwaiter/test/kit/memory"
)

// The figure of this test stands in docs/operate/warm-up.md.
func TestAPodTakesLittleMemory(t *testing.T) {
	const pods = 500
	before := memory.InUse()
	index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{byImage: indexed})
	for i := range pods {
		pod := &corev1.Pod{ObjectMeta: meta(), Status: corev1.PodStatus{Phase: corev1.PodRunning}}
		pod.Namespace, pod.Name = fmt.Sprintf("team-%03d", i%100), fmt.Sprintf("web-5d4f8c7b9-%05d", i)
		for c := range 2 {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "main", Env: make([]corev1.EnvVar, 20),
				Image: fmt.Sprintf("registry.example.com/team-%03d/app-%d:v1@sha256:%064d", i%100, c, i%1000)})
		}
		text, err := json.Marshal(pod) // as it comes: no string is shared with another pod's
		require.NoError(t, err)
		var read corev1.Pod
		require.NoError(t, json.Unmarshal(text, &read))
		kept, err := keep(&read)
		require.NoError(t, err)
		require.NoError(t, index.Add(kept))
	}
	each := (memory.InUse() - before) / pods
	t.Logf("%d bytes for a pod with 2 images", each)
	require.Less(t, each, 4<<10)
	runtime.KeepAlive(index)
}
