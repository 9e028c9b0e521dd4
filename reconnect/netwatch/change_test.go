package netwatch

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAChangeSaysWhatIsNewAndWhatIsGone(t *testing.T) {
	wlan := Address{Interface: "wlan0", Addr: netip.MustParseAddr("2001:db8::7")}
	old, next := at("192.0.2.1"), at("192.0.2.1")
	next.Addresses = []Address{wlan}
	next.IPv4 = Route{}
	next.IPv6 = Route{Interface: "wlan0", Source: wlan.Addr}
	c := Change{Old: old, New: next, Slept: 90 * time.Second}
	require.Equal(t, "slept for 1m30s, 192.0.2.1 (eth0) is gone, 2001:db8::7 (wlan0) is new, "+
		"IPv4 route: none, IPv6 route: wlan0 from 2001:db8::7", c.String())
}

func TestANewGatewayIsAChange(t *testing.T) {
	old, next := at("192.0.2.1"), at("192.0.2.1")
	next.IPv4.Gateway = netip.MustParseAddr("192.0.2.253")
	c := Change{Old: old, New: next}
	require.Equal(t, "IPv4 route: eth0 via 192.0.2.253 from 192.0.2.1", c.String())
	require.False(t, old.equal(next))
}

func TestAMissedChangeThatWasUndoneIsStillReported(t *testing.T) {
	inScene(t, nil, func(t *testing.T, s *scene) {
		changes := s.w.Changes(t.Context())
		s.move("192.0.2.2")
		s.sleep(time.Second)
		s.move("192.0.2.1")
		s.sleep(time.Second)
		c := wantChange(t, changes)
		require.Equal(t, Change{Old: at("192.0.2.1"), New: at("192.0.2.1")}, c)
		require.Equal(t, "changed, and changed back", c.String())
	})
}

func TestAnAddressOfAnUnknownInterfaceIsPrintedAlone(t *testing.T) {
	require.Equal(t, "192.0.2.1", Address{Addr: netip.MustParseAddr("192.0.2.1")}.String())
}
