package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// balancer gives each connection to a server that is ready.
type balancer struct {
	name    string
	address string
	end     func() // ends it, and waits until it has ended
}

// startBalancer starts haproxy, or without one a balancer in this process.
func startBalancer(first, second string) (*balancer, error) {
	for _, name := range []string{"haproxy", "/usr/sbin/haproxy"} {
		if path, err := exec.LookPath(name); err == nil {
			return startHAProxy(path, first, second)
		}
	}
	return startOwn(first, second)
}

// The config of haproxy. A server that is not ready gets no new connection and keeps those that
// it has. The monitor says whether both are ready.
const haproxyConfig = `
defaults
	mode http
	timeout connect 5s
	timeout client 30s
	timeout server 30s
	timeout tunnel 1h
	timeout check 2s
frontend front
	bind %s
	maxconn 10000
	monitor-uri /both
	acl one nbsrv(back) lt 2
	monitor fail if one
	default_backend back
backend back
	option httpchk GET /ready
	default-server check inter 100ms fall 3 rise 1
	server first %s
	server second %s
`

func startHAProxy(path, first, second string) (*balancer, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "drain")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "haproxy.cfg")
	cmd := exec.Command(path, "-db", "-f", file)
	err = os.WriteFile(file, fmt.Appendf(nil, haproxyConfig, address, first, second), 0o600)
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &balancer{"haproxy", address, func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	}}, nil
}

// await waits until the monitor page of haproxy has this status, for 10 s at most. It is 503 while one
// server is ready, and 200 when both are.
func (b *balancer) await(ctx context.Context, want int) error {
	for range 500 {
		if b.name != "haproxy" || status("http://"+b.address+"/both") == want {
			return nil
		}
		if !pause(ctx, 20*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	return fmt.Errorf("%s does not see the servers", b.name)
}

// startOwn starts a balancer that asks the servers at each connection whether they are ready.
func startOwn(servers ...string) (*balancer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return // it was closed by end
			}
			all.Go(func() { forward(ctx, nc, servers) })
		}
	})
	return &balancer{"a balancer of its own", l.Addr().String(), func() { cancel(); l.Close(); all.Wait() }}, nil
}

// forward connects a client with the first server that is ready, until one of them hangs up or ctx
// ends.
func forward(ctx context.Context, client net.Conn, servers []string) {
	defer client.Close()
	for _, address := range servers {
		if status("http://"+address+"/ready") != http.StatusOK {
			continue
		}
		server, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			continue
		}
		defer server.Close()
		defer context.AfterFunc(ctx, func() { client.Close(); server.Close() })()
		var back sync.WaitGroup
		back.Go(func() { io.Copy(client, server); client.Close() })
		io.Copy(server, client)
		server.Close()
		back.Wait()
		return
	}
}

// status returns the status of a page, 0 if there is none within a second.
func status(url string) int {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
	answer, err := client.Get(url)
	if err != nil {
		return 0
	}
	answer.Body.Close()
	return answer.StatusCode
}

// freeAddress returns an address on loopback at which nobody listens.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// pause reports whether it has waited, and ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
