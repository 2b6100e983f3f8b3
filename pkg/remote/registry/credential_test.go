package registry_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/test/kit/hostile"
)

// loginFor returns the only login of a store.
func loginFor(host string, credential registry.Credential) registry.Logins {
	login, err := registry.NewLogin(host, credential)
	if err != nil {
		panic(err)
	}
	return registry.Logins{login}
}

// auth is an entry for a user whose password is "secret".
func auth(user string) string {
	return fmt.Sprintf(`{"auth": %q}`, base64.StdEncoding.EncodeToString([]byte(user+":secret")))
}

// usersFor returns who logs in for a repository, in order; "" is the anonymous user.
func usersFor(logins registry.Logins, host, repository string) (users []string) {
	credentials, _ := logins.For(host, repository, true)
	for _, credential := range credentials {
		users = append(users, credential.Username)
	}
	return users
}

func TestLoginsAreThoseThatAKubeletTriesInItsOrder(t *testing.T) {
	for name, c := range map[string]struct {
		auths      string
		host, path string
		users      []string
	}{
		"the host":                         {`"r.example.com": ` + auth("a"), "r.example.com", "org/app", []string{"a"}},
		"elsewhere":                        {`"s.example.com": ` + auth("a"), "r.example.com", "org/app", []string{""}},
		"none":                             {``, "r.example.com", "org/app", []string{""}},
		"an empty entry is nobody":         {`"r.example.com": {}`, "r.example.com", "org/app", []string{""}},
		"an empty entry beside a path":     {`"r.example.com": {}, "r.example.com/org": ` + auth("a"), "r.example.com", "org/app", []string{"a", ""}},
		"null is an empty entry":           {`"r.example.com": null`, "r.example.com", "org/app", []string{""}},
		"a path":                           {`"r.example.com/org": ` + auth("a"), "r.example.com", "org/app", []string{"a"}},
		"the path of others":               {`"r.example.com/org": ` + auth("a"), "r.example.com", "other/app", []string{""}},
		"a path is a prefix, not a folder": {`"r.example.com/org": ` + auth("a"), "r.example.com", "organisation/app", []string{"a"}},
		"the whole repository":             {`"r.example.com/org/app": ` + auth("a"), "r.example.com", "org/app", []string{"a"}},
		"longer paths first": {`"r.example.com": ` + auth("a") + `, "r.example.com/org/app": ` + auth("c") + `, "r.example.com/org": ` + auth("b"),
			"r.example.com", "org/app", []string{"c", "b", "a"}},
		"a scheme":             {`"https://r.example.com": ` + auth("a"), "r.example.com", "org/app", []string{"a"}},
		"a scheme without TLS": {`"http://r.example.com": ` + auth("a"), "r.example.com", "org/app", []string{"a"}},
		"Docker's path": {`"https://r.example.com/v1/": ` + auth("a") + `, "https://s.example.com/v2/": ` + auth("b"), "r.example.com",
			"org/app", []string{"a"}},
		"Docker's path without a slash":  {`"https://r.example.com/v2": ` + auth("a"), "r.example.com", "org/app", []string{"a"}},
		"Docker's path and one":          {`"https://r.example.com/v2/org": ` + auth("a"), "r.example.com", "org/app", []string{"a"}},
		"the port of HTTPS":              {`"r.example.com:443": ` + auth("a"), "r.example.com", "org/app", []string{"a"}},
		"another port":                   {`"r.example.com:5000": ` + auth("a"), "r.example.com", "org/app", []string{""}},
		"its port":                       {`"r.example.com:5000": ` + auth("a"), "r.example.com:5000", "org/app", []string{"a"}},
		"capitals":                       {`"R.Example.com": ` + auth("a"), "r.example.com", "org/app", []string{"a"}},
		"a wildcard":                     {`"*.example.com": ` + auth("a"), "r.example.com", "org/app", []string{"a"}},
		"a wildcard is for one label":    {`"*.com": ` + auth("a"), "r.example.com", "org/app", []string{""}},
		"a wildcard within a label":      {`"*-docker.pkg.dev/project": ` + auth("a"), "europe-docker.pkg.dev", "project/app", []string{"a"}},
		"a wildcard for nothing":         {`"r*.example.com": ` + auth("a"), "r.example.com", "org/app", []string{"a"}},
		"two wildcards in a label":       {`"*g*st*.example.com": ` + auth("a"), "registry-1.example.com", "org/app", []string{"a"}},
		"two wildcards in another label": {`"*g*sts*.example.com": ` + auth("a"), "registry-1.example.com", "org/app", []string{""}},
		"what a wildcard needs twice":    {`"ab*ba.example.com": ` + auth("a"), "aba.example.com", "org/app", []string{""}},
		"a wildcard after the name":      {`"*.example.com": ` + auth("b") + `, "r.example.com": ` + auth("a"), "r.example.com", "org/app", []string{"a", "b"}},
		"a wildcard has no port":         {`"*.example.com": ` + auth("a"), "r.example.com:5000", "org/app", []string{""}},
		"one user twice":                 {`"r.example.com": ` + auth("a") + `, "r.example.com/org": ` + auth("a"), "r.example.com", "org/app", []string{"a"}},
		"Docker Hub":                     {`"https://index.docker.io/v1/": ` + auth("a"), "docker.io", "library/app", []string{"a"}},
		"Docker Hub by its name first": {`"https://index.docker.io/v1/": ` + auth("b") + `, "docker.io": ` + auth("a"), "docker.io",
			"library/app", []string{"a"}},
		"Docker Hub by its other names": {`"registry-1.docker.io": ` + auth("a"), "docker.io", "library/app", []string{"a"}},
		"Docker Hub by its other names last": {`"registry-1.docker.io": ` + auth("b") + `, "index.docker.io": ` + auth("a"), "docker.io",
			"library/app", []string{"a"}},
		"Docker Hub in capitals with a port": {`"DOCKER.io:443": ` + auth("a"), "docker.io", "library/app", []string{"a"}},
		"Docker Hub's API":                   {`"https://registry.hub.docker.com/v2/": ` + auth("a"), "docker.io", "library/app", []string{"a"}},
		"Docker Hub for another host":        {`"https://index.docker.io/v1/": ` + auth("a"), "r.example.com", "library/app", []string{""}},
		"auth beside a user name": {`"r.example.com": {"username": "b", "password": "p", "auth": "` +
			base64.StdEncoding.EncodeToString([]byte("a:secret")) + `"}`, "r.example.com", "org/app", []string{"a"}},
		"auth without padding": {`"r.example.com": {"auth": "` + strings.TrimRight(base64.StdEncoding.EncodeToString([]byte("robo:secret")), "=") +
			`"}`, "r.example.com", "org/app", []string{"robo"}},
		"auth with line ends": {`"r.example.com": {"auth": "` + base64.StdEncoding.EncodeToString([]byte("robo:secret")) + `\n"}`, "r.example.com",
			"org/app", []string{"robo"}},
		"names of fields in capitals": {`"r.example.com": {"Username": "a", "Password": "p"}`, "r.example.com", "org/app", []string{"a"}},
		"a field that nobody knows": {`"r.example.com": {"username": "a", "password": "p", "email": null, "x": [1]}`, "r.example.com",
			"org/app", []string{"a"}},
		"an address":                           {`"10.0.0.1:5000": ` + auth("a"), "10.0.0.1:5000", "org/app", []string{"a"}},
		"an address of version 6":              {`"[2001:db8::1]:5000": ` + auth("a"), "[2001:db8::1]:5000", "org/app", []string{"a"}},
		"an address of version 6, port HTTPS":  {`"[2001:db8::1]": ` + auth("a"), "[2001:db8::1]", "org/app", []string{"a"}},
		"of a user in the key nothing is left": {`"https://u:p@r.example.com": ` + auth("a"), "r.example.com", "org/app", []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			logins, ignored, err := registry.ParseDockerConfig([]byte(`{"auths": {` + c.auths + `}}`))
			require.NoError(t, err)
			require.Empty(t, ignored)
			require.Equal(t, c.users, usersFor(logins, c.host, c.path))
		})
	}
}

