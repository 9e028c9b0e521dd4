package debug

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/budget"
)

// Snapshot is all that a Page shows at one moment. It marshals to and unmarshals from the JSON of ?json,
// described under JSON in the package documentation. The types named Info are its records.
type Snapshot struct {
	Time     time.Time     `json:"time"`
	Title    string        `json:"title"`
	Counts   countsInfo    `json:"counts"`
	About    []aboutInfo   `json:"about"`
	Totals   *statsInfo    `json:"totals"`
	Found    int           `json:"found"`
	Conns    []connInfo    `json:"conns"`
	Gates    []gateInfo    `json:"gates"`
	Breakers []breakerInfo `json:"breakers"`
	Values   []groupInfo   `json:"values"`
}

type connInfo struct {
	ID            uint64             `json:"id"`
	Name          string             `json:"name"`
	Endpoint      string             `json:"endpoint,omitempty"`
	Condition     string             `json:"condition"`
	State         string             `json:"state"`
	AtGate        bool               `json:"at_gate,omitempty"`
	Rotating      bool               `json:"rotating,omitempty"`
	Rotation      *rotationInfo      `json:"rotation,omitempty"`
	Since         time.Time          `json:"since"`
	AwaySince     time.Time          `json:"away_since,omitzero"`
	Session       uint64             `json:"session"`
	Try           int                `json:"try"`
	Next          time.Time          `json:"next,omitzero"`
	Probe         *probeInfo         `json:"probe,omitempty"`
	Verdict       string             `json:"verdict,omitempty"`
	Cause         *causeInfo         `json:"cause,omitempty"`
	Lost          int                `json:"lost,omitempty"`
	LostMore      bool               `json:"lost_more,omitempty"`
	RoundTrip     seconds            `json:"round_trip,omitzero"`
	Silence       seconds            `json:"silence,omitzero"`
	Subscriptions *subscriptionsInfo `json:"subscriptions,omitzero"`
	Stats         statsInfo          `json:"stats"`
	Sessions      []sessionInfo      `json:"sessions,omitempty"`
	Events        []eventInfo        `json:"events,omitempty"`

	watched *watched
	stats   reconnect.Stats
	server  string // host and port of the endpoint
	rank    int    // index in conditions
	key     int64  // orders the Conns with the same rank
	line    string // key of its line of about, or ""
}

type probeInfo struct {
	Next    time.Time `json:"next,omitzero"`
	By      string    `json:"by,omitempty"`
	Waiting int       `json:"waiting"`
	Reason  string    `json:"reason,omitempty"`
	Text    string    `json:"text,omitempty"`

	word string // see causeInfo.word; empty: there is no error
}

// rotationInfo does not change.
type rotationInfo struct {
	Failed int       `json:"failed"`
	Since  time.Time `json:"since"`
	Reason string    `json:"reason,omitempty"`
	Text   string    `json:"text,omitempty"`
}

type sessionInfo struct {
	Session uint64    `json:"session"`
	Start   time.Time `json:"start"`
	Away    seconds   `json:"away"`
	Up      seconds   `json:"up"` // for a live session: set by snapshot
	Reason  string    `json:"reason,omitzero"`
	Live    bool      `json:"live"`
	Planned bool      `json:"planned"`

	ready int64 // Unix nanoseconds; 0: it was never ready
}

type subscriptionsInfo struct {
	Wanted int `json:"wanted"`
	Held   int `json:"held"`
}

type statsInfo struct {
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
	QueuedAge       seconds `json:"queued_age"`
	Unread          uint64  `json:"unread"`
	UnreadBytes     uint64  `json:"unread_bytes"`
}

type gateInfo struct {
	Name    string    `json:"name"`
	Host    string    `json:"host"`
	Waiting int       `json:"waiting"`
	Dialing int       `json:"dialing"`
	Limit   int       `json:"limit"`
	Longest seconds   `json:"longest"`
	Granted uint64    `json:"granted"`
	Down    bool      `json:"down"`
	Held    time.Time `json:"held,omitzero"`
	More    int       `json:"more,omitempty"`
	None    bool      `json:"none,omitempty"`
}

