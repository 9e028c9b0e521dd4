package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/bridge"
)

// modelServer has numbered streams, which it sends live and keeps for a while. It misbehaves
// until it is calm. Any goroutine may call its methods.
type modelServer struct {
	modelFaults
	keys int

	mu      sync.Mutex // guards what follows
	r       *rand.Rand
	calm    bool
	streams []modelStream
	live    *conntest.Fake // nil: nobody is connected
	on      []bool         // which streams are subscribed there
	kills   int
}

// modelFaults are what a modelServer does not do well.
type modelFaults struct {
	forgets uint64 // it keeps so many numbers of a stream; 0: all
	turns   bool   // it begins new epochs
	page    int    // the most that it gives at once
	newest  bool   // a page has the newest before a number, and not the oldest after one
	lag     time.Duration
	asked   bool // it sends a snapshot in the stream at each subscription
}

// modelStream is what the server has of one stream: the numbers up to last.
type modelStream struct {
	epoch int
	last  uint64
	at    []time.Time // when each number was made
}

// number is the item of a model: its value is its name.
type number = bridge.Item[int, string]

// name is the value of a number, which shows a mistake.
func name(key int, epoch string, last uint64) string { return fmt.Sprint(key, ":", epoch, ":", last) }

func newModelServer(r *rand.Rand, keys int) *modelServer {
	s := &modelServer{r: r, keys: keys, streams: make([]modelStream, keys), on: make([]bool, keys)}
	s.page = 1 + r.IntN(20)
	s.newest = r.IntN(3) == 0
	if r.IntN(2) == 0 {
		s.lag = time.Duration(r.Int64N(int64(2 * time.Second)))
	}
	return s
}

// dial connects the one client.
func (s *modelServer) dial(ctx context.Context) (conn.Conn, error) {
	time.Sleep(10 * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.calm && s.r.IntN(4) == 0 {
		return nil, errors.New("refused")
	}
	s.live = conntest.NewFake(nil)
	for k := range s.on {
		s.subscribe(k)
	}
	return s.live.Conn(), nil
}

// subscribe sends the live numbers of a stream from now on.
func (s *modelServer) subscribe(key int) {
	s.on[key] = true
	if s.asked && !s.unlucky(5) {
		s.sendSnapshot(key)
	}
}

// unlucky reports whether a fault happens that has the probability 1/n.
func (s *modelServer) unlucky(n int) bool { return !s.calm && s.r.IntN(n) == 0 }

// sendSnapshot sends the state of a stream in the stream.
func (s *modelServer) sendSnapshot(key int) {
	if m := &s.streams[key]; s.live != nil && m.last > 0 { // without a number it would not say where it stands
		s.live.Deliver(conn.TextMessage(fmt.Sprintln("snapshot", key, m.epochName(), m.last, m.last)))
	}
}

func (m *modelStream) epochName() string { return fmt.Sprint("e", m.epoch) }

// tick makes the next numbers of a random stream, and does something else now and then.
func (s *modelServer) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.unlucky(60):
		s.kill()
	case s.turns && s.unlucky(500):
		key := s.r.IntN(s.keys)
		s.streams[key] = modelStream{epoch: s.streams[key].epoch + 1}
	}
	s.grow(s.r.IntN(s.keys))
}

// grow makes one to three numbers of a stream, and sends them in one message, unless that is
// lost. Sometimes it comes twice.
func (s *modelServer) grow(key int) {
	m := &s.streams[key]
	first := m.last + 1
	for range 1 + s.r.IntN(3) {
		m.last++
		m.at = append(m.at, time.Now())
	}
	if s.live == nil || !s.on[key] || s.unlucky(30) {
		return
	}
	for range 1 + s.r.IntN(8)/7 {
		s.live.Deliver(conn.TextMessage(fmt.Sprintln("number", key, m.epochName(), first, m.last)))
	}
}

// kill loses the connection.
func (s *modelServer) kill() {
	if s.live != nil {
		s.live.Fail(errLost)
		s.live = nil
		s.kills++
		clear(s.on)
	}
}

var errLost = errors.New("lost")

// settle ends all misbehavior.
func (s *modelServer) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calm = true
}

// growAll makes numbers of each stream.
func (s *modelServer) growAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.streams {
		s.grow(key)
	}
}

// end returns the last number of a stream.
func (s *modelServer) end(key int) bridge.Cursor {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &s.streams[key]
	return bridge.Cursor{Epoch: m.epochName(), Offset: m.last}
}

// fault is what happens to a call now and then: it hangs, it is slow, or it fails.
func (s *modelServer) fault(ctx context.Context) error {
	s.mu.Lock()
	what, slow := 9, time.Duration(s.r.Int64N(int64(3*time.Second)))
	if !s.calm {
		what = s.r.IntN(10)
	}
	s.mu.Unlock()
	switch what {
	case 0:
		<-ctx.Done()
		return ctx.Err()
	case 1, 2:
		select {
		case <-time.After(slow):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	case 3, 4:
		return errors.New("500")
	}
	return nil
}

// past is Options.Past.
func (s *modelServer) past(ctx context.Context, r bridge.Request[int]) ([]number, error) {
	if err := s.fault(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &s.streams[r.Key]
	after := r.After.Offset
	if r.After != (bridge.Cursor{}) && r.After.Epoch != m.epochName() {
		after = 0
	}
	last := m.last
	for last > 0 && time.Since(m.at[last-1]) < s.lag { // not yet stored
		last--
	}
	if s.forgets > 0 && after+s.forgets < m.last {
		return nil, fmt.Errorf("number %d: %w", after, bridge.ErrTooOld)
	}
	from, to := after+1, min(last, after+uint64(s.page))
	if s.newest {
		to = last
		if r.Before > 0 && r.After.Epoch == m.epochName() {
			to = min(to, r.Before-1)
		}
		from = max(from, to+1-min(to, uint64(s.page)))
	}
	var page []number
	for n := from; n <= to; n++ {
		page = append(page, number{Epoch: m.epochName(), Last: n, Value: name(r.Key, m.epochName(), n)})
	}
	if to >= last && s.r.IntN(2) == 0 && !s.newest {
		return page, io.EOF
	}
	return page, nil
}

// snapshot is Options.Snapshot. Now and then it is an old one.
func (s *modelServer) snapshot(ctx context.Context, key int) (number, error) {
	if err := s.fault(ctx); err != nil {
		return number{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &s.streams[key]
	last := m.last
	if s.unlucky(4) {
		last -= min(last, uint64(s.r.IntN(5)))
	}
	if last == 0 {
		return number{}, errors.New("nothing yet")
	}
	return number{Epoch: m.epochName(), Last: last, Value: name(key, m.epochName(), last)}, nil
}

// ask is Options.Ask.
func (s *modelServer) ask(ctx context.Context, key int) error {
	if err := s.fault(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.unlucky(5) {
		s.sendSnapshot(key)
	}
	return nil
}

// parse is Options.Parse.
func parse(m reconnect.Message) (number, bool) {
	var kind string
	var it number
	if n, _ := fmt.Sscan(string(m.Data), &kind, &it.Key, &it.Epoch, &it.First, &it.Last); n != 5 {
		return it, false
	}
	it.Snapshot, it.Value = kind == "snapshot", name(it.Key, it.Epoch, it.Last)
	return it, true
}
