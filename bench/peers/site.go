package main

import (
	"bufio"
	"context"
	"crypto/sha1"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// siteSetup says what a server process serves.
type siteSetup struct {
	Protocols []protocol
	Host      string              // an address of loopback
	Addresses map[protocol]string // host:port where known; otherwise at a free port
	TLS       bool
	Resets    bool // connections can be reset
	Deep      bool // a broker queues any number of messages for a client
	Takeover  bool // WebSocket is compressed with context takeover, and a client that does not offer it is rejected
}

// site is the server: a listener for each protocol, and the clients that are connected
// to it.
type site struct {
	setup     siteSetup
	addresses map[protocol]string
	tls       *tls.Config        // nil: none
	cert      []byte             // in DER, for the clients
	since     map[protocol]int64 // when it began to listen, in Unix nanoseconds
	resumed   atomic.Int64       // TLS handshakes that resumed a session
	doors     []*door
	publish   []func(p []byte) error // to the topic of the feed, for each broker

	mu    sync.Mutex // guards what follows
	lines map[*line]struct{}
}

// openSite listens. What it opens lives as long as the process.
func openSite(setup siteSetup) (*site, error) {
	s := &site{setup: setup, addresses: map[protocol]string{}, since: map[protocol]int64{}, lines: map[*line]struct{}{}}
	if setup.TLS {
		if err := s.makeCertificate(); err != nil {
			return nil, err
		}
	}
	for _, p := range setup.Protocols {
		address := setup.Addresses[p]
		if address == "" {
			address = net.JoinHostPort(setup.Host, "0")
		}
		d, err := listen(address)
		if err != nil {
			return nil, err
		}
		s.doors = append(s.doors, d)
		s.addresses[p] = d.Addr().String()
		if err := s.serve(p, d); err != nil {
			return nil, fmt.Errorf("serve %s: %w", p, err)
		}
		s.since[p] = time.Now().UnixNano()
	}
	return s, nil
}

// serve begins to accept the connections of d.
func (s *site) serve(p protocol, d *door) error {
	var l net.Listener = d
	if s.tls != nil && p != natsCore { // whose TLS begins after a first line
		l = tls.NewListener(d, s.tls)
	}
	switch p {
	case natsCore:
		return s.serveNATS(d)
	case mqtt5:
		return s.serveMQTT(l)
	case webSocket:
		go s.accept(l, webSocketWire{}) // until the process ends
	default:
		go s.accept(l, lengthWire{}) // until the process ends
	}
	return nil
}

func (s *site) accept(l net.Listener, w wire) {
	for {
		c, err := l.Accept()
		if err != nil {
			pause(context.Background(), 10*time.Millisecond) // no file is left
			continue
		}
		go s.talk(c, w) // until the connection ends
	}
}

// line is a connection that speaks a wire.
type line struct {
	conn net.Conn
	wire wire
	mu   sync.Mutex // held while something is written
}

func (l *line) write(p []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.conn.Write(p)
	return err
}

// talk serves one connection until it ends.
func (s *site) talk(c net.Conn, w wire) {
	defer c.Close()
	r := bufio.NewReader(c)
	if _, ok := w.(webSocketWire); ok {
		extension := ""
		if s.setup.Takeover {
			extension, w = permessageDeflate, new(takeoverWire)
		}
		if err := upgrade(c, r, extension); err != nil {
			return
		}
	}
	l := &line{conn: c, wire: w}
	s.mu.Lock()
	s.lines[l] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.lines, l)
		s.mu.Unlock()
	}()
	var buf, out []byte
	a := agent{reset: s.reset, wake: s.wake, now: func(p []byte) error { return l.write(w.appendFrame(nil, p)) }, reply: func(p []byte, times int) error {
		if times == 1 {
			out = w.appendFrame(out, p)
			return nil
		}
		return l.pour(p, times)
	}}
	for {
		p, answer, err := w.readFrame(r, buf)
		out = append(out, answer...)
		if err == nil && answer == nil {
			err = a.take(p)
			buf = p[:0]
		}
		if len(out) > 0 && (r.Buffered() == 0 || err != nil || len(out) > 64<<10) {
			if l.write(out) != nil {
				return
			}
			out = out[:0]
		}
		if err != nil {
			return
		}
	}
}

// pour writes a message so many times, in large blocks.
func (l *line) pour(p []byte, times int) error {
	frames, n := block(l.wire, p, times)
	size := len(frames) / n
	for ; times > 0; times -= n {
		if err := l.write(frames[:min(n, times)*size]); err != nil {
			return err
		}
	}
	return nil
}

// upgrade answers the handshake of RFC 6455, accepting the extension if it is not empty. It returns an
// error if the client does not offer that, or rules out context takeover.
func upgrade(c net.Conn, r *bufio.Reader, extension string) error {
	request, err := http.ReadRequest(r)
	if err != nil {
		return err
	}
	accepted := ""
	if extension != "" {
		offer := request.Header.Get("Sec-WebSocket-Extensions")
		if !strings.HasPrefix(offer, extension) || strings.Contains(offer, "no_context_takeover") {
			return fmt.Errorf("accept extension %s: the offer is %q", extension, offer)
		}
		accepted = "Sec-WebSocket-Extensions: " + extension + "\r\n"
	}
	sum := sha1.Sum([]byte(request.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	_, err = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Accept: "+base64.StdEncoding.EncodeToString(sum[:])+"\r\n"+accepted+"\r\n")
	return err
}

// reset resets every connection.
func (s *site) reset() {
	for _, d := range s.doors {
		d.reset()
	}
}

// agent does what one client asks.
type agent struct {
	counted int
	reply   func(p []byte, times int) error // keeps nothing of p
	now     func(p []byte) error            // the same, at once, from any goroutine
	reset   func()
	wake    func() error // sends a message to each connection
}

func (a *agent) take(p []byte) error {
	if len(p) == 0 {
		return fmt.Errorf("read order: no byte")
	}
	switch p[0] {
	case askPour:
		size, count, err := pourSize(p)
		if err != nil {
			return err
		}
		return a.reply(payload(size), count)
	case askEcho:
		return a.reply(p, 1)
	case askCount:
		if a.counted++; a.counted%burst == 0 {
			return a.reply(p[:1], 1)
		}
		return nil
	case askReset:
		a.reset()
		return nil
	case askWake:
		return a.wake()
	case askTicks:
		count, every, err := ticks(p)
		if err != nil {
			return err
		}
		go a.tick(count, every) // until the connection ends
		return nil
	}
	return fmt.Errorf("read order: %q is none", p[0])
}

// tick sends messages with the time, one after each interval.
func (a *agent) tick(count int, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for range count {
		<-ticker.C
		if a.now(stamped()) != nil {
			return
		}
	}
}
