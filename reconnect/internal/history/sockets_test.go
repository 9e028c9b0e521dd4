package history

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/history/yield"
)

// Histories in real time, with a dialer.WebSocket and TCP on loopback. The server ends sessions whose client
// reads nothing, resets connections after a ping, and sends floods of pings during Rotate, Shutdown and Close.
// The checks name no instant: what is lost, comes twice or out of order, how long a close frame keeps the client
// away at least, and that every call returns.

var overSockets = flag.Int("sockets", 0, "how many histories TestHistoriesOverSockets runs, or 0 for 60")

const (
	tcpTogether = 32               // histories at a time
	tcpHang     = 60 * time.Second // limit on a history, which takes a second or two
	tcpLong     = 30 * time.Second // limit of a Shutdown, which no history reaches

	tcpWait    = 120 * time.Millisecond
	tcpReason  = "redial/1 wait=120ms" // of close frames
	tcpCommand = "go test ./reconnect/internal/history -run TestHistoriesOverSockets -args -show -sockets 1"
)

// Random histories over sockets. The same seed gives the same plan, but not the same interleaving.
func TestHistoriesOverSockets(t *testing.T) {
	if yield.Used() {
		t.Skip("in the widened library a flood takes longer than a session is read after its close frame")
	}
	n := *overSockets
	if n == 0 {
		n = 60
	}
	start, all := time.Now(), newSum()
	late, stop := new(lateness), make(chan struct{})
	var running, watching sync.WaitGroup
	watching.Go(func() { late.watch(stop) })
	defer watching.Wait()
	defer close(stop)
	var mu sync.Mutex // guards all
	slots := make(chan struct{}, tcpTogether)
	for i := range uint64(n) {
		slots <- struct{}{}
		mu.Lock()
		enough := !*list && all.Failed > 20 || *stopAtFirst && all.Failed > 0
		mu.Unlock()
		if enough {
			break
		}
		p := leftOf(t, drawOverSockets(*firstSeed+i))
		running.Go(func() {
			defer func() { <-slots }()
			began := time.Now()
			r := runOverSockets(p)
			if *verbose {
				fmt.Print(p, strings.Join(r.Trace, "\n"), "\n", r.Violations, "\n")
			}
			mu.Lock()
			defer mu.Unlock()
			all.add(&sum{Histories: 1, Stakes: r.Stakes, Events: r.Events})
			if len(r.Violations) == 0 {
				return
			}
			if r.Violations[0].Invariant != EndsSoon && late.since(began) {
				all.Events["(not judged, because the machine was too busy)"]++
				return
			}
			all.Failed++
			if *list {
				t.Errorf("seed %d: %v", p.Seed, violated(r))
				return
			}
			t.Errorf("seed %d: %v\n%v%s\n%s -seed %d",
				p.Seed, r.Violations[0], p, strings.Join(r.Trace, "\n"), tcpCommand, p.Seed)
		})
	}
	running.Wait()
	took := time.Since(start).Round(time.Second)
	t.Logf("%d histories from seed %d on, %d failed, in %v", all.Histories, *firstSeed, all.Failed, took)
	for _, i := range slices.Sorted(maps.Keys(all.Stakes)) {
		t.Logf("%10d  %s", all.Stakes[i], i)
	}
	for _, k := range slices.Sorted(maps.Keys(all.Events)) {
		t.Logf("%10d  %s", all.Events[k], k)
	}
}

// lateness notes when the machine was so busy that a goroutine ran 0.2 s late. The library reads the last words of a
// session for a second, and a goroutine of it that runs too late for that is no mistake.
type lateness struct{ last atomic.Pointer[time.Time] }

func (l *lateness) watch(stop <-chan struct{}) {
	for before := time.Now(); ; {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-stop:
			return
		}
		now := time.Now()
		if now.Sub(before) > 200*time.Millisecond {
			l.last.Store(&now)
		}
		before = now
	}
}

// since reports whether that was so after a time.
func (l *lateness) since(t time.Time) bool {
	last := l.last.Load()
	return last != nil && last.After(t)
}

