package egress

import (
	"errors"
	"fmt"
	"net"
	"strings"
)

// Endpoints says where hosts are, for those that do not have the address that their name
// resolves to: private endpoints of clouds. An admin gives them, so these addresses may be
// private. TLS still has to prove the host. The zero value is none.
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
		if port == "" {
			port = defaultPort("https")
		}
		from := net.JoinHostPort(name, port)
		if _, twice := made.at[from]; twice {
			return Endpoints{}, fmt.Errorf("%.200q names host %s a second time", entry, name)
		}
		made.at[from] = net.JoinHostPort(to, toPort)
	}
	return made, nil
}

// of returns where a host:port is, if an admin said so.
func (e Endpoints) of(address string) (string, bool) {
	to, found := e.at[strings.ToLower(address)]
	return to, found
}

// Contain reports whether an admin said where a host is, with or without the port of https.
func (e Endpoints) Contain(host string) bool {
	name, port, err := split(host)
	if err != nil {
		return false
	}
	if port == "" {
		port = defaultPort("https")
	}
	_, found := e.at[net.JoinHostPort(name, port)]
	return found
}
