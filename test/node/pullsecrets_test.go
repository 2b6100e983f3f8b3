//go:build nightly && linux

package node_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// auth is an entry of a pull secret.
func auth(user string) string {
	return `{"auth": "` + base64.StdEncoding.EncodeToString([]byte(user+":secret")) + `"}`
}

// usersFor returns whom the product would log in as for a repository, in order.
func usersFor(t *testing.T, secrets []string, host, repository string) (users []string) {
	t.Helper()
	var logins registry.Logins
	for _, text := range secrets {
		found, _, err := registry.ParseDockerConfig([]byte(text))
		require.NoError(t, err, text)
		logins, _ = logins.Add(found)
	}
	credentials, more := logins.For(host, repository, true)
	require.False(t, more)
	for _, credential := range credentials {
		users = append(users, credential.Username)
	}
	return users
}

// The registry lets nobody in but robot, so a pod only runs if the node comes to that login; and before it, both try the
// same ones.
func TestAKubeletTriesTheLoginsOfAPullSecretThatTheProductTries(t *testing.T) {
	m := theMachine(t)
	const host, repository = "locked.example.com", "org/app"
	img, err := m.Image("locked.example.com/org/app:1")
	require.NoError(t, err)
	m.mirror.push(t, host, repository, "1", img)
	m.mirror.guard(func(w http.ResponseWriter, r *http.Request) (user string, ok bool) {
		if r.URL.Query().Get("ns") != host {
			return "", true
		}
		user, _, _ = r.BasicAuth()
		if user != "robot" {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
		return user, user == "robot"
	})
	t.Cleanup(func() { m.mirror.guard(nil) })
	namespace := suite.Fresh("team-a")
	require.NoError(t, m.Client.Create(t.Context(), suite.Namespace(namespace)))

	right, wrong := auth("robot"), auth("other")
	for i, c := range []struct {
		name    string
		kind    corev1.SecretType
		secrets []string
		runs    bool
	}{
		{"the host", corev1.SecretTypeDockerConfigJson, []string{`{"auths": {"locked.example.com": ` + right + `}}`}, true},
		{"the older form", corev1.SecretTypeDockercfg, []string{`{"locked.example.com": ` + right + `}`}, true},
		{"no secret", "", nil, false},
		{"a wrong login", corev1.SecretTypeDockerConfigJson, []string{`{"auths": {"locked.example.com": ` + wrong + `}}`}, false},
		{"two secrets", corev1.SecretTypeDockerConfigJson,
			[]string{`{"auths": {"locked.example.com": ` + wrong + `}}`, `{"auths": {"locked.example.com": ` + right + `}}`}, true},
		{"a scheme and Docker's path", corev1.SecretTypeDockerConfigJson, []string{`{"auths": {"https://locked.example.com/v1/": ` + right + `}}`}, true},
		{"a path", corev1.SecretTypeDockerConfigJson, []string{`{"auths": {"locked.example.com/org": ` + right + `}}`}, true},
		{"another path", corev1.SecretTypeDockerConfigJson, []string{`{"auths": {"locked.example.com/other": ` + right + `}}`}, false},
		{"a path after the host", corev1.SecretTypeDockerConfigJson,
			[]string{`{"auths": {"locked.example.com/org": ` + wrong + `, "locked.example.com": ` + right + `}}`}, true},
		{"a wildcard", corev1.SecretTypeDockerConfigJson, []string{`{"auths": {"*.example.com": ` + right + `}}`}, true},
		{"a wildcard for one label", corev1.SecretTypeDockerConfigJson, []string{`{"auths": {"*.com": ` + right + `}}`}, false},
		{"an empty entry", corev1.SecretTypeDockerConfigJson, []string{`{"auths": {"locked.example.com": {}, "locked.example.com/org": ` + right + `}}`}, true},
		{"credsStore", corev1.SecretTypeDockerConfigJson,
			[]string{`{"auths": {"locked.example.com": ` + right + `}, "credsStore": "desktop", "credHelpers": {"locked.example.com": "x"}}`}, true},
		{"no padding", corev1.SecretTypeDockerConfigJson, []string{`{"auths": {"locked.example.com": ` + strings.ReplaceAll(right, "=", "") + `}}`}, true},
		{"auth beside a user name", corev1.SecretTypeDockerConfigJson,
			[]string{`{"auths": {"locked.example.com": {"username": "other", "password": "x", ` + right[1:] + `}}`}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			pod := m.Pod(namespace, fmt.Sprintf("login-%d", i), host+"/"+repository+":1", corev1.PullAlways)
			for n, text := range c.secrets {
				key := corev1.DockerConfigJsonKey
				if c.kind == corev1.SecretTypeDockercfg {
					key = corev1.DockerConfigKey
				}
				secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("login-%d-%d", i, n)}, Type: c.kind,
					Data: map[string][]byte{key: []byte(text)}}
				require.NoError(t, m.Client.Create(t.Context(), secret))
				pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: secret.Name})
			}
			m.mirror.take()
			o := m.start(t, pod)
			require.Equal(t, c.runs, o.imageID != "", "%+v", o)
			ours := usersFor(t, c.secrets, host, repository)
			if at := slices.Index(ours, "robot"); at >= 0 {
				ours = ours[:at+1]
			}
			require.Equal(t, c.runs, slices.Contains(ours, "robot"))
			tried := m.mirror.users()
			ours = slices.DeleteFunc(ours, func(user string) bool { return user == "" })
			require.Equal(t, ours, tried[:min(len(tried), len(ours))], "the kubelet tries more than once")
		})
	}
}

