package registry

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// Login is a credential with the hosts and repositories it may be used for.
type Login struct {
	Credential Credential
	// Serves, if set, replaces the key: it reports whether the credential may be sent to a host.
	Serves func(host string) bool

	key    string   // host and path, the sort key of kubelets
	labels []string // of the host, with wildcards
	port   string   // "" for 443
	path   string   // prefix of repositories with a leading slash, or ""
	hub    bool     // the key is a name of Docker Hub other than docker.io
}

// Logins are the logins of a store in the order in which they are tried.
type Logins []Login

// NewLogin returns the login for a key of Docker's auths, which it reads as kubelets do: a host with an optional port,
// scheme and path. The path is a prefix of repositories, and labels of the host may have wildcards ([path.Match]). The
// error says what is wrong with the key.
func NewLogin(key string, credential Credential) (Login, error) {
	if len(key) > maxLoginKeyBytes {
		return Login{}, fmt.Errorf("it has %d bytes, the limit is %d", len(key), maxLoginKeyBytes)
	}
	if !strings.HasPrefix(key, "https://") && !strings.HasPrefix(key, "http://") {
		key = "https://" + key
	}
	at, err := url.Parse(key)
	if err != nil || at.Host == "" {
		return Login{}, fmt.Errorf("it is not for a registry host")
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
	l.labels, l.port = splitHost(host)
	for _, label := range l.labels {
		if _, err := path.Match(label, ""); err != nil && net.ParseIP(strings.Trim(host, "[]")) == nil {
			return Login{}, fmt.Errorf("%.80q is not a wildcard pattern", label)
		}
	}
	return l, nil
}

// hubHost is Docker Hub in the names of images, and hubKey in a Docker configuration.
const hubHost, hubKey = "docker.io", "index.docker.io"

// splitHost returns the labels and the port of a host. The port is "" for 443.
func splitHost(host string) (labels []string, port string) {
	if name, number, err := net.SplitHostPort(host); err == nil {
		host, port = name, number
	}
	if port == "443" {
		port = ""
	}
	return strings.Split(host, "."), port
}

// wild reports whether the host of the login has wildcards.
func (l Login) wild() bool {
	return slices.ContainsFunc(l.labels, func(label string) bool { return strings.ContainsAny(label, `*?[\`) })
}

// matches reports whether the login applies to a repository. labels and port are those of the host.
func (l Login) matches(host string, labels []string, port, repository string) bool {
	if l.Serves != nil {
		return l.Serves(host)
	}
	if len(l.labels) != len(labels) || l.port != port || l.path != "" && !strings.HasPrefix("/"+repository, l.path) {
		return false
	}
	for i, label := range l.labels {
		if label == labels[i] {
			continue
		}
		if matched, err := path.Match(label, labels[i]); err != nil || !matched {
			return false
		}
	}
	return true
}

// For returns the credentials for a repository at a normalised host in the order in which kubelets try them, without
// repetitions and at most 16. Keys with other names of Docker Hub only count if no other key matches its images. If no
// login applies, the only credential is the anonymous one.
func (l Logins) For(host, repository string) []Credential {
	labels, port := splitHost(host)
	for _, takes := range []func(Login) bool{
		func(a Login) bool { return !a.hub && a.matches(host, labels, port, repository) },
		func(a Login) bool { return host == hubHost && a.key == hubKey },
		func(a Login) bool { return a.hub && a.matches(host, labels, port, repository) },
	} {
		var found []Credential
		for _, login := range l {
			if len(found) < maxLogins && takes(login) && !slices.Contains(found, login.Credential) {
				found = append(found, login.Credential)
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return []Credential{{}}
}

// Add merges the logins of a further pull secret into l. Logins with the same key stay in order.
func (l Logins) Add(later Logins) Logins {
	all := slices.Concat(l, later)
	slices.SortStableFunc(all, func(a, b Login) int { return cmp.Compare(b.key, a.key) })
	return all
}

// Text returns a text for each login that differs if its key or credential does. It is secret.
func (l Logins) Text() []string {
	var all []string
	for _, login := range l {
		all = append(all, fmt.Sprintf("%q %q", login.key, login.Credential))
	}
	return all
}
