package registry

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// Login is a credential with the hosts and repositories it may be used for.
type Login struct {
	Credential Credential
	// Serves, if set, replaces the key: it reports whether the credential may be sent to a host.
	Serves func(host string) bool

	key  string // host and path, the sort key of kubelets
	host string // without a port, with wildcards
	port string // "" for 443
	path string // prefix of repositories with a leading slash, or ""
	hub  bool   // the key is a name of Docker Hub other than docker.io
}

// Logins are the logins of a store in the order in which they are tried. They are immutable.
type Logins []Login

// NewLogin returns the login for a key of Docker's auths. It reads the key as kubelets do: a host with an optional
// port, scheme and path. The path is a prefix of repositories. Labels of the host may have wildcards, each of which
// matches any number of characters. The error says what is wrong with the key.
func NewLogin(key string, credential Credential) (Login, error) {
	if len(key) > maxLoginKeyBytes {
		return Login{}, fmt.Errorf("it has %d bytes, the limit is %d", len(key), maxLoginKeyBytes)
	}
	if !strings.HasPrefix(key, "https://") && !strings.HasPrefix(key, "http://") {
		key = "https://" + key
	}
	at, err := url.Parse(key)
	if err != nil || at.Host == "" || len(at.Host) > maxHostBytes ||
		strings.ContainsFunc(at.Host, func(r rune) bool { return r > unicode.MaxASCII }) {
		return Login{}, errors.New("it is not for a registry host")
	}
	l := Login{Credential: credential, path: at.Path}
	if strings.HasPrefix(l.path, "/v1/") || strings.HasPrefix(l.path, "/v2/") { // of Docker's own API
		l.path = l.path[len("/v1"):]
	}
	if l.path == "/" {
		l.path = ""
	}
	l.key = at.Host + l.path
	if l.path == "/v1" || l.path == "/v2" {
		l.path = ""
	}
	host := strings.ToLower(at.Host)
	canonical, err := image.NormaliseHost(host)
	if l.hub = err == nil && canonical == hubHost && host != hubHost; l.hub {
		host = canonical
	}
	l.host, l.port = splitPort(host)
	return l, nil
}

// hubHost is Docker Hub in image names, and hubKey in a Docker configuration.
const hubHost, hubKey = "docker.io", "index.docker.io"

// splitPort splits a host from its port, which is "" for 443.
func splitPort(host string) (name, port string) {
	name = host
	if first, number, err := net.SplitHostPort(host); err == nil {
		name, port = first, number
	}
	if port == "443" {
		port = ""
	}
	return name, port
}

// wild reports whether the host of the login has wildcards.
func (l Login) wild() bool { return strings.Contains(l.host, "*") }

// matches reports whether the login applies to a repository at a host with a port.
func (l Login) matches(host, port, repository string) bool {
	return l.port == port && (l.path == "" || strings.HasPrefix("/"+repository, l.path)) &&
		(l.host == host || l.wild() && matchesLabels(l.host, host))
}

// matchesLabels reports whether each label of a host matches the one of a pattern.
func matchesLabels(pattern, host string) bool {
	for {
		part, morePattern, dotted := strings.Cut(pattern, ".")
		label, moreHost, more := strings.Cut(host, ".")
		if dotted != more || !matchesLabel(part, label) {
			return false
		}
		if !more {
			return true
		}
		pattern, host = morePattern, moreHost
	}
}

// matchesLabel reports whether a label matches a pattern, in one pass over both.
func matchesLabel(pattern, label string) bool {
	first, rest, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == label
	}
	label, matched := strings.CutPrefix(label, first)
	for matched {
		part, more, wild := strings.Cut(rest, "*")
		if !wild {
			return strings.HasSuffix(label, part)
		}
		_, label, matched = strings.Cut(label, part)
		rest = more
	}
	return false
}

// For returns the credentials for a repository at a normalised host in the order in which kubelets try them, without
// repetitions. Keys with other names of Docker Hub only count if no other key matches its images. If no login
// applies, the only credential is the anonymous one. named says that the store lists the host by name. If the host
// only matches a pattern, the author of a pod chooses it, so it only gets logins whose keys also name it. more says
// that there are more than 8 logins, of which only these are returned.
func (l Logins) For(host, repository string, named bool) (credentials []Credential, more bool) {
	name, port := splitPort(host)
	for _, takes := range []func(*Login) bool{
		func(a *Login) bool {
			return !a.hub && a.Serves == nil && a.matches(name, port, repository) || a.Serves != nil && a.Serves(host)
		},
		func(a *Login) bool { return host == hubHost && a.key == hubKey },
		func(a *Login) bool { return a.hub && a.matches(name, port, repository) },
	} {
		for i := range l {
			if login := &l[i]; named || !login.wild() {
				if takes(login) && !slices.Contains(credentials, login.Credential) {
					credentials = append(credentials, login.Credential)
				}
			}
		}
		if len(credentials) > 0 {
			kept := min(len(credentials), maxLogins)
			return credentials[:kept], kept < len(credentials)
		}
	}
	return []Credential{{}}, false
}

// Elsewhere returns the first hosts of the logins, if none of them is for any of the given hosts, whatever the
// repository: then no login is ever used.
func (l Logins) Elsewhere(hosts []string) (others []string) {
	for i := range l {
		login := &l[i]
		if login.Serves != nil || slices.ContainsFunc(hosts, func(host string) bool {
			name, port := splitPort(host)
			return login.matches(name, port, strings.TrimPrefix(login.path, "/"))
		}) {
			return nil
		}
		host := cmp.Or(login.host, login.key)
		if login.port != "" {
			host = net.JoinHostPort(login.host, login.port)
		}
		if host = fmt.Sprintf("%.80s", host); len(others) < maxIgnored && !slices.Contains(others, host) {
			others = append(others, host)
		}
	}
	return others
}

// Add returns the logins of l and of a further pull secret, and how many it omitted: a store has at most 32 keys with
// wildcards, since each is compared with every host. Logins with the same key stay in order.
func (l Logins) Add(further Logins) (all Logins, leftOut int) {
	wild := 0
	for _, login := range slices.Concat(l, further) {
		if login.wild() {
			if wild++; wild > maxWildLogins {
				leftOut++
				continue
			}
		}
		all = append(all, login)
	}
	slices.SortStableFunc(all, byKey)
	return all, leftOut
}

// byKey is the order of kubelets: if one key begins with another, it comes before that one.
func byKey(a, b Login) int { return cmp.Compare(b.key, a.key) }

// Text returns a text for each login that differs if its key or credential does. It is secret.
func (l Logins) Text() []string {
	var all []string
	for _, login := range l {
		all = append(all, fmt.Sprintf("%q %q", login.key, login.Credential))
	}
	return all
}