type breakerInfo struct {
	Name  string `json:"name"`
	State string `json:"state"`
}

type groupInfo struct {
	Name   string  `json:"name"`
	Values []Value `json:"values"`
}

// Value is a line for [Page.RegisterValues]. Both texts are cut at 200 bytes.
type Value struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

type countsInfo struct {
	All      int `json:"all"`
	Ended    int `json:"ended"`
	Away     int `json:"away"`
	Flapping int `json:"flapping"`
	Ready    int `json:"ready"`
	Closed   int `json:"closed"`
}

const (
	rowsShown   = 100
	allShown    = 4000 // rows with ?all
	linesShown  = 64
	valuesShown = 32
)

// Vars returns a [Snapshot] of the worst hundred Conns, with the sums over all, for
//
//	expvar.Publish("redial", expvar.Func(page.Vars))
func (p *Page) Vars() any { return p.snapshot(&query{json: true}, time.Now()) }

// The indexes of conditions, which order the Conns.
const (
	rankEnded    = iota // ended by itself
	rankAway            // no session is ready
	rankFlapping        // a session is ready, but several were lost recently
	rankReady
	rankClosed // by the program
)

var conditions = [...]string{"ended", "away", "flapping", "ready", "closed"}

// snapshot returns the Snapshot for q.
func (p *Page) snapshot(q *query, now time.Time) *Snapshot {
	conns := p.infos(now)
	s := &Snapshot{
		Time: now, Title: p.o.Title, About: lines(conns), Totals: new(statsInfo), Conns: []connInfo{},
	}
	rows := rowsShown
	if q.all {
		rows = allShown
	}
	var n [len(conditions)]int
	for _, c := range conns {
		n[c.rank]++
		s.Totals.add(c.stats)
		if !q.finds(c) {
			continue
		}
		s.Found++
		if len(s.Conns) < rows {
			c.addPast(q, now)
			s.Conns = append(s.Conns, *c)
		}
	}
	s.Counts = countsInfo{len(conns), n[rankEnded], n[rankAway], n[rankFlapping], n[rankReady], n[rankClosed]}
	if !q.one || q.json { // the page of one Conn does not show them
		s.Gates, s.Breakers, s.Values = p.others(now)
	}
	return s
}

// infos returns the records of all Conns without their past, the worst first: those that have ended by
// themselves, the last first; those without a session, the longest first; those that are flapping, the most
// losses first; those that are ready, the last failure first; and those that were closed.
func (p *Page) infos(now time.Time) []*connInfo {
	p.mu.Lock()
	p.prune(now)
	all := slices.Collect(maps.Values(p.conns))
	p.mu.Unlock()
	infos := make([]*connInfo, len(all))
	for i, w := range all {
		infos[i] = w.info(now)
	}
	slices.SortFunc(infos, func(a, b *connInfo) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.key, b.key), cmp.Compare(a.ID, b.ID))
	})
	return infos
}

