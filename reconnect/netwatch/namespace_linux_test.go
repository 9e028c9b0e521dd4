package netwatch

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// namespaceEnv tells a process of the test binary that it is in a namespace of its own.
const namespaceEnv = "REDIAL_NETWATCH_NAMESPACE"

// inNamespace runs script in a process of its own, in a network namespace of its own, which
// has nothing but a loopback interface that is down. Without root it needs a kernel that lets
// everybody make user namespaces.
func inNamespace(t *testing.T, script func()) {
	if os.Getenv(namespaceEnv) != "" {
		script()
		return
	}
	t.Parallel()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=60s")
	cmd.Env = append(os.Environ(), namespaceEnv+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	output, err := cmd.CombinedOutput()
	for _, e := range []error{syscall.EPERM, syscall.EACCES, syscall.ENOSPC, syscall.EINVAL, syscall.ENOSYS} {
		if errors.Is(err, e) {
			t.Skipf("this system permits no network namespaces: %v", err)
		}
	}
	require.NoError(t, err, "%s", output)
	if strings.Contains(string(output), "--- SKIP") {
		t.Skipf("%s", output)
	}
}

// links are the interfaces of a namespace. Its methods change them by rtnetlink.
type links struct {
	t  *testing.T
	fd int
}

// newLinks sets the loopback interface up.
func newLinks(t *testing.T) *links {
	fd, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, syscall.NETLINK_ROUTE)
	require.NoError(t, err)
	t.Cleanup(func() { syscall.Close(fd) })
	l := &links{t: t, fd: fd}
	if err := l.try(syscall.RTM_NEWLINK, 0, l.link("lo", syscall.IFF_UP)); errors.Is(err, syscall.EPERM) {
		t.Skip("this system permits network namespaces, but not to change them")
	}
	return l
}

// addPair adds two interfaces that are joined by a cable.
func (l *links) addPair(one, two string) {
	l.t.Helper()
	const infoKind, infoData, vethPeer = 1, 2, 1 // of linux/if_link.h and linux/veth.h
	peer := append(make([]byte, syscall.SizeofIfInfomsg), attr(syscall.IFLA_IFNAME, name(two))...)
	data := attr(infoData, attr(vethPeer, peer))
	info := attr(syscall.IFLA_LINKINFO, append(attr(infoKind, name("veth")), data...))
	body := append(make([]byte, syscall.SizeofIfInfomsg), attr(syscall.IFLA_IFNAME, name(one))...)
	l.do(syscall.RTM_NEWLINK, syscall.NLM_F_CREATE|syscall.NLM_F_EXCL, append(body, info...))
	if hasIPv6() { // without addresses that the kernel makes by itself, because it announces them late
		const afSpec, genMode, none = 26, 8, 1 // IFLA_AF_SPEC, IFLA_INET6_ADDR_GEN_MODE, IN6_ADDR_GEN_MODE_NONE
		spec := attr(afSpec, attr(syscall.AF_INET6, attr(genMode, []byte{none})))
		l.do(syscall.RTM_NEWLINK, 0, append(l.link(one, 0), spec...))
		l.do(syscall.RTM_NEWLINK, 0, append(l.link(two, 0), spec...))
	}
}

func hasIPv6() bool {
	_, err := os.Stat("/proc/net/if_inet6")
	return err == nil
}

// remove removes an interface, and the one at the other end of the cable.
func (l *links) remove(iface string) {
	l.t.Helper()
	l.do(syscall.RTM_DELLINK, 0, l.link(iface, 0))
}

// up and down set interfaces up and down.
func (l *links) up(ifaces ...string) {
	l.t.Helper()
	for _, iface := range ifaces {
		l.do(syscall.RTM_NEWLINK, 0, l.link(iface, syscall.IFF_UP))
	}
}

func (l *links) down(iface string) {
	l.t.Helper()
	l.do(syscall.RTM_NEWLINK, 0, l.link(iface, 0))
}

func (l *links) link(iface string, flags uint32) []byte {
	body := make([]byte, 4, syscall.SizeofIfInfomsg)
	body = binary.NativeEndian.AppendUint32(body, l.index(iface))
	body = binary.NativeEndian.AppendUint32(body, flags)
	return binary.NativeEndian.AppendUint32(body, syscall.IFF_UP) // which of the flags
}

// add and drop add an address to an interface and remove it, such as "192.0.2.1/24".
func (l *links) add(iface, prefix string) {
	l.t.Helper()
	l.do(syscall.RTM_NEWADDR, syscall.NLM_F_CREATE|syscall.NLM_F_EXCL, l.address(iface, prefix))
}

func (l *links) drop(iface, prefix string) {
	l.t.Helper()
	l.do(syscall.RTM_DELADDR, 0, l.address(iface, prefix))
}

