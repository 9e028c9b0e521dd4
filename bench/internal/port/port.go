// Package port finds ports for the servers that tests start, kill and start again.
package port

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// Free returns a port of 127.0.0.1 that is not in use. It lies below those that the kernel hands
// out itself, so that it is still free when the server comes back.
func Free(t testing.TB) string {
	for range 100 {
		port := strconv.Itoa(20000 + rand.IntN(12000))
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no free port")
	return ""
}
