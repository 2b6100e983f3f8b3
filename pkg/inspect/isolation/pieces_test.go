package isolation

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// Teams make these objects, so their number must not end a run.
func TestAKindWithMoreObjectsThanAreReadIsServed(t *testing.T) {
	asked := 0
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Content-Type", "application/json")
		if _, err := w.Write([]byte(`{"kind": "List", "apiVersion": "v1", "metadata": {"continue": "more"}, "items": [{}]}`)); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(endless.Close)
	api, err := connect(&rest.Config{Host: endless.URL})
	require.NoError(t, err)
	found, err := api.served(t.Context())
	require.NoError(t, err)
	require.Len(t, found, len(writers()))
	require.Equal(t, len(writers()), asked)
}