func TestAnEntryThatIsNotUnderstoodSpoilsNoOther(t *testing.T) {
	for entry, why := range map[string]string{
		`"r.example.com": "secret"`:                                    `entry "r.example.com" is ignored: it is not an object`,
		`"r.example.com": {"auth": 5}`:                                 `entry "r.example.com" is ignored: it is not an object`,
		`"r.example.com": {"auth": "secret!"}`:                         `entry "r.example.com" is ignored: auth is not base64`,
		`"r.example.com": {"auth": "c2VjcmV0"}`:                        `entry "r.example.com" is ignored: auth is not a user name and a password`,
		`"https://": ` + auth("a"):                                     `entry "https://" is ignored: it is not for a registry host`,
		`"r.example.com:port": ` + auth("a"):                           `is ignored: it is not for a registry host`,
		`"r.example.com/%zz": ` + auth("a"):                            `is ignored: it is not for a registry host`,
		`"": ` + auth("a"):                                             `entry "" is ignored: it is not for a registry host`,
		`"a[.example.com": ` + auth("a"):                               `is ignored`,
		`"https://robot:secret@x.example.com/v1/": 5`:                  `entry "https://x.example.com/v1/" is ignored`,
		`"robot:secret@x.example.com": 5`:                              `entry "x.example.com" is ignored`,
		`"https://user:pa/secret@x.example.com": 5`:                    `entry "https://x.example.com" is ignored`,
		`"doc\u212aer.io": ` + auth("a"):                               `is ignored: it is not for a registry host`,
		`"` + strings.Repeat("a", 300) + `": ` + auth("a"):             `is ignored: it is not for a registry host`,
		`"x": {}}, "credsStore": 5, "y": {"z": {}`:                     `credsStore and credHelpers are ignored`,
		`"x": {}}, "credHelpers": [], "credsStore": "", "y": {"z": {}`: `credsStore and credHelpers are ignored`,
		`"` + strings.Repeat("a.", 256) + `b": ` + auth("a"):           `the limit is 512`,
		`"x": {}}, "credsStore": "desktop", "y": {"z": {}`:             `credsStore and credHelpers are ignored`,
		`"x": {}}, "credHelpers": {"r": "ecr-login"`:                   `credsStore and credHelpers are ignored`,
		`"s": ` + strings.ReplaceAll(auth("a"), "auth", "no"):          "",
	} {
		t.Run(entry, func(t *testing.T) {
			logins, ignored, err := registry.ParseDockerConfig([]byte(`{"auths": {"good.example.com": ` + auth("good") + `, ` + entry + `}}`))
			require.NoError(t, err)
			require.Equal(t, []string{"good"}, usersFor(logins, "good.example.com", "org/app"))
			if why == "" {
				require.Empty(t, ignored)
				return
			}
			require.Len(t, ignored, 1)
			require.Contains(t, ignored[0], why)
			require.NotContains(t, ignored[0], "secret")
		})
	}
}

