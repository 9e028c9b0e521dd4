package reconnect_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
)

// Promises 4, 6, 10 and 11 hold over a stream of bytes too, in any weather: a message
// of which the server has seen a part was not dropped.
func TestTheLedgerIsCompleteOverFramedTCP(t *testing.T) {
	eachSeed(t, 60, func(t *testing.T, seed uint64) {
		w := &modelDesk{model: newModel(seed)}
		atDesk(t, conn.LengthPrefix{}, w.run)
	})
}

// modelDesk is a model over framed TCP.
type modelDesk struct {
	*model
	desk *desk
}

func (w *modelDesk) run(t *testing.T, d *desk) {
	w.desk = d
	r := w.stream(30)
	d.dialer.Conn.WriteTimeout = time.Second + upTo(r, 10*time.Second)
	w.o.Liveness = reconnect.Liveness{Limit: 7*time.Second + upTo(r, 30*time.Second), Probe: w.probe} // 7: none while the server talks
	ctx, cancel := context.WithCancel(t.Context())
	var server sync.WaitGroup
	server.Go(func() { d.serve(ctx, w.serve) })
	w.users.Go(func() {
		for start := time.Now(); ctx.Err() == nil && time.Since(start) < 30*time.Second; {
			time.Sleep(upTo(r, 3*time.Second))
			d.mishap(r)
		}
	})
	w.storm(t, reconnect.DialFunc(w.Dial), func() {
		d.calm()
		d.network.ResetAll(deskAddr)
	})
	require.Zero(t, d.network.Open())
	cancel()
	server.Wait()
}

func (w *modelDesk) probe(_ context.Context, write func(conn.Message) error) error {
	err := write(text("ping"))
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.logins++
	}
	return err
}

// Dial returns a spy that can do what a Framed can.
func (w *modelDesk) Dial(ctx context.Context) (conn.Conn, error) {
	opened, err := w.desk.dialer.Dial(ctx)
	if err != nil {
		return nil, err
	}
	framed := opened.(*conn.Framed)
	return struct {
		*spy
		conn.Idler
		conn.BlockNotifier
		conn.HalfCloser
	}{&spy{Conn: framed, m: w.model}, framed, framed, framed}, nil
}

// serve notes what one connection brings, half messages too.
func (w *modelDesk) serve(nc net.Conn) {
	var session uint64
	last, in := make(map[int]int), bufio.NewReader(nc)
	for n := 0; ; n++ {
		data, err := readFrame(in)
		switch {
		case n > 0:
			w.arrive(session, string(data), err == nil, last)
		case err == nil:
			if _, err := fmt.Sscanf(string(data), "login %d", &session); err != nil {
				w.t.Errorf("%.20q came before the login", data)
			}
			talking := make(chan struct{})
			go func() { defer close(talking); chatter(nc) }()
			defer func() { nc.Close(); <-talking }()
		}
		if err != nil {
			return
		}
	}
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

// chatter says something every two seconds.
func chatter(nc net.Conn) {
	for {
		if _, err := io.WriteString(nc, "\x00\x00\x00\x07welcome"); err != nil {
			return
		}
		time.Sleep(2*time.Second + 1)
	}
}
