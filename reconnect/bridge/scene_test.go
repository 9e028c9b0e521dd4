package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/bridge"
)

// scene is a source for a Bridge, and its reader. The test plays the server:
//
//	s.live("a", 5, 6)
//	s.seam(reconnect.Seam{Lost: 1})
//	s.want("a: live 5", "a: live 6", "a: stale 7-")
type scene struct {
	t      *testing.T
	b      *bridge.Bridge[string, string]
	source *scriptedSource
	stop   context.CancelFunc
	ended  chan error
	rests  time.Duration // at a seam

	mu    sync.Mutex // guards what follows, and the fields of the store
	got   []string   // by the reader
	stale []error    // of each EventStale
	lost  []error    // of each EventLost
	asked []string   // calls of Past, Snapshot and Ask
}

// scriptedSource is a Source whose test says what Read returns.
type scriptedSource struct {
	next    chan any // a reconnect.Message or an error
	session uint64
	state   reconnect.State
	ready   chan struct{} // closed when a session is ready, or when none will be
	over    error         // why none will be
}

func (s *scriptedSource) Read(ctx context.Context, _ []byte) (reconnect.Message, error) {
	select {
	case n := <-s.next:
		if err, ok := n.(error); ok {
			return reconnect.Message{}, err
		}
		return n.(reconnect.Message), nil
	case <-ctx.Done():
		return reconnect.Message{}, context.Cause(ctx)
	}
}

func (s *scriptedSource) State() reconnect.State { return s.state }

