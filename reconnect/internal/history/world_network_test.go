package history

import (
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/history/yield"
)

// networkKinds are more kinds of events: what happens to the machine and its addresses, and what a server
// answers. Their events are drawn from random numbers of their own, so that the other events of a seed do
// not depend on them.
var networkKinds = []happening{
	{"clock", 2, func(w *world, r *rand.Rand, e Event) {
		d := upTo(r, 2*time.Hour) - time.Hour
		if r.IntN(3) == 0 {
			d = upTo(r, 4*time.Second) - 2*time.Second
		}
		w.jump(d)
	}},
	{"sleep", 4, (*world).sleep},
	{"address", 2, (*world).moveAway},
	{"refusal", 3, func(w *world, r *rand.Rand, e Event) {
		if s, ok := w.server.(*conntest.Server); ok {
			s.Next(w.refusal(r), nil)
		}
	}},
	{"refusals", 1, func(w *world, r *rand.Rand, e Event) {
		if s, ok := w.server.(*conntest.Server); ok {
			s.Next(w.refusal(r), w.refusal(r), w.refusal(r), nil)
		}
	}},
	{"flood", 1, (*world).flood},
	{"flap", 1, func(w *world, r *rand.Rand, e Event) { // each session is lost soon, for a while
		every, until := 10*time.Millisecond+upTo(r, 4*time.Second), w.now()+upTo(r, 30*time.Second)
		for w.now() < until && !w.calmed.Load() {
			w.oneByOne("flap", (*conntest.Pipe).Reset)
			time.Sleep(every + upTo(r, time.Millisecond))
		}
	}},
	{"rotate when ready", 2, func(w *world, r *rand.Rand, e Event) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.rotateNext = 1 + r.IntN(6)
	}},
}

// drawNetwork draws events of networkKinds, and settings that belong to them.
func (p *Plan) drawNetwork() {
	r := p.stream(8)
	s := &p.Settings
	s.TLS = r.IntN(10) == 0
	if r.IntN(8) == 0 {
		s.Late = 5 + r.IntN(46) // 8 times the limit, less the third of it that passes before a probe, is 5.3 times
	}
	if r.IntN(3) == 0 {
		s.Permits, s.Rivals = 1+r.IntN(4), r.IntN(4)
	}
	*s = s.possible()
	if r.IntN(3) == 0 {
		return
	}
	var names []string
	for _, k := range networkKinds {
		if r.IntN(2) == 0 {
			names = append(names, slices.Repeat([]string{k.name}, k.weight)...)
		}
	}
	for range min(len(names), 1+r.IntN(6)) {
		p.Events = append(p.Events, Event{len(p.Events), 1 + upTo(r, p.Length), names[r.IntN(len(names))]})
	}
}

// networkRecord is what is known of these events. world.mu guards it.
type networkRecord struct {
	wall        atomic.Int64            // how far the wall clock is ahead, in ns; not guarded
	moved       map[*conntest.Pipe]bool // connections whose local address is gone
	asked       map[*conntest.Pipe]bool // those of them after which Check was called
	refusals    []refusal               // answers whose dials have not ended
	jumps       int                     // of the clock
	setBack     time.Duration           // when the wall clock was last set back, in the history's time
	silents     int                     // sessions that have ended as silent
	grown       int                     // those since a probe was answered soon
	row         int                     // those in a row while the peer answers late
	silentAt    time.Duration           // when the last of these has ended; one that lived with it counts as the same
	late        time.Duration           // how late it does now; 0: at once
	granted     []time.Duration         // when a permit of the gate was given
	permits     int                     // that are out
	down        bool                    // what the gate must think of the host
	probe       *permit                 // the permit that was given since; nil: none is out
	wrongNext   *rand.Rand              // the next message breaks the protocol; nil: it does not
	wrongEach   *rand.Rand              // draws the message of each session that breaks the protocol, or nil
	rotateNext  int                     // so many sessions are rotated as soon as they are ready
	kicked      time.Duration           // time of the last kick that must end a wait, or 0
	unserved    bool                    // a dial was answered, and its session has not begun
	missing     int                     // answers in a row that there is no such host
	unearned    int                     // dials and sessions in a row that have earned nothing
	failedAt    time.Duration           // when the last dial or session was lost
	judgedAt    time.Duration           // when Classify was called, if no dial or session is done since then; or 0
	announced   time.Duration           // the last wait, as it was announced, from then on; -1: there was none
	waited      time.Duration           // and as it was, without a WaitStart that took longer
	acted       bool                    // a callback did, which may have taken long
	slowProbe   bool                    // it was SessionReady or ProbeStart, before whose end the peer is not asked
	lastWritten int                     // the order of the message that was written last
	lastBegan   time.Time               // when its write began
	mirror      *mirror                 // nil: there is none
	quiet       *quietPeriod            // nil: something happens
}

