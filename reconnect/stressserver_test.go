package reconnect_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
)

// stormVenue is a storm over real WebSockets.
type stormVenue struct{ *storm }

func (w *stormVenue) run(t *testing.T, v *venue) {
	r := w.stream(2)
	v.dialer.Conn.WriteTimeout = time.Second + upTo(r, 10*time.Second)
	if r.IntN(4) == 0 {
		v.dialer.Compression = dialer.CompressionContextTakeover
	}
	v.Options = &websocket.AcceptOptions{InsecureSkipVerify: true, CompressionMode: websocket.CompressionContextTakeover, CompressionThreshold: 64}
	sky := &venueWeather{venue: v}
	defer sky.farewells.Wait()
	w.rage(t, v.network, venueAddr, v.dialer, sky)
}

// serve is the server: it wants a login, counts to the client and notes what
// the client says.
func (w *stormVenue) serve(ctx context.Context, c *websocket.Conn, _ *http.Request) {
	say := func(data string) error { return c.Write(ctx, websocket.MessageText, []byte(data)) }
	_, login, err := c.Read(ctx)
	if err != nil {
		return
	}
	session, ok := w.admit(string(login), say)
	if !ok {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	var counting sync.WaitGroup
	counting.Go(func() { w.talk(session, say) })
	defer counting.Wait()
	defer cancel()
	c.SetReadLimit(1 << 20)
	for {
		_, message, err := c.Reader(ctx)
		if err != nil {
			return
		}
		data, err := readAll(ctx, c, message, w.doubtful)
		w.hear(data, err)
	}
}

// stormDesk is a storm over framed TCP.
type stormDesk struct {
	*storm
	tongue tongue
}

func (w *stormDesk) run(t *testing.T, d *desk) {
	d.dialer.Conn.WriteTimeout = time.Second + upTo(w.stream(2), 10*time.Second)
	w.o.Liveness.Probe = func(_ context.Context, write func(conn.Message) error) error { return write(text("ping")) }
	ctx, cancel := context.WithCancel(t.Context())
	var server sync.WaitGroup
	server.Go(func() { d.serve(ctx, w.serve) })
	defer server.Wait()
	defer cancel()
	w.rage(t, d.network, deskAddr, d.dialer, d)
}

// serve is the server: it wants a login, counts to the client and notes what the
// client says, half messages too.
func (w *stormDesk) serve(nc net.Conn) {
	in := bufio.NewReader(nc)
	login, err := w.tongue.read(in)
	if err != nil {
		return
	}
	session, ok := w.admit(string(login), func(data string) error {
		_, err := nc.Write(w.tongue.frame(data))
		return err
	})
	if !ok {
		return
	}
	counting := make(chan struct{})
	go func() { defer close(counting); w.babble(nc, session) }()
	defer func() { nc.Close(); <-counting }()
	for err == nil {
		var data []byte
		if data, err = w.tongue.read(in); string(data) != "ping" {
			w.hear(string(data), err)
		}
	}
}

// babble counts to the client, and sometimes hangs up inside a message.
func (w *stormDesk) babble(nc net.Conn, session uint64) {
	r := w.stream(1000 + session)
	w.talk(session, func(data string) error {
		frame := w.tongue.frame(data)
		if r.IntN(200) == 0 && w.raging() {
			frame = frame[:r.IntN(len(frame))]
			defer nc.Close()
		}
		_, err := nc.Write(frame)
		return err
	})
}

// admit is the server when it has read a login: it answers that.
func (s *storm) admit(login string, say func(string) error) (session uint64, ok bool) {
	if _, err := fmt.Sscanf(login, "login %d", &session); err != nil {
		s.t.Errorf("%.20q came before the login", login)
		return 0, false
	}
	s.mu.Lock()
	again := s.logins[session]
	s.logins[session] = true
	s.mu.Unlock()
	if again {
		s.t.Errorf("session %d has logged in twice", session)
	}
	return session, say(fmt.Sprint("welcome ", session)) == nil
}

// talk is the server when it counts to the client, until say fails: 32 messages one by
// one, 32 at once, and so on, and less when the storm is over.
func (s *storm) talk(session uint64, say func(string) error) {
	for i := 0; say(number(session, i)) == nil; i++ {
		switch {
		case !s.raging():
			time.Sleep(time.Second)
		case i&32 == 0:
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// number is message i of a session, which looks like no other.
func number(session uint64, i int) string {
	return fmt.Sprintf("%d %d %s", session, i, strings.Repeat(string(rune('a'+session%26)), i%7*100))
}

// doubtful reports whether data is no whole message that was written. It may be the
// beginning of one, or, if that was compressed, something that coder/websocket has made
// of bytes which it has not unmasked.
func (s *storm) doubtful(data string) bool {
	id, rest, _ := strings.Cut(data, " ")
	s.mu.Lock()
	defer s.mu.Unlock()
	size, ok := s.sent[id]
	return !ok || rest != strings.Repeat("x", size)
}

// hear is the server when it has read a message, or a part of one.
func (s *storm) hear(data string, err error) {
	id, rest, named := strings.Cut(data, " ")
	s.mu.Lock()
	defer s.mu.Unlock()
	if named {
		s.begun[id] = true
	}
	if err == nil {
		s.arrived[id]++
		if size, ok := s.sent[id]; !ok || rest != strings.Repeat("x", size) {
			s.t.Errorf("nobody wrote %.20q of %d bytes", data, len(data))
		}
	}
}

// tongue is a framer, and what the server does in its place.
type tongue struct {
	framer conn.Framer
	frame  func(data string) []byte
	read   func(in *bufio.Reader) ([]byte, error) // the next message, or as much of it as came
}

var tongues = []tongue{
	{conn.Lines{}, func(data string) []byte { return []byte(data + "\n") }, readLine},
	{conn.LengthPrefix{}, func(data string) []byte {
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...)
	}, readFrame},
}

func readLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadBytes('\n')
	return bytes.TrimSuffix(line, []byte("\n")), err
}

// readFrame returns the next message, or as much of it as came.
func readFrame(in *bufio.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, err
	}
	data := make([]byte, binary.BigEndian.Uint32(head[:]))
	n, err := io.ReadFull(in, data)
	return data[:n], err
}

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
