package fleet

import (
	"github.com/redial-go/redial/internal/line"
	"github.com/redial-go/redial/reconnect/backoff"
)

// gates are where the connections of each process wait for leave to dial: what a
// [budget.Gate] does around a [line.Queue], in virtual time.
type gates struct {
	lines    []processLine
	seats    []seat  // of the clients
	admitted []*seat // room for those that are let in at once
}

// processLine is the line of one process, and when the run looks after it.
type processLine struct {
	line  *line.Queue
	rings int64 // when the next dial may be let in; -1: that does not depend on the time
}

// seat is what the line knows about a connection.
type seat struct {
	who    int32
	which  uint8        // of its dials
	ticket *line.Ticket // nil: it does not want to dial
}

// newGates returns nil if there are to be none.
func newGates(r *run) *gates {
	if r.Processes == 0 {
		return nil
	}
	g := &gates{lines: make([]processLine, r.Processes), seats: make([]seat, r.N)}
	for i := range g.lines {
		g.lines[i] = processLine{line.New(r.Gate, r.rand), -1}
	}
	for i := range g.seats {
		g.seats[i].who = int32(i)
	}
	return g
}

// lineOf returns the number of the line of the process to which the client who belongs.
func (g *gates) lineOf(who int32) int { return int(who) % len(g.lines) }

// arrive puts a dial at the end of the line of its process.
func (r *run) arrive(c *client, who int32, which int, now int64) {
	c.dials[which].state, c.dials[which].at = inLine, never
	s, i := &r.gates.seats[who], r.gates.lineOf(who)
	s.which = uint8(which)
	s.ticket = r.gates.lines[i].line.Join(clock(now))
	s.ticket.Value = s
	r.open(i, now)
}

// tell reports the outcome of a dial of who to the line, if it was a dial. A connection that
// may dial because of that is let in at the same instant, but only after the caller returns.
func (r *run) tell(who int32, which int, now int64, v backoff.Verdict) {
	s, i := &r.gates.seats[who], r.gates.lineOf(who)
	if s.ticket == nil || int(s.which) != which {
		return
	}
	if line := r.gates.lines[i].line; !line.Leave(s.ticket) {
		line.Done(s.ticket, v, clock(now))
	}
	s.ticket = nil
	r.ring(i, now)
}

// ring has open called at a time.
func (r *run) ring(i int, at int64) {
	if l := &r.gates.lines[i]; l.rings < 0 || at < l.rings {
		l.rings = at
		r.events.push(at, process(i))
	}
}

// open lets in all connections that may dial, before the first of them dials, because that
// dial may be refused at once.
func (r *run) open(i int, now int64) {
	l := &r.gates.lines[i]
	admitted := r.gates.admitted[:0]
	for {
		t, next := l.line.Admit(clock(now))
		if t != nil {
			admitted = append(admitted, t.Value.(*seat))
			continue
		}
		if !next.IsZero() {
			r.ring(i, since(next))
		}
		break
	}
	r.gates.admitted = admitted
	for _, s := range admitted {
		c := &r.clients[s.who]
		r.supervisors[s.who].Began(int(s.which), clock(now))
		r.dial(c, s.who, int(s.which), now)
		r.act(c, s.who, now)
	}
}
