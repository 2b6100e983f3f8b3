package registry

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// ofTokenServer is the fragment, which is never sent, of the URLs of verified token servers.
const ofTokenServer = "token-server"

// realmPath is the prefix of paths that represent token servers. The API of registries has no such
// path.
const realmPath = "/landwaiter-token-server/"

// checkChallenge keeps one of a server's challenges, and rejects it if it sends the client to a token server that its
// credentials were not declared for.
func (g *guard) checkChallenge(host string, resp *http.Response) error {
	if resp.StatusCode != http.StatusUnauthorized {
		return nil
	}
	if req := resp.Request; req != nil && req.Response != nil && host != g.origin && strings.HasPrefix(askedFor(req), "/v2/") {
		return verify.PermanentWith(policy.ReasonAccessDenied,
			fmt.Errorf("%s redirects to %s, which asks for a login of its own", g.origin, host),
			"name the image at "+host+", or list "+host+" in spec.mirrors of a Store for "+g.origin)
	}
	ours := func(realm string) bool {
		at, err := url.Parse(realm)
		return err == nil && g.secure(at) && g.trusted(hostOf(at))
	}
	chosen, there := answerOne(resp, g.credential, ours)
	switch {
	case !there:
		return nil
	case chosen.scheme == "basic" && g.credential != (Credential{}) && (g.credential.Username == "" || g.credential.Password == ""):
		return verify.Permanent(policy.ReasonAccessDenied,
			fmt.Errorf("%s asks for a user name and a password, and the login does not have both", host))
	case chosen.scheme != "bearer":
		return nil
	}
	realm := chosen.parameters["realm"]
	at, err := url.Parse(realm)
	switch {
	case realm == "":
		return nil // oras-go says so
	case err != nil || at.Host == "":
		return verify.PermanentWith(policy.ReasonUntrustedTokenServer,
			fmt.Errorf("%s names the token server %.100q, which is no URL", host, realm), "correct the realm in the configuration of the registry")
	case !g.secure(at):
		return verify.PermanentWith(policy.ReasonUntrustedTokenServer,
			fmt.Errorf("%s names its token server at %.100q without TLS", host, hostOf(at)),
			"set the external URL of the registry to https, such as by X-Forwarded-Proto in the proxy in front of it")
	case g.trusted(hostOf(at)):
		g.standIn(chosen, at, resp)
		return nil
	case g.credential == (Credential{}) && !g.reserved(hostOf(at)):
		return nil // it is told nothing
	}
	return verify.PermanentWith(policy.ReasonUntrustedTokenServer, fmt.Errorf("%s sends clients to the token server %.100q, "+
		"which no Store for %s lists", host, hostOf(at), g.origin), "if that is right, add the token server to spec.registries of the Store")
}

// reserved reports whether a cluster admin listed a host but not the registry: the host's tokens may be for those who
// can reach it, and the registry would see them.
func (g *guard) reserved(host string) bool {
	_, listed := g.session.access.rule(host)
	_, known := g.session.access.rule(g.origin)
	return listed && !known
}

// secure reports whether the scheme of a token server's URL is acceptable.
func (g *guard) secure(at *url.URL) bool {
	if at.Scheme == "http" {
		rule, _ := g.session.access.rule(hostOf(at))
		return rule.PlainHTTP
	}
	return at.Scheme == "https"
}

// standIn replaces the realm of a challenge by a URL at the registry, which guard maps back. oras-go refuses every
// realm with a private address, and resolves its name without the proxy and the endpoints that an admin set; guard
// checks addresses when it connects.
func (g *guard) standIn(chosen challenge, at *url.URL, resp *http.Response) {
	if resp.Request == nil {
		return
	}
	chosen.parameters["realm"] = g.standsFor(at, resp.Request.URL).String()
	resp.Header.Set(headerChallenge, chosen.String())
}

// standsFor returns a URL, on the server of another URL, that represents a token server.
func (g *guard) standsFor(at, server *url.URL) *url.URL {
	path := fmt.Sprintf("%s%x", realmPath, sha256.Sum256([]byte(at.String())))
	g.realms.Store(path, at)
	return &url.URL{Scheme: server.Scheme, Host: server.Host, Path: path, RawQuery: at.RawQuery}
}

// toTokenServer returns a request as it is sent, and the token server if it is for one.
func (g *guard) toTokenServer(req *http.Request) (sent *http.Request, realm *url.URL) {
	if !strings.HasPrefix(req.URL.Path, realmPath) || hostOf(req.URL) != g.origin {
		return req, nil
	}
	found, ok := g.realms.Load(req.URL.Path)
	if !ok {
		return req, nil
	}
	at := *found.(*url.URL) //nolint:forcetypeassert // there is nothing else
	at.RawQuery, at.Fragment = req.URL.RawQuery, ofTokenServer
	sent = req.Clone(req.Context())
	sent.URL, sent.Host = &at, at.Host
	return sent, &at
}

// follow makes the address in a redirect of a token server absolute: the client that sent req only knows the URL
// that represents it. If the target may receive the credential, the redirect is replaced as well.
func (g *guard) follow(req *http.Request, realm *url.URL, resp *http.Response) error {
	location := resp.Header.Get("Location")
	if location == "" {
		return nil
	}
	to, err := realm.Parse(location)
	if err != nil {
		return errors.Join(errors.New("the token server redirects to what is no URL"), resp.Body.Close())
	}
	if g.secure(to) && g.trusted(hostOf(to)) {
		to = g.standsFor(to, req.URL)
	}
	resp.Header.Set("Location", to.String())
	return nil
}
