package fleet

import (
	"time"

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

// Processes have numbers of their own among those to whom something happens, below
// theServer.
func process(door int) (who int32) { return theServer - 1 - int32(door) }

// rung reports whether at is when a process is to be looked after.
func (g *gates) rung(process int32, at int64) (door int, ok bool) {
	door = int(theServer - 1 - process)
	return door, g.doors[door].rings == at
}

// arrive puts c at the end of the line of its process.
func (r *run) arrive(c *client, who int32, now int64) {
	c.state, c.due = inLine, -1
	s, i := &r.gates.seats[who], r.gates.door(who)
	s.ticket = r.gates.doors[i].line.Join(clock(now))
	s.ticket.Value = s
	r.open(i, now)
}

// tell tells the line how the dial of who went, if it was one. Who may dial for that
// is let in at this very time, but not before the caller is done.
func (r *run) tell(who int32, now int64, v backoff.Verdict) {
	s, i := &r.gates.seats[who], r.gates.door(who)
	if s.ticket == nil {
		return
	}
	r.gates.doors[i].line.Done(s.ticket, v, clock(now))
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
		r.dial(&r.clients[s.who], s.who, now)
	}
}

// since is the inverse of clock.
func since(t time.Time) int64 { return int64(t.Sub(clock(0))) }
