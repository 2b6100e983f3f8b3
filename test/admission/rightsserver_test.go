//go:build nightly

package admission

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

func TestWhoMayDoWhatByTheServer(t *testing.T) {
	w := installed(t)
	for _, q := range w.questions(t) {
		w.answers(t, q)
	}
}

// Each role, each kind and each verb, by an API server that is asked as fast as it answers.
func TestWhoMayDoWhatByEachRoleByTheServer(t *testing.T) {
	w := installed(t)
	all := w.byRole(t)
	w.sampled(t, all)
	config := rest.CopyConfig(w.Config)
	config.QPS, config.Burst = 2000, 4000
	c, err := w.NewClient(config)
	require.NoError(t, err)
	for _, q := range all {
		got, err := reviewed(t.Context(), c, q.user, q.asked)
		require.NoError(t, err)
		require.Equal(t, q.want, got, "%+v", q)
	}
	t.Logf("%d questions", len(all))
}
