package debug

import (
	"cmp"
	"slices"
	"time"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/budget"
)

// Snapshot is what the page knows at one moment. The answer to ?json is one. Names of fields
// and words do not change; new ones may come. Times are those of RFC 3339, durations seconds.
type Snapshot struct {
	Time     time.Time `json:"time"`
	Title    string    `json:"title"`
	Counts   Counts    `json:"counts"`   // of all Conns
	Totals   *Stats    `json:"totals"`   // the sums over those; they fall when a Conn is forgotten
	Found    int       `json:"found"`    // how many Conns the query has found
	Page     int       `json:"page"`     // which hundred of those this is, from 1
	Pages    int       `json:"pages"`    // how many hundreds there are
	Conns    []Conn    `json:"conns"`    // up to a hundred Conns, the worst first
	Gates    []Gate    `json:"gates"`    // up to 64 lines of gates, the worst first
	Breakers []Breaker `json:"breakers"` // in the order in which they were registered
	Values   []Group   `json:"values"`   // likewise
}

// Conn is what is shown of one [reconnect.Conn].
type Conn struct {
	ID            uint64         `json:"id"` // names it for as long as the Page lives
	Name          string         `json:"name"`
	Endpoint      string         `json:"endpoint,omitempty"`     // reconnect.Conn.Endpoint at Register, or what Options.Endpoint made of it
	Condition     string         `json:"condition"`              // ended, away, flapping, ready or closed: see Counts
	State         string         `json:"state"`                  // connecting, opening, ready, waiting or closed
	AtGate        bool           `json:"at_gate,omitempty"`      // it waits at the gate
	Rotating      bool           `json:"rotating,omitempty"`     // the session is being replaced
	Since         time.Time      `json:"since"`                  // when it entered the state
	AwaySince     time.Time      `json:"away_since,omitzero"`    // since when no session is ready
	Session       uint64         `json:"session"`                // the number of the present session, or of the last; 0: none yet
	Try           int            `json:"try"`                    // how many dials have begun since the last stable session, as of the last failure
	Next          time.Time      `json:"next,omitzero"`          // while waiting: when the next dial begins
	Verdict       string         `json:"verdict,omitempty"`      // on what has failed last: retry, overload, refresh, slow or stop
	Cause         *Cause         `json:"cause,omitempty"`        // why the last dial failed, or the last session ended
	Lost          int            `json:"lost,omitempty"`         // sessions that were ready and were lost within the last 5 minutes, of the last 32
	RoundTrip     Seconds        `json:"round_trip,omitzero"`    // of the last probe that was answered
	Silence       Seconds        `json:"silence,omitzero"`       // how long ago the last byte came
	Subscriptions *Subscriptions `json:"subscriptions,omitzero"` // if they were registered
	Stats         Stats          `json:"stats"`
	Sessions      []Session      `json:"sessions,omitempty"` // only with ?conn: the last 32, the oldest first
	Events        []Event        `json:"events,omitempty"`   // only with ?conn: the last 64, the oldest first
}

// Subscriptions are how many subscriptions a Conn has.
type Subscriptions struct {
	Wanted int `json:"wanted"`
	Held   int `json:"held"`
}

// Stats are counts of [reconnect.Stats], with the same meaning.
type Stats struct {
	Dials           uint64  `json:"dials"`
	Failures        uint64  `json:"failures"`
	Sessions        uint64  `json:"sessions"`
	Lost            uint64  `json:"lost"`
	Rotations       uint64  `json:"rotations"`
	RotationsFailed uint64  `json:"rotations_failed"`
	Probes          uint64  `json:"probes"`
	Received        uint64  `json:"received"`
	ReceivedBytes   uint64  `json:"received_bytes"`
	Written         uint64  `json:"written"`
	WrittenBytes    uint64  `json:"written_bytes"`
	Dropped         uint64  `json:"dropped"`
	Unknown         uint64  `json:"unknown"`
	Queued          uint64  `json:"queued"`
	QueuedBytes     uint64  `json:"queued_bytes"`
	QueuedAge       Seconds `json:"queued_age"` // in totals: the greatest
	Unread          uint64  `json:"unread"`
	UnreadBytes     uint64  `json:"unread_bytes"`
}

// Gate is the line of one host at a gate.
type Gate struct {
	Name    string    `json:"name"`
	Host    string    `json:"host"`
	Waiting int       `json:"waiting"`        // dials that wait
	Dialing int       `json:"dialing"`        // dials that were let through and are not done
	Limit   int       `json:"limit"`          // how many may be, now
	Longest Seconds   `json:"longest"`        // how long the first of those that wait has waited
	Granted uint64    `json:"granted"`        // dials that were let through so far
	Down    bool      `json:"down"`           // the host is down: one dial at a time goes out
	Held    time.Time `json:"held,omitzero"`  // no dial before this, because the server said so
	More    int       `json:"more,omitempty"` // lines that are not shown, with the last that is
	None    bool      `json:"none,omitempty"` // the gate has no line yet: Host is empty
}

// Breaker is the state of a breaker.
type Breaker struct {
	Name  string `json:"name"`
	State string `json:"state"` // closed, open or half-open
}

// Group is a group of values of the program's own.
type Group struct {
	Name   string  `json:"name"`
	Values []Value `json:"values"`
}

// Value is something that the program itself wants to show. Both texts are cut at 200 bytes.
type Value struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

const (
	linesShown  = 64
	valuesShown = 32
)

