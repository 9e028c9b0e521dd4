package reconnect_test

import (
	"context"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"github.com/redial-go/redial/conn/conntest"
)

// mishap is one thing that goes wrong.
func (s *storm) mishap(r *rand.Rand) {
	switch r.IntN(12) {
	case 0, 1:
		late := upTo(r, 20*time.Second)
		s.network.Fault(venueAddr, []conntest.Fault{
			{Refuse: true}, {Hang: true}, {Drop: true}, {Late: late}, {Late: late, Deaf: true}, {Late: late, Ghost: true},
			{Err: &net.DNSError{Err: "no such host", Name: "feed.test"}}, {AcceptLate: late},
			{OnConn: func(p *conntest.Pipe) { p.Cut(conntest.ToClient, late.Nanoseconds()%2000) }},
		}[r.IntN(9)], conntest.Fault{})
	case 2, 3:
		late := upTo(r, 20*time.Second)
		s.Next([]conntest.Answer{
			conntest.Status(503, conntest.RetrySeconds(upTo(r, 5*time.Second))), conntest.Status(502, nil), conntest.Hang,
			conntest.HangUp, conntest.BadAccept, conntest.Late(late, s.Accept), conntest.Trickle(1+r.IntN(500), 100*time.Millisecond, s.Accept),
			s.AcceptWith(conntest.CloseWith(1012, "restart")), s.AcceptWith(conntest.Deaf), s.AcceptWith(func(context.Context, *websocket.Conn, *http.Request) {}),
		}[r.IntN(10)], s.Accept)
	case 4:
		s.Close()
		time.Sleep(upTo(r, 5*time.Second))
		s.Start()
	case 5:
		code := websocket.StatusCode(1000 + 12*r.IntN(2)) // or 1012
		s.users.Go(func() { s.Disconnect(code, "see you") })
	default:
		for _, p := range s.network.Conns(venueAddr) {
			ail(r, p)
		}
	}
}

// ail is one thing that goes wrong with a connection.
func ail(r *rand.Rand, p *conntest.Pipe) {
	d := conntest.Direction(1 + r.IntN(2))
	switch r.IntN(9) {
	case 0:
		p.Reset()
	case 1:
		p.FIN(d)
	case 2:
		p.Cut(d, r.Int64N(3000))
	case 3:
		p.CutReset(d, r.Int64N(3000))
	case 4:
		p.Stall(conntest.Direction(1 + r.IntN(3)))
	case 5:
		p.Thaw(conntest.Both)
	case 6:
		p.Latency(d, upTo(r, 3*time.Second))
	case 7:
		p.Trickle(d, 1+r.IntN(2000), 10*time.Millisecond)
	case 8:
		p.Window(d, r.IntN(5000))
	}
}
