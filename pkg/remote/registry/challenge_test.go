package registry

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ours reports whether a realm is on the registry's own host.
func ours(realm string) bool { return strings.HasPrefix(realm, "https://r.example.com/") }

func TestTheChallengeThatTheLoginSuitsIsAnswered(t *testing.T) {
	login, token, nobody := Credential{Username: "robot", Password: "secret"}, Credential{IdentityToken: "t"}, Credential{}
	const bearer = `Bearer realm="https://r.example.com/token",service="x"`
	for name, c := range map[string]struct {
		headers    []string
		credential Credential
		want       string
	}{
		"none":                         {nil, login, ""},
		"an empty one":                 {[]string{""}, login, ""},
		"Basic":                        {[]string{`Basic realm="x"`}, login, `Basic realm="x"`},
		"Basic without a realm":        {[]string{`Basic`}, login, `Basic`},
		"in capitals":                  {[]string{`BASIC REALM="x"`}, login, `Basic realm="x"`},
		"Negotiate and Basic":          {[]string{`Negotiate`, `Basic realm="x"`}, login, `Basic realm="x"`},
		"both in one header":           {[]string{`Negotiate, Basic realm="x"`}, login, `Basic realm="x"`},
		"NTLM with a token, and Basic": {[]string{`NTLM TlRMTVNTUAAC==, Basic realm="x"`}, login, `Basic realm="x"`},
		"Basic and Bearer":             {[]string{`Basic realm="x", ` + bearer}, login, bearer},
		"Bearer and Basic":             {[]string{bearer + `, Basic realm="x"`}, login, bearer},
		"Bearer elsewhere, and Basic":  {[]string{`Bearer realm="https://sso.example.net/token"`, `Basic realm="x"`}, login, `Basic realm="x"`},
		"Bearer elsewhere, for nobody": {[]string{`Basic realm="x", Bearer realm="https://sso.example.net/token"`}, nobody,
			`Bearer realm="https://sso.example.net/token"`},
		"Bearer in a header of its own":     {[]string{`Basic realm="x"`, bearer}, login, bearer},
		"Bearer for nobody":                 {[]string{`Basic realm="x"`, bearer}, nobody, bearer},
		"Bearer for a token":                {[]string{`Basic realm="x"`, bearer}, token, bearer},
		"Basic for a token":                 {[]string{`Negotiate, Basic realm="x"`}, token, `Negotiate`},
		"Bearer without a realm, and Basic": {[]string{`Bearer service="x", Basic realm="y"`}, login, `Basic realm="y"`},
		"only schemes that nobody knows":    {[]string{`Negotiate, NTLM`}, login, `Negotiate`},
		"a comma in quotes":                 {[]string{`Basic realm="a, Bearer realm=https://evil.example.com", ` + bearer}, login, bearer},
		"a quote in quotes": {[]string{`Basic realm="a\", Bearer realm=\"https://evil.example.com"`}, login,
			`Basic realm="a\", Bearer realm=\"https://evil.example.com"`},
		"a quote that does not end":          {[]string{`Basic realm="a, ` + bearer}, login, `Basic realm="a, Bearer realm="`},
		"blanks around the equals sign":      {[]string{"Bearer\trealm = \"https://r.example.com/token\" , service = \"x\""}, login, bearer},
		"empty elements":                     {[]string{` , ,Basic realm="x",, ,`}, login, `Basic realm="x"`},
		"a value without quotes":             {[]string{`Bearer realm=https://r.example.com/token,service=x`}, login, bearer},
		"a name twice":                       {[]string{`Bearer realm="https://r.example.com/token",realm="https://evil.example.com",service="x"`}, login, bearer},
		"a parameter before any scheme":      {[]string{`realm="x", Basic realm="y"`}, login, `Basic realm="y"`},
		"a parameter in a header of its own": {[]string{`Basic`, `realm="x"`}, login, `Basic`},
		"parameters that are left out":       {[]string{`Basic realm="x", charset="UTF-8", algorithm=MD5`}, login, `Basic realm="x"`},
		"an error of a token": {[]string{bearer + `,scope="repository:a:pull,push",error="invalid_token"`}, login,
			bearer + `,scope="repository:a:pull,push",error="invalid_token"`},
		"bytes that are no text": {[]string{"\xff\x00, Basic realm=\"\xff\""}, login, `Basic realm="\xff"`},
	} {
		t.Run(name, func(t *testing.T) {
			resp := &http.Response{Header: http.Header{}}
			for _, header := range c.headers {
				resp.Header.Add(headerChallenge, header)
			}
			answerOne(resp, c.credential, ours)
			require.Equal(t, c.want, resp.Header.Get(headerChallenge))
		})
	}
}

// Whatever a server sends, one challenge at most is left, within limits, and read again it is the same: what is
// checked is what is used.
func FuzzChallenges(f *testing.F) {
	for _, text := range []string{`Basic realm="x", Bearer realm="https://r.example.com/token",service="x",scope="a,b"`, `Negotiate, NTLM TlRM==`,
		`Bearer realm="a\"b\\"`, "a=b,c", `"`, `=`, "Bearer realm=\"\x7f\u00e9\""} {
		f.Add(text, "")
	}
	f.Fuzz(func(t *testing.T, one, other string) {
		all := parseChallenges([]string{one, other})
		require.LessOrEqual(t, len(all), maxChallenges)
		for _, c := range all {
			require.NotEmpty(t, c.scheme)
			require.LessOrEqual(t, len(c.parameters), maxChallengeParameters)
		}
		resp := &http.Response{Header: http.Header{}}
		resp.Header.Add(headerChallenge, one)
		resp.Header.Add(headerChallenge, other)
		chosen, there := answerOne(resp, Credential{Username: "u", Password: "p"}, ours)
		require.Equal(t, len(all) > 0, there)
		if !there {
			return
		}
		again := parseChallenges(resp.Header.Values(headerChallenge))
		require.NotEmpty(t, again)
		require.Equal(t, chosen.scheme, again[0].scheme)
		if chosen.scheme == "bearer" && !strings.ContainsFunc(chosen.parameters["realm"], func(r rune) bool { return r < ' ' || r > '~' }) {
			require.Equal(t, chosen.parameters["realm"], again[0].parameters["realm"])
		}
	})
}
