package workload

import (
	"cmp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Ref names a workload or Pod of a namespace. The zero value names none.
type Ref struct {
	APIVersion, Kind, Name string
	UID                    types.UID
}

// Compare orders workloads by kind and name.
func Compare(a, b Ref) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.UID, b.UID))
}

// Running is an image of a running pod.
type Running struct {
	// Of is the top owner of the pod as far as it is known: the pod itself if it has none.
	Of            Ref
	ContainerType ContainerType
	Container     string // or the name of the volume
	Image         string // normalised
}

// maxOwnerBytes bounds each part of an owner. The API server bounds none, and objects that
// exist have shorter ones.
const maxOwnerBytes = 317

func isPrintable(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < '!' || r > '~' }) < 0
}

// Owner returns the controller of an object, the zero value if it has none, or one that no
// object can be.
func Owner(meta *metav1.ObjectMeta) Ref {
	owner := metav1.GetControllerOfNoCopy(meta)
	if owner == nil || len(owner.APIVersion) > maxOwnerBytes || len(owner.Kind) > maxOwnerBytes || len(owner.Name) > maxOwnerBytes || len(owner.UID) > maxOwnerBytes ||
		!isPrintable(owner.APIVersion+owner.Kind+owner.Name+string(owner.UID)) {
		return Ref{}
	}
	return Ref{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: owner.UID}
}

// templateHash is the label by which Deployments tell their ReplicaSets and pods apart.
const templateHash = "pod-template-hash"

// Deployment returns the name of the Deployment that a ReplicaSet's pod seems to be of, ""
// if there is none. A Deployment names its ReplicaSets after itself and the hash of their
// template, so ReplicaSets need no watch; the caller checks that the Deployment exists.
func Deployment(pod *metav1.ObjectMeta) string {
	owner, hash := Owner(pod), pod.Labels[templateHash]
	name, ok := strings.CutSuffix(owner.Name, "-"+hash)
	if owner.Kind != "ReplicaSet" || hash == "" || !ok {
		return ""
	}
	return name
}
