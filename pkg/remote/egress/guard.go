package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// Reach says which addresses a connection may lead to.
type Reach int

const (
	// Public is the Internet, and the zero value.
	Public Reach = iota
	// Private adds private, loopback and cluster addresses, for hosts that a cluster
	// admin named. The metadata services of clouds and link-local addresses stay refused.
	Private
	// UnsafeMetadata is every address. It is for the identity of this process, which
	// clouds give out at their metadata services.
	UnsafeMetadata
)

var (
	// ErrAddress means that an address is not public, and the host none that an admin
	// named.
	ErrAddress = errors.New("the host is on a loopback, link-local, private or cluster address")
	// ErrMetadata means that an address is never connected to: a cloud's metadata
	// service, or a link-local or multicast address.
	ErrMetadata = errors.New("the host is on the address of a cloud's metadata service, or on a link-local or multicast address")
	// errResolve means that something was dialled that is no IP address.
	errResolve = errors.New("the address to connect to is not an IP address")
	// errAddresses means that a name has more addresses than are tried.
	errAddresses = errors.New("the host has too many addresses that do not answer")
)

// Guard decides which addresses are connected to. It looks at the resolved address at
// the time of the connection, so a name that changes its address gains nothing. The
// zero value refuses every address; [NewGuard] makes one.
type Guard struct {
	denied, special, never []netip.Prefix
	endpoints              Endpoints
}

// NewGuard returns a Guard that also refuses the given prefixes as not public: those of
// the cluster's pods and services, and an own NAT64 prefix.
func NewGuard(denied ...netip.Prefix) *Guard {
	return &Guard{denied: slices.Clone(denied), special: parse(special()), never: parse(never())}
}

// With returns the Guard with hosts that are where an admin says.
func (g *Guard) With(endpoints Endpoints) *Guard {
	made := *g
	made.endpoints = endpoints
	return &made
}

func parse(texts []string) []netip.Prefix {
	prefixes := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		prefixes[i] = netip.MustParsePrefix(text)
	}
	return prefixes
}

// Check returns [ErrAddress] or [ErrMetadata] for an address that is out of reach.
func (g *Guard) Check(addr netip.Addr, reach Reach) error {
	addr = addr.Unmap().WithZone("") // a prefix contains no address with a zone
	if !addr.IsValid() || g.special == nil {
		return ErrAddress
	}
	if reach == UnsafeMetadata {
		return nil
	}
	leads := append(embedded(addr), addr)
	for _, a := range leads {
		if matches(g.never, a) {
			return ErrMetadata
		}
	}
	if reach == Private {
		return nil
	}
	for _, a := range leads {
		translates := a == addr && within(nat64, addr) // then only the address within counts
		if matches(g.denied, a) || matches(g.special, a) || (a.Is6() && !translates && !within(globalUnicast, a)) {
			return ErrAddress
		}
	}
	return nil
}

func matches(prefixes []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// dial returns a function that connects to addresses within reach.
func (g *Guard) dial(reach Reach, timeout time.Duration) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if to, found := g.endpoints.of(address); found {
			return g.dialer(max(reach, Private), timeout).DialContext(ctx, network, to)
		}
		return g.dialer(reach, timeout).DialContext(ctx, network, address)
	}
}

// dialer returns what makes one connection. Go asks Control for each address of a name,
// just before it connects.
func (g *Guard) dialer(reach Reach, timeout time.Duration) *net.Dialer {
	tries := make(chan struct{}, maxAddresses) // Go tries two families at once
	// Go's resolver ends with its context. Dial is nil unless a test counts look-ups.
	resolver := &net.Resolver{PreferGo: true, Dial: net.DefaultResolver.Dial}
	return &net.Dialer{Timeout: timeout, KeepAlive: keepAlive, Resolver: resolver,
		Control: func(_, resolved string, _ syscall.RawConn) error {
			parsed, err := netip.ParseAddrPort(resolved)
			if err != nil {
				return errResolve
			}
			if err := g.Check(parsed.Addr(), reach); err != nil {
				return err
			}
			select {
			case tries <- struct{}{}:
				return nil
			default:
				return errAddresses
			}
		}}
}
