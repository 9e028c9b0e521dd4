//go:build !js

package main

import (
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
)

// gateway is the HTTP server of the venue. It can cut and freeze the TCP connections below
// it.
type gateway struct {
	net.Listener
	server http.Server
	served chan struct{}

	mu      sync.Mutex // guards what follows
	lines   map[*line]bool
	closed  bool
	meeting sync.WaitGroup
}

func openGateway(listener net.Listener, meet http.HandlerFunc) *gateway {
	g := &gateway{Listener: listener, served: make(chan struct{}), lines: map[*line]bool{}}
	g.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		closed := g.closed
		if !closed {
			g.meeting.Add(1)
		}
		g.mu.Unlock()
		if !closed {
			defer g.meeting.Done()
			meet(w, r)
		}
	})
	go func() { // close waits for it
		defer close(g.served)
		if err := g.server.Serve(g); !errors.Is(err, http.ErrServerClosed) {
			panic(err)
		}
	}()
	return g
}

// close frees the port, cuts all connections and waits until their handlers have returned.
func (g *gateway) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.server.Close()
	<-g.served
	g.cut()
	g.meeting.Wait()
}

// cut closes every connection.
func (g *gateway) cut() {
	for _, l := range g.all() {
		l.Close()
	}
}

// all returns the open connections.
func (g *gateway) all() []*line {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Keys(g.lines))
}

// Accept implements [net.Listener].
func (g *gateway) Accept() (net.Conn, error) {
	c, err := g.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l := &line{Conn: c, of: g}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lines[l] = true
	return l, nil
}

// line is one TCP connection. When it is frozen, it discards all bytes in both directions,
// so that pings get no answer.
type line struct {
	net.Conn
	of     *gateway
	frozen atomic.Bool
}

func (l *line) Read(p []byte) (int, error) {
	for {
		if n, err := l.Conn.Read(p); err != nil || !l.frozen.Load() {
			return n, err
		}
	}
}

func (l *line) Write(p []byte) (int, error) {
	if l.frozen.Load() {
		return len(p), nil
	}
	return l.Conn.Write(p)
}

func (l *line) Close() error {
	l.of.mu.Lock()
	delete(l.of.lines, l)
	l.of.mu.Unlock()
	return l.Conn.Close()
}
