package egress

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Hosts is a list of allowed hosts. A host without a port has the default port of the scheme.
// Entries match exactly: there are no wildcards and no subdomains.
type Hosts []string

// ParseHosts returns the hosts in canonical form. It returns an error for an entry that
// is neither a host nor host:port.
func ParseHosts(entries []string) (Hosts, error) {
	hosts := make(Hosts, 0, len(entries))
	for _, entry := range entries {
		name, port, err := split(entry)
		if err != nil {
			return nil, fmt.Errorf("%.100q is neither a host nor host:port", entry)
		}
		hosts = append(hosts, join(name, port))
	}
	return hosts, nil
}

// Contain reports whether a URL leads to one of the hosts. They must be canonical.
func (h Hosts) Contain(u *url.URL) bool {
	name, port, err := split(u.Host)
	if err != nil {
		return false
	}
	standard := defaultPort(u.Scheme)
	port = cmp.Or(port, standard)
	return port != "" && (slices.Contains(h, join(name, port)) || (port == standard && slices.Contains(h, join(name, ""))))
}

// IsLabel reports whether s can be a label of a host name (RFC 1123 section 2.1) in lower
// case. Text that a resource adds to a host name must be one.
func IsLabel(s string) bool {
	if s == "" || len(s) > maxLabelBytes || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// split returns the canonical name and the port, which may be empty, of a host.
func split(host string) (name, port string, err error) {
	wrong := fmt.Errorf("%.100q is not a host", host)
	name = host
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		name, port = host[:i], host[i+1:]
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil || number == 0 || strconv.FormatUint(number, 10) != port {
			return "", "", wrong
		}
	}
	if strings.HasPrefix(name, "[") && strings.HasSuffix(name, "]") {
		addr, err := netip.ParseAddr(name[1 : len(name)-1])
		if err != nil || !addr.Is6() || addr.Zone() != "" {
			return "", "", wrong
		}
		return addr.String(), port, nil
	}
	name = strings.ToLower(name)
	if len(name) > maxHostBytes {
		return "", "", wrong
	}
	for label := range strings.SplitSeq(name, ".") {
		if !IsLabel(strings.ReplaceAll(label, "_", "x")) { // private zones have names with underscores
			return "", "", wrong
		}
	}
	return name, port, nil
}

func join(name, port string) string {
	if port == "" && strings.Contains(name, ":") {
		return "[" + name + "]"
	}
	if port == "" {
		return name
	}
	return net.JoinHostPort(name, port)
}

func defaultPort(scheme string) string {
	switch scheme {
	case "https":
		return "443"
	case "http":
		return "80"
	}
	return ""
}

// Endpoints maps hosts to addresses other than those to which their names resolve, such as
// private endpoints of clouds. An admin configures them, so these addresses may be private.
// TLS still has to prove the host. The zero value is empty.
type Endpoints struct{ at map[string]string } // host:port to address:port

// ParseEndpoints reads HOST=ADDRESS:PORT entries. HOST may have a port; the default is 443.
func ParseEndpoints(entries []string) (Endpoints, error) {
	made := Endpoints{at: map[string]string{}}
	for _, entry := range entries {
		host, address, _ := strings.Cut(entry, "=")
		name, port, err := split(host)
		if err != nil {
			return Endpoints{}, fmt.Errorf("%.200q must have the form HOST=ADDRESS:PORT: %w", entry, err)
		}
		to, toPort, err := split(address)
		if err == nil && toPort == "" {
			err = errors.New("the address has no port")
		}
		if err != nil {
			return Endpoints{}, fmt.Errorf("%.200q must have the form HOST=ADDRESS:PORT: %w", entry, err)
		}
		from := net.JoinHostPort(name, cmp.Or(port, defaultPort("https")))
		if _, twice := made.at[from]; twice {
			return Endpoints{}, fmt.Errorf("%.200q names host %s a second time", entry, name)
		}
		made.at[from] = net.JoinHostPort(to, toPort)
	}
	return made, nil
}

// of returns the configured address of a host:port, if any.
func (e Endpoints) of(address string) (string, bool) {
	to, found := e.at[strings.ToLower(address)]
	return to, found
}

// Contain reports whether an admin configured an address for a host, with or without the port
// of https.
func (e Endpoints) Contain(host string) bool {
	name, port, err := split(host)
	if err != nil {
		return false
	}
	_, found := e.at[net.JoinHostPort(name, cmp.Or(port, defaultPort("https")))]
	return found
}