// refusal is an answer that is no WebSocket.
type refusal struct {
	code int
	form string
	wait time.Duration
}

// refusal draws an answer with an HTTP status of any class, and a Retry-After of any form.
func (w *world) refusal(r *rand.Rand) conntest.Answer {
	code := []int{
		200, 204, 206, 300, 301, 302, 303, 307, 308, 400, 401, 403, 404, 405, 406, 407, 408, 409, 411, 413, 414, 418,
		421, 425, 426, 428, 429, 429, 431, 451, 500, 501, 502, 503, 503, 504, 505, 507, 511, 520, 522, 599,
	}[r.IntN(42)]
	n, form := r.IntN(30), r.IntN(16)
	if r.IntN(20) == 0 {
		n = 10_000 // more than the longest wait that is kept
	}
	return func(rw http.ResponseWriter, q *http.Request) {
		now := time.Now().UTC().Truncate(time.Second) // which is what the Date of the answer says
		at := now.Add(time.Duration(n) * time.Second)
		value, seconds := "", 0.0
		switch form {
		case 0, 1, 2:
			value, seconds = itoa(n), float64(n)
		case 3:
			value, seconds = at.Format(http.TimeFormat), float64(n)
		case 4:
			value, seconds = at.Format("Monday, 02-Jan-06 15:04:05 GMT"), float64(n)
		case 5:
			value, seconds = at.Format(time.ANSIC), float64(n)
		case 6:
			value = now.Add(-time.Duration(n+1) * time.Second).Format(http.TimeFormat)
		case 7:
			value, seconds = itoa(n)+".5", float64(n)+0.5
		case 8:
			value, seconds = " "+itoa(n)+" ", float64(n)
		case 9:
			value, seconds = itoa(int(at.Unix())), float64(n)
		case 10:
			value = "-" + itoa(n)
		case 11:
			value = []string{"soon", "Tue, 99 Foo 2000", "1e3", "0x10", "7 seconds", "7,8", "\xff", "--", "."}[n%9]
		case 12:
			if n == 7 { // rarely, because it is an hour
				value, seconds = "99999999999999999999999", 3600
			}
		}
		if value != "" {
			rw.Header().Set("Retry-After", value)
		}
		if code/100 == 3 && n%2 == 0 {
			rw.Header().Set("Location", "http://elsewhere.test/?token="+secret)
		}
		w.mu.Lock()
		w.refusals = append(w.refusals, refusal{code, value, time.Duration(min(seconds, 3600) * 1e9)})
		w.log("answer %d", code)
		w.mu.Unlock()
		rw.WriteHeader(code)
	}
}

// refused looks for the refusal of which the dialer has made d. Two answers with one code may be under way at once, and
// come in any order. The caller holds w.mu.
func (w *world) refused(d *dialer.Error) {
	same := func(f refusal) bool { return f.code == d.StatusCode }
	if !slices.ContainsFunc(w.refusals, same) {
		return
	}
	i := slices.IndexFunc(w.refusals, func(f refusal) bool { return same(f) && f.wait == d.RetryAfter })
	bare := d.StatusCode == http.StatusUpgradeRequired && d.RetryAfter == 0 // which coder/websocket answers, too
	w.check(RetryAfterRead, i >= 0 || bare || w.statuses[d.StatusCode], "%d: %v, and the answers were %v", d.StatusCode, d.RetryAfter, w.refusals)
	if i >= 0 {
		w.refusals = slices.Delete(w.refusals, i, i+1)
	}
}

// flood sends control frames to the client, in bursts, for up to 20 s.
func (w *world) flood(r *rand.Rand, _ Event) {
	p := w.pipe(r, "flood")
	if p == nil || w.set.Framing != 0 || w.set.TLS {
		return
	}
	size, every := r.IntN(126), time.Millisecond+upTo(r, 2*time.Second)
	for range 1 + r.IntN(10) {
		for range 1 + r.IntN(100) {
			if w.had(p, "window") || w.had(p, "endless") { // what is put between two writes would be inside a frame
				return
			}
			w.inject(p, conntest.Frame{Head: conntest.Fin | byte(ping+r.IntN(2)), Payload: make([]byte, size)})
		}
		time.Sleep(every + upTo(r, time.Millisecond))
	}
}

// rotateWhenReady asks for a rotation as soon as session n is ready, from a goroutine that looks for that moment. OnSession
// has just returned.
func (w *world) rotateWhenReady(n uint64) {
	if !yield.Used() { // else a history would not replay
		time.Sleep(time.Microsecond)
	}
	for range 1000 {
		if now := w.conn.Status(); now.State == reconnect.StateReady && now.Session == n {
			break
		}
		runtime.Gosched()
	}
	w.pushRotation()
	w.mu.Lock()
	w.meddled[n] = true
	w.mu.Unlock()
	w.conn.Rotate(n, reconnect.Advice{})
}
