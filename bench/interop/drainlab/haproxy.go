package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/redial-go/redial/bench/internal/child"
)

// The config of haproxy. It looks at each server ten times per second, and gives connections only
// to those that are ready, or were until 0.3 s ago: on a busy machine it may miss an answer. What
// goes to one that is not ready any more goes on.
const haproxyConfig = `
global
	maxconn %[1]d
	nbthread 1
defaults
	mode http
	maxconn %[1]d
	timeout connect 5s
	timeout client 30s
	timeout server 30s
	timeout tunnel 1h
	timeout check 2s
	option redispatch
	retries 3
frontend front
	bind %[2]s backlog 8192
	monitor-uri /both
	acl one nbsrv(back) lt 2
	monitor fail if one
	default_backend back
backend back
	balance leastconn
	option httpchk GET /ready
	default-server check inter 100ms fall 3 rise 1
	server first %[3]s
	server second %[4]s
`

// ErrNoHAProxy means that there is no haproxy on this machine.
var ErrNoHAProxy = errors.New("there is no haproxy on this machine (apt-get install haproxy)")

// FindHAProxy returns the path of haproxy, or [ErrNoHAProxy].
func FindHAProxy() (string, error) {
	for _, name := range []string{"haproxy", "/usr/sbin/haproxy"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNoHAProxy
}

// haproxy is a real haproxy in a process of its own.
type haproxy struct {
	address string
	cmd     *exec.Cmd
	log     bytes.Buffer // read when it is gone
	gone    chan struct{}
	dir     string
}

// startHAProxy starts a haproxy before two servers. The caller must call end.
func startHAProxy(first, second string, clients int) (*haproxy, error) {
	path, err := FindHAProxy()
	if err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	h := &haproxy{address: address, gone: make(chan struct{})}
	if h.dir, err = os.MkdirTemp("", "drainlab"); err != nil {
		return nil, err
	}
	file := filepath.Join(h.dir, "haproxy.cfg")
	config := fmt.Sprintf(haproxyConfig, 2*clients+500, address, first, second)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, errors.Join(err, os.RemoveAll(h.dir))
	}
	h.cmd = exec.Command(path, "-db", "-f", file)
	child.DieWithParent(h.cmd)
	h.cmd.Stdout, h.cmd.Stderr = &h.log, &h.log
	if err := h.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start haproxy: %w", err), os.RemoveAll(h.dir))
	}
	go func() { // <-h.gone waits for it
		defer close(h.gone)
		_ = h.cmd.Wait() // it is killed in the end
	}()
	return h, nil
}

// end kills haproxy and waits until it is gone.
func (h *haproxy) end() {
	_ = h.cmd.Process.Kill() // it may have ended
	<-h.gone
	_ = os.RemoveAll(h.dir)
}

// These are the statuses of the monitor page. At first haproxy takes both servers to be there.
const (
	oneServer   = http.StatusServiceUnavailable // or none
	bothServers = http.StatusOK
)

// await asks for the monitor page until it has that status, for half a minute at most.
func (h *haproxy) await(ctx context.Context, status int) error {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
	for range 1500 {
		if answer, err := client.Get("http://" + h.address + "/both"); err == nil {
			answer.Body.Close()
			if answer.StatusCode == status {
				return nil
			}
		}
		select {
		case <-h.gone:
			return fmt.Errorf("haproxy has ended: %s", bytes.TrimSpace(h.log.Bytes()))
		default:
		}
		if !sleep(ctx, 20*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	return errors.New("haproxy does not see the servers it should")
}

// freeAddress returns an address on loopback at which nobody listens.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
