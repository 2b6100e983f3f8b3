package operator

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
)

// writeTakes is how long a write takes in these tests.
const writeTakes = 5 * time.Millisecond

// operated is a Tenant with some namespaces that an operator keeps.
type operated struct {
	*reconciler
	applied []string // as "Kind namespace/name"
	busy    time.Duration
}

func newOperated(t *testing.T, namespaces ...string) *operated {
	t.Helper()
	o := &operated{}
	tenant := team("green", namespaces...)
	tenant.Finalizers = []string{Finalizer}
	tenant.Spec.People.Admins = []v1alpha1.TenantSubject{{Kind: v1alpha1.SubjectGroup, Name: "admins"}}
	objects := []client.Object{tenant, namespaceOf("green", "green")}
	for _, name := range namespaces {
		objects = append(objects, namespaceOf("green", name))
	}
	funcs := applying(t, nil, &o.applied)
	funcs.SubResourceApply = func(context.Context, client.Client, string, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
		return nil
	}
	apply := funcs.Apply
	funcs.Apply = func(ctx context.Context, c client.WithWatch, configuration runtime.ApplyConfiguration, options ...client.ApplyOption) error {
		time.Sleep(writeTakes)
		return apply(ctx, c, configuration, options...)
	}
	c := fakeClient(t, funcs, objects...)
	log, _ := test.NewNullLogger()
	o.reconciler = &reconciler{engine: New(c, Options{}), client: c, reader: c, log: log}
	return o
}

// reconciled answers a request as the queue of the operator does, until only a comparison without
// a reason is left to do.
func (o *operated) reconciled(t *testing.T, requests ...reconcile.Request) {
	t.Helper()
	for _, request := range requests {
		for o.step(t, request) < maxRetryPause {
			time.Sleep(time.Second)
		}
	}
}

// step answers a request once.
func (o *operated) step(t *testing.T, request reconcile.Request) time.Duration {
	t.Helper()
	began := time.Now()
	result, err := o.Reconcile(t.Context(), request)
	require.NoError(t, err)
	o.busy += time.Since(began)
	return result.RequeueAfter
}

// places returns the namespaces in which something was applied since it was last asked.
func (o *operated) places() []string {
	var places []string
	for _, ref := range o.applied {
		kind, name, _ := strings.Cut(ref, " ")
		place, _, inside := strings.Cut(name, "/")
		if (inside || kind == kindNamespace) && !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	o.applied = nil
	slices.Sort(places)
	return places
}

func bindingIn(namespace string) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "green-admins", Labels: labelsOf("green")}}
	object.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kindRoleBinding))
	return object
}

func TestAChangeInANamespaceIsPutRightThereAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOperated(t, "api", "web")
		o.reconciled(t, request("green"))
		require.Equal(t, []string{"api", "green", "web"}, o.places())
		o.reconciled(t, byLabel(t.Context(), bindingIn("web"))...)
		require.Equal(t, []string{"web"}, o.places())
	})
}

func TestAFloodOfChangesTakesAPartOfOneWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var many []string
		for _, name := range "abcdefghijklmnopqrstuvwxyz" {
			many = append(many, string(name))
		}
		o := newOperated(t, many...)
		o.reconciled(t, request("green"))
		o.applied, o.busy = nil, 0
		began := time.Now()
		for time.Since(began) < time.Minute {
			for _, request := range byLabel(t.Context(), bindingIn("a")) {
				o.step(t, request)
			}
			for _, request := range o.ofNamespace(t.Context(), namespaceOf("green", "b")) {
				o.step(t, request)
			}
			time.Sleep(10 * time.Millisecond)
		}
		require.Less(t, o.busy, time.Minute/4, "other Tenants find the worker free")
		require.NotEmpty(t, o.places())
	})
}
