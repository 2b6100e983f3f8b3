package suite

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/stack"
)

// LaunchOperator runs the operator of a rendered chart until the end of the test, with the
// permissions of its account and more arguments after those of its Deployment.
func LaunchOperator(t testing.TB, c *cluster.Cluster, rendered []*unstructured.Unstructured, more ...string) *stack.Replica {
	t.Helper()
	name := "operator-" + strings.ReplaceAll(strings.ToLower(t.Name()), "/", "-")
	operator, err := stack.LaunchOperator(Within(t), c, rendered, MustTool(t, LandwaiterServer), name, t.TempDir(), more...)
	require.NoError(t, err)
	t.Cleanup(func() { operator.Terminate(Patience) }) // it releases its lease
	return operator
}

// Operate is [LaunchOperator] and waits until the operator is ready.
func Operate(t testing.TB, c *cluster.Cluster, rendered []*unstructured.Unstructured, more ...string) *stack.Replica {
	t.Helper()
	operator := LaunchOperator(t, c, rendered, more...)
	require.NoError(t, operator.Await(Within(t), operator.Ready))
	return operator
}
