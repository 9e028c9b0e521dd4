package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gorilla/websocket"

	"github.com/redial-go/redial/bench/internal/child"
	"github.com/redial-go/redial/reconnect/drain"
)

// setup is what a server process gets on its command line.
type setup struct {
	Drain
	Asleep bool // it is not ready until it reads something from standard input
	Epoch  time.Time
}

// said is what a server process writes: the address at which it listens, and in the end its report.
type said struct {
	Address string
	Report  *report
}

// report is what a server has received.
type report struct {
	Received [][]span // of each client
	Error    string   // why the drain was not as it should be
}

// span is numbers that came in a row, from the first to the last.
type span [2]uint64

// serverArgument is the hidden argument; what follows is a setup.
const serverArgument = "drain-server"

// IsServer reports whether this process was started to be a server of this package.
// If so it must call [ServerMain] and exit with what that returns.
func IsServer() bool { return child.Is(serverArgument) }

// ServerMain is a server process: it serves until SIGTERM, drains, and writes its report to
// standard output. It ends at once when standard input does.
func ServerMain() int { return child.Main(serverArgument, (*setup).serve) }

func (s *setup) serve(in io.Reader, out io.Writer) error {
	w, err := findWay(s.Way)
	if err != nil {
		return err
	}
	v := &server{setup: s, way: w, received: make([][]span, s.Clients)}
	if v.group, err = w.group(s); err != nil {
		return err
	}
	v.awake.Store(!s.Asleep)
	go func() { // ends with the process
		for buf := make([]byte, 8); ; v.awake.Store(true) {
			if _, err := in.Read(buf); err != nil {
				os.Exit(1)
			}
		}
	}()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/ws", v.group.Handler(http.HandlerFunc(v.meet)))
	mux.HandleFunc("/ready", func(w http.ResponseWriter, _ *http.Request) {
		if !v.awake.Load() || !v.group.Ready() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	web := &http.Server{Handler: mux}
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(l) }() // <-ended waits for it
	say := json.NewEncoder(out)
	if err := say.Encode(said{Address: l.Addr().String()}); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case err := <-ended:
		return err
	}
	limit, cancel := context.WithTimeout(context.Background(), s.Lead+s.Window+30*time.Second)
	defer cancel()
	r := &report{}
	if err := v.group.Drain(limit); err != nil {
		r.Error = err.Error()
	}
	web.Close()
	<-ended
	v.mu.Lock()
	defer v.mu.Unlock()
	r.Received = v.received
	return say.Encode(said{Report: r})
}

// server is the state of a server process.
type server struct {
	*setup
	way   way
	group *drain.Group
	awake atomic.Bool

	mu       sync.Mutex // guards received
	received [][]span
}

var upgrader = websocket.Upgrader{ReadBufferSize: 1024, WriteBufferSize: 1024}

// answerTime is how long a client has to answer a close frame.
const answerTime = 5 * time.Second

// meet serves a client until its connection ends. After the close frame it reads on, so that
// what the client has sent before it has seen that frame is received.
func (v *server) meet(w http.ResponseWriter, r *http.Request) {
	who, err := strconv.Atoi(r.URL.Query().Get("client"))
	if err != nil || who < 0 || who >= v.Clients {
		http.Error(w, "which client?", http.StatusBadRequest)
		return
	}
	ws, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer ws.Close()
	_, hello, err := ws.ReadMessage() // the number of the last message that the client has
	if err != nil {
		return
	}
	have, err := strconv.ParseUint(string(hello), 10, 64)
	if err != nil {
		return
	}
	leave := make(chan time.Time, 1)                                      // the notice
	notice := func(by time.Time) { leave <- by.Add(-time.Until(by) / 5) } // earlier, because the next connection takes a moment
	if !v.way.notices {
		notice = nil
	}
	defer v.group.AddNotice(func(code int, reason string) error {
		now := time.Now()
		ws.SetReadDeadline(now.Add(answerTime))
		return ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), now.Add(answerTime))
	}, notice).Remove()
	ctx, cancel := context.WithCancel(context.Background())
	written := make(chan struct{})
	go func() { // <-written waits for it
		defer close(written)
		v.write(ctx, ws, who, have, leave)
	}()
	for {
		_, data, err := ws.ReadMessage()
		if err != nil {
			break
		}
		if n, err := strconv.ParseUint(string(data), 10, 64); err == nil {
			v.receive(who, n)
		}
	}
	cancel()
	<-written
}

// write sends the messages after have as they are due, and the notice.
func (v *server) write(ctx context.Context, ws *websocket.Conn, who int, have uint64, leave <-chan time.Time) {
	for {
		for due := v.due(who, time.Now()); have < due; {
			have++
			if ws.WriteMessage(websocket.TextMessage, strconv.AppendUint(nil, have, 10)) != nil {
				return
			}
		}
		wait := time.NewTimer(time.Until(v.when(who, have+1)))
		select {
		case <-wait.C:
		case by := <-leave:
			if ws.WriteMessage(websocket.TextMessage, []byte(leaveBy+strconv.FormatInt(by.UnixMilli(), 10))) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
		wait.Stop()
	}
}

// leaveBy is how a notice begins. A time in ms since 1970 follows.
const leaveBy = "leave by "

// parseLeave returns the time in a notice.
func parseLeave(text string) (by time.Time, ok bool) {
	ms, ok := strings.CutPrefix(text, leaveBy)
	n, err := strconv.ParseInt(ms, 10, 64)
	return time.UnixMilli(n), ok && err == nil
}

// due returns the number of the last message that a client should have at a time. Each client
// has its own moments, so that the messages come evenly.
func (s *setup) due(who int, at time.Time) uint64 {
	n := at.Sub(s.Epoch).Seconds()*s.Rate - s.phase(who)
	return uint64(max(n, 0))
}

// when returns when the message of this number is due.
func (s *setup) when(who int, n uint64) time.Time {
	return s.Epoch.Add(time.Duration((float64(n)+s.phase(who))/s.Rate*float64(time.Second)) + time.Microsecond)
}

func (s *setup) phase(who int) float64 { return float64(who) / float64(s.Clients) }

// receive notes that a message of a client has come.
func (v *server) receive(who int, n uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := v.received[who]
	if last := len(all) - 1; last >= 0 && all[last][1]+1 == n {
		all[last][1] = n
		return
	}
	v.received[who] = append(all, span{n, n})
}
