package registry

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyPublicAddressesAreDialled(t *testing.T) {
	c := NewClient(Options{DeniedPrefixes: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}})
	t.Cleanup(c.Close)
	for _, address := range []string{
		"127.0.0.1:443", "[::1]:443", "10.0.0.1:443", "172.31.255.255:443", "192.168.0.1:443", "169.254.169.254:80", "[fe80::1]:443",
		"[fd00::1]:443", "100.64.0.1:443", "0.0.0.0:443", "0.1.2.3:443", "[::]:443", "224.0.0.1:443", "[ff02::1]:443", "255.255.255.255:443",
		"[::ffff:10.0.0.1]:443", "[::ffff:169.254.169.254]:80", "[64:ff9b::a9fe:a9fe]:80", "[2002:7f00:1::]:443", "198.18.0.1:443", "240.0.0.1:443",
		"203.0.113.9:443",
	} {
		require.ErrorIs(t, c.checkAddress(address), errPrivateAddress, address)
	}
	for _, address := range []string{"1.1.1.1:443", "[2606:4700::1111]:443", "203.0.114.1:443", "172.32.0.1:443"} {
		require.NoError(t, c.checkAddress(address), address)
	}
	require.Error(t, c.checkAddress("registry.example.com:443"), "a name that was not resolved")
}
