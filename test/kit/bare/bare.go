// Package bare provides the baseline for benchmarks of the provider.
package bare

import (
	"encoding/json"
	"net/http"

	"github.com/open-policy-agent/frameworks/constraint/pkg/externaldata"
)

// Handler returns a handler that only decodes the request and answers with body: the
// minimum cost of any provider.
func Handler(body []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request externaldata.ProviderRequest
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body) // the client may have left
	})
}
