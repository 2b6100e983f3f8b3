//go:build e2e

package admission

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// crowd returns a pod with a container for each image.
func crowd(namespace string, n int, image func(i int) string) *corev1.Pod {
	pod := suite.Pod(namespace, "crowd", image(0))
	for i := 1; i < n; i++ {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: fmt.Sprintf("c%d", i), Image: image(i)})
	}
	return pod
}

func TestSevenHundredSpellingsOfASignedDigestAreAdmitted(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.admitted(t, ns, w.signed)
	name, digest := strings.TrimSuffix(w.signed, ":v1"), w.digestOf(t, w.signed)
	spelled := crowd(ns, 700, func(i int) string { return fmt.Sprintf("%s:v%d@%s", name, i, digest) })
	require.NoError(t, w.Client.Create(suite.Within(t), spelled, client.DryRunAll))
}

func TestAPodWithTooManyImagesIsToldToHaveFewerAndNotToTryAgain(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.admitted(t, ns, w.signed)
	err := w.Client.Create(suite.Within(t), crowd(ns, 513, func(i int) string { return fmt.Sprintf("registry.example.com/app:v%d", i) }), client.DryRunAll)
	require.NoError(t, deniedFor(err, "denied: the request is about more than 512 different images. To fix: split the object"))
	require.NotContains(t, err.Error(), "try again")
	require.NotContains(t, err.Error(), "undecided")
}