func TestFormsOfAPullSecretAreRead(t *testing.T) {
	entry := `"r.example.com": ` + auth("a")
	for name, text := range map[string]string{
		"of today":            `{"auths": {` + entry + `}}`,
		"of .dockercfg":       `{` + entry + `}`,
		"with a BOM":          "\ufeff" + `{"auths": {` + entry + `}}`,
		"with line ends":      `{"auths": {` + entry + `}}` + "\r\n\n",
		"with HTTP headers":   `{"auths": {` + entry + `}, "HttpHeaders": {"User-Agent": "x"}}`,
		"in capitals":         `{"Auths": {` + entry + `}}`,
		"with another secret": `{"auths": {` + entry + `}, "credsStore": ""}`,
	} {
		t.Run(name, func(t *testing.T) {
			logins, ignored, err := registry.ParseDockerConfig([]byte(text))
			require.NoError(t, err)
			require.Empty(t, ignored)
			require.Equal(t, []string{"a"}, usersFor(logins, "r.example.com", "org/app"))
		})
	}
	for text, why := range map[string]string{
		``:                                       "is not JSON",
		`not`:                                    "is not JSON",
		`[]`:                                     "is not JSON",
		`{"auths": []}`:                          "is not JSON",
		`{"auths": {}} {}`:                       "is not JSON",
		strings.Repeat(" ", 256<<10) + `{}`:      "the limit is 262144",
		`{"auths": {` + hosts(257, "r") + `}}`:   "has 257 hosts, the limit is 256",
		`{"auths": {"r": {"auth": "c2VjcmV0"}},`: "is not JSON",
	} {
		_, _, err := registry.ParseDockerConfig([]byte(text))
		require.ErrorContains(t, err, why)
		require.NotContains(t, err.Error(), "c2VjcmV0")
	}
}