// info returns the record of w without its past.
func (w *watched) info(now time.Time) *connInfo {
	status := w.conn.Status()
	c := &connInfo{
		ID: w.id, Name: w.name, Endpoint: w.endpoint, State: status.State.String(), AtGate: status.AtGate,
		Rotating: status.Rotating, Since: status.Since, Session: status.Session, Try: status.Try, Next: status.Next,
		watched: w, server: w.server, stats: w.conn.Stats(),
	}
	c.Stats.add(c.stats)
	c.Silence = seconds(c.stats.Silence)
	if o := status.Outlook; o != nil {
		c.Probe = &probeInfo{Next: o.Next, By: clean(o.By), Waiting: o.Waiting}
		if cause := causeOf(o.Err, now); cause != nil {
			c.Probe.Reason, c.Probe.Text, c.Probe.word = cause.Reason, cause.Text, cause.word()
		}
	}
	if status.Err != nil && status.State != reconnect.StateClosed {
		c.Verdict = status.Verdict.String()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c.rank, c.key = w.rank(status.State, now)
	c.Condition, c.Cause, c.RoundTrip = conditions[c.rank], w.last, seconds(w.roundTrip)
	c.Lost, c.LostMore = w.lost(now)
	if status.Rotating && status.State == reconnect.StateReady {
		c.Rotation = w.failing
	}
	if w.away != 0 && c.rank != rankClosed {
		c.AwaySince = time.Unix(0, w.away)
	}
	return c
}

// addPast adds what only a Conn that is shown needs: its subscriptions and its past.
func (c *connInfo) addPast(q *query, now time.Time) {
	w := c.watched
	if w.o.Subscriptions != nil {
		wanted, held := w.o.Subscriptions()
		c.Subscriptions = &subscriptionsInfo{wanted, held}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if q.one || !q.json {
		c.Sessions = slices.Clone(w.sessions)
	}
	for i := range c.Sessions {
		if s := &c.Sessions[i]; s.Live && s.ready != 0 {
			s.Up = seconds(max(now.UnixNano()-s.ready, 1))
		}
	}
	if q.one {
		for i := range w.events {
			c.Events = append(c.Events, w.events[i].public())
		}
	}
}

// add adds the counts of a Conn.
func (s *statsInfo) add(n reconnect.Stats) {
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
	s.QueuedAge = max(s.QueuedAge, seconds(n.QueuedAge))
	s.Unread += n.Unread
	s.UnreadBytes += n.UnreadBytes
}

// others returns the gates, breakers and values. No lock is held while their functions run.
func (p *Page) others(now time.Time) (gates []gateInfo, breakers []breakerInfo, groups []groupInfo) {
	p.mu.Lock()
	ofGates, ofBreakers, ofGroups := p.gates, p.breakers, p.groups
	p.mu.Unlock()
	gates, breakers, groups = []gateInfo{}, []breakerInfo{}, []groupInfo{}
	for _, g := range ofGates {
		gates = append(gates, gateLines(g, now)...)
	}
	slices.SortStableFunc(gates, func(a, b gateInfo) int { return cmp.Compare(b.weight(), a.weight()) })
	if more := len(gates) - linesShown; more > 0 {
		gates = gates[:linesShown:linesShown]
		gates[linesShown-1].More = more
	}
	for _, b := range ofBreakers {
		breakers = append(breakers, breakerInfo{b.name, b.of.State().String()})
	}
	for _, g := range ofGroups {
		values := append([]Value{}, g.of()...) // not null in JSON
		values = values[:min(len(values), valuesShown)]
		for i := range values {
			values[i].Name, values[i].Text = clean(values[i].Name), clean(values[i].Text)
		}
		groups = append(groups, groupInfo{g.name, values})
	}
	return gates, breakers, groups
}

// gateLines returns the lines of a gate.
func gateLines(s *source[*budget.Gate], now time.Time) (lines []gateInfo) {
	for _, host := range s.of.Hosts() {
		status := s.of.Status(host)
		line := gateInfo{
			Name: s.name, Host: clean(host), Waiting: status.Waiting, Dialing: status.Dialing, Limit: status.Limit,
			Longest: seconds(status.Longest), Granted: status.Granted, Down: status.Down,
		}
		if status.Held.After(now) {
			line.Held = status.Held
		}
		lines = append(lines, line)
	}
	if lines == nil {
		lines = []gateInfo{{Name: s.name, None: true}}
	}
	return lines
}

// weight is greater for a line that needs more attention.
func (g *gateInfo) weight() int64 {
	weight := int64(g.Waiting) + int64(g.Dialing)
	if g.Down {
		weight += 2 << 40
	}
	if !g.Held.IsZero() {
		weight += 1 << 40
	}
	return weight
}
