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

// Reach selects the addresses to which connections may lead.
type Reach int

const (
	// Public is the Internet, and the zero value.
	Public Reach = iota
	// Private adds private, loopback and cluster addresses, for hosts that a cluster admin
	// named. The metadata services of clouds and link-local addresses stay refused.
	Private
	// UnsafeMetadata is every address. It is for the identity of this process, which clouds
	// provide at their metadata services.
	UnsafeMetadata
)

var (
	// ErrAddress means that an address is not public, and no admin named the host.
	ErrAddress = errors.New("the host is on a loopback, link-local, private or cluster address")
	// ErrMetadata means that an address is always refused: a cloud's metadata service, or a
	// link-local or multicast address.
	ErrMetadata = errors.New("the host is on the address of a cloud's metadata service, or on a link-local or multicast address")
	// errResolve means that the dialled address is not an IP address.
	errResolve = errors.New("the address to connect to is not an IP address")
	// errAddresses means that a name has too many addresses.
	errAddresses = errors.New("the host has too many addresses that do not answer")
)

// Guard checks the addresses of connections. It checks the resolved address at the time of
// the connection, so a name that changes its address gains nothing. The zero value refuses
// every address; [NewGuard] creates a usable one.
type Guard struct {
	denied, special, never []netip.Prefix
	endpoints              Endpoints
}

// NewGuard returns a Guard that also refuses the given prefixes as not public: the cluster's
// pods and services, and its own NAT64 prefix.
func NewGuard(denied ...netip.Prefix) *Guard {
	return &Guard{denied: slices.Clone(denied), special: parse(special()), never: parse(never())}
}

// With returns the Guard with the endpoints that an admin configured.
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

// Check returns [ErrAddress] or [ErrMetadata] for an address that is not allowed.
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
		translates := a == addr && within(nat64, addr) // then only the embedded address counts
		if matches(g.denied, a) || matches(g.special, a) || (a.Is6() && !translates && !within(globalUnicast, a)) {
			return ErrAddress
		}
	}
	return nil
}

func matches(prefixes []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// dial returns a function that connects to allowed addresses.
func (g *Guard) dial(reach Reach, timeout time.Duration) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if to, found := g.endpoints.of(address); found {
			return g.dialer(max(reach, Private), timeout).DialContext(ctx, network, to)
		}
		return g.dialer(reach, timeout).DialContext(ctx, network, address)
	}
}

// dialer returns a dialer for one connection. Go calls Control for each address of a name,
// just before it connects.
func (g *Guard) dialer(reach Reach, timeout time.Duration) *net.Dialer {
	tries := make(chan struct{}, maxAddresses) // Go tries two families at once
	// Go's resolver ends with its context. Dial is nil unless a test counts lookups.
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

// special returns the addresses that are refused unless a cluster admin named the host: every
// entry of the IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890), multicast,
// and ranges that the registries no longer list. An entry that contains others covers them.
// The test has each by its name.
//
// We decided individually about entries that IANA calls globally reachable. These are
// refused, because no registry or key server uses them: the anycast addresses in 192.0.0.0/24
// and 2001:1::/32, AS112 (192.31.196.0/24, 192.175.48.0/24, 2001:4:112::/48,
// 2620:4f:8000::/48), AMT (192.52.193.0/24, 2001:3::/32), ORCHIDv2 and drone IDs
// (2001:20::/27). For 64:ff9b::/96, the embedded IPv4 address counts: a cluster without IPv4
// reaches IPv4-only registries that way (RFC 6052).
func special() []string {
	return []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
		"192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24",
		"203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
		"2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
	}
}

// never returns addresses that are refused for every host, even one that an admin named:
// link-local and multicast addresses, "this host", and the metadata services of clouds.
func never() []string {
	return append(metadata(), "0.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "255.255.255.255/32", "::/128", "fe80::/10",
		"fec0::/10", "ff00::/8")
}

// metadata returns the addresses at which clouds provide credentials or configuration to a
// machine. They are listed individually, although a wider range contains most of them.
func metadata() []string {
	return []string{
		"169.254.169.254/32", // AWS, Azure, Google Cloud, Oracle, OpenStack and others
		"169.254.170.2/32",   // AWS: roles of ECS tasks
		"169.254.170.23/32",  // AWS: identities of EKS pods
		"169.254.0.23/32",    // Tencent Cloud
		"169.254.42.42/32",   // Scaleway
		"168.63.129.16/32",   // Azure: WireServer
		"100.100.100.200/32", // Alibaba Cloud
		"192.0.0.192/32",     // Oracle Cloud, classic
		"fd00:ec2::254/128",  // AWS
		"fd00:ec2::23/128",   // AWS: identities of EKS pods
		"fd20:ce::254/128",   // Google Cloud
		"fd00:42::42/128",    // Scaleway
		"fe80::a9fe:a9fe/128",
	}
}

// globalUnicast is the space that IANA has allocated to hosts of the IPv6 Internet. It
// excludes loopback, mapped, compatible, local, site-local and multicast addresses, the
// discard prefixes, SRv6 identifiers, and free space.
const globalUnicast = "2000::/3"

// Prefixes of IPv6 addresses that embed an IPv4 address.
const (
	nat64      = "64:ff9b::/96"   // RFC 6052
	nat64Local = "64:ff9b:1::/48" // RFC 8215, with the IPv4 address where RFC 6052 section 2.2 puts it
	sixToFour  = "2002::/16"      // RFC 3056
	teredo     = "2001::/32"      // RFC 4380, inverted
	compatible = "::/96"          // RFC 4291 section 2.5.5.1
	translated = "::ffff:0:0:0/96"
)

// embedded returns the IPv4 addresses to which an IPv6 address leads through translators and
// tunnels.
func embedded(addr netip.Addr) []netip.Addr {
	if !addr.Is6() || addr.IsLoopback() || addr.IsUnspecified() { // the last two look compatible
		return nil
	}
	b := addr.As16()
	at := func(positions ...int) netip.Addr {
		return netip.AddrFrom4([4]byte{b[positions[0]], b[positions[1]], b[positions[2]], b[positions[3]]})
	}
	last := at(12, 13, 14, 15)
	switch {
	case within(nat64, addr), within(compatible, addr), within(translated, addr):
		return []netip.Addr{last}
	case within(nat64Local, addr): // the position depends on the prefix length, so one of them counts
		return slices.DeleteFunc([]netip.Addr{at(6, 7, 9, 10), at(7, 9, 10, 11), at(9, 10, 11, 12), last},
			func(a netip.Addr) bool { return a.As4()[0] == 0 })
	case within(sixToFour, addr):
		return []netip.Addr{at(2, 3, 4, 5)}
	case within(teredo, addr):
		server, client := at(4, 5, 6, 7), last.As4()
		for i := range client {
			client[i] ^= 0xff
		}
		return []netip.Addr{server, netip.AddrFrom4(client)}
	case b[8]&^0x02 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe: // ISATAP, RFC 5214
		return []netip.Addr{last}
	}
	return nil
}

func within(prefix string, addr netip.Addr) bool { return netip.MustParsePrefix(prefix).Contains(addr) }
