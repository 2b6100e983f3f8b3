package suite

import (
	"crypto/rand"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
)

// Object makes an object from one YAML document. It panics if the text is not one.
func Object(format string, args ...any) *unstructured.Unstructured {
	objects, err := cluster.Decode(fmt.Appendf(nil, format, args...))
	if err != nil || len(objects) != 1 {
		panic(fmt.Sprintf("%d objects, %v: %s", len(objects), err, fmt.Sprintf(format, args...)))
	}
	return objects[0]
}

// Fresh returns a name with a prefix that no test has used, so that tests which share a
// cluster, and the next run of the same test, do not meet.
func Fresh(prefix string) string { return prefix + "-" + strings.ToLower(rand.Text()[:6]) }

// Namespace makes a namespace.
func Namespace(name string) *unstructured.Unstructured {
	return Object("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", name)
}

// Resource makes a resource of Landwaiter; spec is YAML in one line.
func Resource(kind, namespace, name, spec string) *unstructured.Unstructured {
	o := Object("{apiVersion: landwaiter.dev/v1beta1, kind: %s, metadata: {name: %s}, spec: %s}", kind, name, spec)
	o.SetNamespace(namespace)
	return o
}

// Pod makes a pod with one container.
func Pod(namespace, name, image string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: image}}}}
}

// Restricted makes a pod keep to the restricted Pod Security Standard, and returns it.
func Restricted(pod *corev1.Pod) *corev1.Pod {
	yes, no := true, false
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: &yes,
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].SecurityContext = &corev1.SecurityContext{AllowPrivilegeEscalation: &no,
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	}
	return pod
}