// hosts are n entries.
func hosts(n int, label string) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"%s%d.example.com/a": {"username": "u%d"}`, label, i, i))
	}
	return strings.Join(all, ",")
}

func TestLoginsAreBounded(t *testing.T) {
	some, ignored, err := registry.ParseDockerConfig([]byte(`{"auths": {` + hosts(30, "*") + `}}`))
	require.NoError(t, err)
	require.Empty(t, ignored)
	more, _, err := registry.ParseDockerConfig([]byte(`{"auths": {` + hosts(10, "*.x") + "," + hosts(200, "r") + `}}`))
	require.NoError(t, err)
	all, leftOut := registry.Logins{}.Add(some)
	require.Zero(t, leftOut)
	all, leftOut = all.Add(more)
	require.Equal(t, 8, leftOut, "those with wildcards past 32")
	require.Len(t, all, 232)

	many := registry.Logins{}
	for i := range 40 {
		many, _ = many.Add(loginFor("r.example.com", registry.Credential{Username: fmt.Sprint(i)}))
	}
	credentials, cut := many.For("r.example.com", "app", true)
	require.True(t, cut)
	require.Len(t, credentials, 8)
	require.Equal(t, "0", credentials[0].Username, "of one key, the first secret comes first")

	_, ignored, err = registry.ParseDockerConfig([]byte(`{"auths": {` + strings.ReplaceAll(hosts(100, "r"), "{", "[{") + `}}`))
	require.Error(t, err)
	require.Empty(t, ignored)
	var bad []string
	for i := range 200 {
		bad = append(bad, fmt.Sprintf(`"r%d.example.com": 5`, i))
	}
	logins, ignored, err := registry.ParseDockerConfig([]byte(`{"auths": {` + strings.Join(bad, ",") + `}}`))
	require.NoError(t, err)
	require.Empty(t, logins)
	require.Len(t, ignored, 5)
	require.Equal(t, "196 more entries are ignored", ignored[4])
}

// Whoever names an image chooses the host among those of a pattern, perhaps a server of their own.
func TestAKeyWithWildcardsIsForHostsThatTheStoreNames(t *testing.T) {
	logins := loginFor("*.apps.example.com", registry.Credential{Username: "u"})
	named, _ := logins.For("r.apps.example.com", "app", true)
	require.Equal(t, "u", named[0].Username)
	byPattern, _ := logins.For("r.apps.example.com", "app", false)
	require.Equal(t, []registry.Credential{{}}, byPattern)
}

// The registry hides a repository from one login, refuses another, and lets a third read.
func TestAListIsOnlyCompleteIfItsLoginMayRead(t *testing.T) {
	h := hostile.New()
	t.Cleanup(h.Close)
	const listed = `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json",` +
		`"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",` +
		`"size":7}]}`
	for path, answer := range map[string]func(user string) (int, string){
		"/manifests/": func(user string) (int, string) {
			if user == "reader" || user == "partial" {
				return http.StatusOK, "{}"
			}
			return http.StatusNotFound, ""
		},
		"/referrers/": func(user string) (int, string) {
			switch user {
			case "owner":
				return http.StatusOK, listed
			case "reader":
				return http.StatusOK, `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`
			}
			return http.StatusNotFound, ""
		},
	} {
		h.Handle("", path, func(w http.ResponseWriter, r *http.Request) {
			user, _, ok := r.BasicAuth()
			if !ok || user == "expired" {
				w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			status, text := answer(user)
			if strings.Contains(r.URL.Path, "sha256-") { // a tag
				status, text = http.StatusNotFound, ""
			}
			w.Header().Set("Content-Type", "application/vnd.oci.image.index.v1+json")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(text))
		})
	}
	for name, c := range map[string]struct {
		users []string
		found int
		says  string
	}{
		"the owner":                             {[]string{"owner"}, 1, ""},
		"the owner after one that sees nothing": {[]string{"stranger", "owner"}, 1, ""},
		"the owner after an expired one":        {[]string{"expired", "owner"}, 1, ""},
		"an expired one and a stranger":         {[]string{"expired", "stranger"}, 0, "2 logins of Store team-a/own were tried"},
		"a stranger and an expired one":         {[]string{"stranger", "expired"}, 0, "refuses access"},
		"a reader of an empty list":             {[]string{"expired", "reader"}, 0, ""},
		"two expired ones":                      {[]string{"expired", "expired2"}, 0, "were tried"},
		"more than are tried":                   {[]string{"s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9"}, 0, "match than are tried"},
	} {
		t.Run(name, func(t *testing.T) {
			var logins registry.Logins
			for _, user := range c.users {
				logins, _ = logins.Add(loginFor(h.Host(), registry.Credential{Username: strings.TrimSuffix(user, "2"), Password: user}))
			}
			access := registry.Access{Namespace: "team-a", Hosts: plain(h.Host()), Stores: []registry.Store{{
				Source: policy.ObjectRef{Kind: "Store", Namespace: "team-a", Name: "own"}, Registries: []string{h.Host()}, Logins: logins}}}
			subject := parse(t, h.Host()+"/app@sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a") // {}
			found, err := session(t, registry.Options{}, access).Referrers(t.Context(), subject)
			require.Len(t, found, c.found)
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.says)
			require.True(t, verify.IsPermanent(err))
		})
	}
}

