package debug

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

// Listen serves the page at address, on every path, until Close, and returns the URL of the page on this
// machine. An address without a host, such as ":6060", means 127.0.0.1, and port 0 means any free port.
// Whatever the address, Options.Allow decides which clients may see the page. Behind anything that forwards
// TCP, such as a container port, set [Options].Token, and open the URL with ?token=TOKEN.
func (p *Page) Listen(address string) (url string, err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("debug: the address %q has not the form host:port, such as :6060", address)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return "", fmt.Errorf("debug: %w", err)
	}
	server := &http.Server{
		Handler: p, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: log.New(io.Discard, "", 0),
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed() {
		_ = listener.Close()
		return "", fmt.Errorf("debug: the page is closed: %w", net.ErrClosed)
	}
	p.servers = append(p.servers, server)
	p.running.Go(func() { _ = server.Serve(listener) }) // Close waits for it
	return urlOf(listener.Addr()), nil
}

// urlOf returns the URL by which this machine reaches a listener.
func urlOf(a net.Addr) string {
	if t, ok := a.(*net.TCPAddr); ok && t.IP.IsUnspecified() {
		return fmt.Sprintf("http://localhost:%d/", t.Port)
	}
	return "http://" + a.String() + "/"
}
