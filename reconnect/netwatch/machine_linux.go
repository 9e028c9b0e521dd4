package netwatch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// groups are the multicast groups of rtnetlink(7) that announce changes of the parts of a Network.
// Rules are among the groups because the rules of a VPN change the route to the Internet.
const groups = 1<<(syscall.RTNLGRP_LINK-1) |
	1<<(syscall.RTNLGRP_IPV4_IFADDR-1) | 1<<(syscall.RTNLGRP_IPV6_IFADDR-1) |
	1<<(syscall.RTNLGRP_IPV4_ROUTE-1) | 1<<(syscall.RTNLGRP_IPV6_ROUTE-1) |
	1<<(syscall.RTNLGRP_IPV4_RULE-1) | 1<<(rtnlgrpIPv6Rule-1)

const (
	rtnlgrpIPv6Rule = 19 // RTNLGRP_IPV6_RULE of linux/rtnetlink.h, which package syscall lacks
	rtaVia          = 18 // RTA_VIA, likewise
)

// netlink returns an rtnetlink socket that joins the multicast groups in mask.
func netlink(mask uint32) (*os.File, error) {
	const kind = syscall.SOCK_RAW | syscall.SOCK_CLOEXEC | syscall.SOCK_NONBLOCK
	fd, err := syscall.Socket(syscall.AF_NETLINK, kind, syscall.NETLINK_ROUTE)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	addr := &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK, Groups: mask}
	if err := syscall.Bind(fd, addr); err != nil {
		syscall.Close(fd)
		return nil, os.NewSyscallError("bind", err)
	}
	return os.NewFile(uintptr(fd), "netlink"), nil
}

func listen(events chan error) (stop func(), err error) {
	socket, err := netlink(groups)
	if err != nil {
		return func() {}, fmt.Errorf("netwatch: netlink: %w", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		announce(socket, events)
	}()
	return func() {
		socket.Close() // ends announce
		<-done
	}, nil
}

// announce sends to events until the socket breaks. Because look finds the changes, neither the content of
// the kernel's announcements matters, nor that it drops some if there are too many (ENOBUFS).
func announce(socket *os.File, events chan error) {
	buf := make([]byte, 64) // the rest of a datagram is lost
	for {
		_, err := socket.Read(buf)
		if errors.Is(err, syscall.ENOBUFS) {
			err = nil
		}
		select {
		case <-events: // one stands for all since the last look
		default:
		}
		events <- err
		if err != nil {
			return
		}
	}
}

// addresses returns the addresses of the named interfaces, without those that cannot be used because another
// machine may have them (RFC 4862, section 5.4).
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
			continue // the end of the table
		}
		head := (*syscall.IfAddrmsg)(unsafe.Pointer(&m.Data[0]))
		doubtful := head.Flags&syscall.IFA_F_TENTATIVE != 0 && head.Flags&syscall.IFA_F_OPTIMISTIC == 0
		a := Address{Interface: names[int(head.Index)]}
		if a.Interface == "" || doubtful || head.Flags&syscall.IFA_F_DADFAILED != 0 {
			continue
		}
		list, err := syscall.ParseNetlinkRouteAttr(&m)
		if err != nil {
			return nil, os.NewSyscallError("netlink attributes", err)
		}
		for _, attr := range list {
			// If there is a peer, IFA_ADDRESS is the peer's.
			if attr.Attr.Type == syscall.IFA_LOCAL || attr.Attr.Type == syscall.IFA_ADDRESS && !a.Addr.IsValid() {
				a.Addr, _ = netip.AddrFromSlice(attr.Value)
			}
		}
		all = append(all, a)
	}
	return all, nil
}

// route returns the route to an address, if its interface is among names. It asks the kernel, as
// `ip route get` does, so that all tables and rules apply.
func route(to netip.Addr, names map[int]string, all []Address) (Route, error) {
	list := askRoute(to)
	if list == nil || names == nil {
		return sourceRoute(to, all)
	}
	var r Route
	for _, a := range list {
		switch {
		case a.Attr.Type == syscall.RTA_OIF && len(a.Value) == 4:
			r.Interface = names[int(binary.NativeEndian.Uint32(a.Value))]
		case a.Attr.Type == syscall.RTA_GATEWAY:
			r.Gateway, _ = netip.AddrFromSlice(a.Value)
		case a.Attr.Type == syscall.RTA_PREFSRC:
			r.Source, _ = netip.AddrFromSlice(a.Value)
		case a.Attr.Type == rtaVia && len(a.Value) > 2: // a family, and a gateway of it
			r.Gateway, _ = netip.AddrFromSlice(a.Value[2:])
		}
	}
	if r.Interface == "" {
		return Route{}, nil
	}
	return r, nil
}

// askRoute returns the attributes of the kernel's route to an address, or nil if there is none or a
// sandbox hides it.
func askRoute(to netip.Addr) []syscall.NetlinkRouteAttr {
	socket, err := netlink(0)
	if err != nil {
		return nil
	}
	defer socket.Close()
	dst := to.AsSlice()
	family := uint8(syscall.AF_INET)
	if to.Is6() {
		family = syscall.AF_INET6
	}
	var request struct { // linux/rtnetlink.h
		syscall.NlMsghdr
		syscall.RtMsg
		syscall.RtAttr
	}
	size := uint32(binary.Size(request) + len(dst))
	request.NlMsghdr = syscall.NlMsghdr{Len: size, Type: syscall.RTM_GETROUTE, Flags: syscall.NLM_F_REQUEST}
	request.RtMsg = syscall.RtMsg{Family: family, Dst_len: uint8(to.BitLen())}
	request.RtAttr = syscall.RtAttr{Len: uint16(syscall.SizeofRtAttr + len(dst)), Type: syscall.RTA_DST}
	buf, _ := binary.Append(nil, binary.NativeEndian, request) // no error, because its size is fixed
	// The kernel responds immediately. A sandbox may not respond.
	socket.SetDeadline(time.Now().Add(time.Second))
	if _, err := socket.Write(append(buf, dst...)); err != nil {
		return nil
	}
	buf = make([]byte, 4096)
	n, _ := socket.Read(buf)
	messages, err := syscall.ParseNetlinkMessage(buf[:max(n, 0)])
	if err != nil || len(messages) == 0 || messages[0].Header.Type != syscall.RTM_NEWROUTE {
		return nil
	}
	list, _ := syscall.ParseNetlinkRouteAttr(&messages[0])
	return list
}