func (s *scriptedSource) Await(ctx context.Context, _ reconnect.State) error {
	select {
	case <-s.ready:
		return s.over
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// item is what the server of a scene sends.
type item = bridge.Item[string, string]

// inScene runs a test with a Bridge in virtual time. Parse is set.
func inScene(t *testing.T, o *bridge.Options[string, string], f func(s *scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &scene{t: t, ended: make(chan error, 1)}
		s.source = &scriptedSource{next: make(chan any), session: 1, state: reconnect.StateReady, ready: make(chan struct{})}
		o.Parse = parseItem
		var err error
		s.b, err = bridge.New(o)
		require.NoError(t, err)
		s.read()
		f(s)
		s.stop()
		<-s.ended
	})
}

// read begins a loop over the events.
func (s *scene) read() {
	ctx, stop := context.WithCancel(s.t.Context())
	s.stop = stop
	go func() { // <-s.ended waits for it
		var last error
		for e, err := range s.b.Events(ctx, s.source) {
			if last = err; err == nil {
				s.set(func() { s.got = append(s.got, eventWords(e)) })
				switch e.Kind {
				case bridge.EventStale:
					s.set(func() { s.stale = append(s.stale, e.Err) })
				case bridge.EventLost:
					s.set(func() { s.lost = append(s.lost, e.Err) })
				}
				if e.Kind == bridge.EventOther && e.Err != nil {
					time.Sleep(s.rests)
				}
			}
		}
		s.ended <- last
	}()
	synctest.Wait()
}

// parseItem reads "key epoch first last", with a "!" after a snapshot.
func parseItem(m reconnect.Message) (item, bool) {
	var it item
	text, snapshot := strings.CutSuffix(string(m.Data), "!")
	n, _ := fmt.Sscanf(text, "%s %q %d %d", &it.Key, &it.Epoch, &it.First, &it.Last)
	it.Snapshot = snapshot
	return it, n == 4
}

// eventWords is an event in short.
func eventWords(e bridge.Event[string, string]) string {
	if e.Kind == bridge.EventOther {
		if e.Err != nil {
			return "other: " + e.Err.Error()
		}
		return "other: " + string(e.Message.Data)
	}
	text := fmt.Sprintf("%s: %v ", e.Key, e.Kind)
	switch {
	case e.Kind == bridge.EventStale || e.Kind == bridge.EventLost:
		text += fmt.Sprintf("%d-", e.First)
		if e.Last > 0 {
			text += fmt.Sprint(e.Last)
		}
	default:
		text += fmt.Sprint(e.Last)
	}
	if e.Epoch != "" {
		text += "@" + e.Epoch
	}
	if e.Snapshot != (e.Kind == bridge.EventSnapshot) {
		text += fmt.Sprint(" Snapshot: ", e.Snapshot)
	}
	return text
}

// send sends an item.
func (s *scene) send(it item) {
	text := fmt.Sprintf("%s %q %d %d", it.Key, it.Epoch, it.First, it.Last)
	if it.Snapshot {
		text += "!"
	}
	s.source.next <- reconnect.Message{Message: conn.TextMessage(text), Session: s.source.session}
	synctest.Wait()
}

// live sends numbers of a stream.
func (s *scene) live(key string, numbers ...uint64) {
	for _, n := range numbers {
		s.send(item{Key: key, Last: n})
	}
}

// seam ends the session, and begins the next one at once.
func (s *scene) seam(seam reconnect.Seam) {
	seam.Session, seam.Cause = s.source.session, errLost
	s.source.session++
	s.source.next <- &seam
	synctest.Wait()
}

// down ends the session.
func (s *scene) down() {
	s.source.state = reconnect.StateWaiting
	s.seam(reconnect.Seam{Lost: 1})
}

// up begins the next session after down.
func (s *scene) up() {
	s.source.state = reconnect.StateReady
	close(s.source.ready)
	synctest.Wait()
}

// want asserts which events have come since the last call, seams left out.
func (s *scene) want(events ...string) {
	s.t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	var got []string
	for _, g := range s.got {
		if !strings.HasPrefix(g, "other: session") {
			got = append(got, g)
		}
	}
	s.got = nil
	require.Equal(s.t, events, got)
}

// wantAsked asserts which calls there were since the last one.
func (s *scene) wantAsked(calls ...string) {
	s.t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Equal(s.t, calls, s.asked)
	s.asked = nil
}

// calls returns how many calls there were since the last wantAsked.
func (s *scene) calls() int {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

// note notes a call.
func (s *scene) note(call string) { s.set(func() { s.asked = append(s.asked, call) }) }

// set changes something while nobody looks at it.
func (s *scene) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// store is the past of one stream, in pages.
type store struct {
	s     *scene
	epoch string
	from  uint64 // the oldest number that it has
	last  uint64
	page  int           // how many it gives; 0: all
	takes time.Duration // for a call
	errs  []error       // of the first calls
}

// past is Options.Past.
func (p *store) past(ctx context.Context, r bridge.Request[string]) ([]item, error) {
	call := fmt.Sprint(r.Key, " after ", r.After.Offset)
	if r.After.Epoch != "" {
		call += "@" + r.After.Epoch
	}
	p.s.note(call)
	if err := p.wait(ctx); err != nil {
		return nil, err
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if r.After.Offset+1 < p.from || r.After.Epoch != p.epoch && r.After.Offset > 0 {
		return nil, bridge.ErrTooOld
	}
	var page []item
	for n := r.After.Offset + 1; n <= p.last && (p.page == 0 || len(page) < p.page); n++ {
		page = append(page, item{Epoch: p.epoch, Last: n})
	}
	return page, nil
}

// snapshot is Options.Snapshot.
func (p *store) snapshot(ctx context.Context, key string) (item, error) {
	p.s.note(key + " snapshot")
	if err := p.wait(ctx); err != nil {
		return item{}, err
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return item{Epoch: p.epoch, Last: p.last}, nil
}

// ask is Options.Ask.
func (p *store) ask(ctx context.Context, key string) error {
	p.s.note(key + " asked")
	return p.wait(ctx)
}

// wait takes the time of a call, and returns its error.
func (p *store) wait(ctx context.Context) error {
	var takes time.Duration
	p.s.set(func() { takes = p.takes })
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return ctx.Err()
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if len(p.errs) == 0 {
		return nil
	}
	err := p.errs[0]
	p.errs = p.errs[1:]
	return err
}

// refuse is an Options.Snapshot of a server that has none.
func refuse(context.Context, string) (item, error) { return item{}, backoff.Permanent(errFetch) }

var errClosed error = net.ErrClosed

var errFetch = errors.New("500")
