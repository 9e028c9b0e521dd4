package fleet

import (
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
)

// gates are where the connections of each process wait for leave to dial: what a
// [budget.Gate] does around a [budget.Line], in virtual time.
type gates struct {
	doors    []door
	seats    []seat  // of the clients
	admitted []*seat // room for those who are let in at once
}

// door is the line of one process and when it is looked after.
type door struct {
	line  *budget.Line
	rings int64 // when somebody may be let in; -1: that is no matter of time
}

// seat is what the line has to know of a connection.
type seat struct {
	who    int32
	which  uint8          // of its dials
	ticket *budget.Ticket // nil: it does not want to dial
}

// newGates returns nil if there are to be none.
func newGates(r *run) *gates {
	if r.Processes == 0 {
		return nil
	}
	g := &gates{doors: make([]door, r.Processes), seats: make([]seat, r.N)}
	for i := range g.doors {
		g.doors[i] = door{budget.NewLine(r.Gate, r.rand), -1}
	}
	for i := range g.seats {
		g.seats[i].who = int32(i)
	}
	return g
}

// door returns that of the process to which who belongs.
func (g *gates) door(who int32) int { return int(who) % len(g.doors) }

// arrive puts a dial at the end of the line of its process.
func (r *run) arrive(c *client, who int32, which int, now int64) {
	c.dials[which].state, c.dials[which].at = inLine, never
	s, i := &r.gates.seats[who], r.gates.door(who)
	s.which = uint8(which)
	s.ticket = r.gates.doors[i].line.Join(clock(now))
	s.ticket.Value = s
	r.open(i, now)
}

// tell tells the line how the dial of who went, if it was one. Who may dial for that
// is let in at this very time, but not before the caller is done.
func (r *run) tell(who int32, which int, now int64, v backoff.Verdict) {
	s, i := &r.gates.seats[who], r.gates.door(who)
	if s.ticket == nil || int(s.which) != which {
		return
	}
	if line := r.gates.doors[i].line; !line.Leave(s.ticket) {
		line.Done(s.ticket, v, clock(now))
	}
	s.ticket = nil
	r.ring(i, now)
}

// ring has open called at a time.
func (r *run) ring(i int, at int64) {
	if d := &r.gates.doors[i]; d.rings < 0 || at < d.rings {
		d.rings = at
		r.agenda.push(at, process(i))
	}
}

// open lets in who may, all before the first of them dials: that dial may be refused
// at once.
func (r *run) open(i int, now int64) {
	d := &r.gates.doors[i]
	admitted := r.gates.admitted[:0]
	for {
		t, next := d.line.Admit(clock(now))
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
		r.dial(c, s.who, int(s.which), now)
		r.act(c, s.who, now)
	}
}