// Vars returns a [Snapshot] of the worst hundred Conns, with the sums over all, for
//
//	expvar.Publish("redial", expvar.Func(page.Vars))
//
// This package does not import expvar, which registers a handler by being imported.
func (p *Page) Vars() any { return p.snapshot(&query{}) }

// snapshot returns what q asks for, nil if that is a Conn that is not there.
func (p *Page) snapshot(q *query) *Snapshot {
	now := time.Now()
	s := &Snapshot{Time: now, Title: p.o.Title, Totals: new(Stats), Page: 1, Pages: 1, Conns: []Conn{}}
	list, counts := p.ranked(now)
	s.Counts = counts
	for _, w := range list {
		s.Totals.add(w.conn.Stats())
	}
	if q.conn != 0 {
		w := p.conn(q.conn)
		if w == nil {
			return nil
		}
		s.Found, s.Conns = 1, append(s.Conns, w.snapshot(now, true))
	} else {
		f := p.find(q, now)
		s.Found, s.Page, s.Pages = f.total, f.page, f.pages
		for _, w := range f.list {
			s.Conns = append(s.Conns, w.snapshot(now, false))
		}
	}
	s.Gates, s.Breakers, s.Values = p.others(now)
	return s
}

// conn returns the Conn with an ID, or nil.
func (p *Page) conn(id uint64) *watched {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conns[id]
}

// snapshot returns what is shown of w.
func (w *watched) snapshot(now time.Time, whole bool) Conn {
	status, stats := w.conn.Status(), w.conn.Stats()
	trouble, _ := w.trouble(now)
	c := Conn{
		ID: w.id, Name: w.name, Endpoint: w.endpoint, Condition: trouble.String(), State: status.State.String(), AtGate: status.AtGate,
		Rotating: status.Rotating, Since: status.Since, Session: status.Session, Try: status.Try, Next: status.Next,
		Silence: Seconds(stats.Silence),
	}
	c.Stats.add(stats)
	if status.Err != nil && status.State != reconnect.StateClosed {
		c.Verdict = status.Verdict.String()
	}
	if w.o.Subscriptions != nil {
		wanted, held := w.o.Subscriptions()
		c.Subscriptions = &Subscriptions{wanted, held}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c.Cause, c.RoundTrip, c.Lost = w.last.public(), Seconds(w.roundTrip), w.lost(now)
	if w.away != 0 && trouble != troubleClosed {
		c.AwaySince = time.Unix(0, w.away)
	}
	if whole {
		for _, s := range w.sessions.all() {
			c.Sessions = append(c.Sessions, s.public(now))
		}
		for _, e := range w.events.all() {
			c.Events = append(c.Events, e.public())
		}
	}
	return c
}

// add adds the counts of a Conn.
func (s *Stats) add(n reconnect.Stats) {
	s.Dials += n.Dials
	s.Failures += n.Failures
	s.Sessions += n.Sessions
	s.Lost += n.Lost
	s.Rotations += n.Rotations
	s.RotationsFailed += n.RotationsFailed
	s.Probes += n.Probes
	s.Received += n.Received
	s.ReceivedBytes += n.ReceivedBytes
	s.Written += n.Written
	s.WrittenBytes += n.WrittenBytes
	s.Dropped += n.Dropped
	s.Unknown += n.Unknown
	s.Queued += n.Queued
	s.QueuedBytes += n.QueuedBytes
	s.QueuedAge = max(s.QueuedAge, Seconds(n.QueuedAge))
	s.Unread += n.Unread
	s.UnreadBytes += n.UnreadBytes
}

// others returns what is registered beside the Conns. No lock is held while it asks.
func (p *Page) others(now time.Time) (gates []Gate, breakers []Breaker, groups []Group) {
	p.mu.Lock()
	ofGates, ofBreakers, ofGroups := p.gates, p.breakers, p.groups
	p.mu.Unlock()
	gates, breakers, groups = []Gate{}, []Breaker{}, []Group{}
	for _, g := range ofGates {
		gates = append(gates, gateLines(g, now)...)
	}
	slices.SortStableFunc(gates, func(a, b Gate) int { return cmp.Compare(b.weight(), a.weight()) })
	if more := len(gates) - linesShown; more > 0 {
		gates = gates[:linesShown:linesShown]
		gates[linesShown-1].More = more
	}
	for _, b := range ofBreakers {
		breakers = append(breakers, Breaker{b.name, b.of.State().String()})
	}
	for _, g := range ofGroups {
		values := slices.Clone(g.of())
		values = values[:min(len(values), valuesShown)]
		for i := range values {
			values[i].Name, values[i].Text = clean(values[i].Name), clean(values[i].Text)
		}
		groups = append(groups, Group{g.name, values})
	}
	return gates, breakers, groups
}

// gateLines returns the lines of a gate.
func gateLines(s *source[*budget.Gate], now time.Time) (lines []Gate) {
	for _, host := range s.of.Hosts() {
		status := s.of.Status(host)
		line := Gate{
			Name: s.name, Host: clean(host), Waiting: status.Waiting, Dialing: status.Dialing, Limit: status.Limit,
			Longest: Seconds(status.Longest), Granted: status.Granted, Down: status.Down,
		}
		if status.Held.After(now) {
			line.Held = status.Held
		}
		lines = append(lines, line)
	}
	if lines == nil {
		lines = []Gate{{Name: s.name, None: true}}
	}
	return lines
}

// weight is greater for a line that needs more attention.
func (g *Gate) weight() int64 {
	weight := int64(g.Waiting) + int64(g.Dialing)
	if g.Down {
		weight += 2 << 40
	}
	if !g.Held.IsZero() {
		weight += 1 << 40
	}
	return weight
}
