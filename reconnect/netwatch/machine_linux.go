package netwatch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"syscall"
	"unsafe"
)

// groups are the multicast groups of rtnetlink(7) that announce changes of the parts of a Network.
// Rules are among the groups because the rules of a VPN change the route to the Internet.
const groups = 1<<(syscall.RTNLGRP_LINK-1) |
	1<<(syscall.RTNLGRP_IPV4_IFADDR-1) | 1<<(syscall.RTNLGRP_IPV6_IFADDR-1) |
	1<<(syscall.RTNLGRP_IPV4_ROUTE-1) | 1<<(syscall.RTNLGRP_IPV6_ROUTE-1) |
	1<<(syscall.RTNLGRP_IPV4_RULE-1) | 1<<(rtnlgrpIPv6Rule-1)

// rtnlgrpIPv6Rule is RTNLGRP_IPV6_RULE of linux/rtnetlink.h, which package syscall lacks.
const rtnlgrpIPv6Rule = 19

// listen hears the kernel's announcements.
func listen() (*announcer, error) {
	socket, err := subscribe()
	if err != nil {
		return &announcer{}, fmt.Errorf("netwatch: netlink: %w", err)
	}
	return announce(socket), nil
}

// subscribe returns a netlink socket that gets the kernel's announcements.
func subscribe() (*os.File, error) {
	fd, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, syscall.NETLINK_ROUTE)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK, Groups: groups}); err != nil {
		syscall.Close(fd)
		return nil, os.NewSyscallError("bind", err)
	}
	return os.NewFile(uintptr(fd), "netlink"), nil
}

// announce reads socket until it is stopped or the socket breaks.
func announce(socket *os.File) *announcer {
	a := &announcer{events: make(chan struct{}, 1)} // one stands for many
	done := make(chan struct{})
	go a.read(socket, done)
	a.stop = func() {
		socket.Close() // ends read
		<-done
	}
	return a
}

// read announces that something may have changed whenever the kernel says so. The content of an
// announcement is not read, because look finds the change. So it does no harm if the kernel drops
// announcements because there are too many (ENOBUFS).
func (a *announcer) read(socket *os.File, done chan<- struct{}) {
	defer close(done)
	defer close(a.events)
	buf := make([]byte, 64) // the rest of a datagram is lost
	for {
		if _, err := socket.Read(buf); err != nil && !errors.Is(err, syscall.ENOBUFS) {
			a.err = fmt.Errorf("netwatch: %w", err)
			return
		}
		select {
		case a.events <- struct{}{}:
		default: // one waits already
		}
	}
}

// addresses returns the addresses of the named interfaces, without those that cannot be used
// because another machine may have them (RFC 4862, section 5.4).
func addresses(names map[int]string) ([]Address, error) {
	table, err := syscall.NetlinkRIB(syscall.RTM_GETADDR, syscall.AF_UNSPEC)
	if err != nil {
		return nil, os.NewSyscallError("netlink RTM_GETADDR", err)
	}
	messages, err := syscall.ParseNetlinkMessage(table)
	if err != nil {
		return nil, os.NewSyscallError("netlink RTM_GETADDR", err)
	}
	var all []Address
	for _, m := range messages {
		if m.Header.Type != syscall.RTM_NEWADDR || len(m.Data) < syscall.SizeofIfAddrmsg {
			continue
		}
		head := (*syscall.IfAddrmsg)(unsafe.Pointer(&m.Data[0]))
		name := names[int(head.Index)]
		doubtful := head.Flags&syscall.IFA_F_TENTATIVE != 0 && head.Flags&syscall.IFA_F_OPTIMISTIC == 0
		if name == "" || doubtful || head.Flags&syscall.IFA_F_DADFAILED != 0 {
			continue
		}
		attributes, err := attributes(&m)
		if err != nil {
			return nil, err
		}
		local := attributes[syscall.IFA_LOCAL] // with a peer, IFA_ADDRESS is the peer's
		if !local.IsValid() {
			local = attributes[syscall.IFA_ADDRESS]
		}
		all = append(all, Address{Interface: name, Addr: local})
	}
	return all, nil
}

