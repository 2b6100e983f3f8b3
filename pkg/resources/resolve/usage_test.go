package resolve

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// A tenant that edits in a loop must not make the leader look at every namespace again.
func TestAChangeOfOneNamespaceCountsNoOtherAgain(t *testing.T) {
	o := inTeamA(nil)
	o.Namespaces = append(o.Namespaces, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-b", UID: "2"}})
	s, _ := Empty(outsideOfTests()).Next(Group(o), nil)
	usageOf := func(s *Snapshot) Usage { return s.Usage(slices.Collect(maps.Values(s.views))) }
	usageOf(s)
	mark := policy.ObjectRef{Name: "counted before"}
	s.views["team-b"].usages.Used[mark] = true
	next, _ := s.Next(Group(resource.Objects{Namespaces: o.Namespaces[:1]}).Only("team-a"), nil)
	require.True(t, usageOf(next).Used[mark], "it is counted once")
	next, _ = next.Next(Group(resource.Objects{Namespaces: o.Namespaces[1:]}).Only("team-b"), nil)
	require.False(t, usageOf(next).Used[mark], "its own change counts it again")
}