// Random pull secrets have what people write, and the product and the kubelet's own code try the same logins in the same
// order. Where the product takes more (another case, the port of HTTPS, other names of Docker Hub, entries beside a
// broken one), tests of its package say so.
func TestTheLoginsOfAPullSecretAreThoseOfTheKubeletsCode(t *testing.T) {
	type question struct{ Secrets, Images []string }
	random := rand.New(rand.NewPCG(1, 2)) // repeatable
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	var questions []question
	var input bytes.Buffer
	for range 20_000 {
		q := question{Images: []string{"r.example.com/org/app", "s.example.com/org", "docker.io/library/app", "eu-docker.pkg.dev/p/app", "r.example.com:5000/a/b",
			"10.0.0.1:5000/org/app"}}
		user := 0
		for range 1 + random.IntN(3) {
			var entries []string
			keys := map[string]bool{}
			for range random.IntN(5) {
				key := pick("", "", "https://", "http://") +
					pick("r.example.com", "r.example.com", "*.example.com", "*.*.com", "?.example.com", "[rs].example.com", "*", "r*.e*m*e.*", "*x*.example.com",
						"s.example.com", "*-docker.pkg.dev", "index.docker.io", "docker.io",
						"r.example.com:5000", "*.example.com:5000", "10.0.0.1:5000", "10.*.0.1:5000", "example.com") +
					pick("", "", "/", "/v1/", "/v2/", "/org", "/org/", "/org/app", "/v2/org", "/v1/a", "/p")
				// Which of two spellings of a key comes first is chance.
				if plain := strings.TrimSuffix(strings.NewReplacer("https://", "", "http://", "", "/v1/", "/", "/v2/", "/").Replace(key), "/"); !keys[plain] {
					keys[plain] = true
					user++
					entries = append(entries,
						fmt.Sprintf("%q: %s", key,
							pick(auth(fmt.Sprint("u", user)), `{}`, fmt.Sprintf(`{"username": "u%d", "password": "p", "email": "e"}`, user),
								strings.ReplaceAll(auth(fmt.Sprint("u", user)), "=", ""))))
				}
			}
			q.Secrets = append(q.Secrets, `{"auths": {`+strings.Join(entries, ", ")+`}`+pick("", `, "credsStore": "x"`, `, "HttpHeaders": {"A": "b"}`)+`}`)
		}
		line, err := json.Marshal(q)
		require.NoError(t, err)
		input.Write(append(line, '\n'))
		questions = append(questions, q)
	}
	command := exec.CommandContext(t.Context(), suite.MustTool(t, suite.Keyring))
	command.Stdin = &input
	output, err := command.Output()
	require.NoError(t, err)
	lines := bufio.NewScanner(bytes.NewReader(output))
	lines.Buffer(nil, 1<<20)
	logged := 0
	for _, q := range questions {
		require.True(t, lines.Scan())
		var answer struct {
			Users [][]string
			Error string
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &answer))
		require.Empty(t, answer.Error)
		for i, name := range q.Images {
			ref, err := image.Parse(name + ":1")
			require.NoError(t, err)
			var want []string
			for _, user := range answer.Users[i] { // the kubelet tries nobody twice, if twice is written
				if !slices.Contains(want, user) {
					want = append(want, user)
				}
			}
			if len(want) == 0 {
				want = []string{""}
			} else {
				logged++
			}
			require.Equal(t, want, usersFor(t, q.Secrets, ref.Host, ref.Repository), "%s with %s", name, q.Secrets)
		}
	}
	require.Greater(t, logged, len(questions), "most questions are about a login")
}
