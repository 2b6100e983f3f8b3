package workload

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAPodIsTracedToItsOwners(t *testing.T) {
	is := true
	owned := func(controller *bool, kind, name, hash string) *metav1.ObjectMeta {
		return &metav1.ObjectMeta{Labels: map[string]string{templateHash: hash},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: "1", Controller: controller}}}
	}
	for name, c := range map[string]struct {
		pod        *metav1.ObjectMeta
		owner      Ref
		deployment string
	}{
		"of a Deployment":                {owned(&is, "ReplicaSet", "web-5d4f", "5d4f"), Ref{"apps/v1", "ReplicaSet", "web-5d4f", "1"}, "web"},
		"of a ReplicaSet by itself":      {owned(&is, "ReplicaSet", "web", ""), Ref{"apps/v1", "ReplicaSet", "web", "1"}, ""},
		"of a ReplicaSet of other names": {owned(&is, "ReplicaSet", "web-1", "5d4f"), Ref{"apps/v1", "ReplicaSet", "web-1", "1"}, ""},
		"of a StatefulSet":               {owned(&is, "StatefulSet", "web-5d4f", "5d4f"), Ref{"apps/v1", "StatefulSet", "web-5d4f", "1"}, ""},
		"owned but not controlled":       {owned(nil, "ReplicaSet", "web-5d4f", "5d4f"), Ref{}, ""},
		"owned by what cannot exist":     {owned(&is, "ReplicaSet", strings.Repeat("x", 1<<20), ""), Ref{}, ""},
		"owned by control characters":    {owned(&is, "A", "a\x01b", ""), Ref{}, ""},
		"by itself":                      {&metav1.ObjectMeta{Name: "web"}, Ref{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.owner, Owner(c.pod))
			require.Equal(t, c.deployment, Deployment(c.pod))
		})
	}
}
