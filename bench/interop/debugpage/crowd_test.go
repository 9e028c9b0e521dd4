package debugpage

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/interop/chromium"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/debug"
)

// trouble is some connections of a crowd to one server.
type trouble struct {
	host string
	n    int
	gate bool
	line string // what the page says above its rows, as a regular expression; empty: nothing

	begin func(network *conntest.Network, s *conntest.Server, addr string)
}

// next matches the time until the next dial, which the browser counts down.
const next = `(in [\d.]+ (ms|s|min)|now)`

// refused is the query of the line about feed.example.
const refused = "/?show=away+feed.example%3A80+refused"

// troubles are the servers of a crowd of 300 connections.
var troubles = []trouble{
	{host: "md.venue.example", n: 120},
	{host: "gate.example", n: 110, gate: true,
		line: `^110 at the gate for gate.example:80 for 15 min, next dial ` + next +
			` by gate-\d+: connection refused$`,
		begin: func(n *conntest.Network, s *conntest.Server, addr string) {
			n.Fault(addr, conntest.Fault{Err: syscall.ECONNREFUSED})
			n.ResetAll(addr)
		}},
	{host: "feed.example", n: 9,
		line: `^9 away from feed.example:80 for 15 min, next dial ` + next + `: connection refused$`,
		begin: func(n *conntest.Network, s *conntest.Server, addr string) {
			n.Fault(addr, conntest.Fault{Err: syscall.ECONNREFUSED})
			n.ResetAll(addr)
		}},
	{host: "auth.example", n: 7,
		line: `^7 away from auth.example:80 for 15 min, next dial ` + next +
			`: the server answered 401 Unauthorized$`,
		begin: func(n *conntest.Network, s *conntest.Server, addr string) {
			answers := make([]conntest.Answer, 10000)
			for i := range answers {
				answers[i] = conntest.Status(http.StatusUnauthorized, nil)
			}
			s.Next(answers...)
			n.ResetAll(addr)
		}},
	{host: "old.example", n: 3, line: `^3 ended at old.example:80 for 1\d min: the server answered 410 Gone$`,
		begin: func(n *conntest.Network, s *conntest.Server, addr string) {
			s.Next(conntest.Status(410, nil), conntest.Status(410, nil), conntest.Status(410, nil))
			n.ResetAll(addr)
		}},
	{host: "unknown.example", n: 6,
		line: `^6 away from unknown.example:80 for 15 min, next dial ` + next +
			`: the name of the host was not resolved$`,
		begin: func(n *conntest.Network, s *conntest.Server, addr string) {
			n.Fault(addr, conntest.Fault{Err: &net.DNSError{Err: "no such host", Name: "unknown.example", IsNotFound: true}})
			n.ResetAll(addr)
		}},
	{host: "silent.example", n: 10,
		line: `^10 away from silent.example:80 for 15 min(, next dial ` + next +
			`)?: a limit was exceeded$`,
		begin: func(n *conntest.Network, s *conntest.Server, addr string) {
			n.Fault(addr, conntest.Fault{Hang: true})
			n.ResetAll(addr)
		}},
	{host: "flaps.example", n: 5,
		line: `^5 flapping at flaps.example:80: closed by the peer: 1013 \(try again later\)$`},
	{host: "chat.example", n: 30},
}

// crowd lets 300 connections live for some time, and returns the page, by its query.
func crowd(t *testing.T) (pages map[string]string) {
	pages = map[string]string{}
	synctest.Test(t, func(t *testing.T) {
		network := new(conntest.Network)
		page := debug.New(&debug.Options{Title: "trader"})
		gate, err := budget.NewGate(nil)
		require.NoError(t, err)
		page.RegisterGate("venues", gate)
		servers := map[string]*conntest.Server{}
		var conns []*reconnect.Conn
		for _, x := range troubles {
			addr := x.host + ":80"
			servers[x.host] = conntest.NewServer(network, addr, func(ctx context.Context, c *websocket.Conn, _ *http.Request) {
				ctx = c.CloseRead(ctx)
				for c.Write(ctx, websocket.MessageText, []byte("tick")) == nil {
					time.Sleep(10 * time.Second)
				}
			})
			prefix, _, _ := strings.Cut(x.host, ".")
			for i := range x.n {
				name := fmt.Sprintf("%s-%d", prefix, i)
				o := push
				o.Run.Name = name
				if x.gate {
					o.Run.Gate = gate
				}
				c, err := reconnect.New(&dialer.WebSocket{URL: "ws://" + x.host + "/v1", DialContext: network.DialContext, Proxy: http.ProxyURL(nil)}, &o)
				require.NoError(t, err)
				page.Register(name, c, nil)
				conns = append(conns, c)
			}
		}
		time.Sleep(20 * time.Minute)
		for _, x := range troubles {
			if x.begin != nil {
				x.begin(network, servers[x.host], x.host+":80")
			}
		}
		time.Sleep(12 * time.Minute)
		for range 5 {
			time.Sleep(40 * time.Second)
			servers["flaps.example"].Disconnect(1013, "")
		}
		time.Sleep(20 * time.Second)
		for _, query := range []string{"/", "/?show=away", refused} {
			pages[query] = get(t, page, query)
		}
		for _, c := range conns {
			c.Close()
		}
		for _, c := range conns {
			<-c.Done()
		}
		for _, s := range servers {
			s.Close()
		}
		require.NoError(t, page.Close())
	})
	return pages
}

// In ten seconds one knows from the page of 300 connections what is wrong.
func TestACrowd(t *testing.T) {
	dir := os.Getenv("REDIAL_PICTURES")
	if dir == "" {
		dir = t.TempDir()
	}
	url := still(t, crowd(t))
	p := chromium.Start(t).Open(t, url)
	p.Size(t, 1400, 1000)
	var lines []string
	p.Eval(t, `[...document.querySelectorAll(".about li")].map((e) => e.innerText)`, &lines)
	for _, x := range troubles {
		if x.line != "" {
			require.True(t, slices.ContainsFunc(lines, regexp.MustCompile(x.line).MatchString), "%s is not among %q", x.line, lines)
		}
	}
	require.Len(t, lines, 7)
	require.Regexp(t, "^3 ended", lines[0])
	require.Regexp(t, "^110 at", lines[1])
	p.Wait(t, `document.querySelector(".about").getBoundingClientRect().bottom < 450`)
	p.Wait(t, `document.querySelector("#conns tbody tr").getBoundingClientRect().bottom < 1000`)
	for _, x := range []picture{
		{"crowd", "", 1400, false, false}, {"crowd-dark", "", 1400, true, false}, {"crowd-phone", "", 0, false, true},
		{"crowd-phone-dark", "", 0, true, true},
		{"crowd-refused", strings.TrimPrefix(refused, "/"), 1400, false, false},
	} {
		x.take(t, p, url, dir)
	}
	require.Empty(t, p.Problems())
	p.NoScript(t)
	picture{"crowd-noscript", "", 1400, false, false}.take(t, p, url, dir)
}
