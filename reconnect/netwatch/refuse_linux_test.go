//go:build amd64 || arm64

package netwatch

import (
	"context"
	"net/netip"
	"runtime"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// Where netlink is refused altogether, as in a sandbox, or only bind, as by Android.
func TestWithoutNetlinkTheSourceOfPacketsHasToDo(t *testing.T) {
	for name, call := range map[string]uint32{"socket": syscall.SYS_SOCKET, "bind": syscall.SYS_BIND} {
		t.Run(name, func(t *testing.T) {
			inNamespace(t, func() {
				l := newLinks(t)
				l.addPair("eth0", "veth0")
				l.up("eth0", "veth0")
				l.add("eth0", "10.9.0.1/24")
				refuse(t, call)
				w, err := New(context.Background(), &Options{Interval: 10 * time.Millisecond})
				require.NoError(t, err)
				require.ErrorIs(t, w.Status().Polling, syscall.EPERM)
				require.True(t, w.Status().Network.Offline(), "without a route")
				changes := w.Changes(t.Context())
				l.route("10.9.0.254")
				addr := netip.MustParseAddr("10.9.0.1")
				require.Equal(t, Network{Addresses: []Address{{Addr: addr}}, IPv4: Route{Source: addr}}, (<-changes).New)
				w.Close()
				<-w.Done()
			})
		})
	}
}

// refuse makes the kernel refuse a system call with EPERM from now on, in all threads of
// this process: each socket(AF_NETLINK), or each of another call.
func refuse(t *testing.T, call uint32) {
	t.Helper()
	const (
		noNewPrivileges = 38 // PR_SET_NO_NEW_PRIVS
		filterMode      = 1  // SECCOMP_SET_MODE_FILTER
		allThreads      = 1  // SECCOMP_FILTER_FLAG_TSYNC
		allow           = 0x7fff0000
		refusal         = 0x00050000 | uint32(syscall.EPERM) // SECCOMP_RET_ERRNO
		load            = syscall.BPF_LD | syscall.BPF_W | syscall.BPF_ABS
		equal           = syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K
		result          = syscall.BPF_RET | syscall.BPF_K
	)
	seccomp := map[string]uintptr{"amd64": 317, "arm64": 277}[runtime.GOARCH]
	program := []syscall.SockFilter{
		{Code: load, K: 0}, // the call's number
		{Code: equal, K: call, Jt: 0, Jf: 4},
		{Code: equal, K: syscall.SYS_SOCKET, Jt: 0, Jf: 2},
		{Code: load, K: 16}, // the first argument, little endian
		{Code: equal, K: syscall.AF_NETLINK, Jt: 0, Jf: 1},
		{Code: result, K: refusal},
		{Code: result, K: allow},
	}
	runtime.LockOSThread() // because the first call is for one thread, and the second for that and all others
	defer runtime.UnlockOSThread()
	_, _, errno := syscall.Syscall6(syscall.SYS_PRCTL, noNewPrivileges, 1, 0, 0, 0, 0)
	require.Zero(t, errno)
	filter := syscall.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno = syscall.Syscall(seccomp, filterMode, allThreads, uintptr(unsafe.Pointer(&filter)))
	require.Zero(t, errno)
}
