//go:build e2e

package teams

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/stack"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// quiet is how long an operator that has nothing to do writes nothing.
const quiet = 5 * time.Second

var writes = regexp.MustCompile(`rest_client_requests_total\{code="\d+",[^}]*method="PATCH"\} (\d+)`)

// written returns how many objects an operator has applied, once it applies no more.
func written(t *testing.T, metrics string) (total int) {
	t.Helper()
	last := time.Now()
	suite.Eventually(t, func(ctx context.Context) error {
		text, err := stack.Get(ctx, metrics)
		if err != nil {
			return err
		}
		now := 0
		for _, found := range writes.FindAllStringSubmatch(string(text), -1) {
			n, err := strconv.Atoi(found[1])
			if err != nil {
				return err
			}
			now += n
		}
		if now != total {
			total, last = now, time.Now()
		}
		if time.Since(last) < quiet {
			return fmt.Errorf("it applies objects: %d so far", total)
		}
		return nil
	})
	return total
}

func TestWhatSomebodyChangesIsPutRightWithoutALookAtOtherNamespaces(t *testing.T) {
	w := installed(t)
	w.gone(t, "rounds")
	_, metrics := w.operate(t)
	w.tenant(t, "metadata: {name: rounds}\nspec: {homeNamespace: rounds, namespaces: [rounds-a, rounds-b, rounds-c, rounds-d, rounds-e, rounds-f, rounds-g], "+
		"access: {developers: [{kind: Group, name: devs}]}, reconciler: {}, isolation: {quota: {pods: 5}}}")
	w.provisioned(t, "rounds", metav1.ConditionTrue, "Provisioned")
	before := written(t, metrics)
	var quota corev1.ResourceQuota
	require.NoError(t, w.Client.Get(suite.Within(t), client.ObjectKey{Namespace: "rounds-a", Name: "tenant"}, &quota))
	w.patch(t, &quota, `{"spec":{"hard":{"pods":"5000"}}}`)
	w.follows(t, "rounds", func(objects map[string]*unstructured.Unstructured) bool {
		pods, _, _ := unstructured.NestedString(objects["ResourceQuota rounds-a/tenant"].Object, "spec", "hard", "pods")
		return pods == "5"
	})
	all := len(w.objectsOf(t, "rounds"))
	took := written(t, metrics) - before
	t.Logf("%d of %d objects were applied", took, all)
	require.Less(t, took, all/2, "once for the change, and once for what the operator changed itself")
}
