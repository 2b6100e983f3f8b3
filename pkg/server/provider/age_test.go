package provider

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A busy connection would show a certificate of a former CA until the end of the overlap, and the next request be refused.
func TestAConnectionEndsWithAnAnswerOnceItIsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHandler(byRepository, pinning, nil)
		connection := rememberChecks(context.Background(), nil)
		asked := func() (status int, ends bool) {
			r := httptest.NewRequestWithContext(connection, http.MethodPost, "/v1/verify",
				strings.NewReader(`{"apiVersion":"externaldata.gatekeeper.sh/v1beta1","kind":"ProviderRequest","request":{"keys":["r.example.com/a"]}}`))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Code, w.Header().Get("Connection") == "close"
		}
		for _, c := range []struct {
			after time.Duration
			ends  bool
		}{{0, false}, {maxConnectionAge - time.Second, false}, {time.Second, true}, {time.Hour, true}} {
			time.Sleep(c.after)
			status, ends := asked()
			require.Equal(t, http.StatusOK, status, "the answer is as always")
			require.Equal(t, c.ends, ends, c.after)
		}
		connection = rememberChecks(context.Background(), nil)
		_, ends := asked()
		require.False(t, ends, "the next connection is new")
	})
}
