package backoff

import "syscall"

// ofWindows lists the error numbers of Windows for failures of sockets (WSAECONNREFUSED and others in
// winsock2.h). Package syscall does not translate them: its ECONNREFUSED and the like are numbers that no call
// of the system returns.
var ofWindows = []value{
	{syscall.Errno(10024), isLocal},   // WSAEMFILE
	{syscall.Errno(10049), isLocal},   // WSAEADDRNOTAVAIL
	{syscall.Errno(10055), isLocal},   // WSAENOBUFS
	{syscall.Errno(10051), isLocal},   // WSAENETUNREACH
	{syscall.Errno(10013), isDenied},  // WSAEACCES
	{syscall.Errno(10060), isTimeout}, // WSAETIMEDOUT
	{syscall.Errno(10061), isRefused}, // WSAECONNREFUSED
	{syscall.Errno(10054), isRefused}, // WSAECONNRESET
}
