package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
)

// What a history has above its Conn.
const (
	aboveNothing = iota
	aboveSubscription
	aboveCall
	aboveLedger
	aboves      // of those before, which have one draw
	aboveBridge = aboves
	aboveDrain  = aboves + 1
)

// aboveNames are the values of the flag -above, in the order of the constants.
var aboveNames = []string{"nothing", "subscription", "call", "ledger", "bridge", "drain"}

// above is what a history has above its Conn: its user, and its part of the server. Its messages begin
// with @ and end with a semicolon. The methods that record something take w.mu themselves, except hear and seam.
type above interface {
	options(o *reconnect.Options)        // adds layers to the options of the Conn
	open(o *reconnect.Opening) error     // is called at the end of OnSession
	step(r *rand.Rand, e Event)          // does something that a user may do
	admit(p *peer)                       // is called with each connection that has logged in
	serve(p *peer, words []string)       // is called with each message that reaches the server
	cut(words []string)                  // is called with a message of which the server got a part
	hear(session uint64, words []string) // is called with each message that reaches the reader; the caller holds w.mu
	seam(s *reconnect.Seam)              // is called with each seam and mark; the caller holds w.mu
	rest()                               // is called when the faults are over and the Conn has recovered
	over()                               // is called when the Conn has ended
	finish()                             // is called when all has ended
}

// nothing is above a Conn without anything, and a part of the others.
type nothing struct{}

func (nothing) options(*reconnect.Options)    {}
func (nothing) open(*reconnect.Opening) error { return nil }
func (nothing) step(*rand.Rand, Event)        {}
func (nothing) admit(*peer)                   {}
func (nothing) serve(*peer, []string)         {}
func (nothing) cut([]string)                  {}
func (nothing) hear(uint64, []string)         {}
func (nothing) seam(*reconnect.Seam)          {}
func (nothing) rest()                         {}
func (nothing) over()                         {}
func (nothing) finish()                       {}

func (w *world) newAbove() above {
	switch w.set.Above {
	case aboveSubscription:
		return newTopics(w)
	case aboveCall:
		return newQuestions(w)
	case aboveLedger:
		return newPosts(w)
	case aboveBridge:
		return newStreams(w)
	case aboveDrain:
		return newFleet(w)
	}
	return nothing{}
}

// The actors above the Conn, for Plan.stream. Others have smaller numbers.
const (
	actorAbove        = 1 << 20 // draws the part of the plan
	actorAboveOptions = actorAbove + 1
	actorAboveMore    = actorAbove + 2 // draws a Bridge or a Group for a plan that would have nothing
	actorAboveServer  = actorAbove + 3 // draws more settings of a Bridge, a Set or a Ledger
	actorAboveAnswer  = 1 << 21        // and the number of the request
	aboveIndex        = 1000           // of the first event
)

// drawAbove draws what is above the Conn, and what its user does, from a stream of its own: the rest of a plan does not depend
// on it.
func (p *Plan) drawAbove() {
	r := p.stream(actorAbove)
	if p.Settings.Above = max(aboveNothing, r.IntN(2*aboves-1)-aboves+1); p.Settings.Above == aboveNothing {
		p.Settings.Above = []int{aboveNothing, aboveNothing, aboveBridge, aboveDrain}[p.stream(actorAboveMore).IntN(4)]
	}
	if p.above != "" {
		p.Settings.Above = slices.Index(aboveNames, p.above)
		p.Settings = p.Settings.readable()
	}
	if p.Settings = p.Settings.possible(); p.Settings.Above == aboveNothing {
		return
	}
	p.drawAboveServer()
	for i := range 5 + r.IntN(20) {
		p.Events = append(p.Events, Event{aboveIndex + i, 1 + upTo(r, p.Length), "above"})
	}
	slices.SortStableFunc(p.Events, func(a, b Event) int { return int(a.At - b.At) })
}

// drawAboveServer draws settings of the server of a Bridge or a Set, and options of a Ledger.
func (p *Plan) drawAboveServer() {
	r, s := p.stream(actorAboveServer), &p.Settings
	early, unset, waits := r.IntN(2) == 0, r.IntN(4) == 0, r.IntN(2) == 0
	s.EarlyState, s.FetchesUnset = early && s.Above == aboveBridge, unset && s.Above == aboveBridge
	if age, drops := r.IntN(3) == 0, r.IntN(4) == 0; s.Above == aboveLedger {
		s.DropOldest = drops
		if age {
			s.LedgerAge = time.Second + upTo(r, 20*time.Second)
		}
	}
	s.AskWait = waits && (s.Above == aboveBridge || s.Above == aboveSubscription)
}

// aboveStep is the event of the user of what is above the Conn.
var aboveStep = happening{"above", 0, func(w *world, r *rand.Rand, e Event) { w.above.step(r, e) }}

// framed returns a message of what is above the Conn.
func framed(words ...any) string { return "@" + strings.TrimSuffix(fmt.Sprintln(words...), "\n") + ";" }

// unframed returns the words of a message of what is above the Conn. It reports false if the message is another one, or not whole.
func unframed(data string) ([]string, bool) {
	data, ours := strings.CutPrefix(data, "@")
	data, whole := strings.CutSuffix(data, ";")
	return strings.Split(data, " "), ours && whole
}

// serveAbove hands a message to what is above the Conn, and reports whether it was one of its messages, or a part of one.
func (w *world) serveAbove(p *peer, data string, err error) bool {
	words, whole := unframed(data)
	switch {
	case whole && err == nil:
		w.above.serve(p, words)
	case strings.HasPrefix(data, "@"):
		w.above.cut(words)
	default:
		return false
	}
	return err == nil
}

// peer is a connection at the server.
type peer struct {
	w        *world
	session  uint64
	pipe     *conntest.Pipe
	ctx      context.Context
	say      func(string) error
	end      func(code int, reason string) error // closes the connection
	work     *sync.WaitGroup                     // for goroutines that end with ctx
	turn     chan struct{}                       // held while a message is written; buffered (1)
	bursting atomic.Bool                         // a burst is in progress
}

// later says something after a while.
func (p *peer) later(d time.Duration, data string) {
	p.work.Go(func() {
		if p.sleep(d) {
			p.say(data)
		}
	})
}

// sleep reports whether the connection still is served after so long.
func (p *peer) sleep(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-p.ctx.Done():
		return false
	}
}

// remark notes a line of the trace that does not count as an event. The caller holds w.mu.
func (w *world) remark(format string, args ...any) {
	w.traffic++
	w.log(format, args...)
}
