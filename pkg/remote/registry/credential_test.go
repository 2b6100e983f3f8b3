package registry_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/remote/registry"
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

// usersFor returns who logs in for a repository, in order; "" is nobody.
func usersFor(logins registry.Logins, host, repository string) (users []string) {
	for _, credential := range logins.For(host, repository) {
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
		"the host":                             {`"r.example.com": ` + auth("a"), "r.example.com", "org/app", []string{"a"}},
		"elsewhere":                            {`"s.example.com": ` + auth("a"), "r.example.com", "org/app", []string{""}},
		"none":                                 {``, "r.example.com", "org/app", []string{""}},
		"an empty entry is nobody":             {`"r.example.com": {}`, "r.example.com", "org/app", []string{""}},
		"an empty entry beside a path":         {`"r.example.com": {}, "r.example.com/org": ` + auth("a"), "r.example.com", "org/app", []string{"a", ""}},
		"null is an empty entry":               {`"r.example.com": null`, "r.example.com", "org/app", []string{""}},
		"a path":                               {`"r.example.com/org": ` + auth("a"), "r.example.com", "org/app", []string{"a"}},
		"the path of others":                   {`"r.example.com/org": ` + auth("a"), "r.example.com", "other/app", []string{""}},
		"a path is a prefix, not a folder":     {`"r.example.com/org": ` + auth("a"), "r.example.com", "organisation/app", []string{"a"}},
		"the whole repository":                 {`"r.example.com/org/app": ` + auth("a"), "r.example.com", "org/app", []string{"a"}},
		"longer paths first":                   {`"r.example.com": ` + auth("a") + `, "r.example.com/org/app": ` + auth("c") + `, "r.example.com/org": ` + auth("b"), "r.example.com", "org/app", []string{"c", "b", "a"}},
		"a scheme":                             {`"https://r.example.com": ` + auth("a"), "r.example.com", "org/app", []string{"a"}},
		"a scheme without TLS":                 {`"http://r.example.com": ` + auth("a"), "r.example.com", "org/app", []string{"a"}},
		"Docker's path":                        {`"https://r.example.com/v1/": ` + auth("a") + `, "https://s.example.com/v2/": ` + auth("b"), "r.example.com", "org/app", []string{"a"}},
		"Docker's path without a slash":        {`"https://r.example.com/v2": ` + auth("a"), "r.example.com", "org/app", []string{"a"}},
		"Docker's path and one":                {`"https://r.example.com/v2/org": ` + auth("a"), "r.example.com", "org/app", []string{"a"}},
		"the port of HTTPS":                    {`"r.example.com:443": ` + auth("a"), "r.example.com", "org/app", []string{"a"}},
		"another port":                         {`"r.example.com:5000": ` + auth("a"), "r.example.com", "org/app", []string{""}},
		"its port":                             {`"r.example.com:5000": ` + auth("a"), "r.example.com:5000", "org/app", []string{"a"}},
		"capitals":                             {`"R.Example.com": ` + auth("a"), "r.example.com", "org/app", []string{"a"}},
		"a wildcard":                           {`"*.example.com": ` + auth("a"), "r.example.com", "org/app", []string{"a"}},
		"a wildcard is for one label":          {`"*.com": ` + auth("a"), "r.example.com", "org/app", []string{""}},
		"a wildcard within a label":            {`"*-docker.pkg.dev/project": ` + auth("a"), "europe-docker.pkg.dev", "project/app", []string{"a"}},
		"a wildcard after the name":            {`"*.example.com": ` + auth("b") + `, "r.example.com": ` + auth("a"), "r.example.com", "org/app", []string{"a", "b"}},
		"a wildcard has no port":               {`"*.example.com": ` + auth("a"), "r.example.com:5000", "org/app", []string{""}},
		"one user twice":                       {`"r.example.com": ` + auth("a") + `, "r.example.com/org": ` + auth("a"), "r.example.com", "org/app", []string{"a"}},
		"Docker Hub":                           {`"https://index.docker.io/v1/": ` + auth("a"), "docker.io", "library/app", []string{"a"}},
		"Docker Hub by its name first":         {`"https://index.docker.io/v1/": ` + auth("b") + `, "docker.io": ` + auth("a"), "docker.io", "library/app", []string{"a"}},
		"Docker Hub by its other names":        {`"registry-1.docker.io": ` + auth("a"), "docker.io", "library/app", []string{"a"}},
		"Docker Hub by its other names last":   {`"registry-1.docker.io": ` + auth("b") + `, "index.docker.io": ` + auth("a"), "docker.io", "library/app", []string{"a"}},
		"Docker Hub in capitals with a port":   {`"DOCKER.io:443": ` + auth("a"), "docker.io", "library/app", []string{"a"}},
		"Docker Hub's API":                     {`"https://registry.hub.docker.com/v2/": ` + auth("a"), "docker.io", "library/app", []string{"a"}},
		"Docker Hub for another host":          {`"https://index.docker.io/v1/": ` + auth("a"), "r.example.com", "library/app", []string{""}},
		"auth beside a user name":              {`"r.example.com": {"username": "b", "password": "p", "auth": "` + base64.StdEncoding.EncodeToString([]byte("a:secret")) + `"}`, "r.example.com", "org/app", []string{"a"}},
		"auth without padding":                 {`"r.example.com": {"auth": "` + strings.TrimRight(base64.StdEncoding.EncodeToString([]byte("robo:secret")), "=") + `"}`, "r.example.com", "org/app", []string{"robo"}},
		"auth with line ends":                  {`"r.example.com": {"auth": "` + base64.StdEncoding.EncodeToString([]byte("robo:secret")) + `\n"}`, "r.example.com", "org/app", []string{"robo"}},
		"names of fields in capitals":          {`"r.example.com": {"Username": "a", "Password": "p"}`, "r.example.com", "org/app", []string{"a"}},
		"a field that nobody knows":            {`"r.example.com": {"username": "a", "password": "p", "email": null, "x": [1]}`, "r.example.com", "org/app", []string{"a"}},
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
		`"r.example.com": "secret"`:                           `entry "r.example.com" is ignored: it is not an object`,
		`"r.example.com": {"auth": 5}`:                        `entry "r.example.com" is ignored: it is not an object`,
		`"r.example.com": {"auth": "secret!"}`:                `entry "r.example.com" is ignored: auth is not base64`,
		`"r.example.com": {"auth": "c2VjcmV0"}`:               `entry "r.example.com" is ignored: auth is not a user name and a password`,
		`"https://": ` + auth("a"):                            `entry "https://" is ignored: it is not for a registry host`,
		`"r.example.com:port": ` + auth("a"):                  `is ignored: it is not for a registry host`,
		`"r.example.com/%zz": ` + auth("a"):                   `is ignored: it is not for a registry host`,
		`"": ` + auth("a"):                                    `entry "" is ignored: it is not for a registry host`,
		`"a[.example.com": ` + auth("a"):                      `is ignored`,
		`"` + strings.Repeat("a.", 256) + `b": ` + auth("a"):  `the limit is 512`,
		`"x": {}}, "credsStore": "desktop", "y": {"z": {}`:    `credsStore and credHelpers are ignored`,
		`"x": {}}, "credHelpers": {"r": "ecr-login"`:          `credsStore and credHelpers are ignored`,
		`"s": ` + strings.ReplaceAll(auth("a"), "auth", "no"): "",
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
	logins, ignored, err := registry.ParseDockerConfig([]byte(`{"auths": {` + hosts(100, "*") + `}}`))
	require.NoError(t, err)
	require.Len(t, logins, 32)
	require.Len(t, ignored, 68)
	require.Contains(t, ignored[0], "more than 32 entries with wildcards")

	logins, _, err = registry.ParseDockerConfig([]byte(`{"auths": {` + strings.ReplaceAll(hosts(100, "r"), ".example.com/a", "") + `}}`))
	require.NoError(t, err)
	require.Len(t, logins, 100)
	many := registry.Logins{}
	for i := range 40 {
		many = many.Add(loginFor("r.example.com", registry.Credential{Username: fmt.Sprint(i)}))
	}
	require.Len(t, usersFor(many, "r.example.com", "app"), 16)
	require.Equal(t, "0", usersFor(many, "r.example.com", "app")[0], "of one key, the first secret comes first")
}

// FuzzPullSecrets holds that whatever is in a pull secret, it is read or refused without telling a password, and that
// no login goes to a host that its key does not name.
func FuzzPullSecrets(f *testing.F) {
	for _, key := range []string{"r.example.com", "https://r.example.com/v1/", "*.example.com", "r.example.com/org", "index.docker.io", "[::1]:5000", "a[.b", "%zz", "", "*", "*.*.*"} {
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
			require.NotContains(t, strings.ReplaceAll(said, key, ""), "secret")
		}
		require.LessOrEqual(t, len(logins.For(host, repository)), 16)
		if key != "good.example.com" && !strings.Contains(key, "*") && !strings.ContainsAny(key, `?[\`) {
			for _, user := range usersFor(logins, "other.example.net", repository) {
				require.True(t, user == "" || strings.Contains(strings.ToLower(key), "other.example.net"), "%q gives %q a login", key, "other.example.net")
			}
		}
	})
}
