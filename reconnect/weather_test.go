package reconnect_test

import (
	"context"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/redial-go/redial/conn/conntest"
)

// weather is what goes wrong with a place.
type weather interface {
	mishap(r *rand.Rand) // one thing goes wrong
	calm()               // with a dial, nothing will any more
}

// venueWeather is that of a venue.
type venueWeather struct {
	*venue
	farewells sync.WaitGroup
}

func (w *venueWeather) calm() {
	w.network.Fault(venueAddr)
	w.Next()
}

func (w *venueWeather) mishap(r *rand.Rand) {
	switch r.IntN(12) {
	case 0, 1:
		w.network.Fault(venueAddr, misdial(r), conntest.Fault{})
	case 2, 3:
		late := upTo(r, 20*time.Second)
		w.Next([]conntest.Answer{
			conntest.Status(503, conntest.RetryAfter(strconv.Itoa(int(upTo(r, 5*time.Second).Seconds())))), conntest.Status(502, nil), conntest.Hang,
			conntest.HangUp, conntest.BadAccept, conntest.Delay(late, w.Accept), conntest.Trickle(1+r.IntN(500), 100*time.Millisecond, w.Accept),
			w.AcceptWith(conntest.CloseWith(1012, "restart")), w.AcceptWith(conntest.NeverRead), w.AcceptWith(func(context.Context, *websocket.Conn, *http.Request) {}),
		}[r.IntN(10)], w.Accept)
	case 4:
		w.Close()
		time.Sleep(upTo(r, 5*time.Second))
		w.Start()
	case 5:
		code := websocket.StatusCode(1000 + 12*r.IntN(2)) // or 1012
		w.farewells.Go(func() { w.Disconnect(code, "see you") })
	default:
		for _, p := range w.network.Conns(venueAddr) {
			ail(r, p)
		}
	}
}

func (d *desk) calm() { d.network.Fault(deskAddr) }

func (d *desk) mishap(r *rand.Rand) {
	if r.IntN(4) == 0 {
		d.network.Fault(deskAddr, misdial(r), conntest.Fault{})
		return
	}
	for _, p := range d.network.Conns(deskAddr) {
		ail(r, p)
	}
}

// misdial is one thing that goes wrong with a dial.
func misdial(r *rand.Rand) conntest.Fault {
	late, way, size := upTo(r, 20*time.Second), conntest.Direction(1+r.IntN(2)), r.Int64N(2000)
	return []conntest.Fault{
		{Refuse: true}, {Hang: true}, {Drop: true}, {Delay: late}, {Delay: late, IgnoresContext: true}, {Delay: late, CompletesAnyway: true},
		{Err: &net.DNSError{Err: "no such host", Name: "feed.test"}}, {AcceptDelay: late},
		{OnConn: func(p *conntest.Pipe) { p.Cut(way, size) }},
	}[r.IntN(9)]
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
