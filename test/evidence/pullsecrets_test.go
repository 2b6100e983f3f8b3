//go:build !e2e && !nightly

package evidence

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// What kubelets take of pull secrets is wider than what kubectl writes: google/go-containerregistry#1431,
// enix/kube-image-keeper#237, kubernetes/kubernetes#73803 and #82147, cnabio/cnab-to-oci#84.
func TestPullSecretsLogInAsTheyDoForKubelets(t *testing.T) {
	for name, secrets := range map[string][]string{
		"the login":                     {`{"auths": {"HOST": RIGHT}}`},
		"the second of two secrets":     {`{"auths": {"HOST": WRONG}}`, `{"auths": {"HOST": RIGHT}}`},
		"the third of three":            {`{"auths": {"HOST": WRONG}}`, `{"auths": {"HOST": {}}}`, `{"auths": {"HOST": RIGHT}}`},
		"the host after a path":         {`{"auths": {"HOST": RIGHT, "HOST/org": WRONG}}`},
		"a path":                        {`{"auths": {"HOST/org": RIGHT}}`},
		"the repository":                {`{"auths": {"HOST/org/app": RIGHT, "HOST/org/other": WRONG}}`},
		"a scheme":                      {`{"auths": {"https://HOST/v2/": RIGHT}}`},
		"a wildcard":                    {`{"auths": {"*.0.0.*:PORT": RIGHT}}`},
		"beside a path of another host": {`{"auths": {"HOST": RIGHT, "registry.gitlab.com/org/x": WRONG}}`},
		"beside another host's glob":    {`{"auths": {"HOST": RIGHT, "*.example.com": WRONG}}`},
		"beside credsStore":             {`{"auths": {"HOST": RIGHT}, "credsStore": "desktop"}`},
		"beside an entry without sense": {`{"auths": {"HOST": RIGHT, "other.example.com": {"auth": "?"}, "://": 5}}`},
		"beside an empty secret":        {`{"auths": {}}`, `{"auths": {"HOST": RIGHT}}`},
		"of the older form":             {`{"HOST": RIGHT}`},
		"with a BOM":                    {"\ufeff" + `{"auths": {"HOST": RIGHT}}` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnvironment(t, fixture.RegistryOptions{})
			img := e.signed(t, "org/app", "a")
			login(e.registry, "robot", "secret")
			_, port, _ := strings.Cut(e.registry.Host(), ":")
			fill := strings.NewReplacer("HOST", e.registry.Host(), "PORT", port, "RIGHT", loginOf("robot:secret"), "WRONG", loginOf("other:other"))
			var filled []string
			for _, text := range secrets {
				filled = append(filled, fill.Replace(text))
			}
			require.Empty(t, e.apply(t, e.pullSecrets("team-a", filled...), e.trusting(t, "team-a", "a"), e.policy(t, "team-a", "p", releaseNeeded)))
			requireOutcome(t, policy.Allowed, e.outcome(t, "team-a", img))
		})
	}
}

// Registries differ in how they refuse a login that is valid and not for the repository.
func TestALoginThatIsRefusedInAnyWayIsFollowedByTheNext(t *testing.T) {
	const missing = `{"errors":[{"code":"NAME_UNKNOWN"}]}`
	for name, refuse := range map[string]func(w http.ResponseWriter, r *http.Request){
		"401":                       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		"403":                       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
		"404":                       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) },
		"404, no such repository":   func(w http.ResponseWriter, _ *http.Request) { http.Error(w, missing, http.StatusNotFound) },
		"404, with a page for HTML": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", http.StatusNotFound) },
		"by its token server": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="x"`, r.Host))
			w.WriteHeader(http.StatusUnauthorized)
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnvironment(t, fixture.RegistryOptions{})
			img := e.signed(t, "org/app", "a")
			e.registry.SetIntercept(func(w http.ResponseWriter, r *http.Request) bool {
				user, _, basic := r.BasicAuth()
				switch {
				case r.Header.Get("Authorization") == "Bearer T", basic && user == "robot" && !strings.Contains(name, "token"):
					return false
				case r.URL.Path == "/token" && user == "robot":
					w.Header().Set("Content-Type", "application/json")
					_, _ = fmt.Fprint(w, `{"token":"T"}`)
				case r.URL.Path == "/token":
					w.WriteHeader(http.StatusForbidden)
				case !basic && r.Header.Get("Authorization") == "" && !strings.Contains(name, "token"):
					w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
					w.WriteHeader(http.StatusUnauthorized)
				default:
					refuse(w, r)
				}
				return true
			})
			first, second := `{"auths": {"`+e.registry.Host()+`/org": `+loginOf("other:other")+`}}`, `{"auths": {"`+e.registry.Host()+`": `+loginOf("robot:secret")+`}}`
			resources := e.trusting(t, "team-a", "a")
			require.Empty(t, e.apply(t, e.pullSecrets("team-a", second, first), resources, e.policy(t, "team-a", "p", releaseNeeded)))
			requireOutcome(t, policy.Allowed, e.outcome(t, "team-a", img))

			require.Empty(t, e.apply(t, e.pullSecrets("team-a", first, strings.ReplaceAll(first, "/org", "")), resources, e.policy(t, "team-a", "p", releaseNeeded)))
			requireOutcome(t, policy.Denied, e.outcome(t, "team-a", img))
		})
	}
}
