package egress

import (
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// entry is one entry of a registry, or of our own list.
type entry struct{ name, prefix string }

// registered is the IANA IPv4 and IPv6 Special-Purpose Address Registries, whole
// (iana.org/assignments/iana-ipv4-special-registry and iana-ipv6-special-registry).
func registered() []entry {
	return []entry{
		{"This network", "0.0.0.0/8"}, {"This host on this network", "0.0.0.0/32"}, {"Private-Use 10", "10.0.0.0/8"},
		{"Shared Address Space", "100.64.0.0/10"}, {"Loopback", "127.0.0.0/8"}, {"Link Local", "169.254.0.0/16"}, {"Private-Use 172.16", "172.16.0.0/12"},
		{"IETF Protocol Assignments", "192.0.0.0/24"}, {"IPv4 Service Continuity Prefix", "192.0.0.0/29"}, {"IPv4 dummy address", "192.0.0.8/32"},
		{"Port Control Protocol Anycast", "192.0.0.9/32"}, {"Traversal Using Relays around NAT Anycast", "192.0.0.10/32"},
		{"NAT64/DNS64 Discovery 170", "192.0.0.170/32"}, {"NAT64/DNS64 Discovery 171", "192.0.0.171/32"}, {"Documentation (TEST-NET-1)", "192.0.2.0/24"},
		{"AS112-v4", "192.31.196.0/24"}, {"AMT", "192.52.193.0/24"}, {"Deprecated (6to4 Relay Anycast)", "192.88.99.0/24"},
		{"6a44-relay anycast address", "192.88.99.2/32"}, {"Private-Use 192.168", "192.168.0.0/16"}, {"Direct Delegation AS112 Service", "192.175.48.0/24"},
		{"Benchmarking", "198.18.0.0/15"}, {"Documentation (TEST-NET-2)", "198.51.100.0/24"}, {"Documentation (TEST-NET-3)", "203.0.113.0/24"},
		{"Reserved", "240.0.0.0/4"}, {"Limited Broadcast", "255.255.255.255/32"},

		{"Loopback Address", "::1/128"}, {"Unspecified Address", "::/128"}, {"IPv4-IPv6 Translat. (local)", "64:ff9b:1::/48"},
		{"Discard-Only Address Block", "100::/64"}, {"Dummy IPv6 Prefix", "100:0:0:1::/64"}, {"IETF Protocol Assignments (v6)", "2001::/23"},
		{"TEREDO", "2001::/32"}, {"Port Control Protocol Anycast (v6)", "2001:1::1/128"}, {"Traversal Using Relays around NAT Anycast (v6)", "2001:1::2/128"},
		{"DNS-SD Service Registration Protocol Anycast", "2001:1::3/128"}, {"Benchmarking (v6)", "2001:2::/48"}, {"AMT (v6)", "2001:3::/32"},
		{"AS112-v6", "2001:4:112::/48"}, {"Deprecated (previously ORCHID)", "2001:10::/28"}, {"ORCHIDv2", "2001:20::/28"},
		{"Drone Remote ID Protocol Entity Tags", "2001:30::/28"}, {"Documentation (v6)", "2001:db8::/32"}, {"6to4", "2002::/16"},
		{"Direct Delegation AS112 Service (v6)", "2620:4f:8000::/48"}, {"Documentation (3fff)", "3fff::/20"}, {"Segment Routing (SRv6) SIDs", "5f00::/16"},
		{"Unique-Local", "fc00::/7"}, {"Link-Local Unicast", "fe80::/10"},
	}
}

// others is what the registries do not list and is refused all the same.
func others() []entry {
	found := []entry{
		{"Multicast", "224.0.0.0/4"}, {"Multicast (v6)", "ff00::/8"}, {"site-local", "fec0::/10"}, {"IPv4-compatible", "::/96"},
		{"IPv4-translated", "::ffff:0:0:0/96"},
	}
	for _, prefix := range metadata() {
		found = append(found, entry{"metadata " + prefix, prefix})
	}
	return found
}

func first(p netip.Prefix) netip.Addr { return p.Masked().Addr() }

func last(p netip.Prefix) netip.Addr {
	bytes := p.Masked().Addr().AsSlice()
	for i := p.Bits(); i < len(bytes)*8; i++ {
		bytes[i/8] |= 0x80 >> (i % 8)
	}
	addr, _ := netip.AddrFromSlice(bytes)
	return addr
}

func TestOnlyPublicAddressesAreDialled(t *testing.T) {
	guard := NewGuard(netip.MustParsePrefix("9.9.9.0/24"))
	for _, e := range append(registered(), others()...) {
		prefix := netip.MustParsePrefix(e.prefix)
		for _, addr := range []netip.Addr{first(prefix), last(prefix)} {
			require.Error(t, guard.Check(addr, Public), "%s: %s", e.name, addr)
			require.Error(t, guard.Check(addr.WithZone("eth0"), Public), "%s: %s", e.name, addr)
			if addr.Is4() { // the same address in other words
				b := addr.As4()
				for _, form := range []netip.Addr{netip.AddrFrom16(addr.As16()), in("64:ff9b::", 12, b), in("64:ff9b:1::", 12, b), in("::", 12, b),
					in("::ffff:0:0:0", 12, b),
					in("2002::", 2, b), in("2606:4700::5efe:0:0", 12, b), in("2606:4700::200:5efe:0:0", 12, b)} {
					require.Error(t, guard.Check(form, Public), "%s: %s", e.name, form)
				}
			}
		}
	}
	for _, denied := range []string{"9.9.9.9", "::ffff:9.9.9.9", "64:ff9b::9.9.9.9"} {
		require.ErrorIs(t, guard.Check(netip.MustParseAddr(denied), Public), ErrAddress, denied)
	}
	require.Error(t, guard.Check(netip.Addr{}, Public))
	require.Error(t, (&Guard{}).Check(netip.MustParseAddr("1.1.1.1"), Public), "the zero value refuses")
}

// in returns an IPv6 address with an IPv4 address at a position.
func in(prefix string, position int, v4 [4]byte) netip.Addr {
	b := netip.MustParseAddr(prefix).As16()
	copy(b[position:], v4[:])
	return netip.AddrFrom16(b)
}

func TestAddressesBesideTheSpecialOnesAreDialled(t *testing.T) {
	guard := NewGuard()
	all := append(registered(), others()...)
	listed := func(addr netip.Addr) bool {
		for _, e := range all {
			if netip.MustParsePrefix(e.prefix).Contains(addr) {
				return true
			}
		}
		return addr.Is6() && !netip.MustParsePrefix("2000::/3").Contains(addr)
	}
	beside := 0
	for _, e := range all {
		prefix := netip.MustParsePrefix(e.prefix)
		for _, addr := range []netip.Addr{first(prefix).Prev(), last(prefix).Next()} {
			if addr.IsValid() && !listed(addr) {
				beside++
				require.NoError(t, guard.Check(addr, Public), "beside %s: %s", e.name, addr)
			}
		}
	}
	require.Greater(t, beside, 20)
	for _, public := range []string{"1.1.1.1", "2606:4700::1111", "2001:200::1", "64:ff9b::1.1.1.1", "::ffff:8.8.8.8", "2a00:1450::5efe:808:808"} {
		require.NoError(t, guard.Check(netip.MustParseAddr(public), Public), public)
	}
	require.Error(t, guard.Check(netip.MustParseAddr("4000::1"), Public), "nobody has it")
}

func TestNoHostThatAnAdminNamedIsOnAMetadataService(t *testing.T) {
	guard := NewGuard()
	never := append(metadata(), "169.254.0.1/32", "224.0.0.1/32", "255.255.255.255/32", "0.0.0.0/32", "::/128", "fe80::1/128", "ff02::1/128", "fec0::1/128")
	for _, text := range never {
		addr := netip.MustParsePrefix(text).Addr()
		require.ErrorIs(t, guard.Check(addr, Private), ErrMetadata, text)
		require.NoError(t, guard.Check(addr, UnsafeMetadata), text)
	}
	azure := netip.MustParseAddr("168.63.129.16").As4()
	for _, form := range []netip.Addr{in("64:ff9b::", 12, azure), in("64:ff9b:1::", 12, azure), in("2002::", 2, azure), in("::", 12, azure),
		in("::ffff:0:0", 12, azure)} {
		require.ErrorIs(t, guard.Check(form, Private), ErrMetadata, form)
	}
	for _, text := range []string{"127.0.0.1", "::1", "10.0.0.1", "192.168.1.1", "172.16.0.1", "100.64.0.1", "fd00::1", "1.1.1.1", "64:ff9b:1::a00:1",
		"64:ff9b::10.0.0.1"} {
		require.NoError(t, guard.Check(netip.MustParseAddr(text), Private), text)
	}
}

func TestTheAddressIsCheckedWhenItIsDialled(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	reached := make(chan struct{}, 8)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			reached <- struct{}{}
			_ = conn.Close()
		}
	}()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	// localhost stands for a name that its owner made lead here after it was listed.
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]"} {
		_, err := NewGuard().dial(Public, defaultDialTimeout)(t.Context(), "tcp", host+":"+port)
		require.ErrorIs(t, err, ErrAddress, host)
	}
	require.Empty(t, reached)
	conn, err := NewGuard().dial(Private, defaultDialTimeout)(t.Context(), "tcp", "127.0.0.1:"+port)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	<-reached
}

func TestOnlyAFewAddressesOfANameAreTried(t *testing.T) {
	connect := NewGuard().dialer(Public, defaultDialTimeout).Control
	for range 2 * maxAddresses {
		require.ErrorIs(t, connect("tcp4", "127.0.0.1:443", nil), ErrAddress, "a refused address is no try")
	}
	for range maxAddresses {
		require.NoError(t, connect("tcp4", "1.1.1.1:443", nil))
	}
	require.ErrorIs(t, connect("tcp4", "1.1.1.2:443", nil), errAddresses)
	require.ErrorIs(t, connect("tcp4", "10.0.0.1:443", nil), ErrAddress)
	require.ErrorIs(t, NewGuard().dialer(Private, defaultDialTimeout).Control("tcp4", "registry.example.com:443", nil), errResolve)
}
