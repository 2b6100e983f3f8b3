//go:build e2e || !nightly

package evidence

import (
	"net/http"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// login makes a registry ask for a user and password.
func login(r *fixture.Registry, user, password string) {
	r.SetIntercept(func(w http.ResponseWriter, request *http.Request) bool {
		if u, p, ok := request.BasicAuth(); ok && u == user && p == password {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
		http.Error(w, `{"errors":[{"code":"UNAUTHORIZED"}]}`, http.StatusUnauthorized)
		return true
	})
}
