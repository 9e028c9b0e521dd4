package backoff

import "syscall"

// Windows numbers the failures of sockets in its own way (WSAECONNREFUSED and others in
// winsock2.h), and package syscall does not translate them: its ECONNREFUSED and the like are
// numbers that no call of the system returns.
var (
	wsaLocal   = []error{syscall.Errno(10024), syscall.Errno(10049), syscall.Errno(10055), syscall.Errno(10051)} // WSAEMFILE, WSAEADDRNOTAVAIL, WSAENOBUFS, WSAENETUNREACH
	wsaDenied  = []error{syscall.Errno(10013)}                                                                   // WSAEACCES
	wsaTimeout = []error{syscall.Errno(10060)}                                                                   // WSAETIMEDOUT
	wsaRefused = []error{syscall.Errno(10061), syscall.Errno(10054)}                                             // WSAECONNREFUSED, WSAECONNRESET
)