// drawOverSockets returns the plan of a seed. An event begins when its time has come, the event before it is over, and
// one session is ready.
func drawOverSockets(seed uint64) *Plan {
	p := &Plan{Seed: seed}
	r := p.stream(0)
	one := func(in int) bool { return r.IntN(in) == 0 }
	s := &p.Settings
	s.Reader = r.IntN(readLate)
	if s.Reader != readPush && one(3) {
		s.InboxMessages = 1 + r.IntN(20)
	}
	if one(3) {
		s.ReaderTakes = time.Millisecond + upTo(r, 3*time.Millisecond)
	}
	s.WhenDown = r.IntN(3)
	one(4) // for a setting that is gone, so that seeds keep their plans
	s.Overlap = r.IntN(3)
	if s.OneConnection = one(8); s.OneConnection {
		s.Overlap = int(reconnect.OverlapBreakFirst)
	}
	s.Drain = time.Millisecond + upTo(r, 60*time.Millisecond)
	if one(4) {
		s.ProbeEvery = 5*time.Millisecond + upTo(r, 40*time.Millisecond)
	}
	if one(4) {
		s.KeepAlive = 5*time.Millisecond + upTo(r, 40*time.Millisecond)
	}
	s.Tick = 2*time.Millisecond + upTo(r, 12*time.Millisecond)
	s.Ending, s.Early, s.Floods = r.IntN(endings), one(4), !one(4)
	names := slices.Sorted(maps.Keys(tcpKinds))
	for i := range 2 + r.IntN(5) {
		p.Length += upTo(r, 60*time.Millisecond)
		p.Events = append(p.Events, Event{i, p.Length, names[r.IntN(len(names))]})
	}
	return p
}

// tcpKinds are the kinds of events.
var tcpKinds = map[string]func(w *tcpWorld, r *rand.Rand, p *tcpPeer){
	"frozen and ended": (*tcpWorld).freezeAndEnd,
	"reset after a ping": func(w *tcpWorld, r *rand.Rand, p *tcpPeer) {
		p.turn.Lock()
		p.holds = r.IntN(2) == 0
		p.turn.Unlock()
		w.feed(r.IntN(8))
		p.ping(1, r.IntN(116))
		w.feed(r.IntN(8))
		if r.IntN(2) == 0 {
			p.turn.Lock()
			p.release()
			p.resets = 1 + r.IntN(3)
			p.turn.Unlock()
			time.Sleep(upTo(r, 20*time.Millisecond))
		}
		p.end(byReset, "")
	},
	"flood and goodbye": func(w *tcpWorld, r *rand.Rand, p *tcpPeer) {
		w.beginFlood(r, p)
		p.end(byGoodbye, tcpReason)
	},
	"flood and rotate": func(w *tcpWorld, r *rand.Rand, p *tcpPeer) {
		w.beginFlood(r, p)
		w.rotate(p)
	},
	"rotate and end": func(w *tcpWorld, r *rand.Rand, p *tcpPeer) {
		w.rotate(p)
		time.Sleep(upTo(r, 20*time.Millisecond))
		p.ping(r.IntN(3), 0)
		p.end(r.IntN(byHalfClose), "")
	},
}

// freezeAndEnd lets the client read nothing for a while: its reads wait, or what the server sends is held and then
// comes in one piece. These are messages among pings and, perhaps, a close frame. Then the peer ends the connection.
func (w *tcpWorld) freezeAndEnd(r *rand.Rand, p *tcpPeer) {
	if w.freezes {
		w.frozen.Lock()
		defer w.frozen.Unlock()
	} else {
		p.turn.Lock()
		p.holds = true
		p.turn.Unlock()
	}
	for range 1 + r.IntN(6) {
		w.feed(r.IntN(5))
		p.ping(r.IntN(4), 0)
	}
	way, reason := r.IntN(len(tcpWays)), tcpReason
	if way != byGoodbye && r.IntN(3) == 0 {
		reason = ""
	}
	if !w.freezes {
		time.Sleep(upTo(r, 100*time.Millisecond))
	}
	p.end(way, reason)
	w.mu.Lock()
	w.result.Events[fmt.Sprintf("(frozen, then %s, close frame %t)", tcpWays[way], reason != "")]++
	w.mu.Unlock()
	if w.freezes {
		time.Sleep(upTo(r, 100*time.Millisecond))
	}
}

// beginFlood lets a peer send pings for up to 200 ms. It returns at any moment of the flood.
func (w *tcpWorld) beginFlood(r *rand.Rand, p *tcpPeer) {
	own := rand.New(rand.NewPCG(r.Uint64(), 0))
	w.users.Go(func() {
		from, size, every := w.now(), own.IntN(116), upTo(own, 3*time.Millisecond)+1
		for until := from + 200*time.Millisecond; w.now() < until && w.rest(every); {
			p.turn.Lock()
			ended := p.ended
			p.turn.Unlock()
			if ended {
				break
			}
			p.ping(1+own.IntN(50), size)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		for name, times := range w.calls {
			if slices.ContainsFunc(times, func(at time.Duration) bool { return at >= from }) {
				w.result.Events["(flood meets "+name+")"]++
			}
		}
	})
	time.Sleep(upTo(r, 30*time.Millisecond))
}

// rotate asks for the replacement of the session of p.
func (w *tcpWorld) rotate(p *tcpPeer) {
	w.mu.Lock()
	p.s.rotates = true
	w.mu.Unlock()
	w.called(fmt.Sprint("Rotate, overlap ", w.set.Overlap))
	w.conn.Rotate(p.s.number, reconnect.Advice{})
}
