package dialer

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxyServer is a proxy for CONNECT and SOCKS5, whichever the client speaks.
type proxyServer struct {
	user, password string // demanded, if there is a user
	answer         string // to CONNECT; default: the tunnel
	reply          byte   // to SOCKS5; 0 is the tunnel
	stall          string // "hello", "login", "request": stops answering there

	dial func(ctx context.Context, network, addr string) (net.Conn, error)
	work sync.WaitGroup

	mu      sync.Mutex
	targets []string      // what clients asked for
	headers []http.Header // of their requests by CONNECT
}

// serve handles each connection of l. The caller closes l, and then waits for work.
func (p *proxyServer) serve(l net.Listener) {
	p.work.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			p.work.Go(func() {
				defer nc.Close()
				near := &peeked{Conn: nc, r: bufio.NewReader(nc)}
				version, err := near.r.Peek(1)
				var far net.Conn
				switch {
				case err != nil:
				case p.stall == "hello":
					io.Copy(io.Discard, near)
				case version[0] == 5:
					far = p.socks5(near)
				default:
					far = p.connect(near)
				}
				if far != nil {
					pump(near, far)
				}
			})
		}
	})
}

// peeked is a connection of which something has been read.
type peeked struct {
	net.Conn
	r *bufio.Reader
}

func (p *peeked) Read(b []byte) (int, error) { return p.r.Read(b) }

// connect answers CONNECT, and returns the connection to the server.
func (p *proxyServer) connect(c *peeked) net.Conn {
	r, err := http.ReadRequest(c.r)
	if err != nil {
		return nil
	}
	p.mu.Lock()
	p.targets, p.headers = append(p.targets, r.Host), append(p.headers, r.Header)
	p.mu.Unlock()
	q := http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}
	user, password, _ := q.BasicAuth()
	answer := p.answer
	switch {
	case p.stall == "request":
		io.Copy(io.Discard, c)
		return nil
	case r.Method != http.MethodConnect: // as squid and tinyproxy answer to a GET with an Upgrade
		answer = "HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\n\r\n"
	case user != p.user || password != p.password:
		answer = "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n"
	case answer == "":
		return p.reach(c, r.Host, []byte("HTTP/1.1 200 Connection established\r\n\r\n"), []byte("HTTP/1.1 502 Bad Gateway\r\n\r\n"))
	}
	io.WriteString(c, answer)
	return nil
}

// reach dials the server and says to the client how that went.
func (p *proxyServer) reach(c net.Conn, addr string, yes, no []byte) net.Conn {
	far, err := p.dial(context.Background(), "tcp", addr)
	if err != nil {
		c.Write(no)
		return nil
	}
	c.Write(yes)
	return far
}

// socks5 answers as RFC 1928 and RFC 1929 have it, and returns the connection to the server.
func (p *proxyServer) socks5(c *peeked) net.Conn {
	read := func(n byte) string {
		b := make([]byte, n)
		io.ReadFull(c, b)
		return string(b)
	}
	methods := read(read(2)[1])
	want := byte(0)
	if p.user != "" {
		want = 2
	}
	if methods[0] != want && methods[len(methods)-1] != want {
		c.Write([]byte{5, 0xff})
		return nil
	}
	c.Write([]byte{5, want})
	if p.stall == "login" {
		io.Copy(io.Discard, c)
	}
	if want == 2 {
		user := read(read(2)[1])
		if user != p.user || read(read(1)[0]) != p.password {
			c.Write([]byte{1, 1})
			return nil
		}
		c.Write([]byte{1, 0})
	}
	var host string
	switch head := read(4); head[3] {
	case 1, 4:
		host = net.IP(read(map[byte]byte{1: 4, 4: 16}[head[3]])).String()
	case 3:
		host = read(read(1)[0])
	default:
		return nil // hung up
	}
	port := read(2)
	addr := net.JoinHostPort(host, fmt.Sprint(int(port[0])<<8|int(port[1])))
	p.mu.Lock()
	p.targets = append(p.targets, addr)
	p.mu.Unlock()
	switch {
	case p.stall == "request":
		io.Copy(io.Discard, c)
		return nil
	case p.reply != 0:
		c.Write([]byte{5, p.reply, 0, 1, 0, 0, 0, 0, 0, 0})
		return nil
	}
	yes := append([]byte{5, 0, 0, 3, 4}, "host\x00\x00"...) // a bound address that is a name
	return p.reach(c, addr, yes, []byte{5, 5, 0, 1, 0, 0, 0, 0, 0, 0})
}

// pump carries bytes both ways until one side is closed, then closes both.
func pump(a, b net.Conn) {
	var both sync.WaitGroup
	for _, w := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() {
			io.Copy(struct{ io.Writer }{w[0]}, struct{ io.Reader }{w[1]})
			a.Close()
			b.Close()
		})
	}
	both.Wait()
}

const proxyAddr = "proxy.example:3128"

// proxy starts p on the server's network, with TLS for "https", and has the dialer use
// it. It demands a login, and the dialer has it.
func (v *wsServer) proxy(t *testing.T, scheme string, p *proxyServer) *proxyServer {
	p.user, p.password, p.dial = "puser", "ppasswd", v.network.DialContext
	l, err := v.network.Listen(proxyAddr)
	require.NoError(t, err)
	if scheme == "https" {
		own := newCertificate(t, "proxy.example")
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{own}})
		if v.dialer.TLS == nil {
			v.dialer.TLS = &tls.Config{RootCAs: poolOf()}
		}
		v.dialer.TLS.RootCAs.AddCert(own.Leaf)
	}
	p.serve(l)
	t.Cleanup(func() { l.Close(); v.network.ResetAll(""); p.work.Wait() })
	v.dialer.Proxy = http.ProxyURL(proxyURL(scheme))
	return p
}
