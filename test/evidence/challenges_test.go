//go:build !e2e && !nightly

package evidence

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// login gives a namespace a Store with the login of robot for the registry.
func (e *environment) login(t *testing.T, namespace string) func(*resource.Objects) {
	t.Helper()
	return e.pullSecrets(namespace, `{"auths": {"`+e.registry.Host()+`": `+loginOf("robot:secret")+`}}`)
}

// loginOf is an entry of a pull secret.
func loginOf(login string) string {
	return `{"auth": "` + base64.StdEncoding.EncodeToString([]byte(login)) + `"}`
}

// pullSecrets gives a namespace a Store of the registry with pull secrets.
func (e *environment) pullSecrets(namespace string, secrets ...string) func(*resource.Objects) {
	return func(o *resource.Objects) {
		s := &v1beta1.Store{}
		s.Namespace, s.Name, s.Spec.Registries = namespace, "registry", []string{e.registry.Host()}
		for i, text := range secrets {
			name := fmt.Sprintf("pull-%d", i)
			o.Secrets = append(o.Secrets, corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Type: corev1.SecretTypeDockerConfigJson,
				Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(text)}})
			s.Spec.ImagePullSecrets = append(s.Spec.ImagePullSecrets, v1beta1.Reference{Name: name})
		}
		o.Resources = append(o.Resources, s)
	}
}

// Registries behind proxies offer several ways to log in, of which the first is often not the one.
func TestTheLoginIsUsedByTheWayThatSuitsIt(t *testing.T) {
	const bearer = `Bearer realm="http://HOST/token",service="x"`
	for name, c := range map[string]struct {
		challenges []string
		tokens     bool // that alone are taken
		want       policy.Outcome
	}{
		"Basic":                             {[]string{`Basic realm="x"`}, false, policy.Allowed},
		"Negotiate, and Basic":              {[]string{`Negotiate`, `Basic realm="x"`}, false, policy.Allowed},
		"Negotiate and Basic in one header": {[]string{`Negotiate, Basic realm="x"`}, false, policy.Allowed},
		"NTLM, Digest and Basic":            {[]string{`NTLM, Digest realm="a, b", nonce="1", Basic realm="x"`}, false, policy.Allowed},
		"Basic before Bearer":               {[]string{`Basic realm="x", ` + bearer}, true, policy.Allowed},
		"Basic, then Bearer":                {[]string{`Basic realm="x"`, bearer}, true, policy.Allowed},
		"Bearer before Basic":               {[]string{bearer + `, Basic realm="x"`}, true, policy.Allowed},
		"Bearer elsewhere, behind Basic":    {[]string{`Basic realm="x", Bearer realm="https://evil.example.com/token"`}, true, policy.Denied},
		"Bearer elsewhere, for a password":  {[]string{`Basic realm="x", Bearer realm="https://evil.example.com/token"`}, false, policy.Allowed},
		"Bearer elsewhere, within quotes":   {[]string{`Basic realm="a, Bearer realm=https://evil.example.com/token"`}, false, policy.Allowed},
		"only Negotiate":                    {[]string{`Negotiate`}, false, policy.Denied},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnvironment(t, fixture.RegistryOptions{})
			img := e.signed(t, "app", "a")
			var spoken atomic.Int64 // how often the password came without a token server
			e.registry.SetIntercept(func(w http.ResponseWriter, r *http.Request) bool {
				user, password, basic := r.BasicAuth()
				right := basic && user == "robot" && password == "secret"
				switch {
				case r.URL.Path == "/token" && right:
					w.Header().Set("Content-Type", "application/json")
					_, _ = fmt.Fprint(w, `{"token":"T"}`)
					return true
				case r.Header.Get("Authorization") == "Bearer T", right && !c.tokens:
					return false
				case basic:
					spoken.Add(1)
				}
				for _, challenge := range c.challenges {
					w.Header().Add("WWW-Authenticate", strings.ReplaceAll(challenge, "HOST", r.Host))
				}
				w.WriteHeader(http.StatusUnauthorized)
				return true
			})
			require.Empty(t, e.apply(t, e.login(t, "team-a"), e.trusting(t, "team-a", "a"), e.policy(t, "team-a", "p", releaseNeeded)))
			verdict := e.outcome(t, "team-a", img)
			require.Equal(t, c.want == policy.Allowed, verdict.Outcome() == policy.Allowed, verdict.Reason)
			if !strings.Contains(name, "behind Basic") {
				require.Zero(t, spoken.Load(), "no password is sent where it is not taken")
			}
		})
	}
}