func (l *links) address(iface, prefix string) []byte {
	p := netip.MustParsePrefix(prefix)
	scope := byte(syscall.RT_SCOPE_UNIVERSE)
	if p.Addr().IsLoopback() {
		scope = syscall.RT_SCOPE_HOST
	}
	body := []byte{family(p.Addr()), byte(p.Bits()), 0, scope}
	body = binary.NativeEndian.AppendUint32(body, l.index(iface))
	body = append(body, attr(syscall.IFA_LOCAL, p.Addr().AsSlice())...)
	return append(body, attr(syscall.IFA_ADDRESS, p.Addr().AsSlice())...)
}

// route makes a gateway that of the default route.
func (l *links) route(gateway string) {
	l.t.Helper()
	via := netip.MustParseAddr(gateway)
	const static = 4 // RTPROT_STATIC
	body := []byte{family(via), 0, 0, 0, syscall.RT_TABLE_MAIN, static, syscall.RT_SCOPE_UNIVERSE, syscall.RTN_UNICAST, 0, 0, 0, 0}
	l.do(syscall.RTM_NEWROUTE, syscall.NLM_F_CREATE|syscall.NLM_F_REPLACE, append(body, attr(syscall.RTA_GATEWAY, via.AsSlice())...))
}

// routeByIPv6 makes an IPv6 gateway the one of the IPv4 default route (RFC 5549).
func (l *links) routeByIPv6(iface, gateway string) {
	l.t.Helper()
	const static, via = 4, 18 // RTPROT_STATIC, RTA_VIA
	body := []byte{syscall.AF_INET, 0, 0, 0, syscall.RT_TABLE_MAIN, static, syscall.RT_SCOPE_UNIVERSE, syscall.RTN_UNICAST, 0, 0, 0, 0}
	hop := binary.NativeEndian.AppendUint16(nil, syscall.AF_INET6)
	body = append(body, attr(via, append(hop, netip.MustParseAddr(gateway).AsSlice()...))...)
	body = append(body, attr(syscall.RTA_OIF, binary.NativeEndian.AppendUint32(nil, l.index(iface)))...)
	l.do(syscall.RTM_NEWROUTE, syscall.NLM_F_CREATE|syscall.NLM_F_REPLACE, body)
}

// authenticated says whether a link that needs authentication, such as Wi-Fi, has it. The mode keeps the
// kernel, which works off the carrier of the link late, from setting the state that the mode implies.
func (l *links) authenticated(iface string, yes bool) {
	l.t.Helper()
	const operState, dormant, up = 16, 5, 6     // IFLA_OPERSTATE, IF_OPER_DORMANT, IF_OPER_UP
	const linkMode, asUsual, needsIt = 17, 0, 1 // IFLA_LINKMODE, IF_LINK_MODE_DEFAULT, IF_LINK_MODE_DORMANT
	state, mode := byte(dormant), byte(needsIt)
	if yes {
		state, mode = up, asUsual
	}
	l.do(syscall.RTM_NEWLINK, 0, slices.Concat(l.link(iface, syscall.IFF_UP), attr(operState, []byte{state}), attr(linkMode, []byte{mode})))
}

// forbid adds a rule that no packet has a route.
func (l *links) forbid(family byte) {
	l.t.Helper()
	const newRule, unreachable = 32, 7 // RTM_NEWRULE, FR_ACT_UNREACHABLE
	l.do(newRule, syscall.NLM_F_CREATE|syscall.NLM_F_EXCL, []byte{family, 0, 0, 0, 0, 0, 0, unreachable, 0, 0, 0, 0})
}

func (l *links) index(iface string) uint32 {
	i, err := net.InterfaceByName(iface)
	require.NoError(l.t, err)
	return uint32(i.Index)
}

// do sends a request, which must succeed.
func (l *links) do(kind, flags uint16, body []byte) {
	l.t.Helper()
	require.NoError(l.t, l.try(kind, flags, body))
}

// try sends a request and returns the error in the kernel's answer.
func (l *links) try(kind, flags uint16, body []byte) error {
	l.t.Helper()
	b := binary.NativeEndian.AppendUint32(nil, uint32(syscall.NLMSG_HDRLEN+len(body)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = binary.NativeEndian.AppendUint16(b, flags|syscall.NLM_F_REQUEST|syscall.NLM_F_ACK)
	b = append(append(b, make([]byte, 8)...), body...)
	require.NoError(l.t, syscall.Sendto(l.fd, b, 0, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}))
	answer := make([]byte, 4096)
	n, _, err := syscall.Recvfrom(l.fd, answer, 0)
	require.NoError(l.t, err)
	messages, err := syscall.ParseNetlinkMessage(answer[:n])
	require.NoError(l.t, err)
	require.EqualValues(l.t, syscall.NLMSG_ERROR, messages[0].Header.Type)
	if errno := -int32(binary.NativeEndian.Uint32(messages[0].Data)); errno != 0 {
		return syscall.Errno(errno)
	}
	return nil
}

// attr returns a netlink attribute, padded.
func attr(kind uint16, value []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(syscall.SizeofRtAttr+len(value)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, value...)
	return append(b, make([]byte, -len(value)&3)...)
}

func name(s string) []byte { return append([]byte(s), 0) }

func family(a netip.Addr) byte {
	if a.Is6() {
		return syscall.AF_INET6
	}
	return syscall.AF_INET
}
