package reconnect_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redial-go/redial/conn"
)

// Promises 1, 3, 5, 6, 7, 8 and 11 over a stream of bytes, which is never spliced: no
// message is made of what two connections brought, in either direction.
func TestAStormIsSurvivedOverFramedTCP(t *testing.T) {
	eachSeed(t, 60, func(t *testing.T, seed uint64) {
		w := &stormDesk{storm: newStorm(seed), tongue: tongues[seed%uint64(len(tongues))]}
		atDesk(t, w.tongue.framer, w.run)
	})
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
