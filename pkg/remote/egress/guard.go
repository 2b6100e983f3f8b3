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

// special returns the addresses that are refused unless a cluster admin named the host:
// every entry of the IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890),
// multicast, and ranges that the registries no longer list. An entry that contains
// others stands for them. The test has each by its name.
//
// Entries that IANA calls globally reachable were decided one by one. Refused, because
// no registry or key server is there: the anycast addresses in 192.0.0.0/24 and
// 2001:1::/32, AS112 (192.31.196.0/24, 192.175.48.0/24, 2001:4:112::/48,
// 2620:4f:8000::/48), AMT (192.52.193.0/24, 2001:3::/32), ORCHIDv2 and drone IDs
// (2001:20::/27). Judged by the IPv4 address within: 64:ff9b::/96, which is how a
// cluster without IPv4 reaches registries that have nothing else (RFC 6052).
func special() []string {
	return []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
		"192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24",
		"203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
		"2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
	}
}

// never returns what no host may be on, even one that an admin named: link-local and
// multicast addresses, "this host", and the metadata services of clouds.
func never() []string {
	return append(metadata(), "0.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "255.255.255.255/32", "::/128", "fe80::/10", "fec0::/10", "ff00::/8")
}

// metadata returns the addresses at which clouds give credentials or configuration to a
// machine. They are refused by name, although a wider range contains most of them.
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

// globalUnicast is all that IANA has allocated to hosts of the IPv6 Internet. Outside of
// it are loopback, mapped, compatible, local, site-local and multicast addresses, the
// discard prefixes, SRv6 identifiers, and what nobody has.
const globalUnicast = "2000::/3"

// Prefixes of IPv6 addresses that hold an IPv4 address.
const (
	nat64      = "64:ff9b::/96"   // RFC 6052
	nat64Local = "64:ff9b:1::/48" // RFC 8215, with the IPv4 address where RFC 6052 section 2.2 puts it
	sixToFour  = "2002::/16"      // RFC 3056
	teredo     = "2001::/32"      // RFC 4380, inverted
	compatible = "::/96"          // RFC 4291 section 2.5.5.1
	translated = "::ffff:0:0:0/96"
)

// embedded returns the IPv4 addresses that an IPv6 address leads to through translators
// and tunnels.
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
	case within(nat64Local, addr): // the place depends on the prefix's length, so one of them counts
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
