package run_test

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
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// stressWS is a stress over real WebSockets.
type stressWS struct{ *stress }

func (w *stressWS) run(t *testing.T, server *scene.WSServer) {
	r := w.stream(2)
	server.Dialer.Conn.WriteTimeout = time.Second + scene.UpTo(r, 10*time.Second)
	if r.IntN(4) == 0 {
		server.Dialer.Compression = websocket.CompressionContextTakeover
	}
	server.Options = &websocket.AcceptOptions{InsecureSkipVerify: true, CompressionMode: websocket.CompressionContextTakeover, CompressionThreshold: 64}
	faults := &wsFaults{WSServer: server}
	defer func() {
		server.Close() // else a Close of coder/websocket waits for the rest of a frame that was cut
		faults.farewells.Wait()
	}()
	w.drive(t, server.Network, scene.WSAddr, server.Dialer, faults)
}

// serve reads a login, counts to the client and records what the client sends.
func (w *stressWS) serve(ctx context.Context, c *websocket.Conn, _ *http.Request) {
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
	counting.Go(func() { w.count(session, say) })
	defer counting.Wait()
	defer cancel()
	c.SetReadLimit(1 << 20)
	for {
		_, message, err := c.Reader(ctx)
		if err != nil {
			return
		}
		data, err := readAll(ctx, c, message, w.doubtful)
		w.noteArrival(data, err)
	}
}

// stressFramed is a stress over framed TCP.
type stressFramed struct {
	*stress
	framing framing
}

func (w *stressFramed) run(t *testing.T, server *scene.FramedServer) {
	server.Dialer.Conn.WriteTimeout = time.Second + scene.UpTo(w.stream(2), 10*time.Second)
	w.o.Liveness.Probe = func(_ context.Context, write func(conn.Message) error) error {
		return write(scene.Text("ping"))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() { server.Serve(ctx, w.serve) })
	defer serving.Wait()
	defer cancel()
	w.drive(t, server.Network, scene.FramedAddr, server.Dialer, server)
}

// serve reads a login, counts to the client and records what the client sends, parts of
// messages too.
func (w *stressFramed) serve(nc net.Conn) {
	in := bufio.NewReader(nc)
	login, err := w.framing.read(in)
	if err != nil {
		return
	}
	session, ok := w.admit(string(login), func(data string) error {
		_, err := nc.Write(w.framing.frame(data))
		return err
	})
	if !ok {
		return
	}
	counting := make(chan struct{})
	go func() { defer close(counting); w.countAndCut(nc, session) }()
	defer func() { nc.Close(); <-counting }()
	for err == nil {
		var data []byte
		if data, err = w.framing.read(in); string(data) != "ping" {
			w.noteArrival(string(data), err)
		}
	}
}

// countAndCut counts to the client, and sometimes hangs up inside a message.
func (w *stressFramed) countAndCut(nc net.Conn, session uint64) {
	r := w.stream(1000 + session)
	w.count(session, func(data string) error {
		frame := w.framing.frame(data)
		if r.IntN(200) == 0 && w.faulting() {
			frame = frame[:r.IntN(len(frame))]
			defer nc.Close()
		}
		_, err := nc.Write(frame)
		return err
	})
}

// admit answers a login.
func (s *stress) admit(login string, say func(string) error) (session uint64, ok bool) {
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

// count sends numbered messages until say fails: 32 one by one, then 32 at once, and so on, and
// fewer after the faults.
func (s *stress) count(session uint64, say func(string) error) {
	for i := 0; say(number(session, i)) == nil; i++ {
		switch {
		case !s.faulting():
			time.Sleep(time.Second)
		case i&32 == 0:
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// number returns message i of a session. No other message looks like it.
func number(session uint64, i int) string {
	return fmt.Sprintf("%d %d %s", session, i, strings.Repeat(string(rune('a'+session%26)), i%7*100))
}

// doubtful reports whether data is not a whole message that was written. It may be the
// beginning of one. If the message was compressed, it may also be what coder/websocket has made
// of bytes that it has not unmasked.
func (s *stress) doubtful(data string) bool {
	id, rest, _ := strings.Cut(data, " ")
	s.mu.Lock()
	defer s.mu.Unlock()
	size, ok := s.sent[id]
	return !ok || rest != strings.Repeat("x", size)
}

// noteArrival records a message that the server has read, or a part of one.
func (s *stress) noteArrival(data string, err error) {
	id, rest, named := strings.Cut(data, " ")
	s.mu.Lock()
	defer s.mu.Unlock()
	if named {
		s.begun[id] = true
	}
	if err == nil {
		s.arrived[id]++
		if size, ok := s.sent[id]; !ok || rest != strings.Repeat("x", size) {
			s.t.Errorf("the client never wrote %.20q of %d bytes", data, len(data))
		}
	}
}

// framing is a Framer, and how the server writes and reads its frames.
type framing struct {
	framer conn.Framer
	frame  func(data string) []byte
	read   func(in *bufio.Reader) ([]byte, error) // the next message, or as much of it as came
}

var framings = []framing{
	{conn.Lines{}, func(data string) []byte { return []byte(data + "\n") }, readLine},
	{conn.LengthPrefix{}, func(data string) []byte {
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...)
	}, readFrame},
}

// readLine returns the next line, or as much of it as came.
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

// faults makes things go wrong with a server and its connections.
type faults interface {
	Inject(r *rand.Rand) // one thing goes wrong
	Stop()               // no further dial fails
}

// wsFaults are the faults of a scene.WSServer.
type wsFaults struct {
	*scene.WSServer
	farewells sync.WaitGroup
}

func (f *wsFaults) Stop() {
	f.Network.Fault(scene.WSAddr)
	f.Next()
}

func (f *wsFaults) Inject(r *rand.Rand) {
	switch r.IntN(12) {
	case 0, 1:
		f.Network.Fault(scene.WSAddr, scene.DialFault(r), conntest.Fault{})
	case 2, 3:
		late := scene.UpTo(r, 20*time.Second)
		delayed := func(w http.ResponseWriter, r *http.Request) { time.Sleep(late); f.Accept(w, r) }
		f.Next([]conntest.Answer{
			conntest.Status(503, conntest.RetryAfter(strconv.Itoa(int(scene.UpTo(r, 5*time.Second).Seconds())))),
			conntest.Status(502, nil), conntest.Hang, conntest.HangUp, conntest.BadAccept, delayed,
			trickling(1+r.IntN(500), 100*time.Millisecond, f.Accept),
			f.AcceptWith(conntest.CloseWith(1012, "restart")), f.AcceptWith(conntest.NeverRead),
			f.AcceptWith(func(context.Context, *websocket.Conn, *http.Request) {}),
		}[r.IntN(10)], f.Accept)
	case 4:
		f.Close()
		time.Sleep(scene.UpTo(r, 5*time.Second))
		f.Start()
	case 5:
		code := websocket.StatusCode(1000 + 12*r.IntN(2)) // or 1012
		f.farewells.Go(func() { f.Disconnect(code, "see you") })
	default:
		for _, p := range f.Network.Conns(scene.WSAddr) {
			scene.BreakConn(r, p)
		}
	}
}