// FuzzPullSecrets holds that whatever is in a pull secret, it is read or refused without telling a password, and that
// no login goes to a host that its key does not name.
func FuzzPullSecrets(f *testing.F) {
	for _, key := range []string{"r.example.com", "https://r.example.com/v1/", "*.example.com", "r.example.com/org", "index.docker.io", "[::1]:5000", "a[.b",
		"%zz", "", "*", "*.*.*", "https://user:hunter2@r.example.com"} {
		f.Add(key, `{"auth": "dTpwYXNz"}`, "r.example.com", "org/app")
	}
	f.Fuzz(func(t *testing.T, key, entry, host, repository string) {
		quoted, err := json.Marshal(key)
		require.NoError(t, err)
		logins, ignored, err := registry.ParseDockerConfig([]byte(`{"auths": {"good.example.com": ` + auth("good") + `, ` + string(quoted) + `: ` + entry + `}}`))
		if err != nil {
			return
		}
		for _, said := range ignored {
			require.NotContains(t, said, "hunter2")
		}
		credentials, _ := logins.For(host, repository, true)
		require.LessOrEqual(t, len(credentials), 8)
		if key != "good.example.com" && !strings.Contains(key, "*") {
			for _, user := range usersFor(logins, "other.example.net", repository) {
				require.True(t, user == "" || strings.Contains(strings.ToLower(key), "other.example.net"), "%q gives %q a login", key, "other.example.net")
			}
		}
	})
}

func TestLoginsForOtherHostsAloneAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		keys, registries, others []string
	}{
		"a mistyped host":          {[]string{"registry.exmaple.com"}, []string{"registry.example.com"}, []string{"registry.exmaple.com"}},
		"another port":             {[]string{"r.example.com:5001"}, []string{"r.example.com:5000"}, []string{"r.example.com:5001"}},
		"one of two fits":          {[]string{"a.example.com", "r.example.com/team"}, []string{"r.example.com"}, nil},
		"a wildcard":               {[]string{"*.example.com"}, []string{"r.example.com"}, nil},
		"another name of a hub":    {[]string{"https://index.docker.io/v1/"}, []string{"docker.io"}, nil},
		"no login":                 {nil, []string{"docker.io"}, nil},
		"the hub for another host": {[]string{"https://index.docker.io/v1/"}, []string{"r.example.com"}, []string{"docker.io"}},
	} {
		t.Run(name, func(t *testing.T) {
			var logins registry.Logins
			for _, key := range c.keys {
				logins, _ = logins.Add(loginFor(key, registry.Credential{Username: "u", Password: "p"}))
			}
			require.Equal(t, c.others, logins.Elsewhere(c.registries))
		})
	}
}

func TestARefusedLoginIsSaidToBeOneAndWhoRenewsIt(t *testing.T) {
	h := hostile.New()
	t.Cleanup(h.Close)
	h.Handle("", "/v2/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
	})
	for source, fix := range map[policy.ObjectRef]string{
		{Kind: "Store", Namespace: "team-a", Name: "own"}: "renew the login for HOST that Store team-a/own uses, or let it read HOST/app",
		{Kind: "ClusterStore", Name: "platform"}:          "ask a cluster admin to renew the login for HOST that ClusterStore platform uses, or let it read HOST/app",
	} {
		access := registry.Access{Namespace: "team-a", Hosts: plain(h.Host()),
			Stores: []registry.Store{
				{Source: source, Registries: []string{h.Host()}, Logins: loginFor(h.Host(), registry.Credential{Username: "u", Password: "wrong"})}}}
		_, err := session(t, registry.Options{}, access).Resolve(t.Context(), parse(t, h.Host()+"/app:v1"))
		found := verify.FindingOf(err)
		require.Equal(t, policy.ReasonAccessDenied, found.Reason)
		require.Contains(t, found.Message, "refuses access with the login of "+source.String()+", which is wrong, has expired, or may not read "+h.Host()+"/app")
		require.Equal(t, strings.ReplaceAll(fix, "HOST", h.Host()), found.Remediation)
	}
}
