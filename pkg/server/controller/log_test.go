package controller

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/bombsimon/logrusr/v4"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// controller-runtime logs errors and panics of reconciliations itself.
func TestAReconciliationThatFailsIsLoggedWithItsNamespace(t *testing.T) {
	var out bytes.Buffer
	log := logrus.New()
	log.SetOutput(&out)
	log.SetFormatter(&logrus.JSONFormatter{})
	loggerOf := logConstructor(logrusr.New(log))
	team, cluster := verify.Namespace("team-a"), verify.Cluster
	for _, c := range []struct {
		request *verify.Namespace
		want    any
	}{{&team, "team-a"}, {&cluster, "-"}, {nil, nil}} {
		out.Reset()
		loggerOf(c.request).Error(errors.New("the API server is away"), "Reconciler error")
		var line map[string]any
		require.NoError(t, json.Unmarshal(out.Bytes(), &line))
		require.Equal(t, c.want, line["namespace"])
		require.Equal(t, "namespaces", line["controller"])
	}
}