// attributes returns the attributes of a message that are addresses, by their type.
func attributes(m *syscall.NetlinkMessage) (map[uint16]netip.Addr, error) {
	list, err := syscall.ParseNetlinkRouteAttr(m)
	if err != nil {
		return nil, os.NewSyscallError("netlink attributes", err)
	}
	addrs := make(map[uint16]netip.Addr, len(list))
	for _, a := range list {
		if addr, ok := netip.AddrFromSlice(a.Value); ok {
			addrs[a.Attr.Type] = addr.Unmap()
		}
	}
	return addrs, nil
}

// route asks the kernel for the route to an address, as `ip route get` does, so that all its
// tables and rules count, and none of them has to be listed.
func route(to netip.Addr, names map[int]string, all []Address) (Route, error) {
	m, err := askRoute(to)
	if err == nil && m.Header.Type == syscall.RTM_NEWROUTE && len(m.Data) >= syscall.SizeofRtMsg {
		return parseRoute(m, names)
	}
	return sourceRoute(to, all) // because there is no route, or a sandbox does not tell it
}

// parseRoute returns the route of an RTM_NEWROUTE, if its interface can carry packets.
func parseRoute(m syscall.NetlinkMessage, names map[int]string) (Route, error) {
	list, err := syscall.ParseNetlinkRouteAttr(&m)
	if err != nil {
		return Route{}, os.NewSyscallError("netlink attributes", err)
	}
	var r Route
	for _, a := range list {
		switch a.Attr.Type {
		case syscall.RTA_OIF:
			if len(a.Value) == 4 {
				r.Interface = names[int(binary.NativeEndian.Uint32(a.Value))]
			}
		case syscall.RTA_GATEWAY:
			r.Gateway, _ = netip.AddrFromSlice(a.Value)
		case syscall.RTA_PREFSRC:
			r.Source, _ = netip.AddrFromSlice(a.Value)
		case rtaVia: // a family, and a gateway of it
			if len(a.Value) > 2 {
				r.Gateway, _ = netip.AddrFromSlice(a.Value[2:])
			}
		}
	}
	if r.Interface == "" {
		return Route{}, nil
	}
	return r, nil
}

// rtaVia is RTA_VIA of linux/rtnetlink.h, which package syscall lacks.
const rtaVia = 18

// askRoute returns the kernel's answer to RTM_GETROUTE: an RTM_NEWROUTE, or an NLMSG_ERROR if
// there is no route.
func askRoute(to netip.Addr) (syscall.NetlinkMessage, error) {
	var none syscall.NetlinkMessage
	fd, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, syscall.NETLINK_ROUTE)
	if err != nil {
		return none, os.NewSyscallError("socket", err)
	}
	defer syscall.Close(fd)
	// The kernel answers before Sendto returns. The limit is for a sandbox that does not.
	if err := syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &syscall.Timeval{Sec: 1}); err != nil {
		return none, os.NewSyscallError("setsockopt", err)
	}
	if err := syscall.Sendto(fd, routeRequest(to), 0, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}); err != nil {
		return none, os.NewSyscallError("sendto", err)
	}
	buf := make([]byte, 4096)
	n, _, err := syscall.Recvfrom(fd, buf, 0)
	if err != nil {
		return none, os.NewSyscallError("recvfrom", err)
	}
	messages, err := syscall.ParseNetlinkMessage(buf[:n])
	if err != nil || len(messages) == 0 {
		return none, os.NewSyscallError("netlink RTM_GETROUTE", syscall.EINVAL)
	}
	return messages[0], nil
}

// routeRequest returns an RTM_GETROUTE of linux/rtnetlink.h: a header, an rtmsg and RTA_DST.
func routeRequest(to netip.Addr) []byte {
	dst := to.AsSlice()
	family := uint8(syscall.AF_INET)
	if to.Is6() {
		family = syscall.AF_INET6
	}
	var r struct {
		syscall.NlMsghdr
		syscall.RtMsg
		syscall.RtAttr
	}
	r.NlMsghdr = syscall.NlMsghdr{Len: uint32(binary.Size(r) + len(dst)), Type: syscall.RTM_GETROUTE, Flags: syscall.NLM_F_REQUEST}
	r.RtMsg = syscall.RtMsg{Family: family, Dst_len: uint8(to.BitLen())}
	r.RtAttr = syscall.RtAttr{Len: uint16(syscall.SizeofRtAttr + len(dst)), Type: syscall.RTA_DST}
	b, _ := binary.Append(nil, binary.NativeEndian, r) // of fixed size, so there is no error
	return append(b, dst...)
}
