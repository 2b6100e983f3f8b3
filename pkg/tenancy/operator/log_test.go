package operator

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/bombsimon/logrusr/v4"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// written returns the one line that a log has.
func written(t *testing.T, out *bytes.Buffer) map[string]any {
	t.Helper()
	var line map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &line))
	out.Reset()
	return line
}

func logTo(out *bytes.Buffer) *logrus.Logger {
	log := logrus.New()
	log.SetOutput(out)
	log.SetFormatter(&logrus.JSONFormatter{})
	return log
}

func TestWhatTheOperatorWritesIsLoggedWithItsNamespace(t *testing.T) {
	var out bytes.Buffer
	r := &reconciler{log: logTo(&out)}
	tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "iris"}}
	for want, object := range map[any]policy.ObjectRef{
		"iris-web": {Kind: "RoleBinding", Namespace: "iris-web", Name: "iris-reconciler"},
		"iris-api": {Kind: "Namespace", Name: "iris-api"},
		nil:        {Kind: "ClusterRoleBinding", Name: "iris"},
	} {
		r.logReport(tenant, &Report{Outcomes: []Outcome{{Object: object, Result: Created}}})
		line := written(t, &out)
		require.Equal(t, want, line["namespace"])
		require.Equal(t, "iris", line["tenant"])
		r.logReport(tenant, &Report{Problems: []Problem{{Object: object, Message: "no permission"}}})
		require.Equal(t, want, written(t, &out)["namespace"])
	}
}

func TestAReconciliationThatFailsIsLoggedWithItsTenant(t *testing.T) {
	var out bytes.Buffer
	loggerOf := logConstructor(logrusr.New(logTo(&out)), "tenants")
	one := request("iris")
	for _, c := range []struct {
		request *reconcile.Request
		want    any
	}{{&one, "iris"}, {&reconcile.Request{}, nil}, {nil, nil}} {
		loggerOf(c.request).Error(errors.New("the API server is away"), "Reconciler error")
		line := written(t, &out)
		require.Equal(t, c.want, line["tenant"])
		require.NotContains(t, line, "namespace", "a Tenant is in none")
	}
}
