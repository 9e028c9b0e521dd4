package rotate

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"github.com/redial-go/redial/bench/internal/child"
)

// setup is what a server process gets on its command line.
type setup struct {
	Moves bool          // only the newest connection gets messages, and the one before is closed; else all get everything
	Rate  int           // messages per second; 0: none
	Life  time.Duration // each connection is ended after that; 0: none is
}

// serverArgument is the hidden argument; what follows is a setup.
const serverArgument = "rotate-server"

// IsServer reports whether this process was started to be a server of this package.
// If so it must call [ServerMain] and exit with what that returns.
func IsServer() bool { return child.Is(serverArgument) }

// ServerMain is a server process: it writes its address to standard output, and serves until
// standard input ends.
func ServerMain() int { return child.Main(serverArgument, setup.serve) }

// serve writes its address to out, and serves until in ends, and with it the process.
func (s setup) serve(in io.Reader, out io.Writer) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	f := &feed{moves: s.Moves}
	if s.Rate > 0 {
		go f.run(s.Rate) // until the process ends
	}
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // likewise
		if ws, err := websocket.Accept(w, r, nil); err == nil {
			defer ws.CloseNow()
			f.meet(ws, s.Life)
		}
	}))
	if err := json.NewEncoder(out).Encode(l.Addr().String()); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	return err
}

// process is a server process, as its parent sees it.
type process struct {
	*child.Process
	address string
}

// start starts a server. The caller ends it.
func start(ctx context.Context, s setup) (*process, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	address := make(chan string, 1)
	p := &process{}
	if p.Process, err = child.Start(func(a string) { address <- a }, serverArgument, string(text)); err != nil {
		return nil, err
	}
	select {
	case p.address = <-address:
		return p, nil
	case <-p.Gone():
		err = fmt.Errorf("start server: it has ended: %s", p.LastWords())
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	p.end()
	return nil, err
}

// end kills the server and waits until it is gone.
func (p *process) end() {
	p.Kill()
	<-p.Gone()
}
